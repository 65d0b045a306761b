"""The search for the best full-domain generalisation: which level of its taxonomy each attribute is taken to.

A node of the lattice is one level for each attribute; it puts rows that read alike into one group. Let r(group) be the least number of
rows that must go until the rest satisfies the requirement (all of them, if nothing less helps), and R(node) the sum over its groups.

- R never grows when groups are merged: what remains of each satisfies the requirement, hence so does their union (k, (c, ℓ) and (α, k)
  are all closed under union). So if R(node) is above what may be left out, nothing finer than the node can be good either. Nothing may be
  left out: R = 0 means satisfied, and this is the well-known monotonicity.
- Σ |group|² never grows when groups are split, and no row costs less than the size of its group. So the finest node that a branch of the
  search can still reach bounds the costs of all its nodes from below.

The search fixes one attribute after another. In each branch it first raises the level below which each open attribute cannot go together
with those that are fixed (the others at the top), then takes all open attributes at these levels at once: the finest node of the branch. If
that costs as much as the best one found, the branch is dropped; if it is good and nothing is left out, it is the best of the branch. Only
the distinct rows of that node, with their class counts, are handed down. Every part of it is exact: see `tests/test_generalise.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError
from hedgerow.sharing.taxonomy import Level

_DENSE = 1 << 22  # pairs of (group, value) up to this are numbered through a table, more by sorting

Levels = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Bounds:
    """A requirement as integers that a compiled loop can compare.

    first, most: for each bound on the largest class the place from which the falling class counts are summed up, and for every such
                 sum the largest count that it allows
    """

    k: int
    first: NDArray[np.int64]
    most: NDArray[np.int64]

    @classmethod
    def of(cls, requirement: Requirement, rows: int) -> Bounds:
        first, most = [], []
        for share, place, less in ((requirement.c, requirement.l, 1), (requirement.alpha, 1, 0)):
            if share is None or place is None:
                continue
            if max(share.numerator, share.denominator) * (rows + 1) >= 1 << 62:
                raise PlanError("c, alpha: too many digits for a table of this size; round to a few of them.")
            first.append(place - 1)
            most.append((np.arange(rows + 1, dtype=np.int64) * share.numerator - less) // share.denominator)
        shape = np.array(most, dtype=np.int64).reshape(len(first), rows + 1)
        return cls(requirement.k or 1, np.array(first, dtype=np.int64), shape)


@dataclass(frozen=True)
class Found:
    """A node that is good: its levels, its discernibility cost and how many rows it leaves out."""

    levels: Levels
    cost: int
    suppressed: int


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows in groups, and what that means."""

    ids: NDArray[np.int32]
    number: int
    needed: int  # R
    suppressed: int  # rows of groups that do not satisfy the requirement
    squares: int  # Σ |group|²
    kept_squares: int
    largest: int  # |group|


@dataclass(frozen=True, eq=False)
class _Branch:
    """Distinct rows, grouped by the attributes that are fixed; the least levels of the others."""

    columns: NDArray[np.int64]  # (attributes, rows) codes
    counts: NDArray[np.int64]  # (rows, classes)
    ids: NDArray[np.int32]
    number: int
    levels: Levels  # of all attributes: those fixed, and the least ones of those that are open
    open: tuple[int, ...]


