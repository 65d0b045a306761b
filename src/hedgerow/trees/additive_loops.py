"""Compiled: the margins and probabilities of an additive model. Imported when rows are predicted, since numba takes a while to load."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from hedgerow.trees.routing import TOGETHER, descend

_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_BELOW_HALF_AN_ULP = 40.0  # 1 + e^(-40) is 1 in double precision
_TERMS = 12
_TAYLOR = np.array([1 / math.factorial(n) for n in range(_TERMS)])
_HALVES = 0.5 ** np.arange(64)


@numba.njit(nogil=True, cache=True)
def add_scores(codes: Any, ask: Any, onward: Any, height: int, scores: Any, out: Any) -> None:
    node = np.empty(TOGETHER, dtype=np.int32)
    for start in range(0, codes.shape[0], TOGETHER):
        rows = min(TOGETHER, codes.shape[0] - start)
        descend(codes, start, rows, ask, onward, height, node)
        for i in range(rows):
            for c in range(scores.shape[1]):
                out[start + i, c] += scores[node[i], c]


@numba.njit(inline="always")
def exp_minus(x: float) -> float:
    """e^(-x) for x >= 0, to about 13 digits, by sums, products and a table of exact numbers: the same bits wherever it is computed."""
    near = x if x < _BELOW_HALF_AN_ULP else 0.0  # no branches: rows may go side by side
    k = int(near * 1.4426950408889634 + 0.5)
    r = (k * _LN2_HIGH - near) + k * _LN2_LOW  # -x + k ln 2, between -0.35 and 0.35
    power = _TAYLOR[_TERMS - 1]
    for n in range(_TERMS - 2, -1, -1):
        power = _TAYLOR[n] + power * r
    return power * _HALVES[k] if x < _BELOW_HALF_AN_ULP else 0.0


@numba.njit(nogil=True, cache=True)
def softmax(margins: Any) -> None:
    """In place."""
    for i in range(margins.shape[0]):
        highest = margins[i].max()
        total = 0.0
        for c in range(margins.shape[1]):
            gap = highest - margins[i, c]
            margins[i, c] = 1.0 if gap == 0.0 else exp_minus(gap)  # the same number, sooner
            total += margins[i, c]
        for c in range(margins.shape[1]):
            margins[i, c] /= total
