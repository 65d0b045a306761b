"""What a curator answers while it trains a forest: 200 requests a second, from a process of their own, to a real `hedgerow serve`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import big_table
from benchmarks.busy import Others
from benchmarks.measure import Line, at_most, not_run
from hedgerow import Numeric

RATE, SECONDS, MOST = 200, 10, 100.0  # requests a second, for how long, and the milliseconds that 99 of 100 may take at most
ROWS = 2_000_000
ROUNDS = 2
STRANGERS = 500  # connections that never ask for anything, held open while the requests come
SERVER = "HEDGEROW_POSTGRES"  # as scripts/postgres.py gives it; without it, books in SQLite alone
BUDGET, PREDICT = "budget", "predict"  # what is left, or the class of a row by a stored release
ROW = {each.name: each.low if isinstance(each, Numeric) else each.values[0] for each in big_table.SCHEMA.attributes}
FOREST = {"purpose": "research", "epsilon": "1", "algorithm": "rdt", "settings": {"n_estimators": 60, "max_depth": 5}}


class Curator:
    """A service on a table, and its analyst."""

    def __init__(self, address: str, owner: str, file: Path, group: int) -> None:
        self.address, self.owner, self.analyst, self.asked, self.group = address, owner, owner, 0, group
        self.ask("POST", "/v1/owner/datasets", {"name": "people", "path": str(file), "schema": big_table.SCHEMA.to_toml()})
        self.ask("POST", "/v1/owner/datasets/people/ceilings", {"epsilon": "1000"})
        self.ask("POST", "/v1/owner/people", {"name": "ada"})
        self.ask("POST", "/v1/owner/grants", {"analyst": "ada", "dataset": "people", "purposes": ["research"]})
        self.analyst = self.ask("POST", "/v1/owner/tokens", {"person": "ada"})["token"]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        token = self.owner if path.startswith("/v1/owner") else self.analyst
        about = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
        content = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.address + path, content, about, method=method), timeout=60) as answer:
            return json.load(answer)

    def train(self) -> str:
        """One more forest; the id of its job."""
        self.asked += 1
        return str(self.ask("POST", "/v1/datasets/people/forests", FOREST, **{"Idempotency-Key": f"forest {self.asked}"})["id"])

    def state(self, job: str) -> str:
        return str(self.ask("GET", f"/v1/jobs/{job}")["state"])

    def requests(self, what: str, release: str) -> list[dict[str, Any]]:
        if what == BUDGET:
            return [{"method": "GET", "path": "/v1/datasets/people"}]
        return [{"method": "POST", "path": f"/v1/releases/{release}/predict", "body": {"rows": [ROW]}}]

    def loaded(self, seconds: float, what: str, release: str) -> tuple[Any, dict[str, int], float | None]:
        """The milliseconds of each request, in order of size; how many had which status; CPUs that other programs used meanwhile."""
        others, began, own = Others(), time.perf_counter(), _cpu_seconds(self.group)
        asked = [{**request, "headers": {"Authorization": f"Bearer {self.analyst}"}} for request in self.requests(what, release)]
        host, _, port = self.address.removeprefix("http://").rpartition(":")
        given = json.dumps({"rate": RATE, "seconds": seconds, "requests": asked})
        command = [sys.executable, "-m", "benchmarks.curator_client", host, port]
        ended = subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=seconds + 120)
        found = json.loads(ended.stdout)
        used, own = others.cpus(), (_cpu_seconds(self.group) - own) / (time.perf_counter() - began)
        return np.sort(found["milliseconds"]), found["statuses"], None if used is None else max(0.0, used - own)


@contextmanager
def served(folder: Path, ledger: str | None = None) -> Iterator[tuple[str, str, int]]:
    """The address, the owner's token and the process group of a service, which is gone afterwards."""
    with (folder / "log").open("w") as log:
        (folder / "limits.toml").write_text("requests_each = 64\n")  # one person asks for many
        where = ["--limits", str(folder / "limits.toml"), *([] if ledger is None else ["--ledger", ledger])]
        command = [sys.executable, "-m", "hedgerow", "serve", str(folder / "curator"), "--port", "0", *where]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True) as process:
            assert process.stdout is not None
            said = ""
            try:
                while (found := re.search(r"serving at (\S+)", said)) is None:
                    line = process.stdout.readline()
                    if not line:
                        raise RuntimeError((folder / "log").read_text())
                    said += line
                yield found[1], (folder / "curator" / "owner.token").read_text().strip(), process.pid
            finally:
                process.terminate()