@dataclass(eq=False)
class Search:
    """One search. `found` lists the good nodes in the order in which they were met; `tried` counts the nodes that were looked at.

    levels:  for each attribute its levels; only those in `quasi` are generalised
    may_go:  how many rows may be left out
    bounded: drop branches that cannot beat the best one found; without it, all minimal nodes are among those found
    most:    nodes after which the search stops (`complete` says whether it did)
    """

    levels: Sequence[Sequence[Level]]
    bounds: Bounds
    may_go: int
    quasi: tuple[int, ...]
    rows: int
    bounded: bool = True
    most: int = 1_000_000
    tried: int = 0
    complete: bool = True
    best: Found | None = None
    found: list[Found] = field(default_factory=list)
    _table: NDArray[np.int32] = field(default_factory=lambda: np.full(1 << 16, -1, dtype=np.int32))

    def run(self, columns: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Search the lattice for rows with these codes, an array for each attribute, and class counts, an array for each row."""
        least = tuple(0 if place in self.quasi else self._top(place) for place in range(len(self.levels)))
        whole = np.zeros(len(counts), dtype=np.int32)
        root = _Branch(columns, counts, whole, int(len(counts) > 0), least, self.quasi)
        if self._judged(root, whole, root.number).needed <= self.may_go:
            self._explore(root)

    def groups_at(self, columns: NDArray[np.int64], levels: Sequence[int]) -> tuple[NDArray[np.int32], int]:
        """The group of every row at a node."""
        ids, number = np.zeros(columns.shape[1], dtype=np.int32), int(columns.shape[1] > 0)
        for place in self.quasi:
            if levels[place] < self._top(place):
                ids, number = self._refined(ids, number, columns[place], self.levels[place][levels[place]])
        return ids, number

    def node(self, columns: NDArray[np.int64], counts: NDArray[np.int64], levels: Levels) -> Found | None:
        """One node looked at by itself; None if it is not good."""
        self.tried += 1
        ids, number = self.groups_at(columns, levels)
        judged = _groups(ids, number, counts, self.bounds)
        return Found(levels, self._cost(judged), judged.suppressed) if judged.suppressed <= self.may_go else None

    def _explore(self, branch: _Branch) -> None:
        must_go = self._judged(branch, branch.ids, branch.number).needed if self.may_go else 0
        may_go = self._may_go(self._finest(branch))
        if must_go > may_go:
            return
        branch, refining = self._raised(branch, may_go)
        finest = self._finest(branch)
        if must_go > self._may_go(finest):
            return
        if finest.suppressed <= self.may_go:
            self._offer(Found(branch.levels, self._cost(finest), finest.suppressed))
            if self.may_go == 0:
                return
        if not branch.open:
            return
        branch = _rolled_up(branch, finest)
        place = min(branch.open, key=lambda each: (refining[each], each))  # the one that splits the most
        others = tuple(each for each in branch.open if each != place)
        for level in range(branch.levels[place], self._top(place) + 1):
            if self.tried >= self.most:
                self.complete = False
                return
            ids, number = self._refined(branch.ids, branch.number, branch.columns[place], self.levels[place][level])
            levels = (*branch.levels[:place], level, *branch.levels[place + 1 :])
            self._explore(_Branch(branch.columns, branch.counts, ids, number, levels, others))

    def _raised(self, branch: _Branch, may_go: int) -> tuple[_Branch, dict[int, int]]:
        """The branch with the least levels that each open attribute can have beside the fixed ones; how finely each splits then."""
        levels, refining = list(branch.levels), {}
        for place in branch.open:
            while levels[place] < self._top(place):
                column, level = branch.columns[place], self.levels[place][levels[place]]
                judged = self._judged(branch, *self._refined(branch.ids, branch.number, column, level))
                if judged.needed <= may_go:
                    refining[place] = judged.squares
                    break
                levels[place] += 1
        still = tuple(place for place in branch.open if place in refining)
        return _Branch(branch.columns, branch.counts, branch.ids, branch.number, tuple(levels), still), refining

    def _finest(self, branch: _Branch) -> _Groups:
        ids, number = branch.ids, branch.number
        for place in branch.open:
            ids, number = self._refined(ids, number, branch.columns[place], self.levels[place][branch.levels[place]])
        return self._judged(branch, ids, number)

    def _judged(self, branch: _Branch, ids: NDArray[np.int32], number: int) -> _Groups:
        self.tried += 1
        return _groups(ids, number, branch.counts, self.bounds)

    def _refined(self, ids: NDArray[np.int32], number: int, column: NDArray[np.int64], level: Level) -> tuple[NDArray[np.int32], int]:
        """Groups split by the values of one attribute at a level, numbered as they are met."""
        width = int(level.group.max()) + 1
        if number * width > _DENSE:
            _, again = np.unique(ids.astype(np.int64) * width + level.group[column], return_inverse=True)
            return again.astype(np.int32), int(again.max(initial=-1)) + 1
        if number * width > len(self._table):
            self._table = np.full(number * width, -1, dtype=np.int32)
        out = np.empty(len(ids), dtype=np.int32)
        return out, int(_split(ids, column, level.group, width, self._table, out))

    def _may_go(self, finest: _Groups) -> int:
        """How many rows a node of a branch may leave out and still beat the best one; −1 if none can, whatever it leaves out."""
        if not self.bounded or self.best is None:
            return self.may_go
        room, each = self.best.cost - 1 - finest.squares, self.rows - finest.largest
        if room < 0:
            return -1
        return min(self.may_go, room // each) if each else self.may_go

    def _offer(self, found: Found) -> None:
        self.found.append(found)
        if self.best is None or found.cost < self.best.cost:
            self.best = found

    def _cost(self, groups: _Groups) -> int:
        return groups.kept_squares + groups.suppressed * self.rows

    def _top(self, place: int) -> int:
        return len(self.levels[place]) - 1


def _rolled_up(branch: _Branch, finest: _Groups) -> _Branch:
    """One row for each group of the finest node: nothing in the branch tells rows of a group apart."""
    counts = np.zeros((finest.number, branch.counts.shape[1]), dtype=np.int64)
    first = np.empty(finest.number, dtype=np.int64)
    _added_up(finest.ids, branch.counts, counts)
    first[finest.ids[::-1]] = np.arange(len(finest.ids) - 1, -1, -1)  # the first row of each group is written last
    return _Branch(np.take(branch.columns, first, axis=1), counts, branch.ids[first], branch.number, branch.levels, branch.open)


def _groups(ids: NDArray[np.int32], number: int, rows: NDArray[np.int64], bounds: Bounds) -> _Groups:
    counts = np.zeros((number, rows.shape[1]), dtype=np.int64)
    _added_up(ids, rows, counts)
    return _Groups(ids, number, *map(int, _judge(counts, bounds.k, bounds.first, bounds.most)))


@numba.njit(nogil=True, cache=True)
def _split(ids: Any, column: Any, group: Any, width: int, table: Any, out: Any) -> int:
    number = 0
    for i in range(ids.size):
        key = ids[i] * width + group[column[i]]
        if table[key] < 0:
            table[key] = number
            number += 1
        out[i] = table[key]
    for i in range(ids.size):  # leave the table as it was
        table[ids[i] * width + group[column[i]]] = -1
    return number


@numba.njit(nogil=True, cache=True)
def _added_up(ids: Any, rows: Any, counts: Any) -> None:
    for i in range(ids.size):
        for c in range(rows.shape[1]):
            counts[ids[i], c] += rows[i, c]


@numba.njit(nogil=True, cache=True)
def _judge(counts: Any, k: int, first: Any, most: Any) -> tuple[int, int, int, int, int]:
    """R, the rows of groups that fail, Σ |group|² of all groups and of those that satisfy the requirement, the largest group."""
    needed = suppressed = squares = kept = largest = 0
    for g in range(counts.shape[0]):
        total = counts[g].sum()
        goes = total if total < k else 0
        if goes == 0 and first.size:
            rising = np.sort(counts[g])
            for b in range(first.size):
                goes = max(goes, total - _largest_rest(rising, first[b], most[b]))
        squares += total * total
        largest = max(largest, total)
        needed += goes
        if goes:
            suppressed += total
        else:
            kept += total * total
    return needed, suppressed, squares, kept, largest


@numba.njit(nogil=True, cache=True)
def _largest_rest(rising: Any, first: int, most: Any) -> int:
    """How many rows can stay. Every class is cut to one height; the heights that are allowed are those up to some largest one."""
    n_classes = rising.size
    low, high, height = 0, rising[n_classes - 1], rising[n_classes - 1]  # 0 is allowed: nobody stays
    while low < high:
        tail = 0
        for i in range(n_classes - first):
            tail += min(rising[i], height)
        if height <= most[tail]:
            low = height
        else:
            high = height - 1
        height = (low + high + 1) // 2
    rest = 0
    for i in range(n_classes):
        rest += min(rising[i], low)
    return rest
