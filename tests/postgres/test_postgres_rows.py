"""Rows of a real PostgreSQL server are encoded as the same rows in memory, from one snapshot, and only the columns that are needed."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import exact as exact_answers
import numpy as np
import pandas as pd
import pytest

import hedgerow
from hedgerow import SQLTable
from hedgerow.engines import streamed
from hedgerow.engines.encoding_sql import Encoding
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.opening import open_place
from hedgerow.engines.postgres import PostgresSource
from hedgerow.engines.streamed import StreamedRows
from hedgerow.errors import TableError
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema

pytestmark = pytest.mark.postgres

TYPES = {
    "small": "int2", "whole": "int4", "big": "int8", "single": "float4", "real": "float8", "flag": "bool", "name": "text",
    "short": "varchar(12)", "padded": "char(6)", "mood": "mood", "amount": "numeric", "price": "numeric(8,2)", "rank": "positive",
    "Name": "text", 'o"d d': "int4", "answer": "text",
}  # fmt: skip
WORDS = ["yes", "no", "", "Grün", "été", "it's", "a b", "other", "TRUE", "1.0", "7"]


def schema() -> Schema:
    words = ["yes", "no", "Grün", "it's", "rest"]
    return Schema(
        [
            Categorical("small", [1, 2, 3], other="3"),
            Numeric("whole", 0, 100, missing="none"),
            Categorical("big", [1, 2, 2**60]),
            Numeric("single", -1, 1),
            Categorical("real", [0.5, 1, 2], missing="2"),
            Categorical("flag", [True, False], missing="false"),
            Categorical("name", words, other="rest", missing="no"),
            Categorical("short", words, missing="yes"),
            Categorical("padded", words, other="rest"),
            Categorical("mood", ["sad", "fine"], missing="sad"),
            Numeric("amount", 0, 10, missing="none"),
            Categorical("price", ["1.50", "2.00", "0.00"], other="rest", missing="none"),
            Numeric("rank", 0, 9),
            Categorical("Name", words, other="rest"),
            Numeric('o"d d', -5, 5),
        ],
        Target("answer", ["yes", "no"]),
    )


def some_rows(n: int) -> list[dict[str, Any]]:
    draw = random.Random(5)
    nan, infinite = float("nan"), float("inf")

    def row() -> dict[str, Any]:
        values: dict[str, Any] = {
            "small": draw.randint(-1, 4), "whole": draw.randint(-20, 120), "big": draw.choice([1, 2, 3, 2**60, -(2**62)]),
            "single": draw.choice([draw.uniform(-2, 2), nan, -infinite, 0.1]),
            "real": draw.choice([0.5, 1.0, 2.0, 0.1, nan, infinite]), "flag": draw.random() < 0.5, "name": draw.choice(WORDS),
            "short": draw.choice(WORDS), "padded": draw.choice(["yes", "no", "Grün", "a b"]), "mood": draw.choice(["sad", "fine", "so-so"]),
            "amount": draw.choice([Decimal("3.14159265358979323846"), Decimal("1E+40"), Decimal("-1"), Decimal("NaN"), Decimal("7")]),
            "price": draw.choice([Decimal(text) for text in ("1.50", "2.00", "0.00", "9.99", "NaN")]), "rank": draw.randint(1, 9),
            "Name": draw.choice(WORDS), 'o"d d': draw.randint(-6, 6), "answer": draw.choice(["yes", "no", "maybe", ""]),
        }  # fmt: skip
        return {name: None if draw.random() < 0.1 else value for name, value in values.items()}

    return [row() for _ in range(n)]


def literal(value: Any) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def filled(database: Any, rows: list[dict[str, Any]]) -> str:
    """A table with these rows; its name."""
    database.do("CREATE TYPE mood AS ENUM ('sad', 'so-so', 'fine')")
    database.do("CREATE DOMAIN inner_rank AS int4")
    database.do("CREATE DOMAIN positive AS inner_rank CHECK (value > 0)")
    database.do(f'CREATE TABLE "peo""ple" ({", ".join(f"{identifier(name)} {kind}" for name, kind in TYPES.items())}, secret bytea)')
    values = ", ".join("(" + ", ".join(literal(row[name]) for name in TYPES) + ")" for row in rows)
    database.do(f'INSERT INTO "peo""ple" ({", ".join(map(identifier, TYPES))}) VALUES {values}')
    return f'"{database.schema}"."peo""ple"'


def in_memory(rows: list[dict[str, Any]]) -> pd.DataFrame:
    dtypes: dict[str, Any] = {
        "small": "Int16", "whole": "Int32", "big": "Int64", "single": np.float32, "real": np.float64, "flag": "boolean", "rank": "Int32",
        'o"d d': "Int32",
    }  # fmt: skip
    return pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=dtypes.get(name, object)) for name in TYPES})


def encoded(source: PostgresSource, codebook: Codebook) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    encoding = Encoding(codebook, source.columns, source.sql_name)
    with source.open(2, True) as (connection, relation):
        blocks = list(encoding.blocks(connection, relation))
    return np.concatenate([codes for codes, _ in blocks]), np.concatenate([classes for _, classes in blocks])


def needed(codebook: Codebook) -> list[str]:
    return [*codebook.schema.names, codebook.schema.target.name]


def test_codes_are_those_of_the_same_rows_in_memory(database: Any) -> None:
    rows, codebook = some_rows(700), Codebook(schema(), bins=4)
    table, frame = filled(database, rows), in_memory(rows)
    with PostgresSource(database.address, table, needed=needed(codebook)) as source:
        codes, classes = encoded(source, codebook)
    expected = codebook.encode(frame)
    for j, name in enumerate(codebook.schema.names):
        assert codes[:, j].tolist() == expected[:, j].tolist(), name
        assert len(set(codes[:, j].tolist())) > 1, name
    assert classes.tolist() == codebook.encode_classes(frame["answer"]).tolist()


def test_the_engine_counts_what_memory_counts(database: Any) -> None:
    rows, codebook = some_rows(500), Codebook(schema(), bins=4)
    table, frame = filled(database, rows), in_memory(rows)
    with PostgresSource(database.address, query=f"TABLE {table};", needed=needed(codebook)) as source:
        assert (
            exact_answers.count_rows(StreamedRows(source, codebook, n_jobs=2))
            == exact_answers.count_rows(MemoryRows(frame, frame["answer"], codebook))
            == 500
        )


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "rdt": lambda: hedgerow.PrivateRDTClassifier(schema=schema(), epsilon=1, n_estimators=3, random_state=1),
    "dpdf": lambda: hedgerow.DPDFClassifier(schema=schema(), epsilon=4, n_estimators=2, max_depth=3),
    "hedgerow": lambda: hedgerow.HedgerowClassifier(schema=schema(), epsilon=1, random_state=1),
}


@pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
@pytest.mark.parametrize("kept", ["kept", "read again"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_release_is_that_of_memory_to_the_last_bit(database: Any, name: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kept == "read again":
        monkeypatch.setattr(streamed, "KEPT_BYTES", 0)
    rows = some_rows(400)
    releases = []
    for table in (in_memory(rows), hedgerow.SQLTable(database.address, table=filled(database, rows))):
        estimator = ESTIMATORS[name]()
        estimator._coins = SeededCoins(5)  # FOR TESTS ONLY
        releases.append(bytes(estimator.fit(table).release_.to_json()))
    assert releases[0] == releases[1]


def test_an_empty_table_has_columns_and_no_rows(database: Any) -> None:
    database.do("CREATE TABLE nobody (age int4, name text)")
    with PostgresSource(database.address, database.name("nobody")) as source:
        assert dict(source.columns) == {"age": "INTEGER", "name": "VARCHAR"}
        with source.open(1) as (connection, relation):
            assert connection.execute(f"SELECT count(*) FROM {relation}").fetchall() == [(0,)]


def test_dates_and_their_like_are_text(database: Any) -> None:
    day = "TIMESTAMPTZ '2026-03-01 12:00:00+02' AS b, DATE '2026-03-01' AS a, INTERVAL '1 day 2 hours' AS c"
    query = f"SELECT {day}, '6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid AS d, TIME '10:30' AS e, 'x'::name AS f, 'y'::\"char\" AS g"
    with PostgresSource(database.address + "?options=-cdatestyle%3DGerman%20-ctimezone%3DAsia/Tokyo", query=query) as source:
        assert source.columns["a"] == "DATE"
        assert source.columns["b"] == "TIMESTAMP WITH TIME ZONE"
        names = ", ".join(source.sql_name(name) for name in "abcdefg")
        with source.open(1) as (connection, relation):
            found = connection.execute(f"SELECT {names} FROM {relation}").fetchall()
    identity = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    assert found == [("2026-03-01", "2026-03-01 10:00:00+00", "1 day 02:00:00", identity, "10:30:00", "x", "y")]


def numbers(source: PostgresSource, column: str = "a") -> list[Any]:
    with source.open(1) as (connection, relation):
        return sorted(row[0] for row in connection.execute(f"SELECT {source.sql_name(column)} FROM {relation}").fetchall())


def test_every_pass_sees_one_snapshot(database: Any) -> None:
    database.do("CREATE TABLE t AS SELECT 1 AS a UNION SELECT 2")
    with PostgresSource(database.address, database.name("t")) as source:
        database.do("INSERT INTO t VALUES (3)")  # before the first pass, too: the snapshot is that of the opening
        assert numbers(source) == [1, 2]
        database.do("DELETE FROM t WHERE a = 1")
        database.do("UPDATE t SET a = 20 WHERE a = 2")
        assert numbers(source) == [1, 2]
        assert source.stamp() is None
    with PostgresSource(database.address, database.name("t")) as source:
        assert numbers(source) == [3, 20]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_pass_that_was_left_in_the_middle_does_not_end_the_snapshot(database: Any, threads: int) -> None:
    query = "SELECT g AS a FROM generate_series(1, 2000000) AS g"
    with PostgresSource(database.address, query=query) as source:
        with source.open(threads) as (connection, relation):
            connection.sql(f"SELECT * FROM {relation}").to_arrow_reader(1000).read_next_batch()
        with pytest.raises(ZeroDivisionError), source.open(threads) as (connection, relation):
            connection.sql(f"SELECT * FROM {relation}").to_arrow_reader(1000).read_next_batch().slice(1 // 0)
        assert len(numbers(source)) == 2_000_000


def interrupted(connection: Any, reader: Any) -> None:
    connection.interrupt()
    for _ in reader:
        pass


def test_an_interrupted_pass_is_an_interrupt(database: Any) -> None:
    query = "SELECT g AS a FROM generate_series(1, 2000000) AS g"
    with PostgresSource(database.address, query=query) as source:
        with pytest.raises(KeyboardInterrupt) as caught, source.open(1) as (connection, relation):
            interrupted(connection, connection.sql(f"SELECT * FROM {relation}").to_arrow_reader(1000))
        assert caught.value.__context__ is None
        assert len(numbers(source)) == 2_000_000


def test_two_passes_at_once_are_refused(database: Any) -> None:
    with PostgresSource(database.address, query="SELECT 1 AS a") as source:
        with source.open(1), pytest.raises(TableError, match="being read already"), source.open(1):
            pass
        assert numbers(source) == [1]


def test_only_the_needed_columns_are_asked_for(database: Any) -> None:
    database.do("CREATE TABLE t (a int4, b bytea, c int4)")
    database.do("INSERT INTO t VALUES (1, 'x', 0)")
    database.do("CREATE VIEW v AS SELECT a, b, 1 / c AS c FROM t")  # whoever reads c fails
    with PostgresSource(database.address, database.name("v"), needed=["a"]) as source:
        assert dict(source.columns) == {"a": "INTEGER"}
        assert numbers(source) == [1]


def test_making_a_source_reads_no_row(database: Any) -> None:
    with PostgresSource(database.address, query="SELECT 1 / (g - 1) AS a FROM generate_series(1, 3) AS g") as source:
        assert dict(source.columns) == {"a": "INTEGER"}


@pytest.mark.parametrize(
    ("kind", "shown"),
    [("bytea", "bytea"), ("json", "json"), ("jsonb", "jsonb"), ("int4[]", r"integer\[\]"), ("point", "point"), ("pair", "pair")],
)
def test_a_column_that_holds_no_values_is_refused_if_it_is_needed(database: Any, kind: str, shown: str) -> None:
    database.do("CREATE TYPE pair AS (x int4, y int4)")
    database.do(f"CREATE TABLE t (a int4, b {kind})")
    with pytest.raises(TableError, match=rf"column 'b': got the type .*{shown}.*; expected"):
        PostgresSource(database.address, database.name("t"), needed=["a", "b"])
    with PostgresSource(database.address, database.name("t")) as source:
        assert list(source.columns) == ["a"]


def test_missing_columns_are_named(database: Any) -> None:
    database.do('CREATE TABLE t (a int4, "B" int4)')
    with pytest.raises(TableError, match=r"the column\(s\) b, c are missing; needed are a, b, c\. It has 'B': spelling and case matter"):
        PostgresSource(database.address, database.name("t"), needed=["a", "b", "c"])
    with PostgresSource(database.address, database.name("t"), needed=["a", "b"], optional=True) as source:
        assert source.absent == {"b"}
        assert list(source.columns) == ["a"]
    with pytest.raises(TableError, match="missing"):
        PostgresSource(database.address, database.name("t"), needed=["x", "y"], optional=True)


def test_columns_of_one_name_are_refused_if_they_are_needed(database: Any) -> None:
    query = "SELECT 1 AS a, 2 AS b, 3 AS b"
    with pytest.raises(TableError, match="several columns named 'b'"):
        PostgresSource(database.address, query=query, needed=["a", "b"])
    with PostgresSource(database.address, query=query, needed=["a"]) as source:
        assert numbers(source) == [1]


def test_persons_that_are_numbers_are_compared_as_numbers(database: Any) -> None:
    """1, 1.0 and 1.00 are one numeric, and one person."""
    database.do("CREATE TABLE visits (colour text, class text, p numeric, q numeric(10, 2), r numeric)")
    numbers = "unnest(ARRAY['1', '1.0', '1.00', '2.5', '2.50', 'NaN'])"
    database.do(f"INSERT INTO visits SELECT 'red', 'yes', x::numeric, x::numeric, NULL FROM {numbers} AS x")
    for person, kept in (("p", 3), ("q", 3), ("r", 1)):
        declared = Schema([Categorical("colour", ["red", "blue"])], Target("class", ["no", "yes"]), person=person)
        engine = open_place(SQLTable(database.address, table=f"{database.schema}.visits"), Codebook(declared), key=b"k" * 16)
        assert exact_answers.count_rows(engine) == kept, person
        engine.close()


def test_a_view_says_that_it_is_a_query(database: Any) -> None:
    database.do("CREATE TABLE visits (colour text, class text)")
    database.do("CREATE VIEW first_one AS SELECT * FROM visits LIMIT 1")
    codebook = Codebook(Schema([Categorical("colour", ["red", "blue"])], Target("class", ["no", "yes"])))
    for name, said in (("visits", ""), ("first_one", "the rows are those of a query")):
        engine = open_place(SQLTable(database.address, table=f"{database.schema}.{name}"), codebook)
        assert engine.assumed.startswith(said)
        assert bool(engine.assumed) == bool(said)
        engine.close()
