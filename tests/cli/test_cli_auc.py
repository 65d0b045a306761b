"""`hedgerow evaluate --auc`: one charge, thresholds, a picture."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow import BudgetFile, Release


def test_more_bins_are_another_score(fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    words = ["evaluate", fitted.forest, fitted.test, "--epsilon", "1", "--auc", "--budget", tmp_path / "b.json"]
    assert run("budget", "init", tmp_path / "b.json", "--epsilon", 5).exit_code == 0
    for more in ([], ["--bins", 100]):
        assert "area under the ROC curve" in run(*words, *more).stdout
    refused = run(*words, "--bins", 100)
    assert refused.exit_code != 0
    assert "has paid for this score already" in refused.output


def test_auc_thresholds_and_a_page(fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    page = tmp_path / "roc.html"
    result = run("evaluate", fitted.forest, fitted.test, "--epsilon", "1", "--auc", "-o", page, "--budget", fitted.budget)
    assert result.exit_code == 0, result.output
    for part in ("area under the ROC curve: 0.", "Brier score: 0.", "false positive rate", "accuracy: 0.", "ε = 1 differential privacy"):
        assert part in result.stdout
    shown = page.read_text(encoding="utf-8")
    assert "<svg" in shown
    assert all(f">{head}</th>" in shown for head in ("threshold", "recall", "precision", "false positive rate"))
    assert [entry.what.split(",")[0] for entry in BudgetFile(fitted.budget).entries] == ["fit Private-RDT", "evaluate"]


@pytest.mark.slow
def test_public_rows_and_an_svg(fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    picture = tmp_path / "roc.svg"
    result = run("evaluate", fitted.forest, fitted.test, "--public", "--auc", "-o", picture)
    assert result.exit_code == 0, result.output
    assert "exact, public rows" in picture.read_text(encoding="utf-8")


def test_a_picture_that_cannot_be_is_refused_before_it_costs(fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    before = fitted.budget.read_bytes()
    words = ["evaluate", fitted.forest, fitted.test, "--epsilon", "0.1", "--budget", fitted.budget]
    for more, said in [
        (["--bins", 100], "in how many bins --auc counts rows"),
        (["--bins", 100, "--auc", "--calibration"], "in how many bins --auc counts rows"),
        (["--bins", 21, "--auc"], "expected an even number"),
        (["-o", tmp_path / "roc.svg"], "Add --auc"),
        (["--auc", "-o", tmp_path / "roc.png"], "ends in .svg or .html"),
        (["--auc", "-o", tmp_path / "none" / "roc.svg"], "does not exist"),
    ]:
        result = run(*words, *more)
        assert result.exit_code == 2, result.output
        assert said in result.stderr
        assert fitted.budget.read_bytes() == before


def test_the_class_that_the_score_is_about(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    about = {
        name: run("evaluate", fitted.forest, fitted.test, "--public", "--auc", "--positive", name).stdout
        for name in Release.load(fitted.forest).classes
    }
    for name, said in about.items():
        assert f"{name} against the rest" in said
    before = fitted.budget.read_bytes()
    result = run("evaluate", fitted.forest, fitted.test, "--epsilon", "0.1", "--positive", "nobody", "--budget", fitted.budget)
    assert result.exit_code == 2
    assert "expected one of the declared classes" in result.stderr
    assert fitted.budget.read_bytes() == before


def test_what_error_to_expect_is_free(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    before = fitted.budget.read_bytes()
    words = ["evaluate", fitted.forest, "--plan", "--epsilon", "0.1"]
    many, few = run(*words, "--rows", 20_000, "--auc"), run(*words, "--rows", 10, "--auc")
    assert (many.exit_code, few.exit_code) == (0, 0), many.output + few.output
    assert "accuracy: ± 0.0" in many.stdout
    assert "area under the ROC curve, roughly: ± 0.0" in many.stdout
    assert few.stdout.count("lost in the noise") == 2
    assert "classes as frequent as this forest's counts say: " in many.stdout
    assert "no row was read" in many.stdout
    for wrong in (
        words,
        [*words, "--rows", 61, "--positive", "nobody"],
        [*words[:3], "--rows", 61],
        ["evaluate", fitted.forest, "--epsilon", "0.1"],
        [*words[:2], fitted.test, "--rows", 61],
    ):
        assert run(*wrong).exit_code == 2
    assert fitted.budget.read_bytes() == before


def test_thresholds_for_recalls_that_are_asked_for(fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    page = tmp_path / "score.html"
    said = run("evaluate", fitted.forest, fitted.test, "--public", "--recall", "0.3", "-o", page).stdout
    several = run("evaluate", fitted.forest, fitted.test, "--public", "--auc", "--recall", "0.3", "--recall", "1").stdout
    lines, more = ([line for line in text.splitlines() if " ± " in line and line.count("%") >= 4] for text in (said, several))
    assert (len(lines), len(more)) == (1, 2)
    assert page.read_text(encoding="utf-8").count("<td") >= 6
    before = fitted.budget.read_bytes()
    refused = run("evaluate", fitted.forest, fitted.test, "--epsilon", "1", "--recall", "80", "--budget", fitted.budget)
    assert "--recall: got 80; expected a share" in refused.stderr
    assert fitted.budget.read_bytes() == before


def test_a_threshold_is_used_as_it_is_printed(fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    page, recalls = tmp_path / "score.html", ("0.6", "0.601", "0.602")
    words = [word for recall in recalls for word in ("--recall", recall)]
    said = run("evaluate", fitted.forest, fitted.test, "--public", *words, "-o", page).stdout
    shown = re.findall(r" (0\.\d+)  +60(?:\.\d)? %", said)
    assert len(set(shown)) == 3, said
    for threshold in shown:
        assert f">{threshold}</td>" in page.read_text(encoding="utf-8")
        assert run("predict", fitted.forest, fitted.test, "--threshold", threshold).exit_code == 0
