"""Every test of the ledger runs on SQLite, and with `-m postgres` on a real server too, in a schema of its own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hedgerow.curator.ledger.ledger import Ledger

BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=BOTH)
def new_address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Addresses of databases that do not exist yet."""
    if request.param == "sqlite":
        yield lambda: str(tmp_path / secrets.token_hex(4))
        return
    server = os.environ.get("HEDGEROW_POSTGRES")
    if not server:
        pytest.skip("no PostgreSQL server: HEDGEROW_POSTGRES is not set. `make postgres-test` starts one.")
    import psycopg

    made: list[str] = []

    def do(statement: str) -> None:
        with psycopg.connect(server, autocommit=True) as connection:  # a new one: a test may restart the server
            connection.execute(statement)

    def new() -> str:
        made.append(f"ledger_{secrets.token_hex(6)}")
        do(f'CREATE SCHEMA "{made[-1]}"')
        return f"{server}?options=-csearch_path%3D{made[-1]}"

    yield new
    for name in made:
        do(f'DROP SCHEMA "{name}" CASCADE')


@pytest.fixture
def address(new_address: Callable[[], str]) -> str:
    return new_address()


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    """A ledger in which the dataset "patients" may cost 1."""
    opened = Ledger.open(address)
    opened.ceiling("patients", 1)
    yield opened
    opened.database.close()
