"""Theorem E1 by experiment: taking one row away changes nothing about how the others are encoded.

Tables of more than 100 rows with mixed types in every kind of container: libraries guess types from the first values, from
all values, or from whether one is missing, and each such guess would let one row change all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hedgerow.encoding import Codebook
from hedgerow.rows.memory import MemoryRows
from hedgerow.schema import Categorical, Numeric, Schema, Target

BIG = 2**53
SCHEMA = Schema(
    [
        Categorical("mixed", ["a", 1, True, 0.5], other="other", missing="none"),
        Categorical("big", [BIG, BIG + 1], other="other"),
        Numeric("number", 0, 10, missing="none"),
        Categorical("yes", [True, False]),
    ],
    Target("class", ["x", 1]),
)
CODEBOOK = Codebook(SCHEMA)
ODD_ROWS: list[list[Any]] = [
    ["a", BIG, 1.5, True],
    [1, BIG + 1, 9.0, False],
    [True, None, None, None],
    [0.5, BIG + 1, "seven", "unknown"],
    [None, 3, float("inf"), True],
    ["zz", BIG + 1, 3, False],
    [10**5000, BIG, 10**400, True],
    [[1], {"a": 1}, object(), b"x"],
]


def rows(n: int) -> list[list[Any]]:
    """Mostly one type at first, then others: what a guess from the first values would get wrong."""
    return [ODD_ROWS[0]] * 120 + [ODD_ROWS[1]] * 50 + [ODD_ROWS[i % len(ODD_ROWS)] for i in range(n)]


def columns(table: list[list[Any]]) -> dict[str, list[Any]]:
    return {name: [row[j] for row in table] for j, name in enumerate(SCHEMA.names)}


def objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


ANY: dict[str, Callable[[list[list[Any]]], Any]] = {
    "list of rows": lambda table: table,
    "mapping of lists": columns,
    "mapping of objects": lambda table: {name: objects(column) for name, column in columns(table).items()},
    "pandas objects": lambda table: pd.DataFrame({n: pd.Series(objects(c), dtype=object) for n, c in columns(table).items()}),
    "array of objects": lambda table: np.stack([objects(c) for c in columns(table).values()], axis=1),
}


def typed(table: list[list[Any]]) -> dict[str, list[Any]]:
    """The same rows as a table with declared column types can hold them."""
    found = columns(table)
    return {
        "mixed": [None if v is None else str(v) if not isinstance(v, int) or v < 10**9 else "big" for v in found["mixed"]],
        "big": [v if isinstance(v, int) else None for v in found["big"]],
        "number": [float(v) if isinstance(v, float) else None for v in found["number"]],
        "yes": [v if isinstance(v, bool) else None for v in found["yes"]],
    }


TYPES = {"mixed": pl.String, "big": pl.Int64, "number": pl.Float64, "yes": pl.Boolean}
PANDAS = {"mixed": "string", "big": "Int64", "number": "Float64", "yes": "boolean"}
TYPED: dict[str, Callable[[list[list[Any]]], Any]] = {
    "polars": lambda table: pl.DataFrame(typed(table), schema=TYPES),
    "pyarrow": lambda table: pl.DataFrame(typed(table), schema=TYPES).to_arrow(),
    "pandas nullable": lambda table: pd.DataFrame({n: pd.array(c, dtype=PANDAS[n]) for n, c in typed(table).items()}),
    "pandas categorical": lambda table: pd.DataFrame(
        {n: pd.array(c, dtype=PANDAS[n]) for n, c in typed(table).items()}
    ).astype({"mixed": pd.CategoricalDtype(["a", "1", "True", "0.5", "zz", "big", "[1]"])}),
}


@pytest.mark.parametrize("container", [*ANY, *TYPED])
def test_taking_a_row_away_changes_no_other_row(container: str) -> None:
    make = {**ANY, **TYPED}[container]
    table = rows(40)
    whole = CODEBOOK.encode(make(table))
    for gone in [0, 119, 120, 169, *range(170, 170 + 2 * len(ODD_ROWS))]:
        without = CODEBOOK.encode(make(table[:gone] + table[gone + 1 :]))
        assert np.array_equal(without, np.delete(whole, gone, axis=0)), gone
    for kept in (1, 5, 121):
        assert np.array_equal(CODEBOOK.encode(make(table[:kept])), whole[:kept])


@pytest.mark.parametrize("container", list(ANY))
def test_containers_of_objects_agree(container: str) -> None:
    table = rows(40)
    assert np.array_equal(CODEBOOK.encode(ANY[container](table)), CODEBOOK.encode(ANY["mapping of objects"](table)))


@pytest.mark.parametrize("container", list(TYPED))
def test_typed_containers_agree(container: str) -> None:
    table = rows(40)
    assert np.array_equal(CODEBOOK.encode(TYPED[container](table)), CODEBOOK.encode(typed(table)))


LABELS = ["x"] * 150 + [1] * 30 + [None, "y", 1.0, "1"]


@pytest.mark.parametrize(
    "make", [list, objects, lambda y: pd.Series(objects(y), dtype=object)], ids=["list", "objects", "pandas"]
)
def test_labels_too(make: Callable[[list[Any]], Any]) -> None:
    whole = CODEBOOK.encode_classes(make(LABELS))
    assert whole.tolist() == [0] * 150 + [1] * 30 + [2, 2, 1, 1]
    for gone in (0, 149, 150, 180, 183):
        assert np.array_equal(CODEBOOK.encode_classes(make(LABELS[:gone] + LABELS[gone + 1 :])), np.delete(whole, gone))


def test_a_row_of_the_wrong_width_has_missing_cells() -> None:
    table = [*rows(3), ["a"], "text", None, 7]
    codes = CODEBOOK.encode(table)
    assert np.array_equal(codes[:-4], CODEBOOK.encode(rows(3)))
    missing = CODEBOOK.encode([[None] * 4])[0]
    assert all(np.array_equal(row, missing) for row in codes[-4:])


def test_progress_does_not_show_the_number_of_rows() -> None:
    from strategies import small_schema, small_table

    from hedgerow.growers import rdt

    codebook = Codebook(small_schema())
    trees = [rdt.build_tree_structure(codebook, 2, "bins", np.random.default_rng(i)) for i in range(3)]
    told: list[list[float]] = []
    for n in (0, 1, 700, 30_000):
        told.append([])
        MemoryRows(*small_table(n), codebook, 1, told[-1].append).leaf_counts(trees)
    assert all(shares == told[0] for shares in told)
    assert len(told[0]) == 100
