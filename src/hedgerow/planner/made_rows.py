"""Rows that stand in for the private ones: made from a schema, from a public table that is alike, or from an earlier release.

No private row is read, and nothing is paid: a release is post-processed, a public table is public.

    dummy     values evenly from the schema, classes by a rule that is made up: how ε and rows matter, not how hard the task is
    like      rows of a public table, drawn with replacement; those that are tested on are kept apart
    forest    rows of an earlier release: a class by its share, then each attribute by the released table of that class. A class is then
              drawn anew, by the forest's own probabilities: with that which it predicts, every row would be right
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.inference.vote import ADDITIVE
from hedgerow.release.release import Release, class_array
from hedgerow.schema.attributes import Categorical
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.sharing.pseudo.decoding import values_array, values_by_code
from hedgerow.sharing.pseudo.tables import pseudo_data

DUMMY, LIKE, FOREST, MEASURED = "dummy", "like", "forest", "measured"
TEST_ROWS = 5_000
_STRENGTH = 1.5  # of the made-up rule of dummy rows: the standard deviation of its scores
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class MadeRows:
    """Rows to train on and rows to test on."""

    train: Columns
    train_labels: NDArray[Any]
    test: Columns
    test_labels: NDArray[Any]


Maker = Callable[[int], MadeRows]  # from a seed


def dummy_rows(schema: Schema, rows: int) -> Maker:
    def make(seed: int) -> MadeRows:
        rng, n = np.random.default_rng(seed), rows + TEST_ROWS
        classes = class_array(schema)
        scores = np.zeros((n, len(classes)))
        columns: Columns = {}
        weight = _STRENGTH / np.sqrt(len(schema.attributes))
        for attribute in schema.attributes:
            if isinstance(attribute, Categorical):
                place = rng.integers(0, len(attribute.values), n)
                values = np.empty(len(attribute.values), dtype=object)
                values[:] = list(attribute.values)
                columns[attribute.name] = values[place]
                scores += weight * rng.normal(size=(len(values), len(classes)))[place]
            else:
                share = rng.random(n)
                columns[attribute.name] = attribute.low + share * (attribute.high - attribute.low)
                scores += weight * (share[:, None] * 2 - 1) * rng.normal(size=len(classes)) * np.sqrt(3)
        return _cut(columns, classes[_drawn(_softmax(scores), rng)], rows)

    return make


def like_rows(schema: Schema, rows: int, columns: Columns, labels: NDArray[Any]) -> Maker:
    """columns, labels: the public table. A third of it is only tested on, of that what has a declared class: another cannot be told."""
    labelled = Codebook(schema).encode_classes(labels) < len(schema.target.classes)
    if labelled.sum() < 30:
        raise PlanError(f"like: the public table has {labelled.sum()} rows with a declared class; expected at least 30.")

    def make(seed: int) -> MadeRows:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(labels))
        tested, known = np.split(order, [len(labels) // 3])
        drawn = rng.choice(known, rows, replace=True)
        tested = tested[labelled[tested]][:TEST_ROWS]
        return MadeRows(_of(columns, drawn), labels[drawn], _of(columns, tested), labels[tested])

    return make


def forest_rows(release: Release, rows: int) -> Maker:
    def make(seed: int) -> MadeRows:
        rng = np.random.default_rng([seed, 1])
        columns, codes = _rows_of(release, rows + TEST_ROWS, rng)
        labels = release.classes[_drawn(release.predict_codes_proba(codes), rng)]
        return _cut(columns, labels, rows)

    return make


def own_shares(release: Release) -> NDArray[np.float64]:
    """The class probabilities that a forest gives to rows of its own: (TEST_ROWS, classes)."""
    return release.predict_codes_proba(_rows_of(release, TEST_ROWS, np.random.default_rng(0))[1])


def _rows_of(release: Release, n: int, rng: np.random.Generator) -> tuple[Columns, NDArray[Any]]:
    """Columns and codes. Attributes hang together by the class alone, but for other forests than Hedgerow's: there as paths say."""
    codebook = release.codebook
    if release.vote != ADDITIVE:
        made = pseudo_data(release, n, method="forest", seed=int(rng.integers(2**32)))
        order = rng.permutation(n)
        return _of(made.columns, order), made.codes[order]
    tables = release.additive.tables
    classes = rng.choice(codebook.n_classes, n, p=tables.pi)
    codes, columns = np.empty((n, len(codebook.sizes)), dtype=codebook.dtype), {}
    for j, entry in enumerate(codebook.schema.attributes):
        shares = np.repeat(release.additive.shares_of_codes(j)[:, None], codebook.n_classes, axis=1)
        if j in tables.attributes:
            one = tables.attributes[j]
            shares *= np.exp(one.flat[one.group])
        codes[:, j] = _drawn((shares / shares.sum(axis=0)).T[classes], rng)
        if isinstance(entry, Categorical):
            columns[entry.name] = values_array(values_by_code(entry))[codes[:, j]]
        else:
            edges = np.append(entry.cell_edges(codebook.bins), np.full(codebook.sizes[j], np.nan))  # beyond the cells: missing
            low, high = edges[codes[:, j]], edges[codes[:, j].astype(np.int64) + 1]
            columns[entry.name] = np.minimum(low + rng.random(n) * (high - low), np.nextafter(high, low))
            columns[entry.name][codes[:, j] >= codebook.numeric_cells(j)] = np.nan
    return columns, codes


def _drawn(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A class for each row, by its probabilities."""
    below = np.cumsum(shares, axis=1) < rng.random(len(shares))[:, None]
    return np.asarray(np.minimum(below.sum(axis=1), shares.shape[1] - 1), dtype=np.int64)


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _cut(columns: Columns, labels: NDArray[Any], rows: int) -> MadeRows:
    first, last = slice(0, rows), slice(rows, None)
    return MadeRows(_of(columns, first), labels[first], _of(columns, last), labels[last])


def _of(columns: Columns, which: Any) -> Columns:
    return {name: column[which] for name, column in columns.items()}
