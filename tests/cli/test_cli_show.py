"""`hedgerow rules`, `show`, `budget` and `demo`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow import BudgetFile

# ---------------------------------------------------------------- rules


def test_rules_in_every_format(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    text = run("rules", fitted.forest, "--top", 3)
    assert text.exit_code == 0, text.output
    assert text.stdout.startswith("1. If ")
    assert len(text.stdout.splitlines()) == 3
    markdown = run("rules", fitted.forest, "--top", 3, "--format", "markdown").stdout.splitlines()
    assert markdown[0] == "| rule | ill | confidence | rows | classes |"
    assert len(markdown) == 5
    table = list(csv.DictReader(run("rules", fitted.forest, "--top", 3, "--format", "csv").stdout.splitlines()))
    document = json.loads(run("rules", fitted.forest, "--top", 3, "--format", "json").stdout)
    for row, rule in zip(table, document["rules"], strict=True):
        assert json.loads(row["distribution"]) == rule["distribution"]
        assert rule["distribution"].keys() == {"no", "yes"}
        assert sum(rule["distribution"].values()) == rule["support"]
    assert document["target"] == "ill"
    assert [int(line["support"]) for line in table] == [rule["support"] for rule in document["rules"]]
    assert all(rule["confidence_error"] > 0 and rule["support_error"] > 0 for rule in document["rules"])


def test_rules_are_chosen_by_class_support_and_confidence(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["--class", "yes", "--min-support", 50, "--min-confidence", 0.5, "--sub-rules", "--format", "json"]
    found = json.loads(run("rules", fitted.forest, *words).stdout)["rules"]
    assert all(rule["class"] == "yes" and rule["support"] >= 50 and rule["confidence"] >= 0.5 for rule in found)
    assert "no such rules" in run("rules", fitted.forest, "--min-support", 1e9).stdout
    unknown = run("rules", fitted.forest, "--class", "perhaps")
    assert unknown.exit_code == 2
    assert "'no', 'yes'" in unknown.stderr


def test_rules_are_sorted_and_written_to_files(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    def listed(*more: object) -> list[dict[str, Any]]:
        rules: list[dict[str, Any]] = json.loads(run("rules", fitted.forest, "--format", "json", *more).stdout)["rules"]
        return rules

    for name in ("confidence", "support"):
        numbers = [rule[name] for rule in listed("--sort", name)]
        assert numbers == sorted(numbers, reverse=True)
    assert listed("--sort", "support") != listed()
    for suffix, start in {"csv": "conditions,class,", "json": "{", "md": "| rule |", "txt": "1. If "}.items():
        path = fitted.folder / f"rules.{suffix}"
        result = run("rules", fitted.forest, "--top", 4, "-o", path)
        assert (result.exit_code, result.stdout) == (0, f"wrote {path}: 4 rules\n")
        assert path.read_text(encoding="utf-8").startswith(start)
        before = path.read_bytes()
        assert run("rules", fitted.forest, "-o", path).exit_code == 2  # it exists
        assert path.read_bytes() == before
        assert run("rules", fitted.forest, "-o", path, "--force").exit_code == 0
    path = fitted.folder / "odd.txt"
    run("rules", fitted.forest, "--top", 2, "--format", "csv", "-o", path)
    assert path.read_text(encoding="utf-8") == run("rules", fitted.forest, "--top", 2, "--format", "csv").stdout
    assert run("rules", fitted.forest, "-o", fitted.forest, "--force").exit_code == 2  # never over its own input


# ---------------------------------------------------------------- show


def test_show_starts_with_a_summary(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("show", fitted.forest)
    assert result.exit_code == 0, result.output
    for words in ("Private-RDT", "chosen: height", "importances", "ε = 1 differential privacy", "Tree 1 of 3"):
        assert words in result.stdout
    only_tree = run("show", fitted.forest, "--tree", 3, "--depth", 1).stdout
    assert "Tree 3 of 3" in only_tree
    assert "algorithm" not in only_tree


def test_show_draws_pictures_by_the_name_of_the_file(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    svg, page = fitted.folder / "tree.svg", fitted.folder / "tree.html"
    assert run("show", fitted.forest, "-o", svg).exit_code == 0
    assert svg.read_text(encoding="utf-8").lstrip().startswith("<svg")
    assert run("show", fitted.forest, "-o", page).exit_code == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run("show", fitted.forest, "-o", fitted.folder / "tree.png").exit_code == 2
    assert run("show", fitted.forest, "--tree", 4).exit_code == 2
    assert run("show", fitted.forest, "-o", page).exit_code == 2  # it exists
    report = fitted.folder / "report.html"
    assert run("show", fitted.forest, "--report", report).exit_code == 0
    assert "certificate" in report.read_text(encoding="utf-8").lower()


def test_show_certificate(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    text = run("show", fitted.forest, "--certificate").stdout
    for words in ("epsilon-DP", "add or remove one row", "assumption", "leaf_counts", "noise scale", "content hash"):
        assert words in text
    assert "Tree 1" not in text


# ---------------------------------------------------------------- budget


def test_budget_init_never_forgets(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "b.json"
    assert run("budget", "init", path, "--epsilon", "1/3").exit_code == 0
    large = run("budget", "init", tmp_path / "large.json", "--epsilon", 1, "--delta", "0.1")
    assert "moderate protection: a guess whether you are in the table is right at most 75.8 %" in large.output
    assert "δ = 0.1 is large" in large.output
    before = path.read_bytes()
    again = run("budget", "init", path, "--epsilon", 9)
    assert again.exit_code == 3
    assert "exists already" in again.stderr
    assert path.read_bytes() == before
    assert run("budget", "init", tmp_path / "c.json", "--epsilon", "0").exit_code == 2


def test_budget_show_tells_what_never_settled(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "b.json"
    budget = BudgetFile.create(path, 2)
    assert "no requests yet" in run("budget", "show", path).stdout
    budget.reserve("0.5", "fit that crashed")
    budget.reserve("0.25", "fit that ended").settle()  # it charged nothing
    text = run("budget", "show", path).stdout
    assert "not settled: stays spent" in text
    assert "total ε 2, spent 0.5, remaining 1.5" in text
    assert "25% spent" in text


@pytest.mark.parametrize(("spent", "filled"), [("0", 0), ("0.001", 1), ("1", 20), ("1.999", 39), ("2", 40)])
def test_the_gauge_is_full_only_when_nothing_is_left(spent: str, filled: int) -> None:
    from hedgerow.cli.console import gauge

    assert gauge(Fraction(spent), Fraction(2)).count("█") == filled


def test_a_damaged_budget_is_refused(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "b.json"
    path.write_text('{"format": "hedgerow-budget"')
    result = run("budget", "show", path)
    assert result.exit_code == 3
    assert "damaged" in result.stderr


# ---------------------------------------------------------------- demo


@pytest.mark.slow
def test_the_demo_goes_all_the_way(tmp_path: Path, run: Callable[..., Any]) -> None:
    report, folder = tmp_path / "report.html", tmp_path / "files"
    result = run("demo", "-o", report, "--rows", 3000, "--keep", folder)
    assert result.exit_code == 0, result.output
    steps = ["schema check", "budget init", "hedgerow plan", "hedgerow fit", "hedgerow evaluate", "show forest.json --attribute"]
    places = [result.stdout.index(step) for step in steps]
    assert places == sorted(places)
    assert "short by 0.1" in result.stdout
    assert str(report) in result.stdout
    page = report.read_text(encoding="utf-8")
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert BudgetFile(folder / "budget.json").spent == Fraction("1.1")
    # a second run must not spend from, or write over, what the first one kept
    again = run("demo", "-o", report, "--rows", 3000, "--keep", folder)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
