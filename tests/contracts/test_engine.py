"""One battery for every engine of this process: the same rows, wherever they are, give the same numbers to the last bit.

A new engine joins by being listed in `PLACES`. Spark and PostgreSQL have theirs in tests/spark and tests/postgres.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import exact as exact_answers
import numpy as np
import pandas as pd
import pytest
from slow import slow_but
from strategies import small_schema, small_table

import hedgerow
from hedgerow import Budget, Release, Schema, SQLTable, private_score
from hedgerow.engines import streamed
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.opening import open_place
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook

ROWS = 3_000
SCHEMA = small_schema()
CODEBOOK = Codebook(SCHEMA)
COLUMNS, LABELS = small_table(ROWS, seed=3)
FRAME = pd.DataFrame({**COLUMNS, "class": LABELS, "note": "not declared"})
FRAME.loc[5, "class"] = "nobody declared this"
FRAME.loc[7, "colour"] = None
FRAME.loc[8, "age"] = np.nan


def csv(folder: Path) -> Any:
    FRAME.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def packed(folder: Path) -> Any:
    FRAME.to_csv(folder / "rows.csv.gz", index=False)
    return str(folder / "rows.csv.gz")


def parquet(folder: Path) -> Any:
    FRAME.to_parquet(folder / "rows.parquet", row_group_size=500)
    return folder / "rows.parquet"


def several(folder: Path) -> Any:
    for part in range(4):
        FRAME[part::4].to_parquet(folder / f"part-{part}.parquet")
    return str(folder / "*.parquet")


def in_a_folder(folder: Path) -> Any:
    several(folder)
    return folder


def database(folder: Path) -> Any:
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.register("frame", FRAME)
        connection.execute('CREATE SCHEMA clinic; CREATE TABLE clinic."the rows" AS SELECT * FROM frame')
    return SQLTable(str(folder / "rows.duckdb"), table="clinic.the rows")


def query(folder: Path) -> Any:
    return SQLTable(":memory:", query=f"SELECT *, 1 AS more FROM '{parquet(folder)}';")


PLACES = [csv, packed, parquet, several, in_a_folder, database, query]
Opened = tuple[Any, Callable[[], Any]]


@pytest.fixture(params=PLACES, ids=lambda make: make.__name__)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param(tmp_path)


@pytest.fixture(params=["kept", "read again"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Small tables are kept after the first pass; both ways must agree."""
    if request.param == "read again":
        monkeypatch.setattr(streamed, "KEPT_BYTES", 0)
    return bool(request.param == "kept")


def memory() -> MemoryRows:
    return MemoryRows(FRAME[list(SCHEMA.names)], FRAME["class"], CODEBOOK)


# ---------------------------------------------------------------- every answer


@pytest.mark.slow
def test_every_question_has_the_same_answer(place: Any, kept: bool) -> None:
    trees = list(rdt.structures(CODEBOOK, None, rdt.Settings(4, 3), np.random.default_rng(0)))
    deep = max(trees, key=lambda tree: tree.n_nodes)
    nodes = deep.leaves.astype(np.int64)
    root = np.zeros(1, dtype=np.int64)
    predictors = [lambda codes: codes[:, 0].astype(np.int64) % 2, lambda codes: codes[:, 1].astype(np.int64) % 2]

    def shares(codes: np.ndarray) -> np.ndarray:
        first = 0.5 + 0.05 * codes[:, 2]
        return np.stack([first, 1 - first], axis=1)

    def answers(engine: Any) -> list[Any]:
        return [
            exact_answers.count_rows(engine),
            exact_answers.leaf_counts(engine, trees),
            exact_answers.class_counts(engine, deep, nodes),
            exact_answers.split_counts(engine, deep, nodes),
            exact_answers.split_counts(engine, deep, root),
            exact_answers.confusions(engine, predictors),
            exact_answers.confusion(engine, predictors[0]),
            exact_answers.reliability(engine, shares, 7),
        ]

    got = answers(open_place(place, CODEBOOK, n_jobs=2))
    for one, other in zip(got, answers(memory()), strict=True):
        np.testing.assert_equal(one, other)


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "hedgerow": lambda: hedgerow.HedgerowClassifier(schema=SCHEMA, epsilon=1, random_state=1),
    "hedgerow with δ": lambda: hedgerow.HedgerowClassifier(schema=SCHEMA, epsilon=2, delta="1e-6", random_state=1),
    "snr": lambda: hedgerow.SNRForestClassifier(schema=SCHEMA, epsilon=1, random_state=1),
    "rdt": lambda: hedgerow.PrivateRDTClassifier(schema=SCHEMA, epsilon=1, random_state=1),
    "dpdf": lambda: hedgerow.DPDFClassifier(schema=SCHEMA, epsilon=4, n_estimators=2, max_depth=4),
    "diffpid3": lambda: hedgerow.DiffPID3Classifier(schema=SCHEMA, epsilon=4),
    "private-id3": lambda: hedgerow.PrivateID3Classifier(schema=SCHEMA, epsilon=4),
    "plain-rdt": lambda: hedgerow.RandomDecisionTreesClassifier(schema=SCHEMA, random_state=1),
    "id3": lambda: hedgerow.ID3Classifier(schema=SCHEMA),
    "local-tree": lambda: hedgerow.LocalTreeClassifier(schema=SCHEMA),
}


