"""`fit`, `update`, `count` and `evaluate` on rows that are in many files or in a database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from hedgerow import BudgetFile, Release
from hedgerow.cli.places import EngineName, Place

HOW = ["--algorithm", "rdt", "--epsilon", "1", "--trees", "3", "--depth", "2", "--seed", "0"]


@pytest.fixture
def places(place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The small table as Parquet files and in a database, and a budget of 10."""
    folder = place.schema.parent
    monkeypatch.chdir(folder)
    (folder / "visits").mkdir()
    with duckdb.connect("clinic.duckdb") as connection:
        rows = f"read_csv('{place.data}', all_varchar = true)"
        connection.execute(f"CREATE TABLE visits AS SELECT smoker, TRY_CAST(age AS DOUBLE) AS age, sex, ill FROM {rows}")
        for part in range(2):
            name = folder / "visits" / f"part-{part}.parquet"
            connection.execute(f"COPY (SELECT * FROM visits WHERE rowid % 2 = {part}) TO '{name}' (FORMAT parquet)")
    BudgetFile.create(folder / "total.json", 10)
    return place


WHERE = {
    "pattern": ["visits/*.parquet"],
    "folder": ["visits"],
    "table": ["clinic.duckdb", "--table", "visits"],
    "query": ["clinic.duckdb", "--query", "SELECT * FROM visits;"],
    "query over files": [":memory:", "--query", "SELECT * FROM 'visits/*.parquet'"],
}


