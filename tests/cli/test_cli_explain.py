"""`hedgerow explain`, and what `hedgerow show` tells of a Hedgerow forest."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hedgerow import Categorical, HedgerowClassifier, Release, Schema, Target
from hedgerow.plots.effect_text import legend_of_choices


@pytest.fixture
def grown(place: SimpleNamespace, run: Callable[..., Any]) -> SimpleNamespace:
    """`place` with a Hedgerow forest that cost ε = 1."""
    words = ["fit", place.data, "--schema", place.schema, "--algorithm", "hedgerow", "--epsilon", "1", "--budget", place.budget]
    result = run(*words, "-o", place.forest)
    assert result.exit_code == 0, result.output
    return place


def number(line: str) -> float:
    """The score at the end of a line, without its ±."""
    found = re.search(r"│\s*█*\s*([+−]?\d+\.\d\d)", line)
    assert found, line
    return float(found[1].replace("−", "-"))


def test_explain_adds_up_and_agrees_with_predict(grown: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("explain", grown.forest, grown.test, "--row", 3)
    assert result.exit_code == 0, result.output
    head, about, *lines = result.stdout.split("\n\n")[0].splitlines()  # below it is what was privately chosen
    assert about.strip() == "what adds to the log-odds of yes:"
    assert lines[0].split("  ")[1] == "intercept"
    assert {line.split()[0] for line in lines[1:-1]} == {"smoker", "age", "sex"}
    assert sum(map(number, lines[:-1])) == pytest.approx(number(lines[-1]), abs=0.03)
    assert all("±" in line or number(line) == 0 for line in lines[1:])  # what has no weight in the reading that was chosen adds nothing
    sizes = [abs(number(line)) for line in lines[1:-1]]
    assert sizes == sorted(sizes, reverse=True)
    predicted = run("predict", grown.forest, grown.test).stdout.splitlines()[3]
    assert head.startswith(f"row 3: {predicted}, probability 0.") or head.endswith("probability 1.00")


@pytest.mark.slow
def test_explain_several_rows_and_few_attributes(grown: SimpleNamespace, run: Callable[..., Any]) -> None:
    first = run("explain", grown.forest, grown.test).stdout
    assert first == run("explain", grown.forest, grown.test, "--row", 1).stdout
    text = run("explain", grown.forest, grown.test, "--row", 5, "--row", "1-3", "--top", 1).stdout
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("row")] == ["row 5", "row 1", "row 2", "row 3"]
    assert text.count("2 other attributes") == 4


def test_explain_pictures(grown: SimpleNamespace, run: Callable[..., Any]) -> None:
    svg, page = grown.folder / "why.svg", grown.folder / "why.html"
    result = run("explain", grown.forest, grown.test, "--row", 2, "-o", svg)
    assert (result.exit_code, result.stdout) == (0, f"wrote {svg}: 1 row explained\n")
    assert svg.read_text(encoding="utf-8").startswith("<svg")
    assert run("explain", grown.forest, grown.test, "--row", "1-4", "-o", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 4
    assert "as private as they are" in text
    assert run("explain", grown.forest, grown.test, "-o", page).exit_code == 2  # it exists
    assert run("explain", grown.forest, grown.test, "-o", page, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--row", "0"], "expected the number of a row, from 1"),
        (["--row", "x"], "expected the number of a row, from 1"),
        (["--row", "5-3"], "expected the number of a row, from 1"),
        (["--row", "1-21"], "at most 20 rows"),
        (["--row", "1-99999999999"], "at most 20 rows"),
        (["--row", "501"], "fewer rows than that"),
        (["--row", "1-2", "-o", "two.svg"], "an .svg shows one row"),
        (["-o", "why.png"], "ends in .svg or .html"),
    ],
)
def test_explain_refuses_what_it_cannot_do(
    words: list[str], message: str, grown: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(grown.folder)
    result = run("explain", grown.forest, grown.test, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "500" not in result.stderr  # how many rows there are is theirs
    assert not list(Path(grown.folder).glob("two.svg"))


def test_explain_refuses_other_forests_and_other_tables(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("explain", fitted.forest, fitted.test)
    assert result.exit_code == 2
    assert "its trees vote" in result.stderr
    assert "--algorithm hedgerow" in result.stderr
    result = run("show", fitted.forest, "--attribute", "age")
    assert result.exit_code == 2
    assert "--algorithm hedgerow" in result.stderr


def test_explain_refuses_rows_without_the_columns(grown: SimpleNamespace, run: Callable[..., Any]) -> None:
    short = grown.folder / "short.csv"
    short.write_text("smoker,sex\nnever,f\n")
    result = run("explain", grown.forest, short)
    assert result.exit_code == 2
    assert "the column(s) age are missing" in result.stderr


# ---------------------------------------------------------------- show


def test_show_tells_what_the_attributes_do(grown: SimpleNamespace, run: Callable[..., Any]) -> None:
    text = run("show", grown.forest).stdout
    for words in ("Hedgerow forest", "importances", "differential privacy", "smoker: ", "what its values add to the log-odds of yes", "│"):
        assert words in text
    assert "Tree 1" not in text
    assert "Tree 1 of" in run("show", grown.forest, "--tree", 1).stdout
    one = run("show", grown.forest, "--attribute", "smoker").stdout
    two = run("show", grown.forest, "--attribute", "smoker", "--attribute", "age").stdout
    assert "smoker: " in two
    assert "age: " in two.split("smoker: ")[1]
    assert "current" in one
    assert "age: " not in one
    assert "guarantee" not in one
    scores = {line.split()[0]: number(line) for line in one.splitlines() if "│" in line}
    assert scores["current"] > scores["never"]  # as the rows were made


def test_show_says_that_errors_leave_out_what_was_chosen(tmp_path: Path, run: Callable[..., Any]) -> None:
    """Under top splits effects of other fits were several ± away, and only the documents said so."""
    rng = np.random.default_rng(2)
    X = {name: rng.integers(0, 2, 6000) for name in "abc"}
    schema = Schema([Categorical(name, [0, 1]) for name in X], Target("y", [0, 1]))
    for number, (delta, said) in enumerate(((0, True), (1e-6, False))):
        HedgerowClassifier(schema, 8, delta, random_state=0).fit(X, X["a"] ^ X["b"]).release_.save(tmp_path / f"{number}.json")
        text = " ".join(run("show", tmp_path / f"{number}.json").stdout.split())
        assert ("Its effects may differ by several ±." in text) is said


def test_show_of_one_attribute_has_all_its_values(tmp_path: Path, run: Callable[..., Any]) -> None:
    """It had the twelve with the most rows."""
    towns = [f"town{number}" for number in range(28)]
    schema = Schema([Categorical("town", towns)], Target("y", ["a", "b"]))
    model = HedgerowClassifier(schema, 20).fit({"town": towns * 40}, ["a", "b"] * 560)
    model.release_.save(tmp_path / "towns.json")
    assert "and 16 more values" in run("show", tmp_path / "towns.json").stdout
    one = run("show", tmp_path / "towns.json", "--attribute", "town").stdout
    assert [line.split()[0] for line in one.splitlines() if "│" in line] == towns
    assert "more value" not in one


def test_show_draws_effects(grown: SimpleNamespace, run: Callable[..., Any]) -> None:
    svg, page, tree = (grown.folder / name for name in ("effects.svg", "effects.html", "tree.svg"))
    result = run("show", grown.forest, "-o", svg)
    assert (result.exit_code, result.stdout) == (0, f"wrote {svg}: what 3 attributes do\n")
    assert svg.read_text(encoding="utf-8").startswith("<svg")
    assert run("show", grown.forest, "--attribute", "age", "-o", page).exit_code == 0
    assert page.read_text(encoding="utf-8").count("<svg") == 1
    assert run("show", grown.forest, "--tree", 1, "-o", tree).exit_code == 0
    assert "Tree 1 of" in tree.read_text(encoding="utf-8")
    unknown = run("show", grown.forest, "--attribute", "shoe size")
    assert unknown.exit_code == 2
    assert "expected one of smoker, age, sex" in unknown.stderr
    assert run("show", grown.forest, "--attribute", "age", "--tree", 1).exit_code == 2


def test_the_report_of_a_hedgerow_forest(grown: SimpleNamespace, run: Callable[..., Any]) -> None:
    report = grown.folder / "report.html"
    assert run("show", grown.forest, "--report", report).exit_code == 0
    assert "What each attribute does" in report.read_text(encoding="utf-8")
    assert Release.load(grown.forest).effects()


def test_explain_says_that_it_is_the_first_row_alone(grown: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("explain", grown.forest, grown.data)
    assert "row 1 of " in result.stderr
    assert "--row 1-20 shows others" in result.stderr
    assert "row 1 of " not in run("explain", grown.forest, grown.data, "--row", 1).stderr


def test_boosted_trees_are_told(place: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    forest = tmp_path / "boosted.json"
    fitted = run("fit", place.data, "--schema", place.schema, "--epsilon", 8, "--delta", "1e-6", "--details", "-o", forest)
    boosted = re.search(r"one-way counts of 3 attributes and (\d+) boosted trees of depth \d", fitted.stdout)
    assert boosted is not None, fitted.output
    for words in ("noise scale: sensitivity / ε of Laplace noise", "ρ: the cost of one query with Gaussian noise"):
        assert words in " ".join(fitted.stdout.split())
    shown = " ".join(run("show", forest).stdout.split())
    assert re.search(rf"boosted trees {boosted[1]} of \d+ splits? each; they ask most about \w+ \(in \d+ of them\)", shown)
    assert run("show", forest, "--report", tmp_path / "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert boosted[0] in page
    assert boosted[0] in shown
    assert f"{boosted[1]} of " in page[page.index("Boosted trees</h2>") :]


def test_a_scale_that_was_privately_chosen_is_said_to_be_in_no_error(tmp_path: Path, run: Callable[..., Any]) -> None:
    """Of a survey all effects of one fit were two thirds of those of others, and only the report said that this may be."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 4_000), rng.integers(0, 2, 4_000)
    y = (rng.random(4_000) < 0.2 + 0.2 * a + 0.1 * b).astype(int)
    schema = Schema([Categorical("a", [0, 1, 2]), Categorical("b", [0, 1])], Target("y", [0, 1]))
    release = HedgerowClassifier(schema, 3, "1e-6", random_state=0).fit({"a": a, "b": b}, y).release_
    release.save(tmp_path / "forest.json")
    (tmp_path / "new.csv").write_text("a,b\n1,1\n", encoding="utf-8")
    said = f"All effects are scaled by {release.additive.scale:g}, which was privately chosen"
    for words in (["show"], ["explain", tmp_path / "new.csv", "--row", 1]):
        assert said in " ".join(run(words[0], tmp_path / "forest.json", *words[1:]).stdout.split())
    for rate in (10**6, 0):  # so dear that it is right, or none
        release.additive.scale_rate = rate
        assert legend_of_choices(release.additive) is None