def trained(name: str, table: Any) -> bytes:
    """The release, with coins that anyone can replay: FOR TESTS ONLY."""
    estimator = ESTIMATORS[name]()
    estimator._coins = SeededCoins(11)
    return bytes(estimator.fit(table).release_.to_json())


@pytest.mark.parametrize("name", slow_but(["hedgerow", "dpdf", "rdt"], ESTIMATORS))
def test_every_release_is_the_same_bit_for_bit(name: str, tmp_path: Path, kept: bool) -> None:
    expected = trained(name, FRAME)
    for make in (csv, several, database):
        folder = tmp_path / make.__name__
        folder.mkdir()
        assert trained(name, make(folder)) == expected


def test_a_release_from_a_query_says_what_it_rests_on(tmp_path: Path) -> None:
    plain, from_query = (Release.from_json(trained("rdt", table)) for table in (FRAME, query(tmp_path)))
    (part,) = from_query.certificate.parts
    assert part.assumptions[-1].startswith("the rows are those of a query, and each was made from one row of one person")
    assert part.assumptions[:-1] == plain.certificate.parts[0].assumptions
    for one, other in zip(from_query.forest.counts, plain.forest.counts, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_batches_and_scores_are_the_same(place: Any, kept: bool) -> None:
    def batches(table: Any) -> bytes:
        estimator = hedgerow.PrivateRDTClassifier(schema=SCHEMA, epsilon=1, n_estimators=3, max_depth=2, random_state=1)
        estimator._coins = SeededCoins(5)
        estimator.partial_fit(table, batch="1")
        estimator.partial_fit(FRAME, batch="2", other_rows=True).partial_fit(table, batch="3", other_rows=True)
        return bytes(estimator.release_.to_json())

    if not isinstance(place, SQLTable) or place.query is None:  # a query's certificate says so
        assert batches(place) == batches(FRAME)
    model = hedgerow.PrivateRDTClassifier(schema=SCHEMA, epsilon=1, n_estimators=3, max_depth=2, random_state=1).fit(FRAME.copy())
    with pytest.MonkeyPatch.context() as patch:
        scores = []
        for table in (place, FRAME):
            coins = SeededCoins(6)
            patch.setattr(
                "hedgerow.evaluation.private.private_table", lambda engine, meter, coins=coins: PrivateTable(engine, meter, coins)
            )
            scores.append(private_score(model, table, epsilon=1, budget=Budget(1)).confusion)
    np.testing.assert_array_equal(*scores)


# ---------------------------------------------------------------- passes


@pytest.mark.slow
def test_each_level_of_a_greedy_tree_is_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "KEPT_BYTES", 0)
    estimator = hedgerow.DPDFClassifier(schema=SCHEMA, epsilon=40, n_estimators=1, max_depth=4, min_rows=1)
    engine = estimator._engine_for(parquet(tmp_path), None, None, False)
    release = estimator._train(engine)
    assert max(tree.height for tree in release.forest.trees) == 3  # four levels
    assert engine.passes == 4
    two = hedgerow.DPDFClassifier(schema=SCHEMA, epsilon=40, n_estimators=2, max_depth=4, min_rows=1)
    engine = two._engine_for(parquet(tmp_path), None, None, False)
    two._train(engine)
    assert engine.passes == 6  # the first level of the second tree is known, and so is the class count of the next


