"""`hedgerow fit URL` and `hedgerow count URL`: the release is the service's own, signed by it, under its owner's name."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import run
from remote.conftest import SCHEMA, Served, Servers

import hedgerow
from hedgerow import Schema, Target
from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.curator.ledger.heads import KEY_FILE
from hedgerow.errors import PlanError
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release
from hedgerow.release.signing import make_key
from hedgerow.training.recipe import Recipe
from hedgerow.training.shared_plans import public_plan

_ = run  # the fixture


@pytest.fixture
def page(served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HEDGEROW_TOKEN", served.ada)
    make_key(served.curator.releases.parent / KEY_FILE, served.name)
    return served.page


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    made: PublicPlan = public_plan(Recipe.of("hedgerow", "1/2"), SCHEMA, 300, 2)
    made.save(tmp_path / "plan.json")
    return tmp_path / "plan.json"


def signers(file: Path) -> list[str]:
    return [signature.key for signature in Release.load(file).signatures]


def test_a_forest_is_signed_by_the_service(served: Served, page: str, run: Callable[..., Any], tmp_path: Path) -> None:
    forest, budget, schema = tmp_path / "forest.json", BudgetFile.create(tmp_path / "budget.json", "3"), tmp_path / "schema.toml"
    schema.write_text(SCHEMA.to_toml())
    fitted = run("fit", page, "--schema", schema, "--epsilon", "1", "--budget", budget.path, "-o", forest)
    said = " ".join(fitted.output.split())
    assert fitted.exit_code == 0, fitted.output
    assert signers(forest) == [served.curator.signed_with] != [None]
    assert served.charges() == ["1"]
    assert budget.spent == Fraction(Release.load(forest).certificate.epsilon or 0) == 1
    assert [entry.spent for entry in budget.entries] == [1]
    assert "signed by key" in said
    assert "left for you at the service, for 'research': ε = 1" in said
    assert "charged twice, as you asked: in the service's ledger, and in" in said


def test_what_the_file_cannot_pay_is_not_requested(served: Served, page: str, run: Callable[..., Any], tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "budget.json", "1/2")
    refused = run("fit", page, "--epsilon", "1", "--budget", budget.path, "-o", tmp_path / "forest.json")
    assert refused.exit_code == 3, refused.output
    assert served.charges() == []
    assert budget.spent == 0


def test_counts_have_the_name_and_the_signature_of_the_service(
    served: Served, page: str, plan: Path, run: Callable[..., Any], tmp_path: Path
) -> None:
    counted = run("count", plan, page, "-o", tmp_path / "cs.json")
    assert counted.exit_code == 0, counted.output
    [part] = Release.load(tmp_path / "cs.json").certificate.parts
    assert (part.owner, part.id) == ("Clinic A", "visits")
    assert signers(tmp_path / "cs.json") == [served.curator.signed_with]
    assert "owner: Clinic A (as the service says), batch: visits" in " ".join(counted.output.split())
    assert served.charges() == ["0.5"]
    again = run("count", tmp_path / "cs.json", page, "-o", tmp_path / "more.json")  # in the trees of a forest: the same table
    assert (again.exit_code, served.charges()) == (2, ["0.5"]), again.output


def test_the_same_counts_are_not_paid_twice(served: Served, page: str, plan: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    """Under another output they were, though only one of the two can be merged. They are fetched."""
    assert run("count", plan, page, "-o", tmp_path / "cs.json").exit_code == 0
    other, budget = tmp_path / "others.json", BudgetFile.create(tmp_path / "budget.json", "1")
    fetched = run("count", plan, page, "-o", other, "--budget", budget.path)
    said = " ".join(fetched.output.split())
    assert (fetched.exit_code, served.charges(), budget.spent) == (0, ["0.5"], 0), fetched.output
    assert other.read_bytes() == (tmp_path / "cs.json").read_bytes()
    assert "has made these counts for you already, for 'research' (its job" in said
    assert "they are fetched, and nothing is paid. To have the rows counted anew, and pay for it, add --again" in said
    assert "was not charged now" in said
    assert "charged twice" not in said
    assert not other.with_name("others.json.request").exists()
    (job,) = re.findall(r"\(its job (\w+)\)", said)
    by_hand = urllib.request.Request(f"{served.url}/v1/releases/{job}", headers={"Authorization": f"Bearer {served.ada}"})
    with urllib.request.urlopen(by_hand) as answer:  # as the documents say
        assert answer.read().strip() == other.read_bytes().strip()
    public_plan(Recipe.of("hedgerow", "1/2"), SCHEMA, 400, 2).save(other)  # other trees
    assert run("count", other, page, "-o", tmp_path / "third.json").exit_code == 0
    again = run("count", plan, page, "-o", tmp_path / "again.json", "--again")
    assert (again.exit_code, served.charges()) == (0, ["0.5"] * 3), again.output


def test_a_table_at_a_service_gets_no_other_name(served: Served, page: str, plan: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    for option in (["--owner", "me"], ["--batch", "x"], ["--disjoint"]):
        refused = run("count", plan, page, "-o", tmp_path / "cs.json", *option)
        assert (refused.exit_code, "Leave" in refused.output) == (2, True), refused.output
    assert served.charges() == []


def test_a_forest_that_is_grown_here_says_that_nobody_signed_it(page: str, run: Callable[..., Any], tmp_path: Path) -> None:
    fitted = run("fit", page, "--epsilon", "1", "--batch", "first", "-o", tmp_path / "forest.json")
    assert fitted.exit_code == 0, fitted.output
    assert signers(tmp_path / "forest.json") == []
    assert "not signed by the service" in " ".join(fitted.output.split())


def test_a_misspelled_class_is_told_of_a_forest_that_the_service_made(
    servers: Servers, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic = servers.new("Clinic B", rows=1000, epsilon="50", schema=Schema(SCHEMA.attributes, Target("class", ["a", "bb"])))
    monkeypatch.setenv("HEDGEROW_TOKEN", clinic.ada)
    fitted = run("fit", clinic.page, "--epsilon", "40", "-o", tmp_path / "forest.json")
    assert fitted.exit_code == 0, fitted.output
    assert "Declared classes are 'a', 'bb'" in " ".join(fitted.stderr.split())  # and nearly always that bb has no rows
    assert "verdict: none" in fitted.stdout


def test_counts_that_may_hold_no_row_are_told(
    servers: Servers, plan: Path, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hedgerow.training.settling.mismatches_of", lambda *_: [])  # what the service says of it stays there
    empty = servers.new("Clinic B", rows=0)
    monkeypatch.setenv("HEDGEROW_TOKEN", empty.ada)
    counted = run("count", plan, empty.page, "-o", tmp_path / "counts.json")
    assert (counted.exit_code, "noise alone may make as many" in " ".join(counted.output.split())) == (0, True), counted.output


def test_a_misspelled_dataset_is_answered_with_those_that_may_be_used(page: str, run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("fit", f"{page}s", "--epsilon", "1", "-o", tmp_path / "forest.json")
    assert (done.exit_code, "Datasets that you may use: visits." in " ".join(done.stderr.split())) == (2, True), done.output


def test_one_table_is_not_counted_twice_under_two_batches(served: Served, page: str, run: Callable[..., Any], tmp_path: Path) -> None:
    """By its address, of which the release has a hash alone."""
    forest = tmp_path / "batch.json"
    assert run("fit", page, "--epsilon", "1/2", "--batch", "x", "-o", forest).exit_code == 0
    assert served.url not in forest.read_text()
    before, charged = forest.read_bytes(), served.charges()
    assert "add --training-rows" in " ".join(run("evaluate", forest, page, "--epsilon", "1/4").output.split())
    refused = run("update", forest, page, "--batch", "y")
    assert refused.exit_code == 2
    assert "this dataset of the service is in the forest already, as x" in " ".join(refused.output.split())
    assert (served.charges(), forest.read_bytes()) == (charged, before)
    stated = run("update", forest, page, "--batch", "y", "--other-rows")
    assert stated.exit_code == 0, stated.output
    assert [part.id for part in Release.load(forest).certificate.parts] == ["x", "y"]
    assert len(served.charges()) == len(charged) + 1


def test_a_forest_that_is_grown_here_is_paid_once(served: Served, page: str, run: Callable[..., Any], tmp_path: Path) -> None:
    """With another output the same command paid for another one, with other noise."""
    words = ["fit", page, "--epsilon", "1/2", "--batch", "x"]
    assert run(*words, "-o", tmp_path / "one.json").exit_code == 0
    refused = run(*words, "-o", tmp_path / "two.json")
    said = " ".join(refused.output.split())
    assert (refused.exit_code, "was paid for this very fit already (session: fit Hedgerow forest, request " in said) == (2, True), said
    assert "Nothing was charged. Use the forest that was saved then" in said
    assert (served.charges(), (tmp_path / "two.json").exists()) == (["0.5"], False)
    for other in (["--again"], ["--bins", "3"], ["--batch", "y"]):
        assert run(*words, *other, "-o", tmp_path / f"{other[-1]}.json").exit_code == 0
    assert len(served.charges()) == 4


def test_another_analyst_is_told_of_the_rows_of_a_forest(
    served: Served, page: str, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only whoever had asked for the forest was: others paid for a score that flatters it."""
    forest = tmp_path / "forest.json"
    assert run("fit", page, "--epsilon", "1/2", "-o", forest).exit_code == 0
    accounts = served.curator.accounts
    accounts.add("bob", "analyst")
    accounts.grant("bob", "visits", ["research"])
    monkeypatch.setenv("HEDGEROW_TOKEN", accounts.issue("bob")[0])
    for told in (["evaluate", forest, page, "--epsilon", "1/4"], ["update", forest, page, "--batch", "y"]):
        result = run(*told)
        assert result.exit_code == 2, result.output
    assert "add --training-rows" in " ".join(run("evaluate", forest, page, "--epsilon", "1/4").output.split())
    assert served.charges() == ["0.5"]


