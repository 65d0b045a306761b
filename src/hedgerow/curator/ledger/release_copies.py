"""The owner's copies of releases, compared with the answers that were paid for.

A copy that the ledger does not know and that has the signature of the service was paid for in a part of the history that is lost: after
the copy of the database was made that was put back. Once an owner has accepted that, it is a note; what has no signature of the service
stays a problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import msgspec
import sqlalchemy as sql

from hedgerow.curator.ledger.chain import ACCEPT, KEY
from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.registry import Registry
from hedgerow.curator.ledger.sql_tables import answers, entries
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.release.document import Document, codebook_of, parse
from hedgerow.release.files import read_document
from hedgerow.schema.toml import write

RELEASES = "releases"
COUNT_IT = ": count it as spent"


@dataclass(frozen=True)
class CopyFinding:
    """A copy that is not as it was answered. lost: the service made it after the copy of the ledger that its owner has accepted.

    datasets: those that it may have cost so much, since they have its schema
    """

    why: str
    lost: bool = False
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    datasets: tuple[str, ...] = ()


def copy_problems(database: Database, folder: Path | None = None, sound: bool = True) -> Iterator[str]:
    """What is wrong with the copies: see `copy_findings`."""
    return (found.why for found in copy_findings(database, folder, sound) if not found.lost)


def copy_findings(database: Database, folder: Path | None = None, sound: bool = True) -> Iterator[CopyFinding]:
    """What is not as it was answered. folder: of the copies; without it, that beside the database. A copy that is missing is no fault.

    sound: whether the ledger is; nothing is accepted of one that misses heads now
    """
    if folder is None:
        if database.file is None:
            return
        folder = database.file.parent / RELEASES
    copies = sorted(folder.glob("*.json")) if folder.is_dir() else []
    unknown = None
    for copy in copies:
        with database.reading() as connection:
            content = connection.execute(sql.select(answers.c.content).where(answers.c.reservation == copy.stem)).scalar_one_or_none()
        if content is None:
            unknown = unknown or _Unknown(database, sound)
            yield unknown.found(copy)
        elif not _same(copy, content):
            yield CopyFinding(f"the release {copy.name!r} in {folder.name}/ was altered: it is not what was answered")


class _Unknown:
    """Copies that no answer is known of."""

    def __init__(self, database: Database, sound: bool) -> None:
        self._database, self._registry = database, Registry(database)
        with database.reading() as connection:
            told = list(LedgerTables(connection).entries(entries.c.kind.in_((KEY, ACCEPT))))
        self._keys = {entry.what for entry in told if entry.kind == KEY}
        self._accepted = sound and any(entry.kind == ACCEPT for entry in told)
        self._seen: set[str] = set()  # hashes

    def found(self, copy: Path) -> CopyFinding:
        name = f"the release {copy.name!r} in {copy.parent.name}/"
        document = self._signed(copy)
        if document is None:
            after = " (A score has no signature: of one from after the copy, count the ε as spent, and take the file out.)"
            return CopyFinding(f"{name} was put in by hand: nobody has paid for it{after if self._accepted else ''}")
        if document.content_hash in self._seen or self._answered(msgspec.json.encode(document)):
            return CopyFinding(f"{name} was put in by hand: it is another release under a second name")
        self._seen.add(document.content_hash)
        datasets, certificate = self._datasets(document), document.certificate
        cost = f"{certificate.loss} on {' or '.join(map(repr, datasets)) or 'a dataset that this ledger does not have'}"
        if self._accepted:
            why = f"{name} was made after the copy was taken that was accepted ({cost}){COUNT_IT}"
            return CopyFinding(why, True, Fraction(certificate.epsilon or 0), Fraction(certificate.delta or 0), datasets)
        return CopyFinding(
            f"{name} has the signature of this service, and the ledger does not know it ({cost}): it was paid for after this copy of the "
            "ledger was taken. Put the right one back, or go on without it (`hedgerow curator accept`) and count it as spent"
        )

    def _signed(self, copy: Path) -> Document | None:
        """The release, with the signatures of the service alone; None where it is none, or has none of them."""
        try:
            document = parse(read_document(copy))
        except ReleaseError:
            return None
        own = [signature for signature in document.signatures if signature.key in self._keys]
        return msgspec.structs.replace(document, signatures=own) if own else None

    def _answered(self, content: bytes) -> bool:
        with self._database.reading() as connection:
            return connection.execute(sql.select(answers.c.reservation).where(answers.c.content == content)).first() is not None

    def _datasets(self, document: Document) -> tuple[str, ...]:
        """A release names no dataset, so those that have its schema."""
        try:
            schema = write(codebook_of(document.schema, document.bins).schema)
            known = [found for found in map(self._registry.get, self._registry.names()) if found is not None]
        except HedgerowError:
            return ()
        return tuple(found.name for found in known if write(found.schema) == schema)


def _same(copy: Path, content: bytes) -> bool:
    try:
        return read_document(copy).rstrip(b"\n") == content.rstrip(b"\n")
    except ReleaseError:
        return False