@pytest.mark.parametrize("name", ["rdt", "plain-rdt"])
def test_a_random_forest_is_one_pass(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "KEPT_BYTES", 0)
    estimator = ESTIMATORS[name]().set_params(max_depth=2)
    engine = estimator._engine_for(parquet(tmp_path), None, None, False)
    estimator._train(engine)
    assert engine.passes == 1


def test_a_small_table_is_read_once_and_a_large_one_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path)
    trees = list(rdt.structures(CODEBOOK, None, rdt.Settings(2, 2), np.random.default_rng(0)))
    engine = open_place(path, CODEBOOK, n_jobs=2)
    assert isinstance(engine, streamed.StreamedRows)
    for _ in range(3):
        exact_answers.leaf_counts(engine, trees)
    assert (engine.passes, engine._memory is None) == (1, False)
    monkeypatch.setattr(streamed, "KEPT_BYTES", 1000)
    engine = open_place(path, CODEBOOK, n_jobs=2)
    assert isinstance(engine, streamed.StreamedRows)
    for _ in range(3):
        exact_answers.leaf_counts(engine, trees)
    assert (engine.passes, engine._memory is None) == (3, True)


def test_progress_tells_shares_and_rows(tmp_path: Path) -> None:
    class Told:
        def __init__(self) -> None:
            self.shares: list[float] = []
            self.rows: list[int] = []

        def __call__(self, share: float) -> None:
            self.shares.append(share)

        def rows_seen(self, rows: int) -> None:
            self.rows.append(rows)

    told = Told()
    ESTIMATORS["rdt"]().fit(parquet(tmp_path), progress=told)
    assert told.rows[-1] == ROWS
    assert all(0 <= share <= 1 for share in told.shares)
    ESTIMATORS["rdt"]().fit(parquet(tmp_path), progress=lambda share: None)  # a plain function will do


# ---------------------------------------------------------------- what goes wrong


def left(budget: Budget) -> Fraction:
    return budget.remaining


def test_rows_that_change_between_two_passes_are_refused_and_the_charge_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "KEPT_BYTES", 0)
    for change in ("longer", "other rows"):
        path = parquet(tmp_path)
        budget = Budget(4)
        estimator = ESTIMATORS["dpdf"]().set_params(budget=budget)
        asked = streamed.StreamedRows._pass

        def changing(self: Any, question: Any, path: Path = path, change: str = change, asked: Any = asked) -> Any:
            answer = asked(self, question)
            (FRAME if change == "other rows" else pd.concat([FRAME, FRAME])).iloc[::-1].to_parquet(path)
            return answer

        monkeypatch.setattr(streamed.StreamedRows, "_pass", changing)
        with pytest.raises(hedgerow.errors.TableError, match=r"changed while it was read.*stays spent"):
            estimator.fit(path)
        monkeypatch.setattr(streamed.StreamedRows, "_pass", asked)
        assert left(budget) == 0


def test_a_query_that_gives_other_rows_each_time_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "KEPT_BYTES", 0)
    sample = SQLTable(":memory:", query=f"SELECT * FROM '{parquet(tmp_path)}' WHERE random() < 0.5")
    budget = Budget(4)
    with pytest.raises(hedgerow.errors.TableError, match="changed while it was read"):
        ESTIMATORS["dpdf"]().set_params(budget=budget).fit(sample)
    assert left(budget) == 0


def test_a_damaged_file_is_told_by_its_kind_and_the_charge_stands(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])  # the footer is sound, the rows are not
    budget = Budget(1)
    with pytest.raises(hedgerow.errors.TableError, match="cannot be read as a table") as caught:
        ESTIMATORS["rdt"]().set_params(budget=budget).fit(path)
    assert left(budget) == 0
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    path.write_bytes(whole[:-200])
    budget = Budget(1)
    with pytest.raises(hedgerow.errors.TableError, match="not a readable Parquet"):
        ESTIMATORS["rdt"]().set_params(budget=budget).fit(path)
    assert left(budget) == 1  # a footer that cannot be read is seen before anything is paid


