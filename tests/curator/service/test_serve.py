"""`hedgerow serve` as a process: an address, a token once, and a stop that leaves nothing open."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sql
from curator.service.conftest import FOREST, SCHEMA, bearer

from hedgerow.curator import service_tables
from hedgerow.curator.ledger import Ledger
from hedgerow.curator.service.bundle import Curator

KILLS = 3 * int(os.environ.get("HEDGEROW_SOAK", "1"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    port = free_port()
    command = [sys.executable, "-m", "hedgerow", "serve", str(folder), "--port", str(port)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client,
    ):
        try:
            wait_for(client)
            yield process, client
        finally:
            process.kill()


def wait_for(client: httpx.Client) -> None:
    for _ in range(300):
        try:
            if client.get("/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the service did not start")


def test_served_stopped_and_served_again(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "curator"
    with served(folder) as (process, client):
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        (token,) = re.findall(r"hrw_[\w-]{43}", "".join(lines))
        assert "http://127.0.0.1:" in lines[2]
        owner = bearer(token)

        def post(path: str, body: Any, **headers: str) -> Any:
            answer = client.post(path, json=body, headers={**owner, **headers})
            assert answer.status_code < 300, answer.text
            return answer.json()

        post("/v1/owner/datasets", {"name": "patients", "path": str(file), "schema": SCHEMA.to_toml()})
        post("/v1/owner/datasets/patients/ceilings", {"epsilon": 2})
        jobs = [post("/v1/datasets/patients/forests", FOREST, **{"Idempotency-Key": key})["id"] for key in ("a", "b", "c")]
        process.send_signal(signal.SIGTERM)
        rest, log = process.communicate(timeout=60)
    assert token not in rest + log
    assert {"request", "job done"} <= {json.loads(line)["event"] for line in log.splitlines()}
    ledger = Ledger.open(folder)
    states = {ledger.reservation(id).state for id in jobs}
    assert states <= {"settled", "released"}
    assert ledger.verify().sound
    with served(folder) as (process, client):
        told = [client.get(f"/v1/jobs/{id}", headers=owner).json()["state"] for id in jobs]
        assert told == ["done" if ledger.reservation(id).state == "settled" else "failed" for id in jobs]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert "hrw_" not in rest


def test_killed_at_any_moment(tmp_path: Path, file: Path) -> None:
    """No release without its charge, nothing overspent, and what was answered is answered again."""
    folder, moments = tmp_path / "curator", random.Random(10)
    curator = Curator.open(folder)
    token = curator.accounts.first_owner()
    assert token is not None
    curator.registry.register("patients", file, SCHEMA)
    curator.ledger.ceiling("patients", 3)
    owner, asked, seen = bearer(token), 0, dict[str, bytes]()
    for _ in range(KILLS):
        with served(folder) as (process, client):
            for id, content in seen.items():
                assert client.get(f"/v1/releases/{id}", headers=owner).content == content
            killer = threading.Timer(moments.uniform(2, 6), process.kill)
            killer.start()
            with contextlib.suppress(httpx.TransportError):
                while True:
                    asked += 1
                    body = {**FOREST, "epsilon": "0.1"}
                    job = client.post("/v1/datasets/patients/forests", json=body, headers={**owner, "Idempotency-Key": f"k{asked}"})
                    if job.status_code != 202:
                        time.sleep(0.2)
                    for id in [r.reservation for r in _answers(curator)]:
                        seen[id] = client.get(f"/v1/releases/{id}", headers=owner).content
            process.kill()
            process.wait(30)
            killer.cancel()
        assert curator.ledger.verify().sound
        whole = curator.ledger.balance("patients")
        answers = _answers(curator)
        paid = sum((curator.ledger.reservation(answer.reservation).cost for answer in answers), Fraction(0))
        assert paid <= whole.spent <= Fraction(3)
        assert {path.stem for path in curator.releases.glob("*.json")} <= {answer.reservation for answer in answers}
    assert seen
    curator.close()


def _answers(curator: Curator) -> list[Any]:
    with curator.database.reading() as connection:
        return list(connection.execute(sql.select(service_tables.answers)))


def test_one_service_for_a_folder(tmp_path: Path) -> None:
    with served(tmp_path):
        command = [sys.executable, "-m", "hedgerow", "serve", str(tmp_path), "--port", str(free_port())]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert "served already" in ended.stderr


def test_not_served_from_a_ledger_that_was_changed(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.ceiling("patients", 1)
    with ledger.database.writing() as connection:
        connection.exec_driver_sql("UPDATE ledger_balances SET ceiling_epsilon = '100'")
    ledger.database.close()
    command = [sys.executable, "-m", "hedgerow", "serve", str(tmp_path), "--port", str(free_port())]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "not sound" in ended.stderr
    assert "hrw_" not in ended.stdout


@pytest.mark.parametrize("option", [["--port", "70000"], ["--ledger", "mysql://x/y"]])
def test_refused(tmp_path: Path, option: list[str]) -> None:
    command = [sys.executable, "-m", "hedgerow", "serve", str(tmp_path), *option]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode in (2, 3)