def test_values_with_few_rows_are_marked_and_the_mark_is_explained_once(tmp_path: Path, run: Callable[..., Any]) -> None:
    """8 of 2,000 rows have the value: its score is mostly that of the others, and its ± did not say so."""
    rows = ["u"] * 1200 + ["v"] * 792 + ["w"] * 8
    y = ["yes" if i % 10 < (1 if value == "u" else 4) else "no" for i, value in enumerate(rows)]
    schema = Schema([Categorical("a", ["u", "v", "w"])], Target("y", ["no", "yes"]))
    HedgerowClassifier(schema, "0.1", random_state=0).fit({"a": rows}, y).release_.save(tmp_path / "forest.json")
    (tmp_path / "new.csv").write_text("a\nw\nu\n", encoding="utf-8")
    legend = "may be wrong by more than its ±, even in its sign."
    for words in (["show"], ["show", "--attribute", "a"], ["explain", tmp_path / "new.csv", "--row", "1-2"]):
        text = " ".join(run(words[0], tmp_path / "forest.json", *words[1:]).stdout.split())
        assert text.count("few rows: drawn towards the others") + text.count("unknown: no rows stand above the noise") == 1
        assert text.count(legend) == 1
    assert legend not in run("explain", tmp_path / "forest.json", tmp_path / "new.csv", "--row", 2).stdout