def test_an_error_inside_a_query_does_not_quote_a_row(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    failing = SQLTable(":memory:", query=f"SELECT * REPLACE (CAST(colour AS INTEGER) AS flag) FROM '{path}'")
    budget = Budget(1)
    with pytest.raises(hedgerow.errors.TableError) as caught:
        ESTIMATORS["rdt"]().set_params(budget=budget).fit(failing)
    for private in ("red", "green", "blue", "pink"):
        assert private not in str(caught.value)
    assert caught.value.__context__ is None
    assert left(budget) == 0


BAD_PLACES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no match": (lambda folder: str(folder / "*.parquet"), "no file matches"),
    "empty folder": (lambda folder: folder, "no file whose name"),
    "address without a table": (lambda folder: "postgresql://u:secret@host/db", "SQLTable"),
    "no database": (lambda folder: SQLTable(str(folder / "none.duckdb"), table="t"), "no such file"),
    "two statements": (lambda folder: SQLTable(":memory:", query="SELECT 1; SELECT 2"), "one SELECT"),
    "a change": (lambda folder: SQLTable(":memory:", query="CREATE TABLE t(a INT)"), "one SELECT"),
    "no such column": (lambda folder: SQLTable(":memory:", query="SELECT 1 AS colour"), "flag, age, shape, class"),
    "not SQL": (lambda folder: SQLTable(":memory:", query="SELEC 1"), "cannot be understood"),
    "nested": (
        lambda folder: SQLTable(":memory:", query="SELECT [1] AS colour, 1 AS flag, 2 AS age, 'x' AS shape, 'yes' AS class"),
        r"column 'colour': got the type INTEGER\[\]",
    ),
    "a date for a number": (
        lambda folder: SQLTable(
            ":memory:", query="SELECT 'red' AS colour, 1 AS flag, DATE '2020-01-01' AS age, 'x' AS shape, 'yes' AS class"
        ),
        "column 'age': got the type DATE; expected numbers",
    ),
}


@pytest.mark.parametrize("case", BAD_PLACES)
def test_what_cannot_be_read_is_refused_before_anything_is_spent(case: str, tmp_path: Path) -> None:
    make, words = BAD_PLACES[case]
    budget = Budget(1)
    with pytest.raises(hedgerow.errors.TableError, match=words) as caught:
        ESTIMATORS["rdt"]().set_params(budget=budget).fit(make(tmp_path))
    assert "secret" not in str(caught.value)
    assert left(budget) == 1


def test_files_that_do_not_fit_together_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    budget = Budget(1)

    def refused(words: str) -> None:
        with pytest.raises(hedgerow.errors.TableError, match=words):
            ESTIMATORS["rdt"]().set_params(budget=budget).fit(tmp_path)
        assert left(budget) == 1

    FRAME.to_parquet(tmp_path / "a.parquet")
    FRAME.assign(age="old").to_parquet(tmp_path / "b.parquet")
    refused("'age' has the type VARCHAR in 'b.parquet', and DOUBLE in 'a.parquet'")
    FRAME.drop(columns="age").to_parquet(tmp_path / "b.parquet")
    refused("'age' has the type none: it is missing")
    FRAME.to_csv(tmp_path / "c.csv")
    refused("'age'|CSV and Parquet")
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).unlink()
    FRAME[["class", *SCHEMA.names]].to_csv(tmp_path / "d.csv", index=False)
    refused("has not the header")


def test_ctrl_c_stops_the_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hedgerow.queries import LeafCounts

    heard = threading.Event()

    def hears(*what: Any) -> None:
        first = not heard.is_set()
        heard.set()
        if first:
            raise KeyboardInterrupt

    def interrupting(*what: Any) -> None:
        if not heard.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert heard.wait(60)  # the main thread waits for this one, and hears it there

    monkeypatch.setattr(LeafCounts, "add", interrupting)
    budget = Budget(1)
    before = signal.signal(signal.SIGINT, hears)  # where tests run in the background, it is ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            ESTIMATORS["rdt"]().set_params(budget=budget, max_depth=2).fit(parquet(tmp_path))
    finally:
        signal.signal(signal.SIGINT, before)
    assert left(budget) == 0


