"""`hedgerow schema`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from hedgerow import Categorical, Numeric, Schema, Target


def test_a_draft_marks_every_entry_and_leaves_out_identifiers(tmp_path: Path, run: Callable[..., Any]) -> None:
    data, schema = tmp_path / "data.csv", tmp_path / "schema.toml"
    lines = [f"patient-{i},{i % 3},{i / 7},{'yes' if i % 2 else 'no'}" for i in range(300)]
    data.write_text("patient,ward,dose,ill\n" + "\n".join(lines))
    result = run("schema", "draft", data, "--target", "ill", "-o", schema)
    assert result.exit_code == 0, result.output
    assert "may identify people: patient" in result.stdout
    said = " ".join(result.stdout.split())
    assert "draft again with --keep COLUMN; if one of them names persons who may have several rows, with --person COLUMN" in said
    assert "schema review" in result.stdout
    assert "patient-" not in result.output
    drafted = Schema.load(schema)
    assert drafted.unreviewed == ("ward", "dose", "ill")
    advised = run("advise", "--schema", schema, "--rows", 2000)
    assert advised.exit_code == 2
    assert "Check them, then `hedgerow schema review FILE --accept`." in " ".join(advised.stderr.split())
    assert schema.read_text().count("unreviewed = true") == 3


def test_what_a_draft_needs_is_not_dropped(tmp_path: Path, run: Callable[..., Any]) -> None:
    """It was ignored."""
    data, schema = tmp_path / "data.csv", tmp_path / "schema.toml"
    data.write_text("ward,unit,ill\n" + "\n".join(f"{i % 3},{i % 4},{i % 2}" for i in range(60)))
    asked = ("schema", "draft", data, "--target", "ill", "-o", schema, "--drop")
    for more, why in ((("ill",), "drop: got 'ill', which is the target"), (("ward", "--keep", "ward"), "keep and drop: both name 'ward'")):
        result = run(*asked, *more)
        assert result.exit_code == 2
        assert why in " ".join(result.stderr.split())
        assert not schema.exists()


def test_columns_that_follow_from_others_are_named_as_they_are_left_out(tmp_path: Path, run: Callable[..., Any]) -> None:
    data, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    rows = [f"{i % 89},{(i % 89) ** 2},{(i % 89) * 2.5},{'yes' if i * 7919 % 13 < 6 else 'no'}" for i in range(800)]
    data.write_text("\n".join(["age,age squared,pounds]s,ill", *rows]))
    asked = ("schema", "draft", data, "--target", "ill", "-o", schema)
    assert "(drop=['age squared', 'pounds]s'])" in " ".join(run(*asked).stdout.split())  # a name that is told as it is, rather than wrongly
    data.write_text(data.read_text().replace("pounds]s", "pounds"))
    pasted = re.search(r"\((--drop .*)\)", " ".join(run(*asked, "--force").stdout.split()))
    assert pasted is not None
    assert shlex.split(pasted[1]) == ["--drop", "age squared", "--drop", "pounds"]
    assert "nearly follow" not in run(*asked, "--force", *shlex.split(pasted[1])).stdout


def test_a_column_with_one_value_is_left_out_and_hinted_at(tmp_path: Path, run: Callable[..., Any]) -> None:
    """It was paid for as every other attribute, and nobody said that it tells nothing."""
    data, schema = tmp_path / "data.csv", tmp_path / "schema.toml"
    data.write_text("study,unit,gap,ward,ill\n" + "\n".join(f"1,mg,{'x' if i % 5 else ''},{i % 3},{i % 2}" for i in range(60)))
    result = run("schema", "draft", data, "--target", "ill", "-o", schema)
    said = " ".join(result.stdout.split())
    assert "every row has the same value there, which tells nothing: study, unit. Where other values" in said
    assert "--keep COLUMN" in said
    assert Schema.load(schema).names == ("gap", "ward")
    kept = run("schema", "draft", data, "--target", "ill", "-o", schema, "--keep", "study", "--force")
    assert kept.exit_code == 0, kept.output
    assert Schema.load(schema).names == ("study", "gap", "ward")
    hint = "hint: with one declared value alone, study tells nothing about ill"
    assert hint in " ".join(run("schema", "review", schema).stdout.split())
    assert hint in " ".join(run("schema", "check", schema).stdout.split())
    run("schema", "review", schema, "--accept")
    assert hint in " ".join(run("plan", "--schema", schema, "--epsilon", 1, "--rows", 2000).stdout.split())
    schema.write_text(schema.read_text().replace("values = [1]", "values = [1, 2]"))
    assert "hint" not in run("plan", "--schema", schema, "--epsilon", 1, "--rows", 2000).stdout
    one_cell = Schema([Numeric("a", edges=[0, 5]), Numeric("b", 0, 5), Numeric("c", edges=[0, 5], missing="m")], Target("y", [0, 1]))
    assert one_cell.single_valued == ("a",)


def test_an_existing_schema_is_kept(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    before = place.schema.read_bytes()
    result = run("schema", "draft", place.data, "--target", "ill", "-o", place.schema)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert place.schema.read_bytes() == before
    assert run("schema", "draft", place.data, "--target", "ill", "-o", place.schema, "--force").exit_code == 0
    assert place.schema.read_bytes() != before


def test_a_draft_never_replaces_its_own_table(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    before = place.data.read_bytes()
    assert run("schema", "draft", place.data, "--target", "ill", "-o", place.data, "--force").exit_code == 2
    assert place.data.read_bytes() == before


def test_check_says_whether_it_is_reviewed(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    reviewed = run("schema", "check", place.schema)
    assert reviewed.exit_code == 0
    assert "valid and reviewed" in reviewed.stdout
    assert "0 to 100" in reviewed.stdout
    assert "3: never, former, current" in reviewed.stdout
    place.schema.write_text(place.schema.read_text() + "unreviewed = true\n")  # the last entry: sex
    draft = run("schema", "check", place.schema)
    assert draft.exit_code == 1
    assert "unreviewed: sex" in draft.stdout


def test_a_wrong_schema_is_one_message(tmp_path: Path, run: Callable[..., Any]) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[target]\nname = 3\n")
    for path in (wrong, tmp_path / "absent.toml"):
        result = run("schema", "check", path)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert "Traceback" not in result.output


def test_names_are_printed_as_they_are_but_for_control_characters(tmp_path: Path, run: Callable[..., Any]) -> None:
    schema = tmp_path / "odd.toml"
    schema.write_text(
        '[target]\nname = "[red]t"\nclasses = [":smile:", "\\u001b[31mb"]\n'
        '[attributes."[bold]a[/bold]"]\nkind = "categorical"\nvalues = ["x", "y"]\n'
    )
    result = run("schema", "check", schema)
    assert result.exit_code == 0, result.output
    assert "[bold]a[/bold]" in result.stdout
    assert "[red]t" in result.stdout
    assert ":smile:" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_draft_with_persons(tmp_path: Path, run: Callable[..., Any]) -> None:
    """The column of ids is no attribute, whether it looks like an identifier or like a number."""
    data, schema = tmp_path / "visits.csv", tmp_path / "schema.toml"
    lines = [f"patient-{i // 3},{i // 3},{i % 3},{'yes' if i % 2 else 'no'}" for i in range(400)]
    data.write_text("patient,number,ward,ill\n" + "\n".join(lines))
    for person, more, k in (("patient", ("--rows-per-person", "5"), 5), ("number", (), 1)):
        result = run("schema", "draft", data, "--target", "ill", "-o", schema, "--person", person, *more, "--force")
        assert result.exit_code == 0, result.output
        drafted = Schema.load(schema)
        assert (drafted.person, drafted.k) == (person, k)
        assert person not in drafted.names
        assert (f"identify people: {person}" in result.stdout) is False
        assert f'person = "{person}"\nrows_per_person = {k}\n' in schema.read_text()
        checked = run("schema", "check", schema)
        assert f"person: one value of {person}; at most {k} row" in checked.stdout
    for wrong, words in {
        ("--rows-per-person", "3"): "--person",
        ("--person", "pateint"): "--person: the table has no column 'pateint'; its columns are",
        ("--keep", "pateint"): "--keep: the table has no column 'pateint'; its columns are",
        ("--person", "Patient"): "Did you mean 'patient'?",
        ("--person", "ill"): "attribute or the target",
    }.items():
        refused = run("schema", "draft", data, "--target", "ill", "-o", tmp_path / "other.toml", *wrong)
        assert refused.exit_code == 2
        assert words in " ".join(refused.stderr.split())
        assert "patient-" not in refused.output
        assert not (tmp_path / "other.toml").exists()


def test_review_shows_what_waits_and_accepts_all_or_some(tmp_path: Path, run: Callable[..., Any]) -> None:
    data, schema = tmp_path / "data.csv", tmp_path / "schema.toml"
    lines = [f"{i % 3},{i / 7},{'yes' if i % 2 else 'no'},{i % 90}" for i in range(300)]
    data.write_text('ward,"dose [mg]",ill,age\n' + "\n".join(lines))
    assert run("schema", "draft", data, "--target", "ill", "-o", schema).exit_code == 0
    schema.write_text(schema.read_text().replace("high = 44", "high = 50   # what a dose may be"))
    before = schema.read_bytes()
    shown = run("schema", "review", schema)
    assert shown.exit_code == 1
    assert "0 to 50" in shown.stdout
    assert "--accept" in shown.stdout
    assert schema.read_bytes() == before
    some = run("schema", "review", schema, "dose [mg]", "ill")
    assert some.exit_code == 1, some.output
    assert "accepted as public facts: dose [mg], ill" in some.stdout
    assert Schema.load(schema).unreviewed == ("ward", "age")
    assert "# what a dose may be" in schema.read_text()  # what the owner wrote stays
    assert run("schema", "review", schema, "wrd").exit_code == 2
    every = run("schema", "review", schema, "--accept")
    assert every.exit_code == 0, every.output
    assert "unreviewed" not in schema.read_text()
    assert "# what a dose may be" in schema.read_text()
    assert run("schema", "check", schema).exit_code == 0
    assert "nothing waits" in run("schema", "review", schema).stdout


def test_review_accepts_a_file_that_is_written_in_another_way(tmp_path: Path, run: Callable[..., Any]) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text('attributes.age = {kind = "numeric", low = 0, high = 9, unreviewed = true}\n[target]\nname = "y"\nclasses = [0, 1]\n')
    assert run("schema", "review", schema, "--accept").exit_code == 0
    assert Schema.load(schema).unreviewed == ()


def test_an_owner_sees_how_many_persons_there_are(run: Callable[..., Any], tmp_path: Path) -> None:
    schema, table = tmp_path / "schema.toml", tmp_path / "rows.csv"
    entries = '[attributes.age]\nkind = "numeric"\nlow = 0\nhigh = 9\n[target]\nname = "y"\nclasses = [0, 1]\n'
    schema.write_text(f'person = "id"\nrows_per_person = 2\n{entries}')
    table.write_text("id,age,y\na,1,0\na,1,0\na,1,0\nb,1,1\n")
    said = " ".join(run("schema", "check", schema, table).stdout.split())
    assert "persons in id: 2, with more than 2 rows: 1; rows beyond that, which are not counted: 1" in said


def test_an_owner_sees_what_of_a_table_does_not_fit(place: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    lines = ["never,30,f,no"] * 10 + ["Never,1,f,Yes"] * 3 + [",,f,yes", 'current,"1,000",m,no', "current,-5,m,yes", "former,300,x,"]
    table.write_text("smoker,age,sex,ill\n" + "\n".join(lines) + "\n")
    result = run("schema", "check", place.schema, table)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "that do not fit, of 17 rows" in said
    assert "smoker 1 3 0 0 'Never' 3" in said
    assert "age 0 1 1 1 '1,000' 1" in said
    assert "missing as the schema declares (`missing`), which fits: age 1" in said
    assert "sex 0 1 0 0 'x' 1" in said
    assert "ill 1 3 0 0 'Yes' 3" in said
    assert "exact look at the rows, for their owner alone: not for publication. It costs no ε" in said
    assert "the schema is valid and reviewed; look at the values above that do not fit before you pay" in said
    fits = run("schema", "check", place.schema, place.test)
    assert "exact look" in fits.stdout
    assert "smoker 0" not in " ".join(fits.stdout.split())
    assert run("schema", "check", place.schema, tmp_path / "absent.csv").exit_code == 2


def test_dates_and_numbers_of_parquet_files_fit_by_their_type(run: Callable[..., Any], tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {"since": pd.to_datetime(["2020-03-01", "2021-04-05", "2031-01-01", None]), "late": [True, False, True, None], "y": [0, 1, 1, 2]}
    )
    rows.to_parquet(tmp_path / "rows.parquet")
    since = Numeric("since", "2020-01-01", "2024-12-31", date="%d.%m.%Y")  # type: ignore[arg-type]
    Schema([since, Categorical("late", [False, True])], Target("y", [0, 1])).save(tmp_path / "schema.toml")
    said = " ".join(run("schema", "check", tmp_path / "schema.toml", tmp_path / "rows.parquet").stdout.split())
    assert "since 1 0 0 1 late 1 0 0 0 y 0 1 0 0 '2' 1" in said
