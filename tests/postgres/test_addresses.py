"""What is said about an address, and names of tables: no server is needed."""

from __future__ import annotations

import sys

import pytest

from hedgerow.engines.encoding_sql import dotted
from hedgerow.engines.postgres import PostgresSource, _one_statement, _with_defaults, masked
from hedgerow.errors import TableError


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann@db.example:5432/clinic", "postgresql://ann@db.example:5432/clinic"),
        ("postgres://ann@db.example/clinic", "postgresql://ann@db.example/clinic"),
        ("postgresql:///clinic", "postgresql:///clinic"),
        ("postgresql://ann:hush@db.example:5432/clinic", "postgresql://ann:***@db.example:5432/clinic"),
        ("postgresql://ann:hu:sh@db.example/clinic", "postgresql://ann:***@db.example/clinic"),
        ("postgresql://ann:hush@hush@db.example/clinic", "postgresql://ann:***@db.example/clinic"),
        ("postgresql://ann:hush/hush@db.example/clinic", "postgresql://ann:***@db.example/clinic"),
        ("postgresql://ann:hush?hush@db.example/clinic", "postgresql://***"),
        ("postgresql://ann:hush#hush@db.example/clinic", "postgresql://ann:***@db.example/clinic"),
        ("postgresql://ann@db.example/clinic?password=hush", "postgresql://ann@db.example/clinic"),
        ("postgresql://ann@db.example/clinic?password=hu@hush", "postgresql://ann@db.example/clinic"),
        ("postgresql:///clinic?user=ann&password=x@hush", "postgresql://***"),
        ("postgresql://ann:hush", "postgresql://ann:***"),
        ("postgresql://ann:5432", "postgresql://ann:5432"),
        ("postgresql://a.example:5432,b.example:5433/clinic", "postgresql://a.example:5432,b.example:5433/clinic"),
        ("postgresql://ann@[::1]:5432/clinic", "postgresql://ann@[::1]:5432/clinic"),
    ],
)
def test_no_password_is_shown(address: str, shown: str) -> None:
    assert masked(address) == shown
    assert "hush" not in shown


def test_an_address_of_another_kind_is_refused_without_being_repeated() -> None:
    with pytest.raises(TableError, match="expected an address") as caught:
        masked("mysql://ann:hush@db.example/clinic")
    assert "hush" not in str(caught.value)


def test_defaults_stand_behind_what_the_address_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    assert "?connect_timeout=30&" in _with_defaults("postgresql://ann@db/clinic")
    assert _with_defaults("postgresql://ann@db/clinic?connect_timeout=2").count("connect_timeout") == 1
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
    assert "connect_timeout" not in _with_defaults("postgresql://ann@db/clinic")


@pytest.mark.parametrize(
    ("table", "quoted"),
    [
        ("people", '"people"'),
        ("clinic.people", '"clinic"."people"'),
        ('"a.b"."c""d"', '"a.b"."c""d"'),
        ("x; DROP TABLE people", '"x; DROP TABLE people"'),
        ("people) q, (SELECT 1", '"people) q, (SELECT 1"'),
        ('"x"."y; --"', '"x"."y; --"'),
    ],
)
def test_names_of_tables_are_quoted(table: str, quoted: str) -> None:
    assert dotted(table) == quoted


@pytest.mark.parametrize("table", ["", "a.b.c", 'a"b', '"a', "a.", ".a", '""', '"a"b"', "a\0b"])
def test_what_is_no_name_is_refused(table: str) -> None:
    with pytest.raises(TableError, match="expected table or schema"):
        dotted(table)


@pytest.mark.parametrize("query", ["SELECT 1", "SELECT 1;", " SELECT 1 ; ;\n"])
def test_a_semicolon_at_the_end_is_left_out(query: str) -> None:
    assert _one_statement(query) == "SELECT 1"


@pytest.mark.parametrize("given", [{}, {"table": "a", "query": "SELECT 1"}, {"query": " ; "}])
def test_either_a_table_or_a_query(given: dict[str, str]) -> None:
    with pytest.raises(TableError, match=r"either the name of a table or a query|expected one SELECT"):
        PostgresSource("postgresql://ann@db/clinic", **given)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(TableError, match=r"pip install 'hedgerow\[postgresql\]'"):
        PostgresSource("postgresql://ann@db/clinic", "people")
