"""A forest that lists only the edges that its trees use: others would tell of values in the rows, and no question needs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.attributes import Numeric
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.tree import Tree


def with_used_edges(forest: CountedForest) -> CountedForest:
    """The same forest, in which a numeric attribute has the edges that some tree asks about or its taxonomy needs, and no others.

    An attribute with none of them has no edges. Every row takes the same path as before.
    """
    cut, kept = cut_edges(forest.codebook, lambda place, cells: _asked(forest, place, cells))
    return replace(forest, codebook=cut, trees=tuple(_cut(tree, kept, cut.sizes) for tree in forest.trees))


def cut_edges(codebook: Codebook, asked: Callable[[int, int], NDArray[np.bool_]]) -> tuple[Codebook, list[NDArray[np.bool_]]]:
    """A codebook with the edges that are used, and of each attribute which codes stay: the first of those that are one cell then; the last
    entry is that of no declared value.

    asked: for an attribute and its number of cells, of each inner edge whether something is asked there
    """
    kept: list[NDArray[np.bool_]] = []
    attributes = list(codebook.schema.attributes)
    for place, entry in enumerate(attributes):
        stay = np.ones(codebook.sizes[place] + 1, dtype=bool)
        if isinstance(entry, Numeric) and entry.edges is not None:
            edges, cells = np.array(entry.edges), len(entry.edges) - 1
            groups = entry.taxonomy[0] if entry.taxonomy else ()
            stay[1:cells] = asked(place, cells) | np.isin(edges[1:-1], groups)
            left = (*edges[:-1][stay[:cells]].tolist(), entry.high)
            attributes[place] = replace(entry, edges=left if len(left) > 2 or codebook.bins > 1 else None)
        kept.append(stay)
    return Codebook(replace(codebook.schema, attributes=tuple(attributes)), codebook.bins), kept


def _asked(forest: CountedForest, place: int, cells: int) -> NDArray[np.bool_]:
    """For each inner edge whether a node sends the cells beside it to different children."""
    asked = np.zeros(cells - 1, dtype=bool)
    for tree in forest.trees:
        first = tree.first_branch[tree.attribute == place].astype(np.int64)
        children = tree.branch[first[:, None] + np.arange(cells)]
        asked |= (children[:, 1:] != children[:, :-1]).any(axis=0)
    return asked


def _cut(tree: Tree, kept: list[NDArray[np.bool_]], sizes: tuple[int, ...]) -> Tree:
    asking = tree.attribute[tree.attribute >= 0].tolist()
    stay = np.concatenate([kept[place] for place in asking]) if asking else np.empty(0, dtype=bool)
    return Tree(sizes, tree.attribute, tree.branch[stay])
