"""Rows behind Spark: the same releases as in memory, counts alone come back, and nothing of a row is told when a job fails."""

from __future__ import annotations

import inspect
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import exact as exact_answers
import numpy as np
import pandas as pd
import pytest
from strategies import small_schema

import hedgerow
from hedgerow import Budget, CSVTable, PrivateRDTClassifier, count, private_score
from hedgerow.engines import spark as spark_rows
from hedgerow.engines import spark_job
from hedgerow.engines.files import TableFile
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.opening import is_spark_frame
from hedgerow.engines.spark import SparkRows, open_spark_table
from hedgerow.errors import BudgetError, PlanError, SchemaError, TableError
from hedgerow.estimators import all_estimators
from hedgerow.estimators.private import PrivateForestClassifier
from hedgerow.evaluation.private import private_evaluation
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.csv_dialect import CSVDialect
from hedgerow.schema.schema import Schema
from hedgerow.trees.tree import TreeBuilder

ROWS = 2000
SECRET = "Sherwood-4711"
KEY = bytes(range(16))
SETTINGS: dict[str, dict[str, Any]] = {
    "DPDFClassifier": {"n_estimators": 2, "max_depth": 2},
    "DiffPID3Classifier": {"max_depth": 2},
    "PrivateID3Classifier": {"max_depth": 2},
    "ID3Classifier": {"max_depth": 2},
    "LocalTreeClassifier": {"max_depth": 2, "bins": 5},
    "PrivateRDTClassifier": {"n_estimators": 4, "max_depth": 2},
    "RandomDecisionTreesClassifier": {"n_estimators": 4, "max_depth": 2},
}


