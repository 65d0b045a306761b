"""Tokens that work and those that do not, what the database knows about them, and what an analyst can learn."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from hedgerow.curator.ledger import sql_tables
from hedgerow.curator.ledger.accounts import Accounts, Person
from hedgerow.curator.ledger.database import Database, open_database
from hedgerow.errors import LedgerError

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
ODD = ["Ada Lovelace", "o'Hara; DROP TABLE people;--", "Åsa %_\\", "名前", "🦔" * 200, "ada", "Ada", 'x"y`z', "e\u0301", "é"]


class Clock:
    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    with open_database(address) as opened:
        yield opened


@pytest.fixture
def accounts(database: Database, clock: Clock) -> Accounts:
    """Ada and Bob are analysts; there are two datasets."""
    made = Accounts(database, clock)
    made.add("ada")
    made.add("bob")
    with database.writing() as connection:
        for name in ("patients", "visits"):
            connection.execute(sql_tables.datasets.insert().values(name=name, place="{}", schema="", made="now"))
    return made


def test_a_token_is_of_one_person_until_it_ends(accounts: Accounts, clock: Clock) -> None:
    (ada, record), (bob, _) = accounts.issue("ada", timedelta(hours=1)), accounts.issue("bob", START + timedelta(hours=2))
    assert ada.startswith("hrw_")
    assert len(ada) == 47
    assert ada != bob
    assert (accounts.authenticate(ada), accounts.authenticate(bob)) == (Person("ada", "analyst"), Person("bob", "analyst"))
    clock.time += timedelta(minutes=59, seconds=59)
    assert accounts.authenticate(ada) is not None
    clock.time += timedelta(seconds=1)
    assert (accounts.authenticate(ada), accounts.authenticate(bob)) == (None, Person("bob", "analyst"))
    assert accounts.tokens("ada") == [record]


def test_revoked_for_ever(accounts: Accounts, clock: Clock) -> None:
    (first, record), (second, _) = accounts.issue("ada"), accounts.issue("ada")
    revoked = accounts.revoke(record.id)
    assert (accounts.authenticate(first), accounts.authenticate(second)) == (None, Person("ada", "analyst"))
    clock.time += timedelta(hours=1)
    assert accounts.revoke(record.id) == revoked  # the first time stays
    assert revoked in accounts.tokens()
    assert len(accounts.tokens()) == 2
    for nobody in ("0" * 16, first):
        with pytest.raises(LedgerError, match="token id") as caught:
            accounts.revoke(nobody)
        assert first not in str(caught.value)


def test_wrong_tokens_of_every_length_and_alphabet(accounts: Accounts) -> None:
    token, record = accounts.issue("ada")
    digest = hashlib.sha256(token.encode()).hexdigest()
    wrong: list[Any] = [token[:length] for length in range(len(token))]
    wrong += [token + sign for sign in "A \n\0"] + [" " + token, token.upper(), token.lower(), token.swapcase(), token[4:]]
    wrong += [token[:i] + ("A" if token[i] != "A" else "B") + token[i + 1 :] for i in range(len(token))]
    wrong += [digest, record.id, "ada", "Bearer " + token, "'; --", "' OR 1=1 --", "%", "\ud800", "🦔" * 43, "\0" * 47, "x" * 10**6]
    wrong += [None, 7, token.encode(), [token]]
    wrong += ["hrw_" + secrets.token_urlsafe(size) for size in range(64)]
    assert {accounts.authenticate(each) for each in wrong} == {None}
    assert accounts.authenticate(token) is not None


def test_the_same_work_for_every_token(accounts: Accounts, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    import hmac

    short, (revoked, record), (good, _) = accounts.issue("ada", timedelta(hours=1))[0], accounts.issue("ada"), accounts.issue("ada")
    accounts.revoke(record.id)
    clock.time += timedelta(hours=2)
    real, compared, asked = hmac.compare_digest, [], []
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or real(a, b))
    sql.event.listen(accounts.database._engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    work = []
    for token in ("unknown", short, revoked, good):
        compared.clear(), asked.clear()
        accounts.authenticate(token)
        work.append((tuple(compared), tuple(asked)))
    assert len(set(work)) == 1
    assert work[0][0] == ((64, 64),)


def test_only_hashes_are_in_the_database(accounts: Accounts, address: str) -> None:
    texts = [accounts.first_owner(), *(accounts.issue("ada")[0] for _ in range(3))]
    with accounts.database.reading() as connection:
        kept = b"".join(str(connection.execute(sql.select(table)).all()).encode() for table in sql_tables.metadata.sorted_tables)
    if accounts.database.embedded:
        kept += b"".join(path.read_bytes() for path in Path(address).iterdir())
    for text in texts:
        assert text is not None
        assert hashlib.sha256(text.encode()).hexdigest().encode() in kept
        assert not any(part in kept for part in (text.encode(), text[4:].encode(), text[4:20].encode(), text[-16:].encode()))
    assert not any(text in repr(accounts.tokens()) for text in texts if text)


def test_the_first_owner_is_made_once(address: str) -> None:
    made: list[str | None] = []
    opened = [open_database(address) for _ in range(4)]
    work = [threading.Thread(target=lambda each=each: made.append(Accounts(each).first_owner())) for each in opened for _ in range(2)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    (token,) = [each for each in made if each is not None]
    assert (len(made), Accounts(opened[0]).authenticate(token)) == (8, Person("owner", "owner"))
    assert len(Accounts(opened[0]).tokens()) == 1
    for each in opened:
        each.close()


def test_grants_and_what_is_visible(accounts: Accounts) -> None:
    ada, bob, owner = Person("ada", "analyst"), Person("bob", "analyst"), accounts.add("olga", "owner")
    accounts.grant("ada", "patients", ["research", "teaching", "research"])
    accounts.grant("ada", "patients", ["research"])
    assert (accounts.visible(ada), accounts.visible(bob), accounts.visible(owner)) == (["patients"], [], ["patients", "visits"])
    assert accounts.purposes(ada, "patients") == ("research", "teaching")
    assert accounts.may(ada, "patients", "research")
    assert not accounts.may(ada, "patients", "marketing")
    assert not accounts.may(bob, "patients", "research")
    for dataset in ("visits", "no such dataset"):  # there, or not: an analyst cannot tell
        assert (accounts.may(ada, dataset, "research"), accounts.purposes(ada, dataset)) == (False, ())
    assert accounts.may(owner, "visits", "anything")
    assert not accounts.may(owner, "no such dataset", "anything")
    accounts.withdraw("ada", "patients", ["teaching"])
    assert accounts.purposes(ada, "patients") == ("research",)
    accounts.withdraw("ada", "patients")
    accounts.withdraw("ada", "patients")
    assert (accounts.visible(ada), accounts.may(ada, "patients", "research")) == ([], False)
    accounts.grant("ada", "patients", ["research"])
    assert accounts.may(ada, "patients", "research")
    with accounts.database.reading() as connection:  # nothing is ever removed
        assert connection.execute(sql.select(sql.func.count()).select_from(sql_tables.grants)).scalar() == 3


def test_odd_names_are_kept_as_they_are(accounts: Accounts) -> None:
    for name in ODD:
        if name != "ada":
            accounts.add(name)
    tokens = {name: accounts.issue(name)[0] for name in ODD}
    assert all(accounts.authenticate(token) == Person(name, "analyst") for name, token in tokens.items())
    accounts.grant(ODD[1], "patients", ODD)
    assert accounts.purposes(Person(ODD[1], "analyst"), "patients") == tuple(sorted(ODD))
    assert [accounts.visible(Person(name, "analyst")) for name in ODD].count([]) == len(ODD) - 1
    assert {person.name for person in accounts.people()} == {*ODD, "bob"}


def test_what_is_refused(accounts: Accounts) -> None:
    accounts.add("olga", "owner")
    never = (timedelta(0), timedelta(-1), timedelta.max, START, datetime(2027, 1, 1), None, "1h")
    for step, match in (
        (lambda: accounts.add("ada"), "exists already"),
        (lambda: accounts.add("eve", "admin"), "role"),
        *((lambda name=name: accounts.add(name), "expected") for name in ("", " ada", "a\0", "\ud800", "x" * 201, None, 7)),
        (lambda: accounts.issue("nobody"), "not known"),
        *((lambda end=end: accounts.issue("ada", end), "expires") for end in never),
        (lambda: accounts.grant("nobody", "patients", ["research"]), "analyst 'nobody'"),
        (lambda: accounts.grant("olga", "patients", ["research"]), "analyst 'olga'"),
        (lambda: accounts.grant("ada", "other", ["research"]), "dataset 'other'"),
        *((lambda given=given: accounts.grant("ada", "patients", given), "purpose") for given in ([], "research", [""], [None])),
    ):
        with pytest.raises(LedgerError, match=match):
            step()
    assert (accounts.tokens(), accounts.visible(Person("ada", "analyst"))) == ([], [])
