"""What costs nothing is bounded too: reservations in an hour, answers that are read, reports that are drawn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from curator.http.conftest import FOREST, Running

from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.rate_limit import RateLimit
from hedgerow.curator.ledger.answers import Answers
from hedgerow.curator.web import templating
from hedgerow.errors import BudgetError


def test_so_many_in_an_hour() -> None:
    now = [0.0]
    rate_limit = RateLimit(2, lambda: now[0])
    for moment in (0.0, 10.0):
        now[0] = moment
        with rate_limit.acquire("ada"):
            pass
    with pytest.raises(Refusal) as caught, rate_limit.acquire("ada"):
        raise AssertionError("a third one")
    assert (caught.value.status, caught.value.code, caught.value.headers) == (429, "too_often", {"Retry-After": "3590"})
    with pytest.raises(BudgetError), rate_limit.acquire("bob"):
        raise BudgetError("refused: it does not count")
    for _ in range(2):
        with rate_limit.acquire("bob"):
            pass
    now[0] = 3600.0
    with rate_limit.acquire("ada"):
        pass
    with pytest.raises(Refusal), rate_limit.acquire("ada"):
        pass


class TestOfAService:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(stop_seconds=5, reservations_each_hour=3)

    def test_jobs_and_sessions_count_alike(self, running: Running) -> None:
        path, ledger = "/v1/datasets/patients", running.curator.ledger
        assert running.post(running.ada, f"{path}/forests", {**FOREST, "epsilon": "100"}, "poor").status_code == 402
        job = running.ended(running.ada, running.post(running.ada, f"{path}/forests", FOREST, "a forest").json())
        for number in range(2):
            session = running.post(running.ada, f"{path}/sessions", FOREST, f"session {number}").json()
            assert running.post(running.ada, f"/v1/sessions/{session['id']}/end", None).json()["state"] == "released"
        before = ledger.head()
        for where in ("sessions", "forests"):
            answer = running.post(running.ada, f"{path}/{where}", FOREST, "one more")
            assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_often")
            assert 3000 < int(answer.headers["Retry-After"]) <= 3600
        assert ledger.head() == before
        assert running.post(running.ada, f"{path}/forests", FOREST, "a forest").json() == job  # what is paid is sent again
        assert running.post(running.owner, f"{path}/sessions", {**FOREST, "epsilon": "0.1"}, "k").status_code == 201


def test_how_a_job_stands_is_told_without_its_answer(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    monkeypatch.setattr(Answers, "paid_by", _read)
    assert running.get(running.ada, f"/v1/jobs/{job['id']}").json() == job
    assert job["result"] == f"/v1/releases/{job['id']}"


def _read(*_: Any) -> None:
    raise AssertionError("the answer was read")


def test_one_report_is_made_once(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    content, made, real, barrier = running.get(running.ada, job["result"]).content, [], templating.report_content, Barrier(4)

    def counted(release: Any) -> Any:
        made.append(release)
        return real(release)

    def report(_: int) -> Any:
        barrier.wait(180)
        return templating.report_of(content)

    monkeypatch.setattr(templating, "report_content", counted)
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(report, range(4))
    assert others == [first] * 3
    assert len(made) == 1
