"""Exported forests predict as their releases do: every forest and vote, on rows and names that are as odd as they can be."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from export_cases import BOOSTED, DAY, HOSTILE, NAMES, odd_rows, of_yes_and_no, release_of, with_classes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.pipeline import Pipeline
from strategies import forests
from typer.testing import CliRunner

import hedgerow
from hedgerow import Categorical, Numeric, Release, Schema, Target
from hedgerow.cli import app
from hedgerow.datasets import patients
from hedgerow.errors import PlanError
from hedgerow.exporters.merge_codes import merged
from hedgerow.exporters.portable import _columns, _tree, portable
from hedgerow.exporters.sql import sql_text
from hedgerow.inference.vote import ADDITIVE, SUMMED_COUNTS, VOTES
from hedgerow.release.release import _with
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.oblivious import Answers, ObliviousTree
from hedgerow.trees.tree import TreeBuilder

ROWS = 10_000


def loaded(text: str, folder: Path) -> ModuleType:
    (folder / "forest.py").write_text(text, encoding="utf-8")
    specification = importlib.util.spec_from_file_location("exported", folder / "forest.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def by_duckdb(release: Release, frame: pd.DataFrame) -> tuple[list[Any], np.ndarray[Any, Any]]:
    """Labels and probabilities."""
    with duckdb.connect() as connection:
        connection.register("frame", frame.assign(**{"the id": range(len(frame))}))
        connection.execute('CREATE TABLE "the rows" AS SELECT * FROM frame')
        text = hedgerow.export(release, "sql", table='"the rows"', keep=["the id"])
        assert isinstance(text, str)
        rows = sorted(connection.sql(text).fetchall())
    return [row[1] for row in rows], np.array([row[2:] for row in rows], dtype=float).reshape(len(frame), -1)


def by_onnx(release: Release, frame: pd.DataFrame, days: np.ndarray[Any, Any] | None = None) -> tuple[list[Any], np.ndarray[Any, Any]]:
    onnxruntime = pytest.importorskip("onnxruntime")
    content = hedgerow.export(release, "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    feed = {}
    for name, entry in zip(release.schema.names, session.get_inputs(), strict=True):
        column = frame[name]
        if entry.type == "tensor(string)":
            feed[entry.name] = np.array([["" if pd.isna(value) else str(value)] for value in column], dtype=object)
        else:
            feed[entry.name] = (days if name == DAY and days is not None else column.to_numpy(float))[:, None]
    label, shares = session.run(["label", "probabilities"], feed)
    return list(label), shares


def days_of(release: Release, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Dates as numbers, which is what an ONNX model takes."""
    coder: Any = release.codebook.coders[list(release.schema.names).index(DAY)]
    return np.asarray(coder.numbers(frame[DAY].to_numpy(dtype=object)))


