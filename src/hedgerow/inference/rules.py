"""Rules in plain words, read from released counts: post-processing, so it costs nothing and can be repeated at will.

A rule is a path from the root to a leaf (with `sub_rules`, to any node). Its numbers come from the noisy counts c of
its node, one for each of K classes, each with independent noise of standard deviation σ (`forest.node_noise_sd`):

    support      n = Σ c                        support_error      σ·√K
    confidence   p = max(c⁺) / Σ c⁺             confidence_error   σ·√((1 − p)² + (K − 1)·p²) / Σ c⁺, at most 0.5

where c⁺ takes negative counts as 0. The confidence error is the delta method: the first-order effect of the noise on p. The counts c
themselves, each with the error σ, are the `distribution` of the rule, as Fletcher & Islam 2015 (DPDF, section 5) want it.
The errors speak of the noise alone, not of the chance by which these rows and not others are in the table; and the best
of many noisy rules looks a little better than it is.

A rule stands above the noise if its support is more than z·support_error, and its confidence differs from the share s of its class in
all rows by more than z·√(confidence_error² + s(1 − s)/n): by more than noise and the chance of who is among n rows do. The more paths
there are, the further these alone carry the best of them, so z grows with their number m (Bonferroni): the normal quantile that all of m
paths of noise stay within together, but for a chance of 5 % (`noise_limit`). It is 2.0 for one path, 3.6 for 180 and 4.4 for 5,000. The
Laplace noise of pure ε has longer tails: there a path of noise is listed now and then (measured without the chance of rows: 5 of about
180 rules of eight forests, beside 37 with a limit of two errors).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.inference.text import MANY_VALUES, count_with_error, plain, share_text, share_with_error, values_in_words
from hedgerow.schema.attributes import Value, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.tree import Tree

Removed = Sequence[NDArray[np.bool_]] | None  # for each tree, which nodes pruning takes away; None: it takes none
SORTS = ("default", "confidence", "support")
FALSE_RULES = 0.05  # the chance that noise alone carries any of a forest's paths above the limit


@dataclass(frozen=True)
class Condition:
    """One attribute and the codes of it that fit; all questions of a path about one attribute are one condition."""

    attribute: str
    codes: tuple[int, ...]
    words: str

    def __str__(self) -> str:
        return f"{plain(self.attribute)} is {self.words}"


@dataclass(frozen=True)
class Rule:
    """A path and what the released counts say about it.

    `tree` and `node` are numbered from 0; `label` is the declared class; `distribution` has every class with its (noisy) count; `share`
    is that of the class in all rows.
    """

    tree: int
    node: int
    conditions: tuple[Condition, ...]
    label: Value
    confidence: float
    confidence_error: float
    support: int
    support_error: float
    distribution: tuple[tuple[Value, int], ...]
    share: float | None = None

    @property
    def condition_text(self) -> str:
        """ "If smoker is current and age is 40 to 60"; a path that asks nothing is "For every row"."""
        return "If " + " and ".join(map(str, self.conditions)) if self.conditions else "For every row"

    @property
    def distribution_text(self) -> str:
        """ "none 9, other 1, cardiac 0": the largest count first, and of many classes only those."""
        by_count = sorted(self.distribution, key=lambda each: -each[1])
        error = self.support_error / math.sqrt(len(by_count))
        shown = [f"{plain(label)} {count_with_error(count, error)}" for label, count in by_count[:MANY_VALUES]]
        more = len(by_count) - len(shown)
        return ", ".join([*shown, *([f"{more} other classes less"] if more else [])])

    def text(self) -> str:
        """The rule as a sentence."""
        sure = share_with_error(self.confidence, self.confidence_error)
        about = "about " if self.support_error > 0 else ""
        rows = "row" if self.support == 1 and not about else "rows"
        support = f"{about}{count_with_error(self.support, self.support_error)} {rows}"
        then = ", then " if self.conditions else ", "
        rarer = self.share is not None and self.conditions and self.confidence + self.confidence_error < self.share
        less = f", less than the {share_text(self.share or 0.0)} of all rows" if rarer else ""
        return f"{self.condition_text}{then}{plain(self.label)} (confidence {sure}{less}, support {support}: {self.distribution_text})."

    __str__ = text

    def row(self) -> dict[str, Any]:
        """The rule as a row of a table. Trees are numbered from 1 there, as people count them."""
        return {
            "conditions": " and ".join(map(str, self.conditions)),
            "class": self.label,
            "confidence": self.confidence,
            "confidence_error": self.confidence_error,
            "support": self.support,
            "support_error": self.support_error,
            "tree": self.tree + 1,
            "node": self.node,
            "n_conditions": len(self.conditions),
            "distribution": {text_of(label): count for label, count in self.distribution},
        }


COLUMNS = (
    "conditions", "class", "confidence", "confidence_error", "support", "support_error", "tree", "node", "n_conditions",
    "distribution",
)  # fmt: skip


def frame_of(found: list[Rule]) -> Any:
    """Rules as a pandas data frame, one row for each."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "rules(as_frame=True) needs pandas. Install it (`pip install 'hedgerow[pandas]'`), or leave as_frame out to get a list."
        ) from error
    return pandas.DataFrame([rule.row() for rule in found], columns=list(COLUMNS))


