"""With padding nothing is told about a look at the rows before a multiple of some seconds."""

from __future__ import annotations

from typing import Any

import pytest
from curator.http.conftest import FOREST, Running

from hedgerow.curator.http import session_worker as looking
from hedgerow.curator.http import work
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.padding import Padding


@pytest.mark.parametrize(("took", "waits"), [(0.0, 60.0), (1.0, 59.0), (59.5, 0.5), (61.0, 59.0), (150.0, 30.0)])
def test_it_ends_at_the_next_multiple_once(took: float, waits: float) -> None:
    now, slept = [100.0], []
    padding = Padding(60, lambda: now[0], slept.append)
    now[0] += took
    padding.wait()
    now[0] += 7
    padding.wait()
    assert slept == [waits]


def test_without_seconds_nothing_is_waited_for() -> None:
    slept: list[float] = []
    Padding(0, sleep=slept.append).wait()
    assert slept == []


class Noted(Padding):
    """Notes what was told before it lets go."""

    running: Running
    told: list[tuple[str, ...]]

    def wait(self) -> None:
        states = tuple(reserved.state for reserved in self.running.curator.ledger.reservations("patients"))
        if not self._waited:
            self.told.append(states)
        self._waited = True


@pytest.fixture
def limits() -> Limits:
    return Limits(stop_seconds=5, pad_seconds=3600)


@pytest.fixture
def noted(running: Running, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    Noted.running, Noted.told = running, []
    for module in (work, looking):
        monkeypatch.setattr(module, "Padding", Noted)
    return Noted.told


def test_a_job_settles_after_the_wait_and_tells_no_progress(running: Running, noted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = []
    monkeypatch.setattr("hedgerow.curator.http.jobs.Job.progress", lambda _, share: shares.append(share))
    job = running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json()
    assert running.ended(running.ada, job)["state"] == "done"
    assert (noted, shares) == ([("open",)], [])


def test_a_job_that_fails_is_told_after_the_wait(running: Running, noted: Any) -> None:
    running.file.write_text("age,smoker\n1,no\n")
    job = running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json()
    assert running.ended(running.ada, job)["state"] == "failed"
    assert noted == [("reserved",)]


def test_a_look_is_answered_after_the_wait_and_a_refusal_at_once(running: Running, noted: Any) -> None:
    session = running.post(running.ada, "/v1/datasets/patients/sessions", FOREST, "k").json()["id"]
    assert running.post(running.ada, f"/v1/sessions/{session}/rows", {"number": 1, "price": "5"}).status_code == 402
    assert noted == []
    assert running.post(running.ada, f"/v1/sessions/{session}/rows", {"number": 1, "price": "0.1"}).status_code == 200
    assert noted == [("open",)]
