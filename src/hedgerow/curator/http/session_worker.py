"""One session where its rows are: a reservation, an engine and a private table, asked one query after the other.

Every answer is that of a `PrivateTable` on the session's reservation, so that it is charged as it would be on one's own rows: nothing here
draws noise or decides what a query costs. Persons and their rows are those of the owner's schema, whoever asks.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.accounting.meter import Reservation
from hedgerow.accounting.units import Unit
from hedgerow.curator.http.errors import Refusal, refusal_of
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.padding import Padding
from hedgerow.curator.http.query_decoder import QueryDecoder
from hedgerow.curator.http.reservations import PrepaidBudget
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.storing import SESSION_END, FinishedWork, store_or_return
from hedgerow.curator.http.work import Progress
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.database import patiently
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.engines.engine import Engine
from hedgerow.errors import HedgerowError, LedgerError, PlanError
from hedgerow.mechanisms.coins import SYSTEM, Coins
from hedgerow.private_table import PrivateTable
from hedgerow.remote import codec
from hedgerow.schema.codebook import Codebook

MOST_BITS = 4096  # of the denominators of what a session has charged: its sums stay exact and cheap
RELEASE_SECONDS = 30  # in which a session without a query is given back while the database is away
CLOSED = "The dataset is closed: its owner has ended the connection. No row was looked at."


@dataclass(frozen=True)
class QueryResult:
    """An answer, or a refusal in its place; taken: it was charged, so that its number is used up."""

    content: bytes
    refused: tuple[int, str, str] | None
    taken: bool


class SessionEnd(msgspec.Struct, frozen=True):
    """What is stored when a session is settled: its last answer, and of which query."""

    number: int
    digest: bytes = b""
    content: bytes = b""


def digest_of(name: str, content: bytes) -> bytes:
    """By which a query is known to be the same."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


class SessionWorker:
    """Where the queries of a session are answered. It is asked by messages, from another process or from this one."""

    coins: ClassVar[Coins] = SYSTEM  # tests may set a seeded one; what a session tells of its sampler then says so

    def __init__(self, curator: Curator, limits: Limits) -> None:
        self.curator, self.limits = curator, limits
        self._reserved: Reserved | None = None

    def __call__(self, message: Any, progress: Progress) -> Any:
        kind, given = message[0], message[1:]
        if kind == "begin":
            return self.begin(*given)
        if self._reserved is None:
            raise LedgerError("a session that has not begun here was asked for.")
        return self.query(progress, *given) if kind == "query" else self.end()

    def begin(self, reserved: Reserved, key: IdempotencyKey, bins: int) -> None:
        found = self.curator.registry.get(reserved.dataset)
        if found is None:
            raise LedgerError(f"dataset {reserved.dataset!r} is not registered. No row was looked at.")
        self._budget = PrepaidBudget(self.curator.ledger, reserved)
        unit = Unit.of(found.schema)
        self._reservation: Reservation = self._budget.reserve(reserved.epsilon, reserved.what, reserved.delta, unit)
        self._key, self._last = key, SessionEnd(0)
        self._decoder, self._bins = QueryDecoder(Codebook(found.schema, bins), self.limits), bins
        self._engine: Engine | None = None
        self._reserved = reserved

    def query(self, progress: Progress, name: str, number: int, content: bytes) -> QueryResult:
        """Decode, charge, read the rows. A refusal is an answer, too, and says whether anything was charged for it."""
        before, padding = len(self._reservation.events), Padding(self.limits.pad_seconds)
        try:
            answer = self._answer(name, number, content, progress)
            self._last = SessionEnd(number, digest_of(name, content), answer)
            return QueryResult(answer, None, True)
        except Exception as error:
            refusal = self._refusal(error)
            return QueryResult(b"", (refusal.status, refusal.code, refusal.message), len(self._reservation.events) > before)
        finally:
            if len(self._reservation.events) > before:
                padding.wait()

    def _answer(self, name: str, number: int, content: bytes, progress: Progress) -> bytes:
        query, price = self._decoder.query(name, content)
        charged, before = (self._reservation.charged, self._reservation.rho_charged), len(self._reservation.events)
        if number > self.limits.looks or any(amount.denominator.bit_length() > MOST_BITS for amount in charged):
            raise PlanError("the session has had as many queries as it may. Nothing was spent. End it, and begin another.")
        assert self._reserved is not None
        if self._engine is None:
            schema = self._decoder.codebook.schema
            key = b"" if schema.person is None else self.coins.bytes(16)
            self._engine = self.curator.registry.open_rows(self._reserved.dataset, self._bins, self.limits.threads, progress, key)
        table = PrivateTable(self._engine, self._reservation, self.coins)
        arrays = table.released(query, price)  # [R1]
        return codec.answer_bytes(number, arrays, self._reservation.events[before:], self._engine.assumed)

    def _refusal(self, error: Exception) -> Refusal:
        assert self._reserved is not None
        if isinstance(error, LedgerError) and self._closed(self._reserved.dataset):
            return Refusal(409, "closed", CLOSED)
        return refusal_of(error, owns=False)

    def _closed(self, dataset: str) -> bool:
        try:
            return self.curator.ledger.balance(dataset).closed
        except HedgerowError:
            return False

    def end(self) -> FinishedWork | None:
        """Keep what the queries have cost and give the rest back: all of it where there was none. The last answer is stored with it, for
        a client that has lost its connection; where it cannot be stored now, it is returned.
        """
        assert self._reserved is not None
        reserved, self._reserved = self._reserved, None
        try:
            if self._engine is not None:
                self._engine.close()
        finally:
            unstored = self._settle(reserved)
        return unstored

    def _settle(self, reserved: Reserved) -> FinishedWork | None:
        ledger = self.curator.ledger
        if not self._reservation.events and patiently(lambda: ledger.release_if_unopened(reserved.key), RELEASE_SECONDS) is not None:
            return None
        self._reservation.settle()
        spent = reserved.epsilon if self._budget.settled_at is None else self._budget.settled_at
        content = msgspec.json.encode(self._last)
        return store_or_return(self.curator, FinishedWork.of(reserved, self._key, text_of_fraction(spent), content, SESSION_END))
