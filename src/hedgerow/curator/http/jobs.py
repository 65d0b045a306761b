"""Background jobs: paid when they are submitted, run by a few workers, their answers stored before anybody sees them.

A job shares its id with its budget reservation. After it ends, its state is in the ledger and the answer store only, so a restarted
service reports the same about every job; one that a crash has ended is reported as failed, with its cost. The same key gets the same
job: a job whose answer was lost after its rows were opened is not paid for again under its key.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.logs import error_fields, log
from hedgerow.curator.http.reservations import ReservationRequest, Reserve, release_unopened, stopping, unopened_for
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.storing import SESSION_END, FinishedWork, Storage
from hedgerow.curator.http.work import RELEASE, Task
from hedgerow.curator.http.workers import KILL_SECONDS, Worker, WorkFailed, new_worker
from hedgerow.curator.ledger.answers import Answer
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.database import PATIENCE, patiently
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.errors import HedgerowError, PlanError

WAITING, RUNNING, DONE, ENDED, FAILED = "waiting", "running", "done", "ended", "failed"
SESSION = "session"  # how the ledger's note of a session begins
STORING_STEP = 1.0  # seconds between two looks whether answers can be stored again
STOPPING_STEP = 0.2  # seconds between two looks whether a stop is in a hurry
STOP_WAITS = "a stop waits up to {:g} seconds for it (stop_seconds); a second signal ends it now, and what it costs stays spent"
CUT_OFF = "the service was stopped, and the job had not ended within stop_seconds (limits.toml)"
FAILURE = {"code": "failed", "message": "The job could not be ended. Its owner can see why. What it has cost is said here."}
LOST = {
    "code": "lost",
    "message": "The job was begun and has no answer. Its owner can see why. What it has cost is said here, and it is not paid again under "
    "its key: to pay for it anew, take a new Idempotency-Key.",
}


@dataclass
class Job:
    """A job that waits or runs. `share`: of the present pass over the rows, in tenths; never how many rows that is."""

    reserved: Reserved
    key: IdempotencyKey
    task: Task
    state: str = WAITING
    share: float = 0.0
    deadline: float = field(default=float("inf"))
    cut_off: bool = False  # by a stop of the service

    def progress(self, share: float) -> None:
        self.share = round(min(max(float(share), 0.0), 1.0), 1)


class Jobs:
    """The job queue of one process; no other process may use the same ledger, or a key could be paid for twice."""

    def __init__(self, curator: Curator, limits: Limits, storage: Storage) -> None:
        self.curator, self.limits, self.storage = curator, limits, storage
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._submitting = threading.Lock()  # one at a time: is it answered, is it under way, is there room; then it is paid
        self._waiting: deque[Job] = deque()
        self._live: dict[str, Job] = {}
        self._stopping = False
        self.hurry = threading.Event()  # a stop waits for nobody any more
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for _ in range(self.limits.workers):
            thread = threading.Thread(target=self._run_all, daemon=True, name="hedgerow job")
            self._threads.append(thread)
            thread.start()

    @property
    def ready(self) -> bool:
        alive = bool(self._threads) and all(thread.is_alive() for thread in self._threads)
        return not self._stopping and alive and self.storage.ready()

    def live(self, id: str) -> Job | None:
        with self._lock:
            return self._live.get(id)

    def all_live(self) -> dict[str, Job]:
        with self._lock:
            return dict(self._live)

    # ------------------------------------------------------------ submit

    def find(self, person: str, key: IdempotencyKey) -> Job | Answer | Reserved | None:
        """The job under way for this Idempotency-Key, its stored answer, or the reservation of one whose answer was lost. Refused where
        the key was used for another request; what was given back counts as never requested.
        """
        with self._lock:  # under way first: a job that ends in between is then found among the answers
            live = next((job for job in self._live.values() if (job.reserved.analyst, job.key.key) == (person, key.key)), None)
        if live is not None:
            if live.key != key:
                raise _key_used()
            return live
        try:
            answer = self.curator.answers.stored(person, key.key, key.request)
        except PlanError:
            raise _key_used() from None
        paid = None if answer is not None else self.curator.requests.newest(person, key.key)
        if paid is None:
            return answer
        reserved = self.curator.ledger.reservation(paid.reservation)
        if reserved.state != "released" and paid.key != key:
            raise _key_used()
        return reserved if reserved.opened else None

    def submit(self, person: str, key: IdempotencyKey, task: Task, wanted: ReservationRequest, reserve: Reserve) -> Job | Answer | Reserved:
        """Pay for a new job and queue it; where somebody was faster with the same key, their job or its answer. What was paid for this
        very request, and was not begun, is not paid again.
        """
        with self._submitting:
            found = self.find(person, key)
            if found is not None:
                return found
            with self._lock:
                self._check_room(person)
            self.storage.check()
            job = Job(unopened_for(self.curator, person, key, wanted) or reserve(wanted, key), key, task)
            with self._lock:
                if self._stopping:
                    self.curator.ledger.release(job.reserved.key)
                    raise stopping()
                self._live[job.reserved.key] = job
                self._waiting.append(job)
                self._changed.notify()
            return job

    def _check_room(self, person: str) -> None:
        if self._stopping:
            raise stopping()
        own = sum(job.reserved.analyst == person for job in self._live.values())
        if len(self._waiting) >= self.limits.waiting or own >= self.limits.waiting_each:
            raise Refusal(429, "busy", "Too many jobs are waiting. Nothing was spent. Try again later.", {"Retry-After": "10"})

    # ------------------------------------------------------------ the threads

    def _run_all(self) -> None:
        with closing(new_worker(self.curator, self.limits)) as worker:
            worker.start()
            while (job := self._next()) is not None:
                self._run(job, worker)
                with self._lock:
                    self._live.pop(job.reserved.key, None)

    def _next(self) -> Job | None:
        """The next job, when there is one and its answer could be stored; None when the service stops."""
        while True:
            may = self.storage.ready()  # it may write, so nobody waits for it
            with self._lock:
                if self._stopping:
                    return None
                if may and self._waiting:
                    job = self._waiting.popleft()
                    job.state, job.deadline = RUNNING, time.monotonic() + self.limits.job_seconds
                    return job
                self._changed.wait(STORING_STEP if self._waiting else None)

    def _run(self, job: Job, worker: Worker) -> None:
        reserved, began = job.reserved, time.monotonic()
        fields = _about(reserved)
        try:
            patiently(lambda: self._check_still_granted(reserved))
            unstored: FinishedWork | None = worker.call((job.task, reserved, job.key), job.progress, lambda: job.deadline)
            if unstored is not None:
                kept = self.storage.keep(unstored)
                kept.done.wait()
                if kept.lost:
                    raise WorkFailed(kind="NotStored", message=kept.lost)
        except Exception as error:
            why = error.fields if isinstance(error, WorkFailed) else error_fields(error)
            if job.cut_off:
                why = {**why, "message": CUT_OFF}
            if self._stored(reserved):
                log("job done", logging.WARNING, **fields, **why, answer="it was stored before its process was lost")
                return
            log("job failed", logging.ERROR, **fields, **why)
            release_unopened(self.curator.ledger, reserved, 0 if self._stopping else PATIENCE)
            note_failure(self.curator, reserved, why)
            return
        log("job done", **fields, seconds=round(time.monotonic() - began, 3))

    def _stored(self, reserved: Reserved) -> bool:
        try:
            return reserved.key in self.curator.answers.content_types([reserved.key])
        except HedgerowError:
            return False

    def _check_still_granted(self, reserved: Reserved) -> None:
        if self.curator.ledger.balance(reserved.dataset).closed:
            raise PlanError("the dataset was closed before the job began.")
        person = self.curator.accounts.person(reserved.analyst)
        if person is None or not self.curator.accounts.may(person, reserved.dataset, reserved.purpose):
            raise PlanError("the grant was withdrawn before the job began.")

    def stop(self) -> None:
        """No new job; those that wait are given back; those that run may end within `stop_seconds`, or stay spent."""
        with self._lock:
            self._stopping = True
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        for job in waiting:
            release_unopened(self.curator.ledger, job.reserved)
            with self._lock:
                self._live.pop(job.reserved.key, None)
        end = time.monotonic() + self.limits.stop_seconds
        self.storage.stop_by(end)
        for job in self.all_live().values():
            log("stop waits", **_about(job.reserved), message=STOP_WAITS.format(self.limits.stop_seconds))
        for thread in self._threads:
            while thread.is_alive() and not self.hurry.is_set() and time.monotonic() < end:
                thread.join(min(STOPPING_STEP, max(0.0, end - time.monotonic())))
        with self._lock:
            left = list(self._live.values())
            for job in left:
                job.deadline, job.cut_off = 0.0, True  # its worker is killed now
        for job in left:
            log("job left behind", logging.WARNING, **_about(job.reserved), message="it did not end in time and stays spent")
        end = time.monotonic() + KILL_SECONDS
        for thread in self._threads if left else []:
            thread.join(max(0.0, end - time.monotonic()))  # so that no process is left


def _about(reserved: Reserved) -> dict[str, Any]:
    cost = {"epsilon": text_of_fraction(reserved.epsilon), "delta": text_of_fraction(reserved.delta)}
    return {"job": reserved.key, "person": reserved.analyst, "dataset": reserved.dataset, "what": reserved.what, **cost}


def note_failure(curator: Curator, reserved: Reserved, why: dict[str, Any]) -> None:
    """Keep for the owner why a request that was paid for has no answer, or was given back. why: fields of the log."""
    try:
        if curator.ledger.reservation(reserved.key).state == "settled":
            return
        unnamed = f"an error of the kind {why.get('kind', 'unknown')}: the log of the service has where"
        curator.requests.note_failure(reserved.key, str(why.get("message", unnamed)))
    except HedgerowError as error:
        log("reason not kept", logging.WARNING, job=reserved.key, **error_fields(error))


def _key_used() -> Refusal:
    return Refusal(409, "key_used", "This Idempotency-Key was used for another request. Take a new key for a new request.")


# ------------------------------------------------------------ status


def session_note(note: str) -> str:
    """What the ledger calls a session."""
    return f"{SESSION}: {note}" if note else SESSION


def is_session(what: str) -> bool:
    """Whether the ledger's note is that of a session."""
    return what.partition(":")[0] == SESSION


def job_status(reserved: Reserved, live: Job | None, in_session: bool, content_type: str | None) -> dict[str, Any]:
    """The status of a job or session as JSON. live: its job, if one is under way; in_session: whether it is an open session;
    content_type: of its stored answer.
    """
    delta = 0 * reserved.delta if reserved.state == "released" else reserved.delta
    about = {
        "id": reserved.key, "when": reserved.when, "dataset": reserved.dataset, "purpose": reserved.purpose, "what": reserved.what,
        "cost": {"epsilon": text_of_fraction(reserved.cost), "delta": text_of_fraction(delta)},
    }  # fmt: skip
    if live is not None:
        return {**about, "state": live.state, "share": live.share}
    if content_type not in (None, SESSION_END):
        kind = "releases" if content_type == RELEASE else "scores"
        return {**about, "state": DONE, "share": 1.0, "result": f"/v1/{kind}/{reserved.key}"}
    if is_session(reserved.what) and (in_session or reserved.ended):
        return {**about, "state": RUNNING if in_session else ENDED}
    return {**about, "state": FAILED, "error": LOST if reserved.opened else FAILURE}
