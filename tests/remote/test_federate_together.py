"""`hedgerow federate --together`: three services that really listen meet by a secure sum, each charges its own ledger, one release."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import run
from multiparty.owners import make_parties
from remote.conftest import LIMITS, SCHEMA, Served, Servers
from remote.test_federate import Three, tokens

import hedgerow
from hedgerow import HedgerowClassifier, Release
from hedgerow.accounting.noise import Gaussian, Shares
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.party import ServiceParty
from hedgerow.errors import CuratorError, PlanError, TogetherError
from hedgerow.multiparty.parties import add_party
from hedgerow.multiparty.secure_sum import ShamirSum
from hedgerow.release.parts import Together
from hedgerow.remote.jobs import Job

_ = run  # the fixture
ROWS = (300, 400, 500)
SHORT = replace(LIMITS, party_seconds=3)  # where somebody does not come


def made(
    servers: Servers, folder: Path, epsilon: str = "0.5", limits: Limits = LIMITS, ceiling: str = "2000", all_rows: Sequence[int] = ROWS,
    tolerated: int = 1, delta: str = "0",
) -> Three:  # fmt: skip
    found = make_parties(folder, len(all_rows), tolerated)
    clinics = []
    for number, rows in enumerate(all_rows, start=1):
        party = ServiceParty(found, number, folder / f"owner-{number}.key")
        clinics.append(servers.new(f"Clinic {number}", rows=rows, epsilon=ceiling, party=party, limits=limits))
    plan = HedgerowClassifier(SCHEMA, epsilon=epsilon, delta=delta).public_plan(rows=1000)
    plan.save(folder / "plan.json")
    tokens(folder, clinics)
    return Three(folder, clinics, plan)


def spent(three: Three) -> list[str]:
    return [str(clinic.curator.ledger.balance("visits").spent) for clinic in three.clinics]


@pytest.mark.slow
def test_one_release_at_one_owners_noise(servers: Servers, tmp_path: Path) -> None:
    three = made(servers, tmp_path, ceiling="0.5")  # what is reserved is all that is left
    said = three.run("--together")
    assert said.count("answered") == 3
    certificate = three.forest.certificate
    assert (certificate.epsilon, certificate.parts[0].together) == ("0.5", Together(["owner-1", "owner-2", "owner-3"], 1, [], "1.669"))
    assert certificate.parts[0].disjoint
    assert three.forest.forest.noise == (Shares(Fraction(4), 3, 2),)  # two attributes at ε = 0.5
    stored = [Release.load(next(iter(clinic.curator.releases.glob("*.json")))) for clinic in three.clinics]
    assert {release.content_hash for release in stored} == {three.forest.content_hash}
    assert (three.charges(), spent(three)) == ([["0.5"]] * 3, ["1/2"] * 3)
    again = three.run("--together", "--force")  # it is there: nobody is asked
    assert again.count("kept from an earlier run") == 3
    assert three.charges() == [["0.5"]] * 3
    assert "Take another folder" in three.run("--force", code=2)  # and it is not merged with counts of one owner


@pytest.mark.slow
def test_rows_that_were_counted_together_are_not_added_again(
    servers: Servers, tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were paid for and counted twice, under the ε of once."""
    three = made(servers, tmp_path)
    three.run("--together")
    three.forest.save(tmp_path / "fed.json")
    monkeypatch.setenv("HEDGEROW_TOKEN", three.clinics[0].ada)
    words = ["update", tmp_path / "fed.json", three.clinics[0].page, "--batch", "later", "--epsilon", "0.1"]
    refused = run(*words)
    said = " ".join(refused.output.split())
    assert (refused.exit_code, "is in the forest already, as owner-1 + owner-2 + owner-3" in said) == (2, True), said
    assert three.charges() == [["0.5"]] * 3
    assert run(*words, "--other-rows").exit_code == 0
    assert three.charges()[0] == ["0.5", "0.1"]


@pytest.mark.slow
def test_it_is_the_sum_of_all_rows(servers: Servers, tmp_path: Path) -> None:
    """At ε = 1000 for a table the noise is 0 (with probability above 1 - e^(-400))."""
    three = made(servers, tmp_path, epsilon="2000")
    three.run("--together", "--epsilon", "2000")
    assert [int(counts.sum()) for counts in three.forest.forest.counts] == [sum(ROWS)] * len(three.plan.trees)


