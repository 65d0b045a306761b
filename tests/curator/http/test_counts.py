"""Counts in a plan that several owners share: as `hedgerow count` makes them, refused before anything is paid, and paid once."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from curator.http.conftest import FOREST, SCHEMA, Running
from fastapi.testclient import TestClient

from hedgerow import Categorical, HedgerowClassifier, Numeric, PrivateRDTClassifier, PublicPlan, Schema, SNRForestClassifier, Target, merge
from hedgerow.curator.application import application
from hedgerow.curator.http import analyst_routes as analysts
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.requests import Algorithm
from hedgerow.release.release import Release
from hedgerow.schema.csv_dialect import CSVDialect
from hedgerow.training.algorithms import PRIVATE

PATH = "/v1/datasets/patients/counts"


def document(plan: PublicPlan) -> Any:
    import msgspec

    return json.loads(msgspec.json.encode(plan.document()))


def body(plan: PublicPlan, **more: Any) -> dict[str, Any]:
    return {"purpose": "research", "plan": document(plan), **more}


def hedgerow_plan(epsilon: Any = "0.5", schema: Schema = SCHEMA, **settings: Any) -> PublicPlan:
    return HedgerowClassifier(schema, epsilon=epsilon, **settings).public_plan(tables=3)


PLANS = {
    "hedgerow": lambda: hedgerow_plan(),
    "rdt": lambda: PrivateRDTClassifier(SCHEMA, epsilon="1/3", n_estimators=3, max_depth=2, random_state=1).public_plan(),
    "snr, rows planned for": lambda: SNRForestClassifier(SCHEMA, epsilon="0.5", random_state=2).public_plan(rows=3000, tables=2),
}


@pytest.mark.parametrize("name", PLANS)
def test_counted(running: Running, name: str) -> None:
    plan = PLANS[name]()
    asked = running.post(running.ada, PATH, body(plan), "k")
    assert asked.status_code == 202, asked.text
    job = running.ended(running.ada, asked.json())
    assert (job["state"], Fraction(job["cost"]["epsilon"])) == ("done", plan.epsilon)
    release = Release.from_json(running.get(running.ada, job["result"]).content)
    (part,) = release.certificate.parts
    assert (part.owner, part.id, part.disjoint, Fraction(part.epsilon)) == ("patients", "patients", False, plan.epsilon)
    assert (release.forest.trees, release.certificate.private) == (plan.trees, True)
    noise_sd = release.forest.tree_noise_sd[0]
    leaves = release.forest.counts[0].size
    assert abs(release.forest.counts[0].sum() - 500) < 10 * noise_sd * np.sqrt(leaves)
    assert running.curator.ledger.balance("patients").spent == plan.epsilon
    again = running.post(running.ada, PATH, body(plan), "k").json()
    assert again == job
    assert running.get(running.ada, again["result"]).content == release.to_json()
    assert running.curator.ledger.balance("patients").spent == plan.epsilon
    other = running.post(running.ada, PATH, body(hedgerow_plan("0.25")), "k")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "key_used")


def test_files_are_read_as_the_owners_schema_says(running: Running) -> None:
    """A plan does not say how files are written."""
    colons = running.file.with_name("colons.csv")
    colons.write_text(running.file.read_text().replace(",", ":"))
    running.curator.registry.register("colons", colons, replace(SCHEMA, csv=CSVDialect(delimiter=":")))
    running.curator.ledger.ceiling("colons", 5)
    running.curator.accounts.grant("ada", "colons", ["research"])
    plan = PrivateRDTClassifier(SCHEMA, epsilon="5", n_estimators=1, max_depth=1, random_state=1).public_plan()
    asked = running.post(running.ada, PATH.replace("patients", "colons"), body(plan), "k")
    job = running.ended(running.ada, asked.json())
    assert job["state"] == "done", job
    release = Release.from_json(running.get(running.ada, job["result"]).content)
    assert abs(release.forest.counts[0].sum() - 500) < 20


def test_the_owners_name_is_the_services(running: Running, limits: Limits) -> None:
    assert running.get(running.ada, "/v1/datasets/patients").json()["owner"] == "patients"
    with TestClient(application(running.curator, limits, "Clinic A"), raise_server_exceptions=False) as client:
        running.client = client
        assert running.get(running.ada, "/v1/datasets/patients").json()["owner"] == "Clinic A"
        job = running.ended(running.ada, running.post(running.ada, PATH, body(hedgerow_plan()), "k").json())
        (part,) = Release.from_json(running.get(running.ada, job["result"]).content).certificate.parts
        assert (part.owner, part.id) == ("Clinic A", "patients")
        assert job["what"] == "count Hedgerow forest"


def damaged() -> dict[str, Any]:
    found = document(hedgerow_plan())
    found["epsilon"] = "0.25"
    return found


def with_other_trees() -> PublicPlan:
    """Its hash is right, and its trees are not what the settings and the seed make."""
    one, other = (
        PrivateRDTClassifier(SCHEMA, epsilon="0.5", n_estimators=3, max_depth=2, random_state=seed).public_plan() for seed in (1, 2)
    )
    assert one.trees != other.trees
    return replace(one, trees=other.trees)


OTHER = Schema([Numeric("age", 0, 110), Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))
PERSONS = replace(SCHEMA, person="id", rows_per_person=2)
REFUSED: dict[str, tuple[Any, str]] = {
    "no plan": (lambda: {"purpose": "research", "plan": {}}, "format"),
    "a release": (lambda: {"purpose": "research", "plan": {"format": "hedgerow-release", "version": 2}}, "release"),
    "damaged": (lambda: {"purpose": "research", "plan": damaged()}, "content hash"),
    "NaN and surrogates": (lambda: {"purpose": "research", "plan": {"format": "\ud800", "version": 1}}, "JSON"),
    "another schema": (lambda: body(hedgerow_plan(schema=OTHER)), "schema"),
    "another unit": (lambda: body(hedgerow_plan(schema=PERSONS)), "schema"),
    "an ε too long": (lambda: body(hedgerow_plan("1/101")), "1/101"),
    "a large ε": (lambda: body(hedgerow_plan(11)), "ε = 11"),
    "a large ε, another confirmed": (lambda: body(hedgerow_plan(11), epsilon=12), "ε = 11"),
    "other trees": (lambda: body(with_other_trees()), "do not follow"),
    "another seed": (lambda: body(replace(PLANS["rdt"](), seed=7)), "do not follow"),
    "too many trees": (lambda: body(PrivateRDTClassifier(SCHEMA, epsilon=1, n_estimators=21, max_depth=1).public_plan()), "21 trees"),
    "too many bins": (lambda: body(hedgerow_plan(bins=33)), "33 bins"),
    "too many leaves": (
        lambda: body(PrivateRDTClassifier(SCHEMA, epsilon=1, n_estimators=20, max_depth=2, bins=30).public_plan()),
        "leaves",
    ),
    "an owner": (lambda: body(hedgerow_plan(), owner="me"), "owner"),
    "disjoint": (lambda: body(hedgerow_plan(), disjoint=True), "disjoint"),
}


class TestRefused:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(stop_seconds=5, trees=20, leaves=1000, bins=32)

    @pytest.mark.parametrize("name", REFUSED)
    def test_before_it_is_paid(self, running: Running, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        make, said = REFUSED[name]
        before = running.curator.ledger.head()
        monkeypatch.setattr("hedgerow.training.rows.open_place", _opened)
        monkeypatch.setattr("hedgerow.curator.ledger.registry.open_place", _opened)
        content = json.dumps(make())
        headers = {**running.ada, "Idempotency-Key": "k", "Content-Type": "application/json"}
        answer = running.client.post(PATH, content=content, headers=headers)
        assert answer.status_code == 422, answer.text
        assert said in answer.json()["error"]["message"]
        assert running.curator.ledger.head() == before


def _opened(*_: Any) -> None:
    raise AssertionError("the table was opened")


def test_what_it_may_not_use_is_not_there(running: Running) -> None:
    plan = body(hedgerow_plan())
    unknown, other = running.post(running.bob, "/v1/datasets/nothing/counts", plan, "k"), running.post(running.bob, PATH, plan, "k")
    assert (unknown.status_code, unknown.text) == (404, other.text)
    assert running.post(running.ada, PATH, {**plan, "purpose": "sale"}, "k").status_code == 403
    poor = running.post(running.ada, PATH, body(hedgerow_plan("2.5")), "k")
    assert (poor.status_code, poor.json()["error"]["code"]) == (402, "budget")
    running.post(running.owner, "/v1/owner/datasets/patients/close", {})
    assert running.post(running.ada, PATH, plan, "k").json()["error"]["code"] == "closed"
    assert running.curator.ledger.balance("patients").spent == 0


def test_a_large_epsilon_that_is_repeated(running: Running) -> None:
    running.post(running.owner, "/v1/owner/datasets/patients/ceilings", {"epsilon": "20"})
    job = running.ended(running.ada, running.post(running.ada, PATH, body(hedgerow_plan(11), epsilon=11), "k").json())
    assert (job["state"], job["cost"]["epsilon"]) == ("done", "11")


@pytest.mark.slow
def test_a_plan_may_be_larger_than_another_body(running: Running) -> None:
    large = {"purpose": "research", "plan": {"format": "hedgerow-plan", "version": 1, "trees": [0] * (1 << 20)}}
    assert running.post(running.ada, PATH, large, "k").status_code == 422
    for path in ("/v1/datasets/patients/quote", "/v1/datasets/a/b/counts", "/v1/datasets//counts"):
        assert running.post(running.ada, path, large, "k").status_code == 413
    object.__setattr__(running.client.app.state.service.limits, "plan_bytes", 1 << 21)  # type: ignore[attr-defined]
    assert running.post(running.ada, PATH, large, "k").status_code == 413


def test_one_plan_is_checked_at_a_time(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, real, seen = body(hedgerow_plan()), analysts.checked_count, []

    def checked(*given: Any) -> PublicPlan:
        seen.append(running.post(running.ada, PATH, plan, "other"))
        return real(*given)

    monkeypatch.setattr(analysts, "checked_count", checked)
    assert running.post(running.ada, PATH, plan, "k").status_code == 202
    (busy,) = seen
    assert (busy.status_code, busy.headers["Retry-After"]) == (429, "1")


def test_a_job_that_failed_after_it_was_opened_is_paid_again_under_a_new_key(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never fresh noise for one charge, and never a second charge for one key: nothing was stored, so another key costs a second time."""
    with monkeypatch.context() as patch:
        patch.setattr("hedgerow.engines.streamed.StreamedRows._pass", _fails)
        first = running.ended(running.ada, running.post(running.ada, PATH, body(hedgerow_plan()), "k").json())
    assert (first["state"], running.curator.ledger.reservation(first["id"]).state) == ("failed", "open")
    assert running.post(running.ada, PATH, body(hedgerow_plan()), "k").json() == first
    second = running.ended(running.ada, running.post(running.ada, PATH, body(hedgerow_plan()), "new").json())
    assert (second["state"], second["id"] != first["id"]) == ("done", True)
    assert running.curator.ledger.balance("patients").spent == 1
    third = running.post(running.ada, PATH, body(hedgerow_plan()), "new").json()
    assert third == second
    assert running.curator.ledger.balance("patients").spent == 1


