"""A curator behind a real server, on each kind of database, with an analyst who may use one dataset for research."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from curator.conftest import address, new_address

from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.curator.application import application
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger.database import open_database
from hedgerow.remote.remote_table import RemoteTable
from hedgerow.remote.transport import Transport

__all__ = ["address", "limits", "new_address", "served"]  # the fixtures
ATTRIBUTES = [Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"]), Categorical("ward", ["a", "b", "c"])]
SCHEMA = Schema(ATTRIBUTES, Target("class", ["ill", "well"]))


class Counted(Transport):
    """A transport that notes what it is asked."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url, token)
        self.asked: list[str] = []

    def bytes(self, method: str, path: str, *given: Any, **more: Any) -> bytes:
        self.asked.append(path.rsplit("/", 1)[-1])
        return super().bytes(method, path, *given, **more)


@dataclass
class Served:
    """One server. `table` is the dataset "patients" as ada sees it."""

    curator: Curator
    url: str
    file: Path
    token: str
    transport: Counted
    app: Any

    @property
    def table(self) -> RemoteTable:
        return RemoteTable.of(self.transport, "patients", SCHEMA, ("research",))

    @property
    def spent(self) -> Any:
        return self.curator.ledger.balance("patients").spent


@contextmanager
def running_server(app: Any) -> Iterator[str]:
    """The application at an address of its own, until the end of the block."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


def written(path: Path, rows: int = 2000) -> Path:
    """Patients, of whom smokers of a high age are ill more often."""
    generator = np.random.default_rng(1)
    age, smoker, ward = generator.integers(0, 120, rows), generator.integers(0, 2, rows), generator.integers(0, 3, rows)
    ill = generator.random(rows) < 0.1 + 0.4 * smoker + 0.4 * (age > 60)
    names = [("no", "yes"), "abc", ("well", "ill")]
    lines = [f"{a},{names[0][s]},{names[1][w]},{names[2][int(i)]}" for a, s, w, i in zip(age, smoker, ward, ill, strict=True)]
    path.write_text("\n".join(["age,smoker,ward,class", *lines]) + "\n")
    return path


def registered(curator: Curator, file: Path, schema: Schema = SCHEMA) -> str:
    """The dataset, its ceiling, and ada's token."""
    curator.registry.register("patients", file, schema)
    curator.ledger.ceiling("patients", 50, "1/1000")
    curator.accounts.first_owner()
    curator.accounts.add("ada", "analyst")
    curator.accounts.grant("ada", "patients", ["research"])
    return curator.accounts.issue("ada")[0]


@pytest.fixture
def limits() -> Limits:
    return Limits(stop_seconds=5)


@pytest.fixture
def served(address: str, tmp_path: Path, limits: Limits) -> Iterator[Served]:
    (tmp_path / "releases").mkdir()
    file = written(tmp_path / "patients.csv")
    with open_database(address) as database:
        curator = Curator.of(database, tmp_path / "releases")
        token = registered(curator, file)
        app = application(curator, limits)
        with running_server(app) as url:
            yield Served(curator, url, file, token, Counted(url, token), app)
