"""How alike two models are (Sharkey et al. 2008, 4): the rows that they classify alike, the paths that they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.schema.attributes import Numeric
from hedgerow.trees.paths import Paths

PathSet = frozenset[tuple[frozenset[tuple[int, tuple[Any, ...]]], int]]


def class_match(one: Any, other: Any) -> float:
    """The share of rows that two predictors put into the same class, from their predictions."""
    first, second = np.asarray(one), np.asarray(other)
    if first.shape != second.shape or not first.size:
        raise ValueError(f"class match: got predictions of shapes {first.shape} and {second.shape}; expected the same rows, at least one.")
    return float(np.mean(first == second))


def path_set(paths: Paths) -> PathSet:
    """Each path as its conditions, {(attribute, what it allows)} in whatever order they are asked, with its class."""
    found = set()
    for path in range(len(paths)):
        asked = np.flatnonzero(paths.asked[path]).tolist()
        found.add((frozenset((j, _allowed(paths, path, j)) for j in asked), int(paths.label[path])))
    return frozenset(found)


def path_match(one: Paths, other: Paths) -> float:
    """|paths ∩| / |paths ∪| of two trees over the same attributes, whatever cells their numbers have."""
    first, second = path_set(one), path_set(other)
    return len(first & second) / len(first | second)


def _allowed(paths: Paths, path: int, attribute: int) -> tuple[Any, ...]:
    """The codes that a path allows; of a number the ends of the intervals, and the branch of missing values."""
    codes, cells = paths.codes(path, attribute), paths.codebook.numeric_cells(attribute)
    entry = paths.codebook.schema.attributes[attribute]
    if not isinstance(entry, Numeric):
        return tuple(codes.tolist())
    edges, inside = entry.cell_edges(paths.codebook.bins), codes[codes < cells]
    runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1) if len(inside) else []
    return (*((edges[run[0]], edges[run[-1] + 1]) for run in runs), len(codes) > len(inside))
