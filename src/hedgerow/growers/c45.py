"""C4.5 without privacy: the tree that an owner learns from its own rows before it shares it (Sharkey et al. 2008, section 3).

Quinlan 1993, with the numeric penalty of Quinlan 1996: among the attributes whose information gain is at least the average, the one
with the largest gain ratio; then subtrees are replaced by leaves where a pessimistic estimate of their errors is no worse.

    categorical   a branch for each value; asked once on a path, since below it only one value is left
    numeric       the best threshold between two cells, its gain less log2(thresholds)/rows; may be asked again below.
                  Missing values, where the attribute has a branch for them, are a third child

A value that no row of the node has shares the child of the largest branch: no path is empty, and none tells who was not there.
Rows whose value has no branch stop at the node; they count in what it is as a leaf and in the price of asking (gain · known / all).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.queries import LeafCounts, Tables, UnprotectedTable
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.splits import offsets
from hedgerow.trees.tree import MAX_HEIGHT, NODE, Tree

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]
AT_ONCE = 1 << 22  # counts of the nodes that are looked at together
ROUNDING = 1e-9
IN_DOUBT = 0.1  # errors by which a subtree must be better than a leaf to stay (C4.5, J48)


@dataclass(frozen=True)
class Settings:
    """`confidence=None`: nothing is pruned; `max_depth=None`: a path may ask as often as it helps."""

    min_leaf: int = 2
    confidence: float | None = 0.25
    max_depth: int | None = None


def grow_plain(table: UnprotectedTable, codebook: Codebook, settings: Settings) -> CountedForest:
    """The pruned tree with the exact class counts of its leaves."""
    tree, counts = grown_tree(table, codebook, settings)
    if settings.confidence is not None:
        tree = tree.without(pruned_away(tree, counts, settings.confidence))
    leaves = table.ask(LeafCounts([tree]))
    return CountedForest(codebook, (tree,), tuple(leaves))


def grown_tree(table: UnprotectedTable, codebook: Codebook, settings: Settings) -> tuple[Tree, Counts]:
    """The tree before pruning, a level at a time, with the class counts of all its nodes."""
    growing = _Growing(codebook)
    tree = growing.tree()
    growing.counts = table.ask(LeafCounts([tree]))[0]
    level = np.zeros(1, dtype=np.int64)
    together = max(1, AT_ONCE // (sum(codebook.sizes) * codebook.n_classes))
    deepest = MAX_HEIGHT if settings.max_depth is None else min(settings.max_depth, MAX_HEIGHT)
    for _ in range(deepest):
        counts = growing.counts[level]
        n = counts.sum(axis=1)
        level = level[(n >= 2 * settings.min_leaf) & (counts.max(axis=1) < n)]
        if not len(level):
            break
        first_child = len(growing.counts)
        for start in range(0, len(level), together):
            nodes = level[start : start + together]
            tables = table.ask(Tables.all(tree, nodes))
            questions = best_questions(tables, growing.counts[nodes], codebook, settings.min_leaf)
            growing.ask(nodes, questions, tables)
        level = np.arange(first_child, len(growing.counts))
        tree = growing.tree()
    return tree, growing.counts


# ---------------------------------------------------------------- which question


@dataclass(frozen=True)
class Questions:
    """For each node the attribute to ask (−1: none) and, where it is numeric, the first cell above the threshold."""

    attribute: NDArray[np.int64]
    edge: NDArray[np.int64]


def best_questions(tables: Counts, counts: Counts, codebook: Codebook, min_leaf: int) -> Questions:
    """The largest gain ratio among the attributes with at least average gain, for every node.

    tables: (nodes, cells of all attributes, classes); counts: (nodes, classes), with the rows that have no branch
    """
    gain, split_info, edge = gains(tables, counts, codebook, min_leaf)
    possible = gain > -np.inf
    average = np.where(possible, gain, 0).sum(axis=1) / np.maximum(possible.sum(axis=1), 1)
    enough = possible & (gain >= average[:, None] - ROUNDING)
    ratio = np.where(enough, np.maximum(gain, 0) / np.where(enough, split_info, 1), -np.inf)
    best = ratio.argmax(axis=1)
    chosen = np.where(possible.any(axis=1), best, -1)
    return Questions(chosen, edge[np.arange(len(best)), best])


def gains(tables: Counts, counts: Counts, codebook: Codebook, min_leaf: int) -> tuple[Numbers, Numbers, NDArray[np.int64]]:
    """Information gain (−∞: may not be asked), split information and best threshold of each attribute at each node."""
    first, shape = offsets(codebook.sizes), (len(tables), len(codebook.sizes))
    gain, split_info, edge = np.empty(shape), np.empty(shape), np.zeros(shape, dtype=np.int64)
    n = counts.sum(axis=1)
    for a in range(len(codebook.sizes)):
        table, cells = tables[:, first[a] : first[a + 1]], codebook.numeric_cells(a)
        if cells >= 2:
            edge[:, a] = best_threshold(table, cells, _least_beside_a_threshold(n, codebook.n_classes, min_leaf))
            table = np.stack([_part(table, side) for side in sides(edge[:, a], table.shape[1], cells)], axis=1)
        branches = table.sum(axis=2)
        gain[:, a] = (entropy_of(table.sum(axis=1)) - entropy_of(table).sum(axis=1)) / n
        if cells >= 2:
            filled = (tables[:, first[a] : first[a] + cells].sum(axis=2) > 0).sum(axis=1)
            gain[:, a] -= np.log2(np.maximum(filled - 1, 1)) / n
        with_stopped = np.column_stack([branches, n - branches.sum(axis=1)])
        split_info[:, a] = entropy_of(with_stopped) / n
        allowed = (branches >= min_leaf).sum(axis=1) >= 2
        if cells >= 2:
            allowed &= (edge[:, a] > 0) & (gain[:, a] > -ROUNDING)
        gain[~allowed, a] = -np.inf
    return gain, split_info, edge


def _least_beside_a_threshold(n: Counts, n_classes: int, min_leaf: int) -> Counts:
    """C4.5 wants a tenth of a class's even share on both sides of a threshold, at least the leaf minimum and at most 25 rows."""
    return np.maximum(min_leaf, np.minimum(25, n // (10 * n_classes)))


def best_threshold(table: Counts, cells: int, least: Counts) -> NDArray[np.int64]:
    """The first cell above the threshold with the largest gain, 0 where none leaves `least` rows on both sides.

    Thresholds with no row between them are one; its place is the middle of the gap.
    """
    left = np.cumsum(table[:, :cells], axis=1)
    whole, left = left[:, -1:], left[:, :-1]
    below = left.sum(axis=2)
    above = whole.sum(axis=2) - below
    mixed = entropy_of(left) + entropy_of(whole - left)
    mixed = np.where((below >= least[:, None]) & (above >= least[:, None]), mixed, np.inf)
    best = mixed.argmin(axis=1)
    same = below == below[np.arange(len(below)), best][:, None]  # the gap around the best threshold
    first, size = same.argmax(axis=1), same.sum(axis=1)
    return np.where(np.isfinite(mixed.min(axis=1)), first + (size - 1) // 2 + 1, 0)


def sides(edge: NDArray[np.int64], size: int, cells: int) -> list[NDArray[np.bool_]]:
    """Which codes lie below the threshold, above it and, where there is a branch for them, are missing values: (nodes, codes) each."""
    code = np.arange(size)[None, :]
    parts = [code < edge[:, None], (code >= edge[:, None]) & (code < cells)]
    return parts if size == cells else [*parts, np.broadcast_to(code >= cells, parts[0].shape)]


def _part(table: Counts, codes: NDArray[np.bool_]) -> Counts:
    return np.asarray(np.einsum("nvc,nv->nc", table, codes))


def entropy_of(counts: NDArray[Any]) -> Numbers:
    """n times the entropy of the shares, in bits, along the last axis."""
    n = counts.sum(axis=-1)
    return np.asarray(_x_log_x(n) - _x_log_x(counts).sum(axis=-1))


def _x_log_x(x: NDArray[Any]) -> Numbers:
    return np.asarray(x * np.log2(np.maximum(x, 1)))


# ---------------------------------------------------------------- the tree while it grows


class _Growing:
    """Nodes are numbered as they are made, level by level: so the entries of a level follow those of the levels above."""

    def __init__(self, codebook: Codebook) -> None:
        self.codebook = codebook
        self.first = offsets(codebook.sizes)
        self.attribute = np.full(1, -1, dtype=NODE)
        self.branch = [np.empty(0, dtype=NODE)]
        self.counts = np.zeros((1, codebook.n_classes), dtype=np.int64)

    def tree(self) -> Tree:
        return Tree(self.codebook.sizes, self.attribute, np.concatenate(self.branch))

    def ask(self, nodes: NDArray[np.int64], questions: Questions, tables: Counts) -> None:
        """Give the nodes (ascending) their questions and children."""
        asking = questions.attribute >= 0
        nodes, tables = nodes[asking], tables[asking]
        attribute, edge = questions.attribute[asking], questions.edge[asking]
        sizes = np.asarray(self.codebook.sizes)[attribute]
        groups = {a: self._groups(a, tables[attribute == a], edge[attribute == a]) for a in np.unique(attribute).tolist()}
        n_children = np.zeros(len(nodes), dtype=np.int64)
        for a, group in groups.items():
            n_children[attribute == a] = group.max(axis=1) + 1
        first_child = len(self.counts) + np.cumsum(n_children) - n_children
        entry = np.cumsum(sizes + 1) - (sizes + 1)
        branch = np.full(int((sizes + 1).sum()), -1, dtype=NODE)
        counts = np.zeros((int(n_children.sum()), self.codebook.n_classes), dtype=np.int64)
        for a, group in groups.items():
            here = attribute == a
            child = first_child[here, None] + group
            branch[entry[here, None] + np.arange(group.shape[1])] = child
            np.add.at(counts, child - len(self.counts), tables[here, self.first[a] : self.first[a + 1]])
        self.attribute[nodes] = attribute
        self.attribute = np.concatenate([self.attribute, np.full(len(counts), -1, dtype=NODE)])
        self.branch.append(branch)
        self.counts = np.concatenate([self.counts, counts])

    def _groups(self, a: int, tables: Counts, edge: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which child of its node each code leads to: (nodes, codes)."""
        rows = tables[:, self.first[a] : self.first[a + 1]].sum(axis=2)
        cells = self.codebook.numeric_cells(a)
        if cells < 2:
            return _numbered(rows)
        parts = sides(edge, rows.shape[1], cells)
        child = _numbered(np.stack([(rows * part).sum(axis=1) for part in parts], axis=1))
        return np.asarray(sum(child[:, [i]] * part for i, part in enumerate(parts)))


def _numbered(rows: Counts) -> NDArray[np.int64]:
    """Numbers for the branches that have rows; those without share the number of the largest."""
    filled = rows > 0
    number = np.cumsum(filled, axis=1) - 1
    largest = number[np.arange(len(rows)), rows.argmax(axis=1)]
    return np.where(filled, number, largest[:, None])


# ---------------------------------------------------------------- pruning


def added_errors(n: NDArray[Any], errors: NDArray[Any], confidence: float) -> Numbers:
    """Errors to be expected beyond those seen among n rows: up to the upper end of a one-sided confidence interval (C4.5, J48)."""
    n, e = np.asarray(n, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    z, safe = NormalDist().inv_cdf(1 - confidence), np.maximum(n, 1)
    none = n * (1 - np.exp(math.log(confidence) / safe))
    f = (e + 0.5) / safe  # with the correction for whole numbers
    spread = z * np.sqrt(np.maximum(f * (1 - f) / safe + z * z / (4 * safe * safe), 0))
    some = (f + z * z / (2 * safe) + spread) / (1 + z * z / safe) * n - e
    return np.where(e < 1, none, np.where(e + 0.5 >= n, np.maximum(n - e, 0), some))


def pruned_away(tree: Tree, counts: Counts, confidence: float) -> NDArray[np.bool_]:
    """The nodes below those that do as well as leaves, from the bottom up: subtree replacement."""
    as_leaf = _expected_errors(counts, counts.argmax(axis=1), confidence)
    asking, parent = tree.attribute >= 0, tree.parent
    going_on = np.zeros_like(counts)
    np.add.at(going_on, parent[1:], counts[1:])
    stopping = np.where(asking[:, None], counts - going_on, 0)
    below = _expected_errors(stopping, going_on.argmax(axis=1), confidence)  # they get the answer of the rows that go on
    estimate, cut = as_leaf.copy(), np.zeros(tree.n_nodes, dtype=bool)
    for nodes in tree.levels[::-1]:
        inner = nodes[asking[nodes]]
        cut[inner] = as_leaf[inner] <= below[inner] + IN_DOUBT
        estimate[inner] = np.where(cut[inner], as_leaf[inner], below[inner])
        if nodes[0] != 0:
            np.add.at(below, parent[nodes], estimate[nodes])
    gone = np.zeros(tree.n_nodes, dtype=bool)
    for nodes in tree.levels[1:]:
        gone[nodes] = gone[parent[nodes]] | cut[parent[nodes]]
    return gone


def _expected_errors(counts: Counts, label: NDArray[Any], confidence: float) -> Numbers:
    n = counts.sum(axis=1)
    wrong = n - counts[np.arange(len(counts)), label]
    return np.asarray(wrong + added_errors(n, wrong, confidence))
