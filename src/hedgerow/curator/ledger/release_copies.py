"""The owner's copies of releases, compared with the answers that were paid for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sql

from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.sql_tables import answers
from hedgerow.errors import ReleaseError
from hedgerow.release.files import read_document

RELEASES = "releases"


def copy_problems(database: Database, folder: Path | None = None) -> Iterator[str]:
    """What is not as it was answered. folder: of the copies; without it, that beside the database. A copy that is missing is no fault."""
    if folder is None:
        if database.file is None:
            return
        folder = database.file.parent / RELEASES
    copies = sorted(folder.glob("*.json")) if folder.is_dir() else []
    for copy in copies:
        with database.reading() as connection:
            content = connection.execute(sql.select(answers.c.content).where(answers.c.reservation == copy.stem)).scalar_one_or_none()
        if content is None:
            yield f"the release {copy.name!r} in {folder.name}/ was put in by hand: nobody has paid for it"
        elif not _same(copy, content):
            yield f"the release {copy.name!r} in {folder.name}/ was altered: it is not what was answered"


def _same(copy: Path, content: bytes) -> bool:
    try:
        return read_document(copy).rstrip(b"\n") == content.rstrip(b"\n")
    except ReleaseError:
        return False
