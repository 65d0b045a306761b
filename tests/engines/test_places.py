"""Files, folders, databases and queries that could mislead: rows read twice, before they are paid for, or as one row says."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import exact as exact_answers
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hedgerow import Budget, Categorical, Numeric, PrivateRDTClassifier, Schema, SQLTable, Target, private_score
from hedgerow.engines import connection as connections
from hedgerow.engines import streamed
from hedgerow.engines.connection import connected, told_by_kind
from hedgerow.engines.files import TableFile
from hedgerow.engines.opening import open_place
from hedgerow.errors import TableError
from hedgerow.queries import Rows
from hedgerow.schema.codebook import Codebook

SCHEMA = Schema([Categorical("a", ["x", "y"], other="other"), Numeric("b", 0, 10)], Target("y", [0, 1]))
CODEBOOK = Codebook(SCHEMA)
ROWS = "a,b,y\nx,1,0\ny,9,1\n"


def opened(place: Any) -> Any:
    return open_place(place, CODEBOOK)


# ---------------------------------------------------------------- a row is read once


def test_what_programs_leave_in_a_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    for folder in ("_temporary/0", ".ipynb_checkpoints", "sub/_delta_log"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "rows.csv").write_text(ROWS)
    for name in ("_rows.csv", ".rows.csv", "notes.md"):
        (tmp_path / name).write_text(ROWS)
    (tmp_path / "again.csv").symlink_to(tmp_path / "rows.csv")
    assert exact_answers.count_rows(opened(tmp_path)) == 2
    assert exact_answers.count_rows(opened(str(tmp_path / "*.csv"))) == 2 + 2  # _rows.csv was asked for
    (tmp_path / "sub" / "more.csv").write_text(ROWS)
    assert exact_answers.count_rows(opened(tmp_path)) == 4


def test_a_file_beside_its_packed_self_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": ["x"], "b": [1], "y": [0]}).to_csv(tmp_path / "rows.csv.gz", index=False)
    (tmp_path / "rows.csv").write_text(ROWS)
    for place in (tmp_path, str(tmp_path / "rows*")):
        with pytest.raises(TableError, match="packed and plain"):
            opened(place)


# ---------------------------------------------------------------- nothing is read before it is paid


SNIFFED = (
    "SELECT * FROM '{csv}'",
    "SELECT * FROM read_csv('{csv}')",
    "SELECT * FROM read_csv_auto('{csv}')",
    "SELECT * FROM '{csv}.json'",
    "WITH t AS (SELECT * FROM '{csv}') SELECT * FROM t",
    "SELECT 'x' AS a, 1 AS b, 0 AS y WHERE 1 IN (SELECT b FROM sniff_csv('{csv}'))",
)


@pytest.mark.parametrize("query", SNIFFED)
def test_a_query_may_not_guess_types_from_rows(query: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    with pytest.raises(TableError, match="guess its types from its rows"):
        opened(SQLTable(":memory:", query=query.format(csv=tmp_path / "rows.csv")))


@pytest.mark.parametrize("query", ["PIVOT '{rows}' ON a USING sum(b)", "SELECT * FROM (PIVOT '{rows}' ON a USING sum(b))"])
def test_a_query_may_not_make_columns_of_values(query: str, tmp_path: Path) -> None:
    pd.DataFrame({"a": ["x", "Alice"], "b": [1, 2], "y": [0, 1]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(TableError, match="one SELECT") as caught:
        opened(SQLTable(":memory:", query=query.format(rows=tmp_path / "rows.parquet")))
    assert "Alice" not in str(caught.value)


def test_nor_may_a_view(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("Alice Smith,HIV+\nBob,none\n")
    with duckdb.connect(str(tmp_path / "clinic.db")) as connection:
        connection.execute(f"CREATE VIEW v AS SELECT * FROM '{tmp_path / 'people.csv'}'; CREATE TABLE t AS SELECT 'x' AS a, 1 AS b, 0 AS y")
    for given in (SQLTable(str(tmp_path / "clinic.db"), table="v"), SQLTable(str(tmp_path / "clinic.db"), query="SELECT * FROM main.v")):
        with pytest.raises(TableError, match="guess its types") as caught:
            opened(given)
        assert "Alice" not in str(caught.value)
        assert caught.value.__context__ is None
    assert exact_answers.count_rows(opened(SQLTable(str(tmp_path / "clinic.db"), table="t"))) == 1


def test_a_later_row_of_a_packed_file_does_not_matter_when_it_is_opened(tmp_path: Path) -> None:
    for number, bad in enumerate((b"caf\xe9,1,0\n", b"\x01,1,0\n", b"x" * 3_000_000 + b",1,0\n")):
        path = tmp_path / f"{number}.csv.zst"
        with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd") as file:
            file.write(ROWS.encode() + bad)
        assert list(TableFile(path, ["a", "b", "y"]).columns) == ["a", "b", "y"]


@pytest.mark.parametrize("header", ['a,"b,y', 'a,b,y"'])
def test_a_header_with_an_open_quote_is_refused(header: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(header + "\nx,1,0\n")
    with pytest.raises(TableError, match="not a header"):
        TableFile(tmp_path / "rows.csv", [])


def test_names_of_other_columns_are_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "people.parquet").unlink(missing_ok=True)
    pd.DataFrame({"Alice Smith": [1], "A": ["x"]}).to_parquet(tmp_path / "people.parquet")
    for place in (tmp_path / "people.parquet", SQLTable(":memory:", query=f"SELECT * FROM '{tmp_path / 'people.parquet'}'")):
        with pytest.raises(TableError, match="It has 'A': spelling and case matter") as caught:
            opened(place)
        assert "Alice" not in str(caught.value)


def test_a_column_that_is_alike_is_named_where_the_header_is_one(tmp_path: Path) -> None:
    """In a file without a header the first row is private: nothing of it is repeated."""
    needed = ["n_drugs", "smoker", "age", "class"]
    (tmp_path / "rows.csv").write_text("drugs,smoker,age,class,name\n")
    with pytest.raises(TableError, match=r"n_drugs are missing.*Did you mean 'drugs'\?"):
        TableFile(tmp_path / "rows.csv", needed)
    (tmp_path / "rows.csv").write_text("n_drug,smoke,aged,clas,Alice\n")
    with pytest.raises(TableError) as caught:
        TableFile(tmp_path / "rows.csv", needed)
    assert str(caught.value).endswith("needed are n_drugs, smoker, age, class.")


@pytest.mark.parametrize("after", [" -- the rows", "; -- the rows", " ; ;", " /* all */ ; -- them", " WHERE a <> '; -- no comment'"])
def test_what_stands_after_a_query_does_not_matter(after: str, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'x' AS a, 1 AS b, 0 AS y")
    assert exact_answers.count_rows(opened(SQLTable(str(tmp_path / "rows.duckdb"), query=f"SELECT * FROM t{after}"))) == 1


def test_a_view_says_what_it_rests_on_and_a_name_is_only_a_name(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'x' AS a, 1 AS b, 0 AS y FROM range(5); CREATE VIEW v AS SELECT * FROM t LIMIT 1")
    database = str(tmp_path / "rows.duckdb")
    assert opened(SQLTable(database, table="t")).assumed == ""
    assert "each was made from one row of one person" in opened(SQLTable(database, table="v")).assumed
    with pytest.raises(TableError, match=r"expected table or schema\.table"):
        opened(SQLTable(database, table='"t" LIMIT 1'))


def test_variables_of_the_program_are_no_tables() -> None:
    secret = pd.DataFrame({"a": ["x"], "b": [1], "y": [0]})  # noqa: F841
    with pytest.raises(TableError, match="secret"):
        opened(SQLTable(":memory:", query="SELECT * FROM secret"))


# ---------------------------------------------------------------- addresses


ADDRESSES = ("postgresql://u:S3cret@h/d", "Postgresql://u:S3cret@h/d", "postgresql+psycopg://u:S3cret@h/d", "s3://key:S3cret@b/x")


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_where_a_path_is_expected_is_not_repeated(address: str) -> None:
    for place in (address, Path(address)):
        with pytest.raises(TableError, match="address of a database") as caught:
            TableFile(place, [])
        assert "S3cret" not in str(caught.value)
    assert "S3cret" not in repr(SQLTable("Postgresql://u:S3cret@h/d", table="t"))


# ---------------------------------------------------------------- while rows are read


def test_a_file_that_is_replaced_after_its_header_was_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    engine = opened(path)
    path.write_text("b,a,y\n1,x,0\n9,y,1\n")
    with pytest.raises(TableError, match="changed while it was read"):
        exact_answers.count_rows(engine)


@pytest.mark.parametrize("value", ["INTERRUPT", "interrupt", "Conversion Error", "IO Error"])
def test_a_value_does_not_decide_how_a_failure_is_told(value: str, tmp_path: Path) -> None:
    names = ["1"] * 200_000 + [value]
    pd.DataFrame({"a": "x", "b": names, "y": 0}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(TableError, match=r"cannot be read as a table \(Conversion"):
        exact_answers.count_rows(
            opened(SQLTable(":memory:", query=f"SELECT a, CAST(b AS INTEGER) AS b, y FROM '{tmp_path / 'rows.parquet'}'"))
        )


@pytest.mark.slow
def test_an_error_in_one_thread_stops_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"a": "x", "b": np.ones(3_000_000), "y": 0}).to_parquet(tmp_path / "rows.parquet", row_group_size=100_000)
    seen, calls, passes, real = [], itertools.count(1), [], streamed._Pass.over

    def failing(self: Any, block: Any, sums: Any) -> None:
        seen.append(len(block.codes))
        number = next(calls)  # one step of the interpreter: no two threads get the same number
        if number == 3:
            raise TableError("a planted error")
        while number > 3 and not passes[0]._stop:
            time.sleep(0.001)

    def over(counting: Any, *how: Any) -> None:
        passes.append(counting)
        real(counting, *how)

    monkeypatch.setattr(streamed._Pass, "over", over)
    monkeypatch.setattr(Rows, "add", failing)
    with pytest.raises(TableError, match="a planted error"):
        exact_answers.count_rows(open_place(tmp_path / "rows.parquet", CODEBOOK, n_jobs=2))
    assert len(seen) <= 4  # of 46


def test_wide_tables_come_in_smaller_batches() -> None:
    from hedgerow.engines.encoding_sql import BATCH, MOST_CELLS, Encoding

    wide = Codebook(Schema([Numeric(f"a{j}", 0, 1) for j in range(500)], Target("y", [0, 1])))
    encoding = Encoding(wide, {**dict.fromkeys(wide.schema.names, "DOUBLE"), "y": "BIGINT"}, str)
    assert encoding.batch_rows * 501 <= MOST_CELLS
    assert Encoding(CODEBOOK, {"a": "VARCHAR", "b": "DOUBLE", "y": "BIGINT"}, str).batch_rows == BATCH


def test_large_arrays_are_not_made_for_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "MOST_COUNTS", 3)
    assert streamed._Pass(Rows(), CODEBOOK, lambda batch: batch, 2, print)._threads == 2
    assert streamed._Pass(Rows(), CODEBOOK, lambda batch: batch, 4, print)._threads == 1


def test_what_a_query_spills_is_in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with connected(1) as connection:
        (place,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()
        folder = Path(place).parent
        assert folder.parent == tmp_path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(tmp_path.iterdir())


def test_times_do_not_depend_on_where_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with connected(1) as connection:
        assert connection.execute("SELECT CAST(TIMESTAMPTZ '2020-01-01 00:00:00+00' AS VARCHAR)").fetchone() == ("2020-01-01 00:00:00+00",)


@pytest.mark.parametrize("kind", ["TIMESTAMP_S", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "DATE", "TIME", "INTERVAL"])
def test_times_are_no_numbers(kind: str) -> None:
    with pytest.raises(TableError, match="expected numbers"):
        opened(SQLTable(":memory:", query=f"SELECT 'x' AS a, CAST(NULL AS {kind}) AS b, 0 AS y"))


def test_a_full_folder_for_temporary_files_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    schema = Schema(SCHEMA.attributes, SCHEMA.target, person="id")
    pd.DataFrame({"a": "x", "b": [1.0], "y": 0, "id": "p"}).to_parquet(tmp_path / "rows.parquet")

    def full(*what: Any, **more: Any) -> Any:
        raise duckdb.IOException("IO Error: could not write")

    monkeypatch.setattr("hedgerow.engines.person_store.connect", full)
    with pytest.raises(TableError, match="TMPDIR"):
        exact_answers.count_rows(open_place(tmp_path / "rows.parquet", Codebook(schema), key=b"k" * 16))


def test_only_the_kind_of_an_unknown_failure_is_told() -> None:
    def read() -> None:
        raise pa.ArrowInvalid("Alice Smith")

    with pytest.raises(TableError, match="ArrowInvalid") as caught:
        told_by_kind("rows.csv", read)
    assert "Alice" not in str(caught.value)
    assert caught.value.__context__ is None
    assert connections.INTERRUPTED not in str(caught.value)


# ---------------------------------------------------------------- persons


PERSONS = Schema(SCHEMA.attributes, SCHEMA.target, person="id", rows_per_person=2)


def test_a_frame_that_names_its_persons_can_be_used_for_everything() -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 50, "b": np.arange(100) % 10, "id": np.arange(100) // 3})
    labels = np.arange(100) % 2
    model = PrivateRDTClassifier(PERSONS, 1, n_estimators=2, max_depth=1)
    model.partial_fit(frame, labels, batch="1").partial_fit(frame.copy(), labels, batch="2")
    assert len(model.predict(frame)) == len(model.predict(frame[["a", "b"]])) == 100
    budget = Budget(1)
    private_score(model, frame.copy(), labels, epsilon=1, budget=budget)
    assert budget.remaining == 0
    with pytest.raises(TableError, match="y must be None"):
        private_score(model, "rows.csv", labels, epsilon=1, budget=Budget(1))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGTERM"), reason="no such signal here")
def test_a_program_that_is_told_to_end_takes_its_folders_away(tmp_path: Path) -> None:
    rows = 400_000
    ids = np.random.default_rng(0).integers(0, rows // 4, rows).astype(str)
    pd.DataFrame({"a": "x", "b": np.arange(rows) % 10, "y": np.arange(rows) % 2, "id": ids}).to_csv(tmp_path / "rows.csv", index=False)
    PERSONS.save(tmp_path / "schema.toml")
    (tmp_path / "tmp").mkdir()
    words = ["fit", "rows.csv", "--schema", "schema.toml", "--algorithm", "rdt", "--depth", "1", "--epsilon", "1", "-o", "forest.json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    started = subprocess.Popen([sys.executable, "-m", "hedgerow", *words], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    while not list((tmp_path / "tmp").glob("hedgerow-*/rows.duckdb")):
        assert started.poll() is None
        time.sleep(0.01)
    started.terminate()
    assert started.wait(180) in (128 + signal.SIGTERM, 130)  # DuckDB takes what ends it for Ctrl-C
    assert not list((tmp_path / "tmp").iterdir())
    assert not (tmp_path / "forest.json").exists()
    shutil.rmtree(tmp_path / "tmp")


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_an_end_while_rows_are_sorted_is_no_error(end: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"a": "x", "b": [1.0], "y": 0, "id": "p"}).to_parquet(tmp_path / "rows.parquet")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def ending(*what: Any) -> Any:
        raise end

    monkeypatch.setattr("hedgerow.engines.person_store.bytes_of", ending)
    engine = open_place(tmp_path / "rows.parquet", Codebook(PERSONS), key=b"k" * 16)
    with pytest.raises(end):
        exact_answers.count_rows(engine)
    engine.close()
    assert not list(tmp_path.glob("hedgerow-*"))
