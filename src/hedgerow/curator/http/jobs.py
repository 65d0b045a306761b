"""Background jobs: paid when they are submitted, run by a few workers, their answers stored before anybody sees them.

A job shares its id with its budget reservation. After it ends, its state is in the ledger and the answer store only, so a restarted
service reports the same about every job; one that a crash has ended is reported as failed, with its cost.
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
from hedgerow.curator.http.reservations import ReservationRequest, Reserve, release_unopened, stopping
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.work import RELEASE, Task
from hedgerow.curator.http.workers import KILL_SECONDS, Worker, WorkFailed, new_worker
from hedgerow.curator.ledger.answers import Answer
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.errors import HedgerowError, PlanError
from hedgerow.release.files import write_document

WAITING, RUNNING, DONE, ENDED, FAILED = "waiting", "running", "done", "ended", "failed"
SESSION = "session"  # how the ledger's note of a session begins
FAILURE = {"code": "failed", "message": "The job could not be ended. Its owner can see why. What it has cost is said here."}


@dataclass
class Job:
    """A job that waits or runs. `share`: of the present pass over the rows, in tenths; never how many rows that is."""

    reserved: Reserved
    key: str
    request: str
    task: Task
    state: str = WAITING
    share: float = 0.0
    deadline: float = field(default=float("inf"))

    def progress(self, share: float) -> None:
        self.share = round(min(max(float(share), 0.0), 1.0), 1)


class Jobs:
    """The job queue of one process; no other process may use the same ledger, or a key could be paid for twice."""

    def __init__(self, curator: Curator, limits: Limits) -> None:
        self.curator, self.limits = curator, limits
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._submitting = threading.Lock()  # one at a time: is it answered, is it under way, is there room; then it is paid
        self._waiting: deque[Job] = deque()
        self._live: dict[str, Job] = {}
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for _ in range(self.limits.workers):
            thread = threading.Thread(target=self._run_all, daemon=True, name="hedgerow job")
            self._threads.append(thread)
            thread.start()

    @property
    def ready(self) -> bool:
        return not self._stopping and bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def live(self, id: str) -> Job | None:
        with self._lock:
            return self._live.get(id)

    # ------------------------------------------------------------ submit

    def find(self, person: str, key: str, request: str) -> Job | Answer | None:
        """The job under way for this Idempotency-Key, or its stored answer. Refused where the key was used for another request."""
        with self._lock:  # under way first: a job that ends in between is then found among the answers
            live = next((job for job in self._live.values() if (job.reserved.analyst, job.key) == (person, key)), None)
        if live is not None:
            if live.request != request:
                raise _key_used()
            return live
        try:
            return self.curator.answers.stored(person, key, request)
        except PlanError:
            raise _key_used() from None

    def submit(self, person: str, key: str, request: str, task: Task, wanted: ReservationRequest, reserve: Reserve) -> Job | Answer:
        """Pay for a new job and queue it; where somebody was faster with the same key, their job or its answer."""
        with self._submitting:
            found = self.find(person, key, request)
            if found is not None:
                return found
            with self._lock:
                self._check_room(person)
            job = Job(reserve(wanted), key, request, task)
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
        with self._lock:
            while not self._waiting and not self._stopping:
                self._changed.wait()
            if self._stopping:
                return None
            job = self._waiting.popleft()
            job.state, job.deadline = RUNNING, time.monotonic() + self.limits.job_seconds
            return job

    def _run(self, job: Job, worker: Worker) -> None:
        reserved, began = job.reserved, time.monotonic()
        fields: dict[str, Any] = {"job": reserved.key, "person": reserved.analyst, "dataset": reserved.dataset, "what": reserved.what}
        try:
            self._check_still_granted(reserved)
            content, content_type = worker.call((job.task, reserved), job.progress, lambda: job.deadline)
            answer = self.curator.answers.store(reserved.analyst, job.key, job.request, reserved.key, content, content_type)
        except Exception as error:
            log("job failed", logging.ERROR, **fields, **(error.fields if isinstance(error, WorkFailed) else error_fields(error)))
            release_unopened(self.curator.ledger, reserved)
            return
        log("job done", **fields, seconds=round(time.monotonic() - began, 3))
        self._copy(answer)

    def _check_still_granted(self, reserved: Reserved) -> None:
        if self.curator.ledger.balance(reserved.dataset).closed:
            raise PlanError("the dataset was closed before the job began.")
        person = self.curator.accounts.person(reserved.analyst)
        if person is None or not self.curator.accounts.may(person, reserved.dataset, reserved.purpose):
            raise PlanError("the grant was withdrawn before the job began.")

    def _copy(self, answer: Answer) -> None:
        try:
            write_document(self.curator.releases / f"{answer.reservation}.json", answer.content, mode=0o600)
        except HedgerowError as error:
            log("no copy of a release", logging.WARNING, job=answer.reservation, **error_fields(error))

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
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        with self._lock:
            left = list(self._live.values())
            for job in left:
                job.deadline = 0.0  # its worker is killed now
        for job in left:
            log("job left behind", logging.WARNING, job=job.reserved.key, message="it did not end in time and stays spent")
        end = time.monotonic() + KILL_SECONDS
        for thread in self._threads if left else []:
            thread.join(max(0.0, end - time.monotonic()))  # so that no process is left


def _key_used() -> Refusal:
    return Refusal(409, "key_used", "This Idempotency-Key was used for another request. Take a new key for a new request.")


# ------------------------------------------------------------ status


def session_note(note: str) -> str:
    """What the ledger calls a session."""
    return f"{SESSION}: {note}" if note else SESSION


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
    if content_type is not None:
        kind = "releases" if content_type == RELEASE else "scores"
        return {**about, "state": DONE, "share": 1.0, "result": f"/v1/{kind}/{reserved.key}"}
    if reserved.what.partition(":")[0] == SESSION and (in_session or reserved.ended):
        return {**about, "state": RUNNING if in_session else ENDED}
    return {**about, "state": FAILED, "error": FAILURE}
