"""Theorem E1 by experiment: taking one row away changes nothing about how the others are encoded.

Tables of more than 100 rows with mixed types in every kind of container: libraries guess types from the first values, from
all values, or from whether one is missing, and each such guess would let one row change all others.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import exact as exact_answers
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hedgerow.engines.files import TableFile
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import TableError
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema

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
    "pandas categorical": lambda table: pd.DataFrame({n: pd.array(c, dtype=PANDAS[n]) for n, c in typed(table).items()}).astype(
        {"mixed": pd.CategoricalDtype(["a", "1", "True", "0.5", "zz", "big", "[1]"])}
    ),
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


@pytest.mark.parametrize("make", [list, objects, lambda y: pd.Series(objects(y), dtype=object)], ids=["list", "objects", "pandas"])
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
        exact_answers.leaf_counts(MemoryRows(*small_table(n), codebook, 1, told[-1].append), trees)
    assert all(shares == told[0] for shares in told)
    assert len(told[0]) == 100


# ---------------------------------------------------------------- more ways in which one row could reach another


B = 2**53
WHOLE = Codebook(Schema([Categorical("a", [B, B + 1])], Target("y", [B, B + 1])))


@pytest.mark.parametrize(
    "make",
    [
        lambda values: pd.array(values, dtype="Int64"),
        lambda values: pd.Series(values, dtype="Int64"),
        lambda values: pd.Series(pd.Categorical(values, categories=[B, B + 1])),
        lambda values: pd.Categorical(values, categories=[B, B + 1]),
        lambda values: pl.Series(values, dtype=pl.Int64),
        lambda values: pa.array(values, type=pa.int64()),
        lambda values: np.ma.masked_array([v or 0 for v in values], [v is None for v in values]),
        list,
    ],
    ids=["Int64 array", "Int64", "category", "Categorical", "polars", "pyarrow", "masked", "list"],
)
def test_a_null_does_not_blur_large_numbers(make: Callable[[list[Any]], Any]) -> None:
    for values, codes in (([B, B + 1, B + 1], [0, 1, 1]), ([B, B + 1, B + 1, None], [0, 1, 1, 2])):
        assert WHOLE.encode({"a": make(values)}).ravel().tolist() == codes
        assert WHOLE.encode_classes(make(values)).tolist() == codes


def test_equal_values_with_other_texts_are_read_alone() -> None:
    codebook = Codebook(Schema([Categorical("a", ["1", "2"])], Target("y", [0, 1])))
    one, two = Decimal("1.00"), Decimal("1.0")
    assert codebook.encode({"a": [one, two]}).ravel().tolist() == [2, 0]
    assert codebook.encode({"a": [two]}).ravel().tolist() == [0]
    pairs = Codebook(Schema([Categorical("a", ["(0, 1)", "(1, 2)"])], Target("y", [0, 1])))
    assert pairs.encode({"a": [(0, 1), (1, 2)]}).ravel().tolist() == [0, 1]


def test_extreme_numbers_stay_inside() -> None:
    far = 17 * 10**17
    codebook = Codebook(Schema([Categorical("a", range(far, far + 200))], Target("y", [0, 1])))
    assert codebook.encode(np.array([[1e19], [0.0], [np.nan], [-1e300]])).ravel().tolist() == [200] * 4
    for low, high in ((0.0, 1e-300), (0.0, 5e-324), (-1e308, 7e307), (1e300, 1e300 * 1.0000001)):
        cells = Codebook(Schema([Numeric("a", low, high)], Target("y", [0, 1])), 7)
        numbers = np.array([-np.inf, -1.0, low, (low / 2 + high / 2), high, 1.0, np.inf, np.nan, 1e308])
        edges = cells.schema.attributes[0].cell_edges(7)  # type: ignore[union-attr]
        wanted = [len(edges) - 1 if x != x else sum(x >= edge for edge in edges[1:-1]) for x in numbers]
        assert cells.encode(numbers[:, None]).ravel().tolist() == wanted


def test_hostile_objects_are_values_like_any_other() -> None:
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise ValueError("SECRET 43")

        def __eq__(self, other: object) -> bool:
            raise ValueError("SECRET 43")

        def __hash__(self) -> int:
            raise ValueError("SECRET 43")

        def __str__(self) -> str:
            raise ValueError("SECRET 43")

    class Row(list[Any]):
        def __len__(self) -> int:
            raise ValueError("SECRET 43")

    table = [[Hostile()] * 4, Row([1, 2, 3, 4]), ["a", B, 1.0, True]]
    assert CODEBOOK.encode(table)[2].tolist() == CODEBOOK.encode([table[2]])[0].tolist()


@pytest.mark.parametrize("shape", [(700, 1), (700, 2), (1, 700), ()])
def test_labels_and_columns_have_one_dimension(shape: tuple[int, ...]) -> None:
    from strategies import small_schema, small_table

    from hedgerow import Budget, PrivateRDTClassifier, private_score

    columns, labels = small_table(700)
    model = PrivateRDTClassifier(small_schema(), 50).fit(columns, labels)
    wrong = np.resize(labels, shape)
    budget = Budget(10)
    for act in (
        lambda: private_score(model, columns, wrong, epsilon=1, budget=budget),
        lambda: PrivateRDTClassifier(small_schema(), 1, budget=budget).fit(columns, wrong),
        lambda: PrivateRDTClassifier(small_schema(), 1, budget=budget).fit({**columns, "flag": wrong}, labels),
    ):
        with pytest.raises(TableError) as raised:
            act()
        assert "700" not in str(raised.value)
    assert budget.spent == 0


@pytest.mark.parametrize("dates", [pd.Series(pd.to_datetime(["2020-01-01"] * 3)), pl.Series([[1], [2], [3]])], ids=["dates", "lists"])
def test_types_that_cannot_be_read_value_by_value_are_refused_before_the_charge(dates: Any) -> None:
    from hedgerow import Budget, PrivateRDTClassifier

    budget = Budget(1)
    schema = Schema([Categorical("a", ["x"])], Target("y", [0, 1]))
    with pytest.raises(TableError, match="Convert it first"):
        PrivateRDTClassifier(schema, 1, budget=budget).fit({"a": dates}, [0, 1, 0])
    assert budget.spent == 0


def test_no_private_value_lives_on_in_the_release() -> None:
    from hedgerow import PrivateRDTClassifier

    schema = Schema([Categorical("a", ["x"], other="other")], Target("y", [0, 1]))
    release = PrivateRDTClassifier(schema, 1).fit({"a": ["Jane Doe", "x"] * 50}, [0, 1] * 50).release_
    assert b"Jane" not in pickle.dumps(release.codebook) + pickle.dumps(release.forest) + pickle.dumps(release)


def test_a_path_means_one_file(tmp_path: Any) -> None:
    for name in ("p1.csv", "p[1].csv"):
        (tmp_path / name).write_text("a,y\nx,0\n")
    with pytest.raises(TableError, match="other files"):
        TableFile(tmp_path / "p[1].csv", ["a"])
    assert TableFile(tmp_path / "p1.csv", ["a"]).columns == {"a": "VARCHAR", "y": "VARCHAR"}


def test_lines_that_are_no_rows_are_left_out_one_by_one(tmp_path: Any) -> None:
    codebook = Codebook(Schema([Categorical("a", ["x", "né"], other="other"), Numeric("b", 0, 10)], Target("y", ["é", "n"])))
    good = "a,b,y\nx,1,é\nné,9,n\n".encode()
    path = tmp_path / "rows.csv"
    for bad in (b"", b"caf\xe9,1,n\n", b"x,\xff,n\n", b"x,1,\xe9\n", b"x,1,n,more,cells\n"):
        path.write_bytes(good + bad + "x,9,é\n".encode())
        codes, classes = TableFile(path, ["a", "b", "y"], leave_out_unreadable=True).read(codebook)
        assert codes[[0, 1, -1]].tolist() == [[0, 0], [1, 4], [0, 4]]
        assert classes[[0, 1, -1]].tolist() == [0, 1, 0]
        assert len(codes) <= 4
    path.write_bytes(good + b"caf\xe9,1,n\n")
    with pytest.raises(TableError):  # a prediction is wanted for every row
        TableFile(path, ["a", "b"]).codes(codebook)


def test_text_that_is_no_utf8_is_a_value_like_any_other() -> None:
    codebook = Codebook(Schema([Categorical("a", ["x", "né"], other="other")], Target("y", ["é", "n"])))
    broken = pd.array(["x", "né", "caf\udce9"], dtype="string[python]")
    assert codebook.encode({"a": broken}).ravel().tolist() == [0, 1, 2]
    assert codebook.encode_classes(broken).tolist() == [2, 2, 2]


def test_huge_counts_do_not_overflow_the_scores() -> None:
    from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI

    for score in (GINI, MAX, NORMAL_GINI):
        for large in (3_037_000_499, 2**31, 2**40):
            before, after = (score.of(np.array([[[large + more, 5, 0], [7, large, 1]]])) for more in (0, 1))
            assert abs(int(after[0]) - int(before[0])) <= score.sensitivity


def test_the_name_of_a_folder_is_not_a_column(tmp_path: Any) -> None:
    folder = tmp_path / "a=né"
    folder.mkdir()
    pd.DataFrame({"a": ["x", "x"]}).to_parquet(folder / "rows.parquet")
    codebook = Codebook(Schema([Categorical("a", ["x", "né"])], Target("y", [0, 1])))
    assert TableFile(folder / "rows.parquet", ["a"]).codes(codebook).ravel().tolist() == [0, 0]
