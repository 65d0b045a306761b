"""Strangers who open connections and say nothing take no place from those who ask."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from curator.http.conftest import bearer
from curator.http.serving import wait_until

from hedgerow.curator.application import application
from hedgerow.curator.http import server
from hedgerow.curator.http.connections import ConnectionTable
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.service_context import Curator


@contextmanager
def listening(curator: Curator, limits: Limits) -> Iterator[int]:
    """The server itself, in a thread: its port."""
    listener = server.listening_socket("127.0.0.1", 0)
    started, found = threading.Event(), {}

    class Stoppable(server._Server):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            found["server"] = self

    def run() -> None:
        original, server._Server = server._Server, Stoppable  # type: ignore[misc]
        try:
            server.run(application(curator, limits), listener, limits, started.set)
        finally:
            server._Server = original  # type: ignore[misc]

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield listener.getsockname()[1]
    finally:
        found["server"].should_exit = True
        thread.join(60)
        listener.close()


def idle(stack: ExitStack, port: int, number: int) -> list[socket.socket]:
    return [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(number)]


def is_closed(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.fixture
def owner(curator: Curator) -> dict[str, str]:
    token = curator.accounts.first_owner()
    assert token is not None
    return bearer(token)


@pytest.mark.slow
def test_five_hundred_strangers_who_say_nothing(curator: Curator, owner: dict[str, str]) -> None:
    limits = Limits(silent_each=1000)  # as if each came from an address of its own
    with listening(curator, limits) as port, ExitStack() as stack, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as kept:
        assert kept.get("/v1/datasets", headers=owner).status_code == 200
        strangers = idle(stack, port, 505)
        for _ in range(20):
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
                assert client.get("/v1/datasets", headers=owner).status_code == 200
        assert kept.get("/v1/datasets", headers=owner).status_code == 200
        wait_until(lambda: sum(map(is_closed, strangers)) >= 6)
        assert not is_closed(strangers[-1])  # the oldest have given way


@pytest.mark.slow
def test_those_of_one_address_are_bounded(curator: Curator, owner: dict[str, str]) -> None:
    with listening(curator, Limits(silent_each=20)) as port, ExitStack() as stack:
        strangers = idle(stack, port, 60)
        wait_until(lambda: sum(map(is_closed, strangers)) == 40)
        assert not any(map(is_closed, strangers[-20:]))


# ------------------------------------------------------------ which gives way


class Fake(SimpleNamespace):
    """A connection as its table sees it."""

    __hash__ = object.__hash__

    def __init__(self, address: str = "a", used: bool = False, known: bool = False) -> None:
        super().__init__(address=address, used=used, known=known, refused=False, aborted=False)
        self.transport = SimpleNamespace(abort=lambda: setattr(self, "aborted", True))

    def refuse(self) -> None:
        self.refused = True


def test_people_with_a_token_give_way_last() -> None:
    table = ConnectionTable(most=3, silent_each=10)
    known, asked, silent = Fake(used=True, known=True), Fake(used=True), Fake()
    fresh = [Fake(f"b{number}") for number in range(3)]
    for one in (known, asked, silent):
        table.opened(one)  # type: ignore[arg-type]
    for one, gone in zip(fresh, (silent, fresh[0], fresh[1]), strict=True):
        table.opened(one)  # type: ignore[arg-type]
        assert (gone.aborted, len(table)) == (True, 3)
    assert not known.aborted
    assert not asked.aborted
    table.answers(fresh[2])  # type: ignore[arg-type]
    table.opened(Fake("c"))  # type: ignore[arg-type]
    assert (asked.aborted, known.aborted, fresh[2].aborted) == (True, False, False)


def test_only_where_all_are_busy_a_new_one_is_refused() -> None:
    table = ConnectionTable(most=2, silent_each=10)
    busy, new, next_one = [Fake(), Fake()], Fake(), Fake()
    for one in busy:
        table.opened(one)  # type: ignore[arg-type]
        table.answers(one)  # type: ignore[arg-type]
    table.opened(new)  # type: ignore[arg-type]
    assert (new.refused, any(one.aborted for one in busy)) == (True, False)
    table.closed(busy[0])  # type: ignore[arg-type]
    table.rests(busy[0])  # type: ignore[arg-type]
    table.opened(next_one)  # type: ignore[arg-type]
    assert (new.aborted, next_one.refused, len(table)) == (True, False, 2)


def test_the_refusal_has_the_shape_of_all_errors() -> None:
    from hedgerow.curator.http.connections import _busy

    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(_busy({"type": "http"}, None, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 503
    assert (b"connection", b"close") in sent[0]["headers"]
    assert b'{"error": {"code": "busy"' in sent[1]["body"]
