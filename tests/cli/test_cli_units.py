"""A budget file is counted in one unit, whichever command pays from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from cli.conftest import SCHEMA, table_text

from hedgerow import BudgetFile, Unit

Run = Callable[..., Any]
PERSONS = 'person = "patient_id"\nrows_per_person = 40\n'
RDT = ("--algorithm", "rdt", "--trees", 2, "--depth", 2, "--seed", 0)


@pytest.fixture
def visits(place: SimpleNamespace) -> SimpleNamespace:
    """A table with a column of persons; `schema` by rows, `persons` by persons; a budget of ε = 2."""
    head, *lines = table_text(600).splitlines()
    place.data.write_text("\n".join([f"patient_id,{head}", *(f"{i // 4},{line}" for i, line in enumerate(lines))]) + "\n")
    place.test = place.data
    place.persons = place.folder / "persons.toml"
    place.persons.write_text(PERSONS + SCHEMA)
    return place


def fit(visits: SimpleNamespace, run: Run, schema: Any, output: str = "forest.json", epsilon: str = "0.5", *more: str) -> Any:
    paid = ("--epsilon", epsilon, "--budget", visits.budget, *more)
    return run("fit", visits.data, "--schema", schema, *RDT, *paid, "-o", visits.folder / output)


def test_a_fit_with_persons_and_one_by_rows_are_not_paid_from_one_budget(visits: SimpleNamespace, run: Run) -> None:
    """These ε are about different neighbours: once the file said "spent 1" of both."""
    assert fit(visits, run, visits.persons).exit_code == 0
    before = visits.budget.read_bytes()
    refused = fit(visits, run, visits.schema, "rows.json")
    assert refused.exit_code == 3
    said = " ".join(refused.stderr.split())
    assert "it is for persons (patient_id, at most 40 rows each), and this request is for rows." in said
    assert "Nothing was spent. Give it a budget of its own: `hedgerow budget init FILE --epsilon TOTAL --row`." in said
    assert (visits.budget.read_bytes(), (visits.folder / "rows.json").exists()) == (before, False)
    shown = run("budget", "show", visits.budget).stdout
    assert "unit: persons (patient_id, at most 40 rows each)" in shown
    assert "total ε 2, spent 0.5, remaining 1.5" in shown
    refused = fit(visits, run, visits.persons, "second.json")
    assert "has paid for this very fit already (DATA, schema, ε and settings: ε = 0.5 at 20" in " ".join(refused.stderr.split())
    assert "has paid for this very fit" in " ".join(fit(visits, run, visits.persons, "second.json", "1/2").stderr.split())
    again = fit(visits, run, visits.persons, "second.json", "0.5", "--again")
    assert again.exit_code == 0
    assert "ε = 1 of 2 left for persons (patient_id, at most 40 rows each)" in again.stdout


def test_another_number_of_rows_is_another_unit(visits: SimpleNamespace, run: Run) -> None:
    fit(visits, run, visits.persons)
    visits.persons.write_text((PERSONS + SCHEMA).replace("40", "5"))
    refused = fit(visits, run, visits.persons, "five.json")
    assert refused.exit_code == 3
    assert "Set rows_per_person = 40 in the schema, or give it a budget of its own" in " ".join(refused.stderr.split())
    assert BudgetFile(visits.budget).spent == BudgetFile(visits.budget).epsilon / 4


@pytest.mark.parametrize("command", ["fit", "fit with a δ", "update", "count", "evaluate", "calibration"])
def test_every_command_that_pays(visits: SimpleNamespace, run: Run, command: str) -> None:
    plan = visits.folder / "plan.json"
    free = visits.budget.with_name("other.json")
    BudgetFile.create(free, 9)
    assert run("plan", "--schema", visits.persons, *RDT, "--epsilon", "0.5", "--rows", 600, "--save", plan).exit_code == 0
    forest = visits.folder / "forest.json"
    fitted = run("fit", visits.data, "--schema", visits.persons, *RDT, "--epsilon", "0.5", "--budget", free, "-o", forest)
    assert fitted.exit_code == 0, fitted.output
    output = visits.folder / "new.json"
    commands = {
        "fit": ("fit", visits.data, "--schema", visits.persons, "--epsilon", "0.5", "-o", output),
        "fit with a δ": ("fit", visits.data, "--schema", visits.persons, "--epsilon", "0.5", "--delta", "1e-6", "-o", output),
        "update": ("update", forest, visits.data, "--epsilon", "0.5", "--batch", "march"),
        "count": ("count", plan, visits.data, "--owner", "office", "-o", output),
        "evaluate": ("evaluate", forest, visits.data, "--epsilon", "0.5"),
        "calibration": ("evaluate", forest, visits.data, "--epsilon", "0.5", "--calibration"),
    }
    budget = visits.folder / "rows.json"
    BudgetFile.create(budget, 2, "1e-5", Unit())
    refused = run(*commands[command], "--budget", budget)
    assert refused.exit_code == 3, refused.output
    assert "is for persons (patient_id, at most 40 rows each)" in " ".join(refused.stderr.split())
    assert (BudgetFile(budget).spent, BudgetFile(budget).entries) == (0, ())
    budget.unlink()
    BudgetFile.create(budget, 2, "1e-5", Unit("patient_id", 40))
    paid = run(*commands[command], "--budget", budget)
    assert paid.exit_code == 0, paid.output
    assert BudgetFile(budget).spent > 0


def test_a_budget_is_made_with_its_unit(visits: SimpleNamespace, run: Run) -> None:
    new = visits.folder / "new.json"
    made = run("budget", "init", new, "--epsilon", 1, "--person", "patient_id", "--rows-per-person", 40)
    assert "for persons (patient_id, at most 40 rows each), nothing spent" in made.stdout
    assert BudgetFile(new).unit == Unit("patient_id", 40)
    assert "unit: that of the first request" in run("budget", "show", visits.budget).stdout
    run("budget", "init", visits.folder / "row.json", "--epsilon", 1, "--row")
    assert BudgetFile(visits.folder / "row.json").unit == Unit()
    for wrong in (("--row", "--person", "who"), ("--rows-per-person", 3), ("--row", "--rows-per-person", 3), ("--person", "")):
        assert run("budget", "init", visits.folder / "wrong.json", "--epsilon", 1, *wrong).exit_code == 2
    assert not (visits.folder / "wrong.json").exists()


def test_a_file_from_before_units(visits: SimpleNamespace, run: Run) -> None:
    entry = {"key": "k", "when": "2026-01-01T00:00:00Z", "what": "fit rdt", "reserved": "0.5", "spent": "0.5"}
    visits.budget.write_text(json.dumps({"format": "hedgerow-budget", "version": 1, "epsilon": "2", "entries": [entry]}))
    assert "unit: not stated: see `hedgerow budget unit`" in run("budget", "show", visits.budget).stdout
    for schema in (visits.persons, visits.schema):
        refused = fit(visits, run, schema)
        assert refused.exit_code == 3
        assert f"hedgerow budget unit {visits.budget} --row" in "".join(refused.stderr.split("\n"))
    assert run("budget", "unit", visits.budget).exit_code == 2
    stated = run("budget", "unit", visits.budget, "--person", "patient_id", "--rows-per-person", 40)
    assert "is for persons (patient_id, at most 40 rows each)" in stated.stdout
    assert run("budget", "unit", visits.budget, "--row").exit_code == 3
    assert fit(visits, run, visits.schema).exit_code == 3
    assert fit(visits, run, visits.persons).exit_code == 0
    shown = run("budget", "show", visits.budget).stdout
    assert "of 1 older request its owner has stated it" in shown
    assert "spent 1, remaining 1" in shown


def test_a_score_of_public_rows_is_of_all_of_them(visits: SimpleNamespace, run: Run) -> None:
    """It drew other rows of each person on every run, and called that exact."""
    visits.persons.write_text((PERSONS + SCHEMA).replace("40", "1"))
    assert fit(visits, run, visits.persons).exit_code == 0
    words = ["evaluate", visits.folder / "forest.json", visits.data, "--public", "--auc", "--calibration"]
    said = [run(*words).stdout for _ in range(3)]
    assert "on 600 rows" in said[0]
    assert "scored: every row, also where a person has several (a private score takes at most 1 of each" in said[0]
    assert len(set(said)) == 1
