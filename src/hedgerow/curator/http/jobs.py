"""Work that takes long: paid when it is asked for, done by a few threads, its answer stored before anybody sees it.

A job is its reservation: it has the same name, and once it has ended all that is known about it is in the ledger and the answers. So a
service that starts again tells the same about every job, and one that a crash has ended is told as failed, with its cost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.logs import log, told
from hedgerow.curator.http.paying import Prepare, give_back, stopping
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.work import Task
from hedgerow.curator.http.workers import KILL_SECONDS, Failed, Worker, worker_of
from hedgerow.curator.ledger.answers import Answer
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.errors import HedgerowError, PlanError
from hedgerow.release.files import write_document

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"


@dataclass
class Job:
    """One that waits or runs. `share`: of the pass over the rows that it is in, in tenths; never how many rows that is."""

    reserved: Reserved
    key: str
    request: str
    task: Task
    state: str = WAITING
    share: float = 0.0
    ends: float = field(default=float("inf"))

    def progress(self, share: float) -> None:
        self.share = round(min(max(float(share), 0.0), 1.0), 1)


class Jobs:
    """The jobs of one process; there must be no other process on the same books, or a key could be paid for twice."""

    def __init__(self, curator: Curator, limits: Limits) -> None:
        self.curator, self.limits = curator, limits
        self._lock = threading.Lock()
        self._news = threading.Condition(self._lock)
        self._asking = threading.Lock()  # one at a time: is there an answer, is it under way, is there room; then it is paid
        self._waiting: deque[Job] = deque()
        self._live: dict[str, Job] = {}
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for _ in range(self.limits.workers):
            thread = threading.Thread(target=self._serve, daemon=True, name="hedgerow job")
            self._threads.append(thread)
            thread.start()

    @property
    def ready(self) -> bool:
        return not self._stopping and bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def live(self, id: str) -> Job | None:
        with self._lock:
            return self._live.get(id)

    def ask(self, person: str, key: str, request: str, prepare: Prepare, task: Task) -> Job | Answer:
        """The stored answer, the job that is under way, or a new one, which is paid for by now."""
        found = self._found(person, key, request)
        if found is not None:
            return found
        reserve = prepare()
        with self._asking:
            found = self._found(person, key, request)  # somebody may have been faster
            if found is not None:
                return found
            with self._lock:
                self._check_room(person)
            job = Job(reserve(), key, request, task)
            with self._lock:
                if self._stopping:
                    self.curator.ledger.release(job.reserved.key)
                    raise stopping()
                self._live[job.reserved.key] = job
                self._waiting.append(job)
                self._news.notify()
            return job

    def _found(self, person: str, key: str, request: str) -> Job | Answer | None:
        """Under way first: a job that ends in between is then found among the answers."""
        with self._lock:
            live = next((job for job in self._live.values() if (job.reserved.analyst, job.key) == (person, key)), None)
        if live is not None:
            if live.request != request:
                raise _key_used()
            return live
        try:
            return self.curator.answers.stored(person, key, request)
        except PlanError:
            raise _key_used() from None

    def _check_room(self, person: str) -> None:
        if self._stopping:
            raise stopping()
        own = sum(job.reserved.analyst == person for job in self._live.values())
        if len(self._waiting) >= self.limits.waiting or own >= self.limits.waiting_each:
            raise Refusal(429, "busy", "Too many jobs are waiting. Nothing was spent. Try again later.", {"Retry-After": "10"})

    # ------------------------------------------------------------ the threads

    def _serve(self) -> None:
        with closing(worker_of(self.curator, self.limits)) as worker:
            worker.start()
            while (job := self._next()) is not None:
                self._do(job, worker)
                with self._lock:
                    self._live.pop(job.reserved.key, None)

    def _next(self) -> Job | None:
        with self._lock:
            while not self._waiting and not self._stopping:
                self._news.wait()
            if self._stopping:
                return None
            job = self._waiting.popleft()
            job.state, job.ends = RUNNING, time.monotonic() + self.limits.job_seconds
            return job

    def _do(self, job: Job, worker: Worker) -> None:
        reserved, began = job.reserved, time.monotonic()
        fields: dict[str, Any] = {"job": reserved.key, "person": reserved.analyst, "dataset": reserved.dataset, "what": reserved.what}
        try:
            self._check_still_granted(reserved)
            content, content_type = worker.ask((job.task, reserved), job.progress, lambda: job.ends)
            answer = self.curator.answers.store(reserved.analyst, job.key, job.request, reserved.key, content, content_type)
        except Exception as error:
            log("job failed", logging.ERROR, **fields, **(error.fields if isinstance(error, Failed) else told(error)))
            give_back(self.curator.ledger, reserved)
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
            log("no copy of a release", logging.WARNING, job=answer.reservation, **told(error))

    def stop(self) -> None:
        """No new job; those that wait are given back; those that run may end within `stop_seconds`, or stay spent."""
        with self._lock:
            self._stopping = True
            waiting = list(self._waiting)
            self._waiting.clear()
            self._news.notify_all()
        for job in waiting:
            give_back(self.curator.ledger, job.reserved)
            with self._lock:
                self._live.pop(job.reserved.key, None)
        end = time.monotonic() + self.limits.stop_seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        with self._lock:
            left = list(self._live.values())
            for job in left:
                job.ends = 0.0  # it is ended now
        for job in left:
            log("job left behind", logging.WARNING, job=job.reserved.key, message="it did not end in time and stays spent")
        end = time.monotonic() + KILL_SECONDS
        for thread in self._threads if left else []:
            thread.join(max(0.0, end - time.monotonic()))  # so that no process is left


def _key_used() -> Refusal:
    return Refusal(409, "key_used", "This Idempotency-Key was used for another request. Take a new key for a new request.")
