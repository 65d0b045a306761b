"""Nobody can keep the others from being answered: strangers have places apart, and each person has a few."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from curator.http.serving import Served, served
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.middleware import ServiceMiddleware
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.web.authentication import PageAuthentication

pytestmark = pytest.mark.slow

WAITING = 5  # connections that promise a body and send none
SIGN_IN = "POST /sign-in HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 5"


@contextmanager
def started(folder: Path) -> Iterator[Served]:
    limits = folder / "limits.toml"
    limits.write_text("requests = 2\nrequests_each = 3\nstrangers = 2\nbody_seconds = 600\nverb_seconds = 600\nbody_bytes = 1000\n")
    with served(folder / "curator", None, "--limits", str(limits)) as found:
        yield found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with started(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def one_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """For requests that are answered at once, so that none of them holds a place that the next one needs."""
    with started(tmp_path_factory.mktemp("service")) as found:
        yield found


@contextmanager
def connected(service: Served, head: str, body: bytes = b"") -> Iterator[socket.socket]:
    assert service.address is not None
    address = urlsplit(service.address)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=60) as found:
        found.sendall(f"{head}\r\nHost: here\r\nOrigin: http://here\r\n".encode() + b"\r\n" + body)
        yield found


def parted(connections: list[socket.socket], number: int) -> tuple[list[socket.socket], list[socket.socket]]:
    """Those that are answered, as soon as there are so many, and those that still wait."""
    found: list[socket.socket] = []
    while len(found) < number:
        more, _, _ = select.select([one for one in connections if one not in found], [], [], 60)
        assert more, "no answer came"
        found += more
    return found, [one for one in connections if one not in found]


def status(connection: socket.socket) -> int:
    return int(connection.recv(4096).split()[1])


@pytest.mark.parametrize("head", ["GET /health", "POST /nothing", "GET /sign-in", "GET /style.css", "GET /openapi.json"])
@pytest.mark.parametrize("declared", ["Content-Length: 5", "Transfer-Encoding: chunked"])
def test_a_stranger_sends_nothing(one_service: Served, head: str, declared: str) -> None:
    with connected(one_service, f"{head} HTTP/1.1\r\n{declared}") as one:
        answer = one.recv(4096)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.lower()


def test_strangers_keep_nobody_out(service: Served) -> None:
    owner = {"Authorization": f"Bearer {service.token}"}
    with ExitStack() as stack, service.client() as client:
        refused, waiting = parted([stack.enter_context(connected(service, SIGN_IN)) for _ in range(WAITING)], WAITING - 2)
        stack.enter_context(connected(service, "GET /health HTTP/1.1\r\nContent-Length: 5"))
        assert [status(one) for one in refused] == [503] * (WAITING - 2)
        assert client.get("/v1/datasets", headers=owner).status_code == 200
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
        for one in waiting:
            one.sendall(b"token")
            assert status(one) == 401
        with connected(service, SIGN_IN, b"token") as one:
            assert status(one) == 401  # the places are free again


def test_each_person_has_a_few_places(service: Served) -> None:
    path, owner = "/v1/datasets/none/quote", {"Authorization": f"Bearer {service.token}"}
    head = f"POST {path} HTTP/1.1\r\nAuthorization: Bearer {service.token}\r\nContent-Length: 2"
    with service.client() as client:
        assert client.post("/v1/owner/people", json={"name": "ada"}, headers=owner).status_code == 201
        token = client.post("/v1/owner/tokens", json={"person": "ada", "days": 1}, headers=owner).json()["token"]
        with ExitStack() as stack:
            refused, waiting = parted([stack.enter_context(connected(service, head)) for _ in range(WAITING)], WAITING - 3)
            assert [status(one) for one in refused] == [429] * (WAITING - 3)
            answer = client.get("/v1/datasets", headers=owner)
            assert (answer.status_code, answer.json()["error"]["code"], answer.headers["retry-after"]) == (429, "busy", "1")
            assert client.get("/v1/datasets", headers={"Authorization": f"Bearer {token}"}).status_code == 200
            for one in waiting:
                one.sendall(b"{}")
                assert status(one) == 422
        assert client.get("/v1/datasets", headers=owner).status_code == 200


def test_each_person_sends_one_large_body(service: Served) -> None:
    head = f"POST /v1/datasets/none/counts HTTP/1.1\r\nAuthorization: Bearer {service.token}\r\nIdempotency-Key: k\r\nContent-Length: 2000"
    with connected(service, head, b" " * 1500) as first, connected(service, head, b" " * 1500) as second:
        (refused,), (other,) = parted([first, second], 1)  # whichever came second
        assert status(refused) == 429
        other.sendall(b" " * 500)
        assert status(other) in (404, 422)


def test_more_requests_than_are_answered_at_once(curator: Curator) -> None:
    token = str(curator.accounts.first_owner())

    async def scenario() -> list[int]:
        going_on, statuses = asyncio.Event(), []

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            await going_on.wait()
            await Response()(scope, receive, send)

        async def sent() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def told(message: Message) -> None:
            statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

        middleware = ServiceMiddleware(slow, curator.accounts, Limits(requests=2), PageAuthentication(curator.accounts))
        headers = [(b"authorization", f"Bearer {token}".encode())]
        scopes = [{"type": "http", "method": "GET", "path": "/v1/datasets", "headers": headers} for _ in range(5)]
        tasks = [asyncio.create_task(middleware(scope, sent, told)) for scope in scopes]
        while len(statuses) < 3:
            await asyncio.sleep(0.01)
        going_on.set()
        await asyncio.gather(*tasks)
        await middleware({**scopes[0], "state": {}}, sent, told)
        return statuses

    assert asyncio.run(asyncio.wait_for(scenario(), 60)) == [503] * 3 + [200] * 3
