"""The crash matrix: a job and a session, at every point from reservation to answer, with every kind of failure put there on purpose.

After it, every paid request has its answer, or goes on, or is listed as lost with the reason; what never looked is given back; nothing is
paid twice; and the accounts add up exactly. docs/CURATOR_LEDGER.md has the table, which is written from OUTCOMES.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from curator.http.conftest import SCHEMA, bearer
from curator.http.serving import PATIENCE, Served, books_at, command_of, wait_until

from hedgerow.curator.http.recovery import lost_requests
from hedgerow.curator.http.service_context import Curator

ROOT = Path(__file__).parents[3]
POINTS = ("reserve", "open", "query 1", "query 2", "settle", "store", "answer")
ANSWERED, BACK, LOST = "answered", "given back", "lost, listed"
KILLED = dict.fromkeys(POINTS, LOST) | {"reserve": BACK, "answer": ANSWERED}
OUTCOMES: dict[str, dict[str, str]] = {
    "kill -9 of the service": KILLED,
    "kill -9 of the worker": KILLED | {"reserve": ANSWERED},
    "kill -9 of both": KILLED,
    "SIGSTOP of the service, then kill -9": dict.fromkeys(POINTS, ANSWERED) | {"reserve": BACK},
    "disk full for a while": dict.fromkeys(POINTS, ANSWERED),
    "database read-only for a while": dict.fromkeys(POINTS, ANSWERED),
    "PostgreSQL: connections cut": dict.fromkeys(POINTS, ANSWERED),
    "PostgreSQL: restarted": dict.fromkeys(POINTS, ANSWERED),
}
SESSION_OUTCOMES = {**OUTCOMES, "SIGSTOP of the service, then kill -9": KILLED | dict.fromkeys(("settle", "store"), ANSWERED)}
EXPECTED = {"job": OUTCOMES, "session": SESSION_OUTCOMES}
FOREST: dict[str, Any] = {"purpose": "research", "epsilon": "0.1", "algorithm": "hedgerow"}
SESSION: dict[str, Any] = {"purpose": "research", "epsilon": "0.1"}
PRICE, COST = "0.01", {"job": Fraction(1, 10), "session": Fraction(2, 100)}


def matrix() -> str:
    """The table of the document."""
    lines = [f"| what fails | {' | '.join(POINTS)} |", "| --- |" + " --- |" * len(POINTS)]
    for fault, outcomes in OUTCOMES.items():
        both = [outcomes[p] if outcomes[p] == (s := SESSION_OUTCOMES[fault])[p] else f"{outcomes[p]}; session: {s[p]}" for p in POINTS]
        lines.append(f"| {fault} | {' | '.join(both)} |")
    return "\n".join(lines)


def test_the_document_has_the_matrix() -> None:
    assert matrix() in (ROOT / "docs" / "CURATOR_LEDGER.md").read_text(encoding="utf-8")


class HeldServed(Served):
    """A service that waits at points."""

    def __init__(self, hold: Path, folder: Path, ledger: str | None) -> None:
        self.said, self.logged = hold / "said.out", hold / "said.log"  # not on a disk that will be full
        script = str(Path(__file__).with_name("held_service.py"))
        command = [sys.executable, script, str(hold), "serve", str(folder), "--port", "0"]
        command += [] if ledger is None else ["--ledger", ledger]
        with self.said.open("w") as out, self.logged.open("w") as log:
            self.process = subprocess.Popen(command, stdout=out, stderr=log, start_new_session=True)


class Bench:
    """One curator whose service fails again and again. Each cell of the matrix begins with a service that is ready."""

    def __init__(self, kind: str, address: str, tmp_path: Path, disk: Path | None, file: Path) -> None:
        self.kind, self.disk = kind, disk
        self.hold = tmp_path / "hold"
        self.hold.mkdir()
        self.folder, ledger = books_at(address, tmp_path)
        if disk is not None:
            self.folder = disk / "curator"
        self.name = f"held{os.getpid()}"
        self.ledger = None if ledger is None else f"{ledger}&application_name={self.name}"
        self.curator = Curator.open(self.folder, ledger)
        self.curator.accounts.first_owner()
        self.curator.accounts.add("ada")
        self.ada = bearer(self.curator.accounts.issue("ada")[0])
        self.curator.registry.register("patients", file, SCHEMA)
        self.curator.accounts.grant("ada", "patients", ["research"])
        self.curator.ledger.ceiling("patients", 100)
        self.service: HeldServed | None = None
        self.number = 0

    def ready(self) -> HeldServed:
        if self.service is None or self.service.process.poll() is not None:
            self.service = HeldServed(self.hold, self.folder, self.ledger)
            self.service.ready()
        return self.service

    # ------------------------------------------------------------ one request

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer, however often it takes while the service says that it cannot answer now; None when the service is gone."""
        service = self.ready()
        while service.process.poll() is None:
            with suppress(httpx.TransportError), service.client() as client:
                found = client.request(method, path, json=body, headers={**self.ada, **headers})
                if found.status_code not in (202, 429, 503) or (found.status_code == 202 and "jobs" in found.headers.get("location", "")):
                    return found
            time.sleep(0.05)
        return None

    def request(self, key: str) -> None:
        """All of it, until it is answered or the service is gone. What it got is in `got`."""
        if self.kind == "job":
            found = self.ask("POST", "/v1/datasets/patients/forests", FOREST, **{"Idempotency-Key": key})
            while found is not None and found.json().get("state") in ("waiting", "running"):
                time.sleep(0.02)
                found = self.ask("GET", f"/v1/jobs/{found.json()['id']}")
            self.got = found
            return
        self.got = self.ask("POST", "/v1/datasets/patients/sessions", SESSION, **{"Idempotency-Key": key})
        if self.got is None or self.got.status_code != 201:
            return
        id = self.got.json()["id"]
        for number in (1, 2):
            self.got = self.ask("POST", f"/v1/sessions/{id}/rows", {"number": number, "price": PRICE})
            if self.got is None or self.got.status_code != 200:
                return
            self.last = self.got.content
        self.got = self.ask("POST", f"/v1/sessions/{id}/end")

    # ------------------------------------------------------------ one cell

    def cell(self, fault: str, point: str) -> str:
        """What became of a request, that met this fault at this point."""
        self.number += 1
        key, service, ledger = f"k{self.number}", self.ready(), self.curator.ledger
        before = {reserved.key for reserved in ledger.reservations("patients")}
        lost_before, self.got, self.last = {each.reserved.key for each in lost_requests(self.curator)}, None, b""
        for name in ("reached", "go", "failed"):
            (self.hold / name).unlink(missing_ok=True)
        part = self.hold / "point.part"
        part.write_text(f"{key} {point}")
        part.replace(self.hold / "point")
        thread = threading.Thread(target=self.request, args=(key,), daemon=True)
        thread.start()
        wait_until(lambda: (self.hold / "reached").exists() or not thread.is_alive())
        assert (self.hold / "reached").exists(), (fault, point, self.got and self.got.text)
        (self.hold / "point").unlink()
        (reserved,) = [r for r in ledger.reservations("patients") if r.key not in before]
        self.fail(fault, point, service, reserved.key)
        (self.hold / "go").touch()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        self.ready()  # a start after a kill; otherwise it goes on
        return self.outcome(key, reserved.key, before, lost_before)

    def fail(self, fault: str, point: str, service: HeldServed, id: str) -> None:
        if fault == "kill -9 of the service":
            service.kill_service()
        elif fault == "kill -9 of the worker":
            workers = service.workers()
            service.kill_workers()
            wait_until(lambda: not any(map(command_of, workers)))
        elif fault == "kill -9 of both":
            service.kill_all()
        elif fault.startswith("SIGSTOP"):
            os.kill(service.process.pid, signal.SIGSTOP)
            (self.hold / "go").touch()
            if EXPECTED[self.kind][fault][point] == ANSWERED:
                wait_until(lambda: self.curator.ledger.reservation(id).ended)  # its worker goes on alone
            service.kill_all()
        elif fault.startswith("disk"):
            with self.filled():
                self.go_on_until_it_fails(point)
        elif fault.startswith("database"):
            (self.hold / "read-only").touch()
            self.go_on_until_it_fails(point)
            (self.hold / "read-only").unlink()
        elif fault.endswith("cut"):
            cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
            with self.curator.database.reading() as connection:
                connection.exec_driver_sql(cut, (self.name,))
        else:
            self.curator.database.close()
            restart_server()

    def go_on_until_it_fails(self, point: str) -> None:
        """Until the database has refused something; what is written already, or may still be, goes on and ends."""
        (self.hold / "go").touch()
        wait_until(lambda: (self.hold / "failed").exists() or self.got is not None)

    @contextmanager
    def filled(self) -> Iterator[None]:
        assert self.disk is not None
        ballast = self.disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"\0" * size)
        yield
        ballast.unlink()

    def outcome(self, key: str, id: str, before: set[str], lost_before: set[str]) -> str:
        """What became of it; and whatever it was, the books are right and nothing is paid twice."""
        ledger, answers = self.curator.ledger, self.curator.answers
        wait_until(lambda: ledger.reservation(id).state != "reserved")
        state = ledger.reservation(id)
        lost = {each.reserved.key: each.reason for each in lost_requests(self.curator) if each.reserved.key not in lost_before}
        assert ledger.verify().sound
        everything = ledger.reservations("patients")
        assert ledger.balance("patients").spent == sum((r.cost for r in everything), Fraction(0))  # exactly
        mine = [r for r in everything if r.key not in before]
        assert sum(r.opened for r in mine) <= 1  # nothing is paid twice
        if state.state == "settled":
            assert answers.paid_by("ada", id) is not None
            assert (lost, state.cost) == ({}, COST[self.kind])
            self.check_again(key, id)
            return ANSWERED
        if state.state == "released":
            assert lost == {}
            self.request(key)  # it is begun anew, and paid once
            (paid,) = [r for r in ledger.reservations("patients") if r.key not in before and r.opened]
            assert (paid.state, paid.cost) == ("settled", COST[self.kind])
            return BACK
        assert list(lost) == [id]
        assert lost[id]
        self.request(key)  # says so, and costs nothing more
        assert self.got.json().get("state") == "failed" if self.kind == "job" else self.got.json()["error"]["code"] == "key_used"
        assert [r.key for r in ledger.reservations("patients") if r.key not in before] == [id]
        return LOST

    def check_again(self, key: str, id: str) -> None:
        """Sent again, it gets what was stored."""
        stored = self.curator.answers.paid_by("ada", id)
        assert stored is not None
        if self.kind == "job":
            self.request(key)
            assert (self.got.json()["state"], self.got.json()["id"]) == ("done", id)
            assert self.ask("GET", self.got.json()["result"]).content == stored.content
        else:
            assert self.ask("POST", f"/v1/sessions/{id}/end").json()["spent"]["epsilon"] == "0.02"
            assert self.ask("POST", f"/v1/sessions/{id}/rows", {"number": 2, "price": PRICE}).content == self.last


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path | None]:
    """A small disk of its own, where that may be had."""
    found = tmp_path / "disk"
    found.mkdir()
    mount = shutil.which("mount")
    made = mount is not None and subprocess.run([mount, "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(found)], check=False).returncode == 0
    yield found if made else None
    if made:
        subprocess.run(["umount", "-l", str(found)], check=True)


def restart_server() -> None:
    """The PostgreSQL server of scripts/postgres.py."""
    spec = importlib.util.spec_from_file_location("postgres", ROOT / "scripts" / "postgres.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    server = script.Server(Path(os.environ["HEDGEROW_POSTGRES_FOLDER"]))
    log = str(server.folder / "log")
    assert server._do("pg_ctl", "restart", "-w", "-t", "60", "-m", "fast", "-D", str(server.data), "-l", log)


def possible(fault: str, server: bool, disk: Path | None) -> bool:
    """HEDGEROW_FAULT: only those with these words; HEDGEROW_RESTART: the server is of this test alone, and may be restarted."""
    if fault.startswith("PostgreSQL") and not server:
        return False
    if fault.endswith("restarted") and not os.environ.get("HEDGEROW_RESTART"):
        return False
    return os.environ.get("HEDGEROW_FAULT", "") in fault and not (fault.startswith("disk") and (server or disk is None))


@pytest.mark.curator
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["job", "session"])
def test_the_matrix(address: str, tmp_path: Path, file: Path, disk: Path | None, kind: str) -> None:
    server = "://" in address
    faults = [fault for fault in OUTCOMES if possible(fault, server, disk)]
    bench = Bench(kind, address, tmp_path, None if server else disk, file)
    with closing(bench.curator):
        try:
            found: dict[str, dict[str, str]] = {}
            for fault in faults:
                for point in POINTS:
                    began = time.monotonic()
                    found.setdefault(fault, {})[point] = bench.cell(fault, point)
                    print(kind, fault, point, found[fault][point], f"{time.monotonic() - began:.1f} s", sep=" | ", flush=True)
            assert found == {fault: EXPECTED[kind][fault] for fault in found}
            last = bench.ready()
            assert last.stop() == 0  # and the next start finds the same
            bench.ready()
            assert bench.curator.ledger.verify().sound
            assert {r.key for r in bench.curator.ledger.unsettled()} == {each.reserved.key for each in lost_requests(bench.curator)}
        finally:
            if bench.service is not None:
                bench.service.kill_all()
