"""The public data sets: computed ones are compared exactly, stored ones with what UCI documents."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from hedgerow import datasets
from hedgerow.datasets.patient_records import BLOCK
from hedgerow.errors import TableError
from hedgerow.schema.attributes import Numeric

needs_files = pytest.mark.skipif(
    not os.environ.get("HEDGEROW_DATA"),
    reason="HEDGEROW_DATA does not name the folder of the public data sets",
)

CHESS_COUNTS = {
    "draw": 2796, "zero": 27, "one": 78, "two": 246, "three": 81, "four": 198, "five": 471, "six": 592,
    "seven": 683, "eight": 1433, "nine": 1712, "ten": 1985, "eleven": 2854, "twelve": 3597, "thirteen": 4194,
    "fourteen": 4553, "fifteen": 2166, "sixteen": 390,
}  # fmt: skip
CLASS_COUNTS = {
    "adult": {"<=50K": 37155, ">50K": 11687},
    "bank-marketing": {"no": 39922, "yes": 5289},
    "car": {"unacc": 1210, "acc": 384, "good": 69, "vgood": 65},
    "chess-krk": CHESS_COUNTS,
    "cmc": {"1": 629, "2": 333, "3": 511},
    "connect-4": {"win": 44473, "loss": 16635, "draw": 6449},
    "german-credit": {"1": 700, "2": 300},
    "mushroom": {"e": 4208, "p": 3916},
    "nursery": {"not_recom": 4320, "recommend": 2, "very_recom": 328, "priority": 4266, "spec_prior": 4044},
    "tic-tac-toe": {"positive": 626, "negative": 332},
    "votes": {"democrat": 267, "republican": 168},
}


def rows_of(dataset: datasets.Dataset) -> list[tuple[str, ...]]:
    columns = [values.tolist() for values in (*dataset.columns.values(), dataset.y)]
    return list(zip(*columns, strict=True))


def stored_rows(name: str) -> list[tuple[str, ...]]:
    path = Path(os.environ["HEDGEROW_DATA"]) / f"{name}.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def assert_in_domain(dataset: datasets.Dataset) -> None:
    assert set(dataset.y.tolist()) <= set(dataset.schema.target.classes)
    for attribute in dataset.schema.attributes:
        values = dataset.columns[attribute.name]
        if isinstance(attribute, Numeric):
            assert values.dtype == np.float64
            assert attribute.low <= values.min(), attribute.name
            assert values.max() <= attribute.high, attribute.name
        else:
            assert values.dtype.kind == "U"
            assert set(values.tolist()) <= set(attribute.values), attribute.name


def same_rows(a: datasets.Dataset, b: datasets.Dataset, rows: slice = slice(None)) -> bool:
    pairs = [(a.target, b.target), *((a.columns[name], b.columns[name]) for name in a.columns)]
    return all(x.dtype == y.dtype and np.array_equal(x, y[rows]) for x, y in pairs)


# ---- computed sets


def test_chess_has_the_documented_positions() -> None:
    dataset = datasets.chess_krk()
    assert Counter(dataset.y.tolist()) == CHESS_COUNTS
    assert len(set(rows_of(dataset))) == len(dataset) == 28_056
    assert_in_domain(dataset)


def test_tic_tac_toe_has_the_documented_boards() -> None:
    dataset = datasets.tic_tac_toe()
    assert Counter(dataset.y.tolist()) == CLASS_COUNTS["tic-tac-toe"]
    boards = set(rows_of(dataset))
    assert len(boards) == len(dataset) == 958
    assert ("x", "x", "x", "o", "o", "b", "b", "b", "b", "positive") in boards
    assert ("x", "x", "x", "o", "o", "o", "b", "b", "b", "positive") not in boards  # o moved after x had won
    assert_in_domain(dataset)


@needs_files
@pytest.mark.parametrize("name", ["chess-krk", "tic-tac-toe"])
def test_computed_set_equals_the_public_file(name: str) -> None:
    computed, stored = rows_of(datasets.load(name)), stored_rows(name)
    assert Counter(computed) == Counter(stored)
    assert computed == stored  # in the order of the file too
    assert computed == rows_of(datasets.load(name, fetch=False))


# ---- stored sets


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize("name", sorted(CLASS_COUNTS))
def test_public_set_lies_in_its_declared_domain(name: str) -> None:
    dataset = datasets.load_public(name, fetch=False)
    assert_in_domain(dataset)
    assert Counter(dataset.y.tolist()) == CLASS_COUNTS[name]
    assert dataset.schema.rows is None
    assert dataset.schema.unreviewed == ()


@pytest.mark.parametrize("name", [*sorted(CLASS_COUNTS), "breast-cancer"])
def test_shipped_schema_can_be_read_without_data(name: str) -> None:
    schema = datasets.declared_schema(name)
    assert set(CLASS_COUNTS.get(name, {"malignant", "benign"})) == set(schema.target.classes)


@needs_files
def test_drop_leaves_an_attribute_out_of_columns_and_schema() -> None:
    dataset = datasets.load("mushroom", drop=["stalk-root"])
    assert len(dataset.feature_names) == 21
    assert "stalk-root" not in dataset.feature_names
    assert dataset.X.shape == (8124, 21)
    whole = datasets.load("mushroom")
    assert (whole.columns["stalk-root"] == "?").sum() == 2480


def test_a_damaged_or_absent_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_DATA", str(tmp_path))
    with pytest.raises(TableError, match=r"car\.csv\.gz.*FileNotFoundError.*HEDGEROW_DATA.*fetch=True"):
        datasets.load("car")
    header = "buying,maint,doors,persons,lug_boot,safety,class"
    for content, message in [
        ("a,b\n", "first line: got"),
        (f"{header}\n", "no rows"),
        (f"{header}\nvhigh,vhigh,2\n", "line 2: got 3 cells; expected 7"),
        (f"{header}\nvhigh,vhigh,2,2,small,odd,unacc\n", "'safety': got 'odd'; expected one of low, med"),
        (f"{header}\nvhigh,vhigh,2,2,small,low,no\n", "'class': got 'no'"),
    ]:
        (tmp_path / "car.csv.gz").write_bytes(gzip.compress(content.encode()))
        with pytest.raises(TableError, match=message):
            datasets.load("car")
    (tmp_path / "car.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(TableError, match="BadGzipFile"):
        datasets.load("car")


def test_numbers_outside_the_bounds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_DATA", str(tmp_path))
    header = ",".join([*datasets.declared_schema("cmc").names, "class"])
    refused = {"nan": "got nan; expected numbers from 15 to 50", "99": "got 99.0", "old": "only numbers"}
    for age, message in refused.items():
        (tmp_path / "cmc.csv.gz").write_bytes(gzip.compress(f"{header}\n{age},2,3,3,1,1,2,3,0,1\n".encode()))
        with pytest.raises(TableError, match=message):
            datasets.load("cmc")


# ---- OpenML, without a network


def fake_openml(dataset: datasets.Dataset, class_text: dict[str, str]) -> SimpleNamespace:
    """What scikit-learn's parser gives: numbers, or category numbers and apart the categories; `?` is NaN."""
    categories, columns = {}, []
    for position, attribute in enumerate(dataset.schema.attributes):
        values = dataset.columns[attribute.name]
        if isinstance(attribute, Numeric):
            columns.append(values)
            continue
        named = [value for value in attribute.values if value != "?"]
        categories[f"V{position + 1}"] = named
        columns.append(np.array([named.index(v) if v != "?" else np.nan for v in values.tolist()]))
    target = np.array([class_text.get(text, text) for text in dataset.y.tolist()], dtype=object)
    names = [f"V{position + 1}" for position in range(len(columns))]
    data = np.column_stack(columns)
    return SimpleNamespace(data=data, categories=categories, feature_names=names, target=target)


