"""What the chain says of the tables beside it: people, tokens, datasets, grants, answers, requests.

Whoever adds or changes a row of them appends, in the same transaction, an entry with the digest of the row as it is then. `verify`
computes the digests of all rows again: a row that was altered, put in or taken out by hand does not have the digest that the chain has.
The digest of a request stands in the entry of its reservation, and covers all but the reason that is noted later where an answer is lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sql

from hedgerow.curator.ledger.chain import ANSWER, GRANT, PERSON, REGISTER, REVOKE, TOKEN, WITHDRAW, LedgerEntry
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.sql_tables import answers, datasets, grants, people, requests, tokens

TABLES = {
    PERSON: people, TOKEN: tokens, REVOKE: tokens, REGISTER: datasets, GRANT: grants, WITHDRAW: grants, ANSWER: answers,
}  # fmt: skip
CHANGES = (REVOKE, WITHDRAW)  # of a row that is there
Record = tuple[str, str]  # a table, and which of its rows

_NAMED_BY = {
    people.name: "name", tokens.name: "id", datasets.name: "name", grants.name: "id",
    answers.name: "reservation", requests.name: "reservation",
}  # fmt: skip
_WORDS = {
    people.name: "person", tokens.name: "token", datasets.name: "dataset", grants.name: "grant",
    answers.name: "answer to", requests.name: "request that paid with",
}  # fmt: skip


def record(connection: sql.Connection, kind: str, which: Any) -> LedgerEntry:
    """Append an entry about a row that was just written. which: its name or id; of an answer, the reservation that paid for it."""
    table = TABLES[kind]
    row = connection.execute(sql.select(table).where(table.c[_NAMED_BY[table.name]] == which)).one()
    return append_record(LedgerTables(connection, lock=True), kind, row._asdict())


def append_record(tables: LedgerTables, kind: str, row: Mapping[str, Any], what: str = "") -> LedgerEntry:
    dataset, key, analyst, purpose = row.get("dataset", ""), None, row.get("analyst"), row.get("purpose")
    if kind == PERSON:
        analyst, what = row["name"], what or row["role"]
    elif kind == REGISTER:
        dataset = row["name"]
    elif kind == ANSWER:
        key, what = row["reservation"], what or row["content_type"]
        reserved = tables.reservation(key)
        assert reserved is not None  # it has paid
        dataset, analyst, purpose = reserved.dataset, row["person"], reserved.purpose
    else:
        key, analyst = str(row["id"]), row.get("person", analyst)
    return tables.append(kind, dataset, key=key, analyst=analyst, purpose=purpose, what=what, digest=digest_of(row))


def record_of(entry: LedgerEntry) -> Record:
    """Which row an entry is about; ValueError where it does not say."""
    which = entry.analyst if entry.kind == PERSON else entry.dataset if entry.kind == REGISTER else entry.key
    if not which:
        raise ValueError("a record names no row")
    return TABLES[entry.kind].name, which


def digest_of(row: Mapping[str, Any]) -> str:
    """SHA-256 over a row: canonical JSON as of entries; bytes stand in it by their own SHA-256."""
    content = {name: hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else value for name, value in row.items()}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


RECORDED = (people, datasets, tokens, grants, answers)  # an entry of its own speaks of each of their rows


def rows_of(connection: sql.Connection, *tables: sql.Table) -> Iterator[tuple[sql.Table, Mapping[str, Any]]]:
    """Rows that the chain speaks of. Of tables that were added later a copy may have none."""
    for table in filter(lambda table: table is not requests or sql.inspect(connection).has_table(table.name), tables):
        order = list(table.primary_key.columns)
        for row in connection.execute(sql.select(table).order_by(*order), execution_options={"yield_per": 50}):
            content = row._asdict()
            if table is requests:
                del content["reason"]
            yield table, content


def record_problems(connection: sql.Connection, records: dict[Record, str], without: set[Record]) -> Iterator[str]:
    """What differs between the rows and the digests that the chain has last. without: rows from before there were digests of them."""
    left = dict(records)
    for table, row in rows_of(connection, *RECORDED, requests):
        named = (table.name, str(row[_NAMED_BY[table.name]]))
        if named in without:
            continue
        expected = left.pop(named, None)
        try:
            found = digest_of(row)
        except (TypeError, ValueError):  # SQLite holds bytes in any column
            found = ""
        if expected is None:
            yield f"the {_words(named)} was put in by hand: no entry speaks of it"
        elif found != expected:
            yield f"the {_words(named)} was altered: it is not what the ledger says was written"
    for named in left:
        yield f"the {_words(named)} is missing: an entry speaks of it"


def _words(named: Record) -> str:
    return f"{_WORDS[named[0]]} {named[1]!r:.100}"
