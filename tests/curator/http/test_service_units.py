"""Everything that is asked over HTTP is paid in the unit of the dataset, and the answers say which that is."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from curator.http.conftest import FOREST, SCHEMA, Running
from curator.web.test_pages import Browser, token_of

from hedgerow import PrivateRDTClassifier, Unit
from hedgerow.curator.http.reservations import PrepaidBudget
from hedgerow.curator.ledger.balances import DATASET, accounts_of
from hedgerow.curator.ledger.chain import CEILING, RESERVE
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.errors import BudgetError

PERSONS = replace(SCHEMA, person="patient_id", rows_per_person=40)
UNIT, TEXT = Unit("patient_id", 40), "person: patient_id, at most 40 rows"
RDT = {**FOREST, "epsilon": "0.25", "algorithm": "rdt", "settings": {"n_estimators": 1, "max_depth": 1}}


@pytest.fixture
def visits(running: Running) -> Running:
    """The same table with a column of persons, as "visits", without a ceiling; ada may use it."""
    head, *lines = running.file.read_text().splitlines()
    file = running.file.with_name("visits.csv")
    file.write_text("\n".join([f"patient_id,{head}", *(f"{i // 5},{line}" for i, line in enumerate(lines))]) + "\n")
    body = {"name": "visits", "path": str(file), "schema": PERSONS.to_toml()}
    assert running.post(running.owner, "/v1/owner/datasets", body).json()["unit"] is None
    running.post(running.owner, "/v1/owner/grants", {"analyst": "ada", "dataset": "visits", "purposes": ["research"]})
    return running


def ceiling(running: Running, epsilon: str = "2") -> Any:
    return running.post(running.owner, "/v1/owner/datasets/visits/ceilings", {"epsilon": epsilon}).json()


@pytest.mark.slow
def test_forests_scores_counts_and_sessions(visits: Running) -> None:
    assert ceiling(visits)["unit"] == TEXT
    forest = visits.ended(visits.ada, visits.post(visits.ada, "/v1/datasets/visits/forests", RDT, "forest").json())
    assert forest["state"] == "done", forest
    score = {"purpose": "research", "epsilon": "0.25", "release": forest["id"]}
    scored = visits.ended(visits.ada, visits.post(visits.ada, "/v1/datasets/visits/scores", score, "score").json())
    assert scored["state"] == "done", scored
    plan = PrivateRDTClassifier(PERSONS, epsilon="0.25", n_estimators=1, max_depth=1, random_state=1).public_plan()
    document = json.loads(msgspec.json.encode(plan.document()))
    asked = visits.post(visits.ada, "/v1/datasets/visits/counts", {"purpose": "research", "plan": document}, "count")
    assert visits.ended(visits.ada, asked.json())["state"] == "done", asked.text
    session = visits.post(visits.ada, "/v1/datasets/visits/sessions", {"purpose": "research", "epsilon": "0.25"}, "session").json()["id"]
    assert visits.post(visits.ada, f"/v1/sessions/{session}/rows", {"number": 1, "price": "1/4"}).status_code == 200
    assert visits.post(visits.ada, f"/v1/sessions/{session}/end", None).json()["spent"]["epsilon"] == "0.25"
    ledger = visits.curator.ledger
    assert {reserved.unit for reserved in ledger.reservations("visits")} == {UNIT}
    assert (len(ledger.reservations("visits")), ledger.balance("visits").spent, ledger.verify().sound) == (4, 1, True)


def test_what_has_another_unit_is_refused_and_free(visits: Running) -> None:
    """A release and a plan by rows, for a dataset that is counted in persons."""
    ceiling(visits)
    by_rows = visits.ended(visits.ada, visits.post(visits.ada, "/v1/datasets/patients/forests", RDT, "forest").json())
    score = {"purpose": "research", "epsilon": "0.25", "release": by_rows["id"]}
    plan = PrivateRDTClassifier(SCHEMA, epsilon="0.25", n_estimators=1, max_depth=1, random_state=1).public_plan()
    count = {"purpose": "research", "plan": json.loads(msgspec.json.encode(plan.document()))}
    for what, body in (("scores", score), ("counts", count)):
        answer = visits.post(visits.ada, f"/v1/datasets/visits/{what}", body, what)
        assert (answer.status_code, "Nothing was spent" in answer.json()["error"]["message"]) == (422, True)
    with pytest.raises(BudgetError, match="is for rows"):
        visits.curator.ledger.reserve("visits", "ada", "research", "0.25")
    assert visits.curator.ledger.reservations("visits") == []


def test_a_prepaid_request_is_paid_in_its_unit(visits: Running) -> None:
    ceiling(visits)
    ledger = visits.curator.ledger
    reserved = ledger.reserve("visits", "ada", "research", "0.25", unit=UNIT)
    budget = PrepaidBudget(ledger, reserved)
    for other in (Unit(), Unit("patient_id", 5)):
        with pytest.raises(BudgetError, match="not what was reserved"):
            budget.reserve("0.25", "fit", unit=other)
    assert budget.reserve("0.25", "fit", unit=UNIT).unit == UNIT


def test_answers_and_pages_say_the_unit(visits: Running) -> None:
    def told() -> list[Any]:
        listed = visits.get(visits.ada, "/v1/datasets").json()["datasets"]
        return [each["unit"] for each in [*listed, visits.get(visits.ada, "/v1/datasets/visits").json()]]

    assert told() == ["row", None, None]
    ceiling(visits)
    assert told() == ["row", TEXT, TEXT]
    assert [each["unit"] for each in visits.get(visits.owner, "/v1/owner/datasets").json()["datasets"]] == ["row", TEXT]
    entries = visits.get(visits.owner, "/v1/owner/ledger").json()["entries"]
    assert [each["unit"] for each in entries if each["kind"] == "ceiling"] == ["row", TEXT]
    ada, owner = Browser(visits, token_of(visits.ada)), Browser(visits, token_of(visits.owner))
    for browser, path in ((ada, "/"), (ada, "/datasets/visits"), (owner, "/owner/datasets/visits"), (owner, "/ledger")):
        assert TEXT in browser.get(path).text, path
    assert "counted for one row" in ada.get("/datasets/patients").text


def as_before(ledger: Ledger, dataset: str) -> None:
    """A ceiling of 2 and a reservation of 1/4, written as they were before the ledger had units."""
    with ledger.database.writing() as connection:
        books = LedgerTables(connection, lock=True)
        found = books.accounts(accounts_of(dataset, "ada", "research"))
        two, quarter, none = Fraction(2), Fraction(1, 4), Fraction(0)
        books.append(CEILING, dataset, epsilon=two, delta=none)
        books.append(RESERVE, dataset, key="old", analyst="ada", purpose="research", epsilon=quarter, delta=none)
        whole = (dataset, DATASET, "")
        found[whole] = replace(found[whole], epsilon=two, delta=none)
        books.store(balance.plus(quarter) for balance in found.values())


def test_what_was_spent_before_units_is_stated_by_the_owner_first(visits: Running) -> None:
    as_before(visits.curator.ledger, "visits")
    assert visits.curator.ledger.verify().sound
    session = {"purpose": "research", "epsilon": "0.25"}
    for what, body in (("forests", RDT), ("sessions", session)):
        answer = visits.post(visits.ada, f"/v1/datasets/visits/{what}", body, what)
        assert (answer.status_code, answer.json()["error"]["code"]) == (402, "budget")
        assert "hedgerow curator unit" in answer.json()["error"]["message"]
    assert visits.get(visits.ada, "/v1/datasets/visits").json()["unit"] is None
    visits.curator.ledger.state_unit("visits", UNIT)
    job = visits.ended(visits.ada, visits.post(visits.ada, "/v1/datasets/visits/forests", RDT, "again").json())
    assert (job["state"], visits.curator.ledger.balance("visits").spent) == ("done", Fraction(1, 2))
    assert visits.curator.ledger.verify().sound
