"""Drafts: the same rules for files and data frames, and nothing of them counts as public."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hedgerow import Budget, Categorical, HedgerowClassifier, Numeric, PrivateRDTClassifier, Schema, Target
from hedgerow.engines.draft import draft_from_file
from hedgerow.engines.draft_columns import outward
from hedgerow.errors import DraftWarning, SchemaError, TableError, UnreviewedSchemaWarning

ROWS = 200
TABLE = pd.DataFrame(
    {
        "customer": np.arange(70_001, 70_001 + ROWS),
        "branch": [f"{i % 9:04d}" for i in range(ROWS)],
        "opened": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.{2001 + i % 7}" for i in range(ROWS)],
        "age": ["NA" if i % 20 == 3 else str(18 + i % 61) for i in range(ROWS)],
        "income": [f"{1_234.5 + 977 * i:.2f}" for i in range(ROWS)],
        "job": [("clerk", "nurse", "?")[i % 3] for i in range(ROWS)],
        "late": [str((0, 1, 2, 3, 5)[i % 5]) for i in range(ROWS)],
        "married": [("yes", "no", "")[i % 3] for i in range(ROWS)],
        "default": [str(i % 2) for i in range(ROWS)],
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    TABLE.to_csv(tmp_path / "bank.csv", index=False)
    return tmp_path / "bank.csv"


def quietly(*args: Any, **how: Any) -> Schema:
    with pytest.warns(DraftWarning):
        return Schema.draft(*args, **how)


def test_what_a_draft_declares(path: Path) -> None:
    schema = quietly(path, "default")
    entries = {each.name: each for each in schema.attributes}
    assert "customer" not in entries  # whole numbers that all differ
    assert entries["branch"] == Categorical("branch", [f"{i:04d}" for i in range(9)], unreviewed=True)
    assert entries["opened"] == Numeric("opened", "2001-01-01", "2007-12-31", date="%d.%m.%Y", unreviewed=True)  # type: ignore[arg-type]
    assert entries["age"] == Numeric("age", 15, 80, missing="missing", unreviewed=True, integer=True)
    assert entries["income"] == Numeric("income", 0, 200_000, unreviewed=True)
    assert entries["job"] == Categorical("job", ["clerk", "nurse"], other="missing", missing="missing", unreviewed=True)
    assert entries["late"] == Numeric("late", 0, 5, unreviewed=True, integer=True)
    assert entries["married"] == Categorical("married", ["no", "yes"], missing="missing", unreviewed=True)
    assert schema.target.classes == (0, 1)
    assert set(schema.unreviewed) == {*entries, "default"}


def test_it_says_what_it_did(path: Path) -> None:
    with pytest.warns(DraftWarning, match="as private as they are") as told:
        schema = Schema.draft(path, "default")
    for words in (
        "may identify people: customer",
        "whole numbers of which each row or person has its own",
        "To learn from one of them, draft again with keep=['COLUMN']; if one of them names persons",
        "with person='COLUMN'",
        "'NA' in age; '?' in job",
        "the zeros they begin with: branch",
        "opened (%d.%m.%Y)",
    ):
        assert words in str(told[0].message)
        assert words in schema.to_toml()  # as comments, so that whoever reviews the file sees them
    assert Schema.from_toml(schema.to_toml()) == schema


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_are_drafted_as_files_are(path: Path, library: Any) -> None:
    from_file = quietly(path, "default")
    frame = TABLE.astype({"customer": int, "default": int}) if library is pd else pl.from_pandas(TABLE.astype({"default": int}))
    assert quietly(frame, "default") == from_file
    assert quietly(frame.drop(columns="default") if library is pd else frame.drop("default"), frame["default"]) == from_file


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_labels_that_a_frame_holds_as_text_are_declared_as_text(library: Any) -> None:
    """0 and 1 were declared, and a fit to the same frame refused its labels."""
    frame = TABLE.astype({"default": "string"}) if library is pd else pl.from_pandas(TABLE)
    schema = quietly(frame, "default")
    assert schema.target.classes == ("0", "1")
    assert schema.check(frame).rows == len(TABLE)
    other = replace(schema, target=replace(schema.target, classes=(0, 1)))
    with pytest.raises(TableError, match="holds text, but the schema declares the classes 0, 1: labels of another type"):
        other.check(frame)


def test_numbers_and_dates_that_a_library_has_read_already(path: Path) -> None:
    read = pd.read_csv(path, dtype={"branch": str})
    read["opened"] = pd.to_datetime(read["opened"], format="%d.%m.%Y")
    schema = quietly(read, "default")
    entries = {each.name: each for each in schema.attributes}
    assert entries["age"] == Numeric("age", 15, 80, missing="missing", unreviewed=True, integer=True)
    assert entries["opened"].date == "%Y-%m-%d"  # type: ignore[union-attr]
    with pytest.warns(UnreviewedSchemaWarning):  # no ε is claimed for it
        model = HedgerowClassifier(schema, epsilon=1, delta=1e-6).fit(read, accept_draft=True)
    assert model.release_.certificate.epsilon is None
    assert len(model.predict(read.drop(columns="default"))) == ROWS


def test_a_person_and_columns_that_are_kept() -> None:
    schema = quietly(TABLE, "default", person="customer", rows_per_person=3, keep=["income"])
    assert (schema.person, schema.k) == ("customer", 3)
    assert "customer" not in schema.names
    assert "customer" in quietly(TABLE, "default", keep=["customer"]).names
    for wrong in ({"person": "custmer"}, {"keep": ["custmer"]}):
        with pytest.raises(TableError, match="Did you mean 'customer'"):
            Schema.draft(TABLE, "default", **wrong)  # type: ignore[arg-type]
    with pytest.raises(TableError, match=r"^person: the table has no column 'custmer'"):
        Schema.draft(TABLE, "default", person="custmer")
    with pytest.raises(TableError, match=r"no column 'Y'.*Did you mean 'y'"):
        Schema.draft({"x": [1.5, 2.5] * 20, "y": ["a", "b"] * 20}, "Y")


def test_numbers_with_a_percent_sign_are_said_to_be_none() -> None:
    """They were left out as what may identify people."""
    table = {"share": [f"{i / 8} %" for i in range(200)], "few": ["5%", "10%"] * 100, "y": ["a", "b"] * 100}
    schema = quietly(table, "y")
    assert schema.attributes[0] == Numeric("share", 0, 26, missing="missing", unreviewed=True)
    assert schema.attributes[1] == Categorical("few", ["10%", "5%"], unreviewed=True)  # text
    assert "numbers with a percent sign cannot be read and would count as missing: write them without" in " ".join(schema.notes)
    assert "identify" not in " ".join(schema.notes)


@pytest.mark.parametrize(
    ("between", "end", "written"),
    [
        ("T", "Z", "%Y-%m-%dT%H:%M:%SZ"),
        (" ", "Z", "%Y-%m-%d %H:%M:%SZ"),
        ("T", ".25Z", "%Y-%m-%dT%H:%M:%SZ"),
        ("T", ".25", "%Y-%m-%dT%H:%M:%S"),
        ("T", "+00:00", "%Y-%m-%dT%H:%M:%S+00:00"),
        (" ", "+00:00", "%Y-%m-%d %H:%M:%S+00:00"),
    ],
)
def test_timestamps_of_iso_8601_are_dates(tmp_path: Path, between: str, end: str, written: str) -> None:
    times = [f"2017-{1 + i % 12:02d}-{1 + i % 28:02d}{between}06:{i % 60:02d}:42{end}" for i in range(ROWS)]
    table = pd.DataFrame({"at": times, "default": TABLE["default"]})
    table.to_csv(tmp_path / "times.csv", index=False)
    for rows in (table, tmp_path / "times.csv"):
        schema = quietly(rows, "default")
        assert schema.attributes == (Numeric("at", "2017-01-01", "2017-12-31", date=written, unreviewed=True),)  # type: ignore[arg-type]
        assert not schema.check(rows).misfits


def test_timestamps_without_seconds_are_dates() -> None:
    for written, end in (("%Y-%m-%dT%H:%M", ""), ("%Y-%m-%dT%H:%MZ", "Z")):
        times = [f"2017-{1 + i % 12:02d}-{1 + i % 28:02d}T06:{i % 60:02d}{end}" for i in range(ROWS)]
        [found] = quietly(pd.DataFrame({"at": times, "default": TABLE["default"]}), "default").attributes
        assert found == Numeric("at", "2017-01-01", "2017-12-31", date=written, unreviewed=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "written",
    ["%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d-%m-%Y %H:%M", "%d/%m/%Y %H:%M:%S"],
)
def test_days_with_a_time_are_dates_as_days_alone_are(written: str, tmp_path: Path) -> None:
    """They were left out as identifiers, or listed as categories when they were kept."""
    times = pd.to_datetime([f"2017-{1 + i % 12:02d}-{1 + i % 28:02d} 06:{i % 60:02d}:42" for i in range(ROWS)])
    table = pd.DataFrame({"at": times.strftime(written), "default": TABLE["default"]})
    table.to_csv(tmp_path / "times.csv", index=False)
    for rows in (table, tmp_path / "times.csv"):
        schema = quietly(rows, "default")
        assert schema.attributes == (Numeric("at", "2017-01-01", "2017-12-31", date=written, unreviewed=True),)  # type: ignore[arg-type]
        assert not schema.check(rows).misfits


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_times_of_a_type_of_their_own_are_declared_as_a_file_has_them(library: Any, tmp_path: Path) -> None:
    """Days alone were declared, and of the same table as a file no date could be read: it was paid for."""
    times = pd.Series(pd.to_datetime([f"2017-{1 + i % 12:02d}-{1 + i % 28:02d} 06:{i % 60:02d}:42" for i in range(ROWS)]))
    for values, written in ((times, "%Y-%m-%d %H:%M:%S"), (times.dt.normalize(), "%Y-%m-%d")):
        table = pd.DataFrame({"at": values, "default": TABLE["default"]})
        table.to_csv(tmp_path / "times.csv", index=False)
        schema = quietly(table if library is pd else pl.from_pandas(table), "default")
        assert schema.attributes == (Numeric("at", "2017-01-01", "2017-12-31", date=written, unreviewed=True),)  # type: ignore[arg-type]
        assert not schema.check(table).misfits
        assert not schema.check(tmp_path / "times.csv").misfits


def test_a_text_of_very_many_values_that_is_kept_is_said() -> None:
    table = TABLE.assign(seen=[f"{1 + i} May" for i in range(ROWS)])
    notes = " ".join(quietly(table, "default", keep=["seen", "job"]).notes)
    assert "kept as text with very many different values, of which little is learnt where each has few rows" in notes
    assert 'such as date = "%Y-%m-%d %H:%M"): seen (200 values)' in notes
    assert "of which little is learnt" not in " ".join(quietly(table, "default", keep=["job"]).notes)


def test_a_date_that_could_be_read_in_two_ways_is_said() -> None:
    table = {"day": ["01/02/2020", "03/04/2021"] * 20, "y": ["a", "b"] * 20}
    assert any("%d/%m/%Y or %m/%d/%Y" in note for note in quietly(table, "y").notes)


def test_columns_with_nothing_in_them_are_left_out() -> None:
    table = {"x": [1.5, 2.5] * 20, "nothing": [None] * 40, "marks": ["?"] * 40, "y": ["a", "b"] * 20}
    schema = quietly(table, "y")
    assert schema.names == ("x",)
    assert any("nothing, marks" in note for note in schema.notes)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (29, 77, (28, 78)),
        (3_257.66, 214_811.29, (0, 220_000)),
        (-10_299.22, 12_356.35, (-12_000, 14_000)),
        (0.013, 0.98, (0, 1)),
        (16.4, 38.8, (16, 40)),
        (0, 100, (0, 100)),
        (5, 5, (5, 6)),
        (1e300, 1.5e300, (1e300, 1.5e300)),
    ],
)
def test_bounds_are_rounded_outward(low: float, high: float, expected: tuple[float, float]) -> None:
    assert outward(low, high) == expected


def test_accepting_is_a_statement_of_the_owner() -> None:
    schema = quietly(TABLE, "default")
    assert "8 entries not reviewed" in repr(schema)
    assert "15 to 80; not reviewed" in schema._repr_html_()
    some = schema.accept("age", "default")
    assert set(schema.unreviewed) - set(some.unreviewed) == {"age", "default"}
    assert schema.accept().unreviewed == ()
    with pytest.raises(SchemaError, match="no entry 'agee'"):
        schema.accept("agee")


def test_small_counts_have_an_order_and_codes_are_categories() -> None:
    rows = np.arange(60)
    table = {"late": rows % 7, "children": rows % 3, "flag": rows % 2, "code": np.array([1, 5, 99])[rows % 3], "y": rows % 2}
    schema = quietly(table, "y")
    assert [each for each in schema.attributes if isinstance(each, Numeric)] == [
        Numeric("late", 0, 6, unreviewed=True, integer=True),
        Numeric("children", 0, 2, unreviewed=True, integer=True),
    ]
    assert [(each.name, each.values) for each in schema.attributes if isinstance(each, Categorical)] == [
        ("flag", (0, 1)),
        ("code", (1, 5, 99)),
    ]
    assert any(note.startswith("few whole numbers, taken for amounts with an order") and "late; children" in note for note in schema.notes)


def test_what_is_not_listed_is_said_to_count_as_missing() -> None:
    schema = quietly({"job": ["cook", "?", "nurse"] * 5, "town": ["a", "b", "b"] * 5, "y": [0, 1, 0] * 5}, "y")
    assert [(each.name, each.other) for each in schema.attributes] == [("job", "missing"), ("town", None)]  # type: ignore[union-attr]
    assert "whatever is not listed counts as missing (other): job" in schema.notes


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_with_an_order_keep_it(library: str) -> None:
    order, grades = ["low", "middle", "high", "very high"], ["high", "low", "middle"] * 5
    if library == "pandas":
        ordered = pd.Categorical(grades, order, ordered=True)
        table: Any = pd.DataFrame({"grade": ordered, "loose": pd.Categorical(grades), "risk": ordered})
    else:
        polars = pytest.importorskip("polars")
        table = polars.DataFrame({"grade": polars.Series(grades, dtype=polars.Enum(order)), "loose": grades, "risk": grades})
        table = table.with_columns(risk=table["grade"])
    schema = quietly(table, "risk")
    assert schema.attributes == (
        Categorical("grade", order, unreviewed=True),
        Categorical("loose", ["high", "low", "middle"], unreviewed=True),
    )
    assert list(schema.target.classes) == order
    assert quietly(table.drop("risk") if library == "polars" else table.drop(columns="risk"), table["risk"]).target == schema.target


SPELLED = {
    "whole": (["0", "1"], ["0", "1"]),
    "a numeric column with gaps": (["0.0", "1.0"], ["0.0", "1.0"]),
    "two spellings": (["0", "1", "1.0"], ["0", "1"]),
    "booleans": (["False", "True"], ["False", "True"]),
    "codes": (["01", "1"], ["01", "1"]),
    "words": (["no", "yes"], ["no", "yes"]),
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", SPELLED)
def test_a_draft_of_a_table_of_text_fits_that_table(kind: str, gaps: bool, tmp_path: Path) -> None:
    """It declared the classes 0 and 1 for "0.0" and "1.0", and the check and the fit refused the text."""
    votes, classes = SPELLED[kind]
    path = tmp_path / "table.csv"
    rows = [f"{i % 7},{votes[i % len(votes)] if i % 9 or not gaps else ''}" for i in range(2 * ROWS)]
    path.write_text("\n".join(["age,vote", *rows, ""]))
    table = pd.read_csv(path, dtype=str)
    schema = quietly(table, "vote").accept()
    assert list(schema.target.classes) == classes
    assert schema == replace(quietly(table[["age"]], table["vote"]).accept(), notes=schema.notes)
    for checked in (schema.check(table), schema.check(path)):
        assert (checked.columns[-1].missing > 0) == gaps
        assert not checked.columns[-1].undeclared
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateRDTClassifier(schema, 1, budget=Budget(2), random_state=0).fit(table)
        PrivateRDTClassifier(schema, 1, budget=model.budget, random_state=0).fit(path)
    assert set(model.predict(table)) <= set(votes)


def test_what_a_draft_needs_is_not_dropped() -> None:
    """It was ignored, and the draft had what should not be in it."""
    table = {"a": ["x", "y"] * 30, "b": ["u", "v", "w"] * 20, "who": list(range(60)), "y": [0, 1] * 30}
    with pytest.raises(TableError, match=r"^drop: got 'y', which is the target; expected columns to learn from\."):
        Schema.draft(table, "y", drop=["a", "y"])
    with pytest.raises(TableError, match=r"^drop: got 'who', which says whose row it is \(person\), not learnt from"):
        Schema.draft(table, "y", person="who", drop=["who"])
    with pytest.raises(TableError, match=r"^keep and drop: both name 'b'; expected each column in one of them"):
        Schema.draft(table, "y", keep=["a", "b"], drop=["b"])
    assert quietly(table, "y", keep=["b"], drop=["a", "who"]).names == ("b",)
    assert quietly(table, "y", drop="who").names == quietly(table, "y", drop=["who"]).names == ("a", "b")  # a TypeError
    assert "who" in quietly(table, "y", keep="who").names  # type: ignore[arg-type]


MESSY = pd.DataFrame(
    {
        "income": [f"{977.5 * i:,.2f}" for i in range(ROWS)],
        "lab": [("NA", "-", "n/a")[i // 9 % 3] if i % 9 == 0 else f"{i % 50 / 10}" for i in range(ROWS)],
        "level": ["<5" if i % 7 == 0 else str(5 + i % 40) for i in range(ROWS)],
        "customer": ["-" if i % 10 == 0 else str(70_001 + i) for i in range(ROWS)],
        "branch": ["-" if i % 10 == 0 else f"{i % 30:04d}" for i in range(ROWS)],
        "size": [("1", "2", "3+", "XL")[i % 4] for i in range(ROWS)],
        "default": [str(i % 2) for i in range(ROWS)],
    }
)


@pytest.mark.parametrize("as_file", [False, True])
def test_numbers_with_commas_or_a_few_words_are_numbers(tmp_path: Path, as_file: bool) -> None:
    MESSY.to_csv(tmp_path / "messy.csv", index=False)
    schema = quietly(tmp_path / "messy.csv" if as_file else MESSY, "default")
    entries = {each.name: each for each in schema.attributes}
    assert entries["income"] == Numeric("income", 0, 200_000, missing="missing", unreviewed=True)
    assert entries["lab"] == Numeric("lab", 0, 5, missing="missing", unreviewed=True)
    assert entries["level"] == Numeric("level", 4, 44, missing="missing", unreviewed=True, integer=True)
    assert isinstance(entries["branch"], Categorical)  # codes: a number would lose the zeros
    assert isinstance(entries["size"], Categorical)
    assert "customer" not in entries  # whole numbers that all differ, but for the word
    said = " ".join(schema.notes)
    assert "'NA', 'n/a', '-' in lab; texts that are no numbers (`hedgerow schema check` with the table names them) in level" in said
    assert "<5" not in schema.to_toml()  # a text may be anything, and notes stay in the file
    assert "numbers with commas between thousands cannot be read and would count as missing: write them without" in said
    assert "to_csv): income" in said
    kept = {each.name: each for each in quietly(MESSY, "default", keep=["income"]).attributes}
    assert kept["income"] == entries["income"]


GERMAN = {
    "dose": [f"{2000 + 125 * i}"[:-3] + f",{i * 125 % 1000:03d}" for i in range(40)],  # 2,000 and on: thousands, by themselves
    "rate": [f"0,{710 + i}" for i in range(40)],
    "temperature": [f"{74 + i % 7},{i % 10}" for i in range(40)],
    "factor": ["1,1", "1,1", "2,5", "3"] * 10,
    "cost": [f"1.{100 + i},{i % 100:02d}" for i in range(40)],
    "other": [f"{i % 5},{i % 10},{i}" for i in range(40)],
    "y": ["a", "b"] * 20,
}


@pytest.mark.parametrize("as_file", [False, True])
def test_decimal_commas_are_said_to_be_such(tmp_path: Path, as_file: bool) -> None:
    """They were taken for thousands, for categories such as 1,1, or for identifiers."""
    frame, path = pd.DataFrame(GERMAN), tmp_path / "german.csv"
    frame.to_csv(path, index=False, sep=";")
    schema = quietly(path if as_file else frame, "y")
    entries = {each.name: each for each in schema.attributes}
    assert entries["rate"] == Numeric("rate", 0.71, 0.75, missing="missing", unreviewed=True)
    assert entries["factor"] == Numeric("factor", 1.1, 3, missing="missing", unreviewed=True)
    assert entries["cost"] == Numeric("cost", 1100, 1140, missing="missing", unreviewed=True)
    assert isinstance(entries["other"], Categorical)
    said = " ".join(schema.notes)
    assert (
        'decimal commas cannot be read: write them as 2.5 (in pandas: read_csv(…, decimal=","), then to_csv): dose; rate; temperature'
        in said
    )
    assert entries["dose"] == Numeric("dose", 2, 7, missing="missing", unreviewed=True)
    assert "thousands" not in said
    assert "identify" not in said
    found = repr(schema.check(path if as_file else frame))
    assert "no value can be read, or is declared, in: dose, rate, temperature, cost. Decimal commas cannot be read" in found
    alone = quietly(frame[["dose", "y"]], "y")  # which cannot be told from thousands
    assert "thousands" in " ".join(alone.notes)


def test_booleans_and_whole_numbers_of_a_file_are_declared_as_data_frames_read_them(tmp_path: Path) -> None:
    """They were declared as texts: what was fitted to pandas' booleans could not be scored."""
    path = tmp_path / "mix.csv"
    path.write_text("a,flag,sick,y\n" + "".join(f"{i / 40},{i % 3 == 0},{i > 20},{float(i % 2)}\n" for i in range(40)))
    for target, classes in (("sick", (False, True)), ("y", (0, 1))):
        schema = draft_from_file(path, target)
        assert schema.target.classes == classes
        assert {type(value) for value in schema.target.classes} == {type(classes[0])}
        frame = pd.read_csv(path)
        assert schema.check(frame).fits
        flag = next(each for each in schema.attributes if each.name == "flag")
        assert isinstance(flag, Categorical)
        assert flag.values == (False, True)