@pytest.fixture(autouse=True)
def _test_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request gets the same test coins, so that two releases of the same counts are the same."""
    train = PrivateForestClassifier._engine_for

    def seeded(self: Any, *arguments: Any, **more: Any) -> Any:
        self._coins = SeededCoins(7)
        return train(self, *arguments, **more)

    monkeypatch.setattr(PrivateForestClassifier, "_engine_for", seeded)


def model_of(algorithm: Any, schema: Schema, **more: Any) -> Any:
    settings = {**SETTINGS.get(algorithm.__name__, {}), **more, "schema": schema, "random_state": 0}
    if issubclass(algorithm, PrivateForestClassifier):
        settings["epsilon"] = 2
    known = inspect.signature(algorithm).parameters
    return algorithm(**{name: value for name, value in settings.items() if name in known})


def rdt(**more: Any) -> Any:
    return model_of(PrivateRDTClassifier, small_schema(2000), **more)


# ---------------------------------------------------------------- the same releases


@pytest.mark.parametrize("algorithm", all_estimators().values(), ids=all_estimators().keys())
def test_every_estimator_releases_the_same_as_in_memory(algorithm: Any, frame: Any, table: pd.DataFrame) -> None:
    ours, same = (model_of(algorithm, small_schema(2000)).fit(rows).release_ for rows in (frame, table))
    assert ours.to_json() == same.to_json()


def test_the_flagship_with_delta(frame: Any, table: pd.DataFrame) -> None:
    ours, same = (
        model_of(hedgerow.HedgerowClassifier, small_schema(2000), delta=1e-6, max_passes=10).fit(rows).release_ for rows in (frame, table)
    )
    assert ours.to_json() == same.to_json()


def test_a_private_number_of_rows_and_private_tuning(frame: Any, table: pd.DataFrame) -> None:
    models = [model_of(PrivateRDTClassifier, small_schema(), max_depth=None) for _ in range(2)]
    ours, same = (model.tune(rows, grid={"n_estimators": [1, 3]}).release_ for model, rows in zip(models, (frame, table), strict=True))
    assert ours.to_json() == same.to_json()


def test_private_scores_are_counted_on_executors(frame: Any, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    release = rdt().fit(table).release_
    answers = []
    for rows in (frame, table):
        monkeypatch.setattr("hedgerow.private_table.private_table.__defaults__", (SeededCoins(3), "hedgerow", None))
        score, calibration = private_evaluation(release, rows, epsilon=1)
        answers.append((score.confusion.tolist(), score.undeclared, np.asarray(calibration.counts).tolist()))
    assert answers[0] == answers[1]
    budget = Budget(1)
    private_score(release, frame, epsilon="0.25", budget=budget)
    assert budget.remaining == 0.75


def test_batches_and_owners(frame: Any, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    both = []
    for rows in (frame, table):
        model = rdt().partial_fit(rows, batch="may")
        model._coins = SeededCoins(9)
        model.partial_fit(rows, batch="june", other_rows=True)
        both.append(model.release_.to_json())
    assert both[0] == both[1]
    plan = rdt().public_plan()
    counts = []
    for rows in (frame, table):
        monkeypatch.setattr("hedgerow.training.counting.SYSTEM", SeededCoins(4))
        counts.append(count(plan, rows, owner="clinic").forest.counts)
    assert all(np.array_equal(a, b) for a, b in zip(*counts, strict=True))


def test_answers_that_are_added_up_on_executors_are_the_same(frame: Any, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = rdt(n_estimators=40).public_plan().trees
    codebook = Codebook(small_schema())
    straight = SparkRows(frame.repartition(5), codebook)
    first = exact_answers.leaf_counts(straight, trees)
    monkeypatch.setattr(spark_rows, "STRAIGHT", 0)
    added = SparkRows(frame.repartition(5), codebook)
    again = exact_answers.leaf_counts(added, trees)
    exact = exact_answers.leaf_counts(MemoryRows(table[list(small_schema().names)], table["class"], codebook), trees)
    for counts in (first, again):
        assert all(np.array_equal(a, b) for a, b in zip(counts, exact, strict=True))
    assert added.sent_back < straight.sent_back / 2


def test_names_may_hold_dots_and_differ_in_case_and_tables_may_be_empty(spark: Any) -> None:
    schema = Schema([Categorical("a.b", ["x", "y"]), Categorical("A`b", ["x", "y"])], Target("the class", [0, 1]))
    rows = pd.DataFrame({"a.b": ["x", "y", "x"], "A`b": ["y", "y", "z"], "the class": [0, 1, 1], "THE CLASS": [1, 1, 1]})
    ours = SparkRows(spark.createDataFrame(rows), Codebook(schema))
    tree = model_of(PrivateRDTClassifier, schema, n_estimators=2, max_depth=1).public_plan(rows=10).trees
    exact = MemoryRows(rows[list(schema.names)], rows["the class"], Codebook(schema))
    assert [a.tolist() for a in exact_answers.leaf_counts(ours, tree)] == [a.tolist() for a in exact_answers.leaf_counts(exact, tree)]
    empty = SparkRows(spark.createDataFrame(rows).filter("false"), Codebook(schema))
    assert exact_answers.count_rows(empty) == 0
    assert not any(counts.any() for counts in exact_answers.leaf_counts(empty, tree))


# ---------------------------------------------------------------- types


def test_every_type_that_can_be_read_gives_the_codes_of_the_same_text(spark: Any) -> None:
    text = [None, "0", "1", "2", "7"]
    kinds = ["string", "varchar(3)", "char(1)", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,0)"]
    rows = spark.createDataFrame([(value,) for value in text], "v string")
    cast = rows.selectExpr("'yes' AS class", *(f"CAST(v AS {kind}) AS `{letter} {kind}`" for kind in kinds for letter in "cn"))
    attributes = [
        attribute
        for kind in kinds
        for attribute in (
            Categorical(f"c {kind}", [0, 1, 2], other="other", missing="none"),
            Numeric(f"n {kind}", 0, 4, missing="none"),
        )
    ]
    codebook = Codebook(Schema(attributes, Target("class", ["yes"])), bins=4)
    root = TreeBuilder(codebook.sizes).build()
    found = exact_answers.split_counts(SparkRows(cast, codebook), root, np.zeros(1, dtype=np.int64))
    values = np.array(text, dtype=object)
    exact = MemoryRows({each.name: values for each in attributes}, np.repeat("yes", 5), codebook)
    expected = exact_answers.split_counts(exact, root, np.zeros(1, dtype=np.int64))
    assert expected.sum() == len(attributes) * len(text)  # every value has a branch
    assert np.array_equal(found, expected)


def test_booleans_dates_and_columns_of_nothing(spark: Any) -> None:
    rows = spark.sql("SELECT true AS b, DATE'2026-05-01' AS d, NULL AS v, 'x' AS class UNION ALL SELECT NULL, NULL, NULL, 'x'")
    schema = Schema(
        [Categorical(name, values, missing="none") for name, values in (("b", [True, False]), ("d", ["2026-05-01"]), ("v", [1]))],
        Target("class", ["x", "z"]),
    )
    codebook = Codebook(schema)
    tree = model_of(PrivateRDTClassifier, schema, n_estimators=6, max_depth=3).public_plan(rows=100).trees
    values = {"b": np.array([True, None], dtype=object), "d": np.array(["2026-05-01", None], dtype=object), "v": np.array([None, None])}
    exact = exact_answers.leaf_counts(MemoryRows(values, np.array(["x", "x"]), codebook), tree)
    found = exact_answers.leaf_counts(SparkRows(rows, codebook), tree)
    assert all(np.array_equal(a, b) for a, b in zip(found, exact, strict=True))


# ---------------------------------------------------------------- refused before anything is charged


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("drop", "age are missing; needed are colour"),
        ("ARRAY(age)", "array<double>"),
        ("NAMED_STRUCT('a', age)", "struct<a:double>"),
        ("MAP('a', age)", "map<string,double>"),
        ("CAST(CAST(age AS STRING) AS BINARY)", "binary"),
        ("CAST(age AS TIMESTAMP)", "time zone"),
        ("CAST(CAST(age AS TIMESTAMP) AS DATE)", "expected numbers"),
        ("INTERVAL '1' DAY", "interval"),
    ],
)
def test_columns_that_cannot_be_read_are_refused_for_free(frame: Any, change: str, words: str) -> None:
    rows = frame.drop("age") if change == "drop" else frame.selectExpr("colour", "flag", f"{change} AS age", "shape", "class")
    budget = Budget(2)
    with pytest.raises(TableError, match=words) as refused:
        rdt(budget=budget).fit(rows)
    assert "'age'" in str(refused.value) or change == "drop"
    assert budget.remaining == 2


def test_a_name_that_is_spelt_otherwise_is_shown_and_no_other(frame: Any) -> None:
    with pytest.raises(TableError, match="It has 'AGE': spelling and case matter") as refused:
        rdt().fit(frame.withColumnRenamed("age", "AGE").withColumn(SECRET, frame.flag))
    assert SECRET not in str(refused.value)


def test_two_columns_of_one_name_and_labels_of_their_own_are_refused(frame: Any) -> None:
    budget = Budget(2)
    with pytest.raises(TableError, match="several columns age"):
        rdt(budget=budget).fit(frame.selectExpr("*", "age"))
    with pytest.raises(TableError, match="y must be None"):
        rdt(budget=budget).fit(frame, [1, 2])
    with pytest.raises(SchemaError):
        PrivateRDTClassifier("infer", 2, budget=budget).fit(frame)
    with pytest.raises(BudgetError):
        rdt(budget=Budget(1)).fit(frame)
    assert budget.remaining == 2


def test_frames_are_known_without_importing_spark(frame: Any, table: pd.DataFrame) -> None:
    assert is_spark_frame(frame)
    assert not any(is_spark_frame(other) for other in (table, "table", None, np.zeros(3)))


# ---------------------------------------------------------------- failures after the table is opened


def said(error: BaseException) -> str:
    """Everything that the owner or a log could see of an error."""
    return "".join(traceback.format_exception(error)) + repr(error.__cause__) + repr(error.__context__)


def raising(error: Exception) -> Callable[[Any], Iterator[Any]]:
    """Work that fails on an executor. It is made here, so that it travels whole: executors do not have these tests."""

    def work(batches: Any) -> Iterator[Any]:
        for batch in batches:
            raise error
            yield batch

    return work


@pytest.fixture
def spark_says(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Spark itself says, to see that there was something to hide."""
    texts: list[str] = []
    tell = spark_job.failure
    monkeypatch.setattr(spark_job, "failure", lambda error, charged: (texts.append(str(error)), tell(error, charged))[1])
    return texts