# ---------------------------------------------------------------- one person, many rows

PERSONS = replace(SCHEMA, person="id", rows_per_person=3)
OWNED = FRAME.assign(id=np.random.default_rng(1).integers(0, 700, ROWS).astype(str))
OWNED.loc[40:60, "id"] = None
OWNED.loc[61:70, "id"] = ""


def owned(name: str, table: Any, schema: Schema = PERSONS) -> bytes:
    estimator = ESTIMATORS[name]().set_params(schema=schema)
    estimator._coins = SeededCoins(12)
    return bytes(estimator.fit(table).release_.to_json())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rdt", "dpdf", "hedgerow with δ"])
def test_the_same_rows_of_a_person_are_kept_everywhere(name: str, tmp_path: Path, kept: bool) -> None:
    expected = owned(name, OWNED)
    assert owned(name, OWNED.sample(frac=1, random_state=2)) == expected  # never by order
    OWNED.to_csv(tmp_path / "rows.csv", index=False)
    assert owned(name, tmp_path / "rows.csv") == expected
    for part in range(3):
        OWNED.sample(frac=1, random_state=3)[part::3].to_parquet(tmp_path / f"part-{part}.parquet")
    assert owned(name, str(tmp_path / "*.parquet")) == expected


@pytest.mark.parametrize("k", [1, 3, 1000])
def test_at_most_k_rows_of_a_person_are_counted(k: int, tmp_path: Path, kept: bool) -> None:
    codebook = Codebook(replace(PERSONS, rows_per_person=k))
    persons = OWNED["id"].replace("", None).fillna("nobody")
    expected = int(np.minimum(persons.value_counts(), k).sum())
    OWNED.to_parquet(tmp_path / "rows.parquet")
    assert exact_answers.count_rows(open_place(tmp_path / "rows.parquet", codebook, 2, key=b"k" * 16)) == expected
    rows = MemoryRows(OWNED[list(SCHEMA.names)], OWNED["class"], codebook, persons=OWNED["id"], key=b"k" * 16)
    assert exact_answers.count_rows(rows) == expected


@pytest.mark.slow
def test_numbers_of_persons_are_the_same_persons_as_their_texts(tmp_path: Path) -> None:
    whole = OWNED.assign(id=np.random.default_rng(1).integers(0, 700, ROWS))
    expected = owned("rdt", whole)
    assert owned("rdt", whole.assign(id=whole["id"].astype(float))) == expected
    assert owned("rdt", whole.assign(id=whole["id"].astype(str))) == expected
    for name, kind in (("a", "int64"), ("b", "float64"), ("c", "str")):
        whole.assign(id=whole["id"].astype(kind)).to_parquet(tmp_path / f"{name}.parquet")
        assert owned("rdt", tmp_path / f"{name}.parquet") == expected


@pytest.mark.slow
def test_the_folder_of_a_sort_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(streamed, "KEPT_BYTES", 0)
    OWNED.to_parquet(tmp_path / "rows.parquet")
    engine = open_place(tmp_path / "rows.parquet", Codebook(PERSONS), 2, key=b"k" * 16)
    exact_answers.count_rows(engine)
    (folder,) = tmp_path.glob("hedgerow-*")
    assert folder.stat().st_mode & 0o77 == 0  # for its owner alone
    del engine
    gc.collect()
    assert not list(tmp_path.glob("hedgerow-*"))


def test_a_table_without_its_persons_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    budget = Budget(1)
    for table in (FRAME, FRAME[list(SCHEMA.names)].to_numpy(), csv(tmp_path)):
        with pytest.raises(hedgerow.errors.TableError, match=r"column\(?s?\)? '?id"):
            ESTIMATORS["rdt"]().set_params(schema=PERSONS, budget=budget).fit(table, None if isinstance(table, Path) else FRAME["class"])
    assert left(budget) == 1
