"""Every route with every kind of token; and nothing is said, by words or by work, about what is not granted."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
import sqlalchemy as sql
from curator.http.conftest import FOREST, SCHEMA, Running, bearer
from curator.http.routes import GUARDED, KNOWN, ROUTES, Route, routes_of

from hedgerow import HedgerowClassifier
from hedgerow.curator.ledger.accounts import Accounts

UNKNOWN = "0" * 32
NAMES = ("nothing", "%20", "a%00b", "x" * 300, "%F0%9F%8C%B3")
PLAN = json.loads(msgspec.json.encode(HedgerowClassifier(SCHEMA, epsilon="0.25").public_plan().document()))
OWN = [route for route in ROUTES if route.kind in ("own", "mine")]
OF_DATASETS = [route for route in ROUTES if route.kind == "dataset"]


class Asked:
    """A service in which ada has a forest and a score of "patients", and nobody is granted "secrets"."""

    def __init__(self, running: Running) -> None:
        self.running = running
        forest = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "forest").json())
        body = {**FOREST, "release": forest["id"]}
        score = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/scores", body, "score").json())
        assert forest["state"] == score["state"] == "done"
        self.release, self.score = forest["id"], score["id"]
        begun = {"purpose": "research", "epsilon": "0.25"}
        self.session = running.post(running.ada, "/v1/datasets/patients/sessions", begun, "session").json()["id"]
        secrets = {"name": "secrets", "path": str(running.file), "schema": SCHEMA.to_toml()}
        assert running.post(running.owner, "/v1/owner/datasets", secrets).status_code == 201
        assert running.post(running.owner, "/v1/owner/datasets/secrets/ceilings", {"epsilon": "1"}).status_code == 201

    def id_of(self, route: Route) -> str:
        if route.path == "/v1/owner/tokens/{id}":
            return self.running.curator.accounts.issue("bob")[1].id
        if route.path.startswith("/v1/sessions"):
            return self.session
        return self.score if route.path.startswith("/v1/scores") else self.release

    def ask(self, who: dict[str, str], route: Route, name: str = "patients", id: str | None = None, path: str | None = None) -> Any:
        """With a body that would be taken."""
        known: dict[str, Any] = {"{plan}": PLAN, "{release}": self.release, "{file}": str(self.running.file), "{schema}": SCHEMA.to_toml()}
        body = None if route.body is None else {field: known.get(str(value), value) for field, value in route.body.items()}
        headers = {**who, "Idempotency-Key": uuid.uuid4().hex}
        where = path or route.filled(name, id or self.id_of(route))
        return self.running.client.request(route.method, where, headers=headers, json=body)


@pytest.fixture
def asked(running: Running) -> Asked:
    return Asked(running)


def told(answer: Any) -> tuple[Any, ...]:
    """All of an answer but its number."""
    return answer.status_code, answer.text, tuple(sorted((n, v) for n, v in answer.headers.items() if n not in ("x-request-id", "date")))


@contextmanager
def statements(running: Running) -> Iterator[list[str]]:
    """What the books are asked meanwhile."""
    found: list[str] = []
    engine = running.curator.database._process_engine

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        found.append(statement)

    sql.event.listen(engine, "before_cursor_execute", note)
    yield found
    sql.event.remove(engine, "before_cursor_execute", note)


def test_every_route_is_known_here(running: Running) -> None:
    assert routes_of(running.client.app) == KNOWN


def refused_tokens(running: Running) -> dict[str, Any]:
    moment = datetime.now(UTC)
    expired = Accounts(running.curator.database, lambda: moment - timedelta(days=9)).issue("ada", timedelta(days=1))[0]
    text, record = running.curator.accounts.issue("ada")
    assert running.client.delete(f"/v1/owner/tokens/{record.id}", headers=running.owner).json()["revoked"]
    good = running.ada["Authorization"]
    return {
        "none": {}, "wrong": bearer("hrw_" + "A" * 43), "short": bearer("hrw_wrong"), "empty": bearer(""), "long": bearer("x" * 5000),
        "expired": bearer(expired), "revoked": bearer(text), "bare": {"Authorization": good[7:]},
        "another scheme": {"Authorization": "Basic YTpi"}, "as a cookie": {"Cookie": f"token={good[7:]}"},
        "not ASCII": {"Authorization": b"Bearer \xe9\xff"}, "changed": {"Authorization": good[:-1] + ("A" if good[-1] != "A" else "B")},
    }  # fmt: skip


@pytest.mark.slow
def test_without_a_valid_token_there_is_nothing(asked: Asked) -> None:
    running = asked.running
    bad = refused_tokens(running)
    before = running.curator.ledger.head(), len(running.curator.accounts.people())
    nowhere = [Route("GET", "/v1", "person"), Route("GET", "/v1/nothing", "person"), Route("PUT", "/v1/datasets", "person")]
    answers = {told(asked.ask(token, route, id=UNKNOWN)) for route in [*GUARDED, *nowhere] for token in bad.values()}
    assert len(answers) == 1  # one answer for every route, there or not, and for every reason
    ((status, text, _),) = answers
    assert status == 401
    assert '"token"' in text
    assert before == (running.curator.ledger.head(), len(running.curator.accounts.people()))


def test_a_refused_token_costs_the_same_work_whatever_is_wrong_with_it(running: Running) -> None:
    work = {}
    for name, token in refused_tokens(running).items():
        with statements(running) as found:
            assert running.client.get("/v1/datasets/patients", headers=token).status_code == 401
        work[name] = tuple(found)
    assert len(set(work.values())) == 1, work


@pytest.mark.slow
def test_a_path_that_is_written_otherwise_is_no_way_in(asked: Asked) -> None:
    for route in GUARDED:
        path = route.filled("patients", UNKNOWN)
        others = [path + "/", path.upper(), path.replace("/v1", "/v1/."), path.replace("/v1", "/x/../v1"), path + "%00"]
        others += [f"http://testserver/{path}", path + "%0A"]
        for other in others:
            answer = asked.ask({}, route, path=other)
            assert answer.status_code in (401, 404, 405, 413), other  # 413: nobody sends anything to such an address


@pytest.mark.slow
def test_who_may_use_what(asked: Asked) -> None:
    """With a valid token: 403 for an analyst where owners decide, 404 for somebody else's, and an answer where one is due."""
    running = asked.running
    everybody = {"owner": running.owner, "ada": running.ada, "bob": running.bob}
    due = {"open": everybody, "person": everybody, "owner": {"owner"}, "dataset": {"owner", "ada"}, "own": {"owner", "ada"},
           "mine": {"ada"}}  # fmt: skip
    for route in ROUTES:
        refused = 403 if route.kind == "owner" else 404
        for name, who in sorted(everybody.items(), key=lambda entry: entry[0] in due[route.kind]):  # those who may not come first
            if route.status in (202, 201) and name == "owner" and route.kind == "dataset":
                continue  # paid work is ada's here; that an owner may is tested below
            answer = asked.ask(who, route)
            expected = route.status if name in due[route.kind] else refused
            assert answer.status_code == expected, (route, name, answer.text)
    assert running.curator.ledger.verify().sound


