"""The registry of datasets: a name for ever, where the rows are, and the public schema that its owner has reviewed.

Whether a dataset is closed is in the ledger and nowhere else, so the two can never disagree.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from urllib.parse import unquote

import sqlalchemy as sql

from hedgerow.accounting.units import Unit
from hedgerow.curator.ledger.balances import DATASET, Balance
from hedgerow.curator.ledger.chain import REGISTER
from hedgerow.curator.ledger.checks import checked_name, checked_new_name, checked_text
from hedgerow.curator.ledger.database import Database
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.records import record
from hedgerow.curator.ledger.sql_tables import datasets
from hedgerow.curator.ledger.transactions import JoinedTransaction, exclusive_transaction, now, timestamp
from hedgerow.engines.engine import Engine, Progress
from hedgerow.engines.files import CSVTable
from hedgerow.engines.opening import open_place
from hedgerow.engines.persons import KEY_BYTES
from hedgerow.engines.postgres import masked
from hedgerow.engines.sql import IN_MEMORY, SQLTable
from hedgerow.errors import LedgerError, SchemaError, TableError
from hedgerow.schema import toml as schema_toml
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema

Place = str | os.PathLike[str] | CSVTable | SQLTable


@dataclass(frozen=True)
class Dataset:
    """What was registered. The place is for the owner; name, schema and closed are for whoever it is granted to."""

    name: str
    place: str | SQLTable
    schema: Schema
    closed: bool

    @property
    def rows(self) -> str | CSVTable | SQLTable:
        """The place, with how its files are written: a release or a plan of an analyst does not say it of this table."""
        if self.schema.csv is None or isinstance(self.place, SQLTable):
            return self.place
        return CSVTable(self.place, **asdict(self.schema.csv))


class Registry:
    """The datasets in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def register(self, name: str, place: Place, schema: Schema) -> Dataset:
        """Add a dataset: the place is opened to see that it has the declared columns, and no row is read."""
        checked_new_name(name, "dataset")
        if isinstance(place, CSVTable):  # how files are written stands in the schema
            schema, place = replace(schema, csv=place.dialect), place.path
        text = _reviewed(schema)
        where = _absolute(place)
        with self.database.reading() as connection:
            _refuse_used(connection, name, schema)  # before a place is opened for nothing
        open_place(where, Codebook(schema), key=bytes(KEY_BYTES)).close()  # no row of a person is chosen: none is read
        with exclusive_transaction(self.database) as connection:
            _refuse_used(connection, name, schema)
            connection.execute(datasets.insert().values(name=name, place=_to_json(where), schema=text, made=timestamp(now())))
            record(connection, REGISTER, name)
        return Dataset(name, where, schema, False)

    def get(self, name: str) -> Dataset | None:
        """The dataset of this name, or None: what to say about it depends on the person."""
        statement = sql.select(datasets).where(datasets.c.name == checked_name(name, "dataset"))
        with self.database.reading() as connection:
            row = connection.execute(statement).one_or_none()
            return None if row is None else _dataset(connection, row.name, row.place, row.schema)

    def names(self) -> list[str]:
        """All that were ever registered, closed ones too."""
        with self.database.reading() as connection:
            return sorted(connection.execute(sql.select(datasets.c.name)).scalars())

    def open_rows(self, name: str, bins: int = 5, n_jobs: int = 1, progress: Progress | None = None, key: bytes = b"") -> Engine:
        """The engine for the rows, whose headers are checked anew. Reserve first: a request that is refused must not come here."""
        found = self.get(name)
        if found is None:
            raise LedgerError(f"dataset {name!r} is not known; expected one that was registered. Nothing was opened.")
        if found.closed:
            raise LedgerError(f"dataset {name!r} is closed: its owner has ended the connection. Nothing was opened.")
        return open_place(found.place, Codebook(found.schema, bins), n_jobs, progress, key)

    def close(self, name: str, what: str = "") -> Dataset:
        """End it for ever, in the ledger. One that never had a ceiling gets 0 first: the ledger closes only what it knows."""
        with exclusive_transaction(self.database) as connection:
            row = connection.execute(sql.select(datasets).where(datasets.c.name == checked_name(name, "dataset"))).one_or_none()
            if row is None:
                raise LedgerError(f"dataset {name!r} is not known; expected one that was registered. Nothing was closed.")
            ledger = Ledger(JoinedTransaction(self.database, connection))
            if ledger.balance(name).epsilon is None:
                ledger.ceiling(name, 0, what="closed before anything could be spent")
            ledger.close(name, what)
            return _dataset(connection, row.name, row.place, row.schema)


