"""What the released counts of the classes tell after a fit: a class without rows, and what always answering one class would give."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hedgerow import Categorical, HedgerowClassifier, RandomDecisionTreesClassifier, Release, Schema, Target, advise
from hedgerow.errors import SchemaMismatchWarning
from hedgerow.inference.coverage import class_rows, class_shares, without_rows
from hedgerow.inference.text import share_with_error
from hedgerow.plots.report import html_report

Run = Callable[..., Any]
LARGE = 20  # an ε at which noise plays no part
PAID = ("--epsilon", LARGE)


def fit(place: SimpleNamespace, run: Run, classes: str = '"no", "yes"', *options: Any) -> tuple[str, str]:
    place.schema.write_text(place.schema.read_text().replace('"no", "yes"', classes))
    result = run("fit", place.data, "--schema", place.schema, *PAID, *options, "-o", place.forest)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split()), " ".join(result.stderr.split())


@pytest.mark.parametrize("options", [(), ("--algorithm", "rdt"), ("--algorithm", "dpdf")])
def test_a_misspelled_class_is_named_and_nothing_is_promised(options: tuple[str, ...], place: SimpleNamespace, run: Run) -> None:
    said, warned = fit(place, run, '"no", "yess"', *options)
    assert "hardly any has the class yess" in warned
    assert "is it spelled as in the column ill of the table?" in warned
    assert "expect" not in said
    assert "verdict: none" in said
    assert "always answering" not in said


def test_classes_of_which_none_is_right(place: SimpleNamespace, run: Run) -> None:
    said, warned = fit(place, run, '"No", "Yes"')
    assert "are missing from the counts" in warned
    assert "hardly any" not in warned
    assert "expect" not in said


def test_missing_labels_are_told_as_such_and_the_verdict_is_of_the_other_rows(place: SimpleNamespace, run: Run) -> None:
    lines = place.data.read_text().splitlines()
    place.data.write_text("\n".join(line.rpartition(",")[0] + "," if i % 6 == 1 else line for i, line in enumerate(lines)) + "\n")
    said, warned = fit(place, run)
    assert re.search(
        r"about 1[67]% of the rows are missing from the counts: the column ill \(the target\).* is empty there, or holds", warned
    )
    assert "verdict, of the rows that are counted: " in said
    assert re.search(r"about 8[2-5]0 rows of a class", said)  # 1,667 of two classes
    assert "always answering" in said
    assert "next: hedgerow show" in said


def test_a_rare_class_has_a_verdict_and_a_look_at_the_table_comes_next(place: SimpleNamespace, run: Run) -> None:
    """Where all rows are counted; it said "none; first put right what is warned of above", of a table that was all right."""
    said, warned = fit(place, run, '"no", "yes", "never"')
    assert "hardly any has the class never" in warned
    assert re.search(r"verdict, if what is warned of above is as it should be: .*expect", said)
    assert "next: hedgerow schema check SCHEMA TABLE" in said
    assert "hedgerow show" in said


def test_a_rare_class_has_a_verdict_where_noise_hides_it(place: SimpleNamespace, run: Run) -> None:
    """Six of eight fits of such a table had none."""
    place.schema.write_text(place.schema.read_text().replace('"no", "yes"', '"no", "yes", "never"'))
    told = []
    for _ in range(6):
        result = run("fit", place.data, "--schema", place.schema, "--epsilon", "0.5", "--delta", "1e-6", "-o", place.forest, "--force")
        told.append((" ".join(result.stdout.split()), " ".join(result.stderr.split())))
    assert any("hardly any has the class never" in warned for _, warned in told)
    for said, warned in told:
        assert "verdict: none" not in said or "are missing from the counts" in warned


def test_a_declared_number_of_rows_that_is_another_is_told(place: SimpleNamespace, run: Run) -> None:
    """A part of a table was fitted by the schema of the whole: its labels were said to be empty, and the check said that all was well."""
    place.schema.write_text("rows = 4000\n" + place.schema.read_text())
    checked = " ".join(run("schema", "check", place.schema, place.data).output.split())
    assert "the schema declares 4,000 rows (`rows`), and this table has 2,000" in checked
    _, warned = fit(place, run)
    assert "Or this table, as a part of one may, has fewer rows than the 4,000 declared." in warned
    place.schema.write_text(place.schema.read_text().replace("rows = 4000", "rows = 2040"))
    assert "the schema declares 2,040 rows" not in run("schema", "check", place.schema, place.data).output
    assert "rows than the" not in fit(place, run, '"no", "yes"', "--force")[1]


def test_a_score_of_persons_is_proposed_for_their_rows(place: SimpleNamespace, run: Run) -> None:
    """The noise is for all rows of a person: the proposed ε was too small by so many."""
    frame = pd.concat([pd.read_csv(place.data)] * 40)
    frame.assign(who=np.arange(len(frame)) // 4).to_csv(place.data, index=False)
    proposed = []
    for k in (1, 4):
        text = place.schema.read_text()
        place.schema.write_text(f'person = "who"\nrows_per_person = {k}\n' + text)
        result = run("fit", place.data, "--schema", place.schema, *PAID, "--algorithm", "rdt", "-o", place.forest, "--force")
        place.schema.write_text(text)
        found = re.search(r"evaluate \S+ TEST --epsilon (\S+) .*on about ([\d,]+) rows", " ".join(result.stdout.split()))
        assert found is not None, result.output
        proposed.append(float(found[1]) * int(found[2].replace(",", "")))
    assert 2.5 < proposed[1] / proposed[0] < 6


def test_what_one_answer_would_give(place: SimpleNamespace, run: Run) -> None:
    said, warned = fit(place, run)
    assert "hardly any" not in warned
    assert "expect" in said
    assert "verdict: none" not in said
    ill = place.data.read_text().count(",yes\n") / 2000
    assert 0.1 < ill < 0.25
    shown = float(said.split("always answering no would be right for about ")[1].split("%")[0])
    assert shown == pytest.approx(100 * (1 - ill), abs=2)
    assert "of a rare class the AUC says more" in said


def test_one_forest_has_one_share_of_each_class(place: SimpleNamespace, run: Run) -> None:
    """`fit`, `evaluate --plan` and `advise` stated three different ones, without their error; of trees that differ in their noise."""
    fitted = run("fit", place.data, "--schema", place.schema, "--epsilon", 5, "--delta", "1e-6", "-o", place.forest)
    said, forest = " ".join(fitted.stdout.split()), Release.load(place.forest)
    (no, yes), errors = class_shares(forest.forest)
    assert errors[0] == pytest.approx(errors[1])
    assert 0 < errors[0] < 0.05
    assert not np.allclose(forest.forest.class_totals[0] / forest.forest.class_totals.sum(), no, atol=1e-6)
    stated = share_with_error(no, errors[0])
    assert f"always answering no would be right for about {stated} of the rows" in said
    planned = run("evaluate", place.forest, "--plan", "--rows", "500", "--epsilon", "1")
    assert f"no {stated}, yes {share_with_error(yes, errors[1])}" in " ".join(planned.stdout.split())
    advice = advise(forest.schema, 2000, forest=forest, algorithms=["hedgerow"])
    assert (advice.baseline, advice.baseline_error) == (("no", no), errors[0])
    assert f"would give about {no:.3f} ± {errors[0]:.2g}" in str(advice)
    assert f"{class_rows(forest.forest)[0][1]:,.0f}" in html_report(forest)


def test_exact_counts_have_shares_without_error() -> None:
    y = np.where(np.arange(2000) % 4 == 0, "b", "a")
    schema = Schema([Categorical("a", range(7))], Target("class", ["a", "b"]))
    forest = RandomDecisionTreesClassifier(schema=schema, random_state=0).fit(pd.DataFrame({"a": np.arange(2000) % 7}), y).release_.forest
    shares, errors = class_shares(forest)
    assert (shares.tolist(), errors.tolist()) == ([0.75, 0.25], [0, 0])
    nothing = replace(forest, counts=tuple(0 * counts for counts in forest.counts))
    assert [each.tolist() for each in class_shares(nothing)] == [[0.5, 0.5], [0.5, 0.5]]


def test_a_class_is_not_called_empty_where_noise_hides_it() -> None:
    """A class with a quarter of 2,000 rows is named in no fit; at an ε at which all is noise, none is."""
    rows = {"a": np.arange(2000) % 7}
    y = np.where(np.arange(2000) % 4 == 0, "b", "a")
    schema = Schema([Categorical("a", list(range(7)))], Target("y", ["a", "b"]))
    for epsilon in ("0.0001", LARGE):
        release = HedgerowClassifier(schema, epsilon).fit(rows, y).release_
        assert without_rows(release.forest) is None
    counts, error = class_rows(release.forest)
    assert np.abs(counts - [1500, 500]).max() < 20 * error + 1


def test_in_python_it_is_a_warning(place: SimpleNamespace) -> None:
    place.schema.write_text(place.schema.read_text().replace('"yes"', '"yess"'))
    with pytest.warns(SchemaMismatchWarning) as told:
        model = HedgerowClassifier(Schema.load(place.schema), LARGE).fit(place.data)
    assert any("hardly any has the class yess" in str(each.message) for each in told)
    assert isinstance(model.release_, Release)


def test_a_table_of_which_no_row_would_be_counted_is_told_before_and_after(place: SimpleNamespace, run: Run) -> None:
    place.schema.write_text(place.schema.read_text().replace('"no", "yes"', '"No", "Yes"'))
    found = run("schema", "check", place.schema, place.data)
    assert found.exit_code == 2
    assert "no row would be counted" in " ".join(found.output.split())
    assert "is a declared class" in " ".join(found.output.split())
    plan, counts = place.data.with_name("plan.json"), place.data.with_name("counts.json")
    assert run("plan", "--schema", place.schema, "--epsilon", 1, "--rows", 2000, "--save", plan).exit_code == 0
    counted = run("count", plan, place.data, "-o", counts)
    assert "noise alone may make as many" in " ".join(counted.stderr.split())
    merged = run("merge", counts, "-o", place.data.with_name("merged.json"))
    assert "counts.json: about" in " ".join(merged.stderr.split())


def test_a_forest_has_no_mean_with_itself(place: SimpleNamespace, run: Run) -> None:
    fit(place, run)
    again = run("predict", place.forest, place.data, "--with", place.forest)
    assert again.exit_code == 2
    assert "is the same release as" in " ".join(again.output.split())


def test_a_budget_that_is_spent_promises_no_fits(place: SimpleNamespace, run: Run) -> None:
    budget = place.data.with_name("own.json")
    run("budget", "init", budget, "--epsilon", LARGE, "--delta", "1e-5")
    assert "fits at" in run("budget", "show", budget).stdout
    fit(place, run, '"no", "yes"', "--budget", budget)
    assert "fits at" not in run("budget", "show", budget).stdout


def test_a_table_without_rows_or_with_a_column_that_cannot_be_read_fails(place: SimpleNamespace, run: Run) -> None:
    """A header alone was said to fit, "valid and reviewed"; so was a column of decimal commas."""
    lines = place.data.read_text().splitlines()
    place.data.write_text(lines[0] + "\n")
    found = run("schema", "check", place.schema, place.data)
    assert found.exit_code == 2
    assert "no row would be counted: there is none" in " ".join(found.output.split())
    assert "fits" not in found.output
    cells = [line.split(",") for line in lines]
    age = cells[0].index("age")
    for row in cells[1:]:
        row[age] = f"{row[age]},5"
    place.data.write_text("\n".join(";".join(row) for row in cells))
    found = run("schema", "check", place.schema, place.data)
    assert found.exit_code == 2
    assert "no value can be read, or is declared, in: age. Decimal commas cannot be read" in " ".join(found.output.split())
    assert "valid and reviewed" not in found.output
