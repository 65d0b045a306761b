"""Edges for numbers of which a few are far larger than the others: incomes, costs, debts.

Cells of equal width would hold nearly all rows in a few of them, and a forest could not tell them apart. The edges are 1, 2 and 5 times the
powers of ten between the bounds, on both sides of 0, or finer steps where most rows are alike: of the rows they tell little more than the
bounds do, that most are far smaller, and how small small ones are, as a power of ten.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CROWDED = 0.1  # of the way between the bounds, in which nine of ten rows lie that do not have the most frequent value
FEWEST = 30  # different numbers
CELLS = 250  # of equal width, as the Hedgerow forest cuts them: they must tell rows less apart
DECADES = 6  # below the bound that is further from 0, at most
STEPS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))  # times powers of ten, the coarsest first
FULL = 0.2  # of the rows without the most frequent value, in one cell: then finer steps


def growing_edges(low: float, high: float, numbers: Floats, whole: bool) -> tuple[float, ...] | None:
    """From low to high; None where cells of equal width serve. numbers: of all rows that have one"""
    if not _crowded(low, high, numbers):
        return None
    amounts = np.abs(numbers[numbers != 0])
    largest = math.floor(math.log10(max(abs(low), abs(high))))
    smallest = max(math.floor(math.log10(np.quantile(amounts, 0.1, method="lower"))), largest - DECADES, 0 if whole else -300)
    others = _others(numbers)
    edges: tuple[float, ...] = ()
    for steps in STEPS:
        sizes = [float(f"{step}e{power}") for power in range(smallest, largest + 1) for step in steps]
        sizes = [size for size in sizes if size.is_integer() or not whole]
        edges = (low, *sorted(edge for edge in (*(-size for size in sizes), 0.0, *sizes) if low < edge < high), high)
        if np.histogram(others, edges)[0].max() <= FULL * len(others):
            break
    return edges if _told(numbers, np.array(edges)) > _told(numbers, np.linspace(low, high, CELLS + 1)) else None


def _crowded(low: float, high: float, numbers: Floats) -> bool:
    if len(np.unique(numbers)) < FEWEST:
        return False
    others = _others(numbers)
    within = others[math.ceil(0.95 * (len(others) - 1))] - others[math.floor(0.05 * (len(others) - 1))]
    return bool(within < CROWDED * (high - low))


def _others(numbers: Floats) -> Floats:
    """Those that are not the most frequent one, in order."""
    values, rows = np.unique(numbers, return_counts=True)
    return np.sort(numbers[numbers != values[rows.argmax()]])


def _told(numbers: Floats, edges: Floats) -> float:
    """The entropy of the rows' cells."""
    rows = np.histogram(numbers, edges)[0]
    shares = rows[rows > 0] / rows.sum()
    return float(-(shares * np.log(shares)).sum())
