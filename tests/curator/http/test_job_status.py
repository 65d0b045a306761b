"""How requests stand: what a person has asked of a dataset, page by page; a session that has ended has not failed."""

from __future__ import annotations

from typing import Any

from curator.http.conftest import FOREST, Running


def looked(running: Running, key: str, looks: int) -> str:
    """A session of ada's that has ended after so many looks."""
    begun = {"purpose": "research", "epsilon": "0.1", "what": key}
    session = str(running.post(running.ada, "/v1/datasets/patients/sessions", begun, key).json()["id"])
    for number in range(1, looks + 1):
        assert running.post(running.ada, f"/v1/sessions/{session}/rows", {"number": number, "price": "0.01"}).status_code == 200
    return session


def state(running: Running, id: str) -> Any:
    return running.get(running.ada, f"/v1/jobs/{id}").json()


def test_a_session_runs_then_has_ended_and_has_not_failed(running: Running) -> None:
    for looks, cost in ((1, "0.01"), (0, "0")):
        session = looked(running, f"with {looks}", looks)
        assert state(running, session)["state"] == "running"
        running.client.post(f"/v1/sessions/{session}/end", headers=running.ada)
        found = state(running, session)
        assert (found["state"], found["cost"]["epsilon"]) == ("ended", cost)
        assert "error" not in found


def test_what_never_settled_has_failed(running: Running) -> None:
    ledger = running.curator.ledger
    for what in ("fit DPDF", "session", "session: fit DPDF"):
        reserved = ledger.reserve("patients", "ada", "research", "0.1", what=what)
        ledger.opened(reserved.key)
        assert state(running, reserved.key)["state"] == "failed"  # its process is gone, as after a crash


def test_a_job_that_is_called_like_a_session_is_none(running: Running) -> None:
    """Only sessions are called by their askers, and always "session: …"."""
    session = looked(running, "fit DPDF", 0)
    assert state(running, session)["what"] == "session: fit DPDF"


def test_jobs_page_by_page_and_only_ones_own(running: Running) -> None:
    forest = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    sessions = [looked(running, f"number {number}", 0) for number in range(2)]
    for session in sessions:
        running.client.post(f"/v1/sessions/{session}/end", headers=running.ada)
    first = running.get(running.ada, "/v1/datasets/patients/jobs?most=2").json()
    assert [job["id"] for job in first["jobs"]] == sessions[::-1]
    second = running.get(running.ada, f"/v1/datasets/patients/jobs?most=2&before={first['before']}").json()
    assert [(job["id"], job["result"], job["analyst"]) for job in second["jobs"]] == [(forest["id"], forest["result"], "ada")]
    assert second["before"] is None
    running.post(running.owner, "/v1/owner/grants", {"analyst": "bob", "dataset": "patients", "purposes": ["research"]})
    assert running.get(running.bob, "/v1/datasets/patients/jobs").json() == {"jobs": [], "before": None}
    assert len(running.get(running.owner, "/v1/datasets/patients/jobs").json()["jobs"]) == 3
