"""The store of answers, for idempotency: a request that is sent again gets the same bytes, never fresh noise for one charge.

An answer is stored under the person and the key that the person chose for the request. It names the reservation that paid for it, which
the ledger must know as this person's and as opened: so no release is stored without its charge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sql

from hedgerow.curator.ledger import sql_tables
from hedgerow.curator.ledger.chain import ANSWER, SETTLE, Reserved, reservations_in
from hedgerow.curator.ledger.checks import checked_hash, checked_name
from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.ledger import PAGE, Ledger
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.records import record
from hedgerow.curator.ledger.transactions import JoinedTransaction, exclusive_transaction, now, timestamp
from hedgerow.errors import LedgerError, PlanError


@dataclass(frozen=True)
class Answer:
    """What was answered. request: the SHA-256 of the request, as 64 hexadecimal digits; reservation: its key in the ledger."""

    person: str
    key: str
    request: str
    reservation: str
    when: str
    content_type: str
    content: bytes


class Answers:
    """The answers in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def stored(self, person: str, key: str, request: str) -> Answer | None:
        """The answer to this request, if it was given before. Look it up before anything is reserved.

        PlanError: this person has used the key for another request. Another person's keys are never seen.
        """
        with self.database.reading() as connection:
            return _found(connection, checked_name(person, "person"), checked_name(key, "key"), checked_hash(request))

    def paid_by(self, person: str, reservation: str) -> Answer | None:
        """The answer that a reservation of this person has paid for."""
        columns = sql_tables.answers.c
        chosen = (columns.person == checked_name(person, "person"), columns.reservation == checked_name(reservation, "reservation"))
        with self.database.reading() as connection:
            row = connection.execute(sql.select(sql_tables.answers).where(*chosen)).first()
        return None if row is None else Answer(*row)

    def content_types(self, reservations: Sequence[str]) -> dict[str, str]:
        """The content type of the answer that each reservation has paid for, where there is one; the answers themselves are not read."""
        columns = sql_tables.answers.c
        statement = sql.select(columns.reservation, columns.content_type).where(columns.reservation.in_(reservations))
        with self.database.reading() as connection:
            return {row.reservation: row.content_type for row in connection.execute(statement)}

    def unanswered(self) -> list[Reserved]:
        """What was settled at a cost and has no answer here: lost by an older version in a crash, or paid for outside the service."""
        entries, answer = sql_tables.entries, sql.exists().where(sql_tables.answers.c.reservation == sql_tables.entries.c.key)
        settled = sql.select(entries.c.key).where(entries.c.kind == SETTLE, entries.c.epsilon != "0", ~answer)
        with self.database.reading() as connection:
            return list(reservations_in(LedgerTables(connection).entries(entries.c.key.in_(settled))).values())

    def given_back_of(self, reservations: Sequence[str]) -> list[Reserved]:
        """Those of them that were given back, in the order in which they were made."""
        columns, released = sql_tables.entries.c, []
        with self.database.reading() as connection:
            for first in range(0, len(reservations), PAGE):
                found = reservations_in(LedgerTables(connection).entries(columns.key.in_(reservations[first : first + PAGE])))
                released += [reserved for reserved in found.values() if reserved.state == "released"]
        return sorted(released, key=lambda reserved: reserved.seq)

    def store(
        self,
        person: str,
        key: str,
        request: str,
        reservation: str,
        content: bytes,
        content_type: str,
        *,
        connection: sql.Connection | None = None,
    ) -> Answer:
        """Keep an answer that is paid for, and give back what is to be sent: where somebody was faster, the first answer.

        connection: a transaction under way, begun with `transactions.exclusive_transaction`, of which this becomes a part.
        """
        given = _checked(person, key, request, reservation, content, content_type)
        with exclusive_transaction(self.database, connection) as own:
            there = _found(own, person, key, request)
            if there is not None:
                return there
            _check_paid(own, person, reservation)
            own.execute(sql_tables.answers.insert().values(**asdict(given)))
            record(own, ANSWER, reservation)
        return given

    def settle_and_store(
        self, person: str, key: str, request: str, reservation: str, content: bytes, content_type: str, spent: Any = None
    ) -> Answer:
        """The ledger's settle and the answer in one transaction: after a crash there are both or neither, and neither costs the whole.

        Said again, it changes nothing: so it may be, where nobody knows whether it was written.
        """
        _checked(person, key, request, reservation, content, content_type)
        with exclusive_transaction(self.database) as connection:
            there = _found(connection, person, key, request)
            if there is None or there.reservation != reservation:
                _check_paid(connection, person, reservation)
                Ledger(JoinedTransaction(self.database, connection)).settle(reservation, spent)
            return self.store(person, key, request, reservation, content, content_type, connection=connection)


def _checked(person: str, key: str, request: str, reservation: str, content: bytes, content_type: str) -> Answer:
    for name, of in ((person, "person"), (key, "key"), (reservation, "reservation"), (content_type, "content type")):
        checked_name(name, of)
    if not isinstance(content, bytes):
        raise LedgerError(f"content: got {type(content).__name__}; expected bytes, exactly as they are sent.")
    return Answer(person, key, checked_hash(request), reservation, timestamp(now()), content_type, content)


def _found(connection: sql.Connection, person: str, key: str, request: str) -> Answer | None:
    columns = sql_tables.answers.c
    row = connection.execute(sql.select(sql_tables.answers).where(columns.person == person, columns.key == key)).one_or_none()
    if row is None:
        return None
    if row.request != request:
        raise PlanError(f"key {key!r} was used for another request; expected a new key for a new request. Nothing was stored.")
    return Answer(*row)


def _check_paid(connection: sql.Connection, person: str, reservation: str) -> None:
    reserved = LedgerTables(connection).reservation(reservation)
    if reserved is None or reserved.analyst != person:
        raise LedgerError(
            f"reservation {reservation!r} is not one of {person!r}; expected the one that pays for this answer. Nothing was stored."
        )
    taken = sql_tables.answers.c.reservation == reservation
    if connection.execute(sql.select(sql_tables.answers.c.key).where(taken)).first() is not None:
        raise LedgerError(f"reservation {reservation!r} has paid for another answer; expected one for each. Nothing was stored.")
    if not reserved.opened:
        raise LedgerError(
            f"reservation {reservation!r} was never opened, so it has paid for no answer; expected `opened` before. Nothing was stored."
        )
