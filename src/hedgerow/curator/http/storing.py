"""Storing answers: the settle and the answer are one transaction, and an answer that is paid for is not let go while there is a way.

The process that has the answer stores it. Where the database is away, full or read-only, the service keeps the answer, in memory and as
a file beside the database if that can be written, and tries again until it is stored. Meanwhile it takes no paid work and is not ready.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.logs import error_fields, log
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger.answers import Answer
from hedgerow.curator.ledger.chain import Reserved, amount_of
from hedgerow.curator.ledger.database import FIRST_PAUSE, LONGEST_PAUSE, is_unavailable
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.errors import HedgerowError, LedgerError
from hedgerow.release.files import read_document, write_document

SESSION_END = "application/vnd.hedgerow.session+json"  # of what is stored when a session is settled
UNSTORED = "unstored"  # a folder beside that of the releases
PROBE_SECONDS = 1.0  # at least, between two trials whether the database can be written


class FinishedWork(msgspec.Struct, frozen=True):
    """An answer that is paid for, and all that is needed to settle its reservation with it. spent: an exact amount, as text."""

    person: str
    key: str
    request: str
    reservation: str
    spent: str
    content: bytes
    content_type: str

    @classmethod
    def of(cls, reserved: Reserved, key: IdempotencyKey, spent: str, content: bytes, content_type: str) -> FinishedWork:
        return cls(reserved.analyst, key.key, key.request, reserved.key, spent, content, content_type)


def store(curator: Curator, work: FinishedWork) -> Answer:
    """Settle and store, in one transaction; said again, nothing changes. A copy of a release is written for its owner."""
    request = (work.person, work.key, work.request, work.reservation, work.content, work.content_type)
    if curator.ledger.reservation(work.reservation).state == "settled":  # by an older version, or just now
        answer = curator.answers.store(*request)
    else:
        answer = curator.answers.settle_and_store(*request, spent=amount_of(work.spent))
    _copy(curator, answer)
    return answer


def store_or_return(curator: Curator, work: FinishedWork) -> FinishedWork | None:
    """None when it is stored; the work itself where the database cannot be used now, to be kept by the service."""
    try:
        store(curator, work)
    except LedgerError as error:
        if not is_unavailable(error):
            raise
        log("answer not stored", logging.WARNING, job=work.reservation, **error_fields(error))
        return work
    return None


def _copy(curator: Curator, answer: Answer) -> None:
    if answer.content_type == SESSION_END:
        return
    try:
        write_document(curator.releases / f"{answer.reservation}.json", answer.content, mode=0o600)
    except HedgerowError as error:
        log("no copy of a release", logging.WARNING, job=answer.reservation, **error_fields(error))


@dataclass
class KeptWork:
    """Work that waits to be stored. done: it is, or it was given up, and `lost` tells why."""

    work: FinishedWork
    done: threading.Event
    lost: str = ""
    on_file: bool = False


class Storage:
    """The answers that a service could not store yet, and whether it may take paid work."""

    def __init__(self, curator: Curator) -> None:
        self.curator = curator
        self._folder = curator.releases.parent / UNSTORED
        self._lock = threading.Lock()
        self._kept: dict[str, KeptWork] = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._ends = float("inf")
        self._failed = False  # a write has failed since the last that did not
        self._probed = 0.0

    # ------------------------------------------------------------ paid work

    def check(self) -> None:
        """Refuse paid work while answers cannot be stored."""
        if not self.ready():
            message = "The service cannot store answers now, so it takes no paid work. Nothing was spent. Try again later."
            raise Refusal(503, "not_ready", message, {"Retry-After": "10"})

    def ready(self) -> bool:
        """Whether all answers are stored; after a write has failed, whether another one is possible now."""
        with self._lock:
            if self._kept:
                return False
            if not self._failed:
                return True
            now = time.monotonic()
            if now - self._probed < PROBE_SECONDS:
                return False
            self._probed = now
        try:
            self.curator.database.probe()
        except HedgerowError:
            return False
        with self._lock:
            self._failed = False
        return True

    def note_failure(self, error: BaseException) -> None:
        """Whatever was to be written was not."""
        if is_unavailable(error):
            with self._lock:
                self._failed = True

    # ------------------------------------------------------------ answers that wait

    def keep(self, work: FinishedWork) -> KeptWork:
        """Try until it is stored, or given up: its event is set then."""
        kept = KeptWork(work, threading.Event(), on_file=self._write(work))
        with self._lock:
            self._kept[work.reservation] = kept
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._store_all, daemon=True, name="hedgerow storing")
                self._thread.start()
        return kept

    def _store_all(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with self._lock:
                waiting = list(self._kept.values())
                if not waiting:
                    self._thread = None
                    return
            for kept in waiting:
                self._try(kept)
            left = self._ends - time.monotonic()
            if left <= 0:
                self._give_up()
                return
            self._wake.wait(min(pause, left))
            self._wake.clear()
            pause = min(LONGEST_PAUSE, 2 * pause)

    def _try(self, kept: KeptWork) -> None:
        work = kept.work
        try:
            store(self.curator, work)
        except Exception as error:
            if is_unavailable(error):
                return
            log("answer lost", logging.ERROR, job=work.reservation, **error_fields(error))
            kept.lost = f"its answer was refused by the ledger: {error}"
        else:
            log("answer stored", job=work.reservation, message="after the database could not be used for a while")
            self._file(work).unlink(missing_ok=True)
        with self._lock:
            self._kept.pop(work.reservation, None)
        kept.done.set()

    def _give_up(self) -> None:
        with self._lock:
            left, self._kept = list(self._kept.values()), {}
        for kept in left:
            on_file = kept.on_file or self._write(kept.work)
            kept.lost = "it is stored by the next start" if on_file else "neither the database nor the folder could be written"
            log("answer kept" if on_file else "answer lost", logging.ERROR, job=kept.work.reservation, message=kept.lost)
            kept.done.set()

    def stop_by(self, ends: float) -> None:
        """Try until then, and not longer: what is not stored by then is left to the next start, as files."""
        self._ends = ends
        self._wake.set()

    # ------------------------------------------------------------ files

    def _file(self, work: FinishedWork) -> Path:
        return self._folder / f"{work.reservation}.json"

    def _write(self, work: FinishedWork) -> bool:
        """On disk when it returns; False where that cannot be."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            write_document(self._file(work), msgspec.json.encode(work), "answer", mode=0o600)
        except (OSError, HedgerowError) as error:
            log("answer not on file", logging.WARNING, job=work.reservation, **error_fields(error))
            return False
        return True

    def store_files(self) -> list[str]:
        """Store what an earlier service could not; the reservations. For a start, before anything is listed as lost."""
        stored = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                work = msgspec.json.decode(read_document(path, "answer"), type=FinishedWork)
                store(self.curator, work)
            except (OSError, msgspec.MsgspecError, ValueError, HedgerowError) as error:
                log("answer not stored", logging.ERROR, file=path.name, **error_fields(error))
                if is_unavailable(error):
                    raise
                continue
            path.unlink()
            stored.append(work.reservation)
        return stored