FAILURES: dict[str, Callable[[Any], Any]] = {
    "python": lambda frame: frame.mapInArrow(raising(ValueError(f"cannot read {SECRET}")), frame.schema),
    "sql": lambda frame: frame.selectExpr(
        f"CASE WHEN flag = 1 THEN CAST(concat('{SECRET}', colour) AS INT) ELSE 0 END AS flag", "colour", "age", "shape", "class"
    ),
    "raised": lambda frame: frame.filter(f"CASE WHEN age > 1 THEN raise_error('{SECRET}') ELSE true END"),
}


@pytest.mark.parametrize("way", FAILURES)
def test_a_failing_job_tells_its_kind_and_no_value_and_the_charge_stands(way: str, frame: Any, spark_says: list[str]) -> None:
    budget = Budget(3)
    with pytest.raises(TableError, match="job failed") as told:
        rdt(budget=budget).fit(FAILURES[way](frame))
    assert SECRET in spark_says[0]
    assert SECRET not in said(told.value)
    assert "charged stays spent" in str(told.value)
    assert budget.remaining == 1


def test_a_damaged_file(spark: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table.assign(colour=SECRET).to_parquet(path, index=False)
    rows = spark.read.parquet(str(path))
    data = bytearray(path.read_bytes())
    data[50 : len(data) // 2] = b"\xff" * (len(data) // 2 - 50)
    path.write_bytes(data)
    budget = Budget(2)
    with pytest.raises(TableError, match="a file cannot be read") as told:
        rdt(budget=budget).fit(rows)
    assert SECRET not in said(told.value)
    assert str(tmp_path) not in str(told.value)
    assert budget.remaining == 0


def test_what_an_executor_lacks_is_said(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = frame.mapInArrow(raising(ModuleNotFoundError("No module named 'duckdb'")), frame.schema)
    with pytest.raises(TableError, match=r"missing on an executor.*pip install hedgerow=="):
        rdt().fit(lacking)
    budget = Budget(2)
    monkeypatch.setattr(spark_rows, "VERSION", "0.0.1")
    with pytest.raises(TableError, match=r"another version of hedgerow.*Nothing was spent"):
        rdt(budget=budget).fit(frame)
    assert budget.remaining == 2  # found out before the table is opened


def test_rows_that_change_between_jobs_are_refused(frame: Any) -> None:
    fickle = SparkRows(other_rows_each_time(frame), Codebook(small_schema()))

    def ask() -> None:
        for _ in range(5):
            exact_answers.count_rows(fickle)

    with pytest.raises(TableError, match="changed between two jobs") as told:
        ask()
    assert not any(character.isdigit() for character in str(told.value))


def other_rows_each_time(frame: Any) -> Any:
    def some(batches: Any) -> Iterator[Any]:
        import os

        for batch in batches:
            yield batch.slice(0, int.from_bytes(os.urandom(2), "big") % batch.num_rows)

    return frame.mapInArrow(some, frame.schema)


def test_a_fit_that_sees_other_rows_is_charged_and_refused(frame: Any) -> None:
    budget = Budget(2)
    model = model_of(hedgerow.DiffPID3Classifier, small_schema(2000), budget=budget)
    with pytest.raises(TableError, match="changed between two jobs"):
        model.fit(other_rows_each_time(frame))
    assert budget.remaining == 0
    assert not hasattr(model, "release_")


def test_an_interrupt_cancels_the_job(spark: Any, frame: Any) -> None:
    def slow(batches: Any) -> Iterator[Any]:
        import time

        for batch in batches:
            time.sleep(60)
            yield batch

    sent: list[float] = []

    def interrupt(share: float) -> None:
        """Ctrl-C, once, when the job runs."""
        if not sent and spark.sparkContext.statusTracker().getActiveJobsIds():
            sent.append(share)
            os.kill(os.getpid(), signal.SIGINT)

    budget = Budget(2)
    with pytest.raises(KeyboardInterrupt):
        rdt(budget=budget).fit(frame.mapInArrow(slow, frame.schema), progress=interrupt)
    assert sent
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert budget.remaining == 0
    assert exact_answers.count_rows(SparkRows(frame, Codebook(small_schema()))) == ROWS  # the session goes on


# ---------------------------------------------------------------- what it costs


def test_what_comes_back_does_not_depend_on_the_number_of_rows(spark: Any) -> None:
    trees = rdt(n_estimators=5).public_plan().trees
    sent = []
    for rows in (1_000, 100_000):
        many = spark.range(0, rows, 1, 4).selectExpr(
            "CASE WHEN id % 3 = 0 THEN 'red' ELSE 'blue' END AS colour", "id % 2 AS flag", "DOUBLE(id % 100) AS age",
            "'flat' AS shape", "CASE WHEN id % 5 = 0 THEN 'yes' ELSE 'no' END AS class",
        )  # fmt: skip
        engine = SparkRows(many, Codebook(small_schema()))
        counts = exact_answers.leaf_counts(engine, trees)
        assert all(each.sum() <= rows for each in counts)
        sent.append(engine.sent_back)
        raw = 4 * (sum(each.nbytes for each in counts) + 16)
        assert 0 < engine.sent_back < raw + 4 * 64
    assert sent[1] < 2 * sent[0]  # compressed: larger numbers are longer


def test_one_job_for_a_forest_and_one_for_each_level_of_a_greedy_tree(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[SparkRows] = []
    made = SparkRows.__init__

    def spy(self: SparkRows, *arguments: Any, **more: Any) -> None:
        made(self, *arguments, **more)
        engines.append(self)

    monkeypatch.setattr(SparkRows, "__init__", spy)
    rdt().fit(frame)
    model_of(hedgerow.DiffPID3Classifier, small_schema(2000), max_depth=2).fit(frame)
    assert engines[0].jobs == 1
    assert engines[1].jobs <= 2 + 1  # the class counts of the last level are among those of the split above it


def test_spark_itself_counts_one_job(spark: Any, frame: Any) -> None:
    before = _jobs(spark)
    exact_answers.leaf_counts(SparkRows(frame, Codebook(small_schema())), rdt().public_plan().trees)
    assert len(_jobs(spark) - before) == 1


def _jobs(spark: Any) -> set[int]:
    store = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return {store.apply(i).jobId() for i in range(store.size())}


def test_progress_goes_up_to_the_end(frame: Any) -> None:
    shares: list[float] = []
    rdt().fit(frame, progress=shares.append)
    assert shares[-1] == 1.0
    assert all(0 <= share <= 1 for share in shares)


# ---------------------------------------------------------------- persons


def test_at_most_k_rows_of_a_person_the_same_as_in_memory(spark: Any, table: pd.DataFrame) -> None:
    ids = np.random.default_rng(5).integers(0, 300, len(table)).astype(float)
    ids[::50] = np.nan
    rows = table.assign(patient=ids)
    small = small_schema()
    schema = Schema(small.attributes, small.target, person="patient", rows_per_person=3)
    spread = spark.createDataFrame(rows).repartition(6)
    codebook = Codebook(schema)
    exact = MemoryRows(table[list(schema.names)], table["class"], codebook, persons=rows["patient"], key=KEY)
    ours = SparkRows(spread, codebook, key=KEY)
    trees = rdt().public_plan().trees
    assert all(
        np.array_equal(a, b) for a, b in zip(exact_answers.leaf_counts(ours, trees), exact_answers.leaf_counts(exact, trees), strict=True)
    )
    assert exact_answers.count_rows(ours) == exact_answers.count_rows(exact) < len(table)
    released = [model_of(PrivateRDTClassifier, schema).fit(each).release_ for each in (spread, rows)]
    assert released[0].to_json() == released[1].to_json()
    with pytest.raises(PlanError, match="16 random bytes"):
        SparkRows(spread, codebook)


# ---------------------------------------------------------------- tables by name


def test_tables_by_name_and_by_path(spark: Any, frame: Any, table: pd.DataFrame, folder: Path, tmp_path: Path) -> None:
    frame.createOrReplaceTempView("visits")
    for number in range(2):
        part = table.iloc[number::2].copy()
        part.to_csv(tmp_path / f"{number}.csv", index=False, sep=";")
    same = rdt().fit(table).release_.to_json()
    for name in ("visits", str(folder), f"{folder}/*.parquet", f"{tmp_path}/*.csv"):
        with open_spark_table(name) as rows:
            assert rdt().fit(rows).release_.to_json() == same, name
    assert rdt().fit(spark.table("visits")).release_.to_json() == same
    for name in ("no_such_table", "no/such/folder", "no.csv", "drop table visits"):
        with pytest.raises(TableError, match="Spark cannot open it"), open_spark_table(name):
            pass


@pytest.mark.parametrize("dialect", [CSVDialect(), CSVDialect(delimiter=";", escape="\\")])
def test_a_csv_is_one_row_for_each_line(spark: Any, tmp_path: Path, dialect: CSVDialect) -> None:
    """Two files with the same header, read as the streaming engine reads them: a line changes no other."""
    header = b"colour,flag,age,shape,class\r\n"
    lines = [b'red,1,"50","ro""und",yes', b'red,"open,0,60,flat,no', b"gr\ree,0,60,fl\rat,no", b"blue,1", b"\xff,1,1,flat,no", b""]
    lines += [b'red,1,"5\\"0",flat,yes']
    for name, part in (("one", [*lines, b"red,1,50,flat,yes"]), ("two", lines[::-1])):
        content = (b"\xef\xbb\xbf" if name == "one" else b"") + header + b"\n".join(part)
        (tmp_path / f"{name}.csv").write_bytes(content.replace(b",", (dialect.delimiter or ",").encode()))
    names = ["colour", "flag", "age", "shape", "class"]
    here = TableFile(tmp_path, names, leave_out_unreadable=True, dialect=dialect).text_columns(names)
    expected = sorted(map(repr, zip(*(here[name] for name in names), strict=True)))
    assert len(expected) >= 7
    with open_spark_table(CSVTable(str(tmp_path / "*.csv"), **asdict(dialect))) as rows:
        assert sorted(repr(tuple(row)) for row in rows.collect()) == expected
        schema = Schema([Categorical("colour", ["red", "blue"])], Target("class", ["yes", "no"]))
        assert exact_answers.count_rows(SparkRows(rows, Codebook(schema))) == len(expected)
        assert {kind for _, kind in rows.dtypes} == {"string"}
    with pytest.raises(TableError, match="multiline"), open_spark_table(CSVTable(str(tmp_path / "*.csv"), multiline=True)):
        pass


def test_the_dialect_of_the_schema_counts_where_none_is_given(spark: Any, frame: Any, tmp_path: Path) -> None:
    from hedgerow.cli.places import EngineName, Place

    path = tmp_path / "rows.csv"
    path.write_bytes(b"colour;class\n're;d';yes\n'open;no\n")
    attributes, target = [Categorical("colour", ["re;d"])], Target("class", ["yes", "no"])

    def place(data: str, csv: str | None = None) -> Place:
        return Place(data, None, None, EngineName.spark, None, csv=csv)

    with place(str(path)).rows(Schema(attributes, target, csv=CSVDialect(quote="'"))) as rows:
        assert [tuple(row) for row in rows.collect()] == [("re;d", "yes")]
    several = Schema(attributes, target, csv=CSVDialect(quote="'", multiline=True))
    with pytest.raises(TableError, match="multiline"), place(str(path)).rows(several):
        pass
    with place(str(path), "quote='").rows(several) as rows:  # what is said last
        assert len(rows.collect()) == 1
    frame.createOrReplaceTempView("visits")
    with place("visits").rows(several) as rows:  # it speaks of CSV files alone
        assert rows.columns == frame.columns
