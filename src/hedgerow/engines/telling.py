"""Columns that tell the class nearly alone: often they say what became of it, and are not known when a prediction is needed.

An exact look at the rows, for a draft or a check: as private as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.codebook import Codebook
from hedgerow.schema.coders import NumericCoder
from hedgerow.schema.columns import one_column
from hedgerow.schema.schema import Schema

CELLS = 100  # of a number
NEARLY = 0.05  # of the rows that the most frequent class gets wrong: a column that gets no more wrong tells nearly alone
LEAST_ROWS = 50


def telling_columns(schema: Schema, columns: Mapping[str, Any], labels: Any) -> list[str]:
    """Those whose value alone tells the class of nearly all rows: each is judged by the other rows that have its value."""
    codebook = Codebook(schema, CELLS)
    classes = codebook.encode_classes(labels)
    counted = classes < codebook.n_classes
    if counted.sum() < LEAST_ROWS:
        return []
    codes, classes = codebook.encode({name: columns[name] for name in schema.names})[counted], classes[counted]
    wrong = len(classes) - int(np.bincount(classes).max())
    found = []
    for j, name in enumerate(schema.names if wrong else ()):
        least, coder = _wrong(codes[:, j], classes, codebook.n_classes), codebook.coders[j]
        if isinstance(coder, NumericCoder):
            least = min(least, _wrong_by_cut(coder.numbers(coder.whole_column(one_column(columns[name], name)))[counted], classes))
        found += [name] if least <= NEARLY * wrong else []
    return found


def _wrong_by_cut(numbers: NDArray[np.float64], classes: NDArray[Any]) -> int:
    """Rows that the best cut of a number gets wrong, where each side has its most frequent class; rows without a number are wrong."""
    there = ~np.isnan(numbers)
    order = np.argsort(numbers[there], kind="stable")
    ordered, of = numbers[there][order], classes[there][order]
    ends = np.flatnonzero(np.diff(ordered) > 0)  # the last row below each cut
    if not len(ends):
        return len(classes)
    most_below = most_above = np.zeros(len(ends), dtype=np.int64)
    for code in np.unique(of):
        below = np.cumsum(of == code)
        most_below, most_above = np.maximum(most_below, below[ends]), np.maximum(most_above, below[-1] - below[ends])
    return int(len(classes) - (most_below + most_above).max())


def _wrong(codes: NDArray[Any], classes: NDArray[Any], n_classes: int) -> int:
    """Rows whose class is not the most frequent one of the other rows with their code; a row alone is wrong."""
    table = np.bincount(codes.astype(np.int64) * n_classes + classes, minlength=(int(codes.max()) + 1) * n_classes).reshape(-1, n_classes)
    most, total = table.max(axis=1), table.sum(axis=1)
    return int((total - np.where(most > 1, most, 0)).sum())


def telling_text(names: list[str], target: str) -> str:
    """ "" without any."""
    if not names:
        return ""
    first = f"{', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}"
    return (
        f"nearly tell {target} alone: {first}. If they are only known once {target} is, or say the same in other words, leave them out "
        "(draft again with drop=['COLUMN'], or delete their entries), or a forest learns nothing else"
    )
