"""Curators that really listen: each with a folder, a table, an owner and an analyst of its own, in this process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn

from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.curator.application import application
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.party import ServiceParty
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger.database import open_database

SCHEMA = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))
LIMITS = Limits(stop_seconds=5)


@dataclass
class Served:
    """One service. owner, ada: tokens; ada may use `dataset` for research."""

    name: str
    url: str
    owner: str
    ada: str
    curator: Curator
    app: Any
    dataset: str = "visits"

    @property
    def page(self) -> str:
        return f"{self.url}/datasets/{self.dataset}"

    def charges(self) -> list[str]:
        """The ε of each reservation."""
        return [entry.epsilon or "" for entry in self.curator.ledger.entries() if entry.kind == "reserve"]


def rows_text(rows: int, seed: int) -> str:
    draw = np.random.default_rng(seed)
    lines = [f"{draw.integers(0, 120)},{draw.choice(['no', 'yes'])},{draw.choice(['a', 'b'])}" for _ in range(rows)]
    return "\n".join(["age,smoker,class", *lines]) + "\n"


def bound(port: int = 0) -> socket.socket:
    """A socket that has a port and does not listen. Several may have the same one, as long as none of them listens."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", port))
    return found


def begun(server: uvicorn.Server, port: int) -> threading.Thread:
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound(port)]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), f"the server at {port} did not start"
        time.sleep(0.01)
    return thread


class Servers:
    """Starts and stops services. The port of each is held until the end, so that nobody else gets it while a service is stopped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: list[socket.socket] = []
        self._running: dict[str, tuple[uvicorn.Server, threading.Thread]] = {}
        self._curators: list[Curator] = []

    def new(self, name: str, rows: int = 300, epsilon: str = "2", schema: Schema = SCHEMA, called: str | None = None,
            party: ServiceParty | None = None, limits: Limits = LIMITS) -> Served:  # fmt: skip
        home = self.folder / name
        (home / "releases").mkdir(parents=True)
        (home / "visits.csv").write_text(rows_text(rows, len(self._curators)))
        curator = Curator.of(open_database(str(home)), home / "releases")
        self._curators.append(curator)
        owner = curator.accounts.first_owner()
        assert owner is not None
        curator.accounts.add("ada", "analyst")
        ada, _ = curator.accounts.issue("ada")
        curator.registry.register("visits", home / "visits.csv", schema)
        curator.ledger.ceiling("visits", epsilon)
        curator.accounts.grant("ada", "visits", ["research"])
        app = application(curator, limits, name if called is None else called, party=party)
        self._held.append(bound())
        served = Served(name, f"http://127.0.0.1:{self._held[-1].getsockname()[1]}", owner, ada, curator, app)
        self.start(served)
        return served

    def start(self, served: Served) -> None:
        port = int(served.url.rpartition(":")[2])
        before = served.app.state.service
        fresh = application(served.curator, before.limits, before.name, party=before.party)
        served.app = fresh
        config = uvicorn.Config(fresh, log_config=None, timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        self._running[served.url] = server, begun(server, port)

    def stop(self, served: Served) -> None:
        server, thread = self._running.pop(served.url)
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()

    def close(self) -> None:
        for server, _ in self._running.values():
            server.should_exit = True
        for _, thread in self._running.values():
            thread.join(60)
        for held in self._held:
            held.close()
        for curator in self._curators:
            curator.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    found = Servers(tmp_path)
    yield found
    found.close()


@pytest.fixture
def served(servers: Servers) -> Served:
    return servers.new("Clinic A")


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], threading.Event]]:
    """hold("Clinic A"): its jobs that count wait until the event is set, or the test has ended."""
    from hedgerow.curator.http import work

    events: dict[str, threading.Event] = {}
    real = work.counted

    def counted(content: bytes, place: Any, epsilon: Any, name: Any, **how: Any) -> Any:
        if name.owner in events:
            events[name.owner].wait(180)
        return real(content, place, epsilon, name, **how)

    monkeypatch.setattr(work, "counted", counted)

    def hold_(name: str) -> threading.Event:
        return events.setdefault(name, threading.Event())

    yield hold_
    for event in events.values():
        event.set()
