"""The bytes of a CSV file to records, and a record to cells. What becomes of a record follows from its own bytes.  [E1]

A record is a line: what stands between two LF, without one CR at its end. A record that cannot be a row is left out by itself: a quote
that is open at its end, text after a closing quote, more cells than the header (empty ones at the end do not count), bytes in a needed
cell that are no UTF-8, more than MOST_LINE bytes. Fewer cells are missing values. An empty line is no row, unless there is one column.

These are plain functions; `csv_compiled.py` has the same, compiled. A small file of rows to predict is split by them as they are, since
that is done before numba is imported; private queries always use the compiled ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_LINE = 1 << 21  # bytes of a record
NOTHING = -1  # in place of a character: there is none
LF, CR, SPACE = 10, 13, 32
PLAIN, ESCAPED = 0, 1
OPEN, TOO_LONG = -1, -2


def split(
    data: Any, starts: Any, ends: Any, delimiter: int, quote: int, escape: int, wanted: Any, begin: Any, length: Any, kind: Any
) -> tuple[int, int]:
    """The needed cells of all records: (rows, the first record that was left out, or −1).

    wanted: for each column of the header its place among the needed ones, or −1
    begin, length, kind: (needed columns, at least as many as records): where a cell's bytes are, and whether some of them are escapes
    """
    rows, first_bad = 0, -1
    for i in range(len(starts)):
        s, e = starts[i], ends[i]
        if e > s and data[e - 1] == CR:
            e -= 1
        if s == e and len(wanted) > 1:
            continue
        for j in range(begin.shape[0]):
            length[j, rows] = 0
        if e - s <= MOST_LINE and _cells(data, s, e, delimiter, quote, escape, wanted, begin, length, kind, rows):
            rows += 1
        elif first_bad < 0:
            first_bad = i
    return rows, first_bad


def _cells(
    data: Any, s: int, e: int, delimiter: int, quote: int, escape: int, wanted: Any, begin: Any, length: Any, kind: Any, row: int
) -> bool:
    """The needed cells of the record data[s:e]; False if it is no row. No other byte of the data is read."""
    p, column = s, 0
    while True:
        escaped, high = PLAIN, np.uint8(0)
        inner = p
        if quote != NOTHING:
            while inner < e and data[inner] == SPACE and delimiter != SPACE:
                inner += 1
        if quote != NOTHING and inner < e and data[inner] == quote:
            first = p = inner + 1
            closed = False
            while p < e:
                b = data[p]
                high |= b
                if b == escape:
                    escaped = ESCAPED
                    p += 1
                    if p < e:
                        high |= data[p]
                elif b == quote:
                    if escape != NOTHING or p + 1 == e or data[p + 1] != quote:
                        closed = True
                        break
                    escaped = ESCAPED
                    p += 1
                p += 1
            if not closed:
                return False
            last = p
            p += 1
            while p < e and data[p] == SPACE and delimiter != SPACE:
                p += 1
            if p < e and data[p] != delimiter:
                return False
        else:
            first = p
            while p < e:
                b = data[p]
                if b == delimiter:
                    break
                high |= b
                if b == escape:
                    escaped = ESCAPED
                    p += 1
                    if p == e:
                        return False
                    high |= data[p]
                p += 1
            last = p
        if column >= len(wanted):
            if last > first:
                return False
        elif wanted[column] >= 0:
            if high >= 128 and not _is_utf8(data, first, last):
                return False
            j = wanted[column]
            begin[j, row], length[j, row], kind[j, row] = first, last - first, escaped
        column += 1
        if p >= e:
            return True
        p += 1


def _is_utf8(data: Any, s: int, e: int) -> bool:
    """Whether the bytes are UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF."""
    p = s
    while p < e:
        b = data[p]
        if b < 0x80:
            p += 1
            continue
        if 0xC2 <= b <= 0xDF:
            more, low, top = 1, 0x80, 0xBF
        elif 0xE0 <= b <= 0xEF:
            more, low, top = 2, 0xA0 if b == 0xE0 else 0x80, 0x9F if b == 0xED else 0xBF
        elif 0xF0 <= b <= 0xF4:
            more, low, top = 3, 0x90 if b == 0xF0 else 0x80, 0x8F if b == 0xF4 else 0xBF
        else:
            return False
        if p + more >= e or not low <= data[p + 1] <= top:
            return False
        for k in range(2, more + 1):
            if not 0x80 <= data[p + k] <= 0xBF:
                return False
        p += more + 1
    return True


def gather(data: Any, begin: Any, length: Any, kind: Any, quote: int, escape: int, offsets: Any, out: Any) -> int:
    """One column's cells side by side, without their escapes; `offsets` has one entry more than there are cells."""
    mark = quote if escape == NOTHING else escape
    place = 0
    for i in range(len(length)):
        offsets[i] = place
        p, e = begin[i], begin[i] + length[i]
        if length[i] == 0:
            continue
        if kind[i] == PLAIN:
            for k in range(p, e):
                out[place] = data[k]
                place += 1
        else:
            while p < e:
                if data[p] == mark:
                    p += 1
                out[place] = data[p]
                place += 1
                p += 1
    offsets[len(length)] = place
    return place


def joined(data: Any, delimiter: int, quote: int, escape: int, at_end: bool, starts: Any, ends: Any) -> tuple[int, int]:
    """Records over several lines, where the owner has declared them: (how many, how many bytes they take with their LF).

    A record that would be longer than MOST_LINE, or that has no end, is its first line alone: that one is left out then, and the next line
    begins a record. One that may go on after `data`, which ends with an LF, is not taken, unless nothing comes `at_end`.
    """
    records, s = 0, 0
    while s < len(data):
        end = _record_end(data, s, delimiter, quote, escape)
        if end == OPEN and not at_end:
            break
        if end < 0:
            end = s
            while end < len(data) and data[end] != LF:
                end += 1
        starts[records], ends[records] = s, end
        records += 1
        s = end + 1
    return records, min(s, len(data))


def _record_end(data: Any, s: int, delimiter: int, quote: int, escape: int) -> int:
    """The first LF outside of quotes, or the end of the data; OPEN if a quote is open there, TOO_LONG if it stays so for long."""
    p = s
    while True:
        inner = p
        while inner < len(data) and data[inner] == SPACE and delimiter != SPACE:
            inner += 1
        if inner < len(data) and data[inner] == quote:
            p = inner + 1
            closed = False
            while p < len(data) and not closed:
                if p - s > MOST_LINE:
                    return TOO_LONG
                if data[p] == escape:
                    p += 1
                elif data[p] == quote:
                    if escape == NOTHING and p + 1 < len(data) and data[p + 1] == quote:
                        p += 1
                    else:
                        closed = True
                p += 1
            if not closed:
                return OPEN
        while p < len(data) and data[p] != LF and data[p] != delimiter:
            if data[p] == escape and p + 1 < len(data) and data[p + 1] != LF:
                p += 1
            p += 1
        if p >= len(data) or data[p] == LF:
            return p
        p += 1
