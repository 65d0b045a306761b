"""Every route with no token, a wrong one, another person's, an expired and a revoked one; and nothing is said about what is not granted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from curator.service.conftest import FOREST, Running, bearer
from fastapi.routing import APIRoute

from hedgerow.curator.accounts import Accounts

OPEN = {"/health", "/ready", "/openapi.json"}


def routes(routes_: Any) -> Iterator[tuple[str, str]]:
    """Methods and paths, from the OpenAPI document."""
    for path, methods in routes_["paths"].items():
        for method in methods:
            yield method.upper(), path


def all_routes(running: Running) -> list[tuple[str, str]]:
    found = list(routes(running.client.get("/openapi.json").json()))
    assert len(found) >= 24
    return [(method, path) for method, path in found if path not in OPEN]


def filled(path: str) -> str:
    return path.replace("{name}", "patients").replace("{id}", "0" * 32)


def test_without_a_valid_token_there_is_nothing(running: Running) -> None:
    moment = datetime.now(UTC)
    expired = Accounts(running.curator.database, lambda: moment - timedelta(days=9)).issue("ada", timedelta(days=1))[0]
    text, record = running.curator.accounts.issue("ada")
    revoked = running.client.delete(f"/v1/owner/tokens/{record.id}", headers=running.owner)
    assert revoked.json()["revoked"]
    bad = [{}, bearer("hrw_wrong"), bearer(""), bearer(expired), bearer(text), {"Authorization": running.ada["Authorization"][7:]}]
    bad += [{"Authorization": "Basic YTpi"}, bearer("x" * 5000)]
    for method, path in [*all_routes(running), ("GET", "/v1"), ("GET", "/v1/nothing"), ("PUT", "/v1/datasets")]:
        answers = [running.client.request(method, filled(path), headers=headers, content=b"{") for headers in bad]
        assert {(answer.status_code, answer.text) for answer in answers} == {(401, answers[0].text)}, path
        assert answers[0].json()["error"]["code"] == "token"


def test_owners_routes_are_for_owners(running: Running) -> None:
    owners = [(method, path) for method, path in all_routes(running) if path.startswith("/v1/owner")]
    assert len(owners) >= 14
    before = running.curator.ledger.head()
    for method, path in [*owners, ("GET", "/v1/owner"), ("GET", "/v1/owner/nothing")]:
        answer = running.client.request(method, filled(path), headers=running.ada, json={"name": "eve", "role": "owner"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "owner"), path
    assert (running.curator.ledger.head(), len(running.curator.accounts.people())) == (before, 3)


def test_not_granted_is_not_there(running: Running) -> None:
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    bodies: dict[str, Any] = {"scores": {**FOREST, "release": job["id"]}}
    for what in ("", "/quote", "/dummy", "/forests", "/scores"):
        method = "POST" if what else "GET"
        answers = []
        for name in ("patients", "nothing", "%20", "a%00b", "x" * 300, "%F0%9F%8C%B3"):
            for body in (bodies.get(what[1:], FOREST), {}):
                headers = {**running.bob, "Idempotency-Key": "k"}
                answer = running.client.request(method, f"/v1/datasets/{name}{what}", headers=headers, json=body if what else None)
                answers.append((body == {}, answer.status_code, answer.text))
        assert len(set(answers)) <= 2, what
        assert {status for invalid, status, _ in answers if not invalid} == {404}
    assert running.get(running.bob, "/v1/datasets").json() == {"datasets": []}
    for kind in ("jobs", "releases", "scores"):
        mine, unknown = (running.get(running.bob, f"/v1/{kind}/{id}") for id in (job["id"], "0" * 32))
        assert mine.status_code == unknown.status_code == 404
        assert mine.text == unknown.text
    assert running.get(running.owner, f"/v1/releases/{job['id']}").status_code == 200


def test_another_analyst_has_keys_of_its_own(running: Running) -> None:
    running.post(running.owner, "/v1/owner/grants", {"analyst": "bob", "dataset": "patients", "purposes": ["research"]})
    first = running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json()
    second = running.post(running.bob, "/v1/datasets/patients/forests", FOREST, "k").json()
    assert first["id"] != second["id"]
    assert running.ended(running.ada, first)["state"] == running.ended(running.bob, second)["state"] == "done"
    stolen = running.post(running.bob, "/v1/datasets/patients/scores", {**FOREST, "release": first["id"]}, "s")
    assert stolen.status_code == 404


def test_a_purpose_and_a_grant_that_was_withdrawn(running: Running) -> None:
    other = running.post(running.ada, "/v1/datasets/patients/forests", {**FOREST, "purpose": "advertising"}, "k")
    assert (other.status_code, other.json()["error"]["code"]) == (403, "purpose")
    running.post(running.owner, "/v1/owner/grants", {"analyst": "ada", "dataset": "patients", "withdraw": True})
    assert running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").status_code == 404
    assert running.curator.ledger.balance("patients").spent == 0


def test_the_document_names_no_route_twice(running: Running) -> None:
    assert all(isinstance(route, APIRoute) for route in running.client.app.routes if getattr(route, "path", "").startswith("/v1"))  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", sorted(OPEN))
def test_open_to_all(running: Running, path: str) -> None:
    answer = running.client.get(path)
    assert answer.status_code == 200
    assert "patients" not in answer.text
