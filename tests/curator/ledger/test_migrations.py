"""From books that earlier versions wrote to this one: all of it or nothing, with a copy first."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest
from curator.ledger.forging import forge

from hedgerow.curator.ledger.accounts import Accounts
from hedgerow.curator.ledger.answers import Answers
from hedgerow.curator.ledger.database import FILE, VERSION, database_at, open_database, read_database
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.migrations import STEPS, upgrade
from hedgerow.curator.ledger.registry import Registry
from hedgerow.errors import LedgerError

DATA = Path(__file__).parents[2] / "data"
HEAD = "12:2e01d2ae90d0cdbaa8b258d4602fb28d76cc2e545c4fce7b2c8e64b15e772bc9"  # of the books of version 2


def written_by(version: int, folder: Path) -> Path:
    """Books as that version left them."""
    folder.mkdir()
    file = sqlite3.connect(folder / FILE)
    file.execute("PRAGMA journal_mode = WAL")
    file.executescript((DATA / f"ledger-v{version}.sql").read_text())
    file.close()
    return folder


@pytest.mark.parametrize("version", list(STEPS))
def test_every_version_is_refused_until_it_is_upgraded(version: int, tmp_path: Path) -> None:
    folder = written_by(version, tmp_path / "curator")
    before = (folder / FILE).read_bytes()
    for opening in (open_database, read_database):
        with pytest.raises(LedgerError, match=rf"version {version}; this hedgerow knows version {VERSION}\..*hedgerow curator upgrade"):
            opening(folder)
    assert (folder / FILE).read_bytes() == before
    with database_at(folder, make=False) as database:
        assert upgrade(database)[0] == version
        with pytest.raises(LedgerError, match="expected one before"):
            upgrade(database)
    with open_database(folder) as database:
        assert Ledger(database).verify().sound


def test_nothing_is_lost_and_old_heads_stay_right(tmp_path: Path) -> None:
    folder = written_by(2, tmp_path / "curator")
    with database_at(folder, make=False) as database:
        upgrade(database)
    with open_database(folder) as database:
        ledger, accounts = Ledger(database), Accounts(database)
        found = ledger.verify(HEAD)
        assert (found.sound, found.unguarded) == (True, ())
        told = [(entry.kind, entry.analyst) for entry in ledger.entries(12)]
        people = [("person", "ada"), ("person", "bob"), ("person", "owner")]
        assert told[:3] == people
        assert sorted(kind for kind, _ in told) == sorted(["person", "token", "grant"] * 3 + ["register"] + ["answer"] * 2)
        assert (ledger.balance("patients").spent, ledger.balance("patients", analyst="ada").epsilon) == (Fraction(9, 10), Fraction(3, 2))
        assert [(grant.analyst, grant.purpose) for grant in accounts.grants()] == [("ada", "care"), ("ada", "research")]
        assert [reserved.what for reserved in ledger.unsettled()] == ["lost in a crash"]
        (one, *_) = ledger.last_reservations("patients", "ada", 10)[::-1]
        answer = Answers(database).paid_by("ada", one.key)
        assert answer is not None
        assert b"hedgerow-release" in answer.content
        assert Registry(database).names() == ["patients"]
        accounts.withdraw("ada", "patients", ["care"])  # what is changed later is recorded as before
        accounts.revoke(accounts.tokens("ada")[0].id)
        ledger.settle("0" * 32, "0.1")
        assert ledger.verify(HEAD).sound
        forge(ledger, "UPDATE curator_people SET role = 'owner' WHERE name = 'bob'")
        assert "person 'bob' was altered" in str(ledger.verify())


def test_books_that_are_not_sound_stay_as_they_are(tmp_path: Path) -> None:
    folder = written_by(2, tmp_path / "curator")
    file = sqlite3.connect(folder / FILE)
    file.executescript("DROP TRIGGER ledger_entries_unchanged; UPDATE ledger_entries SET epsilon = '0.1' WHERE seq = 5")
    file.close()
    with database_at(folder, make=False) as database:
        with pytest.raises(LedgerError, match=r"(?s)entry 5: was altered.*Nothing was changed"):
            upgrade(database)
        assert database.version() == 2