@pytest.mark.slow
def test_one_is_down_and_nobody_begins(servers: Servers, tmp_path: Path) -> None:
    three = made(servers, tmp_path)
    servers.stop(three.clinics[1])
    said = three.run("--together", code=2)
    assert f"{three.clinics[1].page}: the service cannot be reached" in said
    assert said.count("it was not asked to count") == 2
    assert "there is no release. Nobody was asked to count, and this run has cost nothing" in said
    assert "pays again" not in said
    assert three.charges() == [[], [], []]
    servers.start(three.clinics[1])
    three.run("--together")
    assert three.charges() == [["0.5"]] * 3


@pytest.mark.slow
def test_one_of_five_is_down_and_two_are_tolerated(servers: Servers, tmp_path: Path) -> None:
    """The four others wait for it, then count without it; the release names it. At ε = 1000 for a table the noise is 0."""
    three = made(servers, tmp_path, "2000", replace(LIMITS, party_seconds=15), all_rows=(100, 200, 300, 400, 500), tolerated=2)
    servers.stop(three.clinics[2])
    said = three.run("--together", "--at-least", "4", "--epsilon", "2000")
    assert f"{three.clinics[2].page}: the service cannot be reached" in said
    found = three.forest.certificate.parts[0].together
    assert isinstance(found, Together)
    assert (found.tolerated, found.absent) == (2, ["owner-3"])
    assert three.forest.forest.noise == (Shares(Fraction(2, 2000), 4, 3),)
    assert [int(counts.sum()) for counts in three.forest.forest.counts] == [1200] * len(three.plan.trees)
    assert [len(each) for each in three.charges()] == [1, 1, 0, 1, 1]


@pytest.mark.slow
def test_services_with_a_delta_and_none_tolerated(servers: Servers, tmp_path: Path) -> None:
    """Exactly the noise of one curator, Gaussian; each ledger pays (ε, δ)."""
    three = made(servers, tmp_path, "0.1", tolerated=0, delta="1e-6")
    assert "and the plan costs (ε = 0.1, δ = 1e-06). Nothing was spent" in three.run("--together", code=2)
    for clinic in three.clinics:
        clinic.curator.ledger.ceiling("visits", "2", "1e-5")
    three.run("--together")
    certificate = three.forest.certificate
    assert (certificate.epsilon, certificate.delta) == ("0.1", "0.000001")
    assert three.forest.forest.noise == (Gaussian(three.plan.event.scale),)
    balances = [clinic.curator.ledger.balance("visits") for clinic in three.clinics]
    assert {(each.spent, each.spent_delta) for each in balances} == {(Fraction(1, 10), Fraction(1, 10**6))}


def test_a_service_whose_owner_does_not_trust_the_others_does_not_start(tmp_path: Path) -> None:
    parties, file = make_parties(tmp_path, 3, 0), tmp_path / "parties.toml"
    for party in parties.owners:
        add_party(file, party, tolerated=0)
    with pytest.raises(TogetherError, match="state it with --trust-owners"):
        ServiceParty.load(file, 1)
    assert ServiceParty.load(file, 1, trust_owners=True).parties.digest == parties.digest


@pytest.mark.slow
def test_a_service_without_a_party(servers: Servers, tmp_path: Path) -> None:
    clinics = [servers.new(f"Clinic {name}") for name in "ABC"]
    plan = HedgerowClassifier(SCHEMA, epsilon="0.5").public_plan(rows=1000)
    plan.save(tmp_path / "plan.json")
    tokens(tmp_path, clinics)
    three = Three(tmp_path, clinics, plan)
    assert three.run("--together", code=2).count("it counts together with nobody") == 3
    with hedgerow.connect(clinics[0].url, clinics[0].ada) as connection, pytest.raises(PlanError, match="counts with no others"):
        connection.counts("visits", plan, together=uuid.uuid4().hex)
    assert three.charges() == [[], [], []]


@pytest.mark.slow
def test_too_few_addresses(servers: Servers, tmp_path: Path) -> None:
    three = made(servers, tmp_path)
    assert three.run("--together", clinics=three.clinics[:2], code=2).count("of whom 3 must come, and 2 addresses were given") == 2
    assert three.charges() == [[], [], []]