def test_openml_copy_is_brought_back_to_the_documented_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = datasets.tic_tac_toe()
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: fake_openml(made, {}))
    monkeypatch.delenv("HEDGEROW_DATA", raising=False)
    assert same_rows(made, datasets.load_public("tic-tac-toe"))
    with pytest.raises(TableError, match="got 9 attributes; expected 6"):
        datasets.load("car")


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize("name", ["adult", "bank-marketing"])
def test_openml_copy_of_a_mixed_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = datasets.load(name)
    renamed = {"no": "1", "yes": "2"} if name == "bank-marketing" else {}
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: fake_openml(stored, renamed))
    assert same_rows(stored, datasets.load(name, fetch=True))


def test_no_network_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(**_: object) -> None:
        raise URLError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    monkeypatch.delenv("HEDGEROW_DATA", raising=False)
    with pytest.raises(TableError, match=r"'nursery'.*URLError.*network.*HEDGEROW_DATA.*nursery\.csv\.gz"):
        datasets.load("nursery")
    with pytest.raises(TableError, match=r"connect-4.*no copy at OpenML.*HEDGEROW_DATA"):
        datasets.load("connect-4", fetch=True)
    with pytest.raises(TableError, match="HEDGEROW_DATA is not set"):
        datasets.load("nursery", fetch=False)


# ---- synthetic and medical records


def test_patients_are_the_same_for_the_same_seed() -> None:
    first = datasets.patients(3000, seed=5)
    assert same_rows(first, datasets.load("patients", rows=3000, seed=5))
    assert not same_rows(first, datasets.patients(3000, seed=6))
    assert len(datasets.load("patients")) == 10_000
    assert_in_domain(first)


