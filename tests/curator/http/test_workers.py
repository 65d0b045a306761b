"""Jobs in a process of their own: forests and scores, a process that is killed, a job that takes too long."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from curator.http.conftest import FOREST, SCHEMA, Running, bearer
from curator.http.serving import wait_until
from fastapi.testclient import TestClient

from hedgerow.curator.application import application
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.service_context import Curator

PERSONS = replace(SCHEMA, person="id", rows_per_person=2)


@pytest.mark.slow
def test_a_process_is_lost_and_another_goes_on(tmp_path: Path, file: Path) -> None:
    curator, limits = Curator.open(tmp_path / "curator"), Limits(stop_seconds=5, trees=10**4, leaves=10**7)
    token = curator.accounts.first_owner()
    assert token is not None
    curator.registry.register("patients", file, SCHEMA)
    curator.ledger.ceiling("patients", 4)
    with TestClient(application(curator, limits), raise_server_exceptions=False) as client:
        owner = bearer(token)
        running = Running(client, curator, file, owner, {}, {})
        jobs: Any = client.app.state.service.jobs  # type: ignore[attr-defined]

        def asked(what: str, body: dict[str, Any], key: str) -> Any:
            return running.post(owner, f"/v1/datasets/patients/{what}", body, key).json()

        forest = running.ended(owner, asked("forests", FOREST, "forest"))
        assert forest["state"] == "done"
        score = running.ended(owner, asked("scores", {**FOREST, "release": forest["id"]}, "score"))
        assert (score["state"], running.get(owner, score["result"]).status_code) == ("done", 200)

        large = {**FOREST, "algorithm": "rdt", "settings": {"n_estimators": 3000, "max_depth": 2}}
        lost = asked("forests", large, "lost")
        wait_until(lambda: curator.ledger.reservation(lost["id"]).opened)
        (process,) = [child for child in _children() if child.name == "hedgerow job"]
        process.kill()
        ended = running.ended(owner, lost)
        assert (ended["state"], ended["cost"]["epsilon"]) == ("failed", "0.5")

        late = asked("forests", large, "late")
        wait_until(lambda: curator.ledger.reservation(late["id"]).opened)
        jobs.live(late["id"]).deadline = 0.0
        assert running.ended(owner, late)["state"] == "failed"
        assert running.ended(owner, asked("forests", FOREST, "after"))["state"] == "done"
        assert curator.ledger.balance("patients").spent == Fraction(5, 2)
    assert [child for child in _children() if child.name == "hedgerow job"] == []
    assert curator.ledger.verify().sound
    curator.close()


@pytest.mark.slow
def test_a_killed_process_leaves_no_rows_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    curator, limits = Curator.open(tmp_path / "curator"), Limits(stop_seconds=5, trees=10**4, leaves=10**7)
    token = curator.accounts.first_owner()
    assert token is not None
    curator.registry.register("patients", persons(tmp_path / "persons.csv"), PERSONS)
    curator.ledger.ceiling("patients", 4)
    with TestClient(application(curator, limits), raise_server_exceptions=False) as client:
        owner = bearer(token)
        running = Running(client, curator, tmp_path, owner, {}, {})
        large = {**FOREST, "algorithm": "rdt", "settings": {"n_estimators": 3000, "max_depth": 2}}
        for end in ("killed", "late"):
            job = running.post(owner, "/v1/datasets/patients/forests", large, end).json()
            wait_until(lambda: curator.ledger.reservation(job["id"]).opened and spilled(tmp_path))  # noqa: B023
            if end == "killed":
                (process,) = [child for child in _children() if child.name == "hedgerow job"]
                process.kill()
            else:
                (folder,) = (tmp_path / "curator" / "work").iterdir()
                assert folder.stat().st_mode & 0o077 == 0
                client.app.state.service.jobs.live(job["id"]).deadline = 0.0  # type: ignore[attr-defined]
            assert running.ended(owner, job)["state"] == "failed"
            assert spilled(tmp_path) == []
    assert list((tmp_path / "curator" / "work").iterdir()) == []
    curator.close()


def persons(path: Path, rows: int = 5000) -> Path:
    lines = [f"p{row // 2},{row % 120},{('no', 'yes')[row % 2]},{('a', 'b')[row % 3 % 2]}" for row in range(rows)]
    path.write_text("\n".join(["id,age,smoker,class", *lines]) + "\n")
    return path


def spilled(folder: Path) -> list[Path]:
    """Files that an engine has made, wherever it made them."""
    return [path for path in folder.rglob("hedgerow-*/*") if path.is_file()]


def _children() -> list[Any]:
    import multiprocessing

    return multiprocessing.active_children()
