"""The forest that users meet first, from the command line: no algorithm named, with δ and without, over several owners."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hedgerow import BudgetFile, HedgerowClassifier, Release
from hedgerow.accounting.noise import variance_of
from hedgerow.datasets import patients


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tables of 15 attributes: enough for δ to be worth its while."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("a", "b", "c"), start=1):
        patients(3000, seed=seed).to_csv(f"{name}.csv")
    patients(10, seed=0).schema.save("schema.toml")
    BudgetFile.create("pure.json", 4)
    BudgetFile.create("budget.json", 4, "1e-5")
    return tmp_path


def done(result: Any) -> Any:
    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.output
    return result


def refused(result: Any, *words: str) -> None:
    assert result.exit_code in (2, 3), result.output
    for text in words:
        assert text in result.stderr, result.stderr
    assert "Traceback" not in result.output


def test_it_is_the_one_without_a_name(here: Path, run: Callable[..., Any]) -> None:
    plan = done(run("plan", "--schema", "schema.toml", "--epsilon", 1, "--rows", 3000))
    assert "Hedgerow forest" in plan.stdout
    assert "height 1" not in plan.stdout
    for words in ("signal to noise", "one-way counts", "boosted trees", "probabilities", "passes over the rows", "charge: leaf_counts"):
        assert words in plan.stdout
    said = done(run("fit", "a.csv", "--schema", "schema.toml", "--epsilon", 1, "--budget", "pure.json", "-o", "forest.json")).stdout
    assert "verdict: " in said
    release = Release.load("forest.json")
    assert (release.algorithm, release.certificate.epsilon, release.certificate.delta) == ("Hedgerow forest", "1", None)
    assert BudgetFile("pure.json").spent == 1
    table = patients(2000, seed=9)
    assert (release.predict(table.X) == table.y).mean() > 0.6


def test_a_verdict_for_a_noisy_number_of_rows_says_how_sure_that_is(
    here: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told for the number that 3 % of ε pay for, without its error, though the counts know it better."""
    monkeypatch.setattr("hedgerow.cli.fit.UNSURE", 0.01)
    words = ["fit", "a.csv", "--schema", "schema.toml", "--budget", "pure.json", "-o", "forest.json"]
    said = done(run(*words, "--epsilon", "0.05")).stdout
    found = re.search(r"verdict, for about ([\d,]+) ± ([\d,]+) rows: about", said)
    assert found, said
    rows, error = (int(text.replace(",", "")) for text in found.groups())
    release = Release.load("forest.json")
    asked = next(event for event in release.certificate.events if event.query == "rows")
    assert 0 < error < variance_of(asked.noise) ** 0.5
    assert abs(rows - len(Path("a.csv").read_text().splitlines()) + 1) < 8 * error


def test_the_verdict_after_a_fit_says_of_its_own_noise_whether_the_delta_was_of_use(here: Path, run: Callable[..., Any]) -> None:
    """It was told by the better number of rows that is known after it: of Gaussian noise, that the δ had bought nothing."""
    lines, asked = Path("a.csv").read_text().splitlines(), HedgerowClassifier("schema.toml", epsilon="0.4", delta="1e-6")
    least = next(rows for rows in range(50, len(lines), 10) if any(event.rho for event in asked.plan(rows=rows).events))
    Path("few.csv").write_text("\n".join(lines[: least + 1]) + "\n")  # so that the noise decides
    for place in range(8):
        out = f"{place}.json"
        said = " ".join(
            done(run("fit", "few.csv", "--schema", "schema.toml", "--epsilon", "0.4", "--delta", "1e-6", "-o", out)).stdout.split()
        )
        gaussian = any(event.mechanism.startswith("discrete Gaussian") for event in Release.load(out).certificate.events)
        assert ("The δ buys nothing here" in said) == (not gaussian), said


def test_a_plan_without_a_size_says_which_option_to_give(here: Path, run: Callable[..., Any]) -> None:
    result = run("plan", "--schema", "schema.toml", "--epsilon", 1)
    refused(result, "--rows 10000.")
    assert "--depth" not in result.stderr


