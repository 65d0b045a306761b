"""How alike two models are (Sharkey et al. 2008, 4): the rows that they classify alike, the paths that they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.trees.paths import Paths

PathSet = frozenset[tuple[frozenset[tuple[int, tuple[int, ...]]], int]]


def class_match(one: Any, other: Any) -> float:
    """The share of rows that two predictors put into the same class, from their predictions."""
    first, second = np.asarray(one), np.asarray(other)
    if first.shape != second.shape or not first.size:
        raise ValueError(f"class match: got predictions of shapes {first.shape} and {second.shape}; expected the same rows, at least one.")
    return float(np.mean(first == second))


def path_set(paths: Paths) -> PathSet:
    """Each path as its conditions, {(attribute, allowed codes)} in whatever order they are asked, with its class."""
    found = set()
    for path in range(len(paths)):
        asked = np.flatnonzero(paths.asked[path]).tolist()
        found.add((frozenset((j, tuple(paths.codes(path, j).tolist())) for j in asked), int(paths.label[path])))
    return frozenset(found)


def path_match(one: Paths, other: Paths) -> float:
    """|paths ∩| / |paths ∪| of two trees over the same codes."""
    first, second = path_set(one), path_set(other)
    return len(first & second) / len(first | second)
