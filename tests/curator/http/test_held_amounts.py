"""What is held open by others shows to nobody whom it does not concern, and nobody holds all that is left."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

import pytest
from curator.http.conftest import FOREST, Running

from hedgerow.curator.http import work

SESSIONS = "/v1/datasets/patients/sessions"


@pytest.fixture
def two(running: Running) -> Running:
    """Bob may use the dataset, too: for care, and ada for research."""
    grant = {"analyst": "bob", "dataset": "patients", "purposes": ["care"]}
    assert running.post(running.owner, "/v1/owner/grants", grant).status_code == 200
    return running


def left(running: Running, who: dict[str, str]) -> Any:
    (found,) = running.get(who, "/v1/datasets/patients").json()["purposes"].values()
    return found["remaining"]["epsilon"]


def begin(running: Running, who: dict[str, str], purpose: str, epsilon: str, key: str) -> Any:
    return running.post(who, SESSIONS, {"purpose": purpose, "epsilon": epsilon}, key)


def test_what_others_hold_for_purposes_that_are_not_granted_does_not_show(two: Running) -> None:
    session = begin(two, two.bob, "care", "1.5", "b").json()["id"]
    assert (left(two, two.ada), left(two, two.bob)) == ("2", "0.5")
    quoted = two.post(two.ada, "/v1/datasets/patients/quote", FOREST).json()
    assert quoted["remaining"]["epsilon"] == "2"
    refused = two.post(two.ada, "/v1/datasets/patients/forests", {**FOREST, "epsilon": "1"}, "k")
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "budget")
    assert "under way" in refused.json()["error"]["message"]
    assert "0.5" not in refused.json()["error"]["message"]
    more = two.post(two.ada, "/v1/datasets/patients/forests", {**FOREST, "epsilon": "3"}, "k").json()["error"]["message"]
    assert "remaining 2 of 2" in more
    two.post(two.bob, f"/v1/sessions/{session}/rows", {"number": 1, "price": "0.25"})
    assert left(two, two.ada) == "2"
    two.client.post(f"/v1/sessions/{session}/end", headers=two.bob)
    assert (left(two, two.ada), left(two, two.bob)) == ("1.75", "1.75")  # what was spent does show


def test_what_others_hold_for_a_granted_purpose_shows(two: Running) -> None:
    two.post(two.owner, "/v1/owner/grants", {"analyst": "ada", "dataset": "patients", "purposes": ["care"]})
    begin(two, two.bob, "care", "0.5", "b")
    found = two.get(two.ada, "/v1/datasets/patients").json()["purposes"]
    assert {amounts["remaining"]["epsilon"] for amounts in found.values()} == {"1.5"}


def test_what_a_crash_has_left_is_spent_for_everybody(two: Running) -> None:
    ledger = two.curator.ledger
    ledger.opened(ledger.reserve("patients", "bob", "care", "0.5").key)
    assert left(two, two.ada) == "1.5"


def test_one_person_cannot_hold_all_that_is_left(two: Running) -> None:
    refused = begin(two, two.ada, "research", "2", "all")
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "budget")
    assert "at most 0.75" in refused.json()["error"]["message"]
    assert begin(two, two.ada, "research", "1", "one").status_code == 201
    assert begin(two, two.ada, "research", "0.6", "two").status_code == 402  # all sessions of a person together
    assert begin(two, two.ada, "research", "0.5", "two").status_code == 201
    assert begin(two, two.bob, "care", "0.3", "bob").status_code == 201
    assert two.curator.ledger.balance("patients").spent == Fraction(18, 10)


def test_who_is_alone_may_hold_all(running: Running) -> None:
    assert begin(running, running.ada, "research", "2", "all").status_code == 201


def test_a_live_session_is_under_way(running: Running) -> None:
    session = begin(running, running.ada, "research", "0.5", "k").json()["id"]
    for _ in range(2):
        (found,) = running.get(running.owner, "/v1/owner/ledger/unsettled").json()["unsettled"]
        assert (found["id"], found["under_way"]) == (session, True)
        assert running.get(running.owner, "/v1/owner/ledger/lost").json()["lost"] == []
        running.post(running.ada, f"/v1/sessions/{session}/rows", {"number": 1, "price": "0.1"})


def test_a_query_that_a_close_refuses_is_not_charged(running: Running) -> None:
    session = begin(running, running.ada, "research", "0.5", "k").json()["id"]
    query = f"/v1/sessions/{session}/rows"
    assert running.post(running.ada, query, {"number": 1, "price": "0.1"}).status_code == 200
    running.post(running.owner, "/v1/owner/datasets/patients/close", {})
    for _ in range(2):  # the number stays free
        refused = running.post(running.ada, query, {"number": 2, "price": "0.2"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "closed")
    ended = running.client.post(f"/v1/sessions/{session}/end", headers=running.ada).json()
    assert (ended["state"], ended["spent"]["epsilon"]) == ("settled", "0.1")


def test_jobs_that_run_are_held_and_hidden_too(two: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, real = threading.Event(), work.trained
    monkeypatch.setattr(work, "trained", lambda *given, **how: (go_on.wait(180), real(*given, **how))[1])
    job = two.post(two.bob, "/v1/datasets/patients/forests", {**FOREST, "purpose": "care"}, "k").json()
    assert (left(two, two.ada), left(two, two.bob)) == ("2", "1.5")
    go_on.set()
    two.ended(two.bob, job)
    assert left(two, two.ada) == "1.5"