def _fails(*_: Any, **__: Any) -> None:
    raise RuntimeError("row 17 holds 57.3")


def test_a_dummy_release_cannot_pass_for_a_real_one(running: Running) -> None:
    tried = running.post(running.ada, "/v1/datasets/patients/dummy", FOREST).json()
    release = Release.from_json(json.dumps(tried["release"]).encode())
    assert (release.certificate.private, release.certificate.epsilon) == (False, None)
    assert "dummy rows" in release.certificate.sentence()
    with pytest.raises(Exception, match="cannot be put together"):
        merge([release])


def test_one_list_of_algorithms() -> None:
    assert set(get_args(Algorithm)) == set(PRIVATE)


def test_a_body_is_not_read_for_somebody_who_may_not_use_the_dataset(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(who: dict[str, str]) -> tuple[int, str]:
        answer = running.client.post(PATH, content=b'{"plan": [[', headers={**who, "Idempotency-Key": "k"})
        return answer.status_code, answer.json()["error"]["code"]

    assert sent(running.ada) == (422, "invalid")
    monkeypatch.setattr(analysts, "counts_of", _fails)
    assert sent(running.bob) == (404, "not_found")


def test_a_plan_is_not_made_into_objects_until_it_is_known_what_it_is_for(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_sent(content: bytes, *_: Any) -> None:
        seen.append(content)
        raise Refusal(422, "plan", "seen")

    seen: list[bytes] = []
    monkeypatch.setattr(analysts, "checked_count", as_sent)
    content = b'{"plan" : {"a":  [[ ], 1e0]} , "purpose":"research"}'
    assert running.client.post(PATH, content=content, headers={**running.ada, "Idempotency-Key": "k"}).status_code == 422
    assert seen == [b'{"a":  [[ ], 1e0]}']


WRONG: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "body"),
    "no JSON": (b'{"purpose": "research", "plan": {"a": tru}}', "body"),
    "no object": (b"[1]", "object"),
    "not UTF-8": (b'{"purpose": "\xff", "plan": {}}', "body"),
    "too deep": (b'{"purpose": "research", "plan": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "body"),
    "no purpose": (b'{"plan": {}}', "body.purpose: Field required"),
    "no plan": (b'{"purpose": "research"}', "body.plan: Field required"),
    "a plan that is none": (b'{"purpose": "research", "plan": []}', "body.plan: Input should be a valid dictionary"),
    "a purpose that is none": (b'{"purpose": 1, "plan": {}}', "body.purpose: Input should be a valid string"),
    "a long purpose": (b'{"purpose": "' + b"x" * 20_000 + b'", "plan": {}}', "body.purpose"),
    "an ε of 0": (b'{"purpose": "research", "plan": {}, "epsilon": 0}', "body.epsilon"),
    "an ε that is none": (b'{"purpose": "research", "plan": {}, "epsilon": "NaN"}', "body.epsilon"),
    "a name twice, another field": (b'{"purpose": "research", "plan": {}, "plan": {}, "planned": {}}', "planned"),
}


@pytest.mark.parametrize(("content", "said"), WRONG.values(), ids=WRONG)
def test_wrong_bodies(running: Running, content: bytes, said: str) -> None:
    answer = running.client.post(PATH, content=content, headers={**running.ada, "Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")
    assert said in answer.json()["error"]["message"]
