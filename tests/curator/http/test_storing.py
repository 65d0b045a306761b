"""An answer that is paid for is stored, sooner or later; while it cannot be, no paid work is taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any

import pytest
from curator.faults import full, read_only
from curator.http.conftest import FOREST, Running
from curator.http.serving import wait_until

from hedgerow.curator.http import storing
from hedgerow.curator.http.recovery import KILLED, SETTLED, lost_requests, recover
from hedgerow.curator.http.storing import FinishedWork, Storage
from hedgerow.curator.ledger.answers import Answers
from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.errors import LedgerError

PATH = "/v1/datasets/patients/forests"
SMALL: dict[str, Any] = {**FOREST, "algorithm": "rdt", "settings": {"n_estimators": 2, "max_depth": 2}}
SESSION = {"purpose": "research", "epsilon": "0.2"}
REQUEST = IdempotencyKey("k", "0" * 64)
Fault = Callable[[Database], AbstractContextManager[None]]
only_sqlite = pytest.mark.parametrize("new_address", ["sqlite"], indirect=True)


def ask(running: Running, key: str, body: Any = SMALL) -> Any:
    return running.post(running.ada, PATH, body, key)


def ready(running: Running) -> bool:
    return bool(running.client.get("/ready").status_code == 200)


def finished(running: Running, size: int = 100_000, spent: str = "0.02") -> FinishedWork:
    """Work that was done by some process, whose answer nobody has stored."""
    ledger = running.curator.ledger
    reserved = ledger.reserve("patients", "ada", "research", "0.05", what="fit rdt", request=REQUEST)
    ledger.opened(reserved.key)
    return FinishedWork.of(reserved, REQUEST, spent, b"x" * size, "text/plain")


@only_sqlite
@pytest.mark.parametrize("fault", [full, read_only])
def test_while_an_answer_cannot_be_stored_no_paid_work_is_taken(running: Running, fault: Fault) -> None:
    service, ledger = running.client.app.state.service, running.curator.ledger  # type: ignore[attr-defined]
    session = running.post(running.ada, "/v1/datasets/patients/sessions", SESSION, "s").json()["id"]
    query = f"/v1/sessions/{session}/rows"
    assert running.post(running.ada, query, {"number": 1, "price": "0.01"}).status_code == 200
    work = finished(running)
    before = ledger.head()
    with fault(running.curator.database):
        assert storing.store_or_return(running.curator, work) is work
        kept = service.storage.keep(work)
        assert not ready(running)
        for refused in (ask(running, "new"), running.post(running.ada, query, {"number": 2, "price": "0.01"})):
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
        assert (ledger.head(), kept.done.is_set()) == (before, False)
    assert kept.done.wait(180)
    wait_until(lambda: ready(running))
    assert (kept.lost, ledger.reservation(work.reservation).cost) == ("", Fraction(1, 50))
    assert running.curator.answers.stored("ada", *_pair(REQUEST)).content == work.content  # type: ignore[union-attr]
    assert list((running.curator.releases.parent / storing.UNSTORED).iterdir()) == []
    assert running.post(running.ada, query, {"number": 2, "price": "0.01"}).status_code == 200
    assert running.ended(running.ada, ask(running, "new").json())["state"] == "done"
    assert ledger.verify().sound


def _pair(key: IdempotencyKey) -> tuple[str, str]:
    return key.key, key.request


@only_sqlite
def test_a_job_whose_answer_meets_a_read_only_disk(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs until its answer is stored, and is paid once."""
    real, faults = Answers.settle_and_store, [read_only(running.curator.database)]

    def fills(self: Answers, *given: Any, **how: Any) -> Any:
        if faults:
            faults[0].__enter__()
            open_faults.append(faults.pop())
        return real(self, *given, **how)

    open_faults: list[AbstractContextManager[None]] = []
    monkeypatch.setattr(Answers, "settle_and_store", fills)
    job = ask(running, "k").json()
    wait_until(lambda: not ready(running))
    assert running.get(running.ada, f"/v1/jobs/{job['id']}").json()["state"] == "running"
    open_faults[0].__exit__(None, None, None)
    assert running.ended(running.ada, job)["state"] == "done"
    assert ask(running, "k").json()["id"] == job["id"]
    assert running.curator.ledger.balance("patients").spent == Fraction(1, 2)
    wait_until(lambda: ready(running))


@only_sqlite
def test_after_a_write_that_failed_it_is_ready_when_one_is_possible(running: Running) -> None:
    with read_only(running.curator.database):
        refused = ask(running, "k")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
        assert not ready(running)
    wait_until(lambda: ready(running))
    assert running.curator.ledger.reservations("patients") == []


@only_sqlite
def test_what_a_stop_could_not_store_is_stored_by_the_next_start(running: Running) -> None:
    storage, work = Storage(running.curator), finished(running)
    with full(running.curator.database):
        kept = storage.keep(work)
        storage.stop_by(time.monotonic())
        assert kept.done.wait(180)
    assert kept.lost == "it is stored by the next start"
    (file,) = (running.curator.releases.parent / storing.UNSTORED).iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    done = recover(running.curator)
    assert (done.stored, done.lost, file.exists()) == ((work.reservation,), (), False)
    assert running.curator.answers.paid_by("ada", work.reservation).content == work.content  # type: ignore[union-attr]
    assert running.curator.ledger.reservation(work.reservation).cost == Fraction(1, 50)
    assert recover(running.curator).stored == ()


