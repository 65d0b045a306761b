"""`hedgerow serve` and the file of heads: a ledger that was put back is not served, releases are signed, heads are sent elsewhere."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from curator.http.clients import SMALL
from curator.http.conftest import SCHEMA, bearer
from curator.http.serving import PATIENCE, books_at, served, wait_until
from curator.http.test_serve import asking, refused

from hedgerow import Release
from hedgerow.curator.ledger.database import FILE
from hedgerow.curator.ledger.heads import HeadLine, existing_heads, parsed_line
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.release.signing import load_public_key

pytestmark = pytest.mark.slow


class Receiver(BaseHTTPRequestHandler):
    got: list[dict[str, str]]

    def do_POST(self) -> None:
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing is said."""


def curator(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hedgerow", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_put_back_after_it_was_spent(tmp_path: Path, file: Path) -> None:
    """0.9 of 1 is spent, the backup from before is copied back: a start refuses it, and after `accept` nothing more is paid."""
    folder, backup, sent = tmp_path / "curator", tmp_path / "backup.sqlite", tmp_path / "sent.heads"
    handler = type("Handler", (Receiver,), {"got": []})
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{receiver.server_port}/heads"
    with served(folder, None, "--send-heads", str(sent), "--send-heads", url, "--send-heads", "log") as service:
        token = service.token
        client, owner, post = asking(service)
        with client:
            post("/v1/owner/datasets", {"name": "patients", "path": str(file), "schema": SCHEMA.to_toml()})
            post("/v1/owner/datasets/patients/ceilings", {"epsilon": "1"})
            assert curator("ledger", "backup", folder, "-o", backup).returncode == 0
            job = post("/v1/datasets/patients/forests", {**SMALL, "epsilon": "0.9"}, **{"Idempotency-Key": "a"})["id"]
            wait_until(lambda: client.get(f"/v1/jobs/{job}", headers=owner).json()["state"] == "done")
            release = Release.from_json(client.get(f"/v1/releases/{job}", headers=owner).content)
            public = load_public_key(folder / "service.key.pub").text
            assert [signature.key for signature in release.signatures] == [public]
            assert client.get("/v1/datasets/patients", headers=owner).json()["signed_with"] == public
            assert client.get("/v1/owner/ledger/verification", headers=owner).json()["sound"]
        assert curator("ledger", "verify", folder).returncode == 0  # while it runs
        service.stop()
    receiver.shutdown()
    head = Ledger.open(folder).head()
    assert existing_heads(sent).good_lines()[-1].head == head
    last = handler.got[-1]  # type: ignore[attr-defined]
    line = parsed_line(f"kept {last['head']} {last['when']} {last['signature']}", 1)
    assert isinstance(line, HeadLine)
    assert (line.head, line.signed_by(public), last["key"]) == (head, True, public)
    assert [each["head"] for each in service.log() if each["event"] == "head"][-1] == str(head)

    for name in (f"{FILE}-wal", f"{FILE}-shm"):
        (folder / name).unlink(missing_ok=True)
    shutil.copy(backup, folder / FILE)
    result = refused(folder, "--port", "0")
    said = " ".join(result.stderr.split())
    assert result.returncode != 0
    assert "An older copy was put back" in said
    assert "hedgerow curator accept" in said
    assert curator("ledger", "verify", folder, "--heads", sent).returncode == 1
    done = curator("curator", "accept", folder, "--why", "a test", "--yes")
    assert done.returncode == 0, done.stderr
    verified = curator("ledger", "verify", folder)  # the release from after the copy is a note now
    assert (verified.returncode, "(ε = 0.9 on 'patients'): count it as spent" in verified.stderr) == (0, True), verified.stderr
    with served(folder) as service, service.client() as client:
        refusal = client.post("/v1/datasets/patients/forests", json=SMALL, headers={**bearer(token), "Idempotency-Key": "b"})
        assert (refusal.status_code, refusal.json()["error"]["code"]) == (402, "budget")


def test_heads_of_a_ledger_on_a_server_are_in_the_folder(address: str, tmp_path: Path, file: Path) -> None:
    folder, ledger = books_at(address, tmp_path)
    with served(folder, ledger) as service:
        _, _, post = asking(service)
        post("/v1/owner/datasets", {"name": "patients", "path": str(file), "schema": SCHEMA.to_toml()})
        post("/v1/owner/datasets/patients/ceilings", {"epsilon": "1"})
        service.stop()
    (heads,) = folder.glob("*.heads")
    assert existing_heads(heads).good_lines()[-1].head == Ledger.open(address).head()
    with served(folder, ledger) as service:
        assert "sound" in service.said.read_text()
