"""`hedgerow curator`: an owner's decisions, made on the books themselves."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from hedgerow import Categorical, Schema, Target, Unit
from hedgerow.curator.ledger.accounts import Accounts
from hedgerow.curator.ledger.database import open_database
from hedgerow.curator.ledger.ledger import Ledger

SCHEMA = Schema([Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))


@pytest.fixture
def folder(tmp_path: Path, run: Callable[..., Any]) -> Path:
    """A ledger with the dataset "patients", of which everybody together may spend 2."""
    (tmp_path / "rows.csv").write_text("smoker,class\nno,a\nyes,b\n")
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    done = run(
        "curator", "register", tmp_path / "books", "patients", tmp_path / "rows.csv", "--schema", tmp_path / "schema.toml", "--epsilon", "2"
    )
    assert done.exit_code == 0, done.output
    return tmp_path / "books"


def token_in(text: str) -> str:
    found = re.search(r"hrw_[\w-]{43}", text)
    assert found is not None
    return found[0]


def test_a_dataset_with_its_ceiling(folder: Path, run: Callable[..., Any]) -> None:
    assert Ledger.open(folder).balance("patients").epsilon == 2
    done = run("curator", "ceiling", folder, "patients", "--epsilon", "1/2", "--analyst", "ada")
    assert done.exit_code == 0, done.output
    assert str(Ledger.open(folder).balance("patients", analyst="ada").epsilon) == "1/2"
    assert run("curator", "ceiling", folder, "strange", "--epsilon", "1").exit_code == 2
    assert Ledger.open(folder).balance("strange").epsilon is None


def test_what_is_refused_registers_nothing(folder: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    for epsilon, file in (("-1", "rows.csv"), ("much", "rows.csv"), ("1", "missing.csv")):
        done = run("curator", "register", folder, "others", tmp_path / file, "--schema", tmp_path / "schema.toml", "--epsilon", epsilon)
        assert done.exit_code == 2, done.output
    again = run("curator", "register", folder, "patients", tmp_path / "rows.csv", "--schema", tmp_path / "schema.toml", "--epsilon", "9")
    assert again.exit_code == 2
    assert [balance.dataset for balance in Ledger.open(folder).balances()] == ["patients"]
    assert Ledger.open(folder).balance("patients").epsilon == 2


def test_a_ceiling_keeps_its_delta_and_says_what_it_was(folder: Path, run: Callable[..., Any]) -> None:
    run("curator", "ceiling", folder, "patients", "--epsilon", "3", "--delta", "0.00001")
    done = run("curator", "ceiling", folder, "patients", "--epsilon", "4")
    assert "(before: (ε = 3, δ = 1e-05))" in done.stdout
    assert str(Ledger.open(folder).balance("patients").delta) == "1/100000"
    assert str(Ledger.open(folder).balance("patients").epsilon) == "4"


def test_a_new_ceiling_excludes_no_delta_by_accident(folder: Path, run: Callable[..., Any]) -> None:
    run("curator", "ceiling", folder, "patients", "--epsilon", "3", "--delta", "1e-5")
    run("curator", "ceiling", folder, "patients", "--epsilon", "1", "--analyst", "ada")
    assert str(Ledger.open(folder).balance("patients", analyst="ada").delta) == "1/100000"
    run("curator", "ceiling", folder, "patients", "--epsilon", "1", "--delta", "0", "--analyst", "ada")
    run("curator", "ceiling", folder, "patients", "--epsilon", "2", "--analyst", "ada")
    assert Ledger.open(folder).balance("patients", analyst="ada").delta == 0  # where somebody has said so


def test_what_an_owner_may_not_have_meant_is_said(folder: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    again = ("curator", "register", folder, "same rows", tmp_path / "rows.csv", "--schema", tmp_path / "schema.toml", "--epsilon", "50")
    done = run(*again)
    assert done.exit_code == 0, done.output
    assert "registered as 'patients', too" in done.stderr
    assert f"hedgerow schema check {tmp_path / 'schema.toml'} {tmp_path / 'rows.csv'}" in done.stdout
    assert "hardly any protection" in done.stderr
    assert "--dataset 'same rows'" in done.stdout
    run("curator", "analyst", folder, "ada", "--dataset", "patients", "--purpose", "research")
    for option, name, warned in (("--analyst", "ada", False), ("--analyst", "aada", True), ("--purpose", "research", False)):
        done = run("curator", "ceiling", folder, "patients", "--epsilon", "1", option, name)
        assert ("binds nobody" in done.stderr) == warned
        assert "which refuses first" not in done.stderr
    for more in (("--epsilon", "9"), ("--epsilon", "1", "--delta", "0.001")):
        done = run("curator", "ceiling", folder, "patients", *more, "--analyst", "ada")
        assert "it is above the ceiling of everybody together on patients, ε = 2, which refuses first" in done.stderr
    assert "refuses first" not in run("curator", "ceiling", folder, "patients", "--epsilon", "9").stderr


def test_a_schema_that_is_refused_makes_no_books(run: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    draft = SCHEMA.to_toml().replace("[attributes.smoker]", "[attributes.smoker]\nunreviewed = true")
    (tmp_path / "draft.toml").write_text(draft)
    new = tmp_path / "new"
    assert run("curator", "register", new, "x", tmp_path / "rows.csv", "--schema", tmp_path / "draft.toml", "--epsilon", "1").exit_code == 2
    assert not new.exists()


def test_an_analyst_gets_a_token_once(folder: Path, run: Callable[..., Any]) -> None:
    done = run("curator", "analyst", folder, "ada", "--dataset", "patients", "--purpose", "research", "--purpose", "care")
    assert done.exit_code == 0, done.output
    text = token_in(done.stdout)
    more = run("curator", "analyst", folder, "ada", "--dataset", "patients", "--purpose", "teaching")
    assert "hrw_" not in more.stdout
    with open_database(folder) as database:
        accounts = Accounts(database)
        ada = accounts.authenticate(text)
        assert ada is not None
        assert (ada.name, accounts.purposes(ada, "patients")) == ("ada", ("care", "research", "teaching"))
    assert "care, research" in run("curator", "withdraw", folder, "ada", "patients", "--purpose", "teaching").stdout
    for wrong in ([], ["patients", "--dataset", "others"]):
        refused = run("curator", "withdraw", folder, "ada", *wrong)
        assert (refused.exit_code, "expected one dataset" in refused.stderr) == (2, True), refused.output
    assert "care" in run("curator", "withdraw", folder, "ada", "--dataset", "patients", "--purpose", "research").stdout
    assert "for nothing" in run("curator", "withdraw", folder, "ada", "patients").stdout
    with open_database(folder) as database:
        assert Accounts(database).grants() == []


def test_nothing_is_granted_for_no_purpose_or_for_a_dataset_that_is_not_there(folder: Path, run: Callable[..., Any]) -> None:
    assert run("curator", "analyst", folder, "ada", "--dataset", "patients").exit_code == 2
    assert run("curator", "analyst", folder, "ada", "--dataset", "strange", "--purpose", "research").exit_code == 2
    with open_database(folder) as database:
        assert Accounts(database).people() == []


def test_an_owner_whose_token_is_lost_gets_in_again(folder: Path, run: Callable[..., Any]) -> None:
    with open_database(folder) as database:
        lost = Accounts(database).first_owner()
        (record,) = Accounts(database).tokens()
    done = run("curator", "token", folder, "owner", "--days", "1")
    assert done.exit_code == 0, done.output
    assert run("curator", "revoke", folder, record.id).exit_code == 0
    with open_database(folder) as database:
        assert lost is not None
        assert Accounts(database).authenticate(lost) is None
        found = Accounts(database).authenticate(token_in(done.stdout))
        assert found is not None
        assert found.owns
    assert record.id in done.stdout  # which is still valid then
    nobody = run("curator", "token", folder, "nobody")
    assert (nobody.exit_code, "(owner)" in nobody.stderr) == (2, True)
    second = run("curator", "token", folder, "eve", "--owner")
    with open_database(folder) as database:
        found = Accounts(database).authenticate(token_in(second.stdout))
        assert found is not None
        assert (found.name, found.owns) == ("eve", True)


def test_all_of_it_is_shown_and_no_secret(folder: Path, run: Callable[..., Any]) -> None:
    text = token_in(run("curator", "analyst", folder, "ada", "--dataset", "patients", "--purpose", "research").stdout)
    shown = run("curator", "show", folder)
    assert shown.exit_code == 0, shown.output
    for words in ("patients", "rows.csv", "ada", "research", "valid", "analyst"):
        assert words in shown.stdout
    assert text not in shown.stdout


def test_closing_asks_first_and_is_for_ever(folder: Path, run: Callable[..., Any]) -> None:
    assert run("curator", "close", folder, "patients", input="n\n").exit_code == 2
    assert not Ledger.open(folder).balance("patients").closed
    assert run("curator", "close", folder, "patients", "--yes").exit_code == 0
    assert Ledger.open(folder).balance("patients").closed
    assert run("curator", "ceiling", folder, "patients", "--epsilon", "5").exit_code == 2


def test_books_that_are_not_there_are_not_made_by_looking(tmp_path: Path, run: Callable[..., Any]) -> None:
    assert run("curator", "show", tmp_path / "none").exit_code == 2
    assert not (tmp_path / "none").exists()


def test_a_dataset_is_counted_in_the_unit_of_its_schema(folder: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("patient_id,smoker,class\n1,no,a\n1,yes,b\n")
    (tmp_path / "persons.toml").write_text(replace(SCHEMA, person="patient_id", rows_per_person=40).to_toml())
    register = ("curator", "register", folder, "visits", tmp_path / "visits.csv", "--schema", tmp_path / "persons.toml", "--epsilon", "2")
    assert "may spend ε = 2 for persons (patient_id, at most 40 rows each)" in run(*register).stdout
    assert Ledger.open(folder).balance("visits").unit == Unit("patient_id", 40)
    shown = run("ledger", "show", folder).stdout
    assert "visits, for persons (patient_id, at most 40 rows each)" in shown
    assert "patients, for rows" in shown
    run("ledger", "export", folder, "-o", tmp_path / "ledger.csv")
    assert '"person: patient_id, at most 40 rows"' in (tmp_path / "ledger.csv").read_text()


def test_the_unit_of_older_books_is_stated_once(run: Callable[..., Any], tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "old.sqlite") as file:
        file.executescript((Path(__file__).parents[1] / "data" / "ledger-v1.sql").read_text())
    file.close()
    books = tmp_path / "old.sqlite"
    assert "hedgerow curator upgrade" in run("ledger", "show", books).stderr
    assert "sound: 12 entries" in run("curator", "upgrade", books, "--backup", tmp_path / "copy.sqlite").stdout
    assert "unit not stated: see `hedgerow curator unit`" in run("ledger", "show", books).stdout
    assert run("curator", "unit", books, "strange").exit_code != 0
    assert run("curator", "unit", books, "visits", input="n\n").exit_code == 2
    assert Ledger.open(books).balance("visits").unit is None
    done = run("curator", "unit", books, "visits", input="y\n")
    assert "visits is for persons (patient_id, at most 40 rows each)" in done.stdout
    assert run("curator", "unit", books, "visits", "--yes").exit_code != 0
    assert Ledger.open(books).verify().sound
    assert [entry.kind for entry in Ledger.open(books).entries()][-1] == "unit"


def test_what_was_paid_for_and_has_no_answer(folder: Path, run: Callable[..., Any]) -> None:
    assert "0 request(s) were paid for" in run("curator", "lost", folder).output
    ledger = Ledger.open(folder)
    opened, settled, waiting = (ledger.reserve("patients", "ada", "research", "0.25", what=what).key for what in ("one", "two", "three"))
    for key in (opened, settled):
        ledger.opened(key)
    ledger.settle(settled, "0.2")
    ledger.database.close()
    done = run("curator", "lost", folder)
    assert done.exit_code == 0, done.output
    assert "2 request(s) were paid for" in done.output
    assert waiting not in done.output.replace("\n", "")
    assert Ledger.open(folder).reservation(waiting).state == "reserved"  # to look changes nothing
