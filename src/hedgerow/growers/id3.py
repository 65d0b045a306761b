"""ID3, plain and with noisy tables.

Jagannathan, Pillaipakkamnatt & Wright 2012, Algorithm 1 (ID3) and section 4 (Private ID3: every look at the training set
replaced by a noisy one, which the paper shows to be a poor way). A node at level l asks one attribute-by-class table for each
of the k − l attributes that are left, so that k(k + 1)/2 tables are asked at most on a path: 36, 136 and 253 for 8, 16 and 22 attributes
(their Table 1). ε = ε′/q for each. A node's size and class counts are read from its parent's table: they cost nothing more.
`id3_published.py` has Private ID3 to the letter, which asks for them by queries of their own that this q leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.private_table import PrivateTable
from hedgerow.queries import Tables, UnprotectedTable
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import later
from hedgerow.trees.forest import NODES, CountedForest, Grown
from hedgerow.trees.plan import Plan
from hedgerow.trees.splits import offsets
from hedgerow.trees.tree import Tree, TreeBuilder

Counts = NDArray[np.int64]  # (nodes, cells of all attributes, classes)
LARGEST_QUESTION = 1 << 25  # counts that one level may hold at once


@dataclass(frozen=True)
class Settings:
    """`max_depth=None`: all k attributes may be asked on a path, as in the paper.

    as_published: to the letter. An empty S is a leaf with value Failure, and a private tree asks all that section 4 lists.
    """

    max_depth: int | None = None
    as_published: bool = later(False)


def levels(codebook: Codebook, settings: Settings) -> int:
    k = len(codebook.sizes)
    return k if settings.max_depth is None else min(k, settings.max_depth)


def number_of_queries(codebook: Codebook, settings: Settings) -> int:
    """q: k + (k − 1) + … over the levels that ask."""
    return sum(len(codebook.sizes) - level for level in range(levels(codebook, settings)))


def plan(codebook: Codebook, settings: Settings, epsilon: Fraction) -> Plan:
    each, k = epsilon / number_of_queries(codebook, settings), len(codebook.sizes)
    events = [Tables.cost(each * (k - level), codebook.schema.k, k - level) for level in range(levels(codebook, settings))]
    chosen = {"queries": number_of_queries(codebook, settings), "levels": levels(codebook, settings)}
    return Plan("Private ID3", epsilon, None, "", codebook.n_classes, tuple(events), (), settings=settings, chosen=chosen)


def grow(table: PrivateTable, plan: Plan, rng: np.random.Generator) -> Grown:
    """ID3 on noisy tables. No public randomness is needed: `rng` is not used."""
    charges = plan.events

    def ask(tree: Tree, nodes: list[int], left: NDArray[np.bool_], level: int) -> Counts:
        return table.ask(Tables(tree, nodes, left), charges[level].epsilon)

    tree, counts = _id3(table.codebook, levels(table.codebook, plan.settings), ask)
    forest = CountedForest(table.codebook, (tree,), (counts[tree.leaves],), (charges[0].scale,))
    return Grown(forest, {}, {"nodes": tree.n_nodes, "height": tree.height})


def grow_plain(table: UnprotectedTable, codebook: Codebook, settings: Settings) -> CountedForest:
    """Algorithm 1. An empty child is not made: a row that would go there is answered by its parent's majority.

    As published it is a leaf with value Failure: here one without a count.
    """
    tree, counts = _id3(codebook, levels(codebook, settings), lambda tree, nodes, left, level: table.ask(Tables.all(tree, nodes)))
    empty = counts.sum(axis=1) == 0  # an empty node asks nothing, so that nothing below it is lost
    empty[0] = False
    if settings.as_published:
        empty[:] = False
    return CountedForest(codebook, (tree.without(empty),), (counts[~empty],), (), NODES)


def _id3(
    codebook: Codebook, n_levels: int, ask: Callable[[Tree, list[int], NDArray[np.bool_], int], Counts]
) -> tuple[Tree, NDArray[np.int64]]:
    """Algorithm 1, a level at a time; returns the tree and the class counts of its nodes, each as its parent's table has it."""
    first, C = offsets(codebook.sizes), codebook.n_classes
    builder = TreeBuilder(codebook.sizes)
    tree, level = builder.build(), [0]
    R = {0: np.ones(len(codebook.sizes), dtype=bool)}  # the attributes left
    counts = {0: np.zeros(C, dtype=np.int64)}
    for depth in range(n_levels):
        tables = ask(tree, level, np.array([R[node] for node in level]), depth)
        gains = information_gain(tables, codebook)
        below: list[int] = []
        for i, node in enumerate(level):
            D = int(np.where(R[node], gains[i], -np.inf).argmax())  # the attribute with the largest gain
            cells = tables[i, first[D] : first[D + 1]]
            if node == 0:
                counts[0] = cells.sum(axis=0)
            for child, child_counts in zip(builder.split(node, D), cells, strict=True):
                counts[child] = child_counts
                R[child] = R[node] & (np.arange(len(R[node])) != D)
                below.append(child)
        tree = builder.build()
        # S is empty, or all of one class, or R is empty: a leaf
        level = [node for node in below if _goes_on(counts[node]) and R[node].any()]
        most = max(1, LARGEST_QUESTION // (int(first[-1]) * C))
        level = sorted(sorted(level, key=lambda node: -int(counts[node].sum()))[:most])
        if not level:
            break
    return tree, np.array([counts[node] for node in range(tree.n_nodes)], dtype=np.int64)


def _goes_on(counts: NDArray[np.int64]) -> bool:
    positive = np.maximum(counts, 0)
    return bool(counts.sum() > 0 and positive.max() < positive.sum())


def information_gain(tables: Counts, codebook: Codebook) -> NDArray[np.float64]:
    """InformationGain(D, S, C) for every node and attribute, from (noisy) tables; negative counts count as 0."""
    first = offsets(codebook.sizes)
    gains = np.empty((len(tables), len(codebook.sizes)))
    for a in range(len(codebook.sizes)):
        cells = np.maximum(tables[:, first[a] : first[a + 1]], 0).astype(np.float64)
        total = np.maximum(cells.sum(axis=(1, 2)), 1)
        inside = (_rows_entropy(cells).sum(axis=1)) / total
        gains[:, a] = _rows_entropy(cells.sum(axis=1)) / total - inside
    return gains


def _rows_entropy(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """n times the entropy of the class shares, along the last axis."""
    n = counts.sum(axis=-1)
    return np.asarray(n * np.log2(np.maximum(n, 1)) - (counts * np.log2(np.maximum(counts, 1))).sum(axis=-1))
