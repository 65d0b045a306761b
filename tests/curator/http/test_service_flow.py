"""From a registered table to a release and its score, over HTTP; sent again, the same bytes and no second charge."""

from __future__ import annotations

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import uvicorn
from curator.http.conftest import FOREST, SCHEMA, Running
from curator.http.serving import wait_until
from fastapi.testclient import TestClient

from hedgerow.cli.serve import _say_stopped
from hedgerow.curator.application import application
from hedgerow.curator.http import work
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.recovery import lost_requests
from hedgerow.curator.http.server import _Server
from hedgerow.curator.http.sessions import Sessions
from hedgerow.release.release import Release

ALGORITHMS: dict[str, dict[str, Any]] = {
    "hedgerow": {"bins": 8}, "snr": {"random_state": 1}, "rdt": {"n_estimators": 3, "max_depth": 2}, "dpdf": {"max_depth": 3},
    "diffpid3": {}, "private-id3": {"max_depth": 1},
}  # fmt: skip


def test_the_whole_way(running: Running) -> None:
    ada, ledger = running.ada, running.curator.ledger
    (listed,) = running.get(ada, "/v1/datasets").json()["datasets"]
    left = {"research": {"remaining": {"epsilon": "2", "delta": "0"}}}
    assert listed == {"name": "patients", "closed": False, "unit": "row", "purposes": left}
    assert running.get(ada, "/v1/datasets/patients").json()["schema"] == SCHEMA.to_toml()

    quoted = running.post(ada, "/v1/datasets/patients/quote", FOREST).json()
    assert (quoted["cost"], quoted["remaining"]["epsilon"]) == ({"epsilon": "0.5", "delta": "0"}, "2")
    assert sum(Fraction(event["epsilon"]) * event["times"] for event in quoted["events"]) <= Fraction(1, 2)
    tried = running.post(ada, "/v1/datasets/patients/dummy", FOREST).json()
    assert tried["dummy"]
    assert Release.from_json(json.dumps(tried["release"]).encode()).schema == SCHEMA
    assert ledger.balance("patients").spent == 0

    asked = running.post(ada, "/v1/datasets/patients/forests", FOREST, "k1")
    assert asked.status_code == 202
    job = asked.json()
    assert asked.headers["Location"] == f"/v1/jobs/{job['id']}"
    job = running.ended(ada, job)
    assert (job["state"], job["share"], job["cost"]["epsilon"]) == ("done", 1.0, "0.5")
    sent = running.get(ada, job["result"])
    release = Release.from_json(sent.content)
    assert (release.schema, release.certificate.private, release.certificate.epsilon) == (SCHEMA, True, "0.5")
    copy = running.curator.releases / f"{job['id']}.json"
    assert (copy.read_bytes().strip(), copy.stat().st_mode & 0o777) == (sent.content, 0o600)

    body = {"purpose": "research", "epsilon": "1/4", "release": job["id"]}
    scored = running.ended(ada, running.post(ada, "/v1/datasets/patients/scores", body, "k2").json())
    score = running.get(ada, scored["result"]).json()
    assert 300 < sum(map(sum, score["confusion"])) < 700
    assert running.get(ada, "/v1/datasets").json()["datasets"][0]["purposes"]["research"]["remaining"]["epsilon"] == "1.25"
    assert (ledger.unsettled(), ledger.verify().sound) == ([], True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(running: Running, algorithm: str) -> None:
    body = {**FOREST, "algorithm": algorithm, "settings": ALGORITHMS[algorithm]}
    for path in ("quote", "dummy"):
        answer = running.post(running.ada, f"/v1/datasets/patients/{path}", body)
        assert answer.status_code == 200, answer.text
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", body, "k").json())
    assert job["state"] == "done"
    assert running.curator.ledger.balance("patients").spent <= Fraction(1, 2)


def test_a_delta(running: Running) -> None:
    running.post(running.owner, "/v1/owner/datasets/patients/ceilings", {"epsilon": "2", "delta": 1e-5})
    body = {**FOREST, "delta": 1e-6}
    cost = running.post(running.ada, "/v1/datasets/patients/quote", body).json()["cost"]
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", body, "k").json())
    assert (job["state"], job["cost"]) == ("done", cost)


def test_sent_again_it_is_the_same_and_paid_once(running: Running) -> None:
    ask = lambda _=0: running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "once").json()["id"]  # noqa: E731
    with ThreadPoolExecutor(8) as pool:
        (id,) = set(pool.map(ask, range(16)))
    running.ended(running.ada, running.get(running.ada, f"/v1/jobs/{id}").json())
    first = running.get(running.ada, f"/v1/releases/{id}").content
    spelled = running.post(running.ada, "/v1/datasets/patients/forests", {"purpose": "research", "epsilon": 0.5}, "once").json()
    assert (ask(), spelled["id"], spelled["state"]) == (id, id, "done")
    assert running.get(running.ada, f"/v1/releases/{id}").content == first
    assert running.curator.ledger.balance("patients").spent == Fraction(1, 2)
    other = running.post(running.ada, "/v1/datasets/patients/forests", {**FOREST, "epsilon": "0.4"}, "once")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "key_used")