def test_a_file_that_is_no_answer_is_told_and_left(running: Running) -> None:
    folder = running.curator.releases.parent / storing.UNSTORED
    folder.mkdir()
    (folder / "x.json").write_bytes(b"{}")
    assert recover(running.curator).stored == ()
    assert (folder / "x.json").exists()


# ------------------------------------------------------------ what never looked


def test_a_start_gives_back_what_was_never_opened_and_lists_what_was(running: Running) -> None:
    ledger = running.curator.ledger
    given_back, lost, old = (
        ledger.reserve("patients", "ada", "research", "0.1", what="fit rdt", request=IdempotencyKey(key, "0" * 64)).key for key in "abc"
    )
    for key in (lost, old):
        ledger.opened(key)
    ledger.settle(old, "0.05")  # as an older version did, whose service was killed before the answer was stored
    session = ledger.reserve("patients", "ada", "research", "0.1", what="session: a look").key
    ledger.opened(session)
    ledger.settle(session)
    done = recover(running.curator)
    assert [reserved.key for reserved in done.released] == [given_back]
    assert [(each.reserved.key, each.reason) for each in done.lost] == [(lost, KILLED), (old, SETTLED)]
    assert ledger.balance("patients").spent == Fraction(1, 10) + Fraction(1, 20) + Fraction(1, 10)
    assert ledger.verify().sound
    listed = running.get(running.owner, "/v1/owner/ledger/lost").json()["lost"]
    assert [(each["id"], each["epsilon"], each["settled"]) for each in listed] == [(lost, "0.1", False), (old, "0.05", True)]
    told = running.get(running.ada, f"/v1/jobs/{lost}").json()
    assert (told["state"], told["error"]["code"]) == ("failed", "lost")


def test_a_reservation_whose_acknowledgement_was_lost_is_gone_on_with(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection to the database ends while it commits: nobody knows whether it was written, and the client sends it again."""
    real = Ledger.reserve

    def cut(self: Ledger, *given: Any, **how: Any) -> Any:
        real(self, *given, **how)
        monkeypatch.setattr(Ledger, "reserve", real)
        raise LedgerError("the connection was lost")

    monkeypatch.setattr(Ledger, "reserve", cut)
    assert ask(running, "k").status_code == 409
    (paid,) = running.curator.ledger.reservations("patients")
    assert ask(running, "k", {**SMALL, "epsilon": "0.25"}).json()["error"]["code"] == "key_used"
    job = ask(running, "k").json()
    assert job["id"] == paid.key
    assert running.ended(running.ada, job)["state"] == "done"
    assert running.curator.ledger.balance("patients").spent == Fraction(1, 2)


def test_a_key_whose_answer_was_lost_does_not_pay_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("hedgerow.engines.streamed.StreamedRows._pass", breaks)
        lost = running.ended(running.ada, ask(running, "k").json())
    assert (lost["state"], lost["error"]["code"], lost["cost"]["epsilon"]) == ("failed", "lost", "0.5")
    assert ask(running, "k").json() == lost
    ((found),) = lost_requests(running.curator)
    assert (found.reserved.key, found.reason) == (lost["id"], "an error of the kind MemoryError: the log of the service has where")
    assert running.ended(running.ada, ask(running, "another").json())["state"] == "done"
    assert running.curator.ledger.balance("patients").spent == 1


def test_the_last_answer_of_a_session_that_has_ended(running: Running) -> None:
    begun = running.post(running.ada, "/v1/datasets/patients/sessions", SESSION, "s").json()["id"]
    query = f"/v1/sessions/{begun}/rows"
    answers = [running.post(running.ada, query, {"number": number, "price": "0.01"}).content for number in (1, 2)]
    assert running.client.post(f"/v1/sessions/{begun}/end", headers=running.ada).json()["spent"]["epsilon"] == "0.02"
    assert running.post(running.ada, query, {"number": 2, "price": "0.01"}).content == answers[1]
    for body in ({"number": 1, "price": "0.01"}, {"number": 2, "price": "0.02"}, {"number": 3, "price": "0.01"}):
        assert running.post(running.ada, query, body).status_code == 410
    assert running.post(running.bob, query, {"number": 2, "price": "0.01"}).status_code == 404
    assert running.post(running.ada, "/v1/datasets/patients/sessions", SESSION, "s").json()["error"]["code"] == "key_used"
    assert running.get(running.ada, f"/v1/jobs/{begun}").json()["state"] == "ended"


# ------------------------------------------------------------ a lock that was lost


def test_a_service_that_was_followed_by_another_takes_no_paid_work(running: Running) -> None:
    ledger = running.curator.ledger
    ledger.take_over()
    assert ready(running)
    Ledger(running.curator.database).take_over()  # another service holds the lock now
    refused = ask(running, "k")
    assert (refused.status_code, refused.json()["error"]["code"], ready(running)) == (503, "stopping", False)
    with pytest.raises(LedgerError, match="taken over"):
        ledger.reserve("patients", "ada", "research", "0.1")
    assert ledger.reservations("patients") == []
    Ledger(running.curator.database).reserve("patients", "ada", "research", "0.1")  # a program of the owner is no service