def test_numbers_far_apart_and_one_class_alone_are_said(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("income,x,label\n" + "".join(f"{[2500, 7500, 35000, 200000][i % 4]},{i / 7},one\n" for i in range(40)))
    notes = " ".join(draft_from_file(path, "label").notes)
    assert "taken for codes without an order (if they are amounts, declare them as numeric): income" in notes
    assert "label has one value alone, 'one': add the other classes" in notes


def test_whole_classes_that_are_floats_for_missing_ones_are_declared_whole() -> None:
    """A score said "always 3.0"."""
    table = pd.DataFrame({"age": np.arange(300.0) % 70, "school": [1.0, 2, np.nan, 3] * 75})
    schema = quietly(table, "school")
    assert [type(each) for each in schema.target.classes] == [int] * 3
    known = table[table["school"].notna()]
    model = HedgerowClassifier(schema.accept(), 50, budget=Budget(50)).fit(known[["age"]], known["school"])
    assert set(model.predict(table[["age"]]).tolist()) <= {1, 2, 3}
    halves = pd.DataFrame({"age": np.arange(300.0) % 70, "school": [1.5, 2, np.nan, 3] * 75})
    assert quietly(halves, "school").target.classes == (1.5, 2, 3)


def test_a_target_with_many_values_is_asked_about(tmp_path: Path) -> None:
    """An age as the target made a class of each year without a word."""
    path = tmp_path / "table.csv"
    path.write_text("x,age\n" + "".join(f"{i % 9},{20 + i % 60}\n" for i in range(1200)))
    assert "age has 60 values, each a class of its own" in " ".join(draft_from_file(path, "age").notes)
    assert "a class of its own" not in " ".join(draft_from_file(path, "x").notes)


def test_a_target_that_is_an_amount_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,amount\n" + "".join(f"{i % 9 / 4},{i / 7}\n" for i in range(60)))
    with pytest.raises(TableError, match="'amount' has too many different values, or amounts; expected a few classes"):
        draft_from_file(path, "amount")
    with pytest.raises(TableError, match="put it into classes first"):
        Schema.draft(pd.read_csv(path), "amount")


def test_numbers_of_persons_who_stand_in_as_many_rows_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "panel.csv"
    path.write_text(
        "person,year,age,union\n" + "".join(f"{1000 + 3 * i},{y},{20 + (i * 7 + y) % 50},yes\n" for i in range(150) for y in range(8))
    )
    schema = draft_from_file(path, "union")
    assert schema.names == ("year", "age")
    assert "person='COLUMN'" in " ".join(schema.notes)
    assert draft_from_file(path, "union", keep=["person"]).names == ("person", "year", "age")


def test_missing_values_that_are_declared_fit() -> None:
    table = pd.DataFrame({"a": [1.5, None, 2.5] * 20, "class": ["no", "yes", "no"] * 20})
    declared = Schema([Numeric("a", 0, 5, missing="unknown")], Target("class", ["no", "yes"]))
    assert declared.check(table).fits
    assert not Schema([Numeric("a", 0, 5)], Target("class", ["no", "yes"])).check(table).fits


def test_text_of_objects_is_drafted_as_text() -> None:
    """As pandas before version 3 holds text: numbers were declared, and scikit-learn could compare no prediction with a label."""
    table = pd.DataFrame({"a": ["x", "y"] * 50, "vote": pd.Series(["0.0", "1.0", None, "0.0"] * 25, dtype=object)})
    with pytest.warns(DraftWarning):
        assert Schema.draft(table, "vote").target.classes == ("0.0", "1.0")
    table["vote"] = pd.Series([0, 1] * 50, dtype=object)
    with pytest.warns(DraftWarning):
        assert Schema.draft(table, "vote").target.classes == (0, 1)
