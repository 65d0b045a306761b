"""A dataset of a ledger is counted in one unit: that of its registered schema, or of its first request."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from strategies import small_schema, small_table

from hedgerow import Categorical, PrivateRDTClassifier, Schema, Target, Unit, private_score
from hedgerow.accounting.units import ROW
from hedgerow.curator.ledger.balances import accounts_of
from hedgerow.curator.ledger.budget import LedgerBudget
from hedgerow.curator.ledger.chain import RESERVE, LedgerEntry, hash_of
from hedgerow.curator.ledger.database import database_at
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.migrations import upgrade
from hedgerow.curator.ledger.registry import Registry
from hedgerow.errors import BudgetError, LedgerError

PERSONS = Unit("patient_id", 40)
SCHEMA = Schema([Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]), person="patient_id", rows_per_person=40)
BY_ROWS = Schema(SCHEMA.attributes, SCHEMA.target)
WHO = ("patients", "ada", "research")
OLD = Path(__file__).parents[2] / "data" / "ledger-v1.sql"  # written by the version before units


@pytest.fixture
def books(address: str, tmp_path: Path) -> Iterator[Ledger]:
    """The dataset "patients", registered with persons and without a ceiling."""
    ledger = Ledger.open(address)
    (tmp_path / "rows.csv").write_text("patient_id,smoker,class\n1,no,a\n1,yes,b\n")
    Registry(ledger.database).register("patients", tmp_path / "rows.csv", SCHEMA)
    yield ledger
    ledger.database.close()


def test_the_registered_schema_is_the_unit(books: Ledger) -> None:
    assert books.ceiling("patients", 1).unit == str(PERSONS)
    assert (books.balance("patients").unit, books.balance("patients").spent) == (PERSONS, 0)
    for unit in (ROW, Unit("patient_id", 5), Unit("doctor_id", 40)):
        with pytest.raises(BudgetError, match=r"'patients' cannot pay for a request: it is for persons .* Nothing was spent"):
            books.reserve(*WHO, "0.1", unit=unit)
    assert books.head().seq == 2  # registered, and the ceiling
    reserved = books.reserve(*WHO, "0.1", unit=PERSONS)
    assert (reserved.unit, books.reservation(reserved.key).unit) == (PERSONS, PERSONS)
    assert [entry.unit for entry in books.entries(1)] == [str(PERSONS)] * 2
    assert books.verify().sound


def test_ceilings_of_analysts_and_purposes_share_it(books: Ledger) -> None:
    books.ceiling("patients", 1)
    books.ceiling("patients", "0.5", analyst="ada")
    books.ceiling("patients", "0.5", purpose="research")
    books.reserve(*WHO, "0.1", unit=PERSONS)
    assert [entry.unit for entry in books.entries(1)] == [str(PERSONS)] * 4
    with pytest.raises(BudgetError, match="is for rows"):
        books.reserve(*WHO, "0.1")
    assert books.balance("patients", analyst="ada").spent == Fraction(1, 10)
    assert books.verify().sound


def test_a_ceiling_that_was_there_before_the_schema(address: str, tmp_path: Path) -> None:
    ledger = Ledger.open(address)
    (tmp_path / "rows.csv").write_text("patient_id,smoker,class\n1,no,a\n")
    ledger.ceiling("patients", 1)
    assert ledger.balance("patients").unit is None
    Registry(ledger.database).register("patients", tmp_path / "rows.csv", SCHEMA)
    with pytest.raises(BudgetError, match="it is for persons"):
        ledger.reserve(*WHO, "0.1")
    ledger.reserve(*WHO, "0.1", unit=PERSONS)
    assert ledger.verify().sound
    ledger.database.close()


def test_a_schema_of_another_unit_is_not_registered_for_what_was_spent(address: str, tmp_path: Path) -> None:
    ledger = Ledger.open(address)
    (tmp_path / "rows.csv").write_text("patient_id,smoker,class\n1,no,a\n")
    ledger.ceiling("patients", 1)
    ledger.reserve(*WHO, "0.1")
    registry = Registry(ledger.database)
    with pytest.raises(LedgerError, match=r"counts it in rows, and this schema in persons .* Nothing was registered"):
        registry.register("patients", tmp_path / "rows.csv", SCHEMA)
    assert registry.get("patients") is None
    registry.register("patients", tmp_path / "rows.csv", BY_ROWS)
    with pytest.raises(LedgerError, match="counts it in rows"):
        registry.register("patients", tmp_path / "rows.csv", SCHEMA)  # nor a second time
    ledger.reserve(*WHO, "0.1")
    ledger.database.close()


def test_a_schema_that_is_changed_by_hand_pays_for_nothing(books: Ledger) -> None:
    """The account keeps the unit that its entries say, whatever stands beside them."""
    books.ceiling("patients", 1)
    with books.database.writing() as connection:
        connection.exec_driver_sql("UPDATE curator_datasets SET schema = replace(schema, 'rows_per_person = 40', 'rows_per_person = 5')")
    with pytest.raises(BudgetError, match="cannot pay"):
        books.reserve(*WHO, "0.1", unit=Unit("patient_id", 5))
    books.ceiling("patients", 2)
    assert books.balance("patients").unit == PERSONS
    assert [str(problem) for problem in books.verify().problems] == [
        "the dataset 'patients' was altered: it is not what the ledger says was written"
    ]


def test_an_estimator_and_a_score_with_persons(address: str) -> None:
    ledger = Ledger.open(address)
    ledger.ceiling("patients", 2)
    budget, (X, y) = LedgerBudget(ledger, *WHO), small_table(120)
    schema = replace(small_schema(), person="who", rows_per_person=3)
    table = {**X, "who": [str(i // 3) for i in range(120)], "class": y}
    model = PrivateRDTClassifier(schema, "0.5", max_depth=1, budget=budget).fit(table)
    private_score(model.release_, table, epsilon="0.1", budget=budget)
    assert (budget.unit, {entry.unit for entry in budget.entries}) == (Unit("who", 3), {Unit("who", 3)})
    spent = budget.spent
    with pytest.raises(BudgetError, match="is for rows"):
        PrivateRDTClassifier(small_schema(), "0.5", max_depth=1, budget=budget).fit(X, y)
    assert (budget.spent, ledger.unsettled(), ledger.verify().sound) == (spent, [], True)
    ledger.database.close()


def test_the_hash_covers_the_unit() -> None:
    entry = LedgerEntry(1, "2026-01-02T03:04:05Z", "reserve", "k", "patients", "ada", "research", "fit é", "1/3", "0", "0" * 64)
    units = [None, "row", "person: é, at most 2 rows", "person: é, at most 3 rows"]
    assert len({hash_of(replace(entry, unit=unit)) for unit in units}) == 4
    for_ever = "b032c6cabf9d716a42d65593b28e00978aad700f4557e21139393f26d84bc5df"
    assert hash_of(replace(entry, unit="row")) == for_ever


# ---------------------------------------------------------------- books from before units


def spend_as_before(ledger: Ledger, dataset: str) -> None:
    """A reservation as it was written then; then the books as they were."""
    with ledger.database.writing() as connection:
        books = LedgerTables(connection, lock=True)
        found = books.accounts(accounts_of(dataset, "ada", "research"))
        amounts = {"epsilon": Fraction(1, 4), "delta": Fraction(0)}
        books.append(RESERVE, dataset, key="old", analyst="ada", purpose="research", what="fit", **amounts)  # type: ignore[arg-type]
        books.store(balance.plus(Fraction(1, 4)) for balance in found.values())


def to_version_1(ledger: Ledger) -> None:
    with ledger.database.writing() as connection:
        for table in ("ledger_entries", "ledger_balances"):
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN unit")
        connection.exec_driver_sql("ALTER TABLE ledger_entries DROP COLUMN digest")
        connection.exec_driver_sql("ALTER TABLE ledger_head DROP COLUMN noted")
        connection.exec_driver_sql("UPDATE hedgerow_schema SET version = 1")


def test_older_books_are_read_and_pay_when_the_unit_is_stated(address: str, tmp_path: Path) -> None:
    ledger = Ledger.open(address)
    for name in ("patients", "unspent"):
        ledger.ceiling(name, 1)  # not registered yet: without a unit, as once
    spend_as_before(ledger, "patients")
    head = ledger.head()
    to_version_1(ledger)
    assert upgrade(ledger.database)[0] == 1
    assert (ledger.head(), ledger.verify(head).sound, ledger.verify().unguarded) == (head, True, ())
    (tmp_path / "rows.csv").write_text("patient_id,smoker,class\n1,no,a\n")
    for name in ("patients", "unspent"):
        Registry(ledger.database).register(name, tmp_path / "rows.csv", SCHEMA)
    for unit in (ROW, PERSONS):
        with pytest.raises(BudgetError, match=r"nothing says what in\. Nothing was spent\. .*hedgerow curator unit"):
            ledger.reserve(*WHO, "0.1", unit=unit)
    assert ledger.ceiling("patients", 2).unit is None  # a ceiling states nothing
    with pytest.raises(LedgerError, match=r"its registered schema counts persons"):
        ledger.state_unit("patients", ROW)
    entry = ledger.state_unit("patients", PERSONS, "nobody else has used it")
    assert (entry.kind, entry.unit) == ("unit", str(PERSONS))
    with pytest.raises(LedgerError, match="a unit that is known stays"):
        ledger.state_unit("patients", PERSONS)
    ledger.reserve(*WHO, "0.1", unit=PERSONS)
    ledger.opened("old")
    ledger.settle("old", "0.125")
    with pytest.raises(BudgetError, match="is for rows"):
        ledger.reserve(*WHO, "0.1")
    assert (ledger.balance("patients").spent, ledger.verify(head).sound) == (Fraction(9, 40), True)
    ledger.reserve("unspent", "ada", "research", "0.1", unit=PERSONS)  # nothing was spent: nothing is to be stated
    assert ledger.verify().sound
    ledger.database.close()


def test_what_cannot_be_stated(ledger: Ledger) -> None:
    for dataset, words in (("nobody", "no ceiling"), ("", "dataset")):
        with pytest.raises(LedgerError, match=words):
            ledger.state_unit(dataset, ROW)
    ledger.close("patients")
    with pytest.raises(LedgerError, match="is closed"):
        ledger.state_unit("patients", ROW)
    assert ledger.verify().sound


def test_a_ledger_that_the_version_before_units_wrote(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "books.sqlite") as file:
        file.executescript(OLD.read_text())
    file.close()
    with pytest.raises(LedgerError, match=r"version 1; this hedgerow knows version 3.*hedgerow curator upgrade"):
        Ledger.open(tmp_path / "books.sqlite")
    with database_at(tmp_path / "books.sqlite", make=False) as database:
        upgrade(database)
    ledger = Ledger.open(tmp_path / "books.sqlite")
    head = "10:c1ed0e421707035cac5846abe8c07858e459ccbed75094b752e8e27f43f699fc"
    assert (ledger.head().seq, ledger.verify(head).sound, ledger.verify().unguarded) == (12, True, ())  # two datasets were registered
    assert (ledger.balance("visits").spent, ledger.balance("visits").unit) == (Fraction(3, 8), None)
    assert [reserved.key for reserved in ledger.unsettled()] == ["second"]
    with pytest.raises(BudgetError, match="hedgerow curator unit"):
        ledger.reserve("visits", "ada", "research", "0.1", unit=PERSONS)
    ledger.state_unit("visits", PERSONS)
    ledger.reserve("visits", "ada", "research", "0.1", unit=PERSONS)
    ledger.reserve("others", "ada", "research", "0.1", unit=PERSONS)
    assert ledger.verify(head).sound
    ledger.database.close()
