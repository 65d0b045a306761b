"""Names that would not be shown as what they are do not come into being; what a spreadsheet opens holds no formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from hedgerow import Categorical, Schema, Target
from hedgerow.curator.ledger.accounts import Accounts
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.registry import Registry
from hedgerow.errors import LedgerError

UNSAFE = ["a\nb", "a\x1b[31m", "a\x7f", "a\x9b", "ada\u202e", "a\u2066b", "a\u2028b", "\u200eada"]
FINE = ["ada", "名前", "نام‌ها", "o'Hara", "=1+1", "a b"]


@pytest.mark.parametrize("name", UNSAFE)
def test_refused(ledger: Ledger, tmp_path: Path, name: str) -> None:
    accounts = Accounts(ledger.database)
    schema = Schema([Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))
    (tmp_path / "rows.csv").write_text("smoker,class\nno,a\n")
    Registry(ledger.database).register("rows", tmp_path / "rows.csv", schema)
    accounts.add("eve")
    for step in (
        lambda: accounts.add(name),
        lambda: accounts.grant("eve", "rows", ["fine", name]),
        lambda: Registry(ledger.database).register(name, tmp_path / "rows.csv", schema),
    ):
        with pytest.raises(LedgerError, match="expected no control characters"):
            step()
    assert accounts.grants("eve") == []


@pytest.mark.parametrize("name", FINE)
def test_taken(ledger: Ledger, name: str) -> None:
    assert Accounts(ledger.database).add(name).name == name


def test_older_names_are_still_read(ledger: Ledger) -> None:
    ledger.ceiling("old\ndataset", 1)
    ledger.reserve("old\ndataset", "a\x1bda", "research", "0.1")
    assert ledger.balance("old\ndataset").spent == ledger.balance("old\ndataset", analyst="a\x1bda").spent
    cells = [cell for row in csv.reader(io.StringIO("".join(ledger.export("csv")))) for cell in row]
    assert {"olddataset", "ada"} <= set(cells)


@pytest.mark.parametrize("what", ["=1+1", "+1", "-1", "@x", " =1", "\t=1", "\x01=1", "＝1"])
def test_no_cell_is_a_formula(ledger: Ledger, what: str) -> None:
    ledger.reserve("patients", "ada", "research", "0.1", what=what)
    *_, row = csv.reader(io.StringIO("".join(ledger.export("csv"))))
    (cell,) = [cell for cell in row if cell.lstrip("'\t ").startswith(("=", "+", "-", "@", "＝"))]
    assert cell.startswith("'")
    assert not any(ord(sign) < 32 for sign in cell)


def test_the_list_of_jobs_uses_an_index(ledger: Ledger) -> None:
    """However many others there are: neither is the table read through, nor are the requests of others."""
    if not ledger.database.embedded:
        pytest.skip("a server plans by its own figures")
    seen: list[tuple[str, tuple[Any, ...]]] = []
    with ledger.database.reading() as connection:
        sql.event.listen(connection.engine, "before_cursor_execute", lambda *given: seen.append(given[2:4]))
        for analyst in ("ada", None):
            ledger.last_reservations("patients", analyst, 20)
        statements = [(text, given) for text, given in seen if text.startswith("SELECT")]
        plans = [" ".join(row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", given)) for text, given in statements]
    assert "ledger_entries_reserved_by" in plans[0]
    assert not any("SCAN ledger_entries" in plan for plan in plans), plans
