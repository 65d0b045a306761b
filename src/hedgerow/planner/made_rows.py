"""Rows that stand in for the private ones: made from a schema, from a public table that is alike, or from an earlier release.

No private row is read, and nothing is paid: a release is post-processed, a public table is public.

    dummy     values evenly from the schema, classes by a rule that is made up: how ε and rows matter, not how hard the task is
    like      rows of a public table, drawn with replacement; those that are tested on are kept apart
    forest    pseudo-rows of an earlier release, each with a class drawn by the forest's own probabilities. With the class that it
              predicts, instead, the rows would be as easy as the forest is sure: every row would be right
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.release.release import Release, class_array
from hedgerow.schema.attributes import Categorical
from hedgerow.schema.schema import Schema
from hedgerow.sharing.pseudo.tables import pseudo_data

DUMMY, LIKE, FOREST = "dummy", "like", "forest"
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
    """columns, labels: the public table. A third of it is only tested on."""
    if len(labels) < 30:
        raise PlanError(f"like: the public table has {len(labels)} rows; expected at least 30.")

    def make(seed: int) -> MadeRows:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(labels))
        tested, known = np.split(order, [len(labels) // 3])
        drawn = rng.choice(known, rows, replace=True)
        tested = tested[:TEST_ROWS]
        return MadeRows(_of(columns, drawn), labels[drawn], _of(columns, tested), labels[tested])

    return make


def forest_rows(release: Release, rows: int) -> Maker:
    def make(seed: int) -> MadeRows:
        rng = np.random.default_rng([seed, 1])
        made = pseudo_data(release, rows + TEST_ROWS, method="forest", seed=seed)
        labels = release.classes[_drawn(release.predict_codes_proba(made.codes), rng)]
        order = rng.permutation(len(made))
        return _cut(_of(made.columns, order), labels[order], rows)

    return make


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
