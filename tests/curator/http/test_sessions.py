"""Sessions of numbered looks: charged before they look, answered once, ended whatever happens; and strangers' bodies are refused."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from anyio.to_thread import current_default_thread_limiter
from curator.http.conftest import FOREST, SCHEMA, Running, bearer
from curator.http.serving import wait_until
from fastapi.testclient import TestClient

from hedgerow.curator.application import application
from hedgerow.curator.http import logs
from hedgerow.curator.http import session_worker as looking
from hedgerow.curator.http import sessions as module
from hedgerow.curator.http.errors import TABLE
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.query_decoder import QueryDecoder
from hedgerow.curator.http.service_context import Curator
from hedgerow.engines.streamed import StreamedRows
from hedgerow.errors import PlanError, TableError
from hedgerow.queries import forms
from hedgerow.queries.scores import GINI
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook

SESSION: dict[str, Any] = {"purpose": "research", "epsilon": "1"}
ROOT = {"attribute": [-1], "branch": []}
SPLIT = {"attribute": [1, -1, -1], "branch": [1, 2, -1]}  # by "smoker"
MODEL = {"base": [0.0, 0.5], "trees": [SPLIT], "scores": [[0.0, 0.0, 0.1, 0.0, -0.1, 0.0]]}
BOOSTED = [{"asks": [1, 0], "answers": [[2, 0, 1, 1], [3, 0, 3, 1]]}, {"asks": [1], "answers": [[1, 0, 2, 1]]}]  # by "smoker" and "age"
BOOSTED_MODEL = {**MODEL, "boosted": BOOSTED[1:], "scores": [*MODEL["scores"], [0.1, 0.0, -0.1, 0.5]]}
CANDIDATES = [{"attribute": 0, "groups": [0, 1, 2, 3, 4]}, {"attribute": 1, "groups": [0, 1]}]
BODIES: dict[str, dict[str, Any]] = {
    "rows": {"price": "1/10"},
    "leaf_counts": {"trees": [ROOT, SPLIT], "price": "1/10"},
    "sizes": {"tree": SPLIT, "nodes": [1, 2], "price": "1/10"},
    "class_counts": {"tree": SPLIT, "nodes": [1, 2], "price": "1/10"},
    "tables": {"tree": SPLIT, "nodes": [1, 2], "asked": [[0], [0, 1]], "price": "1/10"},
    "gradient_sums": {"asked": [SPLIT], "model": MODEL, "price": "1/10"},
    "leaf_sizes": {"trees": [ROOT, SPLIT], "price": "1/10"},
    "choose_tree": {"trees": BOOSTED, "model": MODEL, "concentrated": False, "epsilon": "1/10"},
    "boost_round": {"trees": BOOSTED[:1], "model": BOOSTED_MODEL, "concentrated": False, "chosen": 1, "price": "1/10"},
    "choose": {
        "tree": ROOT, "nodes": [0], "candidates": CANDIDATES, "allowed": [[0, 1]], "score": GINI.name, "epsilon": "1/10",
        "mechanism": "permute-and-flip",
    },
    "confusion": {"predictor": {"model": MODEL}, "price": "1/10"},
    "best": {"predictors": [{"model": MODEL}, {"model": {**MODEL, "base": [9, 0]}}], "epsilon": "1/10"},
    "best_model": {"models": [{"model": MODEL}, {"model": {**MODEL, "base": [9, 0]}}], "epsilon": "1/10"},
    "best_scale": {"model": MODEL, "scales": [1.0, 0.5], "epsilon": "1/10"},
}  # fmt: skip


class Sessions:
    """Ada's sessions, by hand."""

    def __init__(self, running: Running) -> None:
        self.running, self.keys = running, 0

    def begin(self, who: dict[str, str] | None = None, key: str | None = None, **more: Any) -> Any:
        self.keys += 1
        body = {**SESSION, **more}
        return self.running.post(who or self.running.ada, "/v1/datasets/patients/sessions", body, key or f"key {self.keys}")

    def id(self, **more: Any) -> str:
        answer = self.begin(**more)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def look(self, id: str, number: Any = 1, verb: str = "rows", who: dict[str, str] | None = None, **more: Any) -> Any:
        body = {"number": number, **BODIES.get(verb, {}), **more}
        return self.running.post(who or self.running.ada, f"/v1/sessions/{id}/{verb}", body)

    def end(self, id: str, who: dict[str, str] | None = None) -> Any:
        return self.running.client.post(f"/v1/sessions/{id}/end", headers=who or self.running.ada)

    @property
    def spent(self) -> Fraction:
        return self.running.curator.ledger.balance("patients").spent

    def opened(self, id: str) -> bool:
        return self.running.curator.ledger.reservation(id).opened


