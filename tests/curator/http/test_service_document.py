"""Whatever may be sent by the OpenAPI document, and whatever may not: no 5xx, and answers that are as the document says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
from curator.http.conftest import FOREST, Running
from curator.http.routes import KNOWN
from curator.http.test_service_access import PLAN
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import hedgerow.curator
from hedgerow.curator.http.errors import CODES

pytestmark = pytest.mark.parametrize("new_address", ["sqlite"], indirect=True)
CHECKS = [status_code_conformance, content_type_conformance, response_headers_conformance, response_schema_conformance]
EXAMPLES = 10  # for each operation, each kind of data and each person
SETTINGS = settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture
def ids(running: Running) -> dict[str, list[Any]]:
    """What is there: names and ids that make an operation succeed."""
    forest = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "forest").json())
    body = {**FOREST, "release": forest["id"]}
    score = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/scores", body, "score").json())
    assert forest["state"] == score["state"] == "done"
    return {"name": ["patients"], "id": [forest["id"], score["id"]], "release": [forest["id"]], "purpose": ["research"], "person": ["ada"],
            "analyst": ["ada"], "dataset": ["patients"], "epsilon": ["0.5", 0.25, "1/3"], "delta": ["0"], "settings": [{}]}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("who", ["owner", "ada"])
def test_answers_are_as_the_document_says(running: Running, ids: dict[str, list[Any]], who: str, mode: GenerationMode) -> None:
    document = schemathesis.openapi.from_dict(running.client.get("/openapi.json").json())
    reached: dict[tuple[str, str], set[int]] = {}
    for found in document.get_all_operations():
        operation = found.ok()
        route = (operation.method.upper(), operation.path)
        reached[route] = set()
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.headers):
            continue  # nothing can be wrong
        for account in ({}, {"analyst": "ada"}, {"purpose": "research"}):  # a ceiling set by chance must not refuse all that follows
            running.curator.ledger.ceiling("patients", 1000, "0.5", **account)
        _try(running, operation, mode, getattr(running, who), ids, reached[route])
    assert {route for route in KNOWN if route[1] != "/openapi.json"} == reached.keys()
    if mode is GenerationMode.POSITIVE:
        refused = {route for route, statuses in reached.items() if not any(status < 300 for status in statuses)}
        wanted = {route for route in reached if who == "owner" or not route[1].startswith("/v1/owner")}
        assert refused & wanted <= NEVER_BY_CHANCE | LEFT_OUT
    assert running.curator.ledger.verify().sound


NEVER_BY_CHANCE = {  # a schema in TOML, the id of a token, a session of one's own, a body of a verb
    ("POST", "/v1/owner/datasets"), ("DELETE", "/v1/owner/tokens/{id}"), ("POST", "/v1/sessions/{id}/end"),
    ("POST", "/v1/sessions/{id}/{verb}"),
}  # fmt: skip
OF_ONE: dict[str, dict[str, list[Any]]] = {  # what makes one operation succeed
    "/v1/releases/{id}/predict": {"rows": [[{"age": 30, "smoker": "no"}, {"age": None, "smoker": 7}]]},
    "/v1/datasets/{name}/sessions": {"bins": [5], "what": ["a look"]},
    "/v1/datasets/{name}/counts": {"plan": [PLAN], "epsilon": [None, "0.25"], "together": [None]},
    "/v1/owner/grants": {"purposes": [["research"]], "withdraw": [False]},
}
LEFT_OUT = {("POST", "/v1/owner/datasets/{name}/close")}  # all else would be refused after it; only of a dataset that is not there


def _try(running: Running, operation: Any, mode: GenerationMode, who: dict[str, str], ids: dict[str, list[Any]], reached: set[int]) -> None:
    of_one = OF_ONE.get(operation.path, {})
    ids = {**ids, **of_one}
    closes = (operation.method.upper(), operation.path) in LEFT_OUT

    @seed(10)
    @SETTINGS
    @given(operation.as_strategy(generation_mode=mode), st.data())
    def check(case: Any, data: Any) -> None:
        every = mode is GenerationMode.POSITIVE and data.draw(st.booleans())  # else an operation with many fields would hardly ever succeed
        if mode is GenerationMode.POSITIVE and not closes and not operation.path.endswith("/people"):
            if every and isinstance(case.body, dict):
                case.body.update(dict.fromkeys(of_one))  # filled below
            for given in (case.path_parameters, case.body):
                for name in sorted(set(ids) & set(given if isinstance(given, dict) else ())):  # sorted: the same draws in every process
                    if every or data.draw(st.booleans()):
                        given[name] = data.draw(st.sampled_from(ids[name]))
        sent = case.as_transport_kwargs(base_url="http://testserver")
        headers = {**{name: value for name, value in sent["headers"].items() if name.lower() != "authorization"}, **who}
        if every and "Idempotency-Key" in headers:
            headers["Idempotency-Key"] = uuid4().hex
        answer = running.client.request(
            sent["method"], sent["url"], params=sent.get("params"), headers=headers, json=sent.get("json"), content=sent.get("data")
        )
        reached.add(answer.status_code)
        assert answer.status_code < 500, (operation.label, answer.text)
        case.validate_response(answer, checks=CHECKS)

    check()


def test_every_code_of_a_refusal_is_in_the_document(running: Running) -> None:
    sources = [path.read_text() for path in Path(hedgerow.curator.__path__[0]).rglob("*.py")]
    used = {code for text in sources for code in re.findall(r'(?:Refusal\(\s*\d+,|"code":|\d{3}: \()\s*"([a-z_]+)"', text)}
    assert used == set(CODES)
    problem = running.client.get("/openapi.json").json()["components"]["schemas"]["Problem"]
    assert problem["properties"]["code"]["enum"] == sorted(CODES)


def test_every_operation_is_described_and_typed(running: Running) -> None:
    document = running.client.get("/openapi.json").json()
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), (method, path)
            assert ("security" in operation) == path.startswith("/v1"), (method, path)
            (good,) = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            assert good["content"], (method, path)
            assert good["content"].get("application/json", {"schema": {"$ref"}}).get("schema") != {}, (method, path)
