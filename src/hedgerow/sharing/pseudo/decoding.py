"""From codes back to declared values, in a way that reads back as the same codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.attributes import Categorical, Numeric, Target, Value, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.columns import objects
from hedgerow.schema.schema import Schema


def values_by_code(entry: Categorical | Target) -> list[Value | None]:
    """What each code stands for. The branch of missing values is None: its name, written down, would be just another text."""
    if isinstance(entry, Target):
        return list(entry.classes)
    values: list[Value | None] = list(entry.domain)
    own = {text_of(value) for value in (*entry.values, *(() if entry.other is None else (entry.other,)))}
    if entry.missing is not None and text_of(entry.missing) not in own:
        values[-1] = None  # it comes last in a domain
    return values


def one_type(values: Sequence[Value | None]) -> type | None:
    """The type that all values have, those that are missing aside; None if they differ."""
    types = {type(value) for value in values if value is not None}
    return types.pop() if len(types) == 1 else None


def value_text(value: Value | None) -> str:
    """A value as a cell of a CSV: text as it was declared, 1.0 as 1, True as true, nothing where it is missing."""
    return "" if value is None else value if isinstance(value, str) else text_of(value)


def values_array(values: Sequence[Value | None]) -> NDArray[Any]:
    """One entry for each code: of the values' own type where they have one, else objects."""
    return np.array(values) if None not in values and one_type(values) is not None else objects(values)


def same_meaning(a: Schema, b: Schema) -> bool:
    """Whether rows of one schema are rows of the other: the same columns, values in the same order, bounds, branches and classes.

    Cells may differ: a number is a number, wherever it is cut.
    """
    return _meaning(a) == _meaning(b)


def _meaning(schema: Schema) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [(schema.target.name, *map(text_of, schema.target.classes))]
    for entry in schema.attributes:
        if isinstance(entry, Categorical):
            found.append((entry.name, entry.other, entry.missing, *map(text_of, entry.values)))
        else:
            found.append((entry.name, entry.low, entry.high, entry.missing, entry.date))
    return found


def same_cells(a: Codebook, b: Codebook) -> bool:
    """Whether the codes of one mean the same in the other; for schemas with the same meaning."""
    return _cells(a) == _cells(b)


def _cells(codebook: Codebook) -> list[tuple[float, ...] | None]:
    return [entry.cell_edges(codebook.bins) if isinstance(entry, Numeric) else None for entry in codebook.schema.attributes]


def common_codebook(codebooks: Sequence[Codebook]) -> Codebook:
    """The first, or where the edges of a number differ, one that has the edges of all: trees that are cut at values have their own each."""
    first = codebooks[0]
    attributes = []
    for place, entry in enumerate(first.schema.attributes):
        others = [(each.schema.attributes[place], each.bins) for each in codebooks]
        numbers = [(other, bins) for other, bins in others if isinstance(other, Numeric)]
        if isinstance(entry, Numeric) and any(other.edges != entry.edges for other, _ in numbers):
            edges = {edge for other, bins in numbers for edge in other.cell_edges(bins)}
            groups = entry.taxonomy[0] if entry.taxonomy else ()
            entry = replace(entry, edges=tuple(sorted(edges.union(groups))))
        attributes.append(entry)
    if tuple(attributes) == first.schema.attributes:
        return first
    return Codebook(replace(first.schema, attributes=tuple(attributes)), first.bins)
