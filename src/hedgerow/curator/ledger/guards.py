"""Database triggers that keep the ledger append-only: an entry of the ledger is added after the last one and never changed or removed.

They stop accidents. Whoever may change the database may drop them too; that is found by the chain of hashes, and by a head that was
written down elsewhere.
"""

from __future__ import annotations

import sqlalchemy as sql

TABLE = "ledger_entries"
NAMES = ("ledger_entries_at_the_end", "ledger_entries_kept", "ledger_entries_unchanged")
_MESSAGE = "entries of the ledger are added at its end, and never changed or removed"

# REPLACE would remove an entry without a word, so an insert is looked at before it conflicts with anything.
_SQLITE = (
    f"""CREATE TRIGGER ledger_entries_at_the_end BEFORE INSERT ON {TABLE}
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM {TABLE})
      OR EXISTS (SELECT 1 FROM {TABLE} WHERE key = NEW.key AND kind = NEW.kind)
    BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END""",
    f"CREATE TRIGGER ledger_entries_unchanged BEFORE UPDATE ON {TABLE} BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END",
    f"CREATE TRIGGER ledger_entries_kept BEFORE DELETE ON {TABLE} BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END",
)

_POSTGRESQL = (
    f"""CREATE FUNCTION ledger_entries_guard() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'INSERT' THEN
            IF NEW.seq = (SELECT coalesce(max(seq), 0) + 1 FROM {TABLE}) THEN RETURN NEW; END IF;
        END IF;
        RAISE EXCEPTION '{_MESSAGE}';
    END $$""",
    f"CREATE TRIGGER ledger_entries_at_the_end BEFORE INSERT ON {TABLE} FOR EACH ROW EXECUTE FUNCTION ledger_entries_guard()",
    f"CREATE TRIGGER ledger_entries_unchanged BEFORE UPDATE OR DELETE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION ledger_entries_guard()",
    f"CREATE TRIGGER ledger_entries_kept BEFORE TRUNCATE ON {TABLE} FOR EACH STATEMENT EXECUTE FUNCTION ledger_entries_guard()",
)


def guards_of(dialect: str) -> tuple[str, ...]:
    """The statements that make them."""
    return _SQLITE if dialect == "sqlite" else _POSTGRESQL


def missing_guards(connection: sql.Connection) -> tuple[str, ...]:
    """Which of them are not there, or are switched off: after a restore that forgot them, or by somebody's hand."""
    if connection.dialect.name == "sqlite":
        statement = f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{TABLE}'"
    else:
        statement = f"SELECT tgname FROM pg_trigger WHERE tgrelid = '{TABLE}'::regclass AND tgenabled <> 'D'"
    there = set(connection.exec_driver_sql(statement).scalars())
    return tuple(name for name in NAMES if name not in there)
