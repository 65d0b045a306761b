"""What is refused: in one shape, with a 4xx, before the table is opened, and without a word about its rows."""

from __future__ import annotations

import json
import logging
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from curator.http.conftest import FOREST, SCHEMA, Running, bearer
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.curator.application import application
from hedgerow.curator.http import logs
from hedgerow.curator.http.amounts import amount_of
from hedgerow.curator.http.errors import TABLE
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.recovery import failed_requests, lost_requests
from hedgerow.curator.http.service_context import Curator
from hedgerow.training import rows as training_rows

ODD: list[Any] = [
    None, 0, "", [], {}, "x", {"purpose": "research"}, {**FOREST, "epsilon": 0}, {**FOREST, "epsilon": -1}, {**FOREST, "epsilon": "1e9999"},
    {**FOREST, "epsilon": "1/1000001"}, {**FOREST, "epsilon": "0.1234567890123"}, {**FOREST, "epsilon": True}, {**FOREST, "epsilon": None},
    {**FOREST, "epsilon": "1/0"}, {**FOREST, "epsilon": "٣"}, {**FOREST, "epsilon": "9" * 5000},
    {**FOREST, "delta": 1}, {**FOREST, "delta": "x"}, {**FOREST, "delta": "1e-6", "algorithm": "rdt"}, {**FOREST, "algorithm": "id3"},
    {**FOREST, "algorithm": "plain-rdt"}, {**FOREST, "purpose": " "}, {**FOREST, "purpose": "a\0b"}, {**FOREST, "purpose": "x" * 201},
    {**FOREST, "settings": {"bins": 0}}, {**FOREST, "settings": {"bins": 10**9}}, {**FOREST, "settings": {"bins": 10**30}},
    {**FOREST, "settings": {"sampler": "opendp"}}, {**FOREST, "settings": {"budget": 1}}, {**FOREST, "settings": {"schema": "infer"}},
    {**FOREST, "settings": {"max_passes": 1}}, {**FOREST, "algorithm": "dpdf", "settings": {"sensitivity": "local"}},
    {**FOREST, "algorithm": "rdt", "settings": {"n_estimators": 10**6}}, {**FOREST, "algorithm": "rdt", "settings": {"max_depth": 31}},
    {**FOREST, "algorithm": "rdt", "settings": {"n_estimators": 1000, "max_depth": 30, "bins": 1000}}, {**FOREST, "more": 1},
]  # fmt: skip
RAW = [
    b"", b"{", b"\xff", b"[" * 100_000, b'{"epsilon": NaN}', b'{"purpose": "\\ud800", "epsilon": 1}', b'{"\\ud800": 1}',
    b'{"purpose": "research", "epsilon": ' + b"9" * 5000 + b"}", b'{"purpose": "research", "epsilon": 1e400}', b"null",
]  # fmt: skip
PATHS = ["quote", "dummy", "forests", "scores"]


def fine(answer: Any) -> None:
    """A refusal in the one shape."""
    assert 400 <= answer.status_code < 500, answer.text
    error = answer.json()
    assert set(error) == {"error"}
    assert set(error["error"]) == {"code", "message"}


@pytest.fixture
def never_opened(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: Any) -> None:
        raise AssertionError("the table was opened")

    monkeypatch.setattr(training_rows, "open_place", opened)
    monkeypatch.setattr("hedgerow.evaluation.private.open_place", opened)
    monkeypatch.setattr("hedgerow.curator.ledger.registry.open_place", opened)


@pytest.mark.usefixtures("never_opened")
@pytest.mark.parametrize("path", PATHS)
def test_odd_requests(running: Running, path: str) -> None:
    before = running.curator.ledger.head()
    for number, body in enumerate(ODD):
        answer = running.post(running.ada, f"/v1/datasets/patients/{path}", body, f"k{number}")
        fine(answer)
    headers = {**running.ada, "Idempotency-Key": "raw", "Content-Type": "application/json"}
    for content in RAW:
        fine(running.client.post(f"/v1/datasets/patients/{path}", content=content, headers=headers))
    assert running.curator.ledger.head() == before


@pytest.mark.usefixtures("never_opened")
def test_odd_keys(running: Running) -> None:
    before = running.curator.ledger.head()
    for key in ("", "x" * 201):
        fine(running.post(running.ada, "/v1/datasets/patients/forests", FOREST, key))
    fine(running.post(running.ada, "/v1/datasets/patients/forests", FOREST))
    assert running.curator.ledger.head() == before


