"""Datasets: what may be registered, and that a name is used once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import exact as exact_answers
import pytest
from sqlalchemy.engine import make_url

from hedgerow import Categorical, Numeric, Schema, SQLTable, Target
from hedgerow.curator.ledger.database import Database, open_database
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.registry import Dataset, Registry
from hedgerow.errors import LedgerError, SchemaError, TableError
from hedgerow.schema.csv_dialect import CSVDialect

SCHEMA = Schema(
    [Numeric("age", 0, 120), Categorical("smoker", ["no", "yes", 'naïve "quote"\n'])],
    Target("class", ["a", "b"]),
    csv=CSVDialect(multiline=True),
)


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    with open_database(address) as opened:
        yield opened


@pytest.fixture
def registry(database: Database) -> Registry:
    return Registry(database)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows" / "table.csv"
    path.parent.mkdir()
    path.write_text("age,smoker,class\n10,no,a\n20,yes,b\n30,no,a\n")
    return path


@pytest.mark.slow
def test_files_patterns_folders_and_databases(registry: Registry, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_csv('{file}', auto_type_candidates = ['BIGINT', 'VARCHAR'])")
    monkeypatch.chdir(tmp_path)
    places: dict[str, Any] = {
        "file": "rows/table.csv",
        "path": file,
        "pattern": "rows/*.csv",
        "folder": "rows",
        "table": SQLTable("clinic.duckdb", table="visits"),
        "query": SQLTable("clinic.duckdb", query="SELECT * FROM visits"),
    }
    for name, place in places.items():
        registry.register(name, place, SCHEMA)
    monkeypatch.chdir(file.parent)  # the service is started elsewhere the next time
    for name in places:
        found = registry.get(name)
        assert found is not None
        assert (found.name, found.schema, found.closed) == (name, SCHEMA, False)
        engine = registry.open_rows(name, bins=3)
        assert (exact_answers.count_rows(engine), engine.codebook.bins) == (3, 3)
        engine.close()
    assert registry.names() == sorted(places)
    assert registry.get("no such dataset") is None


def test_a_name_is_used_once(registry: Registry, file: Path) -> None:
    registry.register("patients", file, SCHEMA)
    ledger = Ledger(registry.database)
    ledger.ceiling("patients", 1)
    with pytest.raises(LedgerError, match="never used"):
        registry.register("patients", file, SCHEMA)
    closed = registry.close("patients", "the study has ended")
    assert closed == registry.get("patients") == Dataset("patients", str(file), SCHEMA, True)
    assert ledger.balance("patients").closed
    assert ledger.verify().sound
    for step in (
        lambda: registry.register("patients", file, SCHEMA),
        lambda: registry.open_rows("patients"),
        lambda: registry.close("patients"),
        lambda: ledger.reserve("patients", "ada", "research", "0.1"),
    ):
        with pytest.raises(LedgerError):
            step()
    ledger.ceiling("only in the ledger", 1)
    ledger.close("only in the ledger")
    with pytest.raises(LedgerError, match="never used"):
        registry.register("only in the ledger", file, SCHEMA)
    for step in (lambda: registry.open_rows("nobody"), lambda: registry.close("nobody")):
        with pytest.raises(LedgerError, match="not known"):
            step()


def test_what_never_had_a_ceiling_is_closed_too(registry: Registry, file: Path) -> None:
    registry.register("patients", file, SCHEMA)
    assert registry.close("patients").closed
    with pytest.raises(LedgerError, match="closed"):
        Ledger(registry.database).ceiling("patients", 1)
    assert [entry.kind for entry in Ledger(registry.database).entries()] == ["register", "ceiling", "close"]
    assert Ledger(registry.database).verify().sound


def test_a_close_that_fails_changes_nothing(registry: Registry, file: Path) -> None:
    registry.register("patients", file, SCHEMA)
    with pytest.raises(LedgerError, match="what"):
        registry.close("patients", "\0")
    assert Ledger(registry.database).head().seq == 1  # the ceiling of 0 neither


def test_unreviewed_entries(registry: Registry, file: Path) -> None:
    age, smoker = SCHEMA.attributes
    for schema in (
        Schema([replace(age, unreviewed=True), smoker], SCHEMA.target),
        Schema([age, smoker], Target("class", ["a", "b"], unreviewed=True)),
        Schema([age, smoker], SCHEMA.target, 3, unreviewed_rows=True),
    ):
        with pytest.raises(SchemaError, match="not reviewed"):
            registry.register("patients", file, schema)
    for nonsense in (None, "text", {}):
        with pytest.raises(SchemaError, match="expected a Schema"):
            registry.register("patients", file, nonsense)  # type: ignore[arg-type]
    assert registry.names() == []


def test_places_that_cannot_work(registry: Registry, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("name,class\nada,a\n")
    places: list[Any] = [
        other,
        tmp_path / "missing.csv",
        tmp_path / "*.parquet",
        tmp_path,
        "",
        "  ",
        None,
        7,
        b"rows",
        os.devnull,
        "s3://bucket/x.parquet",
        SQLTable(str(file), table="visits"),
        SQLTable(str(tmp_path / "no.duckdb"), table="visits"),
        SQLTable(":memory:", query="DROP TABLE x"),
        SQLTable("postgresql://ada@127.0.0.1:1/clinic", table="visits"),
    ]
    for place in places:
        with pytest.raises(TableError):
            registry.register("patients", place, SCHEMA)
    for text in ("a\0b.csv", "\ud800.csv"):
        with pytest.raises(LedgerError, match="UTF-8"):
            registry.register("patients", text, SCHEMA)
    assert registry.names() == []


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:s3cret@127.0.0.1:1/clinic",
        "POSTGRES://ada:s3cret@h/clinic",
        "postgresql://ada:s3/cret@h/clinic",
        "postgresql://ada:s3?cret@h/clinic",
        "postgresql://ada:s3cret",
        "postgresql://ada@h/clinic?password=s3cret",
        "postgresql://ada@h/clinic?sslmode=require&pass%77ord=s3cret",
        "postgresql://ada@h/clinic?sslpassword=s3cret",
        "mysql://ada:s3cret@h/clinic",
        "host=h user=ada password = s3cret",
    ],
)
def test_a_password_is_refused_and_not_repeated(tmp_path: Path, address: str) -> None:
    with open_database(tmp_path / "books") as database:
        with pytest.raises(TableError, match="Nothing was registered") as caught:
            Registry(database).register("patients", SQLTable(address, table="visits"), SCHEMA)
        assert not any(part in str(caught.value) for part in ("s3", "cret", "ada:"))
    assert not any(b"s3cret" in path.read_bytes() for path in (tmp_path / "books").iterdir())


def test_a_place_that_breaks_later(registry: Registry, file: Path) -> None:
    registry.register("patients", file, SCHEMA)
    file.unlink()
    with pytest.raises(TableError, match="no such file"):
        registry.open_rows("patients")
    assert registry.get("patients") is not None  # the schema can still be shown


@pytest.mark.parametrize("name", ["o'Hara; DROP TABLE curator_datasets;--", "名前/..", "🦔" * 200, "%_\\"])
def test_odd_names(registry: Registry, file: Path, name: str) -> None:
    registry.register(name, file, SCHEMA)
    assert (registry.names(), registry.get(name)) == ([name], Dataset(name, str(file), SCHEMA, False))


@pytest.mark.postgres
@pytest.mark.parametrize("new_address", ["postgres"], indirect=True)
def test_a_table_in_postgresql(address: str, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    given = make_url(address)
    with registry.database.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE visits AS SELECT 10 AS age, 'no' AS smoker, 'a' AS class")
    schema = str(given.query["options"]).rpartition("=")[2]
    without = f"postgresql://{given.username}@{given.host}:{given.port}/{given.database}"
    monkeypatch.setenv("PGPASSWORD", str(given.password))
    with pytest.raises(TableError, match="PGPASSWORD"):
        registry.register("patients", SQLTable(address, table=f"{schema}.visits"), SCHEMA)
    registry.register("patients", SQLTable(without, table=f"{schema}.visits"), SCHEMA)
    engine = registry.open_rows("patients")
    assert exact_answers.count_rows(engine) == 1
    engine.close()
    with pytest.raises(TableError):
        registry.register("others", SQLTable(without, table=f"{schema}.no_such_table"), SCHEMA)
