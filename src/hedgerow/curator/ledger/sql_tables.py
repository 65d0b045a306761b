"""Table definitions of the curator's database, in SQLAlchemy Core: people, tokens, datasets, grants, answers, and the ledger.

No row of them is ever removed.
"""

from __future__ import annotations

import sqlalchemy as sql

metadata = sql.MetaData()

people = sql.Table(
    "curator_people",
    metadata,
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("role", sql.Text, sql.CheckConstraint("role IN ('owner', 'analyst')"), nullable=False),
    sql.Column("made", sql.Text, nullable=False),
)

# The id is for people to point at a token; it is drawn by itself, so that it tells nothing about the secret.
tokens = sql.Table(
    "curator_tokens",
    metadata,
    sql.Column("id", sql.Text, primary_key=True),
    sql.Column("person", sql.Text, sql.ForeignKey(people.c.name), nullable=False),
    sql.Column("hash", sql.Text, nullable=False, unique=True),
    sql.Column("made", sql.Text, nullable=False),
    sql.Column("expires", sql.Text, nullable=False),
    sql.Column("revoked", sql.Text),
)

# Whether a dataset is closed is in the ledger only.
datasets = sql.Table(
    "curator_datasets",
    metadata,
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("place", sql.Text, nullable=False),
    sql.Column("schema", sql.Text, nullable=False),
    sql.Column("made", sql.Text, nullable=False),
)

grants = sql.Table(
    "curator_grants",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("analyst", sql.Text, sql.ForeignKey(people.c.name), nullable=False),
    sql.Column("dataset", sql.Text, sql.ForeignKey(datasets.c.name), nullable=False),
    sql.Column("purpose", sql.Text, nullable=False),
    sql.Column("made", sql.Text, nullable=False),
    sql.Column("withdrawn", sql.Text),
    sql.Index("curator_grants_of_whom", "analyst", "dataset", "purpose"),
)

answers = sql.Table(
    "curator_answers",
    metadata,
    sql.Column("person", sql.Text, sql.ForeignKey(people.c.name), primary_key=True),
    sql.Column("key", sql.Text, primary_key=True),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("reservation", sql.Text, nullable=False),
    sql.Column("when", sql.Text, nullable=False),
    sql.Column("content_type", sql.Text, nullable=False),
    sql.Column("content", sql.LargeBinary, nullable=False),
)
answers_by_reservation = sql.Index("curator_answers_paid_by", answers.c.reservation)

# ------------------------------------------------------------ the ledger

_number = sql.BigInteger().with_variant(sql.Integer, "sqlite")

# Which request a reservation was made for, written with it: a request that is sent again goes on with what is paid.
# reason: why its answer was lost, where it was.
requests = sql.Table(
    "curator_requests",
    metadata,
    sql.Column("reservation", sql.Text, primary_key=True),
    sql.Column("seq", _number, nullable=False),
    sql.Column("person", sql.Text, nullable=False),
    sql.Column("key", sql.Text, nullable=False),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("reason", sql.Text),
    sql.Index("curator_requests_by_key", "person", "key", "seq"),
)

# The number of the service that was started last: an earlier one that has lost its lock reserves nothing more.
service = sql.Table(
    "curator_service",
    metadata,
    sql.Column("id", sql.Integer, sql.CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    sql.Column("number", _number, nullable=False),
)

schema_version = sql.Table("hedgerow_schema", metadata, sql.Column("version", sql.Integer, primary_key=True, autoincrement=False))

entries = sql.Table(
    "ledger_entries",
    metadata,
    sql.Column("seq", _number, primary_key=True, autoincrement=False),
    sql.Column("when", sql.Text, nullable=False),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("key", sql.Text),
    sql.Column("dataset", sql.Text, nullable=False),
    sql.Column("analyst", sql.Text),
    sql.Column("purpose", sql.Text),
    sql.Column("what", sql.Text, nullable=False),
    sql.Column("epsilon", sql.Text),
    sql.Column("delta", sql.Text),
    sql.Column("previous", sql.Text, nullable=False),
    sql.Column("hash", sql.Text, nullable=False),
    sql.Column("unit", sql.Text),
    sql.Column("digest", sql.Text),
    sql.Index("ledger_entries_once", "key", "kind", unique=True),  # a reservation is made, opened, settled and released once
    sql.Index("ledger_entries_of_whom", "dataset", "analyst", "purpose"),
)

RESERVES = sql.literal_column("kind") == sql.literal_column("'reserve'")  # as an index is chosen by it, it has no parameter
entries_reserved = sql.Index("ledger_entries_reserved", entries.c.dataset, entries.c.seq, sqlite_where=RESERVES, postgresql_where=RESERVES)
entries_reserved_by = sql.Index(
    "ledger_entries_reserved_by", entries.c.dataset, entries.c.analyst, entries.c.seq, sqlite_where=RESERVES, postgresql_where=RESERVES
)
ADDED = (requests, service, entries_reserved, entries_reserved_by, answers_by_reservation)  # a database may be older than they are

# What follows from the entries and is kept so that a reserve need not add them up again. `verify` does, and compares.
head = sql.Table(
    "ledger_head",
    metadata,
    sql.Column("id", sql.Integer, sql.CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    sql.Column("seq", _number, nullable=False),
    sql.Column("hash", sql.Text, nullable=False),
    sql.Column("noted", _number),  # the number of a head that is in the file of heads, so that its end is missed
)

balances = sql.Table(
    "ledger_balances",
    metadata,
    sql.Column("dataset", sql.Text, primary_key=True),
    sql.Column("scope", sql.Text, primary_key=True),
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("ceiling_epsilon", sql.Text),
    sql.Column("ceiling_delta", sql.Text),
    sql.Column("spent_epsilon", sql.Text, nullable=False),
    sql.Column("spent_delta", sql.Text, nullable=False),
    sql.Column("closed", sql.Boolean(create_constraint=False), nullable=False),
    sql.Column("unit", sql.Text),
)