@pytest.mark.slow
def test_a_race_for_the_last_money(running: Running) -> None:
    service = running.client.app.state.service  # type: ignore[attr-defined]
    for name in ("waiting", "waiting_each"):
        object.__setattr__(service.limits, name, 1000)
    body = {**FOREST, "epsilon": "0.2", "algorithm": "rdt", "settings": {"n_estimators": 1, "max_depth": 1}}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: running.post(running.ada, "/v1/datasets/patients/forests", body, f"k{i}"), range(64)))
    paid = [answer.json() for answer in answers if answer.status_code == 202]
    assert (len(paid), {answer.status_code for answer in answers}) == (10, {202, 402})
    assert {running.ended(running.ada, job)["state"] for job in paid} == {"done"}
    assert running.curator.ledger.balance("patients").remaining == 0


def test_another_start_tells_the_same(running: Running, limits: Limits) -> None:
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    lost = running.curator.ledger.reserve("patients", "ada", "research", "0.25", what="fit hedgerow")  # a crash left it
    running.curator.ledger.opened(lost.key)
    with TestClient(application(running.curator, limits), raise_server_exceptions=False) as again:
        assert again.get(f"/v1/jobs/{job['id']}", headers=running.ada).json() == job
        assert again.get(f"/v1/jobs/{lost.key}", headers=running.ada).json()["state"] == "failed"
        (left,) = again.get("/v1/owner/ledger/unsettled", headers=running.owner).json()["unsettled"]
        assert (left["id"], left["opened"], left["under_way"]) == (lost.key, True, False)


