"""A real server, started by `scripts/postgres.py run`, and a schema of its own for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from typing import Any

import pytest


class Database:
    """An owner's connection beside the one under test."""

    def __init__(self, address: str) -> None:
        from adbc_driver_postgresql import dbapi

        self.address = address
        self.schema = f"Test {secrets.token_hex(4)}"  # blanks and capitals: every name must be quoted
        self._connection = dbapi.connect(address, autocommit=True)
        self.do(f'CREATE SCHEMA "{self.schema}"')
        self.do(f'SET search_path = "{self.schema}"')

    def do(self, statement: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def name(self, table: str) -> str:
        return f"{self.schema}.{table}"

    def end_connections(self, application: str) -> None:
        """As an administrator does it; returns when they are gone."""
        found = f"FROM pg_stat_activity WHERE application_name = '{application}'"
        assert self.do(f"SELECT pg_terminate_backend(pid, 10000) {found}")
        assert self.do(f"SELECT count(*) {found}") == [(0,)]

    def close(self) -> None:
        self.do(f'DROP SCHEMA "{self.schema}" CASCADE')
        self._connection.close()


@pytest.fixture
def address() -> str:
    given = os.environ.get("HEDGEROW_POSTGRES")
    if not given:
        pytest.skip("no PostgreSQL server: HEDGEROW_POSTGRES is not set. `make postgres-test` starts one.")
    pytest.importorskip("adbc_driver_postgresql")
    return given


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    database = Database(address)
    yield database
    database.close()
