"""Exact counts of the tree that is being grown, kept between two queries, so that each level costs one pass over the rows.

Splitting a node already counted (cell, class); the children's class counts follow from it, so they are cached and cost no pass. Only what
a paid query has counted is kept, and it is given out only as the answer to another paid query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.queries import kernels
from hedgerow.queries.nodes import NodeCounts, SplitCounts
from hedgerow.queries.query import Query, Sums
from hedgerow.trees.tree import Tree

MOST_KEPT = 1 << 24  # numbers, 128 MB: larger tables are counted again


class GrowingTree:
    """The last tree that was asked about: class counts of its nodes, and (cell, class) counts of the nodes that may be split next."""

    def __init__(self) -> None:
        self._tree: Tree | None = None
        self._known = np.zeros((0, 0), dtype=np.int64)  # class counts of each node, where `_has`
        self._has = np.zeros(0, dtype=bool)
        self._splits: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # nodes and their counts
        self._root: NDArray[np.int64] | None = None  # (1, cells, classes): every tree begins with the same

    def known(self, query: Query[Any]) -> Sums | None:
        """The sums of a query, if they follow from earlier ones."""
        found = None
        if isinstance(query, NodeCounts):
            found = self.class_counts(query.tree, np.asarray(query.nodes))
        elif isinstance(query, SplitCounts):
            found = self.split_counts(query.tree, np.asarray(query.nodes))
        return None if found is None else [found]

    def keep(self, query: Query[Any], sums: Sums) -> None:
        if isinstance(query, NodeCounts):
            self.keep_class_counts(query.tree, np.asarray(query.nodes), sums[0])
        elif isinstance(query, SplitCounts):
            self.keep_split_counts(query.tree, np.asarray(query.nodes), sums[0])

    def class_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """(nodes, classes + 1) if all of them are known."""
        self._turn_to(tree)
        if len(self._has) == tree.n_nodes and self._has[nodes].all():
            return self._known[nodes]
        return None

    def split_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """(nodes, cells, classes + 1) as `kernels.split_cells` orders them, if all of them are known."""
        self._turn_to(tree)
        if self._splits is None:
            return None
        known, counts = self._splits
        place = {int(node): i for i, node in enumerate(known)}
        if not all(int(node) in place for node in nodes):
            return None
        return counts[[place[int(node)] for node in nodes]]

    def keep_class_counts(self, tree: Tree, nodes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self._turn_to(tree)
        self._add(nodes, counts)

    def keep_split_counts(self, tree: Tree, nodes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self._turn_to(tree)
        if counts.size <= MOST_KEPT:
            self._splits = (nodes, counts)
            if tree.n_nodes == 1:
                self._root = counts

    def _add(self, nodes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        assert self._tree is not None
        if len(self._has) < self._tree.n_nodes or self._known.shape[1] != counts.shape[1]:
            known, has = np.zeros((self._tree.n_nodes, counts.shape[1]), dtype=np.int64), np.zeros(self._tree.n_nodes, dtype=bool)
            if self._known.shape[1] == counts.shape[1]:
                known[: len(self._known)], has[: len(self._has)] = self._known, self._has
            self._known, self._has = known, has
        self._known[nodes], self._has[nodes] = counts, True

    def _turn_to(self, tree: Tree) -> None:
        """From the tree of the last query to this one: its new nodes are children of those that were to be split, or all is new."""
        before = self._tree
        if before is not None and before.n_nodes == tree.n_nodes and before == tree:
            self._tree = tree
            return
        self._tree = tree
        splits, self._splits = self._splits, None
        if before is None or not _continues(tree, before):
            self._known, self._has = self._known[:0], self._has[:0]
            splits = None if self._root is None else (np.zeros(1, dtype=np.int64), self._root)
            if splits is not None and tree.n_nodes == 1:
                self._splits = splits
                first, last = kernels.split_cells(tree)[0][0], tree.sizes[0] + 1
                self._add(splits[0], splits[1][:, first : first + last].sum(axis=1))  # all rows, by the cells of any attribute
        if splits is not None:
            self._add_children(tree, *splits)

    def _add_children(self, tree: Tree, nodes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        first, _ = kernels.split_cells(tree)
        for i, node in enumerate(nodes):
            attribute = int(tree.attribute[node])
            if attribute < 0:
                continue
            children = tree.children(int(node))
            there = children >= 0
            cells = counts[i, first[attribute] : first[attribute] + len(children)][there]
            number, place = np.unique(children[there], return_inverse=True)
            sums = np.zeros((len(number), counts.shape[2]), dtype=np.int64)
            np.add.at(sums, place, cells)
            self._add(number.astype(np.int64), sums)


def _continues(tree: Tree, before: Tree) -> bool:
    """Whether the tree is the one before with some of its leaves split: then every node of that one is the same set of rows in this."""
    if tree.sizes != before.sizes or tree.n_nodes < before.n_nodes:
        return False
    asking = np.flatnonzero(before.attribute >= 0)
    if not np.array_equal(tree.attribute[asking], before.attribute[asking]):
        return False
    all_asking = np.flatnonzero(tree.attribute >= 0)
    owner = np.repeat(all_asking, np.asarray(tree.sizes)[tree.attribute[all_asking]] + 1)
    return np.array_equal(tree.branch[np.isin(owner, asking)], before.branch)
