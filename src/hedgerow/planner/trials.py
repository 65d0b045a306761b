"""One trial: a private forest on made rows, and its accuracy on others."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowWarning
from hedgerow.planner.made_rows import Columns, MadeRows
from hedgerow.schema.schema import Schema
from hedgerow.training.algorithms import ALGORITHMS


def accuracy_of(algorithm: str, schema: Schema, epsilon: str, delta: str, rows: MadeRows, seed: int) -> float:
    """The rows are nobody's, so there is no budget to charge; the noise is that of a real fit."""
    each = ALGORITHMS[algorithm]
    settings: dict[str, Any] = {"epsilon": epsilon}
    if each.delta and delta != "0":
        settings["delta"] = delta
    if each.seeded or each.proposes:
        settings["random_state"] = seed
    model = getattr(import_module("hedgerow"), each.estimator)(schema=schema, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)
        release = model.fit(with_persons(rows.train, schema), rows.train_labels).release_
    predicted = release.predict_codes(release.codebook.encode(rows.test))
    return float(np.mean(predicted == release.codebook.encode_classes(rows.test_labels)))


def with_persons(columns: Columns, schema: Schema) -> Columns:
    """Where the schema names persons, each has as many rows as are counted of one: all rows count, and noise is for so many at once."""
    if schema.person is None:
        return columns
    n = len(next(iter(columns.values())))
    return {**columns, schema.person: np.arange(n) // schema.k}
