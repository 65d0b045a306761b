"""The HTTP server (uvicorn) with time limits for slow clients; it listens before it says so."""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from hedgerow.curator.http.connections import protocol_for
from hedgerow.curator.http.forests import warm_up
from hedgerow.curator.http.limits import Limits
from hedgerow.errors import LedgerError

KEEP_ALIVE, GRACE = 10, 10  # seconds: a connection without a request; requests under way when the service stops
SWITCH = 0.001  # seconds after which a thread lets another one run: a short answer must not wait long for a long one
LONGEST_HEAD = 64 * 1024  # bytes of a request before its body


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that has the address; port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen()  # another socket may be bound, and the second to listen is refused
        except OSError:
            found.close()
            raise
    except OSError as error:
        raise LedgerError(
            f"address {host}:{port} cannot be used ({error.strerror or error}); expected one of this machine that no other program "
            "listens at. Give another --port or --host; --port 0 takes a free one."
        ) from None
    return found


def address_of(host: str, listener: socket.socket) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None], hurry: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start, self._hurry = started, hurry

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second signal ends what runs. What waits is given back and sessions are settled all the same."""
        if self.should_exit:
            self._hurry()
        super().handle_exit(sig, frame)
        self.force_exit = False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal stops the service, and that is all: what its caller says at the end is said, and it ends well."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()  # else they are raised again

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()
            threading.Thread(target=_warm_up, daemon=True, name="hedgerow warm-up").start()


def _warm_up() -> None:
    """After that, what is there is never looked through for garbage again."""
    warm_up()
    gc.collect()
    gc.freeze()


def run(app: FastAPI, listener: socket.socket, limits: Limits, started: Callable[[], None]) -> None:
    """Until SIGTERM or Ctrl-C. `started` is called when requests are answered."""
    config = uvicorn.Config(
        app, http=protocol_for(limits), ws="none", log_config=None, access_log=False, proxy_headers=False, server_header=False,
        date_header=True, timeout_keep_alive=KEEP_ALIVE, timeout_graceful_shutdown=GRACE, h11_max_incomplete_event_size=LONGEST_HEAD,
    )  # fmt: skip
    sys.setswitchinterval(SWITCH)
    try:
        _Server(config, started, app.state.service.hurry).run(sockets=[listener])
    finally:
        gc.unfreeze()  # else extension modules complain at the end about what is left