def test_patients_do_not_depend_on_how_many_or_in_what_chunks() -> None:
    rows = 2 * BLOCK + 777
    whole = datasets.patients(rows, seed=2)
    assert same_rows(datasets.patients(BLOCK + 5, seed=2), whole, slice(0, BLOCK + 5))
    for chunk in (BLOCK, 2 * BLOCK, 10_000, rows, 5 * BLOCK):
        pieces = list(datasets.patients_chunks(rows, chunk, seed=2))
        starts = range(0, rows, chunk)
        assert sum(map(len, pieces)) == rows
        assert len(pieces) == len(starts)
        for start, piece in zip(starts, pieces, strict=True):
            assert same_rows(piece, whole, slice(start, start + len(piece)))
    assert list(datasets.patients_chunks(0, 10)) == []


@pytest.mark.slow
def test_patients_can_be_learnt_but_not_trivially() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import OrdinalEncoder

    dataset = datasets.patients(20_000)
    coded = OrdinalEncoder().fit_transform(dataset.X)
    model = RandomForestClassifier(60, min_samples_leaf=5, random_state=0)
    model.fit(coded[:10_000], dataset.y[:10_000])
    majority = max(Counter(dataset.y.tolist()).values()) / len(dataset)
    assert 0.40 < majority < 0.60
    assert 0.75 < model.score(coded[10_000:], dataset.y[10_000:]) < 0.85


@pytest.mark.parametrize("rows", [0, -1, 2.5, True, "many"])
def test_patients_refuse_an_impossible_size(rows: object) -> None:
    with pytest.raises(TableError, match="patients, rows: got"):
        datasets.patients(rows)  # type: ignore[arg-type]


def test_chunks_check_their_arguments_before_the_first_piece() -> None:
    with pytest.raises(TableError, match="chunk: got 0"):
        datasets.patients_chunks(10, 0)
    with pytest.raises(TableError, match="seed: got -1"):
        datasets.patients_chunks(10, 10, seed=-1)


def test_breast_cancer() -> None:
    dataset = datasets.load("breast-cancer")
    assert Counter(dataset.y.tolist()) == {"malignant": 212, "benign": 357}
    assert len(dataset.feature_names) == 30
    assert_in_domain(dataset)


# ---- the Dataset itself


def test_names_and_an_unknown_name() -> None:
    assert datasets.names() == sorted([*CLASS_COUNTS, "breast-cancer", "patients"])
    with pytest.raises(TableError, match=r"got the name 'iris'; expected one of adult, bank-marketing"):
        datasets.load("iris")
    with pytest.raises(TableError, match=r"got \['tail'\]"):
        datasets.load("tic-tac-toe", drop=["tail"])


def test_table_views() -> None:
    pytest.importorskip("pandas")
    dataset = datasets.patients(50)
    assert dataset.X.shape == (50, 15)
    assert dataset.X.dtype == object
    assert type(dataset.X[0, 0]) is float
    assert type(dataset.X[0, 1]) is str
    assert dataset.y is dataset.target
    assert len(dataset) == 50
    frame = dataset.frame()
    assert list(frame.columns) == [*dataset.feature_names, "diagnosis"]
    assert frame["diagnosis"].tolist() == dataset.y.tolist()


def test_frame_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas is not installed.*pip install 'hedgerow\[pandas\]'.*\.columns"):
        datasets.tic_tac_toe().frame()


def test_columns_must_fit_the_schema() -> None:
    made = datasets.tic_tac_toe()
    with pytest.raises(TableError, match="expected those of its schema"):
        datasets.Dataset("boards", {}, made.target, made.schema, "")
    with pytest.raises(TableError, match="expected one value for each"):
        datasets.Dataset("boards", made.columns, made.target[:5], made.schema, "")


def test_csv_round_trip(tmp_path: Path) -> None:
    dataset = datasets.patients(200)
    dataset.to_csv(tmp_path / "plain.csv")
    dataset.to_csv(tmp_path / "one.csv.gz")
    dataset.to_csv(tmp_path / "two.csv.gz")
    packed = (tmp_path / "one.csv.gz").read_bytes()
    assert packed == (tmp_path / "two.csv.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "plain.csv").read_bytes()
    with (tmp_path / "plain.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*dataset.feature_names, "diagnosis"]
    assert [float(row[0]) for row in rows] == dataset.columns["age"].tolist()
    assert "." not in rows[0][0]
    assert [float(row[7]) for row in rows] == dataset.columns["bmi"].tolist()
    assert [row[-1] for row in rows] == dataset.y.tolist()


def test_import_is_light() -> None:
    code = "import sys, hedgerow.datasets as d; d.names(); print([m for m in ('sklearn', 'pandas') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
