"""The tables beside the ledger: people, tokens, datasets, grants and stored answers. No row of them is ever removed."""

from __future__ import annotations

import sqlalchemy as sql

tables = sql.MetaData()  # of the whole database: the ledger's tables are added in database.py

people = sql.Table(
    "curator_people",
    tables,
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("role", sql.Text, sql.CheckConstraint("role IN ('owner', 'analyst')"), nullable=False),
    sql.Column("made", sql.Text, nullable=False),
)

# The id is for people to point at a token; it is drawn by itself, so that it tells nothing about the secret.
tokens = sql.Table(
    "curator_tokens",
    tables,
    sql.Column("id", sql.Text, primary_key=True),
    sql.Column("person", sql.Text, sql.ForeignKey(people.c.name), nullable=False),
    sql.Column("hash", sql.Text, nullable=False, unique=True),
    sql.Column("made", sql.Text, nullable=False),
    sql.Column("expires", sql.Text, nullable=False),
    sql.Column("revoked", sql.Text),
)

# Whether a dataset is closed is said by the ledger alone.
datasets = sql.Table(
    "curator_datasets",
    tables,
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("place", sql.Text, nullable=False),
    sql.Column("schema", sql.Text, nullable=False),
    sql.Column("made", sql.Text, nullable=False),
)

grants = sql.Table(
    "curator_grants",
    tables,
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
    tables,
    sql.Column("person", sql.Text, sql.ForeignKey(people.c.name), primary_key=True),
    sql.Column("key", sql.Text, primary_key=True),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("reservation", sql.Text, nullable=False),
    sql.Column("when", sql.Text, nullable=False),
    sql.Column("content_type", sql.Text, nullable=False),
    sql.Column("content", sql.LargeBinary, nullable=False),
)
answers_paid_by = sql.Index("curator_answers_paid_by", answers.c.reservation)
