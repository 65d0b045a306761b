"""Columns that tell the class nearly alone: often they say what became of it, and are not known when a prediction is needed.

An exact look at the rows, for a draft or a check: as private as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.codebook import Codebook
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
    return [name for j, name in enumerate(schema.names) if wrong and _wrong(codes[:, j], classes, codebook.n_classes) <= NEARLY * wrong]


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
