"""Every private estimator on rows that stay at a server: the forest that would be grown on them here, paid in the owner's ledger."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from remote.remote_service import *  # noqa: F403
from remote.remote_service import ATTRIBUTES, SCHEMA, Counted, Served, registered, running_server, written

from hedgerow import Budget, Schema, private_calibration, private_score
from hedgerow.curator.application import application
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.session_worker import SessionWorker
from hedgerow.engines.streamed import StreamedRows
from hedgerow.errors import BudgetError, CuratorError, PlanError, SchemaError, SeenRowsWarning
from hedgerow.estimators import all_estimators
from hedgerow.evaluation.public import public_score
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.queries import Rows
from hedgerow.release.release import Release
from hedgerow.remote.remote_table import RemoteTable
from hedgerow.training.counting import count

ALL = all_estimators()
PRIVATE: dict[str, dict[str, Any]] = {
    "HedgerowClassifier": {"bins": 8, "random_state": 1}, "SNRForestClassifier": {"random_state": 1},
    "DiffPID3Classifier": {"max_depth": 3},
    "DPDFClassifier": {"max_depth": 4, "n_estimators": 2, "min_rows": 20}, "PrivateID3Classifier": {"max_depth": 2},
    "PrivateRDTClassifier": {"n_estimators": 3, "random_state": 1},
}  # fmt: skip


def test_these_are_all() -> None:
    assert set(PRIVATE) == {name for name, estimator in ALL.items() if estimator._algorithm.private}


def seeded(name: str, seed: int, schema: Any = SCHEMA, **more: Any) -> Any:
    estimator = ALL[name](schema=schema, epsilon=5, **PRIVATE[name], **more)
    estimator._coins = SeededCoins(seed)
    return estimator


def forest_of(release: Release) -> dict[str, Any]:
    """All of a release but the random name of its table, and where that was."""
    document = release.document()
    certificate = [replace_id(part) for part in document.certificate.parts]
    return {
        "trees": document.trees, "chosen": document.chosen, "parameters": document.parameters, "parts": certificate, "vote": document.vote,
        "corrections": document.corrections, "ensembles": document.ensembles, "schema": document.schema, "bins": document.bins,
    }  # fmt: skip


def replace_id(part: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(part, id="", source=msgspec.UNSET)


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")
def test_the_forest_is_the_local_one(served: Served, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionWorker, "coins", SeededCoins(3))
    here = seeded(name, 3).fit(str(served.file)).release_
    there = seeded(name, 4, schema=None).fit(served.table)
    assert forest_of(there.release_) == forest_of(here)
    assert list(there.feature_names_in_) == ["age", "smoker", "ward"]
    assert not there.release_.certificate.private  # seeded coins have no privacy, and the release says so
    spent = Fraction(there.release_.certificate.spent)
    assert spent <= served.spent < spent + Fraction(1, 10**6)
    asked = served.transport.asked
    events = [event.query for event in here.certificate.events]
    if "boost_round" in events:  # whose choices come with its sums, in one request
        first = events.index("boost_round")
        while events[first - 1] == "choose_tree":
            first -= 1
        events[first:] = [event for event in events[first:] if event != "choose_tree"]
    assert asked == ["sessions", *events, "end"]


@pytest.mark.slow
def test_one_look_a_level(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """DPDF asks Q1 and Q2 once for all nodes of a level; its rows are passed over once for both."""
    passes, real = list[str](), StreamedRows._pass
    monkeypatch.setattr(StreamedRows, "_pass", lambda self, question: passes.append(type(question).__name__) or real(self, question))
    model = ALL["DPDFClassifier"](None, epsilon=5, max_depth=4, min_rows=20).fit(served.table)
    (tree,) = model.release_.forest.trees
    levels = tree.height + 1
    verbs = served.transport.asked[1:-1]
    assert verbs[: 2 * levels - 1] == (["class_counts", "choose"] * levels)[: 2 * levels - 1]
    assert len(verbs) <= 2 * levels
    assert levels > 2
    assert passes == ["ClassCounts"] + ["Choose"] * verbs.count("choose")
    assert model.predict({"age": [90], "smoker": ["yes"], "ward": ["a"]})[0] in ("ill", "well")


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")
def test_the_certificate_is_what_the_ledger_charged(served: Served, name: str) -> None:
    model = ALL[name](None, epsilon=2, **PRIVATE[name]).fit(served.table)
    certificate = model.release_.certificate
    assert (certificate.private, certificate.epsilon) == (True, "2")
    (reserved,) = served.curator.ledger.reservations("patients")
    assert (reserved.state, reserved.epsilon) == ("settled", 2)
    assert certificate.spent <= reserved.cost < certificate.spent + Fraction(1, 10**6)


@pytest.mark.slow
def test_a_delta(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionWorker, "coins", SeededCoins(3))
    here = seeded("HedgerowClassifier", 3, delta="1e-6").fit(str(served.file)).release_
    there = seeded("HedgerowClassifier", 4, delta="1e-6").fit(served.table).release_
    assert forest_of(there) == forest_of(here)
    assert "boost_round" in served.transport.asked
    balance = served.curator.ledger.balance("patients")
    assert (balance.spent, balance.spent_delta) == (5, Fraction(1, 10**6))


def test_settings_are_tuned(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionWorker, "coins", SeededCoins(3))
    grid = {"max_depth": [1, 3]}
    here = seeded("DPDFClassifier", 3).tune(str(served.file), grid=grid)
    there = seeded("DPDFClassifier", 4).tune(served.table, grid=grid)
    assert (there.max_depth, forest_of(there.release_)) == (here.max_depth, forest_of(here.release_))
    assert "best_model" in served.transport.asked


@pytest.mark.slow
def test_batches_counts_and_scores(served: Served) -> None:
    model = ALL["PrivateRDTClassifier"](None, epsilon=1, n_estimators=2, max_depth=2, random_state=1)
    model.partial_fit(served.table, batch="first", disjoint=True).partial_fit(str(served.file), batch="second", disjoint=True)
    assert len(model.release_.certificate.parts) == 2
    assert served.spent == 1
    plan = ALL["PrivateRDTClassifier"](SCHEMA, 1, n_estimators=2, max_depth=2, random_state=1).public_plan(rows=1000)
    counted = count(plan, served.table, owner="here")
    assert counted.forest.trees == plan.trees
    assert served.spent == 2
    with pytest.warns(SeenRowsWarning, match="which flatter it"):
        score = private_score(counted, served.table, epsilon=4)
    assert 1500 < score.confusion.sum() < 2500
    with pytest.warns(SeenRowsWarning, match="which flatter it"):
        assert private_calibration(counted, served.table, epsilon=4).certificate.epsilon == "4"
    assert served.spent == 10
    with pytest.raises(PlanError, match="private_score"):
        public_score(counted, served.table)
    assert served.spent == 10


def test_what_is_refused_sends_nothing(served: Served) -> None:
    table, other = served.table, Schema(ATTRIBUTES[:2], SCHEMA.target)
    for name, estimator in ALL.items():
        if name not in PRIVATE:
            with pytest.raises(PlanError, match="exact counts"):
                estimator(schema=SCHEMA).fit(table)
    with pytest.raises(SchemaError, match="not the schema of the owner"):
        ALL["HedgerowClassifier"](other, 1).fit(table)
    with pytest.raises(PlanError, match="drawn where the rows are"):
        ALL["HedgerowClassifier"](SCHEMA, 1, sampler="opendp").fit(table)
    with pytest.raises(PlanError, match="not proven"):
        ALL["DPDFClassifier"](SCHEMA, 1, sensitivity="local").fit(table)
    with pytest.raises(PlanError, match="not proven"):
        ALL["PrivateID3Classifier"](SCHEMA, 1, as_published=True).fit(table)
    assert served.transport.asked == []


@pytest.mark.slow
def test_ones_own_budget_is_asked_too(served: Served) -> None:
    budget = Budget(1)
    with pytest.raises(BudgetError, match="short by"):
        ALL["HedgerowClassifier"](None, epsilon=2, budget=budget).fit(served.table)
    assert (served.spent, budget.spent) == (0, 0)
    with pytest.raises(BudgetError, match="remaining"):
        ALL["HedgerowClassifier"](None, epsilon=60, budget=Budget(100)).fit(served.table)
    ALL["HedgerowClassifier"](None, epsilon=1, budget=budget).fit(served.table)
    assert (served.spent, budget.spent) == (1, 1)


@pytest.mark.slow
def test_the_number_of_rows_that_is_declared_is_ones_own(served: Served) -> None:
    release = ALL["SNRForestClassifier"](replace(SCHEMA, rows=2000), 1, random_state=1).fit(served.table).release_
    assert [event.query for event in release.certificate.events] == ["leaf_counts"]


@pytest.mark.slow
def test_persons_are_the_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of a person: the schema on the server decides what one of them costs."""
    file = written(tmp_path / "patients.csv", 500)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([f"id,{lines[0]}", *(f"p{i // 3},{line}" for i, line in enumerate(lines[1:]))]) + "\n")
    schema = Schema(ATTRIBUTES, SCHEMA.target, person="id", rows_per_person=2)
    monkeypatch.setattr(SessionWorker, "coins", SeededCoins(3))
    curator = Curator.of(Curator.open(tmp_path / "curator").database, tmp_path)
    token = registered(curator, file, schema)
    here = seeded("DPDFClassifier", 3, schema).fit(str(file)).release_
    with running_server(application(curator, Limits())) as url:
        table = RemoteTable.of(Counted(url, token), "patients", schema, ("research",))
        there = seeded("DPDFClassifier", 4, None).fit(table).release_
        with pytest.raises(CuratorError, match="charged otherwise"):
            RemoteTable.of(Counted(url, token), "patients", SCHEMA, ("research",)).ask(Rows(), Fraction(1))
    assert forest_of(there) == forest_of(here)
    curator.close()