def run(quick: bool) -> list[Line]:
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        return [not_run("budget requests", "the service's packages are not installed")]
    ledgers = {"SQLite": None} | ({"PostgreSQL": os.environ[SERVER]} if SERVER in os.environ else {})
    return [line for books, ledger in ledgers.items() for line in _on(books, ledger, quick)]


class Strangers:
    """Idle connections to a service, each from a local address of its own; who was dropped comes back before each round."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("http://").rpartition(":")
        self.place, self.open = (host, int(port)), [None] * STRANGERS  # type: tuple[str, int], list[socket.socket | None]

    def connected(self) -> int:
        return sum(each is not None and not _closed(each) for each in self.open)

    def connect(self) -> None:
        for number, each in enumerate(self.open):
            if each is not None and _closed(each):
                each.close()
                each = None
            if each is None:
                self.open[number] = socket.create_connection(
                    self.place, timeout=30, source_address=(f"127.1.{number // 250}.{number % 250 + 1}", 0)
                )

    def close(self) -> None:
        for each in self.open:
            if each is not None:
                each.close()


def _closed(connection: socket.socket) -> bool:
    """Whether the other side has closed it: a service that never was asked says nothing else."""
    try:
        connection.recv(4096, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def _on(books: str, ledger: str | None, quick: bool) -> list[Line]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(folder, ledger) as (address, token, group):
            curator = Curator(address, token, _table(folder, ROWS // (10 if quick else 1)), group)
            release = curator.train()
            while curator.state(release) != "done":
                time.sleep(0.2)
            curator.ask("POST", f"/v1/releases/{release}/predict", {"rows": [ROW]})  # it is read once
            strangers = Strangers(address)
            rounds = [what for what in (BUDGET, PREDICT) for _ in range(1 if quick else ROUNDS)]
            try:
                return [line for what in rounds for line in _round(curator, strangers, 5 if quick else SECONDS, books, what, release)]
            finally:
                strangers.close()


def _round(curator: Curator, strangers: Strangers, seconds: float, books: str, what: str, release: str) -> list[Line]:
    strangers.connect()
    idle, _, alone = curator.loaded(seconds, what, release)
    jobs = [curator.train() for _ in range(8)]
    while curator.state(jobs[0]) == "waiting":
        time.sleep(0.05)
    strangers.connect()
    busy, statuses, meanwhile = curator.loaded(seconds, what, release)
    held = strangers.connected()
    trained = "while forests were trained" if curator.state(jobs[-1]) in ("waiting", "running") else "while forests were trained AT FIRST"
    while any(curator.state(job) in ("waiting", "running") for job in jobs):
        time.sleep(0.2)
    if set(statuses) != {"200"}:
        trained += f"; statuses {statuses}"
    about = f"{books}, {STRANGERS} idle strangers ({held} at the end), {RATE} {what} requests/s, p99 in {MOST:g} ms"
    slower = f"p99 {_at(busy, 0.99) / _at(idle, 0.99):.1f} times"
    return [
        at_most(f"{about}, nothing trained", _words(idle), "", _at(idle, 0.99) / MOST, 1).timed(alone),
        at_most(f"{about}, {trained}", _words(busy), f"nothing trained: {slower}", _at(busy, 0.99) / MOST, 1).timed(meanwhile),
    ]


def _cpu_seconds(group: int) -> float:
    """What the service and its jobs have used since they began (Linux)."""
    used = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            used += sum(int(ticks) for ticks in fields[11:15]) if int(fields[2]) == group else 0
    return used / os.sysconf("SC_CLK_TCK")


def _at(milliseconds: Any, share: float) -> float:
    return float(milliseconds[min(int(share * len(milliseconds)), len(milliseconds) - 1)])


def _words(milliseconds: Any) -> str:
    p50, p90, p99 = (_at(milliseconds, share) for share in (0.5, 0.9, 0.99))
    return f"p50 {p50:.1f}, p90 {p90:.1f}, p99 {p99:.1f}, most {milliseconds[-1]:.1f} ms"


def _table(folder: Path, rows: int) -> Path:
    import pyarrow.parquet  # type: ignore[import-untyped,unused-ignore]

    X, y = big_table.numpy_table(rows)
    path = folder / "people.parquet"
    pyarrow.parquet.write_table(big_table.arrow_table(X).append_column("class", [y]), path)
    return path