@pytest.mark.usefixtures("never_opened")
def test_too_expensive(running: Running) -> None:
    before = running.curator.ledger.head()
    answer = running.post(running.ada, "/v1/datasets/patients/forests", {**FOREST, "epsilon": "2.5"}, "k")
    fine(answer)
    assert (answer.status_code, answer.json()["error"]["code"]) == (402, "budget")
    assert all(number in answer.json()["error"]["message"] for number in ("2.5", "remaining 2", "short by 0.5"))
    assert running.curator.ledger.head() == before


@pytest.mark.usefixtures("never_opened")
def test_closed(running: Running) -> None:
    closed = running.post(running.owner, "/v1/owner/datasets/patients/close", {"what": "the end"})
    assert closed.json()["closed"]
    for path in PATHS:
        body = {"purpose": "research", "epsilon": "0.5", "release": "0" * 32} if path == "scores" else FOREST
        answer = running.post(running.ada, f"/v1/datasets/patients/{path}", body, "k")
        fine(answer)
        assert path == "scores" or answer.json()["error"]["code"] == "closed"
    assert running.get(running.ada, "/v1/datasets").json()["datasets"][0]["closed"]
    fine(running.post(running.owner, "/v1/owner/datasets/patients/close", {}))
    fine(running.post(running.owner, "/v1/owner/datasets/patients/ceilings", {"epsilon": 3}))


def test_an_answer_outlives_its_dataset(running: Running) -> None:
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    running.post(running.owner, "/v1/owner/datasets/patients/close", {})
    assert running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json() == job
    assert running.get(running.ada, job["result"]).status_code == 200


def test_without_a_ceiling_nothing_is_paid(running: Running) -> None:
    body = {"name": "new", "path": str(running.file), "schema": SCHEMA.to_toml()}
    running.post(running.owner, "/v1/owner/datasets", body)
    running.post(running.owner, "/v1/owner/grants", {"analyst": "ada", "dataset": "new", "purposes": ["research"]})
    assert running.get(running.ada, "/v1/datasets/new").json()["purposes"]["research"]["remaining"]["epsilon"] == "0"
    assert running.post(running.ada, "/v1/datasets/new/forests", FOREST, "k").status_code == 402


