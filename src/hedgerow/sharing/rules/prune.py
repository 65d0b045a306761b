"""ATP for disjoint rules: what does not satisfy the requirement is merged with what lies beside it, until everything does.

The smallest failing rule goes first. It is merged with the nearest rule that differs from it in one attribute: nearest by the schema's
taxonomy or by the order of a number's cells, as in a tree. Where there is none, it is merged with all rules that it needs to be one rule
again: they must fill the smallest one that holds them all, as the branches of a tree fill their parent. Where no rules do, it is left out.
So every rule is a union of rules with all of their persons, and the rules stay disjoint. When no rule with a condition is left, the result
is the *empty rule set*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.anonymity.groups import Group, together
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import ReleaseError
from hedgerow.sharing.rules.disjoint import check_disjoint
from hedgerow.sharing.rules.rule_set import RuleSet, certificate_for, check_claim, possible
from hedgerow.sharing.rules.used_edges import with_used_edges
from hedgerow.sharing.taxonomy import Taxonomies
from hedgerow.trees.paths import Paths

TRIED = 32  # rules with which the smallest common one is looked for, before the best of those found is taken


@dataclass(frozen=True)
class Step:
    """A rule that failed: why, and what it became a part of. `into` is empty where it was left out."""

    rule: str
    why: str
    into: str
    persons: float

    def words(self) -> str:
        if not self.into:
            return f"{self.rule}: left out with {self.persons:.6g} persons ({self.why}); it makes no rule with others"
        return f"{self.rule}: merged into {self.into} ({self.why}); {self.persons:.6g} persons together"


@dataclass(frozen=True, eq=False)
class PrunedRules:
    """Rules that satisfy a requirement, in whole persons; or by name the empty rule set. at_values: as of a `RuleSet`."""

    requirement: Requirement
    paths: Paths
    steps: tuple[Step, ...]
    at_values: bool = False

    @property
    def empty(self) -> bool:
        """No rule with a condition satisfies the requirement: nothing is published."""
        return not self.paths.asked.any()

    @property
    def left_out(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if not step.into)

    @property
    def rule_set(self) -> RuleSet:
        """What may be shared. It is measured again. Of a tree that was cut at values the edges go that no rule asks about any more."""
        if self.empty:
            raise ReleaseError(f"no rule satisfies {self.requirement.words()}: there is nothing to share. Ask for less, or take more rows.")
        paths = with_used_edges(self.paths) if self.at_values else self.paths
        made = RuleSet(paths, certificate_for(self.requirement, paths.counts is None, self.at_values), at_values=self.at_values)
        check_claim(made)
        return made


def prune_rules(paths: Paths, requirement: Requirement, *, at_values: bool = False) -> PrunedRules:
    """`paths` without counts are pruned by hit and miss; Eq. 1 estimates the hits of merged rules. at_values: as of a `RuleSet`."""
    requirement.check_classes(paths.codebook.n_classes)
    check_disjoint(paths)
    return replace(_Pruning(possible(paths), requirement).run(), at_values=at_values)


class _Pruning:
    """The rules that are left while they are pruned: rows of `allowed`; each with the groups that it was made of."""

    def __init__(self, paths: Paths, requirement: Requirement) -> None:
        self.paths, self.requirement = paths, requirement
        self.n_classes = paths.codebook.n_classes
        self.taxonomies = Taxonomies(paths.codebook)
        self.allowed = paths.allowed.copy()
        self.left = np.ones(len(paths), dtype=bool)
        self.members = [[_group(paths, i)] for i in range(len(paths))]
        self.groups = [members[0] for members in self.members]
        self.sets = [_Sets() for _ in paths.codebook.sizes]
        self.ids = np.array([self.ids_of(allowed) for allowed in self.allowed], dtype=np.int64).reshape(len(paths), len(self.sets))
        self.volume = [self.size_of(allowed) for allowed in self.allowed]
        self.steps: list[Step] = []

    def run(self) -> PrunedRules:
        failing = {i for i in range(len(self.groups)) if self.fails(i)}
        while failing:
            rule = min(failing, key=lambda i: (self.groups[i].total, i))
            others = self.beside(rule)
            self.take(rule, others)
            failing -= {rule, *others}
            if others and self.fails(rule):
                failing.add(rule)
        return PrunedRules(self.requirement, self.result(), tuple(self.steps))

    def fails(self, rule: int) -> bool:
        return not self.groups[rule].published_satisfies(self.requirement, self.n_classes)

    def take(self, rule: int, others: Sequence[int]) -> None:
        """Merge the rule with the others, or leave it out where there are none."""
        was, why = self.words(self.allowed[rule]), self.why(rule)
        self.left[[rule, *others]] = False
        if others:
            self.left[rule] = True
            self.allowed[rule] |= self.allowed[others].any(axis=0)
            self.ids[rule] = self.ids_of(self.allowed[rule])
            self.volume[rule] = self.size_of(self.allowed[rule])
            self.members[rule] = [group for i in (rule, *others) for group in self.members[i]]
            self.groups[rule] = together(self.members[rule], self.n_classes)
        self.steps.append(Step(was, why, self.words(self.allowed[rule]) if others else "", self.groups[rule].total))

    # ------------------------------------------------------------ what lies beside a rule

    def beside(self, rule: int) -> list[int]:
        """The other rules with which it becomes one rule; none if it cannot."""
        others = np.flatnonzero(self.left)
        others = others[others != rule]
        different = self.ids[others] != self.ids[rule]
        number = different.sum(axis=1)
        kin = np.flatnonzero(number == 1)
        if len(kin):
            near = min(kin.tolist(), key=lambda i: self.distance(rule, int(others[i]), int(different[i].argmax())))
            return [int(others[near])]
        order = np.lexsort(([self.groups[i].total for i in others], number))
        found: list[list[int]] = []
        for tried, other in enumerate(others[order].tolist()):
            if tried >= TRIED and found:
                break
            whole = self.filled(rule, other)
            if whole:
                found.append(whole)
        return min(found, key=lambda whole: sum(self.groups[i].total for i in whole), default=[])

    def filled(self, rule: int, other: int) -> list[int]:
        """All rules that fill the smallest one that holds these two, without the first; none if they leave gaps."""
        whole = self.allowed[rule] | self.allowed[other]
        while True:
            met = np.flatnonzero(self.left)
            for j, part in enumerate(np.split(whole, self.paths.first_code[1:-1])):
                met = met[self.sets[j].meet(part)[self.ids[met, j]]]
            larger = self.allowed[met].any(axis=0)
            if not (larger & ~whole).any():
                break
            whole = whole | larger
        parts = met.tolist()
        if sum(self.volume[i] for i in parts) != self.size_of(whole):
            return []
        return [i for i in parts if i != rule]

    def distance(self, rule: int, other: int, attribute: int) -> tuple[float, float, int]:
        """How far a rule is that differs in this attribute: by the taxonomy or the order of cells, then small before large."""
        codebook = self.paths.codebook
        cells = codebook.numeric_cells(attribute)
        mine, theirs = self.codes(rule, attribute), self.codes(other, attribute)
        if cells:
            mine, theirs = mine[mine < cells], theirs[theirs < cells]
            near = np.abs(mine[:, None] - theirs).min() if len(mine) and len(theirs) else cells  # missing numbers are near to none
        else:
            near = max(self.taxonomies.distance(attribute, int(a), int(b)) for a in mine for b in theirs)
        return float(near), self.groups[other].total, other

    def codes(self, rule: int, attribute: int) -> NDArray[np.int64]:
        first = self.paths.first_code
        return np.flatnonzero(self.allowed[rule, first[attribute] : first[attribute + 1]])

    def size_of(self, allowed: NDArray[np.bool_]) -> int:
        """How many rows of codes a rule allows: exactly, it may be a very large number."""
        return math.prod(np.add.reduceat(allowed, self.paths.first_code[:-1], dtype=np.int64).tolist())

    def ids_of(self, allowed: NDArray[np.bool_]) -> list[int]:
        """For each attribute the number of the set of codes that a rule allows: rules are compared by them, not code by code."""
        return [sets.number(part) for sets, part in zip(self.sets, np.split(allowed, self.paths.first_code[1:-1]), strict=True)]

    # ------------------------------------------------------------ what comes of it

    def result(self) -> Paths:
        rules = np.flatnonzero(self.left)
        groups = [self.groups[i] for i in rules]
        counts = None
        if self.paths.counts is None:
            groups = [group.in_whole_numbers(self.n_classes) for group in groups]
        else:
            counts = np.array([group.counts for group in groups], dtype=np.float64).reshape(len(groups), self.n_classes)
        label = np.array([group.label for group in groups], dtype=np.int64)
        hit, miss = (np.array([getattr(group, what) for group in groups], dtype=np.float64) for what in ("hit", "miss"))
        return possible(Paths(self.paths.codebook, self.allowed[rules], np.zeros((len(rules), 0), dtype=bool), label, hit, miss, counts))

    def words(self, allowed: NDArray[np.bool_]) -> str:
        one = np.zeros(1)
        return possible(Paths(self.paths.codebook, allowed[None], np.zeros((1, 0), dtype=bool), one.astype(np.int64), one, one)).words(0)

    def why(self, rule: int) -> str:
        group = self.groups[rule]
        return group.why_not(self.requirement) or f"in whole persons: {group.in_whole_numbers(self.n_classes).why_not(self.requirement)}"


class _Sets:
    """The sets of codes of one attribute that were met, each with a number."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.masks: list[NDArray[np.bool_]] = []
        self.table = np.empty((0, 0), dtype=bool)  # the masks, when they were last asked for

    def number(self, mask: NDArray[np.bool_]) -> int:
        found = self.numbers.setdefault(mask.tobytes(), len(self.masks))
        if found == len(self.masks):
            self.masks.append(mask.copy())
        return found

    def meet(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each set whether it has a code in common with these."""
        if len(self.table) < len(self.masks):
            self.table = np.array(self.masks)
        return np.asarray((self.table & mask).any(axis=1))


def _group(paths: Paths, i: int) -> Group:
    counts = None if paths.counts is None else paths.counts[i]
    return Group(int(paths.label[i]), float(paths.hit[i]), float(paths.miss[i]), counts)
