"""Edges between the values that rows have: for a tree without privacy, whose thresholds may follow the rows.

Never for a private forest: edges that are read from rows tell of them, and no noise is on them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.attributes import Numeric

VALUES = "values"  # as the number of bins: cells between the values that rows have
MOST_CELLS = 4_096  # of one attribute; where there are more values, cells hold about as many rows each

Numbers = NDArray[np.float64]


def edges_between_values(attribute: Numeric, numbers: Numbers) -> tuple[float, ...]:
    """Edges that separate neighbouring values of these numbers, with those that the attribute's taxonomy needs.

    What lies outside the bounds counts as they do; what is no number counts nowhere.
    """
    inside = np.clip(numbers[~np.isnan(numbers)], attribute.low, attribute.high)
    values, rows = np.unique(inside, return_counts=True)
    below = np.arange(max(len(values) - 1, 0))  # an edge after each value but the last
    if len(values) > MOST_CELLS:
        wanted = np.arange(1, MOST_CELLS) * (len(inside) / MOST_CELLS)
        below = np.unique(np.minimum(np.searchsorted(np.cumsum(rows), wanted), len(values) - 2))
    edges = between(values[below], values[below + 1]).tolist()
    groups = attribute.taxonomy[0] if attribute.taxonomy else ()
    return tuple(sorted({attribute.low, *(edge for edge in edges if attribute.low < edge < attribute.high), *groups, attribute.high}))


def between(a: Numbers, b: Numbers) -> Numbers:
    """For each a < b a number above a and up to b: a round one in the middle half of the gap.

    It is easier to read than the middle itself, and tells less of the two values beside it.
    """
    gap = b - a
    middle = a + gap / 2
    found = np.where(middle > a, middle, b)  # of neighbours among the floats there is nothing between
    with np.errstate(all="ignore"):
        digits = -np.floor(np.log10(gap / 2))  # a step of 10^−digits is at most half the gap
        for more in (1, 0):  # the rounder number, if it is not too far from the middle; it is taken last
            found = _rounded(found, middle, gap, digits - 1 + more)
    return np.where((a < found) & (found <= b), found, np.where(middle > a, middle, b))


def _rounded(otherwise: Numbers, middle: Numbers, gap: Numbers, digits: Numbers) -> Numbers:
    found = otherwise.copy()
    for each in np.unique(digits[np.isfinite(digits) & (np.abs(digits) < 300)]):
        here = digits == each
        near = np.round(middle[here], int(each))
        found[here] = np.where(np.abs(near - middle[here]) <= gap[here] / 4, near, found[here])
    return found
