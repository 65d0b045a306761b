"""Migrations: steps from one version of the database to the next, taken by `hedgerow curator upgrade` and by nothing else.

Not Alembic: there are a few steps, each adds columns or entries, and one of them must write into the chain with the ledger's own code.
Both databases run all steps in one transaction, in which the outcome is verified; Alembic would add a dependency, a folder of scripts
and a second version number. A step that had to move rows between tables would be a reason to take it.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sql

from hedgerow.curator.ledger.chain import ANSWER, GRANT, PERSON, REGISTER, TOKEN
from hedgerow.curator.ledger.database import VERSION, Database
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.records import RECORDED, append_record, rows_of
from hedgerow.curator.ledger.sql_tables import answers, balances, datasets, entries, grants, head, people, schema_version, tokens
from hedgerow.curator.ledger.verification import Verification, verification_of
from hedgerow.errors import LedgerError

_KINDS = {people.name: PERSON, tokens.name: TOKEN, datasets.name: REGISTER, grants.name: GRANT, answers.name: ANSWER}


def upgrade(database: Database) -> tuple[int, Verification]:
    """Bring a database to this version, or leave it as it is. Returns the version that it had, and what was found afterwards."""
    with database.writing() as connection:
        before = version = int(connection.execute(sql.select(sql.func.max(schema_version.c.version))).scalar_one() or 0)
        if not 0 < version < VERSION:
            raise LedgerError(
                f"ledger {database.name!r} has version {version}; expected one before {VERSION}, this hedgerow's. Nothing was changed."
            )
        while version < VERSION:
            STEPS[version](connection)
            version += 1
        connection.execute(schema_version.update().values(version=version))
        found = verification_of(LedgerTables(connection), None)
        if not found.sound:
            raise LedgerError(f"the ledger is {found}\nNothing was changed. Look at it with the hedgerow that wrote it.")
    return before, found


def _to_2(connection: sql.Connection) -> None:
    """Units. Entries keep their hashes, and have none."""
    for table in (entries, balances):
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN unit TEXT")


def _to_3(connection: sql.Connection) -> None:
    """Digests. Entries keep their hashes; of each row in the other tables the chain says what it is now."""
    connection.exec_driver_sql(f"ALTER TABLE {entries.name} ADD COLUMN digest TEXT")
    connection.exec_driver_sql(f"ALTER TABLE {head.name} ADD COLUMN noted BIGINT")
    tables = LedgerTables(connection, lock=True)
    for table, row in list(rows_of(connection, *RECORDED)):
        append_record(tables, _KINDS[table.name], row, "as it was at the upgrade to version 3")


STEPS: dict[int, Callable[[sql.Connection], None]] = {1: _to_2, 2: _to_3}
