"""Disjoint rule sets: the other model that owners share. A rule is a path without a tree around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.anonymity.groups import Group, together
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Categorical, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.paths import Paths, from_counts


def rule_set(codebook: Codebook, rules: Sequence[tuple[Mapping[str, Sequence[Any]], Sequence[float]]]) -> Paths:
    """The paths of rules (conditions, class counts), conditions = {attribute: allowed values}; of a numeric attribute numbers of cells.

    The rules must be disjoint: any two differ in an attribute of which they have no value in common.
    """
    names, sizes = codebook.schema.names, codebook.sizes
    first = np.concatenate([[0], np.cumsum(sizes)])
    allowed = np.ones((len(rules), int(first[-1])), dtype=bool)
    asked = np.zeros((len(rules), len(sizes)), dtype=bool)
    counts = np.zeros((len(rules), codebook.n_classes))
    for i, (conditions, numbers) in enumerate(rules):
        for name, values in conditions.items():
            if name not in names:
                raise PlanError(f"rule {i + 1}: {name!r} is no attribute of the schema.")
            a = names.index(name)
            asked[i, a] = True
            allowed[i, first[a] : first[a + 1]] = np.isin(np.arange(sizes[a]), _codes(codebook, a, values, i))
        if len(numbers) != codebook.n_classes or not all(0 <= number < 2**53 for number in numbers):
            raise PlanError(f"rule {i + 1}: expected {codebook.n_classes} class counts, none below 0.")
        counts[i] = numbers
    paths = from_counts(codebook, allowed, asked, counts)
    check_disjoint(paths)
    return paths


def _codes(codebook: Codebook, attribute: int, values: Sequence[Any], rule: int) -> list[int]:
    entry = codebook.schema.attributes[attribute]
    known = {text_of(value): code for code, value in enumerate(entry.domain)} if isinstance(entry, Categorical) else {
        str(cell): cell for cell in range(codebook.sizes[attribute])
    }  # fmt: skip
    absent = [value for value in values if text_of(value) not in known]
    if absent or not values:
        raise PlanError(f"rule {rule + 1}: {', '.join(map(repr, absent)) or 'nothing'} is no value of {entry.name!r}.")
    return [known[text_of(value)] for value in values]


def check_disjoint(paths: Paths) -> None:
    for i in range(len(paths)):
        for j in range(i):
            if not apart(paths, i, j):
                raise PlanError(f"rules {j + 1} and {i + 1} are not disjoint: a person may be in both, and would be counted twice.")


def apart(paths: Paths, i: int, j: int) -> bool:
    common = np.add.reduceat(paths.allowed[i] & paths.allowed[j], paths.first_code[:-1])
    return bool((common == 0).any())


def prune_rules(paths: Paths, requirement: Requirement) -> Paths:
    """ATP for a disjoint rule set: a failing rule is merged with one that differs in a single attribute, or left out if there is none.

    The union of such a pair is a rule again, and stays apart from all others. May leave no rule at all.
    """
    requirement.check_classes(paths.codebook.n_classes)
    left = [(paths.allowed[i], paths.asked[i], _group(paths, i)) for i in range(len(paths))]
    while True:
        failing = [rule for rule in left if not rule[2].satisfies(requirement)]
        if not failing:
            break
        rule = min(failing, key=lambda each: each[2].total)
        left = [each for each in left if each is not rule]
        kin = [each for each in left if _one_attribute_apart(paths, rule[0], each[0])]
        if kin:
            other = min(kin, key=lambda each: each[2].total)
            left = [each for each in left if each is not other]
            allowed = rule[0] | other[0]
            spans = np.split(allowed, paths.first_code[1:-1])
            asked = (rule[1] | other[1]) & np.array([not span.all() for span in spans])
            left.append((allowed, asked, together([rule[2], other[2]], paths.codebook.n_classes)))
    groups = [group for _, _, group in left]
    width, attributes = paths.allowed.shape[1], len(paths.codebook.sizes)
    counts = None
    if all(group.counts is not None for group in groups):
        counts = np.array([group.counts for group in groups]).reshape(len(groups), paths.codebook.n_classes)
    return Paths(
        paths.codebook,
        np.array([allowed for allowed, _, _ in left], dtype=bool).reshape(-1, width),
        np.array([asked for _, asked, _ in left], dtype=bool).reshape(-1, attributes),
        np.array([group.label for group in groups], dtype=np.int64),
        np.array([group.hit for group in groups], dtype=np.float64),
        np.array([group.miss for group in groups], dtype=np.float64),
        counts,
    )


def _group(paths: Paths, i: int) -> Group:
    counts = None if paths.counts is None else paths.counts[i]
    return Group(int(paths.label[i]), float(paths.hit[i]), float(paths.miss[i]), counts)


def _one_attribute_apart(paths: Paths, one: Any, other: Any) -> bool:
    different = np.add.reduceat(one != other, paths.first_code[:-1]) > 0
    return int(different.sum()) == 1
