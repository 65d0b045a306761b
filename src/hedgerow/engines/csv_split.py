"""Records of a CSV file to Arrow batches of text. What a record is, and what becomes of it: `csv_loops.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from hedgerow.engines import csv_loops
from hedgerow.engines.csv_loops import LF, NOTHING
from hedgerow.engines.csv_loops import MOST_LINE as MOST_LINE
from hedgerow.schema.csv_dialect import CSVDialect

MOST_CELLS = 1 << 20  # of a batch: more than a block of whole rows has. Short lines of a wide table would fill the memory otherwise


class Splitter:
    """Records to Arrow batches of text, for files with one header.

    columns: all columns of the header; needed: those that are made, under the name `column` and their place in the header
    few: the files are so small that the loops need not be compiled
    """

    def __init__(self, columns: list[str], needed: list[str], dialect: CSVDialect, delimiter: str, few: bool = False) -> None:
        self._few = few
        self._loops: Any = csv_loops
        if not few:
            from hedgerow.engines import csv_compiled

            self._loops = csv_compiled
        quote, escape = (NOTHING if mark is None else ord(mark) for mark in (dialect.quote, dialect.escape))
        self.marks = (ord(delimiter), quote, escape)
        place, made = ({name: i for i, name in enumerate(names)} for names in (columns, needed))
        self._wanted = np.array([made.get(name, -1) for name in columns], dtype=np.int64)
        self.schema = pyarrow.schema([(f"column{place[name]}", pyarrow.string()) for name in needed])

    def parts(self, starts: NDArray[Any], ends: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """The same records, so many at a time that a batch of them has at most MOST_CELLS cells."""
        most = max(1, MOST_CELLS // len(self.schema))
        for first in range(0, max(1, len(starts)), most):
            yield starts[first : first + most], ends[first : first + most]

    def batch(self, data: NDArray[np.uint8], starts: NDArray[Any], ends: NDArray[Any]) -> tuple[Any, int]:
        """The rows of the records data[start:end], and the first record that was left out, or −1."""
        shape = (len(self.schema), len(starts))
        begin, length, kind = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.uint8)
        text = data.tobytes() if self._few else data
        rows, bad = self._loops.split(text, *map(self._given, (starts, ends)), *self.marks, self._given(self._wanted), begin, length, kind)
        columns = [self._column(text, begin[j, :rows], length[j, :rows], kind[j, :rows]) for j in range(shape[0])]
        return pyarrow.RecordBatch.from_arrays(columns, schema=self.schema), bad

    def joined(self, data: NDArray[np.uint8], at_end: bool, starts: NDArray[Any], ends: NDArray[Any]) -> tuple[int, int]:
        """Where records over several lines begin and end: how many, and how many bytes they take."""
        found: tuple[int, int] = self._loops.joined(data.tobytes() if self._few else data, *self.marks, at_end, starts, ends)
        return found

    def _given(self, array: NDArray[Any]) -> Any:
        """Plain numbers for loops that are not compiled: they are much faster with them."""
        return array.tolist() if self._few else array

    def _column(self, data: Any, begin: NDArray[np.int32], length: NDArray[np.int32], kind: NDArray[np.uint8]) -> Any:
        offsets, text = np.empty(len(length) + 1, dtype=np.int32), np.empty(int(length.sum()), dtype=np.uint8)
        self._loops.gather(data, self._given(begin), self._given(length), self._given(kind), *self.marks[1:], offsets, text)
        there = np.packbits(length > 0, bitorder="little")
        return pyarrow.Array.from_buffers(pyarrow.string(), len(length), list(map(pyarrow.py_buffer, (there, offsets, text))))


def lines(data: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each line begins and ends, its LF not counted. `data` ends with a whole line."""
    ends = np.flatnonzero(data == LF)
    if len(data) and data[-1] != LF:
        ends = np.append(ends, len(data))
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1] + 1
    return starts, ends