@pytest.fixture
def sessions(running: Running) -> Sessions:
    return Sessions(running)


def refused(answer: Any, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text


def looked(*_: Any) -> Any:
    raise AssertionError("the rows were looked at")  # the answer is then a 500


def test_looks_are_charged_and_the_rest_is_given_back(sessions: Sessions) -> None:
    begun = sessions.begin(what="a try", epsilon="1.4")
    assert begun.status_code == 201
    assert begun.json() | {"id": ""} == {
        "id": "", "dataset": "patients", "purpose": "research", "epsilon": "1.4", "delta": "0", "bins": 5,
        "coins": "system randomness (os.urandom)", "secret": True,
    }  # fmt: skip
    id = begun.json()["id"]
    assert (sessions.spent, sessions.opened(id)) == (Fraction(14, 10), False)
    for number, verb in enumerate(BODIES, 1):
        answer = sessions.look(id, number, verb)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert (found["number"], found["event"]["verb"], found["event"]["epsilon"]) == (number, verb, "1/10")
        assert all(type(value) is int for array in found["arrays"] for value in array)
    refused(sessions.look(id, len(BODIES) + 1), 402, "budget")
    ended = sessions.end(id).json()
    assert ended == {"id": id, "state": "settled", "spent": {"epsilon": "1.4", "delta": "0"}}
    assert sessions.end(id).json() == ended
    refused(sessions.look(id, len(BODIES) + 1), 410, "ended")
    assert sessions.running.curator.ledger.reservation(id).what == "session: a try"


def test_one_number_is_one_look(sessions: Sessions) -> None:
    id = sessions.id()
    refused(sessions.look(id, 2), 409, "number")
    refused(sessions.look(id, 0), 409, "number")
    assert not sessions.opened(id)
    first = sessions.look(id, 1)
    for _ in range(3):
        assert sessions.look(id, 1).content == first.content
    refused(sessions.look(id, 1, price="1/5"), 409, "number")
    refused(sessions.look(id, 1, "class_counts"), 409, "number")
    refused(sessions.look(id, 3), 409, "number")
    second = sessions.look(id, 2)
    assert second.status_code == 200
    refused(sessions.look(id, 1), 409, "number")  # only the last answer is kept
    refused(sessions.look(id, 3, "sizes", nodes=[0, 1]), 422, "plan")  # refused before the charge: the number is not used up
    assert sessions.look(id, 2).content == second.content
    assert sessions.look(id, 3).status_code == 200
    assert sessions.end(id).json()["spent"]["epsilon"] == "0.3"


def test_two_at_once_are_one_after_the_other(sessions: Sessions) -> None:
    id = sessions.id()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: sessions.look(id, 1), range(16)))
        assert len({(answer.status_code, answer.content) for answer in answers}) == 1
        others = list(pool.map(lambda i: sessions.look(id, 2, price=f"{i + 1}/100"), range(8)))
    assert sorted(answer.status_code for answer in others) == [200] + [409] * 7
    (answered,) = [answer.json() for answer in others if answer.status_code == 200]
    assert Fraction(sessions.end(id).json()["spent"]["epsilon"]) == Fraction(1, 10) + Fraction(answered["event"]["epsilon"])


