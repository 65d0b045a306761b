"""`hedgerow fit https://…/datasets/NAME`: the command line on rows that stay at a server."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import run
from remote.remote_service import *  # noqa: F403
from remote.remote_service import SCHEMA, Served

import hedgerow
from hedgerow import BudgetFile, Schema
from hedgerow.errors import CuratorError
from hedgerow.release.release import Release
from hedgerow.training.fit import fit
from hedgerow.training.recipe import Recipe

_ = run  # the fixture


@pytest.fixture
def place(served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HEDGEROW_TOKEN", served.token)
    return f"{served.url}/datasets/patients"


@pytest.mark.slow
def test_fit_and_evaluate(served: Served, place: str, run: Callable[..., Any], tmp_path: Path) -> None:
    forest, schema = tmp_path / "forest.json", tmp_path / "schema.toml"
    fitted = run("fit", place, "--epsilon", "1", "-o", str(forest))
    assert fitted.exit_code == 0, fitted.output
    assert "no --budget" not in fitted.output
    assert (served.spent, Release.load(forest).certificate.epsilon) == (1, "1")
    scored = run("evaluate", str(forest), place, "--epsilon", "2", "--purpose", "research", "--training-rows")
    assert (scored.exit_code, served.spent) == (0, 3), scored.output
    assert "left for you at the service, for 'research': (ε = 47, δ = 0.001)" in " ".join(scored.stdout.split())
    assert "trained on the rows of 'patients' themselves, which flatter it" in scored.stderr
    schema.write_text(SCHEMA.to_toml())
    again = run("fit", place, "--schema", str(schema), "--algorithm", "dpdf", "--epsilon", "1/2", "-o", str(tmp_path / "dpdf.json"))
    assert again.exit_code == 0, again.output
    assert served.spent <= Fraction(7, 2)


def test_the_same_fit_is_fetched_and_paid_once(served: Served, place: str, run: Callable[..., Any], tmp_path: Path) -> None:
    """Under another name, or with --force, it was paid again without a word."""
    budget = tmp_path / "budget.json"
    BudgetFile.create(budget, 5)
    words = ["fit", place, "--algorithm", "rdt", "--trees", "2", "--budget", budget, "--epsilon"]
    first = run(*words, "1/2", "-o", tmp_path / "first.json")
    assert first.exit_code == 0, first.output
    spent = served.spent
    for more in (["-o", tmp_path / "second.json"], ["-o", tmp_path / "first.json", "--force"]):
        again = run(*words, "0.5", *more)
        assert (again.exit_code, served.spent) == (0, spent), again.output
        assert "the service has made this forest already" in " ".join(again.output.split())
    hashes = {Release.load(tmp_path / f"{name}.json").content_hash for name in ("first", "second")}
    assert len(hashes) == 1
    assert BudgetFile(budget).spent == Fraction(1, 2)
    for other in (["1/2", "--again"], ["1/4"], ["1/2", "--seed", "1", "--again"], ["1/2", "--bins", "7"]):
        before = served.spent
        done = run(*words, *other, "-o", tmp_path / "other.json", "--force")
        assert (done.exit_code, served.spent > before) == (0, True), done.output
    before = served.spent
    seeded = run(*words, "1/2", "--seed", "2", "-o", tmp_path / "other.json", "--force")  # a release does not tell its seed
    assert (seeded.exit_code, served.spent) == (2, before), seeded.output
    assert "Leave --seed out to fetch it, or add --again" in " ".join(seeded.output.split())
    assert not list(tmp_path.glob("*.request"))


def test_a_forest_with_another_vote_or_stopping_rule_is_not_fetched(
    served: Served, place: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    """What a release does not state among its parameters was not compared: a forest by majority was taken for one by confidence."""
    forest = tmp_path / "forest.json"
    for words in (
        ["dpdf", "--vote", "majority"],
        ["dpdf"],
        ["snr", "--stopping-rule", "literal", "--max-leaves", "50"],
        ["snr", "--max-leaves", "50"],
    ):
        for new in (True, False):  # the same words again, in which a default may be spelled out
            before, same = served.spent, ["--vote", "confidence"] if words == ["dpdf"] and not new else []
            done = run("fit", place, "--algorithm", *words, *same, "--epsilon", "1", "-o", forest, "--force")
            assert (done.exit_code, served.spent > before) == (0, new), done.output
        if words[0] == "dpdf":
            assert Release.load(forest).vote == ("majority" if "majority" in words else "weighted by confidence")


def test_a_forest_is_scored_on_the_rows_that_it_learnt_from_only_where_that_is_wanted(
    served: Served, place: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    """Another dataset of the same schema, or a forest from elsewhere: no word. Another schema: refused, in words about the forest."""
    served.curator.registry.register("test", served.file, SCHEMA)
    served.curator.ledger.ceiling("test", 50)
    served.curator.accounts.grant("ada", "test", ["research"])
    forest, flatter, before = tmp_path / "forest.json", "which flatter it", served.spent
    with hedgerow.connect(served.url, served.token) as connection:
        connection.forest("patients", "rdt", epsilon=1, n_estimators=2).wait().save(forest)  # type: ignore[union-attr]
    fitted = served.spent
    refused = run("evaluate", forest, place, "--epsilon", "1")
    assert (refused.exit_code, served.spent, flatter in refused.stderr) == (2, fitted, True), refused.output
    assert "Nothing was charged" in refused.stderr
    assert "add --training-rows" in " ".join(refused.stderr.split())
    assert not list(tmp_path.glob("*.request"))
    wanted = run("evaluate", forest, place, "--epsilon", "1", "--training-rows")
    assert (wanted.exit_code, served.spent, flatter in wanted.stderr) == (0, fitted + 1, True), wanted.output
    assert flatter not in run("evaluate", forest, place.replace("/patients", "/test"), "--epsilon", "1").stderr
    elsewhere = fit(Recipe.of("rdt", 1, n_estimators=2), str(served.file), schema=SCHEMA)
    elsewhere.save(forest)
    assert flatter not in run("evaluate", forest, place, "--epsilon", "1").stderr
    spent = served.spent
    assert spent > before
    fit(Recipe.of("rdt", 1, n_estimators=2), str(served.file), schema=Schema(SCHEMA.attributes[:1], SCHEMA.target)).save(forest)
    refused = run("evaluate", forest, place, "--epsilon", "1")
    assert (refused.exit_code, served.spent) == (2, spent)
    assert "forest: it was trained with another schema than that of 'patients'" in refused.stderr
    assert "Nothing was charged" in refused.stderr


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_a_job_that_was_given_back_has_cost_nothing(
    served: Served, place: str, run: Callable[..., Any], tmp_path: Path, delta: str
) -> None:
    """Neither at the service nor in a budget file, but that a file keeps what has a δ, and says so."""
    served.file.unlink()
    wanted = ["fit", place, "--epsilon", "1", "--delta", delta, "-o", str(tmp_path / "forest.json")]
    failed = run(*wanted)
    assert (failed.exit_code, served.spent) == (2, 0), failed.output
    assert "failed: no row was looked at, and nothing was charged" in failed.stderr
    assert "stays" not in failed.stderr
    budget = tmp_path / "budget.json"
    run("budget", "init", str(budget), "--epsilon", "5", "--delta", "1e-5")
    failed = run(*wanted, "--budget", str(budget))
    assert ("stays" in failed.stderr, "a file gives back no δ" in failed.stderr) == (delta != "0", delta != "0"), failed.stderr
    assert BudgetFile(budget).spent == (1 if delta != "0" else 0)


def test_nobody_says_that_a_service_goes_on_which_may_have_stopped(
    place: str, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise CuratorError("it does not answer")

    monkeypatch.setattr("hedgerow.remote.jobs.Job.done", gone)
    said = run("fit", place, "--epsilon", "1", "-o", str(tmp_path / "forest.json")).stderr
    assert "what it had not begun when it stopped is given back, and costs nothing" in said
    assert "the service goes on with what it is paid for" not in said


def test_what_is_refused(served: Served, place: str, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*command: str, code: int = 2) -> str:
        result = run("fit", *command, "-o", str(tmp_path / "forest.json"), "--epsilon", "60")
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    assert "remaining 50" in refused(place, code=3)
    assert "Leave them out" in refused(place, "--table", "x")
    assert "granted for 'research'" in refused(place, "--purpose", "other")
    assert "--schema: missing" in refused(str(served.file))
    assert "belongs to a service" in refused(str(served.file), "--purpose", "x")
    assert "a dataset's page" in refused(served.url)
    assert "or it is not granted to you" in refused(f"{served.url}/datasets/other")
    monkeypatch.delenv("HEDGEROW_TOKEN")
    assert "export HEDGEROW_TOKEN=hrw_" in refused(place)
    assert "--tokens" not in refused(place)
    assert served.spent == 0


def test_what_it_would_cost(served: Served, place: str, run: Callable[..., Any], tmp_path: Path) -> None:
    told = run("plan", place, "--epsilon", "1/2", "--trees", "7", "--algorithm", "rdt", "--rows", "1000")
    assert told.exit_code == 0, told.output
    said = " ".join(told.output.split())
    assert "it would cost ε = 0.5; left for you before it: (ε = 50, δ = 0.001). Nothing was spent." in said
    assert "trees" in said
    assert "has assumed" not in said
    assert "the service has assumed 10,000 rows" in " ".join(run("plan", place, "--epsilon", "1/2").output.split())
    with hedgerow.connect(served.url, served.token) as connection:
        assert "(for 10,000 assumed rows; say how many by rows=)" in repr(connection.quote("patients", epsilon=1))
    shown = " ".join(run("budget", "show", place).output.split())
    assert "left for you of patients purpose ε δ" in shown
    assert "research 50 0.001" in shown
    assert "unit: rows" in shown
    assert "would refuse it" in run("plan", place, "--epsilon", "60").output
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    for wrong, words in (
        ([place], "--epsilon: missing"),
        ([place, "--epsilon", "1", "--schema", str(tmp_path / "schema.toml")], "Leave them out"),
        ([place, "--epsilon", "1", "--depth", "3", "--algorithm", "snr", "--max-leaves", "5"], "has no such setting"),
        (["--epsilon", "1"], "--schema: missing"),
        (["--epsilon", "1", "--schema", str(tmp_path / "schema.toml"), "--purpose", "x"], "belongs to a service"),
    ):
        result = run("plan", *wrong)
        assert (result.exit_code, words in " ".join(result.output.split())) == (2, True), result.output
    assert served.spent == 0