def rules(
    forest: CountedForest,
    *,
    sub_rules: bool = False,
    min_support: float | None = None,
    min_confidence: float | None = None,
    label: Value | None = None,
    top: int | None = None,
    sort: str = "default",
    removed: Removed = None,
    above_noise: bool = False,
) -> list[Rule]:
    """The rules of a forest, most informative first.

    Order: the lower confidence bound p − 2·error, not below 0, which counts as 0 for a rule whose support is not above
    its noise (support > 2·support_error); then support; then tree and node. `sort="confidence"` or `sort="support"` goes by
    that noisy number alone, ties by the other.

    sub_rules:      paths to inner nodes too
    min_support, min_confidence, label:  keep only rules with at least that support or confidence, or that class
    top:            at most so many rules; words are made for these alone
    removed:        for each tree the nodes that pruning takes away, with all below them (`Release.removed`); a node of
                    which no child is left counts as a leaf
    above_noise:    only rules that noise alone would hardly have made (`within_noise` counts the others)

    A path that contradicts itself (age below 40, then age 60 or more), or that wants a whole number between 4.6 and 4.8, can hold no row
    and is left out.
    """
    if sort not in SORTS:
        raise PlanError(f"sort: got {sort!r}; expected one of {', '.join(map(repr, SORTS))}.")
    if top is not None and (isinstance(top, bool) or not hasattr(top, "__index__") or int(top) < 0):
        raise PlanError(f"top: got {top!r}; expected a whole number of at least 0, or nothing.")
    found = _Numbers.of(forest, sub_rules, removed)
    keep = found.chosen(forest, min_support, min_confidence, label)
    if above_noise:
        keep &= found.stands_out(forest)
    order = found.order(np.flatnonzero(keep), sort)
    result: list[Rule] = []
    for rule in _in_words(forest, found, order):
        if top is not None and len(result) >= top:
            break
        result.append(rule)
    return result


def noise_limit(paths: int) -> float:
    """So many errors above what noise alone would show must the best of so many paths stand."""
    return NormalDist().inv_cdf(1 - FALSE_RULES / (2 * max(paths, 1)))


class WithinNoise(NamedTuple):
    """What `rules(above_noise=True)` leaves out: so many of all paths do not stand `limit` errors above the noise."""

    left_out: int
    paths: int
    limit: float

    def text(self) -> str:
        several = self.left_out != 1
        return (
            f"{self.left_out:,} {'paths' if several else 'path'} that noise alone may have made {'are' if several else 'is'} left out: "
            f"among as many paths as this forest has, {self.paths:,}, a rule must stand {self.limit:.1f} errors above the noise"
        )


