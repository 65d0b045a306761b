"""Connections: how many are open, and which give way. One on which no request is under way is closed for another that comes.

Whoever opens many and says nothing takes no place from those who ask: the oldest connection without any request goes first, then those of
requests without a token, and those of people with a token last. Only where every connection has a request under way is a new one refused.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from hedgerow.curator.http.errors import Refusal, error_response
from hedgerow.curator.http.limits import Limits

BUSY = Refusal(503, "busy", "The service has as many connections as it may. Try again soon.", {"Retry-After": "1", "Connection": "close"})


class ConnectionTable:
    """The open connections of a server. most: in all; silent_each: of one address, on which no request has ever come."""

    def __init__(self, most: int, silent_each: int) -> None:
        self.most, self.silent_each = most, silent_each
        self._open: set[HTTPConnection] = set()
        self._resting: dict[HTTPConnection, None] = {}  # without a request under way, the longest first

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, new: HTTPConnection) -> None:
        self._open.add(new)
        self._resting[new] = None
        silent = [one for one in self._resting if one.address == new.address and not one.used]
        if len(silent) > self.silent_each:
            self._close(silent[0])
        while len(self._open) > self.most:
            others = [one for one in self._resting if one is not new]
            if not others:
                new.refuse()
                return
            self._close(min(others, key=lambda one: (one.known, one.used)))  # the first of those: the longest at rest

    def answers(self, one: HTTPConnection) -> None:
        self._resting.pop(one, None)

    def rests(self, one: HTTPConnection) -> None:
        if one in self._open:
            self._resting[one] = None

    def closed(self, one: HTTPConnection) -> None:
        self._open.discard(one)
        self._resting.pop(one, None)

    def _close(self, one: HTTPConnection) -> None:
        self.closed(one)
        one.transport.abort()


class HTTPConnection(H11Protocol):
    """A connection on which the head of a request arrives in time, or it is closed.

    used: a request has come on it; known: one with a valid token
    """

    table: ConnectionTable
    seconds: float = 10
    used = known = False
    address: str = ""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.table.opened(self)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        if self._timer is None and not self._answering():
            self._start_timer()
        super().data_received(data)
        if self._answering():
            self._request_came()

    def on_response_complete(self) -> None:
        state = (self.scope or {}).get("state") or {}
        self.known = self.known or state.get("person") is not None
        super().on_response_complete()
        if not self._answering():
            self.table.rests(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        self.table.closed(self)
        super().connection_lost(exc)

    def refuse(self) -> None:
        """Whatever is requested, the answer is that there is no room."""
        self.app = _busy

    def _request_came(self) -> None:
        self.used = True
        self.table.answers(self)
        self._cancel_timer()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self._timed_out)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _timed_out(self) -> None:
        self._timer = None
        if not self._answering():
            self.transport.abort()


async def _busy(scope: Scope, receive: Receive, send: Send) -> None:
    await error_response(BUSY)(scope, receive, send)


def protocol_for(limits: Limits) -> type[HTTPConnection]:
    """The class of a server's connections, with its table."""
    table = ConnectionTable(limits.connections, limits.silent_each)
    return type("Protocol", (HTTPConnection,), {"table": table, "seconds": limits.head_seconds})
