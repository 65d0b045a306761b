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


@numba.njit(inline="always")
def _length(text: Any) -> Any:
    """Of a text in an array: it is filled up with zeros."""
    length = text.size
    while length > 0 and text[length - 1] == 0:
        length -= 1
    return length


@numba.njit(inline="always")
def _slot(text: Any, length: int, slots: Any) -> np.uint64:
    mixed = np.uint64(length)
    for c in range(length):
        mixed = (mixed ^ np.uint64(text[c])) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(32)) & np.uint64(slots.size - 1)


@numba.njit(nogil=True, cache=True)
def fill_slots(texts: Any, slots: Any) -> None:
    """A hash table of texts that differ, each a row of characters: `slots` are more than they, a power of 2, and −1."""
    for k in range(texts.shape[0]):
        slot = _slot(texts[k], _length(texts[k]), slots)
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(slots.size - 1)
        slots[slot] = k


@numba.njit(nogil=True, cache=True)
def look_up_text(block: Any, texts: Any, slots: Any, codes: Any, out: Any) -> None:
    """out = the code of the same text in that table; −1 where there is none."""
    for i in range(block.shape[0]):
        length = _length(block[i])
        slot = _slot(block[i], length, slots)
        out[i] = -1
        while slots[slot] >= 0:
            k = slots[slot]
            same = _length(texts[k]) == length
            for c in range(length):
                same = same and block[i, c] == texts[k, c]
            if same:
                out[i] = codes[k]
                break
            slot = (slot + np.uint64(1)) & np.uint64(slots.size - 1)
