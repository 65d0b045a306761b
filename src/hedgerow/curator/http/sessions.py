"""Sessions of verbs: each is its reservation, belongs to one person, and is asked for one numbered look after the other.

The same number with the same body gets the same bytes: an answer is kept until the next is asked for, so that a lost connection costs
nothing and buys no second noise. Another body, or a number that is not the next, is refused without a look. A session that is not used is
ended and keeps what its looks have cost; after a crash the whole reservation stays spent.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from hedgerow.curator.http.awaitable_event import Moment
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.logs import log, told
from hedgerow.curator.http.paying import Prepare, give_back, stopping
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.session_worker import Desk, Looked
from hedgerow.curator.http.workers import KILL_SECONDS, Failed, Worker, worker_of
from hedgerow.curator.ledger.chain import Reserved

LOST = "The session was lost: its work was ended before it was done. What was reserved for it stays spent if a row was looked at."
KEPT_KEYS = 10_000
END_SECONDS, STOP_SECONDS = 60, 10  # in which a session must be settled, or its whole reservation stays spent; when the service stops


@dataclass
class Look:
    """One that is made or was made last; looked: its answer, kept to be sent again."""

    number: int
    digest: bytes
    done: Moment = field(default_factory=Moment)
    looked: Looked | None = None
    before: Look | None = None  # until this one is charged


@dataclass
class Session:
    """One that can be asked. `lock` is for what follows; a look itself is made outside it."""

    reserved: Reserved
    key: str
    request: str
    bins: int
    worker: Worker
    ends: float
    used: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: bool = False
    ended: Moment = field(default_factory=Moment)
    ending: bool = False
    last: Look = field(default_factory=lambda: Look(0, b"", _set()))

    @property
    def id(self) -> str:
        return self.reserved.key


def _set() -> Moment:
    event = Moment()
    event.set()
    return event


class Sessions:
    """The sessions of one process."""

    def __init__(self, curator: Curator, limits: Limits) -> None:
        self.curator, self.limits = curator, limits
        self._lock = threading.Lock()
        self._asking = threading.Lock()  # one at a time: is there one for this key, is there room; then it is paid
        self._live: dict[str, Session] = {}
        self._keys: dict[tuple[str, str], None] = {}  # of sessions that have ended, the last ones
        self._idle: list[Worker] = []
        self._stopping = threading.Event()
        self._stopped_by = float("inf")
        self._keeper = threading.Thread(target=self._keep, daemon=True, name="hedgerow sessions")

    def start(self) -> None:
        self._keeper.start()

    def live(self, id: str) -> Session | None:
        with self._lock:
            return self._live.get(id)

    # ------------------------------------------------------------ begin

    def open(self, person: str, key: str, request: str, bins: int, prepare: Prepare) -> Session:
        """The session of this key, or a new one, which is paid for by now."""
        found = self._found(person, key, request)
        if found is not None:
            return found
        reserve = prepare()
        with self._asking:
            found = self._found(person, key, request)
            if found is not None:
                return found
            self._check_room(person)
            reserved, now = reserve(), time.monotonic()
            session = Session(reserved, key, request, bins, self._worker(), now + self.limits.session_seconds, now)
            with self._lock:
                self._live[session.id] = session
        log("session begun", **_about(session))
        return session

    def _found(self, person: str, key: str, request: str) -> Session | None:
        with self._lock:
            live = next((s for s in self._live.values() if (s.reserved.analyst, s.key) == (person, key)), None)
            used = (person, key) in self._keys
        if used or (live is not None and live.request != request):
            raise Refusal(409, "key_used", "This Idempotency-Key was used for another request, or its session has ended. Take a new key.")
        return live

    def _check_room(self, person: str) -> None:
        with self._lock:
            if self._stopping.is_set():
                raise stopping()
            own = sum(session.reserved.analyst == person for session in self._live.values())
            if len(self._live) >= self.limits.sessions or own >= self.limits.sessions_each:
                idle = round(self.limits.session_idle_seconds)
                said = f"Too many sessions are open. Nothing was spent. Those that nobody uses end by themselves after {idle} seconds."
                raise Refusal(429, "busy", said, {"Retry-After": "10"})

    def _worker(self) -> Worker:
        with self._lock:
            return self._idle.pop() if self._idle else worker_of(self.curator, self.limits, Desk, "hedgerow session")

    # ------------------------------------------------------------ look

    def look(self, session: Session, verb: str, number: int, content: bytes) -> Look:
        """The look of this number, which is being made or has been. Nobody is kept waiting for it here."""
        digest = hashlib.sha256(verb.encode() + b"\0" + content).digest()
        with session.lock:
            last = session.last
            if number == last.number and digest == last.digest:
                asked = last
            else:
                asked = self._next(session, number, digest)
                threading.Thread(target=self._make, args=(session, asked, verb, content), daemon=True, name="hedgerow look").start()
            session.used = time.monotonic()
        return asked

    def _next(self, session: Session, number: int, digest: bytes) -> Look:
        last = session.last
        if session.ending or session.ended.is_set():
            raise ended()
        if number != last.number + 1:
            raise Refusal(409, "number", f"Looks are numbered 1, 2, 3, …; expected {last.number + 1}, or {last.number} with the same body.")
        if not last.done.is_set():
            raise Refusal(409, "busy", "The last look of the session is still being made. Wait for its answer.", {"Retry-After": "1"})
        session.last = Look(number, digest, before=last)
        return session.last

    def _make(self, session: Session, asked: Look, verb: str, content: bytes) -> None:
        try:
            if not session.begun:
                session.worker.ask(("begin", session.reserved, session.bins), _nothing, lambda: session.ends)
                session.begun = True
            looked: Looked = session.worker.ask(("look", verb, asked.number, content), _nothing, lambda: session.ends)
        except BaseException as error:  # whatever it is, whoever waits is told
            log("session lost", logging.ERROR, **_about(session), **(error.fields if isinstance(error, Failed) else told(error)))
            looked = Looked(b"", (410, "lost", LOST), True)
            self._lose(session)
        with session.lock:
            asked.looked = looked
            session.used = time.monotonic()
            if not looked.taken and asked.before is not None:
                session.last = asked.before  # nothing was charged: the number is free again
            asked.before = None
            asked.done.set()

    def _lose(self, session: Session) -> None:
        session.ending = True
        session.worker.close()
        give_back(self.curator.ledger, session.reserved)
        self._forget(session)

    # ------------------------------------------------------------ end

    async def end_soon(self, session: Session) -> bool:
        """As `end`, when the look that is being made is done: no thread is held for what others do."""
        await session.last.done.within(self.limits.look_wait_seconds)
        return await run_in_threadpool(self._settle, session) and await session.ended.within(self.limits.look_wait_seconds)

    def end(self, session: Session) -> bool:
        """Settle what its looks have cost. False while a look is still being made."""
        return self._settle(session) and session.ended.wait(self.limits.look_wait_seconds)

    def _settle(self, session: Session) -> bool:
        """False while a look is still being made. Where somebody else settles it already, that is not waited for."""
        with session.lock:
            if not session.last.done.is_set():
                return False
            mine, session.ending = not session.ending, True
        if not mine:
            return True
        try:
            if session.begun:
                most = time.monotonic() + END_SECONDS
                session.worker.ask(("end",), _nothing, lambda: min(most, self._stopped_by))
            else:
                give_back(self.curator.ledger, session.reserved)
        except Exception as error:
            log("session not settled", logging.ERROR, **_about(session), **(error.fields if isinstance(error, Failed) else told(error)))
            session.worker.close()
            give_back(self.curator.ledger, session.reserved)
        self._forget(session)
        log("session ended", **_about(session), looks=session.last.number)
        return True

    def _forget(self, session: Session) -> None:
        with self._lock:
            if self._live.pop(session.id, None) is not None:
                self._keys[session.reserved.analyst, session.key] = None
                if len(self._keys) > KEPT_KEYS:
                    self._keys.pop(next(iter(self._keys)))
            spare = len(self._idle) < self.limits.workers and not self._stopping.is_set()
            if spare:
                self._idle.append(session.worker)
        if not spare:
            session.worker.close()
        session.ended.set()

    def _keep(self) -> None:
        """End what nobody uses, and what has lived long enough."""
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
                        log("session not ended", logging.ERROR, **_about(session), **told(error))

    def stop(self) -> None:
        """No new session; a look that is being made may end within `stop_seconds`; all are settled, at once and soon after."""
        with self._asking:
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
        session.last.done.wait(max(0.0, end - time.monotonic()))
        session.ends = min(session.ends, end)
        session.last.done.wait(KILL_SECONDS)
        self.end(session)


def ended() -> Refusal:
    return Refusal(410, "ended", "The session has ended. Its cost is in the ledger. Begin another.")


def _about(session: Session) -> dict[str, Any]:
    reserved = session.reserved
    return {"session": reserved.key, "person": reserved.analyst, "dataset": reserved.dataset, "what": reserved.what}


def _nothing(_: float) -> None:
    """A look has no progress that could be told."""
