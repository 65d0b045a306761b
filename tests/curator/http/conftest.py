"""A service with an owner, two analysts and one dataset, on each kind of database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.curator.application import application
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger.database import open_database

SCHEMA = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))
FOREST: dict[str, Any] = {"purpose": "research", "epsilon": "0.5"}


@dataclass
class Running:
    """owner, ada, bob: headers with their tokens. Ada may use "patients" for research; bob may use nothing."""

    client: TestClient
    curator: Curator
    file: Path
    owner: dict[str, str]
    ada: dict[str, str]
    bob: dict[str, str]

    def get(self, who: dict[str, str], path: str) -> Any:
        return self.client.get(path, headers=who)

    def post(self, who: dict[str, str], path: str, body: Any, key: str | None = None) -> Any:
        return self.client.post(path, json=body, headers=who if key is None else {**who, "Idempotency-Key": key})

    def ended(self, who: dict[str, str], job: Any, seconds: float = 180) -> Any:
        """The job, when it has ended."""
        end = time.monotonic() + seconds
        while job["state"] in ("waiting", "running") and time.monotonic() < end:
            time.sleep(0.02)
            job = self.get(who, f"/v1/jobs/{job['id']}").json()
        return job


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def curator(address: str, tmp_path: Path) -> Iterator[Curator]:
    (tmp_path / "releases").mkdir()
    with open_database(address) as database:
        yield Curator.of(database, tmp_path / "releases")


@pytest.fixture
def limits() -> Limits:
    return Limits(stop_seconds=5)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    generator = np.random.default_rng(1)
    rows = [f"{generator.integers(0, 120)},{generator.choice(['no', 'yes'])},{generator.choice(['a', 'b'])}" for _ in range(500)]
    path.write_text("\n".join(["age,smoker,class", *rows]) + "\n")
    return path


@pytest.fixture
def running(curator: Curator, limits: Limits, file: Path) -> Iterator[Running]:
    first = curator.accounts.first_owner()
    assert first is not None
    with TestClient(application(curator, limits), raise_server_exceptions=False) as client:
        owner = bearer(first)
        found = Running(client, curator, file, owner, {}, {})
        for name in ("ada", "bob"):
            assert found.post(owner, "/v1/owner/people", {"name": name}).status_code == 201
            given = found.post(owner, "/v1/owner/tokens", {"person": name, "days": 1})
            setattr(found, name, bearer(given.json()["token"]))
        body = {"name": "patients", "path": str(file), "schema": SCHEMA.to_toml()}
        assert found.post(owner, "/v1/owner/datasets", body).status_code == 201
        assert found.post(owner, "/v1/owner/datasets/patients/ceilings", {"epsilon": "2"}).status_code == 201
        grant = {"analyst": "ada", "dataset": "patients", "purposes": ["research"]}
        assert found.post(owner, "/v1/owner/grants", grant).json()["purposes"] == ["research"]
        yield found
