"""`hedgerow serve` as a process: an address, a token once, one service for one set of books, and a stop that leaves nothing open."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from curator.http.clients import LARGE, SMALL
from curator.http.conftest import FOREST, SCHEMA, bearer
from curator.http.serving import PATIENCE, Served, books_at, served, wait_until
from curator.http.test_workers import PERSONS, persons, spilled
from slow import slow_but

from hedgerow.curator.http.limits import Limits
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import LedgerError


def refused(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A start that does not get far."""
    command = [sys.executable, "-m", "hedgerow", "serve", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def asking(service: Served) -> tuple[httpx.Client, dict[str, str], Any]:
    client, owner = service.client(), bearer(service.token)

    def post(path: str, body: Any, **headers: str) -> Any:
        answer = client.post(path, json=body, headers={**owner, **headers})
        assert answer.status_code < 300, answer.text
        return answer.json()

    return client, owner, post


@pytest.mark.slow
def test_served_stopped_and_served_again(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "curator"
    with served(folder) as service:
        client, owner, post = asking(service)
        with client:
            post("/v1/owner/datasets", {"name": "patients", "path": str(file), "schema": SCHEMA.to_toml()})
            post("/v1/owner/datasets/patients/ceilings", {"epsilon": 2})
            jobs = [post("/v1/datasets/patients/forests", FOREST, **{"Idempotency-Key": key})["id"] for key in ("a", "b", "c")]
            wait_until(lambda: client.get(f"/v1/jobs/{jobs[0]}", headers=owner).json()["state"] == "done")
            assert service.stop(signal.SIGTERM) == 0
    assert "hrw_" not in service.logged.read_text() + service.said.read_text()
    assert f"is in {folder / 'owner.token'}" in service.said.read_text().replace("\n", "")
    assert (folder / "owner.token").stat().st_mode & 0o777 == 0o600
    assert re.search(
        r"^stopped; 0 reservation\(s\) of this run did not settle; head \d+:[0-9a-f]{64}$",
        service.said.read_text().replace("\n ", " "),
        re.M,
    )
    assert {"request", "job done"} <= {line["event"] for line in service.log()}
    ledger = Ledger.open(folder)
    states = {ledger.reservation(id).state for id in jobs}
    assert states <= {"settled", "released"}
    assert ledger.verify().sound
    with served(folder) as service:
        with service.client() as client:
            told = [client.get(f"/v1/jobs/{id}", headers=owner).json()["state"] for id in jobs]
        assert told == ["done" if ledger.reservation(id).state == "settled" else "failed" for id in jobs]
        assert service.stop(signal.SIGINT) == 0
    assert "hrw_" not in service.said.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_lets_a_job_end_and_gives_back_those_that_wait(tmp_path: Path, file: Path, how: signal.Signals) -> None:
    folder = tmp_path / "curator"
    with served(folder, None, "--pad", "8") as service, closing(Ledger.open(folder).database) as database:  # a job takes 8 seconds
        client, _, post = asking(service)
        ledger = Ledger(database)
        with client:
            post("/v1/owner/datasets", {"name": "patients", "path": str(file), "schema": SCHEMA.to_toml()})
            post("/v1/owner/datasets/patients/ceilings", {"epsilon": 2})
            path = "/v1/datasets/patients/forests"
            runs, *wait = [post(path, SMALL, **{"Idempotency-Key": key})["id"] for key in ("a", "b", "c")]
            wait_until(lambda: ledger.reservation(runs).opened, step=0.001)
            service.stop(how)
        assert ledger.reservation(runs).state == "settled"
        assert [ledger.reservation(id).state for id in wait] == ["released", "released"]
        assert ledger.unsettled() == []
        assert not any(service.workers())


@pytest.mark.slow
def test_a_start_removes_what_a_killed_service_had_spilled(tmp_path: Path) -> None:
    folder = tmp_path / "curator"
    table = persons(tmp_path / "persons.csv")
    with served(folder) as service:
        client, _, post = asking(service)
        with client:
            post("/v1/owner/datasets", {"name": "patients", "path": str(table), "schema": PERSONS.to_toml()})
            post("/v1/owner/datasets/patients/ceilings", {"epsilon": 2})
            post("/v1/datasets/patients/forests", LARGE, **{"Idempotency-Key": "a"})
            wait_until(lambda: spilled(folder) != [], step=0.001)
            service.kill_all()
    assert spilled(folder) != []
    with served(folder):
        assert spilled(folder) == []


@pytest.mark.slow
def test_the_address_is_said_when_it_is_served_and_a_port_is_of_one(tmp_path: Path) -> None:
    service = Served(tmp_path / "curator")
    try:
        wait_until(lambda: service.address is not None)
        assert service.address is not None
        assert httpx.get(f"{service.address}/ready").status_code == 200
        port = service.address.rpartition(":")[2]
        second = refused(tmp_path / "another", "--port", port)
        assert second.returncode == 2
        assert "cannot be used" in second.stderr
        assert "--port" in second.stderr
        assert second.stdout == ""
        assert not (tmp_path / "another").exists()
    finally:
        service.kill_all()


@pytest.mark.slow
def test_one_service_for_a_set_of_books(address: str, tmp_path: Path) -> None:
    folder, ledger = books_at(address, tmp_path)
    with served(folder, ledger):
        (folder / "work" / "of the first").mkdir(parents=True)
        second = refused(folder, "--port", "0", *([] if ledger is None else ["--ledger", ledger]))
        assert "served already" in second.stderr
        assert (folder / "work" / "of the first").exists()
        if ledger is not None:
            elsewhere = refused(tmp_path / "another folder", "--port", "0", "--ledger", ledger)
            assert "served already" in elsewhere.stderr
            assert elsewhere.returncode != 0
    with served(folder, ledger):
        """Once it is gone, another may come."""


@pytest.mark.slow
def test_whoever_is_slow_with_the_head_of_a_request_is_shown_the_door(tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text("head_seconds = 1\nbody_seconds = 0.5\nbody_bytes = 1000\n")
    with served(tmp_path / "curator", None, "--limits", str(limits)) as service:
        assert service.address is not None
        place = ("127.0.0.1", int(service.address.rpartition(":")[2]))
        began = time.monotonic()
        with socket.create_connection(place, 60) as silent, socket.create_connection(place, 60) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-")
            assert slow.recv(1000) == silent.recv(1000) == b""
            assert time.monotonic() - began > 0.9
        with socket.create_connection(place, 60) as patient:
            for _ in range(2):  # the second request on a connection has its own time
                patient.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                received = b""
                while not received.endswith(b'{"status":"ok"}'):
                    received += (more := patient.recv(1000))
                    assert more
                time.sleep(0.6)  # twice: longer than one head may take
            patient.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-")
            assert patient.recv(1000) == b""
        with socket.create_connection(place, 60) as body:
            body.sendall(b"POST /sign-in HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Length: 5\r\n\r\n{")
            assert body.recv(1000).startswith(b"HTTP/1.1 408")
        with socket.create_connection(place, 60) as large:
            large.sendall(b"POST /sign-in HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Length: 1001\r\n\r\n")
            assert large.recv(1000).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("text", ["waits = 1", "waiting = 0", "waiting = true", "waiting = 1.5", "waiting =", "job_seconds = inf"])
def test_limits_that_cannot_be(tmp_path: Path, text: str) -> None:
    (tmp_path / "limits.toml").write_text(text)
    with pytest.raises(LedgerError, match=r"limits.*expected"):
        Limits.read(tmp_path / "limits.toml")


def test_limits_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "limits.toml").write_text("job_seconds = 0.5\nwaiting = 7\n")
    assert Limits.read(tmp_path / "limits.toml") == Limits(job_seconds=0.5, waiting=7)


@pytest.mark.slow
def test_not_served_from_a_ledger_that_was_changed(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.ceiling("patients", 1)
    with ledger.database.writing() as connection:
        connection.exec_driver_sql("UPDATE ledger_balances SET ceiling_epsilon = '100'")
    ledger.database.close()
    ended = refused(tmp_path, "--port", "0")
    assert ended.returncode != 0
    assert "not sound" in ended.stderr
    assert "hrw_" not in ended.stdout


@pytest.mark.parametrize("option", slow_but(1, [["--port", "70000"], ["--ledger", "mysql://x/y"], ["--limits", "no.toml"]]))
def test_refused(tmp_path: Path, option: list[str]) -> None:
    assert refused(tmp_path, *option).returncode in (2, 3)
