"""Columns that tell the class nearly alone: often they say what became of it, and are not known when a prediction is needed. Columns that
follow from others. And numbers nearly all of which lie in a few cells.

An exact look at the rows, for a draft or a check: as private as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.growing_edges import growing_edges
from hedgerow.inference.text import plain
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.coders import NumericCoder
from hedgerow.schema.columns import one_column
from hedgerow.schema.schema import Schema

CELLS = 100  # of a number
NEARLY = 0.25  # of the rows that the most frequent class gets wrong: a column that gets no more wrong tells nearly alone
ONE_CLASS = 0.05  # the same of a class of more than two, against all others
LEAST_ROWS = 50  # of all, and of such a class
FOLLOWS = 0.1  # of the rows that a column's most frequent value gets wrong: it follows from another that gets no more wrong
MOST_ROWS, MOST_LOOKS = 20_000, 200_000_000  # that columns are compared on, some of every part of a table; for all pairs of columns
MOST_COLUMNS, MOST_CELLS = 300, 1_000_000  # with more columns none are compared; nor two with more pairs of values


def hints_of(schema: Schema, columns: Mapping[str, Any], labels: Any) -> tuple[str, ...]:
    """In words."""
    telling = telling_text(telling_columns(schema, columns, labels), schema.target.name)
    return tuple(filter(None, (telling, repeated_text(repeated_columns(schema, columns)), crowded_text(crowded_columns(schema, columns)))))


def telling_columns(schema: Schema, columns: Mapping[str, Any], labels: Any) -> dict[str, str]:
    """Those whose value alone tells the class of nearly all rows, or whether it is a certain one, and then which, in words: each row is
    judged by the others.
    """
    codebook = Codebook(schema, CELLS)
    classes = codebook.encode_classes(labels)
    counted = classes < codebook.n_classes
    if counted.sum() < LEAST_ROWS:
        return {}
    codes, classes = codebook.encode({name: columns[name] for name in schema.names})[counted], classes[counted]
    rows = np.bincount(classes, minlength=codebook.n_classes)
    few = np.minimum(rows, len(classes) - rows)
    allowed = np.where((few >= LEAST_ROWS) & (codebook.n_classes > 2), ONE_CLASS * few, -1)
    found: dict[str, str] = {}
    for j, name in enumerate(schema.names if rows.max() < len(classes) else ()):
        wrong, of_class = _wrong(codes[:, j], classes, codebook.n_classes)
        coder = codebook.coders[j]
        if isinstance(coder, NumericCoder):
            numbers = coder.numbers(coder.whole_column(one_column(columns[name], name)))[counted]
            cut, of_cut = _wrong_by_cut(numbers, classes, codebook.n_classes)
            wrong, of_class = min(wrong, cut), np.minimum(of_class, of_cut)
        if wrong <= NEARLY * (len(classes) - rows.max()):
            found[name] = ""
        elif (of_class <= allowed).any():
            found[name] = f"whether it is {plain(schema.target.classes[int(np.argmin(of_class - allowed))])}"
    return found


def crowded_columns(schema: Schema, columns: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """Numbers that are declared by their bounds, a few of them far larger than the others: by name edges that tell the others apart."""
    codebook, found = Codebook(schema, CELLS), {}
    for attribute, coder in zip(schema.attributes, codebook.coders, strict=False):  # that of the target comes last
        if isinstance(attribute, Numeric) and isinstance(coder, NumericCoder) and attribute.edges is None and attribute.date is None:
            numbers = coder.numbers(coder.whole_column(one_column(columns[attribute.name], attribute.name)))
            inside = numbers[(numbers >= attribute.low) & (numbers <= attribute.high)]
            edges = growing_edges(attribute.low, attribute.high, inside, attribute.integer)
            if edges is not None:
                found[attribute.name] = edges
    return found


def repeated_columns(schema: Schema, columns: Mapping[str, Any]) -> dict[str, str]:
    """Columns whose value nearly follows from that of another, which stays, by their names: of two the later one."""
    if len(schema.names) > MOST_COLUMNS:
        return {}
    codebook, most = Codebook(schema, CELLS), min(MOST_ROWS, MOST_LOOKS // len(schema.names) ** 2)
    rows = len(one_column(columns[schema.names[0]], schema.names[0]))
    step = max(1, -(-rows // most))
    codes = codebook.encode({name: columns[name] for name in schema.names})[::step].astype(np.int64)
    ranks = codes.copy()
    for j, name in enumerate(schema.names):
        coder = codebook.coders[j]
        if isinstance(coder, NumericCoder):
            ranks[:, j] = _by_rank(coder.numbers(coder.whole_column(one_column(columns[name], name)))[::step])
    codings = [_Coded(codes), _Coded(ranks)] if (ranks != codes).any() else [_Coded(codes)]
    found: dict[int, int] = {}
    for j in reversed(range(len(schema.names))):
        for other in range(len(schema.names)) if j not in found.values() else ():  # that one stays
            if other != j and other not in found and any(each.follows(j, other) for each in codings):
                found[j] = other
                break
    return {schema.names[j]: schema.names[other] for j, other in sorted(found.items())}


class _Coded:
    """Columns of codes, and for each how many codes there are and how many rows its most frequent one gets wrong."""

    def __init__(self, codes: NDArray[np.int64]) -> None:
        self.columns = np.ascontiguousarray(codes.T)
        self.cells = [int(own.max(initial=0)) + 1 for own in self.columns]
        self.wrong = [len(codes) - int(np.bincount(own).max(initial=0)) for own in self.columns]

    def follows(self, j: int, other: int) -> bool:
        """Whether j nearly follows from the other. One that is the same nearly throughout explains little."""
        least = self.wrong[j]
        if least < LEAST_ROWS or self.wrong[other] < least / 2 or self.cells[j] * self.cells[other] > MOST_CELLS:
            return False
        most = _table(self.columns[other], self.columns[j], self.cells[j]).max(axis=1)
        return len(self.columns[j]) - int(most[most > 1].sum()) <= FOLLOWS * least


def _by_rank(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Cells of about as many rows each: the same of a number and of any increasing function of it, such as another unit."""
    there = ~np.isnan(numbers)
    if not there.any():
        return np.zeros(len(numbers), dtype=np.int64)
    ordered = np.sort(numbers[there])
    edges = np.unique(ordered[np.arange(1, CELLS) * len(ordered) // CELLS])
    return np.where(there, np.searchsorted(edges, numbers, side="right") + 1, 0)


Wrong = tuple[int, NDArray[np.int64]]
"""Rows whose class is told wrongly, and of each class those of which it is wrong whether it is that one."""


def _wrong_by_cut(numbers: NDArray[np.float64], classes: NDArray[Any], n_classes: int) -> Wrong:
    """By the best cut of a number, where each side has its most frequent class; rows without a number are wrong."""
    there = ~np.isnan(numbers)
    order = np.argsort(numbers[there], kind="stable")
    ordered, of = numbers[there][order], classes[there][order]
    ends = np.flatnonzero(ordered[1:] > ordered[:-1])  # the last row below each cut
    if not len(ends):
        return len(classes), np.full(n_classes, len(classes))
    most_below = most_above = np.zeros(len(ends), dtype=np.int64)
    right_of = []
    for code in range(n_classes):
        own = np.cumsum(of == code)
        below, above = own[ends], own[-1] - own[ends]
        most_below, most_above = np.maximum(most_below, below), np.maximum(most_above, above)
        others = ends + 1 - below, len(of) - ends - 1 - above
        right_of.append((np.maximum(below, others[0]) + np.maximum(above, others[1])).max())
    return int(len(classes) - (most_below + most_above).max()), len(classes) - np.array(right_of)


def _wrong(codes: NDArray[Any], classes: NDArray[Any], n_classes: int) -> Wrong:
    """By the most frequent class of the other rows with the same code; a row alone is wrong."""
    table = _table(codes.astype(np.int64), classes, n_classes)
    total = table.sum(axis=1)
    most, of_two = table.max(axis=1), np.maximum(table, total[:, None] - table)
    return int((total - np.where(most > 1, most, 0)).sum()), (total[:, None] - np.where(of_two > 1, of_two, 0)).sum(axis=0)


def _table(codes: NDArray[np.int64], classes: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
    return np.bincount(codes * n_classes + classes, minlength=(int(codes.max()) + 1) * n_classes).reshape(-1, n_classes)


def telling_text(found: Mapping[str, str], target: str) -> str:
    """ "" without any."""
    if not found:
        return ""
    named = [f"{name} ({what})" if what else name for name, what in found.items()]
    first = f"{', '.join(named[:8])}{f' and {len(named) - 8} more' if len(named) > 8 else ''}"
    return (
        f"nearly tell {target} alone: {first}. If they are only known once {target} is, or say the same in other words, leave them out "
        f"(draft again with drop={list(found)}, or delete their entries), or a forest learns nothing else"
    )


def crowded_text(found: Mapping[str, tuple[float, ...]]) -> str:
    """ "" without any."""
    if not found:
        return ""
    each = [f"{name} (edges = [{', '.join(f'{edge:.12g}' for edge in edges)}])" for name, edges in found.items()]
    first = f"{', '.join(each[:4])}{f' and {len(each) - 4} more' if len(each) > 4 else ''}"
    return (
        "nearly all rows lie in a few of the cells of equal width between the bounds, where a forest cannot tell them apart. Declare edges "
        f"in the schema, or bounds that leave out the few that are far larger: {first}"
    )


def repeated_text(found: Mapping[str, str]) -> str:
    """ "" without any."""
    if not found:
        return ""
    named = [f"{name} (from {other})" for name, other in found.items()]
    first = f"{', '.join(named[:8])}{f' and {len(named) - 8} more' if len(named) > 8 else ''}"
    return (
        f"nearly follow from other columns: {first}. They tell a forest little that is new, and one that is read from counts may count it "
        f"several times: you may leave them out (drop={list(found)})"
    )