def test_rows_that_are_added_have_the_name_of_their_own_service(
    served: Served, servers: Servers, page: str, plan: Path, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were listed as those of the forest's only owner, whose rows they are not."""
    forest, other = tmp_path / "cs.json", servers.new("Clinic B")
    assert run("count", plan, page, "-o", forest).exit_code == 0
    monkeypatch.setenv("HEDGEROW_TOKEN", other.ada)
    updated = run("update", forest, other.page, "--batch", "m3")
    assert updated.exit_code == 0, updated.output
    assert [(part.owner, part.id) for part in Release.load(forest).certificate.parts] == [("Clinic A", "visits"), ("Clinic B", "m3")]
    assert served.charges() == ["0.5"]
    assert run("update", forest, other.page, "--batch", "m4", "--owner", "me", "--other-rows").exit_code == 0
    assert Release.load(forest).certificate.parts[-1].owner == "me"


def test_counts_that_the_service_has_made_are_known_by_their_name(
    served: Served, page: str, plan: Path, run: Callable[..., Any], tmp_path: Path
) -> None:
    assert run("count", plan, page, "-o", tmp_path / "cs.json").exit_code == 0
    refused = run("update", tmp_path / "cs.json", page, "--batch", "y", "--owner", "me")
    assert (refused.exit_code, "is in the forest already, as Clinic A (visits)" in " ".join(refused.output.split())) == (2, True)
    assert served.charges() == ["0.5"]


def test_in_python_rows_of_a_forest_that_the_service_made_are_known(
    served: Served, page: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    """The command refused them, and Python paid again for the same rows."""
    assert (
        run("fit", page, "--algorithm", "rdt", "--epsilon", "1/2", "--trees", "2", "--depth", "1", "-o", tmp_path / "f.json").exit_code == 0
    )
    release = Release.load(tmp_path / "f.json")
    with hedgerow.connect(served.url, served.ada) as connection:
        with pytest.raises(PlanError, match="is in the forest already"):
            hedgerow.count(release, connection.table("visits"), batch="y")
        assert served.charges() == ["0.5"]
        hedgerow.count(release, connection.table("visits"), batch="y", other_rows=True)
    assert len(served.charges()) == 2


def test_in_python_too(served: Served) -> None:
    with hedgerow.connect(served.url, served.ada) as connection:
        table = connection.table("visits")
        model = hedgerow.PrivateRDTClassifier(None, "1/2", n_estimators=2, max_depth=1)
        model.partial_fit(table, batch="x")
        for again in (lambda: model.partial_fit(table, batch="y"), lambda: hedgerow.count(model.release_, table, batch="y")):
            with pytest.raises(PlanError, match="in the forest already"):
                again()
        assert len(served.charges()) == 1
        model.partial_fit(table, batch="y", other_rows=True)
    assert len(served.charges()) == 2