@pytest.mark.slow
def test_rows_never_come_here(served: Served) -> None:
    with pytest.raises(TypeError):
        len(served.table)  # type: ignore[arg-type]
    assert not hasattr(served.table, "__dict__")
    with served.table.session(1) as paid, pytest.raises(PlanError, match="rows that are here"):
        ALL["HedgerowClassifier"](None, epsilon=1).fit(paid)
    assert isinstance(served.table.ask(Rows(), Fraction(1)), int)
    assert np.isscalar(served.table.ask(Rows(), Fraction(1)))


@pytest.mark.slow
def test_a_service_with_processes_of_its_own(tmp_path: Path) -> None:
    """As `hedgerow serve` runs it: the rows of each session in a process, which the next session uses again."""
    curator = Curator.open(tmp_path / "curator")
    token = registered(curator, written(tmp_path / "patients.csv"))
    with running_server(application(curator, Limits(stop_seconds=5))) as url:
        table = RemoteTable.of(Counted(url, token), "patients", SCHEMA, ("research",))
        for name in ("HedgerowClassifier", "DPDFClassifier"):
            release = ALL[name](None, epsilon=2, **PRIVATE[name]).fit(table).release_
            assert (release.certificate.private, release.certificate.epsilon) == (True, "2")
        with pytest.raises(BudgetError, match="remaining"):
            ALL["HedgerowClassifier"](None, epsilon=49).fit(table)
        assert 1000 < table.ask(Rows(), Fraction(1)) < 3000
    states = [reserved.state for reserved in curator.ledger.reservations("patients")]
    assert (states, curator.ledger.unsettled(), curator.ledger.verify().sound) == (["settled"] * 3, [], True)
    curator.close()
