"""What goes wrong with a server is told by its kind: never a password, never a value of a row."""

from __future__ import annotations

import re
import secrets
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import exact as exact_answers
import pytest

from hedgerow import SQLTable
from hedgerow.engines.opening import open_place
from hedgerow.engines.postgres import PostgresSource
from hedgerow.errors import TableError
from hedgerow.schema.attributes import Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema

pytestmark = pytest.mark.postgres

MANY = "generate_series(1, 3000000) AS g"  # more than any buffer on the way holds


@contextmanager
def refused(match: str, *hidden: str) -> Iterator[None]:
    """A TableError that carries none of the hidden texts, neither in itself nor in another error behind it."""
    with pytest.raises(TableError, match=match) as caught:
        yield
    error: BaseException | None = caught.value
    assert error is not None
    assert error.__cause__ is None
    assert error.__context__ is None
    told = "".join(traceback.format_exception_only(error)) + repr(error.args)
    for text in hidden:
        assert text not in told


def password(address: str) -> str:
    found = re.search(r"://[^:]+:([^@]+)@", address)
    assert found is not None
    return found[1]


def test_a_wrong_password(address: str) -> None:
    wrong = address.replace(password(address), "hush-hush")
    with refused(r"hedgerow:\*\*\*@.*refused the account or its password.*PGPASSWORD", "hush-hush"):
        PostgresSource(wrong, "people")


def test_no_server(address: str) -> None:
    with refused("cannot be reached", "hush-hush"):
        PostgresSource("postgresql://ann:hush-hush@127.0.0.1:1/clinic", "people")


def test_an_address_that_cannot_be_understood(address: str) -> None:
    with refused("cannot be understood", "hush"):
        PostgresSource("postgresql://ann:hush%zz@127.0.0.1:1/clinic", "people")


def test_no_such_database(address: str) -> None:
    with refused("no such database", password(address)):
        PostgresSource(address.replace("/postgres", "/nowhere"), "people")


@pytest.mark.parametrize("how", ["PGPASSWORD", "PGPASSFILE"])
def test_the_password_may_come_from_elsewhere(address: str, how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret, bare = password(address), address.replace(f":{password(address)}@", "@")
    with refused("refused the account or its password", secret):
        PostgresSource(bare, query="SELECT 1 AS a")
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:*:*:{secret}\n")
    file.chmod(0o600)
    monkeypatch.setenv(how, secret if how == "PGPASSWORD" else str(file))
    with PostgresSource(bare, query="SELECT 1 AS a") as source:
        assert secret not in source.name + repr(source)


def test_no_such_table(database: Any) -> None:
    secret = password(database.address)
    with refused("no such table or view.*case and all", secret):
        PostgresSource(database.address, database.name("people"))
    with refused("no such table or view", secret):
        PostgresSource(database.address, "nowhere.people")


def test_a_table_that_the_account_may_not_read(database: Any) -> None:
    database.do("CREATE TABLE people (age int4)")
    database.do("DROP ROLE IF EXISTS hedgerow_guest")
    database.do("CREATE ROLE hedgerow_guest LOGIN PASSWORD 'guest'")
    try:
        database.do(f'GRANT USAGE ON SCHEMA "{database.schema}" TO hedgerow_guest')
        guest = database.address.replace(f"hedgerow:{password(database.address)}", "hedgerow_guest:guest")
        with refused("may not read it"):
            PostgresSource(guest, database.name("people"))
    finally:
        database.do(f'REVOKE ALL ON SCHEMA "{database.schema}" FROM hedgerow_guest')
        database.do("DROP ROLE hedgerow_guest")


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("SELECT 1 AS a; DROP TABLE people", "not one statement"),
        ("SELECT 1 AS a) AS q; DROP TABLE people; SELECT (1", "not one statement"),
        ("SELEC 1", "not one statement"),
        ("SELECT age FROM people WHERE agee > 3", "names a column that does not exist"),
        ("INSERT INTO people VALUES (3) RETURNING age", "Give one SELECT"),
        ("DELETE FROM people", "no column that can be read"),
        ("WITH gone AS (DELETE FROM people RETURNING age) SELECT age FROM gone", "Give one SELECT"),
    ],
)
def test_queries_that_are_refused_before_a_row_is_read(database: Any, query: str, match: str) -> None:
    database.do("CREATE TABLE people AS SELECT 7654321 AS age")
    people = f'"{database.schema}".people'
    with refused(match, "7654321"):
        PostgresSource(database.address, query=query.replace("people", people))
    assert database.do("SELECT age FROM people") == [(7654321,)]


def test_a_query_that_writes_by_a_function(database: Any) -> None:
    database.do("CREATE SEQUENCE numbers")
    with (
        PostgresSource(database.address, query=f"""SELECT nextval('"{database.schema}".numbers') AS a""") as source,
        refused("the query writes, and only reading is allowed|ended the query"),
        source.open(1) as (connection, relation),
    ):
        connection.execute(f"SELECT * FROM {relation}").fetchall()
    assert database.do("SELECT nextval('numbers')") == [(1,)]