def _dataset(connection: sql.Connection, name: str, place: str, schema: str) -> Dataset:
    return Dataset(name, _from_json(place), schema_toml.read(schema, f"schema of {name!r}"), _account(connection, name).closed)


def _account(connection: sql.Connection, name: str) -> Balance:
    account = (name, DATASET, "")
    return LedgerTables(connection).accounts([account])[account]


def _refuse_used(connection: sql.Connection, name: str, schema: Schema) -> None:
    there = connection.execute(sql.select(datasets.c.name).where(datasets.c.name == name)).first() is not None
    account, unit = _account(connection, name), Unit.of(schema)
    if account.unit is not None and account.unit != unit:
        raise LedgerError(
            f"dataset {name!r}: the ledger counts it in {account.unit.words}, and this schema in {unit.words}. Nothing was registered. "
            "Take the same person and rows_per_person, or another name."
        )
    if there or account.closed:
        raise LedgerError(
            f"dataset {name!r} exists or existed already; expected a name that was never used, since the ledger speaks of datasets by "
            "their names. Nothing was registered."
        )


def check_reviewed(schema: Schema) -> Schema:
    """The schema, if a person has reviewed all of it and it can be kept."""
    _reviewed(schema)
    return schema


def _reviewed(schema: Schema) -> str:
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema: got {type(schema).__name__}; expected a Schema, as schema_toml.read gives it.")
    if schema.unreviewed:
        raise SchemaError(
            f"schema: the entries {', '.join(schema.unreviewed)} were read from data and are not reviewed. Check them against public "
            "knowledge, then `hedgerow schema review FILE --accept`. Nothing was registered."
        )
    text = schema_toml.write(schema)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SchemaError("schema: it has a name or value that UTF-8 cannot write; expected plain text. Nothing was registered.") from None
    return text


def _absolute(place: Place) -> str | SQLTable:
    """The place, whatever folder the service is started in later."""
    if isinstance(place, SQLTable):
        _refuse_password(place)
        if place.remote or place.database == IN_MEMORY:
            return place
        return SQLTable(os.path.abspath(checked_text(place.database, "database")), place.table, place.query)
    text = os.fspath(place) if isinstance(place, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text.strip():
        raise TableError(f"place: got {type(place).__name__}; expected the path of a file, a folder or a pattern, or a SQLTable.")
    checked_text(text, "place")
    if "://" in text:
        raise TableError("place: got an address; expected a path. For a database give SQLTable(address, table=…). Nothing was registered.")
    return os.path.abspath(text)


def _refuse_password(place: SQLTable) -> None:
    """A password in the database would be in every backup. The message must not repeat it, so it repeats nothing."""
    address = place.database
    if not place.remote:
        if "://" in address or "password=" in address.lower().replace(" ", ""):
            raise TableError('database: expected a DuckDB file, postgresql://user@host/name or ":memory:". Nothing was registered.')
        return
    if "***" in masked(address) or "password" in unquote(address.partition("?")[2]).lower():
        raise TableError(
            "database: the address holds a password, or something that may be one; expected postgresql://user@host:5432/name. Put the "
            "password into PGPASSWORD or ~/.pgpass of the account that runs the service. Nothing was registered."
        )


def _to_json(place: str | SQLTable) -> str:
    if isinstance(place, str):
        return json.dumps({"path": place})
    return json.dumps({"database": place.database, "table": place.table, "query": place.query})


def _from_json(text: str) -> str | SQLTable:
    found: dict[str, str] = json.loads(text)
    return found["path"] if "path" in found else SQLTable(found["database"], found["table"], found["query"])
