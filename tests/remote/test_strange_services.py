"""A service that means ill: whatever it answers is an error in words, soon and in one line."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from remote.conftest import SCHEMA

import hedgerow
from hedgerow.errors import BudgetError, CuratorError, HedgerowWarning, PlanError, ReleaseError
from hedgerow.queries import Rows
from hedgerow.remote import transport as module

DEEP = b"[" * 200_000 + b"]" * 200_000
ENDLESS = "1e40000000"
SESSION = {"id": "../x", "epsilon": "1", "delta": "0", "coins": "c", "secret": True}
LEFT = {"remaining": {"epsilon": "1", "delta": "0"}}
DATASET = {"name": "visits", "closed": False, "owner": "o", "purposes": {"research": LEFT}, "schema": SCHEMA.to_toml()}
JOB = {"id": "i", "dataset": "visits", "purpose": "p", "what": "w", "state": "done", "cost": {"epsilon": "1", "delta": "0"}}


class Service:
    """answers: by the last part of a path, a status, a body and headers."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any, dict[str, str]]] = {}
        self.asked: list[tuple[str, str]] = []
        self.url = ""

    def says(self, last: str, body: Any, status: int = 200, **headers: str) -> None:
        self.answers[last] = status, body, {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found.asked.append((self.path, self.headers.get("Accept-Encoding", "")))
            status, body, headers = found.answers[self.path.rsplit("/", 1)[-1]]
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        found.says("visits", DATASET)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield found
        server.shutdown()


def connected(service: Service, **how: Any) -> hedgerow.remote.connection.Connection:
    return hedgerow.connect(service.url, "hrw_x", **how)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_an_amount_without_end_in_a_session(service: Service, name: str) -> None:
    service.says("sessions", {**SESSION, name: ENDLESS})
    with pytest.raises(CuratorError, match="cannot be read"), connected(service).table("visits").session(1):
        raise AssertionError("it has begun")


@pytest.mark.slow
def test_an_amount_without_end_at_the_end_of_a_session(service: Service) -> None:
    service.says("sessions", SESSION)
    service.says("end", {"spent": {"epsilon": ENDLESS, "delta": "0"}})
    with pytest.warns(HedgerowWarning, match="could not be ended"), connected(service).table("visits").session(1):
        """Nothing is asked."""
    assert service.asked[-1] == ("/v1/sessions/..%2Fx/end", "identity")


@pytest.mark.slow
def test_a_look_that_is_under_way_for_ever(service: Service) -> None:
    from fractions import Fraction

    service.says("sessions", SESSION)
    service.says("rows", hedgerow.remote.codec.RUNNING, 202)
    service.says("end", {"spent": {"epsilon": "1", "delta": "0"}})
    with pytest.raises(CuratorError, match=r"0\.2 seconds.*look_timeout"):
        connected(service, look_timeout=0.2).table("visits").ask(Rows(), Fraction(1, 10))


@pytest.mark.slow
def test_json_without_a_floor(service: Service) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "datasets": lambda: connected(service).datasets(),
        "forests": lambda: connected(service).forest("visits", epsilon=1, purpose="p"),
        "i": lambda: connected(service).release("i"),
        "sessions": lambda: connected(service).table("visits").session(1).__enter__(),
    }
    for last, call in calls.items():
        for status in (200, 403):
            service.says(last, DEEP, status)
            with pytest.raises((CuratorError, ReleaseError)):
                call()
    service.says("dummy", b'{"release":' + b"[" * 900 + b"]" * 900 + b"}")
    with pytest.raises((CuratorError, ReleaseError)):
        connected(service).dummy("visits", epsilon=1)


@pytest.mark.slow
def test_answers_that_are_too_large_or_packed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps({"datasets": [], "more": "x" * 1000}).encode()
    service.says("datasets", content)
    monkeypatch.setattr(module, "MOST_JSON", len(content))
    assert connected(service).datasets() == ()
    monkeypatch.setattr(module, "MOST_JSON", len(content) - 1)
    with pytest.raises(CuratorError, match="larger than"):
        connected(service).datasets()
    monkeypatch.setattr(module, "MOST_JSON", 1 << 26)
    service.says("datasets", gzip.compress(content), Content_Encoding="gzip")
    with pytest.raises(CuratorError, match="packed"):
        connected(service).datasets()
    service.says("datasets", b" " * (module.MOST_REFUSED + 1), 403)
    with pytest.raises(CuratorError, match="larger than"):
        connected(service).datasets()


@pytest.mark.slow
@pytest.mark.parametrize(("status", "code", "kind"), [(402, "budget", BudgetError), (422, "plan", PlanError), (403, "x\x1b", CuratorError)])
def test_what_it_says_is_one_line(service: Service, status: int, code: str, kind: type[Exception]) -> None:
    service.says("datasets", {"error": {"code": code, "message": "no \x1b]0;x\x07\x1b[2J\r\nhedgerow: all is fine\u202e\x85"}}, status)
    with pytest.raises(kind) as error:
        connected(service).datasets()
    assert str(error.value) == f"{service.url}: no ]0;x [2J hedgerow: all is fine"
    assert getattr(error.value, "code", "x") == "x"
    service.says("i", {**JOB, "id": "a\nb", "state": "failed"})
    with pytest.raises(CuratorError, match="the job a b could not"):
        connected(service).job("i").wait()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["head", "body"])
def test_a_service_that_sends_a_byte_now_and_then_is_left(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", 1.0)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n"
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(head + b"\r\n" if where == "body" else head + b"X-")
            while not ended.wait(0.05):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(CuratorError, match="did not answer within 1 seconds"):
            module.Transport(url, "hrw_x", timeout=0.9).json("GET", "/v1/datasets")
        ended.set()
        thread.join(180)
