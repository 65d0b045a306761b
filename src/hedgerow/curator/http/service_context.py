"""Service context: the stores of one curator, opened together (ledger, accounts, registry, answers)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import sqlalchemy as sql

from hedgerow.curator.ledger.accounts import Accounts
from hedgerow.curator.ledger.answers import Answers
from hedgerow.curator.ledger.database import Database, open_database
from hedgerow.curator.ledger.heads import ENDING, KEY_FILE, ON_A_SERVER, Heads
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.paid_requests import PaidRequests
from hedgerow.curator.ledger.registry import Registry
from hedgerow.curator.ledger.release_copies import RELEASES
from hedgerow.curator.ledger.transactions import JoinedTransaction
from hedgerow.errors import LedgerError
from hedgerow.release.release import Release
from hedgerow.release.signing import load_private_key, public_text

_key_at = cache(load_private_key)  # a service has one for life, and names it with every dataset


@dataclass(frozen=True)
class Curator:
    """The stores of a curator. releases: a folder with a copy of each release, for its owner; answers are sent from the store only."""

    database: Database
    ledger: Ledger
    accounts: Accounts
    registry: Registry
    answers: Answers
    requests: PaidRequests
    releases: Path
    address: tuple[str, str | None] | None = field(default=None, repr=False)  # so that another process can open it

    @classmethod
    def open(cls, folder: str | os.PathLike[str], ledger: str | None = None) -> Curator:
        """The curator in a folder, new if there is none; its database is in the folder too, or at postgresql://…"""
        releases = Path(folder).resolve() / RELEASES
        try:
            releases.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerError(f"folder {str(folder)!r} cannot be used ({error.strerror}); expected one that can be written.") from None
        database = open_database(folder if ledger is None else ledger)
        if ledger is not None:  # the heads of a file are beside it, those of a server in the folder; the key is in the folder
            heads = releases.parent / ON_A_SERVER if database.file is None else database.file.with_name(database.file.name + ENDING)
            database.heads = Heads(heads, releases.parent / KEY_FILE).ready()
        return cls.of(database, releases, (str(releases.parent), ledger))

    @classmethod
    def of(cls, database: Database, releases: Path, address: tuple[str, str | None] | None = None) -> Curator:
        stores = Ledger(database), Accounts(database), Registry(database), Answers(database), PaidRequests(database)
        return cls(database, *stores, releases, address)

    def signed(self, release: Release) -> Release:
        """With the signature of the service, where it has a key."""
        path = self.releases.parent / KEY_FILE
        return release.signed(_key_at(path)) if path.exists() else release

    @property
    def signed_with(self) -> str | None:
        """The public key of the service; None where it does not sign."""
        path = self.releases.parent / KEY_FILE
        return public_text(_key_at(path)) if path.exists() else None

    def within(self, connection: sql.Connection) -> Curator:
        """The same stores, as one transaction sees them."""
        return Curator.of(JoinedTransaction(self.database, connection), self.releases)

    def close(self) -> None:
        self.database.close()