@pytest.mark.parametrize("where", WHERE)
def test_a_forest_can_be_fitted_updated_counted_and_scored(where: str, places: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = WHERE[where]
    result = run("fit", *words, "--schema", places.schema, *HOW, "--budget", "total.json", "-o", "forest.json")
    assert result.exit_code == 0, result.output
    total = sum(int(counts.sum()) for counts in Release.load("forest.json").forest.counts) / 3
    assert abs(total - 2000) < 400
    seen = run("evaluate", "forest.json", *words, "--epsilon", "1", "--budget", "total.json")
    assert seen.exit_code == 2
    assert "total.json has paid for this forest's fit on DATA itself (ε = 1 at 20" in seen.stderr
    assert "Nothing was spent" in seen.stderr
    twice = run("update", "forest.json", *words, "--budget", "total.json", "-o", "more.json")
    assert (twice.exit_code, "total.json has paid for DATA in this forest already (fit Private-RDT: ε = 1 at 20" in twice.stderr) == (
        2,
        True,
    )
    done = [
        run("update", "forest.json", *words, "--budget", "total.json", "-o", "more.json", "--again"),
        run("count", "forest.json", *words, "--budget", "total.json", "-o", "counts.json", "--again"),
        run("evaluate", "forest.json", *words, "--epsilon", "1", "--budget", "total.json", "--training-rows"),
    ]
    for result in done:
        assert result.exit_code == 0, result.output
    assert "accuracy" in done[-1].stdout
    assert BudgetFile(Path("total.json")).spent == 4


REFUSED = {
    "no table": (["clinic.duckdb"], "--table NAME or --query"),
    "both": (["clinic.duckdb", "--table", "visits", "--query", "SELECT 1"], "not both"),
    "no such table": (["clinic.duckdb", "--table", "patients"], "patients"),
    "a change": (["clinic.duckdb", "--query", "DROP TABLE visits"], "one SELECT"),
    "table of a file": (["visits/*.parquet", "--table", "visits"], "no database"),
    "master alone": (["visits", "--master", "local[2]"], "--engine spark"),
    "table with spark": (["visits", "--engine", "spark", "--table", "t"], "in place of DATA"),
    "no match": (["visits/*.csv"], "no file matches"),
    "missing column": (["clinic.duckdb", "--query", "SELECT smoker, age FROM visits"], "sex, ill"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_place_that_cannot_be_read_costs_nothing(case: str, places: SimpleNamespace, run: Callable[..., Any]) -> None:
    words, said = REFUSED[case]
    result = run("fit", *words, "--schema", places.schema, *HOW, "--budget", "total.json", "-o", "forest.json")
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")
    assert not Path("forest.json").exists()
    assert BudgetFile(Path("total.json")).spent == 0


@pytest.mark.slow
def test_predictions_of_many_files_come_in_their_order(places: SimpleNamespace, run: Callable[..., Any]) -> None:
    assert run("fit", "visits", "--schema", places.schema, *HOW, "--budget", "total.json", "-o", "forest.json").exit_code == 0
    each = []
    for part in range(2):
        result = run("predict", "forest.json", f"visits/part-{part}.parquet")
        each += result.stdout.splitlines()[1:]
    assert run("predict", "forest.json", "visits/*.parquet").stdout.splitlines()[1:] == each


def test_a_file_of_predictions_is_whole_or_not_there(places: SimpleNamespace, run: Callable[..., Any]) -> None:
    assert run("fit", "visits", "--schema", places.schema, *HOW, "--budget", "total.json", "-o", "forest.json").exit_code == 0
    Path("bad.csv").write_bytes(places.data.read_bytes() * 40 + b"caf\xe9,1,f,no\n")
    result = run("predict", "forest.json", "bad.csv", "-o", "predictions.csv")
    assert result.exit_code == 2
    assert "bad.csv" in result.stderr
    assert not [path for path in Path().iterdir() if path.name.startswith("predictions")]


def test_the_bar_tells_passes_and_rows_per_second() -> None:
    from hedgerow.cli.console import Shown

    told: dict[str, Any] = {}
    bar = SimpleNamespace(add_task=lambda *what, **more: 7, update=lambda task, **more: told.update(more, task=task))
    shown = Shown(bar, "counting")
    shown.rows_seen(1_000_000)
    assert (told["task"], told["rows"].startswith("1,000,000 rows, "), told["rows"].endswith(" rows/s")) == (7, True, True)
    assert "description" not in told
    shown.rows_seen(65_536)  # fewer: it began again
    assert told["description"] == "counting, pass 2"
    shown(0.5)
    assert (told["completed"], told["total"]) == (0.5, 1.0)


OVERWRITES = {
    "database": ["fit", "clinic.duckdb", "--table", "visits", "-o", "clinic.duckdb"],
    "pattern": ["fit", "visits/*.parquet", "-o", "visits/part-1.parquet"],
    "folder": ["fit", "visits", "-o", "visits/part-0.parquet"],
}


@pytest.mark.parametrize("case", OVERWRITES)
def test_no_input_is_overwritten(case: str, places: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = OVERWRITES[case]
    before = Path(words[-1]).read_bytes()
    result = run(*words, "--schema", places.schema, *HOW, "--budget", "total.json", "--force")
    assert result.exit_code == 2
    assert "is also an input" in result.stderr
    assert Path(words[-1]).read_bytes() == before
    assert BudgetFile(Path("total.json")).spent == 0


def test_no_input_of_a_prediction_is_overwritten(places: SimpleNamespace, run: Callable[..., Any]) -> None:
    assert run("fit", "visits", "--schema", places.schema, *HOW, "--budget", "total.json", "-o", "forest.json").exit_code == 0
    before = Path("visits/part-0.parquet").read_bytes()
    result = run("predict", "forest.json", "visits/*.parquet", "-o", "visits/part-0.parquet", "--force")
    assert (result.exit_code, "is also an input" in result.stderr) == (2, True)
    assert Path("visits/part-0.parquet").read_bytes() == before
    result = run("predict", "forest.json", "postgresql://u:S3cret@host/name")
    assert (result.exit_code, "S3cret" in result.stderr) == (2, False)


@pytest.mark.slow
def test_a_csv_that_is_written_otherwise(places: SimpleNamespace, run: Callable[..., Any]) -> None:
    r"""Semicolons, and quotes that are escaped by a backslash: declared in the schema, or with --csv."""
    header, *lines = places.data.read_text().splitlines()
    columns = header.replace(",", ";") + ";note"
    rows = [line.replace(",", ";") + r';"he said \"yes; no\""' for line in lines]
    Path("other.csv").write_text("\n".join([columns, *rows, ""]))
    dialect = ("--csv", "delimiter=; escape=\\")
    drafted = run("schema", "draft", "other.csv", "--target", "ill", *dialect, "-o", "drafted.toml")
    assert drafted.exit_code == 0, drafted.output
    assert '[csv]\ndelimiter = ";"\nescape = "\\\\"' in Path("drafted.toml").read_text()
    Path("declared.toml").write_text(places.schema.read_text() + "\n[csv]\ndelimiter = ';'\nescape = '\\'\n")
    assert "delimiter ';'" in run("schema", "check", "declared.toml").output

    def undeclared(*words: object) -> int:
        """How many rows a forest has counted, at an ε that makes the noise small."""
        result = run("fit", "other.csv", *words, "--epsilon", "1000", "--algorithm", "rdt", "--trees", "1", "--force", "-o", "forest.json")
        assert result.exit_code == 0, result.output
        return round(sum(map(float, Release.load("forest.json").forest.class_totals)))

    assert undeclared("--schema", places.schema, *dialect) == undeclared("--schema", "declared.toml") == len(lines)
    assert undeclared("--schema", places.schema, "--csv", "delimiter=;") == 0  # read as usual, each line has an open quote
    predicted = run("predict", "forest.json", "other.csv", *dialect)
    assert len(predicted.stdout.splitlines()) == len(lines) + 1
    refused = run("predict", "forest.json", "other.csv", "--csv", "delimiter=;")
    assert refused.exit_code == 2
    assert "line 2 of 'other.csv' is no row" in refused.stderr.replace("\n", " ")
    assert run("explain", "forest.json", "other.csv", "--csv", "quote=ab").exit_code == 2
    assert "DATA is none" in run("fit", ":memory:", "--query", "SELECT 1", *dialect, "--schema", places.schema, "-o", "f.json").stderr


def test_rows_are_known_again_after_a_password_has_changed() -> None:
    """A budget file knows rows by a hash of where they are: with another password they were paid again."""
    addresses = "ann@host/db?sslmode=require", "ann:a@host/db?sslmode=require", "ann:b@host/db?sslmode=require"
    assert len({str(Place(f"postgresql://{each}", "visits", None, EngineName.duckdb, None).named) for each in addresses}) == 1
    options = ("postgresql://host:5432/db?user=ann&password=a&x=1", "postgresql://host:5432/db?user=ann&password=b&x=1")
    names = [str(Place(each, "visits", None, EngineName.duckdb, None).named) for each in options]
    assert names[0] == names[1]
    assert "x=1" in names[0]
    assert str(Place("postgresql://bob@host/db", "visits", None, EngineName.duckdb, None).named) != names[0]