@pytest.mark.slow
def test_another_parties_file(servers: Servers, tmp_path: Path) -> None:
    three = made(servers, tmp_path)
    service = three.clinics[2].app.state.service
    service.party = replace(service.party, parties=make_parties((tmp_path / "others").mkdir() or tmp_path / "others", 3))
    assert three.run("--together", code=2).count("their parties' files differ") == 3
    assert three.charges() == [[], [], []]


def asked(clinic: Served, plan: Any, run: str) -> str:
    with hedgerow.connect(clinic.url, clinic.ada) as connection, pytest.raises(CuratorError, match="failed: no row was looked at") as error:
        connection.counts("visits", plan, together=run).done(timeout=60)
    return str(error.value)


@pytest.mark.slow
def test_a_job_whose_peers_do_not_come_ends_and_costs_nothing(servers: Servers, tmp_path: Path) -> None:
    three = made(servers, tmp_path, limits=SHORT)
    assert "nothing was charged" in asked(three.clinics[0], three.plan, uuid.uuid4().hex)
    assert spent(three) == ["0"] * 3


@pytest.mark.slow
def test_requests_of_two_runs_are_not_mixed(servers: Servers, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    three = made(servers, tmp_path)
    runs = [uuid.uuid4().hex] * 2 + [uuid.uuid4().hex]
    threads = [threading.Thread(target=asked, args=(clinic, three.plan, run)) for clinic, run in zip(three.clinics, runs, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spent(three) == ["0"] * 3
    assert "has another request of an analyst" in str([getattr(record, "fields", "") for record in caplog.records])


@pytest.mark.slow
def test_one_leaves_in_the_middle_and_what_was_charged_stays(servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three = made(servers, tmp_path)
    adds, lock, calls = ShamirSum.sum, threading.Lock(), []

    def leaves(secure_sum: ShamirSum, numbers: Any) -> Any:
        with lock:
            calls.append(1)
            first = len(calls) == 1
        if first:
            raise TogetherError("gone, with its rows counted")
        return adds(secure_sum, numbers)

    monkeypatch.setattr(ShamirSum, "sum", leaves)
    assert "each service then pays again" in three.run("--together", code=2)
    assert not (tmp_path / "forest.json").exists()
    assert spent(three) == ["1/2"] * 3
    three.run("--together")  # another run, which is paid for again
    assert spent(three) == ["1"] * 3


@pytest.mark.slow
def test_a_connection_that_is_lost_while_they_count(servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The services have the request and go on: the next run fetches what they have made, and pays nothing."""
    three = made(servers, tmp_path)

    def lost(*_: Any, **__: Any) -> None:
        raise CuratorError("the service cannot be reached. Check that it runs, then try again.")

    with monkeypatch.context() as patch:
        patch.setattr(Job, "done", lost)
        said = three.run("--together", code=2)
    assert "there is no release yet" in said
    assert "nothing is paid twice" in said
    three.run("--together")
    assert (three.charges(), spent(three)) == ([["0.5"]] * 3, ["1/2"] * 3)


@pytest.mark.slow
def test_releases_that_differ_are_not_taken(servers: Servers, tmp_path: Path) -> None:
    three = made(servers, tmp_path)
    three.run("--together")
    first = [file.read_bytes() for file in three.kept]
    shutil.rmtree(tmp_path / "forest.federation")
    three.run("--together", "--force")
    three.kept[1].write_bytes(first[1])
    assert "different releases" in three.run("--together", "--force", code=2)


def test_what_a_start_refuses(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from hedgerow.cli import app

    parties = make_parties(tmp_path, 3)
    for party in parties.owners:
        add_party(tmp_path / "parties.toml", party)
    words = ["serve", str(tmp_path / "curator"), "--parties", str(tmp_path / "parties.toml")]
    for more, reason in (
        (["--party", "1"], "--party and --disjoint go together"),
        (["--party", "4", "--disjoint"], "expected 1 to 3"),
        (["--party", "1", "--party-key", str(tmp_path / "owner-2.key"), "--disjoint"], "does not belong to your certificate"),
    ):
        done = CliRunner().invoke(app, [*words, *more])
        assert done.exit_code == 2, done.output
        assert reason in done.output
    assert not (tmp_path / "curator").exists()
