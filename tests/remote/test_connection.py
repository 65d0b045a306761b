"""`hedgerow.connect`: what an analyst and an owner may ask, as typed answers, from a service that really listens."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import duckdb
import pandas
import polars
import pytest
from remote.conftest import SCHEMA, Served, Servers

import hedgerow
from hedgerow.errors import BudgetError, CuratorError, PlanError, SeenRowsWarning
from hedgerow.remote.connection import Connection
from hedgerow.remote.jobs import Job


@pytest.fixture
def ada(served: Served) -> Connection:
    return hedgerow.connect(served.url, served.ada)


@pytest.mark.slow
def test_the_whole_way(served: Served) -> None:
    with hedgerow.connect(served.url, served.ada) as ada:
        (listed,) = ada.datasets()
        assert (listed.name, listed.closed, listed.purposes["research"].epsilon) == ("visits", False, Fraction(2))
        dataset = ada.dataset("visits")
        assert (dataset.schema, dataset.owner) == (SCHEMA, "Clinic A")
        quoted = ada.quote("visits", epsilon=0.5, rows=300)
        assert (quoted.cost.epsilon, quoted.remaining.epsilon) == (Fraction(1, 2), Fraction(2))
        assert quoted.events
        assert quoted.plan
        assert quoted.affordable
        assert "too little" not in f"{quoted!r}{quoted}"
        dear = ada.quote("visits", epsilon=3, rows=300)
        assert not dear.affordable
        assert "ε = 2 left before it, too little" in repr(dear)
        assert "too little, a request would be refused" in str(dear)
        tried = ada.dummy("visits", "rdt", epsilon=1, n_estimators=2, max_depth=1)
        assert "dummy" in tried.certificate.sentence()
        assert served.charges() == []

        job = ada.forest("visits", epsilon=Fraction(1, 2))
        told: list[float] = []
        release = job.wait(progress=told.append, timeout=60)
        assert isinstance(release, hedgerow.Release)
        assert (release.certificate.epsilon, release.schema) == ("0.5", SCHEMA)
        assert (job.cost.epsilon, str(job.cost), job.dataset, job.purpose) == (Fraction(1, 2), "ε = 0.5", "visits", "research")
        assert ada.job(job.id).wait(timeout=60).to_json() == release.to_json()  # type: ignore[union-attr]
        assert ada.release(job.id).to_json() == release.to_json()

        with pytest.warns(SeenRowsWarning, match="trained on the rows of 'visits' themselves, which flatter it"):
            score = ada.score("visits", job.id, epsilon="1/4").wait(timeout=60)
        assert not isinstance(score, hedgerow.Release)
        assert (score.classes, len(score.confusion), score.noise_scale) == (("a", "b"), 2, Fraction(4))
        assert 0 <= score.recall <= 1
        assert 0 <= score.precision <= 1
        assert not hasattr(score, "certificate")
        with pytest.raises(AttributeError, match=r"auc: a score that a service makes.*private_score\(release, connection.table"):
            _ = score.auc
        assert score.majority[0] in ("a", "b")
        assert 0.5 <= score.majority[1] <= 1
        assert [asked.what for asked in ada.jobs("visits")] == ["evaluate", "fit hedgerow"]
        rows = [{"age": 30, "smoker": "no"}, {"age": float("nan"), "smoker": None}]
        found = ada.predict(job.id, rows * 600)  # more than one request takes
        assert len(found.predictions) == len(found.probabilities) == 1200
        table = {name: [row[name] for row in rows] for name in SCHEMA.names}
        assert list(found.predictions[:2]) == release.predict(table).tolist()
        for columns in (table, pandas.DataFrame(table), polars.DataFrame(table, strict=False)):
            assert ada.predict(job.id, columns).predictions == found.predictions[:2]
        assert ada.dataset("visits").purposes["research"].epsilon == Fraction(5, 4)
        assert ada.dataset("visits").unit == ada.datasets()[0].unit == ada.table("visits").unit == hedgerow.Unit()
        assert "ε for rows" in repr(ada.table("visits"))
    assert served.ada not in repr(ada) + repr(ada.transport) + repr(job)


@pytest.mark.slow
def test_asked_again_with_its_key(ada: Connection, served: Served) -> None:
    job = ada.forest("visits", epsilon=1, key=None)
    first = job.wait(timeout=60)
    again = ada.forest("visits", epsilon="1.0", key=job.key)
    assert (again.id, again.wait(timeout=60).to_json()) == (job.id, first.to_json())  # type: ignore[union-attr]
    assert served.charges() == ["1"]
    assert ada.forest("visits", epsilon=1).key != job.key


@pytest.mark.slow
def test_a_request_that_is_lost_tells_its_key(ada: Connection, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ada.transport._pool.request

    def lost(method: str, *given: Any, **how: Any) -> Any:
        answer = real(method, *given, **how)
        if method == "POST":
            raise OSError("the answer was lost on its way")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(ada.transport._pool, "request", lost)
        with pytest.raises(CuratorError, match="cannot be reached") as error:
            ada.forest("visits", epsilon=1)
    (key,) = re.findall("key='([0-9a-f-]{36})'", str(error.value))
    assert isinstance(ada.forest("visits", epsilon=1, key=key).wait(timeout=60), hedgerow.Release)
    assert served.charges() == ["1"]


@pytest.mark.slow
def test_counts(ada: Connection) -> None:
    plan = hedgerow.HedgerowClassifier(SCHEMA, epsilon="0.5").public_plan(tables=3)
    release = ada.counts("visits", plan).wait(timeout=60)
    assert isinstance(release, hedgerow.Release)
    assert (release.forest.trees, release.certificate.parts[0].owner) == (plan.trees, "Clinic A")


@pytest.mark.slow
def test_what_is_refused(ada: Connection, served: Served) -> None:
    with pytest.raises(BudgetError, match="short by"):
        ada.forest("visits", epsilon=3)
    with pytest.raises(PlanError, match="no such setting"):
        ada.forest("visits", "dpdf", epsilon=1, n_estimators=3, noise_rule="tight")
    with pytest.raises(CuratorError, match="or it is not granted to you") as refused:
        ada.dataset("nothing")
    assert (refused.value.status, refused.value.code) == (404, "not_found")
    with pytest.raises(CuratorError, match="token"):
        hedgerow.connect(served.url, "hrw_wrong").datasets()
    with pytest.raises(CuratorError, match="at least one"):
        ada.predict("0", [])
    with pytest.raises(PlanError, match="epsilon"):
        ada.forest("visits", epsilon=-1)
    assert served.charges() == []


@pytest.mark.slow
def test_the_purpose(ada: Connection, served: Served) -> None:
    served.curator.accounts.grant("ada", "visits", ["billing"])
    with pytest.raises(CuratorError, match="'billing', 'research'"):
        ada.quote("visits", epsilon=1)
    assert ada.quote("visits", epsilon=1, purpose="billing").cost.epsilon == 1


def test_a_job_that_fails_or_takes_long(ada: Connection, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from hedgerow.curator.http import work

    go_on = threading.Event()

    def fails(*_: object, **__: object) -> None:
        go_on.wait(180)
        raise RuntimeError("no")

    monkeypatch.setattr(work, "trained", fails)
    job = ada.forest("visits", epsilon=1)
    with pytest.raises(CuratorError, match="has not ended in time"):
        job.wait(timeout=0.1)
    go_on.set()
    with pytest.raises(CuratorError, match="failed: no row was looked at, and nothing was charged") as failed:
        job.wait(timeout=60)
    assert (failed.value.code, failed.value.charged) == ("failed", False)
    assert served.curator.ledger.balance("visits").spent == 0


def test_strange_answers(ada: Connection) -> None:
    with pytest.raises(CuratorError, match="expected fields"):
        Job.read(ada.transport, {"id": "x"})
    with pytest.raises(CuratorError, match="expected fields"):
        Job.read(ada.transport, [])


@pytest.mark.slow
def test_an_owner(servers: Servers, served: Served) -> None:
    owner = hedgerow.connect(served.url, served.owner).owner
    file = servers.folder / "Clinic A" / "visits.csv"
    made = owner.register("more", file, SCHEMA)
    assert (made.name, made.closed, made.balances) == ("more", False, ())
    with duckdb.connect(str(servers.folder / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_csv('{file}', types = {{'smoker': 'VARCHAR'}})")
    database = hedgerow.SQLTable(str(servers.folder / "clinic.duckdb"), "visits")
    assert owner.register("in a database", database, SCHEMA).place["table"] == "visits"
    assert {each.name: each.unit for each in owner.datasets()} == {"visits": hedgerow.Unit(), "more": None, "in a database": None}
    (whole,) = owner.ceiling("more", "1.5", 1e-6, what="first")
    assert (whole.scope, whole.epsilon, whole.delta) == ("dataset", Fraction(3, 2), Fraction(1, 10**6))
    assert (whole.spent, whole.remaining) == (0, Fraction(3, 2))
    assert any(each.scope == "analyst" for each in owner.ceiling("more", 0, analyst="ada"))
    assert owner.add("bob").role == "analyst"
    assert {person.name for person in owner.people()} == {"owner", "ada", "bob"}
    token = owner.token("bob", days=1)
    assert token.text is not None
    assert token.text not in repr(token)
    assert owner.grant("bob", "more", "care", "research") == ("care", "research")
    assert [each.name for each in hedgerow.connect(served.url, token.text).datasets()] == ["more"]
    assert owner.withdraw("bob", "more", "care") == ("research",)
    assert owner.withdraw("bob", "more") == ()
    assert owner.revoke(token.id).revoked
    assert [each.revoked is not None for each in owner.tokens("bob")] == [True]
    assert len(owner.tokens()) == 3
    with pytest.raises(CuratorError):
        hedgerow.connect(served.url, token.text).datasets()
    entries = list(owner.ledger())
    assert [entry.kind for entry in entries if entry.kind == "ceiling"] == ["ceiling"] * 3
    assert {"person", "token", "grant", "register"} <= {entry.kind for entry in entries}
    assert [entry.seq for entry in owner.ledger(after=entries[0].seq)] == [entry.seq for entry in entries[1:]]
    assert owner.export().startswith(b"seq,")
    assert owner.export("json").startswith((b"[", b"{"))
    assert (owner.unsettled(), owner.verify().sound, owner.verify().entries) == ((), True, len(entries))
    assert owner.close("more", "the end").closed
    assert {each.name: each.closed for each in owner.datasets()} == {"visits": False, "more": True, "in a database": False}
    with pytest.raises(CuratorError, match="for owners"):
        hedgerow.connect(served.url, served.ada).owner.people()


def test_an_unsettled_reservation(served: Served) -> None:
    lost = served.curator.ledger.reserve("visits", "ada", "research", "0.25", what="fit hedgerow")
    served.curator.ledger.opened(lost.key)
    (found,) = hedgerow.connect(served.url, served.owner).owner.unsettled()
    assert (found.id, found.cost.epsilon, found.opened, found.under_way) == (lost.key, Fraction(1, 4), True, False)


def test_what_a_job_cannot_score_is_refused_with_what_can(ada: Connection, served: Served) -> None:
    release = ada.dummy("visits", "rdt", epsilon=1, n_estimators=2, max_depth=1)
    with pytest.raises(
        PlanError, match=r"got a Release; expected the id of its job .* private_score\(release, connection\.table\('visits'\)"
    ):
        ada.score("visits", release, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=r"For the AUC and others: private_score"):
        ada.score("visits", "1", epsilon=1, metrics=["auc"])
    assert served.charges() == []


@pytest.mark.parametrize(("given", "meant"), [(0.1 + 0.2, '"0.3"'), (1 / 3, '"1/3"'), (2**0.5, '"1.414214"')])
def test_a_float_that_no_ledger_takes(ada: Connection, given: float, meant: str) -> None:
    with pytest.raises(PlanError, match=f"at most 12 digits at a service. Perhaps you mean {meant}"):
        ada.quote("visits", epsilon=given)


@pytest.mark.slow
def test_a_job_stands_for_its_release(ada: Connection, served: Served) -> None:
    job = ada.forest("visits", "rdt", epsilon=1, n_estimators=1, max_depth=1).done(timeout=60)
    with pytest.warns(SeenRowsWarning, match="which flatter it"):
        assert ada.score("visits", job, epsilon="1/4").done(timeout=60).what == "evaluate"
    assert served.charges() == ["1", "0.25"]


def test_a_forest_is_scored_with_a_warning_on_the_rows_that_it_was_trained_on(ada: Connection, served: Served) -> None:
    """As the command warned; before anything is charged: warnings are errors here. On other rows, or of a forest from elsewhere, none."""
    served.curator.registry.register("test", served.curator.registry.get("visits").place, SCHEMA)
    served.curator.ledger.ceiling("test", 50)
    served.curator.accounts.grant("ada", "test", ["research"])
    job = ada.forest("visits", "rdt", epsilon=1, n_estimators=1, max_depth=1).done(timeout=60)
    made, own = ada.release(job.id), hedgerow.PrivateRDTClassifier(None, "1/4", n_estimators=1, max_depth=1).fit(ada.table("visits"))
    spent = served.charges()
    for release in (made, own):
        with pytest.raises(SeenRowsWarning, match="trained on the rows of 'visits' themselves, which flatter it"):
            hedgerow.private_score(release, ada.table("visits"), epsilon="1/4")
    for given in (job, job.id):
        with pytest.raises(SeenRowsWarning, match="which flatter it"):
            ada.score("visits", given, epsilon="1/4")
    assert served.charges() == spent
    hedgerow.private_score(made, ada.table("test"), epsilon="1/4")
    hedgerow.private_score(own, ada.table("test"), epsilon="1/4")
    ada.score("test", job.id, epsilon="1/4").done(timeout=60)
    dummy = ada.dummy("visits", "rdt", epsilon=1, n_estimators=1, max_depth=1)
    hedgerow.private_score(dummy, ada.table("visits"), epsilon="1/4")
    assert len(served.charges()) == len(spent) + 4
