"""A ledger changed by hand, as somebody would who owns the database."""

from __future__ import annotations

from hedgerow.curator.ledger.ledger import Ledger

TRIGGERS = ("ledger_entries_at_the_end", "ledger_entries_unchanged", "ledger_entries_kept")


def forge(ledger: Ledger, *statements: str) -> None:
    """The triggers are dropped first; then the statements run as they are."""
    where = "" if ledger.database.embedded else " ON ledger_entries"
    with ledger.database.writing() as connection:
        for name in TRIGGERS:
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}{where}")
        for statement in statements:
            connection.exec_driver_sql(statement)