@pytest.mark.slow
def test_delta_buys_boosted_trees(here: Path, run: Callable[..., Any]) -> None:
    words = ["--schema", "schema.toml", "--epsilon", 2, "--delta", "1e-6"]
    plan = done(run("plan", *words, "--rows", 3000))
    assert "(ε = 2, δ = 1e-06)" in plan.stdout
    assert "charge: boost_round" in plan.stdout
    result = done(run("fit", "a.csv", *words, "--budget", "budget.json", "-o", "forest.json"))
    assert "(ε = 2, δ = 1e-06) differential privacy" in result.stdout
    assert "ε = 2 of 4, δ = 9e-06 of 1e-05 left" in result.stdout
    release = Release.load("forest.json")
    assert release.correction.trees
    assert release.certificate.delta == "0.000001"
    for command in (["show"], ["show", "--certificate"], ["rules", "--top", 3], ["verify"]):
        done(run(command[0], "forest.json", *command[1:]))
    assert len(done(run("predict", "forest.json", "b.csv")).stdout.splitlines()) == 3001


def test_a_forest_without_rules_says_so_and_what_to_use(here: Path, run: Callable[..., Any]) -> None:
    done(run("fit", "a.csv", "--schema", "schema.toml", "--epsilon", 2, "--delta", "1e-6", "-o", "joint.json"))
    assert Release.load("joint.json").chosen["joint rounds"]
    for more in ([], ["--noisy"], ["--sub-rules", "--min-support", 0]):
        said = " ".join(run("rules", "joint.json", *more).stdout.split())
        assert "This forest has no rules" in said
        assert "hedgerow show joint.json --attribute NAME" in said
        assert "--algorithm dpdf" in said
    written = done(run("rules", "joint.json", "-o", "rules.csv")).output
    assert "wrote rules.csv: 0 rules" in written
    assert "This forest has no rules" in " ".join(written.split())


def test_fit_says_what_epsilon_means_with_its_delta(here: Path, run: Callable[..., Any]) -> None:
    done(run("budget", "init", "large.json", "--epsilon", 1, "--delta", "0.1"))
    words = ["fit", "a.csv", "--schema", "schema.toml", "--epsilon", 1, "--delta", "0.1", "-o", "forest.json"]
    said = done(run(*words, "--budget", "large.json")).output
    assert "what ε means: moderate protection" in said
    assert "75.8 % of the time" in said
    assert "δ = 0.1 is large" in said


@pytest.mark.slow
def test_a_budget_without_delta_says_what_to_do(here: Path, run: Callable[..., Any]) -> None:
    before = Path("pure.json").read_bytes()
    words = ["fit", "a.csv", "--schema", "schema.toml", "--epsilon", 1, "--delta", "1e-6", "-o", "forest.json"]
    what = ("pure ε alone", "Nothing was spent", "hedgerow budget init FILE --epsilon 4 --delta 1e-05")
    refused(run(*words, "--budget", "pure.json"), *what)
    assert Path("pure.json").read_bytes() == before
    assert not Path("forest.json").exists()
    done(run("budget", "init", "other.json", "--epsilon", 1, "--delta", "1e-6"))
    done(run(*words, "--budget", "other.json"))
    refused(run(*words, "--force", "--budget", "other.json"), "Nothing was spent")


@pytest.mark.parametrize("algorithm", ["snr", "rdt", "dpdf", "private-id3"])
def test_others_have_no_delta(algorithm: str, here: Path, run: Callable[..., Any]) -> None:
    words = ["--schema", "schema.toml", "--algorithm", algorithm, "--delta", "1e-6", "--epsilon", 1]
    refused(run("fit", "a.csv", *words, "--budget", "budget.json", "-o", "forest.json"), "--delta", "--algorithm")
    refused(run("plan", *words, "--rows", 100), "--delta", "--algorithm")
    assert BudgetFile("budget.json").entries == ()


