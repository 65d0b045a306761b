"""From values to small integers: a row of a table becomes one code for each attribute.

Encoding is a function of one row alone and of the public schema. It never raises because of a value that it meets:
whatever is not declared takes the branch that the schema names for it, or the code `sizes[j]`, which has no branch.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import formatting
from hedgerow.errors import SchemaError
from hedgerow.parallel import in_threads, row_blocks
from hedgerow.schema.attributes import Categorical, Numeric, text_of
from hedgerow.schema.coders import CategoricalCoder, Coder, number_coder
from hedgerow.schema.column_types import check_code_types
from hedgerow.schema.columns import columns_of, one_column
from hedgerow.schema.schema import Schema

BLOCK = 4_096  # rows encoded at a time, so that they and the temporary arrays stay in cache
MAX_DOMAIN = 60_000
MAX_BINS = 10_000
MAX_ATTRIBUTES = 60_000
MAX_CODES = 1_000_000  # cells of all numeric attributes together


@dataclass(frozen=True)
class Codebook:
    """A schema with the number of equal-width cells for numeric attributes that have no edges of their own."""

    schema: Schema
    bins: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 1 <= self.bins <= MAX_BINS:
            raise SchemaError(f"bins: got {self.bins!r}; expected a whole number from 1 to {MAX_BINS}.")
        attributes = self.schema.attributes
        if len(attributes) > MAX_ATTRIBUTES or len(attributes) * self.bins > MAX_CODES:
            raise SchemaError(f"schema: {len(attributes)} attributes with {self.bins} bins are too many to be coded.")
        widest = max(*self.sizes, len(self.schema.target.classes))
        if widest > MAX_DOMAIN:
            raise SchemaError(f"schema: an attribute or the target has {widest} values; at most {MAX_DOMAIN} can be coded.")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of branches of each attribute (the papers' domain size)."""
        return tuple(_size(attribute, self.bins) for attribute in self.schema.attributes)

    @property
    def n_classes(self) -> int:
        return len(self.schema.target.classes)

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        return np.uint8 if max(self.sizes) < 255 else np.uint16

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """What each code of each attribute means, in words a person would use."""
        return tuple(_labels(attribute, self.bins) for attribute in self.schema.attributes)

    @cached_property
    def edge_texts(self) -> tuple[list[str], ...]:
        """The ends of the cells of each number, for people; nothing for what is no number."""
        return tuple(each.edge_texts(self.bins) if isinstance(each, Numeric) else [] for each in self.schema.attributes)

    @cached_property
    def _first_whole(self) -> tuple[list[int | None], ...]:
        return tuple(each.first_whole(self.bins) if isinstance(each, Numeric) else [] for each in self.schema.attributes)

    def range_text(self, attribute: int, first: int, last: int) -> str:
        """What the cells of a number from the first to the last hold, for people: "25.7 to 28.3", "26 to 28", two dates."""
        texts, whole, entry = self.edge_texts[attribute], self._first_whole[attribute], self.schema.attributes[attribute]
        low, high = whole[first], whole[last + 1]
        if low is None or high is None:
            return f"{texts[first]} to {texts[last + 1]}"
        high -= last + 2 < len(whole)  # the last cell holds its end, too
        if low > high:
            assert isinstance(entry, Numeric)
            ends = formatting.edges(entry.cell_edges(self.bins))
            return f"{ends[first]} to {ends[last + 1]}, no whole number"
        return formatting.bound(low) if low == high else f"{formatting.bound(low)} to {formatting.bound(high)}"

    def holds_none(self, attribute: int, cell: int) -> bool:
        """Whether no value can be in a cell of an attribute of whole numbers: 1.25 to 1.5. The outer ones hold what is beyond."""
        whole = self._first_whole[attribute]
        if not 0 < cell < len(whole) - 2:
            return False
        low, high = whole[cell], whole[cell + 1]
        return low is not None and high is not None and low >= high

    def numeric_cells(self, attribute: int) -> int:
        """How many leading codes of the attribute are cells in numeric order (0 if it is categorical)."""
        entry = self.schema.attributes[attribute]
        return len(entry.cell_edges(self.bins)) - 1 if isinstance(entry, Numeric) else 0

    @cached_property
    def declared(self) -> tuple[int, ...]:
        """How many leading codes of each attribute are declared values; those after them say missing, another value, or no branch."""
        attributes = enumerate(self.schema.attributes)
        return tuple(len(each.values) if isinstance(each, Categorical) else self.numeric_cells(a) for a, each in attributes)

    @cached_property
    def elsewhere(self) -> tuple[int, ...]:
        """Of each attribute the code of values that are not listed, where `other` gives them a branch of their own; -1 without."""
        attributes = zip(self.schema.attributes, self._coders, strict=True)
        own = [
            each.other if isinstance(each, CategoricalCoder) and getattr(entry, "other", None) is not None else -1
            for entry, each in attributes
        ]
        return tuple(-1 if code == getattr(each, "missing", -1) else code for code, each in zip(own, self._coders, strict=True))

    @cached_property
    def _coders(self) -> tuple[Coder, ...]:
        return tuple(
            number_coder(attribute, self.bins) if isinstance(attribute, Numeric) else CategoricalCoder(attribute)
            for attribute in self.schema.attributes
        )

    @cached_property
    def _class_coder(self) -> CategoricalCoder:
        return CategoricalCoder(Categorical(self.schema.target.name, self.schema.target.classes))

    @property
    def coders(self) -> tuple[Coder, ...]:
        """One coder for each attribute, then one for the target."""
        return (*self._coders, self._class_coder)

    def encode(self, table: Any, n_jobs: int = 1, absent: Collection[str] = ()) -> NDArray[np.unsignedinteger[Any]]:
        """Codes of all rows, one row of codes for each row of the table. A column that is `absent` has no branch for any row."""
        if self._is_table_of_whole_numbers(table):
            return self._encode_whole_numbers(table, n_jobs)
        places = [j for j, name in enumerate(self.schema.names) if name not in absent]
        found = columns_of(table, [self.schema.names[j] for j in places], dates=self.schema.dates)
        columns = dict(zip(places, found, strict=True))
        check_code_types(found, [self.schema.attributes[j] for j in places])
        codes = np.empty((len(columns[places[0]]), len(self.schema.names)), dtype=self.dtype)
        if absent:
            codes[:] = self.sizes
        arrays = [j for j in places if isinstance(columns[j], np.ndarray)]
        # Columns of one array share cache lines, so they are read together; others are converted one at a time.
        for group in [arrays, *([j] for j in places if j not in arrays)]:
            names = self.schema.names
            whole = [(j, self._coders[j], self._coders[j].guarded(columns[j], names[j])) for j in group]

            def encode_rows(rows: slice, whole: list[tuple[int, Coder, NDArray[Any]]] = whole) -> None:
                for start in range(rows.start, rows.stop, BLOCK):
                    block = slice(start, min(start + BLOCK, rows.stop))
                    for j, coder, column in whole:
                        coder.encode_into(column[block], codes[block, j])

            in_threads(encode_rows, row_blocks(len(codes)), n_jobs)
        return codes

    def _is_table_of_whole_numbers(self, table: Any) -> bool:
        """An array that one compiled pass can encode: int64, row after row, narrow categorical domains only."""
        return (
            type(table) is np.ndarray
            and table.dtype == np.int64
            and table.ndim == 2
            and table.shape[1] == len(self._coders)
            and table.flags.c_contiguous
            and all(isinstance(coder, CategoricalCoder) and coder.narrow for coder in self._coders)
        )

    def _encode_whole_numbers(self, table: NDArray[np.int64], n_jobs: int) -> NDArray[np.unsignedinteger[Any]]:
        from hedgerow.schema.coding_loops import look_up_all

        lows = np.array([coder.low for coder in self._coders if isinstance(coder, CategoricalCoder)])
        tables = np.stack([coder.padded for coder in self._coders if isinstance(coder, CategoricalCoder)])
        codes = np.empty(table.shape, dtype=self.dtype)
        in_threads(lambda rows: look_up_all(table[rows], lows, tables, codes[rows]), row_blocks(len(codes)), n_jobs)
        return codes

    def encode_classes(self, labels: Any) -> NDArray[np.uint16]:
        """Class codes; a label that is not declared has the code `n_classes` and is counted nowhere."""
        name = self.schema.target.name
        column = self._class_coder.guarded(one_column(labels, name), name)
        parts = [self._class_coder.encode(column[i : i + BLOCK]) for i in range(0, len(column), BLOCK)]
        return np.concatenate(parts).astype(np.uint16) if parts else np.empty(0, np.uint16)


def _size(attribute: Categorical | Numeric, bins: int) -> int:
    if isinstance(attribute, Categorical):
        return len(attribute.domain)
    return len(attribute.cell_edges(bins)) - 1 + (attribute.missing is not None)


def _labels(attribute: Categorical | Numeric, bins: int) -> tuple[str, ...]:
    if isinstance(attribute, Categorical):
        return tuple(text_of(value) for value in attribute.domain)
    edges = attribute.cell_edges(bins)
    ends = [f"{edge:.6g}" for edge in edges]
    cells = [f"{a} to {b}" for a, b in pairwise(ends)]
    return tuple(cells + ([attribute.missing] if attribute.missing is not None else []))