def test_a_grant_that_is_withdrawn_while_jobs_wait(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on, real = threading.Event(), threading.Event(), work.trained

    def slow(*given: Any, **how: Any) -> Release:
        began.set()
        go_on.wait(180)
        return real(*given, **how)

    monkeypatch.setattr(work, "trained", slow)
    asked = [running.post(who, "/v1/datasets/patients/forests", FOREST, "k").json() for who in (running.owner, running.ada)]
    assert began.wait(180)
    running.post(running.owner, "/v1/owner/grants", {"analyst": "ada", "dataset": "patients", "withdraw": True})
    go_on.set()
    owners = running.ended(running.owner, asked[0])
    assert (owners["state"], running.curator.ledger.reservation(owners["id"]).state) == ("done", "settled")  # an owner needs no grant
    wait_until(lambda: running.curator.ledger.reservation(asked[1]["id"]).ended)
    reserved = running.curator.ledger.reservation(asked[1]["id"])
    assert (reserved.state, reserved.opened) == ("released", False)


def test_jobs_that_wait_are_given_back_before_sessions_have_ended(
    running: Running, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, real, ledger = threading.Event(), work.trained, running.curator.ledger
    asked: list[str] = []
    given_back: list[str] = []

    def slow(*given: Any, **how: Any) -> Release:
        began.set()
        wait_until(lambda: bool(given_back))
        return real(*given, **how)

    def stop(_: Sessions) -> None:
        wait_until(lambda: ledger.reservation(asked[1]).ended, 20)
        given_back.append(ledger.reservation(asked[1]).state)

    monkeypatch.setattr(work, "trained", slow)
    monkeypatch.setattr(Sessions, "stop", stop)
    with TestClient(application(running.curator, limits), raise_server_exceptions=False) as other:
        for key in "ab":
            headers = {**running.ada, "Idempotency-Key": key}
            asked.append(other.post("/v1/datasets/patients/forests", json=FOREST, headers=headers).json()["id"])
        assert began.wait(180)
    assert given_back == ["released"]
    assert ledger.reservation(asked[0]).state == "settled"


def test_a_stop_gives_back_what_waits_and_lets_the_rest_end(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on, real = threading.Event(), threading.Event(), work.trained

    def slow(*given: Any, **how: Any) -> Release:
        began.set()
        go_on.wait(180)
        return real(*given, **how)

    monkeypatch.setattr(work, "trained", slow)
    first, second = (running.post(running.ada, "/v1/datasets/patients/forests", FOREST, key).json()["id"] for key in ("a", "b"))
    assert began.wait(180)
    stop = threading.Thread(target=running.client.app.state.service.jobs.stop)  # type: ignore[attr-defined]
    stop.start()
    wait_until(lambda: running.curator.ledger.reservation(second).ended)
    go_on.set()
    stop.join(60)
    states = {id: running.curator.ledger.reservation(id).state for id in (first, second)}
    assert states == {first: "settled", second: "released"}
    assert running.get(running.ada, f"/v1/releases/{first}").status_code == 200
    assert running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "c").status_code == 503
    assert running.client.get("/ready").json()["error"]["code"] == "not_ready"
    assert running.client.get("/health").json() == {"status": "ok"}


def test_a_job_that_takes_too_long_stays_spent(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    real = work.trained

    def slow(*given: Any, **how: Any) -> Release:
        (job,) = running.client.app.state.service.jobs._live.values()  # type: ignore[attr-defined]
        release = real(*given, **how)
        job.deadline = 0.0
        how["progress"](0.5)
        return release

    monkeypatch.setattr(work, "trained", slow)
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    assert (job["state"], job["cost"]["epsilon"]) == ("failed", "0.5")
    assert running.get(running.ada, f"/v1/releases/{job['id']}").status_code == 404
    assert running.curator.ledger.balance("patients").spent == Fraction(1, 2)
    assert [each.reason for each in lost_requests(running.curator)] == ["it did not end in time, and was cut off"]


def never_ending(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Fits look at the rows, and do not end. Set when one has looked."""
    began, real = threading.Event(), work.trained

    def endless(*given: Any, **how: Any) -> Release:
        real(*given, **how)
        began.set()
        while True:
            how["progress"](0.5)

    monkeypatch.setattr(work, "trained", endless)
    return began


def test_the_reason_of_a_job_that_a_stop_has_cut_off(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    began, jobs = never_ending(monkeypatch), running.client.app.state.service.jobs  # type: ignore[attr-defined]
    monkeypatch.setattr(jobs, "limits", replace(jobs.limits, stop_seconds=0.01))
    running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k")
    assert began.wait(180)
    jobs.stop()
    (lost,) = lost_requests(running.curator)
    assert lost.reason == "the service was stopped, and the job had not ended within stop_seconds (limits.toml)"


def test_a_stop_says_what_it_waits_for_and_what_it_has_cut_off(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second signal ends the wait."""
    began, service = never_ending(monkeypatch), running.client.app.state.service  # type: ignore[attr-defined]
    monkeypatch.setattr(service.jobs, "limits", replace(service.limits, stop_seconds=3600))
    job = running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json()
    assert began.wait(180)
    caplog.set_level("INFO", "hedgerow.curator")
    stopping = threading.Thread(target=service.jobs.stop)
    stopping.start()
    wait_until(lambda: "stop waits" in caplog.messages)
    server = _Server(uvicorn.Config(running.client.app, log_config=None), lambda: None, service.hurry)
    server.handle_exit(signal.SIGINT, None)
    assert not service.jobs.hurry.is_set()
    server.handle_exit(signal.SIGINT, None)
    assert (server.should_exit, server.force_exit) == (True, False)
    stopping.join(180)
    assert not stopping.is_alive()
    told = {record.message: record.fields for record in caplog.records if hasattr(record, "fields")}
    for event in ("stop waits", "job left behind"):
        named = [told[event][name] for name in ("job", "person", "dataset", "what", "epsilon")]
        assert named == [job["id"], "ada", "patients", "fit hedgerow", "0.5"]
    monkeypatch.setenv("COLUMNS", "300")  # a table of one line
    _say_stopped(running.curator, ())
    said = capsys.readouterr()
    assert "requests that were paid for and have no answer" in said.err
    assert job["id"] in said.out.replace("\n", "")
    assert "1 reservation(s) of this run did not settle" in said.out
    _say_stopped(running.curator, [job["id"]])
    assert job["id"] not in capsys.readouterr().out


def test_progress_is_a_rough_share(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    told, go_on, real = threading.Event(), threading.Event(), work.trained

    def slow(*given: Any, **how: Any) -> Release:
        assert not hasattr(how["progress"], "rows_seen")  # a private number
        how["progress"](0.4321)
        told.set()
        go_on.wait(180)
        return real(*given, **how)

    monkeypatch.setattr(work, "trained", slow)
    id = running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json()["id"]
    assert told.wait(180)
    job = running.get(running.ada, f"/v1/jobs/{id}").json()
    assert (job["state"], job["share"]) == ("running", 0.4)
    (open_one,) = running.get(running.owner, "/v1/owner/ledger/unsettled").json()["unsettled"]
    assert (open_one["id"], open_one["under_way"]) == (id, True)
    go_on.set()
    assert running.ended(running.ada, job)["state"] == "done"


@pytest.mark.slow
def test_jobs_are_bounded(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, real = threading.Event(), work.trained
    monkeypatch.setattr(work, "trained", lambda *given, **how: (go_on.wait(180), real(*given, **how))[1])
    body = {**FOREST, "epsilon": "0.1"}
    answers = [running.post(running.ada, "/v1/datasets/patients/forests", body, f"k{i}") for i in range(10)]
    go_on.set()
    assert [answer.status_code for answer in answers] == [202] * 8 + [429] * 2
    for answer in answers[:8]:
        assert running.ended(running.ada, answer.json())["state"] == "done"
    assert running.curator.ledger.balance("patients").spent == Fraction(8, 10)