def within_noise(
    forest: CountedForest,
    *,
    sub_rules: bool = False,
    min_support: float | None = None,
    min_confidence: float | None = None,
    label: Value | None = None,
    removed: Removed = None,
) -> WithinNoise:
    """How many paths `rules(above_noise=True)` leaves out, and by which limit."""
    found = _Numbers.of(forest, sub_rules, removed)
    left_out = found.chosen(forest, min_support, min_confidence, label) & ~found.stands_out(forest)
    return WithinNoise(int(left_out.sum()), len(found.node), noise_limit(len(found.node)))


@dataclass(frozen=True)
class _Numbers:
    """One entry for each candidate rule, as arrays: a forest may have a million of them."""

    tree: NDArray[np.int64]
    node: NDArray[np.int64]
    label: NDArray[np.int64]
    confidence: NDArray[np.float64]
    confidence_error: NDArray[np.float64]
    support: NDArray[np.int64]
    support_error: NDArray[np.float64]

    @classmethod
    def of(cls, forest: CountedForest, sub_rules: bool, removed: Removed) -> _Numbers:
        parts = [
            _numbers_of_tree(forest, t, _rule_nodes(forest.codebook, tree, sub_rules, None if removed is None else removed[t]))
            for t, tree in enumerate(forest.trees)
        ]
        return cls(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})

    def chosen(
        self, forest: CountedForest, min_support: float | None, min_confidence: float | None, label: Value | None
    ) -> NDArray[np.bool_]:
        keep = np.ones(len(self.node), dtype=bool)
        if min_support is not None:
            keep &= self.support >= min_support
        if min_confidence is not None:
            keep &= self.confidence >= min_confidence
        if label is not None:
            keep &= self.label == _class_code(forest.codebook, label)
        return keep

    def stands_out(self, forest: CountedForest) -> NDArray[np.bool_]:
        """More rows than the noise on them, and a share of the class that differs from that of all rows, by `noise_limit` errors each (of
        noise, and of the chance of rows).

        All paths are candidates, whichever of them are then chosen: the best of a few was the best of many.
        """
        limit = noise_limit(len(self.node))
        totals = np.maximum(forest.class_totals, 0)
        share = (totals / max(float(totals.sum()), 1e-300))[self.label]
        by_chance = share * (1 - share) / np.maximum(self.support, 1)
        told = np.abs(self.confidence - share) > limit * np.sqrt(self.confidence_error**2 + by_chance)
        return np.asarray((self.support > limit * self.support_error) & (told | (self.confidence_error == 0)))

    def order(self, chosen: NDArray[np.int64], sort: str) -> NDArray[np.int64]:
        lower = np.maximum(self.confidence - 2 * self.confidence_error, 0)
        worth = np.where(self.support > 2 * self.support_error, lower, 0)
        first, second = {
            "default": (worth, self.support),
            "confidence": (self.confidence, self.support),
            "support": (self.support, self.confidence),
        }[sort]
        keys = (self.node[chosen], self.tree[chosen], -second[chosen], -first[chosen])
        return np.asarray(chosen[np.lexsort(keys)])


