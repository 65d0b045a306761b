"""The one tree of the package: flat arrays, node 0 the root, children after parents.

    attribute[node]                          the attribute that the node asks about, −1 in a leaf
    branch[first_branch[node] + code]        the child for that code, −1 where there is none: the row stops at the node

Each asking node has one entry for each code of its attribute and a last one, always −1, for "no declared value". The entries
stand in node order, so `first_branch` follows from `attribute` and the domain sizes. A branch for each value, a threshold
(many codes, two children), merged siblings and pruned branches are all this one form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError

NODE = np.int32  # the dtype of every array that holds nodes, attributes or places in `branch`
MAX_NODES = 50_000_000
MAX_HEIGHT = 1_000  # of a tree that comes from a file: a longer chain would only cost time

Nodes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree over attributes with the given domain sizes. Build one with `TreeBuilder`."""

    sizes: tuple[int, ...]
    attribute: Nodes
    branch: Nodes

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tree)
            and self.sizes == other.sizes
            and np.array_equal(self.attribute, other.attribute)
            and np.array_equal(self.branch, other.branch)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_nodes(self) -> int:
        return len(self.attribute)

    @cached_property
    def first_branch(self) -> Nodes:
        """Where a node's entries begin in `branch`; for a leaf, where they would."""
        entries = np.append(np.asarray(self.sizes, dtype=np.int64) + 1, 0)[self.attribute]  # attribute −1: none
        return np.concatenate([[0], np.cumsum(entries)[:-1]]).astype(NODE)

    @cached_property
    def leaves(self) -> Nodes:
        """The nodes that ask nothing, ascending: the order of every array of leaf counts."""
        return np.flatnonzero(self.attribute < 0).astype(NODE)

    @cached_property
    def parent(self) -> Nodes:
        """The parent of each node, −1 for the root."""
        parent = np.full(self.n_nodes, -1, dtype=NODE)
        asking = np.flatnonzero(self.attribute >= 0)
        owner = np.repeat(asking, np.asarray(self.sizes)[self.attribute[asking]] + 1)
        there = self.branch >= 0
        parent[self.branch[there]] = owner[there]
        return parent

    @cached_property
    def depth(self) -> Nodes:
        """Edges from the root to each node."""
        return np.asarray(_depths(self.parent))

    @cached_property
    def levels(self) -> list[NDArray[np.int64]]:
        """The nodes of each depth, from the root down."""
        order = np.argsort(self.depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.depth))[:-1])

    @property
    def height(self) -> int:
        return len(self.levels) - 1

    @cached_property
    def ask(self) -> NDArray[np.uint64]:
        """For the compiled loops: the state in which a row starts, and where the mask and the place begin in a state (see `onward`)."""
        attribute_bits = (len(self.sizes) - 1).bit_length()
        mask_bits = max(self.sizes).bit_length()
        mask, place = attribute_bits, attribute_bits + mask_bits
        root = self.n_nodes << place | (1 << mask_bits) - 1 << mask | int(self.attribute[0]) if self.attribute[0] >= 0 else 0
        return np.array([root, mask, place], dtype=np.uint64)

    @cached_property
    def onward(self) -> NDArray[Any]:
        """For the compiled loops: a row in a state goes on to the state onward[place + (code of the attribute & mask)].

        A state is one number: attribute, mask and place, from its low bits up. `onward` has first one entry for each node, for the
        rows that have come to their end there: they stay, since place = node and mask = 0. Then come the entries of `branch`, which
        lead to a child, or to the end at the node where there is none. So each step is the same, whether a row goes on or stays.
        """
        _, mask, place = self.ask
        end = np.arange(self.n_nodes, dtype=np.uint64) << place
        state = end.copy()
        asking = np.flatnonzero(self.attribute >= 0)
        first = (self.n_nodes + self.first_branch[asking].astype(np.int64)).astype(np.uint64)
        ones = (np.uint64(1) << place) - (np.uint64(1) << mask)
        state[asking] = first << place | ones | self.attribute[asking].astype(np.uint64)
        owner = np.repeat(asking, np.asarray(self.sizes)[self.attribute[asking]] + 1)
        entries = np.concatenate([end, np.where(self.branch < 0, end[owner], state[self.branch])])
        return entries.astype(np.uint32) if entries.max() < 2**32 else entries  # small tables stay in the nearest cache

    def add_scores(self, scores: NDArray[np.float64], codes: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Add to every row of `out` what the node where it ends scores: (nodes, classes)."""
        from hedgerow.trees.additive_loops import add_scores

        add_scores(codes, self.ask, self.onward, self.height, scores, out)

    def children(self, node: int) -> Nodes:
        """The child for each code of the node's attribute (−1: none)."""
        first = self.first_branch[node]
        return self.branch[first : first + self.sizes[self.attribute[node]]]

    def path(self, node: int) -> list[tuple[int, list[int]]]:
        """From the root to the node: (attribute, codes that lead on) for each question asked."""
        steps = []
        while node != 0:
            parent = int(self.parent[node])
            steps.append((int(self.attribute[parent]), [int(c) for c in np.flatnonzero(self.children(parent) == node)]))
            node = parent
        return steps[::-1]

    def add_up(self, leaf_values: NDArray[np.int64]) -> NDArray[np.int64]:
        """From one row of numbers for each leaf to one for each node: the sum over the leaves below it."""
        totals = np.zeros((self.n_nodes, *leaf_values.shape[1:]), dtype=leaf_values.dtype)
        totals[self.leaves] = leaf_values
        for nodes in self.levels[:0:-1]:
            np.add.at(totals, self.parent[nodes], totals[nodes])
        return totals

    def leaves_below(self) -> NDArray[np.int64]:
        """How many leaves each node has below it (a leaf: itself)."""
        return self.add_up(np.ones(len(self.leaves), dtype=np.int64))

    def is_antichain(self, nodes: Sequence[int] | NDArray[Any]) -> bool:
        """True if no node is given twice and none lies above another: no row can be in two of them.

        This is the one place that decides which parts of a table are disjoint.
        """
        marked = np.zeros(self.n_nodes, dtype=np.int64)
        np.add.at(marked, np.asarray(nodes, dtype=np.int64), 1)
        above = marked.copy()
        for here in self.levels[1:]:
            above[here] += above[self.parent[here]]
        return bool((above <= 1).all())

    def without(self, nodes: NDArray[np.bool_]) -> Tree:
        """The tree with the marked nodes, and all below them, taken away; a row that would go there stops above."""
        gone = np.asarray(nodes, dtype=bool).copy()
        gone[0] = False
        for here in self.levels[1:]:
            gone[here] |= gone[self.parent[here]]
        kept = np.flatnonzero(~gone)
        number = np.full(self.n_nodes + 1, -1, dtype=NODE)
        number[kept] = np.arange(len(kept), dtype=NODE)
        attribute = self.attribute[kept].copy()
        has_child = np.zeros(self.n_nodes, dtype=bool)
        has_child[self.parent[kept[1:]]] = True
        attribute[~has_child[kept]] = -1
        parts = [
            np.append(number[self.children(int(node))], NODE(-1)) for node in kept if has_child[node]
        ]  # the pruned child −1 is found at number[-1]
        branch = np.concatenate(parts) if parts else np.empty(0, dtype=NODE)
        return Tree(self.sizes, attribute, branch.astype(NODE))

    def check(self) -> None:
        """Raise ReleaseError unless the arrays are a tree. Any arrays may be given; nothing is trusted."""
        n = len(self.attribute)
        if not 1 <= n <= MAX_NODES:
            raise ReleaseError(f"tree: got {n} nodes; expected 1 to {MAX_NODES}.")
        if self.attribute.min() < -1 or self.attribute.max() >= len(self.sizes):
            raise ReleaseError("tree: a node asks about an attribute that the schema does not declare.")
        asking = np.flatnonzero(self.attribute >= 0)
        widths = np.asarray(self.sizes, dtype=np.int64)[self.attribute[asking]] + 1
        if len(self.branch) != widths.sum():
            raise ReleaseError(f"tree: got {len(self.branch)} branches; its nodes need {int(widths.sum())}.")
        if len(asking) and (self.branch[np.cumsum(widths) - 1] != -1).any():
            raise ReleaseError("tree: the branch for undeclared values must be −1 at every node.")
        owner = np.repeat(asking, widths)
        there = self.branch >= 0
        child, above = self.branch[there].astype(np.int64), owner[there]
        if (self.branch < -1).any() or (child >= n).any() or (child <= above).any():
            raise ReleaseError("tree: a branch leads to a node that does not exist or does not come after its parent.")
        first = np.full(n, -1, dtype=np.int64)
        first[child] = above
        if (first[child] != above).any() or (first[1:] < 0).any():
            raise ReleaseError("tree: a node has two parents, or none.")
        if len(np.unique(above)) != len(asking):
            raise ReleaseError("tree: a node asks a question but has no branch.")
        if self.depth.max() > MAX_HEIGHT:
            raise ReleaseError(f"tree: it is higher than {MAX_HEIGHT} questions.")


def tree_of_lists(sizes: Sequence[int], attribute: Sequence[int], branch: Sequence[int]) -> Tree:
    """A tree from numbers that nobody has checked, or ReleaseError."""
    try:
        tree = Tree(tuple(sizes), np.array(attribute, dtype=NODE), np.array(branch, dtype=NODE))
    except (OverflowError, ValueError) as error:
        raise ReleaseError("a tree holds a number that is too large.") from error
    tree.check()
    return tree


def _depths(parent: NDArray[Any]) -> Nodes:
    """By jumps that double: after i rounds each node looks 2^i edges up, so that few rounds are enough for any tree."""
    depth, jump = (parent >= 0).astype(NODE), np.maximum(parent, 0)
    while jump.any():
        depth = depth + depth[jump]
        jump = jump[jump]
    return depth


class TreeBuilder:
    """Grow a tree node by node: `split` turns a leaf into an asking node and returns its new children."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self._attribute = [-1]
        self._entries: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._attribute)

    def split(self, node: int, attribute: int, groups: Sequence[int] | None = None) -> list[int]:
        """Ask `attribute` at `node`. `groups[code]` numbers the child of each code, −1: none (by default one child for each)."""
        groups = range(self.sizes[attribute]) if groups is None else groups
        first = len(self._attribute)
        children = list(range(first, first + max(groups) + 1))
        self._attribute[node] = attribute
        self._entries[node] = [children[group] if group >= 0 else -1 for group in groups] + [-1]
        self._attribute.extend([-1] * len(children))
        return children

    def build(self) -> Tree:
        entries = [entry for node in sorted(self._entries) for entry in self._entries[node]]
        return Tree(self.sizes, np.array(self._attribute, dtype=NODE), np.array(entries, dtype=NODE))
