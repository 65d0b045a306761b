"""Accounts and authorization: people, their tokens, and grants of datasets to analysts for purposes.

A token is 256 random bits, shown once and stored as its SHA-256: with so many bits a hash needs neither salt nor stretching. An analyst
sees granted datasets only; every request for another one is answered from the grants, as if there were no such dataset.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sql

from hedgerow.curator.ledger.chain import GRANT, PERSON, REVOKE, TOKEN, WITHDRAW
from hedgerow.curator.ledger.checks import checked_name, checked_new_name
from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.records import record
from hedgerow.curator.ledger.sql_tables import datasets, grants, people, tokens
from hedgerow.curator.ledger.transactions import JoinedTransaction, exclusive_transaction, now, timestamp
from hedgerow.errors import LedgerError
from hedgerow.mechanisms.coins import SYSTEM

OWNER, ANALYST = "owner", "analyst"
TOKEN_BYTES = 32
PREFIX = "hrw_"  # so that people and scanners for leaked secrets know one when they see it
LIFETIME = timedelta(days=90)
FIRST_LIFETIME = timedelta(days=365)
_PERSON_BY_TOKEN = (  # read with every request
    sql.select(people.c.name, people.c.role, tokens.c.hash, tokens.c.expires, tokens.c.revoked)
    .join(tokens, tokens.c.person == people.c.name)
    .where(tokens.c.hash == sql.bindparam("digest"))
)
_GRANTED_PURPOSES = sql.select(grants.c.purpose).where(
    grants.c.analyst == sql.bindparam("of_analyst"), grants.c.dataset == sql.bindparam("of_dataset"), grants.c.withdrawn.is_(None)
)


@dataclass(frozen=True)
class Person:
    """Somebody with a token. role: owner or analyst."""

    name: str
    role: str

    @property
    def owns(self) -> bool:
        return self.role == OWNER


@dataclass(frozen=True)
class TokenRecord:
    """What is known about a token: never its secret, and not when it was used."""

    id: str
    person: str
    made: str
    expires: str
    revoked: str | None = None


@dataclass(frozen=True)
class Granted:
    """An analyst may use a dataset for a purpose."""

    analyst: str
    dataset: str
    purpose: str


class Accounts:
    """People, tokens and grants in a database. `clock` is for tests."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = now) -> None:
        self.database = database
        self._clock = clock

    def within(self, connection: sql.Connection) -> Accounts:
        """The same, as one transaction sees them."""
        return Accounts(JoinedTransaction(self.database, connection), self._clock)

    def _now(self) -> str:
        return timestamp(self._clock())

    # ------------------------------------------------------------ people

    def add(self, name: str, role: str = ANALYST) -> Person:
        """A new person. A name is of one person for ever: the ledger speaks of people by their names."""
        checked_new_name(name, "person")
        if role not in (OWNER, ANALYST):
            raise LedgerError(f"role: got {role!r:.100}; expected {OWNER!r} or {ANALYST!r}.")
        with exclusive_transaction(self.database) as connection:
            return self._add(connection, name, role)

    def _add(self, connection: sql.Connection, name: str, role: str) -> Person:
        if _person(connection, name) is not None:
            raise LedgerError(f"person {name!r} exists already; expected a name that was never used. Nothing was changed.")
        connection.execute(people.insert().values(name=name, role=role, made=self._now()))
        record(connection, PERSON, name)
        return Person(name, role)

    def person(self, name: str) -> Person | None:
        with self.database.reading() as connection:
            return _person(connection, checked_name(name, "person"))

    def people(self) -> list[Person]:
        with self.database.reading() as connection:
            found = connection.execute(sql.select(people.c.name, people.c.role)).all()
        return [Person(*row) for row in sorted(found)]

    def first_owner(self, name: str = OWNER) -> str | None:
        """At the first start: an owner and a token, to be shown once. None where there is an owner already."""
        checked_new_name(name, "person")
        with exclusive_transaction(self.database) as connection:
            if connection.execute(sql.select(people.c.name).where(people.c.role == OWNER).limit(1)).first() is not None:
                return None
            self._add(connection, name, OWNER)
            return self._issue(connection, name, self._clock() + FIRST_LIFETIME)[0]

    # ------------------------------------------------------------ tokens

    def issue(self, person: str, expires: datetime | timedelta = LIFETIME) -> tuple[str, TokenRecord]:
        """A new token for somebody: the text, which cannot be shown again, and what is kept about it."""
        checked_name(person, "person")
        present = self._clock()
        try:
            end = present + expires if isinstance(expires, timedelta) else expires
            if end.tzinfo is None or timestamp(end) <= timestamp(present):
                raise ValueError
        except (ValueError, OverflowError, AttributeError, TypeError):
            raise LedgerError(
                f"expires: got {expires!r:.100}; expected a time to come, with its time zone, or how long from now. No token was made."
            ) from None
        with exclusive_transaction(self.database) as connection:
            if _person(connection, person) is None:
                raise LedgerError(f"person {person!r} is not known; expected somebody who was added before. No token was made.")
            return self._issue(connection, person, end)

    def _issue(self, connection: sql.Connection, person: str, end: datetime) -> tuple[str, TokenRecord]:
        text = PREFIX + base64.urlsafe_b64encode(SYSTEM.bytes(TOKEN_BYTES)).decode("ascii").rstrip("=")
        made = TokenRecord(SYSTEM.bytes(8).hex(), person, self._now(), timestamp(end))
        values = {"id": made.id, "person": person, "hash": _digest(text), "made": made.made, "expires": made.expires}
        connection.execute(tokens.insert().values(**values))
        record(connection, TOKEN, made.id)
        return text, made

    def authenticate(self, token: str) -> Person | None:
        """The person of a token; None if it is unknown, revoked or expired, and the same work is done for each of them.

        The look-up is by the hash, of which nobody can choose a part; so its time tells nothing about existing tokens.
        """
        digest = _digest(token)
        with self.database.reading() as connection:
            row = connection.execute(_PERSON_BY_TOKEN, {"digest": digest}).one_or_none()
        name, role, kept, expires, revoked = ("", "", "0" * 64, "", "") if row is None else row
        valid = hmac.compare_digest(digest, kept) & (self._now() < expires) & (revoked is None)
        person = Person(name, role)
        return person if valid else None

    def revoke(self, token_id: str) -> TokenRecord:
        """End a token now. Once more is no harm: the first time stays."""
        checked_name(token_id, "token id")
        with exclusive_transaction(self.database) as connection:
            valid = tokens.update().where(tokens.c.id == token_id, tokens.c.revoked.is_(None))
            if connection.execute(valid.values(revoked=self._now())).rowcount:
                record(connection, REVOKE, token_id)
            found = _records(connection, tokens.c.id == token_id)
        if not found:
            raise LedgerError("token id: not known; expected the id of a token, as `hedgerow curator show` lists it, and never the token.")
        return found[0]

    def revoke_all(self) -> list[TokenRecord]:
        """End every token that is valid now, of owners too."""
        with exclusive_transaction(self.database) as connection:
            within = self.within(connection)
            return [within.revoke(token.id) for token in within.tokens() if within.state(token) == "valid"]

    def tokens(self, person: str | None = None) -> list[TokenRecord]:
        """All tokens that were ever made, or those of a person."""
        with self.database.reading() as connection:
            return _records(connection, *([] if person is None else [tokens.c.person == checked_name(person, "person")]))

    def state(self, token: TokenRecord) -> str:
        """Whether a token opens anything now: valid, expired or revoked."""
        return "revoked" if token.revoked is not None else "valid" if self._now() < token.expires else "expired"

    # ------------------------------------------------------------ grants

    def grant(self, analyst: str, dataset: str, purposes: Iterable[str]) -> None:
        """Let an analyst use a dataset for some purposes, besides those that were granted before."""
        wanted = _purposes(purposes)
        with exclusive_transaction(self.database) as connection:
            found = _person(connection, checked_name(analyst, "analyst"))
            if found is None or found.owns:
                raise LedgerError(f"analyst {analyst!r} is not known; expected somebody who was added as analyst. Nothing was granted.")
            if connection.execute(sql.select(datasets.c.name).where(datasets.c.name == checked_name(dataset, "dataset"))).first() is None:
                raise LedgerError(f"dataset {dataset!r} is not known; expected one that was registered before. Nothing was granted.")
            fresh = [purpose for purpose in wanted if purpose not in _granted(connection, analyst, dataset)]
            for purpose in map(_new_purpose, fresh):
                values = {"analyst": analyst, "dataset": dataset, "purpose": purpose, "made": self._now()}
                (number,) = connection.execute(grants.insert().values(**values)).inserted_primary_key or (None,)
                record(connection, GRANT, number)

    def withdraw(self, analyst: str, dataset: str, purposes: Iterable[str] | None = None) -> None:
        """Take back some purposes, or all of them. What is under way may end; what was not granted needs no taking back."""
        conditions = [grants.c.analyst == checked_name(analyst, "analyst"), grants.c.dataset == checked_name(dataset, "dataset")]
        if purposes is not None:
            conditions.append(grants.c.purpose.in_(_purposes(purposes)))
        with exclusive_transaction(self.database) as connection:
            valid = [*conditions, grants.c.withdrawn.is_(None)]
            for number in connection.execute(sql.select(grants.c.id).where(*valid).order_by(grants.c.id)).scalars().all():
                connection.execute(grants.update().where(grants.c.id == number).values(withdrawn=self._now()))
                record(connection, WITHDRAW, number)

    def grants(self, analyst: str | None = None) -> list[Granted]:
        """What is granted now, to everybody or to one analyst."""
        conditions = [grants.c.withdrawn.is_(None), *([] if analyst is None else [grants.c.analyst == checked_name(analyst, "analyst")])]
        statement = sql.select(grants.c.analyst, grants.c.dataset, grants.c.purpose).where(*conditions).distinct()
        with self.database.reading() as connection:
            return [Granted(*row) for row in sorted(connection.execute(statement).all())]

    def may(self, person: Person, dataset: str, purpose: str) -> bool:
        """Whether somebody may use a dataset for a purpose. An owner may use every dataset that there is."""
        checked_name(purpose, "purpose")
        return dataset in self.visible(person) if person.owns else purpose in self.purposes(person, dataset)

    def purposes(self, person: Person, dataset: str) -> tuple[str, ...]:
        """What a dataset is granted for: nothing where it is not granted or not there, which looks the same."""
        with self.database.reading() as connection:
            return tuple(sorted(_granted(connection, person.name, checked_name(dataset, "dataset"))))

    def visible(self, person: Person) -> list[str]:
        """The datasets that somebody may know of: all for an owner, the granted ones for an analyst, closed ones too."""
        granted = sql.select(grants.c.dataset).where(grants.c.analyst == person.name, grants.c.withdrawn.is_(None)).distinct()
        with self.database.reading() as connection:
            return sorted(connection.execute(sql.select(datasets.c.name) if person.owns else granted).scalars())