def test_a_session_is_its_owners(sessions: Sessions) -> None:
    running, id = sessions.running, sessions.id()
    for who in (running.bob, running.owner):
        for answer in (sessions.look(id, who=who), sessions.end(id, who)):
            unknown = sessions.look("0" * 32, who=who)
            assert (answer.status_code, answer.text) == (404, unknown.text)
    assert not sessions.opened(id)
    assert sessions.look(id).status_code == 200
    refused(sessions.look(id, 2, "nothing"), 404, "not_found")
    sessions.end(id)
    for who in (running.bob, running.owner):
        assert sessions.look(id, who=who).status_code == sessions.end(id, who).status_code == 404


def test_what_a_session_may_not_have(sessions: Sessions) -> None:
    running = sessions.running
    refused(sessions.begin(running.bob), 404, "not_found")
    refused(sessions.begin(purpose="other"), 403, "purpose")
    refused(sessions.begin(epsilon="3"), 402, "budget")
    refused(sessions.begin(delta="0.4"), 402, "budget")
    refused(sessions.begin(bins=10**6), 422, "plan")
    refused(sessions.begin(epsilon="1/101"), 422, "invalid")
    refused(sessions.begin(sampler="opendp"), 422, "invalid")
    refused(running.post(running.ada, "/v1/datasets/patients/sessions", SESSION), 422, "invalid")  # without a key
    assert sessions.spent == 0
    running.post(running.owner, "/v1/owner/datasets/patients/close", {})
    refused(sessions.begin(), 409, "closed")


@pytest.mark.slow
def test_a_key_begins_one_session(sessions: Sessions) -> None:
    id = sessions.id(key="k")
    assert sessions.id(key="k") == id
    refused(sessions.begin(key="k", epsilon="0.5"), 409, "key_used")
    assert sessions.spent == 1
    sessions.end(id)
    refused(sessions.begin(key="k"), 409, "key_used")
    assert sessions.spent == 0


def test_as_many_as_there_is_room_for(sessions: Sessions) -> None:
    limits = sessions.running.client.app.state.service.limits  # type: ignore[attr-defined]
    object.__setattr__(limits, "sessions_each", 2)
    ids = [sessions.id(epsilon="0.1") for _ in range(2)]
    refused(sessions.begin(epsilon="0.1"), 429, "busy")
    assert sessions.spent == Fraction(1, 5)
    sessions.end(ids[0])
    assert sessions.begin(epsilon="0.1").status_code == 201


