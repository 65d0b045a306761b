"""Compiled: values to codes, one after the other. It is imported when rows are encoded, since numba takes a while to be imported."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def look_up(block: Any, low: int, table: Any, out: Any) -> None:
    """out = table[block − low]; its first entry, `other`, for what lies outside."""
    for i in range(block.size):
        place = np.uint64(block[i] - low)  # below `low`, or after a wrap-around, it is beyond any table
        out[i] = table[place] if place < np.uint64(table.size) else table[0]


@numba.njit(nogil=True, cache=True)
def look_up_all(rows: Any, lows: Any, tables: Any, out: Any) -> None:
    """As `look_up`, for all attributes while a row is at hand."""
    width = np.uint64(tables.shape[1])
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            place = np.uint64(rows[i, j] - lows[j])
            out[i, j] = tables[j, place] if place < width else tables[j, 0]


@numba.njit(nogil=True, cache=True)
def cells(numbers: Any, inner: Any, low: float, per_unit: float, missing: int, out: Any) -> None:
    """The number of inner edges that are not above each number: a guess for equal widths, then exact comparisons."""
    last = inner.size
    for i in range(numbers.size):
        number = numbers[i]
        if number != number:
            out[i] = missing
            continue
        guess = (number - low) * per_unit
        cell = 0  # also where the guess is not a number
        if guess >= last:
            cell = last
        elif guess > 0:
            cell = int(guess)
        while cell > 0 and number < inner[cell - 1]:
            cell -= 1
        while cell < last and number >= inner[cell]:
            cell += 1
        out[i] = cell