def _digest(token: str) -> str:
    text = token if isinstance(token, str) else ""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _person(connection: sql.Connection, name: str) -> Person | None:
    row = connection.execute(sql.select(people.c.name, people.c.role).where(people.c.name == name)).one_or_none()
    return None if row is None else Person(*row)


def _records(connection: sql.Connection, *conditions: sql.ColumnElement[bool]) -> list[TokenRecord]:
    columns = (tokens.c.id, tokens.c.person, tokens.c.made, tokens.c.expires, tokens.c.revoked)
    statement = sql.select(*columns).where(*conditions).order_by(tokens.c.made, tokens.c.id)
    return [TokenRecord(*row) for row in connection.execute(statement)]


def _granted(connection: sql.Connection, analyst: str, dataset: str) -> set[str]:
    return set(connection.execute(_GRANTED_PURPOSES, {"of_analyst": analyst, "of_dataset": dataset}).scalars())


def _new_purpose(purpose: str) -> str:
    return checked_new_name(purpose, "purpose")


def _purposes(purposes: Iterable[str]) -> list[str]:
    found = [] if isinstance(purposes, str) else [checked_name(purpose, "purpose") for purpose in purposes]
    if not found:
        raise LedgerError(f"purposes: got {purposes!r:.100}; expected a list with at least one purpose, such as ['research'].")
    return list(dict.fromkeys(found))