@pytest.mark.parametrize("name", NAMES)
def test_python(name: str, tmp_path: Path) -> None:
    frame = odd_rows(1_500)
    module = loaded(str(hedgerow.export(release_of(name), "python")), tmp_path)
    rows = frame.to_dict("records")
    assert np.abs(np.array([module.predict_proba(row) for row in rows]) - release_of(name).predict_proba(frame)).max() < 1e-12
    assert [module.predict(row) for row in rows[:300]] == list(release_of(name).predict(frame.head(300)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_python_on_many_rows(name: str, tmp_path: Path) -> None:
    frame = odd_rows(ROWS, seed=2)
    module = loaded(str(hedgerow.export(release_of(name), "python")), tmp_path)
    got = np.array([module.predict_proba(row) for row in frame.to_dict("records")])
    assert np.abs(got - release_of(name).predict_proba(frame)).max() < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_sql_in_duckdb(name: str) -> None:
    frame = odd_rows(ROWS)
    labels, shares = by_duckdb(release_of(name), frame)
    assert np.abs(shares - release_of(name).predict_proba(frame)).max() < 1e-9
    assert np.mean(np.array(labels, dtype=object) == release_of(name).predict(frame)) > 0.999  # sums in another order may part a tie


def test_booleans_where_texts_are_declared_are_an_error() -> None:
    """DuckDB makes them of yes and no in a CSV: they were taken for undeclared values, without a word."""
    release, read = of_yes_and_no(), pd.DataFrame({"paid": ["no", "yes"], "old": [False, True]})
    assert np.abs(by_duckdb(release, read)[1] - release.predict_proba(read)).max() < 1e-9
    with pytest.raises(duckdb.Error, match="column paid holds booleans, and no declared value is one"):
        by_duckdb(release, read.assign(paid=read.old))


@pytest.mark.parametrize("name", NAMES)
def test_onnx(name: str) -> None:
    frame = odd_rows(ROWS)
    release = release_of(name)
    labels, shares = by_onnx(release, frame, days_of(release, frame))
    assert np.abs(shares - release.predict_proba(frame)).max() < 1e-9
    assert np.mean(np.array(labels, dtype=object) == release.predict(frame)) > 0.999


MANY = 300


def of_many_values() -> dict[str, Release]:
    """Forests that ask about a category of 300 values, no two of which all trees treat alike."""
    texts = [f"{value:03d}" for value in range(MANY)]
    schema = Schema([Categorical("c", texts), Numeric("z", 0, 1)], Target("t", ["n", "y"]))
    rng = np.random.default_rng(0)
    place, z = rng.integers(0, MANY, 20_000), rng.random(20_000)
    classes = np.where(rng.random(20_000) < 0.2 + 0.6 * (place % 2), "y", "n")
    frame = pd.DataFrame({"c": np.array(texts, dtype=object)[place], "z": z})
    boosted = hedgerow.HedgerowClassifier(schema, epsilon=8, delta=1e-6, max_passes=6).fit(frame, classes).release_
    trees = []
    for bit in range(9):  # every other value, every other two, …; where each half leads there is a question, too
        builder = TreeBuilder(boosted.codebook.sizes)
        for child in builder.split(0, 0, [value >> bit & 1 for value in range(boosted.codebook.sizes[0])]):
            builder.split(child, 1)
        trees.append(builder.build())
    counts = tuple(rng.integers(0, 99, (len(tree.leaves), 2)) for tree in trees)
    forest = CountedForest(boosted.codebook, tuple(trees), counts, (Fraction(1),))
    return {"boosted": boosted, "plain": Release(forest, boosted.certificate, algorithm="any", vote=SUMMED_COUNTS)}


def test_onnx_of_a_category_with_many_values() -> None:
    """Values that lead to the same child were asked about one after the other: RecursionError from 80 values on."""
    for name, release in of_many_values().items():
        frame = odd_rows(3000, schema=release.schema)
        assert np.abs(by_onnx(release, frame)[1] - release.predict_proba(frame)).max() < 1e-9, name
        assert len(hedgerow.export(release, "onnx")) < 5_000_000, name  # 18 MB, were each level asked at every node


def test_levels_that_change_nothing_are_not_asked() -> None:
    """Of three levels only the first changes a score. The statement asks about no other column, and finds the leaf all the same."""
    release = release_of(BOOSTED)
    sizes = release.codebook.sizes
    first, second, third = ([code % 3 for code in range(sizes[0] + 1)], [0] * sizes[3] + [1], [code % 2 for code in range(sizes[1] + 1)])
    scores = np.repeat([[0.0, 0.1, 0.2], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]], 4, axis=0)
    tree = ObliviousTree(sizes, (0, 3, 1), (Answers(first), Answers(second), Answers(third)))
    one = replace(portable(release), trees=[])
    columns, trees = merged(_columns(release), [_tree(tree, scores)])
    text = sql_text(replace(one, columns=columns, trees=trees, base=[0.0] * 3), table="rows", keep=["id"])
    rows = odd_rows(500)
    with duckdb.connect() as connection:
        connection.register("rows", rows.assign(id=range(500)))
        found = np.array([row[2:] for row in sorted(connection.execute(text).fetchall())], dtype=float)
    margins = scores[4 * np.array(first)[release.codebook.encode(rows)[:, 0]]]
    expected = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    assert np.abs(found - expected).max() < 1e-12
    assert "v3" not in text


def test_dates_of_a_type_of_their_own() -> None:
    frame = odd_rows(500)
    days = pd.Series(pd.to_datetime(frame[DAY].str.strip(), format="%d.%m.%Y", errors="coerce"))
    typed = frame.assign(**{DAY: days.dt.date.astype(object).where(days.notna(), None)})
    for release in (release_of("rdt"), release_of("hedgerow")):
        assert np.abs(by_duckdb(release, typed)[1] - release.predict_proba(typed)).max() < 1e-9
        times = typed.assign(**{DAY: days + pd.Timedelta(hours=5)})
        assert np.abs(by_duckdb(release, times)[1] - release.predict_proba(typed)).max() < 1e-9


@pytest.mark.parametrize("classes", [[1, 2, 3], [True, False, "maybe"], [0.5, 1, 2.25], ["a", "A", "a "], [-1, 0, 2**40]])
def test_classes_of_every_type(classes: list[Any], tmp_path: Path) -> None:
    frame = odd_rows(300)
    release = with_classes(release_of("rdt"), classes)
    want = list(release.predict(frame))
    module = loaded(str(hedgerow.export(release, "python")), tmp_path)
    assert [module.predict(row) for row in frame.to_dict("records")] == want
    texts = [value if isinstance(value, str) else hedgerow.schema.attributes.text_of(value) for value in want]
    whole = all(type(value) is int for value in classes)
    alike = len({type(value) for value in classes}) == 1
    assert by_duckdb(release, frame)[0] == (want if alike else texts)
    assert by_onnx(release, frame, days_of(release, frame))[0] == (want if whole else texts)


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_forest_with_any_vote(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Trees of every shape and counts of every sign, with any schema, as one Python file and in DuckDB."""
    forest = data.draw(forests())
    vote = data.draw(st.sampled_from([vote for vote in VOTES if vote != ADDITIVE]))
    release = Release(forest, release_of("rdt").certificate, algorithm="any", vote=vote)
    frame = odd_rows(40, seed=data.draw(st.integers(0, 99)), schema=release.schema)
    want = release.predict_proba(frame)
    module = loaded(str(hedgerow.export(release, "python")), tmp_path_factory.mktemp("one"))
    assert np.abs(np.array([module.predict_proba(row) for row in frame.to_dict("records")]) - want).max() < 1e-12
    assert np.abs(by_onnx(release, frame)[1] - want).max() < 1e-9
    if len({name.casefold() for name in [*release.schema.names, "the id"]}) > len(release.schema.names):  # DuckDB takes a and A for one
        assert np.abs(by_duckdb(release, frame)[1] - want).max() < 1e-9


def test_rows_without_some_columns_where_owners_hold_different_ones(tmp_path: Path) -> None:
    one, two = release_of("rdt"), release_of("plain-rdt")
    united = hedgerow.Release(_united(one.forest), one.certificate, algorithm=one.algorithm, vote=one.vote, parameters=one.parameters)
    frame = odd_rows(200).drop(columns=[HOSTILE.names[0]])
    module = loaded(str(hedgerow.export(united, "python")), tmp_path)
    with pytest.warns(hedgerow.errors.MissingColumnsWarning):
        want = united.predict_proba(frame)
    assert np.abs(np.array([module.predict_proba(row) for row in frame.to_dict("records")]) - want).max() < 1e-12
    alone = loaded(str(hedgerow.export(two, "python")), tmp_path)
    with pytest.raises(KeyError, match="the row has no column"):
        alone.predict(frame.to_dict("records")[0])


def _united(forest: Any) -> Any:
    from dataclasses import replace

    return replace(forest, united=forest.ensembles, noise=())


# ---------------------------------------------------------------- what travels with it, and what is refused


def test_the_certificate_travels(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    release = release_of("hedgerow")
    sentence = release.certificate.sentence()
    module = loaded(str(hedgerow.export(release, "python")), tmp_path)
    assert module.CERTIFICATE["guarantee"] == sentence
    assert module.CERTIFICATE["certificate"]["epsilon"] == "8"
    told = [line for line in str(hedgerow.export(release, "sql")).splitlines() if line.startswith("-- guarantee: ")]
    assert json.loads(told[0].removeprefix("-- guarantee: ")) == sentence
    assert "ε = 8" in told[0]
    content = hedgerow.export(release, "onnx")
    assert isinstance(content, bytes)
    properties = {entry.key: entry.value for entry in onnx.load_from_string(content).metadata_props}
    assert properties["hedgerow.content_hash"] == release.content_hash
    assert json.loads(properties["hedgerow.certificate"])["epsilon"] == "8"


def test_an_estimator_is_exported_by_its_release() -> None:
    """It was an AttributeError."""
    table = patients(200)
    model = hedgerow.PrivateRDTClassifier(table.schema, 1, budget=hedgerow.Budget(1), random_state=0)
    with pytest.raises(PlanError, match="export: got PrivateRDTClassifier; expected a Release or a fitted estimator"):
        hedgerow.export(model, "python")
    model.fit(table.X, table.y)
    assert hedgerow.export(model, "python") == hedgerow.export(model.release_, "python")
    with pytest.raises(PlanError, match=r"export: got Pipeline.*pipeline\[-1\]"):
        hedgerow.export(Pipeline([("forest", model)]), "python")


def test_no_text_of_a_release_ends_a_comment() -> None:
    release = release_of("rdt")
    evil = _with(release, made_by="x\n; DROP TABLE rows; */ \u2028 ${env:HOME} --", algorithm="a\r\nSELECT 1")
    for dialect in ("duckdb", "postgresql", "spark"):
        comments = [line for line in str(hedgerow.export(evil, "sql", dialect=dialect)).split("WITH valued")[0].split("\n") if line]
        assert all(line.startswith("-- ") for line in comments)
        assert not any(character in line for line in comments for character in ";$*\r\u2028")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"to": "pmml"}, "expected one of onnx, sql, python"),
        ({"to": "sql", "dialect": "oracle"}, "expected one of duckdb, postgresql, spark"),
        ({"to": "sql", "table": 'a".b; DROP'}, "expected table or schema.table"),
        ({"to": "sql", "keep": ["id", "id"]}, "named twice"),
    ],
)
def test_refusals(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        hedgerow.export(release_of("rdt"), **settings)


def test_spark_would_replace_a_setting_in_a_name() -> None:
    with pytest.raises(PlanError, match="Rename the column"):
        hedgerow.export(release_of("rdt"), "sql", dialect="spark", keep=["${env:HOME}"])


def test_without_onnx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(PlanError, match=r"hedgerow\[onnx\]"):
        hedgerow.export(release_of("rdt"), "onnx")


# ---------------------------------------------------------------- files and the command line


@pytest.fixture
def saved(tmp_path: Path) -> SimpleNamespace:
    frame = odd_rows(60)
    release_of("hedgerow").save(tmp_path / "forest.json")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return SimpleNamespace(forest=tmp_path / "forest.json", rows=tmp_path / "rows.csv", frame=frame, folder=tmp_path)


def test_a_python_file_runs_by_itself(saved: SimpleNamespace) -> None:
    """Without this package, without any other: only Python's own modules can be imported."""
    (saved.folder / "forest.py").write_text(str(hedgerow.export(release_of("hedgerow"), "python")), encoding="utf-8")
    command = [sys.executable, "-I", "-S", "forest.py", "rows.csv"]
    done = subprocess.run(command, cwd=saved.folder, capture_output=True, text=True, encoding="utf-8", check=True)
    got = pd.read_csv(saved.folder / "rows.csv", dtype=str, keep_default_na=False)  # as text, which is what a CSV file has
    shares = pd.read_csv(StringIO(done.stdout)).iloc[:, 1:].to_numpy()
    want = release_of("hedgerow").predict_proba(got)
    assert np.abs(shares - want).max() < 1e-12


@pytest.mark.parametrize("source", ["file", "standard input"])
def test_a_python_file_reads_what_a_spreadsheet_writes(saved: SimpleNamespace, source: str) -> None:
    """A byte order mark, and another delimiter than the comma; the header alone decides."""
    (saved.folder / "forest.py").write_text(str(hedgerow.export(release_of("hedgerow"), "python")), encoding="utf-8")
    for delimiter in ",;\t|":
        saved.frame.to_csv(saved.rows, index=False, sep=delimiter, encoding="utf-8-sig")
        command = [sys.executable, "-I", "-S", "-X", "utf8", "forest.py", *(["rows.csv"] if source == "file" else [])]
        with saved.rows.open("rb") as rows:
            done = subprocess.run(command, cwd=saved.folder, stdin=rows, capture_output=True, check=True, text=True, encoding="utf-8")
        got = pd.read_csv(saved.rows, sep=delimiter, dtype=str, keep_default_na=False, encoding="utf-8-sig")
        shares = pd.read_csv(StringIO(done.stdout)).iloc[:, 1:].to_numpy()
        assert np.abs(shares - release_of("hedgerow").predict_proba(got)).max() < 1e-12


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"a,b\n1,2\n", "it has no column "), (b"", "it has no column "), (b"\xff\xfe,\n", "not text in UTF-8")],
    ids=["missing", "columns", "empty", "encoding"],
)
def test_a_python_file_refuses_in_one_line(saved: SimpleNamespace, content: bytes | None, said: str) -> None:
    (saved.folder / "forest.py").write_text(str(hedgerow.export(release_of("hedgerow"), "python")), encoding="utf-8")
    if content is not None:
        (saved.folder / "other.csv").write_bytes(content)
    command = [sys.executable, "-I", "-S", "-X", "utf8", "forest.py", "other.csv"]
    done = subprocess.run(command, cwd=saved.folder, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert "error: other.csv: " in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("$1,1,234,,1,1,04.05.2022", True),
        ('"$1,1,,1,1,', True),
        ('"$1"x,1,,1,1,', True),
        ("$1,1,,1,1,,,", False),
        ("$1", False),
        ("", False),
    ],
    ids=["more cells", "open quote", "text after a quote", "empty cells", "fewer cells", "no row"],
)
def test_a_python_file_refuses_the_lines_that_predict_refuses(saved: SimpleNamespace, line: str, refused: bool) -> None:
    """It predicted from shifted columns, or took the lines behind an open quote for one cell."""
    (saved.folder / "forest.py").write_text(str(hedgerow.export(release_of("hedgerow"), "python")), encoding="utf-8")
    header, plain = saved.rows.read_text(encoding="utf-8").splitlines()[0], "*/ x,0,,1,1,04.05.2022"
    last = [] if refused else ['"line', 'break",0,,1,1,04.05.2022']  # which the file reads, and `predict` with multiline alone
    saved.rows.write_text("\n".join([header, plain, line, plain, *last, ""]), encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-X", "utf8", "forest.py", "rows.csv"]
    done = subprocess.run(command, cwd=saved.folder, capture_output=True, text=True, encoding="utf-8", check=False)
    by_command = run("predict", saved.forest, saved.rows, *([] if refused else ["--csv", "multiline"]))
    assert (done.returncode, by_command.exit_code != 0) == (int(refused), refused), (done.stderr, by_command.output)
    if refused:
        assert "error: rows.csv: line 3 is no row: " in done.stderr
    else:
        assert list(pd.read_csv(StringIO(done.stdout)).iloc[:, 0]) == list(pd.read_csv(StringIO(by_command.stdout)).iloc[:, 0])


def test_a_python_file_refuses_lines_that_a_quote_joins(saved: SimpleNamespace) -> None:
    """Two quotes too many, lines apart: what stands between them is no cell."""
    (saved.folder / "forest.py").write_text(str(hedgerow.export(release_of("hedgerow"), "python")), encoding="utf-8")
    header = saved.rows.read_text(encoding="utf-8").splitlines()[0]
    saved.rows.write_text(f'{header}\n$1,"0,no,1,1,\n$1,0,no",1,1,\n', encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-X", "utf8", "forest.py", "rows.csv"]
    done = subprocess.run(command, cwd=saved.folder, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, "line 2 is no row" in done.stderr) == (1, True), done.stderr


def test_a_python_file_ends_quietly_when_nobody_reads_on(saved: SimpleNamespace) -> None:
    """`python forest.py rows.csv | head` ended in a traceback."""
    (saved.folder / "forest.py").write_text(str(hedgerow.export(release_of("hedgerow"), "python")), encoding="utf-8")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-I", "-S", "forest.py", "rows.csv"]
    done = subprocess.run(command, cwd=saved.folder, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command(saved: SimpleNamespace) -> None:
    forest = Release.load(saved.forest)
    for goal, name in (("python", "forest.py"), ("sql", "forest.sql"), ("onnx", "forest.onnx")):
        done = run("export", saved.forest, "--to", goal, "-o", saved.folder / name)
        assert done.exit_code == 0, done.output
        assert "guarantee: " in done.output
        content = hedgerow.export(forest, goal)
        assert (saved.folder / name).read_bytes() == (content if isinstance(content, bytes) else content.encode())
        named = saved.folder / f"by_its_{name}"
        assert run("export", saved.forest, "-o", named).exit_code == 0
        assert named.read_bytes() == (saved.folder / name).read_bytes()
    assert run("export", saved.forest, "--to", "sql", "-o", saved.folder / "forest.sql").exit_code == 2  # it is there already
    assert "--to: missing; expected onnx, sql or python" in run("export", saved.forest, "-o", saved.folder / "forest.txt").stderr
    text = run("export", saved.forest, "--to", "sql", "--dialect", "spark", "--table", "a.b", "--keep", "id", "-o", "-")
    assert text.exit_code == 0
    assert "FROM `a`.`b` AS t" in text.stdout


def test_an_onnx_model_is_not_written_to_a_terminal(saved: SimpleNamespace) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "hedgerow", "export", str(saved.forest), "--to", "onnx"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True, encoding="utf-8", check=False, timeout=60)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert "name a file with -o forest.onnx" in done.stderr