def test_an_owner_may_pay_for_a_forest(running: Running) -> None:
    assert running.post(running.owner, "/v1/datasets/patients/forests", FOREST, "k").status_code == 202


def test_owners_routes_say_the_same_whether_or_not_they_are_there(asked: Asked) -> None:
    owners = [route for route in ROUTES if route.kind == "owner"]
    nowhere = [Route("GET", "/v1/owner", "owner"), Route("GET", "/v1/owner/nothing", "owner"), Route("PUT", "/v1/owner/people", "owner")]
    assert len({told(asked.ask(asked.running.ada, route, id=UNKNOWN)) for route in [*owners, *nowhere]}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("who", ["ada", "bob"])
def test_not_granted_is_not_there(asked: Asked, who: str) -> None:
    """In words and in work: a dataset that is not granted, and names of none."""
    running = asked.running
    person = getattr(running, who)
    for route in OF_DATASETS:
        answers, work = set(), []
        for name in ("secrets", *NAMES):
            with statements(running) as found:
                answers.add(told(asked.ask(person, route, name)))
            work.append(found)
        assert len(answers) == 1, route
        assert next(iter(answers))[0] == 404, route
        assert work[0] == work[1], route  # a name that could be one
        paths = [route.filled(name, "") for name in ("secrets", *NAMES)]
        assert len({told(running.client.request(route.method, path, headers=person, json={})) for path in paths}) == 1, route
    listed = running.get(person, "/v1/datasets").json()["datasets"]
    assert [dataset["name"] for dataset in listed] == (["patients"] if who == "ada" else [])


def test_somebody_elses_is_not_there(asked: Asked) -> None:
    running = asked.running
    for route in OWN:
        answers, work = set(), []
        for id in (asked.id_of(route), UNKNOWN, "x" * 300, "%20", "nothing"):
            with statements(running) as found:
                answers.add(told(asked.ask(running.bob, route, id=id)))
            work.append(found)
        assert len(answers) == 1, route
        assert next(iter(answers))[0] == 404, route
        assert work[0] == work[1], route
    running.post(running.owner, "/v1/owner/grants", {"analyst": "bob", "dataset": "patients", "purposes": ["research"]})
    score = next(route for route in OF_DATASETS if route.path.endswith("/scores"))
    assert asked.ask(running.bob, score).status_code == 404  # the dataset is bob's by now, and the release is not


def test_another_analyst_has_keys_of_its_own(running: Running) -> None:
    running.post(running.owner, "/v1/owner/grants", {"analyst": "bob", "dataset": "patients", "purposes": ["research"]})
    first = running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json()
    second = running.post(running.bob, "/v1/datasets/patients/forests", FOREST, "k").json()
    assert first["id"] != second["id"]
    assert running.ended(running.ada, first)["state"] == running.ended(running.bob, second)["state"] == "done"


def test_a_purpose_and_a_grant_that_was_withdrawn(running: Running) -> None:
    other = running.post(running.ada, "/v1/datasets/patients/forests", {**FOREST, "purpose": "advertising"}, "k")
    assert (other.status_code, other.json()["error"]["code"]) == (403, "purpose")
    running.post(running.owner, "/v1/owner/grants", {"analyst": "ada", "dataset": "patients", "withdraw": True})
    assert running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").status_code == 404
    assert running.curator.ledger.balance("patients").spent == 0


def test_a_token_that_is_revoked_is_refused_at_once(running: Running) -> None:
    text, record = running.curator.accounts.issue("ada")
    assert running.get(bearer(text), "/v1/datasets").status_code == 200
    Accounts(running.curator.database).revoke(record.id)  # by somebody else, such as the command line
    assert running.get(bearer(text), "/v1/datasets").status_code == 401


@pytest.mark.parametrize("path", [route.path for route in ROUTES if route.kind == "open"])
def test_open_to_all(running: Running, path: str) -> None:
    answer = running.client.get(path)
    assert answer.status_code == 200
    assert "patients" not in answer.text
