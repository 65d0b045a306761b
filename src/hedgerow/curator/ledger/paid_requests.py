"""Requests and their reservations: which request a reservation was made for, and why it failed, where it did.

It is written in one transaction with the reservation. So a request that is sent again, with the key that its person chose, goes on with
what is paid, whatever was lost on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql

from hedgerow.curator.ledger.checks import checked_hash, checked_name, checked_text
from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.sql_tables import requests
from hedgerow.curator.ledger.transactions import exclusive_transaction

LONGEST_REASON = 500


@dataclass(frozen=True)
class IdempotencyKey:
    """What a person calls a request, and the SHA-256 of the request as 64 hexadecimal digits."""

    key: str
    request: str

    def checked(self) -> IdempotencyKey:
        return IdempotencyKey(checked_name(self.key, "key"), checked_hash(self.request))


@dataclass(frozen=True)
class PaidRequest:
    """A request that a reservation was made for. reason: why it failed, None where nobody knows of such a thing."""

    reservation: str
    person: str
    key: IdempotencyKey
    reason: str | None = None


class PaidRequests:
    """The requests in a database. They are added by `Ledger.reserve`."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def newest(self, person: str, key: str) -> PaidRequest | None:
        """The last request of a person under a key: what is given back may be requested again under the same."""
        chosen = requests.c.person == checked_name(person, "person"), requests.c.key == checked_name(key, "key")
        with self.database.reading() as connection:
            row = connection.execute(sql.select(requests).where(*chosen).order_by(requests.c.seq.desc()).limit(1)).first()
        return None if row is None else PaidRequest(row.reservation, row.person, IdempotencyKey(row.key, row.request), row.reason)

    def reasons(self) -> dict[str, str]:
        """Why requests have failed, by their reservations: those whose answer was lost, and those that were given back."""
        statement = sql.select(requests.c.reservation, requests.c.reason).where(requests.c.reason.is_not(None))
        with self.database.reading() as connection:
            if not sql.inspect(connection).has_table(requests.name):  # a copy may be older than the table
                return {}
            return {row.reservation: row.reason for row in connection.execute(statement)}

    def note_failure(self, reservation: str, reason: str) -> None:
        """Write down, for the owner, why there is no answer."""
        text = checked_text(reason[:LONGEST_REASON], "reason")
        with exclusive_transaction(self.database) as connection:
            connection.execute(requests.update().where(requests.c.reservation == reservation).values(reason=text))


def request_row(reservation: str, seq: int, person: str, key: IdempotencyKey) -> dict[str, Any]:
    """What is written with a reservation, whose entry has the digest of it."""
    return {"reservation": reservation, "seq": seq, "person": person, "key": key.key, "request": key.request}


def remember(connection: sql.Connection, row: dict[str, Any]) -> None:
    """Within the transaction that reserves."""
    connection.execute(requests.insert().values(**row))
