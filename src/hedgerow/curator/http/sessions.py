"""Query sessions: each has one budget reservation, belongs to one person, and answers numbered queries one at a time.

Queries are idempotent: the same number with the same body gets the same bytes. An answer is kept until the next query, so that a lost
connection costs nothing and buys no second noise; another body, or a number that is not the next, is refused. A session that is idle is
ended and keeps what its queries have cost, with its last answer; after a crash the whole reservation stays spent.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from hedgerow.curator.http.awaitable_event import AwaitableEvent
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.jobs import STOPPING_STEP, note_failure
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.logs import error_fields, log
from hedgerow.curator.http.reservations import ReservationRequest, Reserve, release_unopened, stopping, unopened_for
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.session_worker import QueryResult, SessionWorker, digest_of
from hedgerow.curator.http.storing import FinishedWork, Storage
from hedgerow.curator.http.workers import KILL_SECONDS, Worker, WorkFailed, new_worker
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.paid_requests import IdempotencyKey

LOST = "The session was lost: its work was ended before it was done. What was reserved for it stays spent if a row was looked at."
KEPT_KEYS = 10_000
END_SECONDS, STOP_SECONDS = 60, 10  # in which a session must be settled, or its whole reservation stays spent; when the service stops


@dataclass
class SessionQuery:
    """The query that runs, or ran last. result: its answer, kept to be sent again."""

    number: int
    digest: bytes
    done: AwaitableEvent = field(default_factory=AwaitableEvent)
    result: QueryResult | None = None
    before: SessionQuery | None = None  # until this one is charged

    @classmethod
    def answered(cls, number: int, digest: bytes, result: QueryResult | None = None) -> SessionQuery:
        """One that has ended."""
        query = cls(number, digest, result=result)
        query.done.set()
        return query


@dataclass
class Session:
    """An open session. `lock` guards the fields below it; a query runs outside it."""

    reserved: Reserved
    key: IdempotencyKey
    bins: int
    worker: Worker
    ends: float
    used: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: bool = False
    ended: AwaitableEvent = field(default_factory=AwaitableEvent)
    ending: bool = False
    last: SessionQuery = field(default_factory=lambda: SessionQuery.answered(0, b""))

    @property
    def id(self) -> str:
        return self.reserved.key


class Sessions:
    """The sessions of one process."""

    def __init__(self, curator: Curator, limits: Limits, storage: Storage) -> None:
        self.curator, self.limits, self.storage = curator, limits, storage
        self._lock = threading.Lock()
        self._opening = threading.Lock()  # one at a time: is there one for this key, is there room; then it is paid
        self._live: dict[str, Session] = {}
        self._keys: dict[tuple[str, str], None] = {}  # of sessions that have ended here without a query, the last ones
        self._idle: list[Worker] = []
        self._stopping = threading.Event()
        self.hurry = threading.Event()  # a stop waits for no query any more
        self._stopped_by = float("inf")
        self._keeper = threading.Thread(target=self._end_idle, daemon=True, name="hedgerow sessions")

    def start(self) -> None:
        self._keeper.start()

    def live(self, id: str) -> Session | None:
        with self._lock:
            return self._live.get(id)

    def all_live(self) -> dict[str, Session]:
        with self._lock:
            return dict(self._live)

    # ------------------------------------------------------------ open

    def open(self, person: str, key: IdempotencyKey, bins: int, wanted: ReservationRequest, reserve: Reserve) -> Session:
        """Pay for a new session and begin it; where somebody was faster with the same key, theirs."""
        with self._opening:
            found = self.find(person, key)
            if found is not None:
                return found
            self._check_room(person)
            self.storage.check()
            reserved, now = unopened_for(self.curator, person, key, wanted) or reserve(wanted, key), time.monotonic()
            session = Session(reserved, key, bins, self._worker(), now + self.limits.session_seconds, now)
            with self._lock:
                self._live[session.id] = session
        log("session begun", **_about(session))
        return session

    def find(self, person: str, key: IdempotencyKey) -> Session | None:
        """The open session of this Idempotency-Key. Refused where the key was used for another request, or its session has ended or was
        lost; what an earlier service has left and this one has given back counts as never requested.
        """
        with self._lock:
            live = next((s for s in self._live.values() if (s.reserved.analyst, s.key.key) == (person, key.key)), None)
            used = (person, key.key) in self._keys
        paid = self.curator.requests.newest(person, key.key) if live is None else None
        reserved = None if paid is None else self.curator.ledger.reservation(paid.reservation)
        if paid is not None and reserved is not None and reserved.state != "released":
            used = reserved.opened or paid.key != key
        if used or (live is not None and live.key != key):
            raise Refusal(409, "key_used", "This Idempotency-Key was used for another request, or its session has ended. Take a new key.")
        return live

    def _check_room(self, person: str) -> None:
        with self._lock:
            if self._stopping.is_set():
                raise stopping()
            own = sum(session.reserved.analyst == person for session in self._live.values())
            if len(self._live) >= self.limits.sessions or own >= self.limits.sessions_each:
                idle = round(self.limits.session_idle_seconds)
                message = f"Too many sessions are open. Nothing was spent. Those that nobody uses end by themselves after {idle} seconds."
                raise Refusal(429, "busy", message, {"Retry-After": "10"})

    def _worker(self) -> Worker:
        with self._lock:
            return self._idle.pop() if self._idle else new_worker(self.curator, self.limits, SessionWorker, "hedgerow session")

    # ------------------------------------------------------------ queries

    def query(self, session: Session, name: str, number: int, content: bytes) -> SessionQuery:
        """The query of this number, which runs or has ended. It is not waited for here."""
        digest = digest_of(name, content)
        with session.lock:
            last = session.last
            if number == last.number and digest == last.digest:
                query = last
            else:
                query = self._next(session, number, digest)
                threading.Thread(target=self._run, args=(session, query, name, content), daemon=True, name="hedgerow query").start()
            session.used = time.monotonic()
        return query

    def _next(self, session: Session, number: int, digest: bytes) -> SessionQuery:
        last = session.last
        if session.ending or session.ended.is_set():
            raise ended()
        self.storage.check()
        if number != last.number + 1:
            expected = f"expected {last.number + 1}, or {last.number} with the same body"
            raise Refusal(409, "number", f"Queries are numbered 1, 2, 3, …; {expected}.")
        if not last.done.is_set():
            raise Refusal(409, "busy", "The last query of the session still runs. Wait for its answer.", {"Retry-After": "1"})
        session.last = SessionQuery(number, digest, before=last)
        return session.last

    def _run(self, session: Session, query: SessionQuery, name: str, content: bytes) -> None:
        try:
            if not session.begun:
                session.worker.call(("begin", session.reserved, session.key, session.bins), _no_progress, lambda: session.ends)
                session.begun = True
            result: QueryResult = session.worker.call(("query", name, query.number, content), _no_progress, lambda: session.ends)
        except BaseException as error:  # whatever it is, whoever waits gets an answer
            log("session lost", logging.ERROR, **_about(session), **_fields(error))
            result = QueryResult(b"", (410, "lost", LOST), True)
            self._lose(session, error)
        with session.lock:
            query.result = result
            session.used = time.monotonic()
            if not result.taken and query.before is not None:
                session.last = query.before  # nothing was charged: the number is free again
            query.before = None
            query.done.set()

    def _lose(self, session: Session, error: BaseException) -> None:
        session.ending = True
        session.worker.close()
        if not release_unopened(self.curator.ledger, session.reserved):
            note_failure(self.curator, session.reserved, _fields(error))
        self._forget(session)

    # ------------------------------------------------------------ end

    async def end_soon(self, session: Session) -> bool:
        """As `end`, once the running query is done; holds no thread while it waits."""
        await session.last.done.within(self.limits.look_wait_seconds)
        return await run_in_threadpool(self._settle, session) and await session.ended.within(self.limits.look_wait_seconds)

    def end(self, session: Session) -> bool:
        """Settle what its queries have cost. False while a query still runs."""
        return self._settle(session) and session.ended.wait(self.limits.look_wait_seconds)

    def _settle(self, session: Session) -> bool:
        """False while a query still runs. Where somebody else settles it already, that is not waited for."""
        with session.lock:
            if not session.last.done.is_set():
                return False
            mine, session.ending = not session.ending, True
        if not mine:
            return True
        try:
            if session.begun:
                most = time.monotonic() + END_SECONDS
                unstored: FinishedWork | None = session.worker.call(("end",), _no_progress, lambda: min(most, self._stopped_by))
                if unstored is not None:
                    self.storage.keep(unstored).done.wait(max(0.0, min(most, self._stopped_by) - time.monotonic()))
            else:
                release_unopened(self.curator.ledger, session.reserved)
        except Exception as error:
            log("session not settled", logging.ERROR, **_about(session), **_fields(error))
            session.worker.close()
            if not release_unopened(self.curator.ledger, session.reserved):
                note_failure(self.curator, session.reserved, _fields(error))
        self._forget(session)
        log("session ended", **_about(session), queries=session.last.number)
        return True

    def _forget(self, session: Session) -> None:
        with self._lock:
            if self._live.pop(session.id, None) is not None:
                self._keys[session.reserved.analyst, session.key.key] = None
                if len(self._keys) > KEPT_KEYS:
                    self._keys.pop(next(iter(self._keys)))
            spare = len(self._idle) < self.limits.workers and not self._stopping.is_set()
            if spare:
                self._idle.append(session.worker)
        if not spare:
            session.worker.close()
        session.ended.set()

    def _end_idle(self) -> None:
        """End sessions that are idle, or have lived long enough."""
        while not self._stopping.wait(min(1.0, self.limits.session_idle_seconds / 4)):
            now = time.monotonic()
            with self._lock:
                sessions = list(self._live.values())
            for session in sessions:
                unused = now - session.used > self.limits.session_idle_seconds
                if session.last.done.is_set() and (unused or now > session.ends):
                    try:
                        self.end(session)
                    except Exception as error:
                        log("session not ended", logging.ERROR, **_about(session), **error_fields(error))

    def stop(self) -> None:
        """No new session; a query that runs may end within `stop_seconds`; all are settled, at once and soon after."""
        with self._opening:
            self._stopping.set()
        end = time.monotonic() + self.limits.stop_seconds
        self._stopped_by = end + STOP_SECONDS
        with self._lock:
            sessions = list(self._live.values())
        threads = [threading.Thread(target=self._stop, args=(session, end), daemon=True, name="hedgerow stop") for session in sessions]
        for thread in threads:
            thread.start()
        for thread in [*threads, *([self._keeper] if self._keeper.ident is not None else [])]:
            thread.join(max(0.0, self._stopped_by + KILL_SECONDS - time.monotonic()))
        for session in sessions:
            if not session.ended.is_set():
                log("session left behind", logging.WARNING, **_about(session), message="it did not end in time and stays spent")
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def _stop(self, session: Session, end: float) -> None:
        while not self.hurry.is_set() and time.monotonic() < end:
            if session.last.done.wait(min(STOPPING_STEP, max(0.0, end - time.monotonic()))):
                break
        session.ends = min(session.ends, time.monotonic() if self.hurry.is_set() else end)
        session.last.done.wait(KILL_SECONDS)
        self.end(session)


def ended() -> Refusal:
    return Refusal(410, "ended", "The session has ended. Its cost is in the ledger. Begin another.")


def _about(session: Session) -> dict[str, Any]:
    reserved = session.reserved
    return {"session": reserved.key, "person": reserved.analyst, "dataset": reserved.dataset, "what": reserved.what}


def _fields(error: BaseException) -> dict[str, Any]:
    return error.fields if isinstance(error, WorkFailed) else error_fields(error)


def _no_progress(_: float) -> None:
    """The progress of a query is not reported."""