@pytest.mark.parametrize("delta", ["1", "-1", "many", "nan"])
def test_a_delta_that_is_none_is_one_message(delta: str, here: Path, run: Callable[..., Any]) -> None:
    words = ["--schema", "schema.toml", "--epsilon", 1, "--delta", delta]
    refused(run("fit", "a.csv", *words, "--budget", "budget.json", "-o", "forest.json"), "delta: got")
    refused(run("plan", *words, "--rows", 100), "delta: got")
    assert BudgetFile("budget.json").entries == ()


@pytest.mark.slow
def test_owners_count_one_plan(here: Path, run: Callable[..., Any]) -> None:
    result = done(run("plan", "--schema", "schema.toml", "--epsilon", "0.5", "--owners", 3, "--save", "plan.json"))
    for words in ("ε for each owner", "of 3 tables together", "nothing in it is drawn"):
        assert words in result.stdout
    document = json.loads(Path("plan.json").read_text())
    assert (document["seed"], document["drawn_with"], document["algorithm"]) == (None, "", "Hedgerow forest")
    assert "it holds no data: its trees follow from its schema and its settings alone" in done(run("verify", "plan.json")).stdout
    for name in "abc":
        done(run("count", "plan.json", f"{name}.csv", "-o", f"{name}.json", "--disjoint"))
    done(run("merge", "a.json", "b.json", "c.json", "-o", "merged.json"))
    merged = Release.load("merged.json")
    assert (merged.certificate.epsilon, merged.chosen["reading"], merged.chosen["strength"]) == ("0.5", "flat", 0.7)
    done(run("update", "merged.json", "a.csv", "--batch", "again", "--owner", "a", "--budget", "pure.json"))
    assert len(Release.load("merged.json").forest.noise) == 4
    refused(run("merge", "--columns", "a.json", "b.json", "-o", "united.json"), "Forests that vote can be united", "rdt")


@pytest.mark.slow
def test_a_forest_takes_new_rows_unless_it_has_boosted_trees(here: Path, run: Callable[..., Any]) -> None:
    words = ["--schema", "schema.toml", "--epsilon", 2]
    done(run("fit", "a.csv", *words, "--owner", "a", "--batch", "may", "-o", "forest.json"))
    trees = Release.load("forest.json").forest.trees
    done(run("update", "forest.json", "b.csv", "--batch", "june", "--owner", "a", "--budget", "pure.json"))
    after = Release.load("forest.json")
    assert after.forest.trees == trees
    assert (after.certificate.epsilon, BudgetFile("pure.json").spent) == ("4", 2)
    done(run("fit", "a.csv", *words, "--delta", "1e-6", "-o", "steps.json"))
    before = Path("steps.json").read_bytes()
    for command in (
        ["update", "steps.json", "b.csv", "--budget", "pure.json"],
        ["count", "steps.json", "b.csv", "-o", "more.json", "--budget", "pure.json"],
        ["merge", "steps.json", "forest.json", "-o", "merged.json"],
    ):
        refused(run(*command), "boosted trees", "fit all rows at once", "hedgerow fit --batch")
    assert Path("steps.json").read_bytes() == before
    assert BudgetFile("pure.json").spent == 2
    named = ["--owner", "a", "-o", "named.json", "--budget", "budget.json"]
    refused(run("fit", "a.csv", *words, "--delta", "1e-6", *named), "Leave --delta out")
    for shared in (["--save", "plan.json"], ["--owners", 3]):
        assert "Gaussian" in done(run("plan", *words, "--delta", "1e-6", *shared)).stdout
    assert BudgetFile("budget.json").entries == ()


@pytest.mark.slow
def test_two_forests_that_chose_for_themselves_are_not_merged(here: Path, run: Callable[..., Any]) -> None:
    for name in "ab":
        done(run("fit", f"{name}.csv", "--schema", "schema.toml", "--epsilon", 5, "-o", f"{name}.json"))
    refused(run("merge", "a.json", "b.json", "-o", "merged.json"), "these forests were fitted", "hedgerow count plan.json")
