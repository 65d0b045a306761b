"""Routing and additive models for a few rows by NumPy alone: the compiled loops take longer to be loaded than these to run.

Bit for bit what the compiled loops give: every row is summed by itself, in the order of the trees and then of the classes, since each step
below adds one number to every row. It is for what is shown of a release; private queries always use the compiled loops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.tree import Tree

Floats = NDArray[np.float64]
FEW = 256  # rows


def route_few(tree: Tree, codes: NDArray[Any]) -> NDArray[np.int64]:
    """The node where each row ends, as `routing.route` has it."""
    node, rows = np.zeros(len(codes), dtype=np.int64), np.arange(len(codes))
    for _ in range(tree.height):
        asked = tree.attribute[node]
        child = tree.branch[np.minimum(tree.first_branch[node] + codes[rows, asked], len(tree.branch) - 1)]
        node = np.where((asked >= 0) & (child >= 0), child, node)
    return node


def margins_to_show(model: AdditiveModel, codes: NDArray[Any]) -> Floats:
    """Of few rows or of many."""
    return few_margins(model, codes) if len(codes) <= FEW else model.margins(codes)


def few_margins(model: AdditiveModel, codes: NDArray[Any]) -> Floats:
    out = np.empty((len(codes), model.n_classes))
    out[:] = model.base
    for tree, scores in zip(model.trees, model.scores, strict=True):
        out += scores[route_few(tree, codes) if isinstance(tree, Tree) else tree.leaves_of(codes)]
    return out


def softmax(margins: Floats) -> Floats:
    shares = exp_minus(margins.max(axis=1)[:, None] - margins)
    return np.asarray(shares / total_of(shares)[:, None])


def total_of(values: Floats) -> Floats:
    """Of each row, one column after the other: a NumPy sum over an axis may take another order."""
    total = np.zeros(len(values))
    for column in range(values.shape[1]):
        total = total + values[:, column]
    return total


def exp_minus(x: Floats) -> Floats:
    """e^(−x), step by step as `additive_loops.exp_minus`."""
    near = x < 40.0
    x = np.where(near, x, 0.0)
    k = (x * 1.4426950408889634 + 0.5).astype(np.int64)
    r = (k * 0.693147180369123816490 - x) + k * 1.90821492927058770002e-10
    power = np.full(x.shape, 1 / math.factorial(11))
    for n in range(10, -1, -1):
        power = 1 / math.factorial(n) + power * r
    return np.where(near, power * 0.5 ** k.astype(np.float64), 0.0)
