"""`hedgerow fit URL` and `hedgerow count URL` that are interrupted: the same command goes on with the same request, paid once."""

from __future__ import annotations

import stat
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import run
from remote.conftest import SCHEMA, Served, Servers

from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.units import ROW
from hedgerow.cli.budget_source import TrackedBudgetFile
from hedgerow.errors import BudgetError, CuratorError
from hedgerow.release.release import Release
from hedgerow.remote.jobs import Job
from hedgerow.remote.transport import Transport
from hedgerow.training.recipe import Recipe
from hedgerow.training.shared_plans import public_plan

_ = run  # the fixture
Run = Callable[..., Any]


@pytest.fixture
def page(served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HEDGEROW_TOKEN", served.ada)
    return served.page


def said(result: Any) -> str:
    return " ".join(result.output.split())


def fails(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def wait(*_: Any) -> None:
        raise error

    monkeypatch.setattr(Job, "wait", wait)


def lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service gets what is paid for, and its acknowledgement is lost."""
    real = Transport.json

    def sent(self: Transport, method: str, path: str, *given: Any, **how: Any) -> Any:
        found = real(self, method, path, *given, **how)
        if how.get("key") is not None:
            raise CuratorError(f"{self.url}: the service cannot be reached. Check that it runs, then try again.")
        return found

    monkeypatch.setattr(Transport, "json", sent)


def test_an_interrupted_fit_goes_on_with_its_job(
    served: Served, page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forest, kept, budget = tmp_path / "b2.json", tmp_path / "b2.json.request", BudgetFile.create(tmp_path / "budget.json", "3")
    command = ("fit", page, "--epsilon", "1", "--budget", budget.path, "-o", forest)
    with monkeypatch.context() as patch:
        fails(patch, KeyboardInterrupt())
        ended = run(*command)
    assert ended.exit_code == 130
    assert "Run the same command again to fetch it" in said(ended)
    assert "nothing is paid twice" in said(ended)
    assert (forest.exists(), stat.S_IMODE(kept.stat().st_mode), served.charges(), budget.spent) == (False, 0o600, ["1"], 1)
    again = run(*command)
    assert again.exit_code == 0, again.output
    assert "going on with the request of an earlier run" in said(again)
    assert (Release.load(forest).certificate.epsilon, kept.exists(), served.charges(), budget.spent) == ("1", False, ["1"], 1)
    assert len(budget.entries) == 1
    assert run(*command, "--force").exit_code == 0  # answered and saved: it is fetched
    assert (served.charges(), budget.spent) == (["1"], 1)
    assert run(*command, "--force", "--again").exit_code == 0  # this is another request
    assert (served.charges(), budget.spent) == (["1", "1"], 2)


@pytest.mark.parametrize("where", ["acknowledgement", "wait"])
def test_a_service_that_is_gone_for_a_while(
    served: Served, servers: Servers, page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    command = ("fit", page, "--epsilon", "1", "--algorithm", "rdt", "--trees", "3", "-o", tmp_path / "b2.json")
    with monkeypatch.context() as patch:
        if where == "wait":
            real = Job.now
            patch.setattr(Job, "now", lambda job: servers.stop(served) or real(job))
        else:
            lost(patch)
        ended = run(*command)
    assert ended.exit_code == 2, ended.output
    assert "cannot be reached" in said(ended)
    assert "Run the same command again to fetch it" in said(ended)
    assert "key=" not in said(ended)
    if where == "wait":
        servers.start(served)
    again = run(*command)
    assert (again.exit_code, served.charges()) == (0, ["1"]), again.output
    assert not (tmp_path / "b2.json.request").exists()


def test_counts_go_on_too(served: Served, page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public_plan(Recipe.of("hedgerow", "1/2"), SCHEMA, 300, 2).save(tmp_path / "plan.json")
    command = ("count", tmp_path / "plan.json", page, "-o", tmp_path / "counts.json")
    with monkeypatch.context() as patch:
        lost(patch)
        assert run(*command).exit_code == 2
    assert run(*command).exit_code == 0
    assert (served.charges(), (tmp_path / "counts.json.request").exists()) == (["0.5"], False)


def test_what_the_service_took_and_does_not_know_any_more_is_not_paid_anew(
    served: Served, page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an older copy of its ledger was put back: it said "nothing is paid twice", and paid."""
    kept, command = tmp_path / "b2.json.request", ("fit", page, "--epsilon", "1", "-o", tmp_path / "b2.json")
    with monkeypatch.context() as patch:
        fails(patch, KeyboardInterrupt())
        run(*command)
        run(*command)  # the job is noted once
    first, job, *others = kept.read_text().splitlines()
    assert ('"type":"job"' in job, others) == (True, [])
    key = first.split('"key":"')[1][:36]
    other = f"{key[:-1]}{'0' if key[-1] != '0' else '1'}"  # the service knows neither
    kept.write_text(f'{first.replace(key, other)}\n{{"type":"job","id":"{other}"}}\n')
    refused = run(*command)
    assert (refused.exit_code, served.charges()) == (2, ["1"])
    assert "does not know it any more. Was the service put back from a copy" in said(refused)
    assert "to pay for the request anew: rm " in said(refused)
    assert "Run the same command again" not in said(refused)
    kept.unlink()
    assert (run(*command, "--again").exit_code, served.charges()) == (0, ["1", "1"])  # without: fetched, if the first job is done by now


def test_another_request_does_not_take_its_place(
    served: Served, page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forest, kept = tmp_path / "b2.json", tmp_path / "b2.json.request"
    with monkeypatch.context() as patch:
        fails(patch, KeyboardInterrupt())
        run("fit", page, "--epsilon", "1", "-o", forest)
    before = kept.read_bytes()
    other = run("fit", page, "--epsilon", "1/2", "-o", forest)
    assert other.exit_code == 2
    assert "holds another request, which was not answered and may be paid for" in said(other)
    assert "Nothing was spent" in said(other)
    assert (served.charges(), kept.read_bytes()) == (["1"], before)
    kept.write_text("{}")
    damaged = run("fit", page, "--epsilon", "1", "-o", forest)
    assert (damaged.exit_code, "cannot be read" in said(damaged), served.charges()) == (2, True, ["1"])


def test_what_is_refused_or_has_failed_is_not_kept(
    served: Served, page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, budget = tmp_path / "b2.json.request", BudgetFile.create(tmp_path / "budget.json", "1/2")
    for refused in (("--epsilon", "60"), ("--epsilon", "1", "--budget", budget.path)):
        assert run("fit", page, *refused, "-o", tmp_path / "b2.json").exit_code == 3
        assert (served.charges(), kept.exists()) == ([], False)
    with monkeypatch.context() as patch:
        fails(patch, CuratorError("the job could not be ended. Requested again, it is paid for again.", code="failed"))
        failed = run("fit", page, "--epsilon", "1", "-o", tmp_path / "b2.json")
    assert (failed.exit_code, kept.exists(), "nothing is paid twice" in said(failed)) == (2, False, False)


def test_a_refusal_of_what_was_sent_before_keeps_it(
    served: Served, page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "b2.json.request"
    with monkeypatch.context() as patch:
        fails(patch, KeyboardInterrupt())
        run("fit", page, "--epsilon", "1", "-o", tmp_path / "b2.json")
    with monkeypatch.context() as patch:

        def refuses(*_: Any, **__: Any) -> None:
            raise CuratorError("a valid token is needed", 401, "unauthorised")

        patch.setattr("hedgerow.remote.connection.Connection._submit", refuses)
        assert run("fit", page, "--epsilon", "1", "-o", tmp_path / "b2.json").exit_code == 2
    assert kept.exists()
    assert run("fit", page, "--epsilon", "1", "-o", tmp_path / "b2.json").exit_code == 0
    assert served.charges() == ["1"]


def test_what_a_session_costs_again_is_said(page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forest that is grown here asks several queries: there is no job to go on with."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hedgerow.remote.session.RemoteRows.released", interrupted)
    ended = run("fit", page, "--epsilon", "1", "--batch", "x", "-o", tmp_path / "b2.json")
    assert (ended.exit_code, "The same command with --again looks at it, and is charged, anew" in said(ended)) == (130, True), ended.output
    assert not (tmp_path / "b2.json.request").exists()


def test_a_budget_file_is_charged_once_for_a_key(tmp_path: Path) -> None:
    """And what was paid for then pays for no second look: there is no reservation to look with."""
    BudgetFile.create(tmp_path / "budget.json", 1)
    budget = TrackedBudgetFile(tmp_path / "budget.json")
    first = budget.reserve_once("k", Fraction(3, 4), "a fit", 0, ROW)
    assert first is not None
    again = TrackedBudgetFile(tmp_path / "budget.json")
    assert again.reserve_once("k", Fraction(3, 4), "a fit", 0, ROW) is None
    assert (again.charge is not None, [entry.key for entry in budget.entries]) == (True, ["k"])
    with pytest.raises(BudgetError, match="paid for under the same key already"):
        budget.reserve_under("k", "1/4", "a fit")
    first.settle()
    with pytest.raises(BudgetError, match="paid for under the same key already"):
        budget.reserve_under("k", "1/4", "a fit")
    with pytest.raises(BudgetError, match="short by"):
        again.reserve_once("l", Fraction(5, 4), "a fit", 0, ROW)