def test_a_comment_at_the_end_of_a_query(database: Any) -> None:
    with PostgresSource(database.address, query="SELECT 1 AS a -- the end") as source:
        assert list(source.columns) == ["a"]


@pytest.mark.parametrize("place", [1, 2_900_000])
@pytest.mark.parametrize("arrow", [False, True])
def test_an_error_that_quotes_a_value(database: Any, place: int, arrow: bool) -> None:
    failing = f"SELECT CASE WHEN g = {place} THEN ('private-' || g + 55)::int4 ELSE g END AS a FROM {MANY}"
    database.do(f"CREATE VIEW broken AS {failing}")
    hidden = f"private-{place + 55}"
    source = PostgresSource(database.address, database.name("broken"))
    with refused("a value", hidden), source.open(2) as (connection, relation):
        if arrow:
            for _ in connection.sql(f"SELECT c0 FROM {relation}").to_arrow_reader(65_536):
                pass
        else:
            connection.execute(f"SELECT sum(c0) FROM {relation}").fetchall()
    with refused("a value", hidden), source.open(1):  # the snapshot is gone, and no other one takes its place
        pass
    source.close()


def test_whoever_reads_sees_the_failure_too_and_no_value(database: Any) -> None:
    """Or a count of the rows so far would look like a count of all."""
    query = f"SELECT CASE WHEN g = 2900000 THEN ('private-' || g)::int4 ELSE g END AS a FROM {MANY}"
    with (
        PostgresSource(database.address, query=query) as source,
        refused("a value", "private-2900000"),
        source.open(1) as (connection, relation),
        pytest.raises(duckdb.Error) as caught,
    ):
        connection.execute(f"SELECT count(c0) FROM {relation}").fetchall()
    assert "private-2900000" not in str(caught.value)


def test_a_failure_through_the_whole_engine(database: Any, application: str) -> None:
    schema = Schema([Numeric("a", 0, 10)], Target("b", ["x", "y"]))
    failing = f"SELECT CASE WHEN g = 2900000 THEN ('private-' || g)::int4 ELSE g END AS a, 'x' AS b FROM {MANY}"
    engine = open_place(SQLTable(named(database.address, application), query=failing), Codebook(schema), n_jobs=2)
    with refused("a value", "private-2900000", password(database.address)):
        exact_answers.count_rows(engine)
    del engine
    gone(database, f"SELECT state FROM pg_stat_activity WHERE application_name = '{application}'")


def named(address: str, application: str) -> str:
    """An address whose connections can be told from all others."""
    return f"{address}?application_name={application}"


def gone(database: Any, there: str) -> None:
    """The server needs a moment to notice that a client has left."""
    for _ in range(200):
        if not database.do(there):
            break
        database.do("SELECT pg_sleep(0.05)")
    assert database.do(there) == []


@pytest.fixture
def application() -> str:
    return f"test-{secrets.token_hex(4)}"


def test_a_connection_lost_between_passes(database: Any, application: str) -> None:
    source = PostgresSource(named(database.address, application), query="SELECT 1 AS a")
    with source.open(1) as (connection, relation):
        assert connection.execute(f"SELECT * FROM {relation}").fetchall() == [(1,)]
    database.end_connections(application)
    for _ in range(2):  # it does not come back by itself, with another snapshot
        with refused("connection was lost", password(database.address)), source.open(1):
            pass
    source.close()


@pytest.mark.parametrize("arrow", [False, True])
def test_a_connection_lost_in_the_middle(database: Any, application: str, arrow: bool) -> None:
    source = PostgresSource(named(database.address, application), query=f"SELECT g::text || '-private' AS a FROM {MANY}")
    with refused("connection was lost", "private", password(database.address)), source.open(1) as (connection, relation):
        if arrow:
            reader = connection.sql(f"SELECT c0 FROM {relation}").to_arrow_reader(1000)
            reader.read_next_batch()
            database.end_connections(application)
            for _ in reader:
                pass
        else:
            database.end_connections(application)
            connection.execute(f"SELECT count(c0) FROM {relation}").fetchall()
    with refused("connection was lost"), source.open(1):
        pass
    source.close()


def test_closing_ends_the_connection(database: Any, application: str) -> None:
    source = PostgresSource(named(database.address, application), query="SELECT 1 AS a")
    there = f"SELECT state FROM pg_stat_activity WHERE application_name = '{application}'"
    assert database.do(there) == [("idle in transaction",)]
    source.close()
    source.close()
    gone(database, there)
    with refused("it was closed"), source.open(1):
        pass


def test_a_refused_source_leaves_no_connection(database: Any, application: str) -> None:
    there = f"SELECT state FROM pg_stat_activity WHERE application_name = '{application}'"
    with refused("no such table"):
        PostgresSource(named(database.address, application), "nowhere")
    gone(database, there)