def _numbers_of_tree(forest: CountedForest, tree: int, nodes: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    confidence, error, label = confidences(forest, tree, nodes)
    counts = forest.node_counts[tree][nodes]
    return {
        "tree": np.full(len(nodes), tree),
        "node": nodes,
        "label": label,
        "confidence": confidence,
        "confidence_error": error,
        "support": counts.sum(axis=1),
        "support_error": forest.node_noise_sd(tree)[nodes] * np.sqrt(counts.shape[1]),
    }


def confidences(
    forest: CountedForest, tree: int, nodes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """(confidence, its error, the majority class) of each node; even shares, error 0.5 where no count is positive."""
    counts = forest.node_counts[tree][nodes]
    n_classes = counts.shape[1]
    sd = forest.node_noise_sd(tree)[nodes]
    label = counts.argmax(axis=1)
    positive = np.maximum(counts, 0).astype(np.float64)
    total = positive.sum(axis=1)
    divisor = np.where(total > 0, total, 1)
    p = np.where(total > 0, positive.max(axis=1) / divisor, 1 / n_classes)
    error = sd * np.sqrt((1 - p) ** 2 + (n_classes - 1) * p**2) / divisor
    unknown = (total <= 0) & (sd > 0) & (n_classes > 1)
    return p, np.where(unknown, 0.5, np.minimum(error, 0.5)), label


def _rule_nodes(codebook: Codebook, tree: Tree, sub_rules: bool, removed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """The nodes where a path may end: of what pruning leaves, those with no child left, or all of them; if a row can get there."""
    kept = np.arange(tree.n_nodes) if removed is None else np.flatnonzero(~removed)
    if not sub_rules:
        asks_on = np.zeros(tree.n_nodes, dtype=bool)
        asks_on[tree.parent[kept[kept > 0]]] = True
        kept = kept[~asks_on[kept]]
    return kept[_reachable(codebook, tree)[kept]]


def _reachable(codebook: Codebook, tree: Tree) -> NDArray[np.bool_]:
    """Of each node, whether a row can get there: of each attribute, some code fits all that is asked on the way, and can hold a value."""
    found = np.ones(tree.n_nodes, dtype=bool)
    for a in np.unique(tree.attribute[tree.attribute >= 0]).tolist():
        codes = np.arange(tree.sizes[a])
        fits = np.empty((tree.n_nodes, len(codes)), dtype=bool)
        fits[0] = [not codebook.holds_none(a, code) for code in codes.tolist()]
        for nodes in tree.levels[1:]:
            above = tree.parent[nodes]
            fits[nodes] = fits[above]
            asked = tree.attribute[above] == a
            leads_to = tree.branch[tree.first_branch[above[asked]][:, None] + codes]
            fits[nodes[asked]] &= leads_to == nodes[asked][:, None]
        found &= fits.any(axis=1)
    return found


def _class_code(codebook: Codebook, label: Value) -> int:
    known = [text_of(value) for value in codebook.schema.target.classes]
    if text_of(label) not in known:
        raise PlanError(f"label: got {label!r}; expected one of the classes {', '.join(map(repr, known))}.")
    return known.index(text_of(label))


def _in_words(forest: CountedForest, found: _Numbers, order: NDArray[np.int64]) -> Iterator[Rule]:
    classes, totals = forest.codebook.schema.target.classes, np.maximum(forest.class_totals, 0)
    shares = totals / max(float(totals.sum()), 1e-300)
    for i in order:
        tree, node = int(found.tree[i]), int(found.node[i])
        conditions = conditions_of(forest.codebook, forest.trees[tree], node)
        if conditions is not None:
            yield Rule(
                tree=tree,
                node=node,
                conditions=conditions,
                label=classes[found.label[i]],
                confidence=float(found.confidence[i]),
                confidence_error=float(found.confidence_error[i]),
                support=int(found.support[i]),
                support_error=float(found.support_error[i]),
                distribution=tuple(zip(classes, forest.node_counts[tree][node].tolist(), strict=True)),
                share=float(shares[found.label[i]]),
            )


def conditions_of(codebook: Codebook, tree: Tree, node: int) -> tuple[Condition, ...] | None:
    """What a row must fulfil to reach the node, one condition for each attribute; None if no row can."""
    fitting: dict[int, set[int]] = {}
    for attribute, codes in tree.path(node):
        fitting[attribute] = fitting.get(attribute, set(codes)) & set(codes)
    if any(all(codebook.holds_none(attribute, code) for code in codes) for attribute, codes in fitting.items()):
        return None
    names = codebook.schema.names
    return tuple(
        Condition(names[attribute], tuple(sorted(codes)), values_in_words(codebook, attribute, sorted(codes)))
        for attribute, codes in fitting.items()
        if len(codes) < codebook.sizes[attribute]  # every value fits: that asks nothing
    )