@pytest.mark.parametrize("looks", [0, 1])
def test_closed_in_between(sessions: Sessions, looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    running, id = sessions.running, sessions.id()
    for number in range(looks):
        assert sessions.look(id, number + 1).status_code == 200
    running.post(running.owner, "/v1/owner/datasets/patients/close", {})
    monkeypatch.setattr(StreamedRows, "_pass", looked)
    refused(sessions.look(id, looks + 1, "class_counts"), 409, "closed")
    ended = sessions.end(id).json()
    assert ended["state"] == ("settled" if looks else "released")
    assert Fraction(ended["spent"]["epsilon"]) <= Fraction(looks, 5)  # what was charged for the look that was refused stays
    assert running.curator.ledger.verify().sound


def test_a_grant_that_is_withdrawn_in_between(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    running, id = sessions.running, sessions.id()
    assert sessions.look(id, 1).status_code == 200
    running.post(running.owner, "/v1/owner/grants", {"analyst": "ada", "dataset": "patients", "withdraw": True})
    monkeypatch.setattr(StreamedRows, "_pass", looked)
    answer, unknown = sessions.look(id, 2, "class_counts"), sessions.look("0" * 32)
    assert (answer.status_code, answer.text) == (404, unknown.text)
    assert sessions.end(id).json()["spent"]["epsilon"] == "0.1"


def test_overspending_is_refused_without_a_look(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    id = sessions.id(epsilon="0.15")
    monkeypatch.setattr(StreamedRows, "_pass", looked)
    refused(sessions.look(id, 1, price="1/5"), 402, "budget")
    refused(sessions.look(id, 1, price={"rho": "1/1000"}), 402, "budget")
    assert not sessions.opened(id)
    assert sessions.end(id).json()["state"] == "released"
    assert sessions.spent == 0


def broken(*_: Any) -> Any:
    raise TableError("the file 'SECRET' was changed.")


def test_a_table_that_cannot_be_read(sessions: Sessions, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    running = sessions.running
    early, late = sessions.id(epsilon="0.5"), sessions.id(epsilon="0.5")
    assert sessions.look(late).status_code == 200
    running.file.write_text("SECRET,smoker\n1,2\n")
    monkeypatch.setattr(StreamedRows, "_pass", broken)
    with caplog.at_level(logging.INFO, logs.NAME):
        for id, number in ((early, 1), (late, 2)):
            answer = sessions.look(id, number, "class_counts")
            refused(answer, 409, "table")
            assert answer.json()["error"]["message"] == TABLE
    said = [record.fields for record in caplog.records if getattr(record, "fields", {}).get("event") == "error"]  # type: ignore[attr-defined]
    assert [fields["kind"] for fields in said] == ["TableError", "TableError"]
    assert sessions.look(late, 2, "class_counts").json()["error"]["message"] == TABLE  # the same number, the same answer
    assert sessions.end(early).json()["spent"]["epsilon"] == "0"  # its headers were wrong: refused before the charge
    assert sessions.end(late).json()["spent"]["epsilon"] == "0.2"


DEEP = {"attribute": [0] * 2000 + [-1], "branch": [j for i in range(2000) for j in (i + 1, -1, -1, -1, -1, -1)]}
HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("rows", {"price": None}), ("rows", {"price": 0.1}), ("rows", {"price": "0"}), ("rows", {"price": "-1/2"}), ("rows", {"price": "1/0"}),
    ("rows", {"price": "1e-5"}), ("rows", {"price": "1/" + "9" * 30_000}), ("rows", {"price": "1/" + "9" * 79}), ("rows", {"price": "٣"}),
    ("rows", {"price": {"rho": "x"}}), ("rows", {"price": {"rho": "1", "more": 1}}), ("rows", {"sampler": "opendp"}),
    ("rows", {"coins": 1}),
    ("rows", {"price": "1/" + str(2**70)}), ("rows", {"number": "1"}), ("rows", {"number": 1.5}), ("rows", {"number": 10**30}),
    ("rows", {"number": True}), ("rows", {"number": -1}),
    ("leaf_counts", {"trees": []}), ("leaf_counts", {"trees": [{}]}), ("leaf_counts", {"trees": [{"attribute": [], "branch": []}]}),
    ("leaf_counts", {"trees": [{"attribute": [0, -1], "branch": [0, 0, 0, 0, 0, -1]}]}),
    ("leaf_counts", {"trees": [{"attribute": [1, 1, -1], "branch": [1, 1, -1, 0, 2, -1]}]}),
    ("leaf_counts", {"trees": [{"attribute": [1, -1, -1], "branch": [1, 7, -1]}]}),
    ("leaf_counts", {"trees": [{"attribute": [5, -1], "branch": [1, -1]}]}),
    ("leaf_counts", {"trees": [{"attribute": [2**40], "branch": []}]}),
    ("leaf_counts", {"trees": [{"attribute": [1.5], "branch": []}]}), ("leaf_counts", {"trees": [{"attribute": "x", "branch": []}]}),
    ("leaf_counts", {"trees": [DEEP]}), ("leaf_counts", {"trees": [ROOT] * 60_001}),
    ("sizes", {"nodes": []}), ("sizes", {"nodes": [-1]}), ("sizes", {"nodes": [3]}), ("sizes", {"nodes": [1, 1]}),
    ("sizes", {"nodes": [0, 1]}),
    ("sizes", {"nodes": [10**30]}), ("sizes", {"nodes": [True]}), ("class_counts", {"nodes": [[1]]}), ("class_counts", {"nodes": None}),
    ("tables", {"asked": []}), ("tables", {"asked": [[0]]}), ("tables", {"asked": [[], []]}), ("tables", {"asked": [[2], [0]]}),
    ("tables", {"asked": [[-1], [0]]}), ("tables", {"asked": [[True], [False]]}), ("tables", {"asked": [["0"], []]}),
    ("gradient_sums", {"asked": []}), ("gradient_sums", {"model": {}}), ("gradient_sums", {"model": {**MODEL, "base": [0.0]}}),
    ("gradient_sums", {"model": {**MODEL, "base": [1e7, 0]}}), ("gradient_sums", {"model": {**MODEL, "scores": [[0.0] * 5]}}),
    ("gradient_sums", {"model": {**MODEL, "scores": []}}), ("gradient_sums", {"model": {**MODEL, "base": [None, 0]}}),
    ("gradient_sums", {"model": {**MODEL, "base": []}}),
    ("choose", {"candidates": []}), ("choose", {"allowed": [[]]}), ("choose", {"allowed": [[2]]}), ("choose", {"allowed": [[-1]]}),
    ("choose", {"allowed": [[0], [0]]}), ("choose", {"score": "x"}), ("choose", {"score": "Brier score"}),
    ("choose", {"score": "information gain, N = 99999999999999999999999"}), ("choose", {"score": "information gain, N = -1"}),
    ("choose", {"mechanism": "argmax"}), ("choose", {"epsilon": {"rho": "1"}}), ("choose", {"epsilon": "0"}),
    ("choose", {"candidates": [{"attribute": 0, "groups": [0]}, CANDIDATES[1]]}),
    ("choose", {"candidates": [{"attribute": 9, "groups": [0, 1]}, CANDIDATES[1]]}),
    ("choose", {"candidates": [{"attribute": -1, "groups": [0, 1]}, CANDIDATES[1]]}),
    ("choose", {"candidates": [{"attribute": 1, "groups": [0, 2]}, CANDIDATES[1]]}),
    ("choose", {"candidates": [{"attribute": 1, "groups": []}, CANDIDATES[1]]}), ("choose", {"candidates": [[0, [0, 1]]]}),
    ("choose_locally", {**BODIES["choose"], "sizes": [5]}),
    ("confusion", {"predictor": {}}),
    ("confusion", {"predictor": {"model": MODEL, "release": {}}}), ("confusion", {"predictor": {"release": 1}}),
    ("confusion", {"predictor": {"release": {"format": "hedgerow-release"}}}), ("confusion", {"predictor": "x"}),
    ("reliability", {"predictor": {}, "bins": 5, "edges": "narrow near 1", "price": "1"}),
    ("reliability", {"predictor": {"model": MODEL}, "bins": 5, "price": "1"}),  # by a client that reads the counts by other edges
    ("reliability", {"predictor": {"model": MODEL}, "bins": 5, "edges": "even", "price": "1"}),
    ("score_bins", {"predictor": {"model": MODEL}, "bins": 10**9, "classes": [0], "price": "1"}),
    ("score_bins", {"predictor": {"model": MODEL}, "bins": 5, "classes": [], "price": "1"}),
    ("score_bins", {"predictor": {"model": MODEL}, "bins": 5, "classes": [0, 0], "price": "1"}),
    ("score_bins", {"predictor": {"model": MODEL}, "bins": 5, "classes": [0] * 10**5, "price": "1"}),
    ("score_bins", {"predictor": {"model": MODEL}, "bins": 5, "classes": ["0"], "price": "1"}),
    ("best_model", {"models": []}), ("best_model", {"models": [{"model": MODEL}] * 1001}), ("best_model", {"models": [{"release": []}]}),
    ("best_model", {"models": [{}]}), ("best_model", {"models": [{"model": {**MODEL, "base": [1, 2, 3]}}]}),
    ("best", {"predictors": []}), ("best", {"predictors": [{"model": MODEL}] * 1001}), ("best", {"predictors": [{"release": []}]}),
    ("best_scale", {"scales": []}), ("best_scale", {"scales": [0.0]}), ("best_scale", {"scales": [5.0]}),
    ("best_scale", {"scales": [None]}),
    ("best_scale", {"scales": [0.5] * 1001}), ("best_scale", {"scales": [-1]}),
]  # fmt: skip
RAW = [
    b"", b"{", b"\xff", b"[" * 100_000, b"null", b"1", b'{"number": 1}', b'{"number": NaN, "price": "1"}',
    b'{"number": 1, "price": "\\ud800"}',
    b'{"number": 1, "price": "1", "number": 2}', b'{"number": 1, "number": 1, "price": Infinity}', b'{"number": ' + b"9" * 5000 + b"}",
]  # fmt: skip


@pytest.mark.slow
def test_hostile_bodies_are_refused_and_cost_nothing(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    id, ada = sessions.id(), sessions.running.ada
    monkeypatch.setattr(StreamedRows, "_pass", looked)
    for verb, more in HOSTILE:
        answer = sessions.look(id, verb=verb, **more)
        assert 400 <= answer.status_code < 500, (verb, str(more)[:200], answer.text)
        assert set(answer.json()["error"]) == {"code", "message"}
    for content in RAW:
        for verb in BODIES:
            answer = sessions.running.client.post(f"/v1/sessions/{id}/{verb}", headers=ada, content=content)
            assert 400 <= answer.status_code < 500, (verb, content[:100], answer.text)
    large = sessions.running.client.post(f"/v1/sessions/{id}/rows", headers=ada, content=b" " * (2**25 + 1))
    refused(large, 413, "too_large")
    assert not sessions.opened(id)
    assert sessions.end(id).json() == {"id": id, "state": "released", "spent": {"epsilon": "0", "delta": "0"}}


def test_numbers_that_would_take_too_long_to_add_up(sessions: Sessions) -> None:
    """Denominators that grow with each look: refused long before the sums are slow."""
    id = sessions.id(epsilon="2")
    primes = [2**k - 1 for k in range(150, 256)]
    answers = []
    for number, prime in enumerate(primes, 1):
        answers.append(sessions.look(id, number, price=f"{prime // 1000}/{prime}").status_code)
        if answers[-1] != 200:
            break
    assert answers[-1] == 422
    assert 5 < len(answers) < 100


def test_larger_bodies_than_elsewhere(sessions: Sessions) -> None:
    id, limits = sessions.id(), Limits()
    content = json.dumps({"number": 1, **BODIES["leaf_counts"]}).encode() + b" " * (2 * limits.body_bytes)
    assert limits.body_bytes < len(content) < limits.verb_bytes
    headers = sessions.running.ada
    assert sessions.running.client.post(f"/v1/sessions/{id}/leaf_counts", headers=headers, content=content).status_code == 200
    assert sessions.running.client.post("/v1/datasets/patients/forests", headers=headers, content=content).status_code == 413
    object.__setattr__(sessions.running.client.app.state.service.limits, "verb_bodies", 0)  # type: ignore[attr-defined]
    refused(sessions.running.client.post(f"/v1/sessions/{id}/leaf_counts", headers=headers, content=content), 503, "busy")
    assert sessions.look(id, 2).status_code == 200  # a small one


def test_a_release_as_a_predictor(sessions: Sessions) -> None:
    running = sessions.running
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    content = running.get(running.ada, job["result"]).content
    bins, id = Release.from_json(content).codebook.bins, sessions.id(epsilon="0.5")
    predictor = {"release": json.loads(content)}
    other = sessions.id(epsilon="0.3", bins=bins)
    assert sessions.look(other, 1, "confusion", predictor=predictor).status_code == 200
    reliable = sessions.look(other, 2, "reliability", predictor=predictor, bins=4, edges="narrow near 1", price="1/10")
    assert len(reliable.json()["arrays"][0]) == 8
    scores = sessions.look(other, 3, "score_bins", predictor=predictor, bins=4, classes=[0, 1], price="1/10")
    assert len(scores.json()["arrays"][0]) == 24
    if bins != 5:
        refused(sessions.look(id, 1, "confusion", predictor=predictor), 422, "plan")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Looks take until the function is called."""
    go_on, real = threading.Event(), StreamedRows._pass
    monkeypatch.setattr(StreamedRows, "_pass", lambda self, question: go_on.wait(180) and real(self, question))
    yield go_on.set
    go_on.set()


def test_a_long_look_is_asked_for_again(sessions: Sessions, slow: Callable[[], None]) -> None:
    limits = sessions.running.client.app.state.service.limits  # type: ignore[attr-defined]
    object.__setattr__(limits, "look_wait_seconds", 0.05)
    id = sessions.id()
    for _ in range(2):
        assert (sessions.look(id).status_code, sessions.look(id).json()) == (202, {"state": "running"})
    refused(sessions.look(id, 2), 409, "busy")
    refused(sessions.end(id), 409, "busy")
    slow()
    wait_until(lambda: sessions.look(id).status_code == 200)
    assert sessions.end(id).json()["spent"]["epsilon"] == "0.1"


def test_whoever_waits_for_a_look_holds_no_thread(sessions: Sessions, limits: Limits, slow: Callable[[], None]) -> None:
    object.__setattr__(limits, "look_wait_seconds", 300)
    client = sessions.running.client
    assert client.portal is not None
    client.portal.call(lambda: setattr(current_default_thread_limiter(), "total_tokens", 2))
    id = sessions.id()
    session = client.app.state.service.sessions.live(id)  # type: ignore[attr-defined]
    with ThreadPoolExecutor(8) as pool:
        try:
            looks = [pool.submit(sessions.look, id) for _ in range(4)]
            wait_until(lambda: session.last.number == 1)
            ends = [pool.submit(sessions.end, id) for _ in range(4)]
            wait_until(lambda: len(session.last.done._waiting) == 8)
            assert client.get("/ready").status_code == 200
            assert not any(request.done() for request in (*looks, *ends))
        finally:
            slow()
    assert {look.result().status_code for look in looks} == {end.result().status_code for end in ends} == {200}
    assert sessions.spent == Fraction(1, 10)


@pytest.mark.slow
def test_what_nobody_uses_is_ended(sessions: Sessions) -> None:
    service = sessions.running.client.app.state.service  # type: ignore[attr-defined]
    looked, unused = sessions.id(epsilon="0.5"), sessions.id(epsilon="0.5")
    assert sessions.look(looked).status_code == 200
    object.__setattr__(service.limits, "session_idle_seconds", 0.01)
    wait_until(lambda: sessions.spent == Fraction(1, 10))
    refused(sessions.look(looked, 2), 410, "ended")
    assert sessions.end(unused).json()["state"] == "released"


@pytest.mark.slow
def test_what_lives_too_long_is_ended(sessions: Sessions) -> None:
    service = sessions.running.client.app.state.service  # type: ignore[attr-defined]
    id = sessions.id()
    assert sessions.look(id).status_code == 200
    service.sessions.live(id).ends = time.monotonic()
    wait_until(lambda: sessions.spent == Fraction(1, 10))


def test_a_crash_leaves_it_spent(sessions: Sessions, limits: Limits) -> None:
    running, looked, unused = sessions.running, sessions.id(epsilon="0.5"), sessions.id(epsilon="0.25")
    assert sessions.look(looked).status_code == 200
    with TestClient(application(running.curator, limits), raise_server_exceptions=False) as again:  # which knows of no session
        for id, cost in ((looked, "0.5"), (unused, "0.25")):
            answer = again.post(f"/v1/sessions/{id}/rows", json={"number": 2, "price": "1/10"}, headers=running.ada)
            refused(answer, 410, "lost")
            assert "stays spent" in answer.json()["error"]["message"]
            assert again.post(f"/v1/sessions/{id}/end", headers=running.ada).json()["spent"]["epsilon"] == cost
            hidden = again.post(f"/v1/sessions/{id}/rows", json={"number": 2, "price": "1/10"}, headers=running.bob)
            assert hidden.status_code == 404
    assert sessions.spent == Fraction(3, 4)


def test_lists_of_another_length_are_refused_before_room_is_made_for_them(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    monkeypatch.setattr(forms.np, "zeros", looked)
    for verb, name in (("tables", "asked"), ("choose", "allowed")):
        body = {"number": 1, **BODIES[verb], name: [[]] * 1000}
        with pytest.raises(PlanError, match=f"{name}: expected one list"):
            QueryDecoder(Codebook(SCHEMA), limits).query(verb, json.dumps(body).encode())


@pytest.mark.slow
def test_a_stop_has_an_end_where_a_session_has_none(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    never, real = threading.Event(), looking.SessionWorker.end

    def hangs(self: looking.SessionWorker) -> None:
        never.wait(120)
        real(self)

    ids = [sessions.id(), sessions.id()]
    for id in ids:
        assert sessions.look(id).status_code == 200
    monkeypatch.setattr(looking.SessionWorker, "end", hangs)
    monkeypatch.setattr(module, "STOP_SECONDS", 0.1)
    monkeypatch.setattr(module, "KILL_SECONDS", 0.1)
    service: Any = sessions.running.client.app.state.service  # type: ignore[attr-defined]
    stop = threading.Thread(target=service.sessions.stop)
    stop.start()
    stop.join(30)
    ended = not stop.is_alive()
    never.set()
    assert ended
    wait_until(lambda: all(sessions.running.curator.ledger.reservation(id).ended for id in ids))


@pytest.mark.slow
def test_a_stop_settles(curator: Curator, limits: Limits, file: Path) -> None:
    token = curator.accounts.first_owner()
    assert token is not None
    curator.registry.register("patients", file, SCHEMA)
    curator.ledger.ceiling("patients", 2)
    with TestClient(application(curator, limits)) as client:
        sessions = Sessions(Running(client, curator, file, {}, bearer(token), {}))
        looked, unused = sessions.id(epsilon="0.5"), sessions.id(epsilon="0.5")
        sessions.look(looked)
    assert [curator.ledger.reservation(id).state for id in (looked, unused)] == ["settled", "released"]
    assert curator.ledger.balance("patients").spent == Fraction(1, 10)


@pytest.mark.slow
def test_a_process_of_its_own(tmp_path: Path, file: Path) -> None:
    curator, limits = Curator.open(tmp_path / "curator"), Limits(stop_seconds=5, look_wait_seconds=300)
    token = curator.accounts.first_owner()
    assert token is not None
    curator.registry.register("patients", file, SCHEMA)
    curator.ledger.ceiling("patients", 10)
    with TestClient(application(curator, limits), raise_server_exceptions=False) as client:
        sessions = Sessions(Running(client, curator, file, {}, bearer(token), {}))
        id = sessions.id()
        while (first := sessions.look(id, 1)).status_code == 202:  # its process starts, for longer than a request waits
            pass
        assert (first.status_code, sessions.look(id, 1).content) == (200, first.content)
        refused(sessions.look(id, 2, price="5"), 402, "budget")
        assert sessions.end(id).json()["spent"]["epsilon"] == "0.1"
        again = sessions.id()  # by the same process
        assert sessions.look(again, 1, "class_counts").status_code == 200
        (process,) = _processes()
        process.kill()
        process.join(5)
        refused(sessions.look(again, 2), 410, "lost")
        refused(sessions.look(again, 2), 410, "lost")
        assert sessions.end(again).json()["spent"]["epsilon"] == "1"  # nobody knows what it had charged
        unused = sessions.id()
        sessions.look(unused, 1, price="0")  # refused: nothing was looked at
        (process,) = _processes()
        process.kill()
        process.join(5)
        refused(sessions.look(unused, 1), 410, "lost")
        assert sessions.end(unused).json()["state"] == "released"
        after = sessions.id()
        assert sessions.look(after).status_code == 200
    assert _processes() == []
    assert curator.ledger.reservation(after).state == "settled"
    assert curator.ledger.verify().sound
    curator.close()


def _processes() -> list[Any]:
    import multiprocessing

    return [child for child in multiprocessing.active_children() if child.name == "hedgerow session"]


def test_the_noise_is_the_owners(sessions: Sessions) -> None:
    """Two sessions ask the same: both answers are noisy, and no field of a request decides how."""
    answers = []
    for _ in range(2):
        id = sessions.id(epsilon="0.01")
        answers.append(sessions.look(id, price="1/100").json()["arrays"][0][0])
        sessions.end(id)
    assert answers[0] != answers[1] or answers[0] != 500  # the scale is 100: both true at once is less likely than 1 in 10,000
    assert looking.SessionWorker.coins.secret
