"""Which attributes should a decision table have? Best-first search, each subset judged by rows that the table has not seen.

A subset puts the rows into groups, one for each combination of codes, and a table answers with the majority class of the
group; of several largest classes with the first. How many rows a table without them would get right follows from the class
counts of the groups alone, so that nothing is ever learned twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Subset = tuple[int, ...]


class Judge(Protocol):
    """How many rows are predicted right by tables that were made without them."""

    def __call__(self, group: Codes, groups: int) -> int: ...


def class_counts(group: Codes, groups: int, classes: Codes, n_classes: int) -> Codes:
    """(groups, classes): the rows of each class in each group."""
    counts = np.bincount(group * n_classes + classes, minlength=groups * n_classes)
    return counts.reshape(groups, n_classes)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Each row is predicted by the table of all others; exact."""

    classes: Codes
    n_classes: int

    def __call__(self, group: Codes, groups: int) -> int:
        counts = class_counts(group, groups, self.classes, self.n_classes)
        alone = counts.sum(axis=1) == 1  # without it, its group is not in the table: the majority of all others answers
        right = _wins_without_one(counts)
        right[alone] = _wins_without_one(counts.sum(axis=0)[None])
        return int(counts[right].sum())


def _wins_without_one(counts: Codes) -> NDArray[np.bool_]:
    """(groups, classes): is the class still the majority of its group after one row of it has left?"""
    nothing = np.full((len(counts), 1), -1)
    earlier = np.maximum.accumulate(np.concatenate([nothing, counts[:, :-1]], axis=1), axis=1)
    later = np.maximum.accumulate(np.concatenate([nothing, counts[:, :0:-1]], axis=1), axis=1)[:, ::-1]
    wins: NDArray[np.bool_] = (counts - 1 > earlier) & (counts - 1 >= later)
    return wins


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The rows of each fold are predicted by the table of all other folds."""

    classes: Codes
    n_classes: int
    fold: Codes

    def __call__(self, group: Codes, groups: int) -> int:
        everything = class_counts(group, groups, self.classes, self.n_classes)
        right = 0
        for number in range(int(self.fold.max()) + 1):
            held = self.fold == number
            tested = class_counts(group[held], groups, self.classes[held], self.n_classes)
            learned = everything - tested
            answer = np.where(learned.any(axis=1), learned.argmax(axis=1), learned.sum(axis=0).argmax())
            right += int(np.take_along_axis(tested, answer[:, None], axis=1).sum())
        return right


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows grouped by the attributes of a subset; `keys` has, for each attribute, the combinations with the ones before it."""

    group: Codes
    keys: tuple[Codes, ...]

    @property
    def count(self) -> int:
        return len(self.keys[-1]) if self.keys else 1


def grouped(codes: Codes, sizes: Sequence[int], subset: Subset) -> Groups:
    """Groups numbered without gaps. One attribute at a time, so that no product of domain sizes can overflow."""
    group, keys = np.zeros(len(codes), dtype=np.int64), []
    for j in subset:
        key, group = np.unique(group * sizes[j] + codes[:, j], return_inverse=True)
        keys.append(key)
    return Groups(group, tuple(keys))


def found_in(groups: Groups, codes: Codes, sizes: Sequence[int], subset: Subset) -> Codes:
    """The group of other rows, whose code is −1 where a value was never seen; −1 for a combination that was never seen."""
    group = np.zeros(len(codes), dtype=np.int64)
    for j, keys in zip(subset, groups.keys, strict=True):
        key = group * sizes[j] + codes[:, j]
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        known = (group >= 0) & (codes[:, j] >= 0) & (keys[place] == key)
        group = np.where(known, place, -1)
    return group


def best_first(attributes: int, start: int, right: Callable[[Subset, Sequence[int]], Sequence[int]], patience: int) -> tuple[Subset, int]:
    """The best subset found, and how many rows it gets right.

    start:                  how many rows the empty subset gets right
    right(subset, further): how many rows the subset gets right with each of some further attributes

    The best subset that is still open is expanded next; of equally good ones the smaller, then the one with earlier
    attributes. The search ends after `patience` expansions in a row that found nothing better, so that it can look past
    steps that do not help by themselves, as the two attributes of an exclusive or do not.
    """
    best: tuple[Subset, int] = ((), start)
    still_open: list[tuple[int, int, Subset]] = [(-start, 0, ())]
    met: set[Subset] = {()}
    without_success = 0
    while still_open and without_success < patience:
        _, _, subset = heapq.heappop(still_open)
        before = best[1]
        with_one_more = {tuple(sorted((*subset, j))): j for j in range(attributes) if j not in subset}
        new = {larger: j for larger, j in with_one_more.items() if larger not in met}
        met.update(new)
        for larger, score in zip(new, right(subset, list(new.values())), strict=True):
            if (score, -len(larger)) > (best[1], -len(best[0])):
                best = (larger, score)
            heapq.heappush(still_open, (-score, len(larger), larger))
        without_success = 0 if best[1] > before else without_success + 1
    return best


def search(codes: Codes, sizes: Sequence[int], judge: Judge, patience: int) -> tuple[Subset, int]:
    """The attributes that a decision table of these rows should have, and how many rows it gets right."""
    rows, attributes = codes.shape

    def right(subset: Subset, further: Sequence[int]) -> list[int]:
        groups, scores = grouped(codes, sizes, subset), []
        for j in further:
            group, count = groups.group * sizes[j] + codes[:, j], groups.count * sizes[j]
            if count > 2 * rows:  # most of the combinations have no row
                present, group = np.unique(group, return_inverse=True)
                count = len(present)
            scores.append(judge(group, count))
        return scores

    return best_first(attributes, judge(np.zeros(rows, dtype=np.int64), 1), right, patience)