def test_a_broken_table_is_told_to_the_owner_alone(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    running.file.write_text("secret_column,smoker,class\n1,no,a\n")
    with caplog.at_level(logging.INFO, logs.NAME):
        job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    assert job["state"] == "failed"
    assert set(job["error"]) == {"code", "message"}
    assert "column" not in json.dumps(job)
    assert running.curator.ledger.balance("patients").spent == 0  # no row was looked at
    (line,) = [record.fields for record in caplog.records if record.message == "job failed"]  # type: ignore[attr-defined]
    assert line["kind"] == "TableError"
    assert "age" in line["message"]
    (failed,) = failed_requests(running.curator)  # as `hedgerow curator status` counts them
    assert (failed.reserved.key, "age" in failed.reason, lost_requests(running.curator)) == (job["id"], True, [])


def test_a_failure_in_the_middle_stays_spent(running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("hedgerow.engines.streamed.StreamedRows._pass", _fails)
    with caplog.at_level(logging.INFO, logs.NAME):
        job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    assert job["state"] == "failed"
    assert "57.3" not in json.dumps(job) + " ".join(logs.JSONLines().format(record) for record in caplog.records)
    assert (job["cost"]["epsilon"], running.curator.ledger.reservation(job["id"]).state) == ("0.5", "open")
    again = running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json()
    assert again == job  # nothing was stored, and under this key it is not paid for again


def _fails(*_: Any, **__: Any) -> None:
    raise RuntimeError("row 17 holds 57.3")


def test_too_large_and_too_many(running: Running) -> None:
    headers = {**running.ada, "Idempotency-Key": "k"}
    large = b" " * (2 << 20)
    fine(running.client.post("/v1/datasets/patients/forests", content=large, headers=headers))
    answer = running.client.post("/v1/datasets/patients/forests", content=iter([large[: 1 << 19]] * 4), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    for method, path, status in (("PUT", "/v1/datasets", 405), ("GET", "/no", 404), ("GET", "/v1/jobs/", 404), ("PUT", "/health", 405)):
        answer = running.client.request(method, path, headers=running.ada)
        fine(answer)
        assert answer.status_code == status


def test_unexpected_errors_have_the_shape_too(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(running.curator.accounts), "visible", _fails)
    answer = running.get(running.ada, "/v1/datasets")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "unexpected")
    assert "57.3" not in answer.text


TOML = SCHEMA.to_toml()
OWNERS_ODD: list[tuple[str, Any]] = [
    ("people", {"name": "ada"}), ("people", {"name": " x"}), ("people", {"name": "x", "role": "king"}), ("tokens", {"person": "nobody"}),
    ("tokens", {"person": "ada", "days": 0}), ("tokens", {"person": "ada", "days": 10**10}),
    ("grants", {"analyst": "ada", "dataset": "nothing", "purposes": ["x"]}),
    ("grants", {"analyst": "owner", "dataset": "patients", "purposes": ["x"]}),
    ("grants", {"analyst": "ada", "dataset": "patients"}), ("datasets", {"name": "d", "path": "/nowhere.csv", "schema": TOML}),
    ("datasets", {"name": "patients", "path": "/nowhere.csv", "schema": TOML}), ("datasets", {"name": "d", "path": "x", "schema": "]"}),
    ("datasets", {"name": "d", "schema": TOML}), ("datasets", {"name": "d", "database": "x.duckdb", "schema": TOML}),
    ("datasets", {"name": "d", "database": "postgresql://u:p@h/d", "table": "t", "schema": TOML}),
    ("datasets/nothing/ceilings", {"epsilon": 1}), ("datasets/nothing/close", {}), ("datasets/%20/close", {}),
    ("datasets/patients/ceilings", {"epsilon": 1, "analyst": "ada", "purpose": "x"}), ("datasets/patients/ceilings", {"epsilon": -1}),
    ("datasets/patients/ceilings", {"epsilon": 1, "delta": 0.7}),
]  # fmt: skip


def test_odd_requests_of_an_owner(running: Running) -> None:
    before = running.curator.ledger.head()
    for path, body in OWNERS_ODD:
        fine(running.post(running.owner, f"/v1/owner/{path}", body))
    for path in ("ledger?after=-1", "ledger?most=0", "ledger/export?format=xml", "tokens?person=%20", "ledger?after=" + "9" * 30):
        fine(running.get(running.owner, f"/v1/owner/{path}"))
    fine(running.client.delete("/v1/owner/tokens/nothing", headers=running.owner))
    assert running.curator.ledger.head() == before


def test_what_an_owner_sees(running: Running) -> None:
    see = lambda path: running.get(running.owner, f"/v1/owner/{path}")  # noqa: E731
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    kinds = [entry["kind"] for entry in see("ledger").json()["entries"]]
    people = ["person", "token"] * 3  # the owner, ada and bob
    assert kinds == [*people, "register", "ceiling", "grant", "reserve", "open", "settle", "answer"]
    assert [entry["seq"] for entry in see("ledger?after=1&most=2").json()["entries"]] == [2, 3]
    assert len(json.loads(see("ledger/export?format=json").text)) == 13
    assert see("ledger/export").text.count("\r\n") == 14
    assert see("ledger/verification").json()["sound"]
    assert see("ledger/unsettled").json() == {"unsettled": []}
    (dataset,) = see("datasets").json()["datasets"]
    assert dataset["place"] == {"path": str(running.file)}
    assert {(b["scope"], b["name"]): b["spent"] for b in dataset["balances"]}["analyst", "ada"] == job["cost"]["epsilon"]
    assert [person["name"] for person in see("people").json()["people"]] == ["ada", "bob", "owner"]
    assert "hrw_" not in see("tokens").text
    assert TABLE not in see("datasets").text


@given(st.one_of(st.text(max_size=50), st.integers(), st.floats(), st.from_regex(r"[0-9]{1,14}([./][0-9]{1,14})?", fullmatch=True)))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_amounts_are_short(value: Any) -> None:
    try:
        amount = amount_of(value)
    except ValueError:
        return
    assert amount >= 0
    assert amount.denominator <= 10**6 or (amount * 10**12).denominator == 1
    assert amount == Fraction(value if isinstance(value, str) else repr(value))


def test_what_takes_too_long_to_compute(curator: Curator, file: Path) -> None:
    token = curator.accounts.first_owner()
    assert token is not None
    curator.registry.register("patients", file, SCHEMA)
    app = application(curator, Limits(answer_seconds=0))
    with TestClient(app) as client:
        for path in ("quote", "dummy"):
            answer = client.post(f"/v1/datasets/patients/{path}", json=FOREST, headers=bearer(token))
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_long")
        assert client.get("/ready").status_code == 200
        app.state.service.jobs.stop()
        assert (client.get("/ready").status_code, client.get("/health").status_code) == (503, 200)
