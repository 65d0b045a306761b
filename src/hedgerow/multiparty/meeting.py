"""How owners meet: a TLS connection between any two of them, and rounds in which each sends a message to each, bounded in time.

A party is who its certificate says, and is there once. A party that leaves or stays silent ends the round for all, with its name. What goes
through here is public, or a piece of a secret that says nothing by itself (`secure_sum.py`); nothing of it is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from hedgerow.errors import HedgerowError, TogetherError
from hedgerow.multiparty.certificates import peer_fingerprint, tls
from hedgerow.multiparty.parties import Parties

HEAD = struct.Struct(">cIQ")  # what it is, which round, how many bytes follow
WELCOME, MESSAGE, STOP = b"W", b"M", b"S"
MOST_STOP = 400  # bytes of the reason why a party stops
AGAIN = 0.2  # seconds until another attempt to reach a party that is not there yet
CLOSING = 10.0  # seconds for last words
LOCAL = ("localhost", "127.0.0.1", "::1")

Result = TypeVar("Result")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Meeting:
    """One party's connections to the others that came. A context manager: the others are told why it ends.

    wait:    seconds until those who are not there are absent
    timeout: seconds that a round may take, the others' counting included
    """

    def __init__(self, parties: Parties, number: int, key: Path, wait: float = 600, timeout: float = 600) -> None:
        own = parties.party(number)
        self.parties, self.number = parties, number
        self._wait, self._timeout = wait, timeout
        others = [each.certificate for each in parties.owners if each is not own]
        self._as_server, self._as_client = (tls(server, own.certificate, key, others) for server in (True, False))
        self._numbers = {each.fingerprint: i for i, each in enumerate(parties.owners, start=1)}
        self._streams: dict[int, Streams] = {}
        self._round, self._open = 0, True

    @property
    def present(self) -> list[int]:
        """The numbers of all who are here, one's own among them."""
        return sorted([self.number, *self._streams])

    def __enter__(self) -> Meeting:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # failed handshakes of strangers are no news
        self._thread = threading.Thread(target=self._loop.run_forever, name="hedgerow meeting", daemon=True)
        self._thread.start()
        try:
            self._call(self._meet())
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        why = "" if error is None else "interrupted, or failed"
        if isinstance(error, HedgerowError):
            why = str(error) if isinstance(error, TogetherError) else "refused there"
        with contextlib.suppress(Exception):
            self._call(self._close(why), CLOSING)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSING)
        if not self._loop.is_running():
            self._loop.close()

    def exchange(self, messages: bytes | Mapping[int, bytes], most: int, doing: str) -> dict[int, bytes]:
        """Send each other party a message (the same, or its own) and get one of each, of at most so many bytes."""
        self._round += 1
        own = {peer: messages if isinstance(messages, bytes) else messages[peer] for peer in self._streams}
        return self._call(self._one_round(own, most, doing))

    def _call(self, work: Coroutine[Any, Any, Result], timeout: float | None = None) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    # ------------------------------------------------------------ meeting

    async def _meet(self) -> None:
        """Whoever has the smaller number calls, the other listens."""
        self._everybody: asyncio.Future[None] = self._loop.create_future()
        own, server = self.parties.party(self.number), None
        if self.number > 1:
            try:
                host = own.host if own.host in LOCAL else None  # on all addresses of the machine
                server = await asyncio.start_server(self._called, host, own.port, ssl=self._as_server)
            except OSError as error:
                raise TogetherError(
                    f"party {self.number} cannot listen on port {own.port} ({error.strerror}). Nothing was spent. Is it running already?"
                ) from error
        calls = [self._loop.create_task(self._reach(peer)) for peer in range(self.number + 1, len(self.parties.owners) + 1)]
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._everybody, self._wait)
        finally:
            self._open = False  # whoever comes from now on is absent, for all the same
            if server is not None:
                server.close()
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        if len(self.present) < self.parties.least_present:
            k, least = len(self.parties.owners), self.parties.least_present
            missing = [self.parties.words(each) for each in range(1, k + 1) if each not in self.present]
            raise TogetherError(
                f"{', '.join(missing)} did not come within {self._wait:g} seconds: {len(self.present)} of {k} owners are here, and at "
                f"least {least} are needed. Nothing was spent, no row was read. Agree on a time and start again."
            )

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody with a declared certificate calls."""
        peer = self._numbers.get(peer_fingerprint(writer.get_extra_info("ssl_object")), 0)
        before = self._streams.get(peer)
        here = before is not None and not before[0].at_eof()
        if not 0 < peer < self.number or here or not self._open:
            await self._last_words(writer, f"{self.parties.words(peer)} is here already" if here else "it is too late, or the wrong place")
            return
        writer.write(HEAD.pack(WELCOME, 0, 0))
        self._came(peer, reader, writer)

    async def _reach(self, peer: int) -> None:
        """Call a party until it is there. A certificate that is not the declared one ends everything."""
        party = self.parties.party(peer)
        wrong = TogetherError(
            f"{self.parties.words(peer)} at {party.address}: its certificate or yours is not the declared one. Nothing was spent. Compare "
            "the parties' files: they are the same for all."
        )
        while True:
            try:
                reader, writer = await asyncio.open_connection(party.host, party.port, ssl=self._as_client)
                if peer_fingerprint(writer.get_extra_info("ssl_object")) != party.fingerprint:
                    raise wrong
                kind, _, length = HEAD.unpack(await reader.readexactly(HEAD.size))
                if kind == STOP:
                    reason = _printable(await reader.readexactly(min(length, MOST_STOP)))
                    raise TogetherError(f"{self.parties.words(peer)} refuses: {reason}. Nothing was spent.")
                if kind != WELCOME:
                    raise wrong
                self._came(peer, reader, writer)
                return
            except ssl.SSLError:
                return self._fail(wrong)
            except TogetherError as error:
                return self._fail(error)
            except (OSError, asyncio.IncompleteReadError, struct.error):
                await asyncio.sleep(AGAIN)  # not there yet

    def _came(self, peer: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._streams[peer] = (reader, writer)
        if len(self.present) == len(self.parties.owners) and not self._everybody.done():
            self._everybody.set_result(None)

    def _fail(self, error: TogetherError) -> None:
        if not self._everybody.done():
            self._everybody.set_exception(error)

    # ------------------------------------------------------------ rounds

    async def _one_round(self, messages: Mapping[int, bytes], most: int, doing: str) -> dict[int, bytes]:
        got: dict[int, bytes] = {}
        tasks = {self._loop.create_task(self._send(peer, MESSAGE, message)): peer for peer, message in messages.items()}
        tasks |= {self._loop.create_task(self._receive(peer, most, got)): peer for peer in messages}
        if tasks:
            await asyncio.wait(tasks, timeout=self._timeout, return_when=asyncio.FIRST_EXCEPTION)
        failed = {tasks[task]: task.exception() for task in tasks if task.done() and task.exception() is not None}
        silent = sorted({tasks[task] for task in tasks if not task.done()})
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for error in failed.values():
            if isinstance(error, TogetherError):  # somebody says why
                raise error
        if failed:
            raise TogetherError(f"{', '.join(map(self.parties.words, sorted(failed)))} left while {doing}. {AFTER}")
        if silent:
            names = ", ".join(map(self.parties.words, silent))
            raise TogetherError(f"{names} sent nothing for {self._timeout:g} seconds while {doing}. {AFTER}")
        return got

    async def _send(self, peer: int, kind: bytes, message: bytes) -> None:
        writer = self._streams[peer][1]
        writer.write(HEAD.pack(kind, self._round, len(message)) + message)
        await writer.drain()

    async def _receive(self, peer: int, most: int, got: dict[int, bytes]) -> None:
        reader = self._streams[peer][0]
        kind, number, length = HEAD.unpack(await reader.readexactly(HEAD.size))
        if kind == STOP:
            raise TogetherError(f"{self.parties.words(peer)} has stopped: {_printable(await reader.readexactly(min(length, MOST_STOP)))}")
        if kind != MESSAGE or number != self._round or length > most:
            raise TogetherError(
                f"{self.parties.words(peer)} sent what does not belong here. {AFTER} Do all have the same version of hedgerow?"
            )
        got[peer] = await reader.readexactly(length)

    # ------------------------------------------------------------ the end

    async def _close(self, why: str) -> None:
        await asyncio.gather(*(self._last_words(writer, why, reader) for reader, writer in self._streams.values()), return_exceptions=True)

    async def _last_words(self, writer: asyncio.StreamWriter, why: str, reader: asyncio.StreamReader | None = None) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            if why:
                reason = why.encode()[:MOST_STOP]
                writer.write(HEAD.pack(STOP, 0, len(reason)) + reason)
                if reader is not None:  # a connection that is closed with unread bytes would take the reason along
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(_until_the_end(reader), CLOSING / 10)
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), CLOSING / 2)


AFTER = "Nothing is released, and what was charged stays charged; a new run pays again."


async def _until_the_end(reader: asyncio.StreamReader) -> None:
    while await reader.read(2**16):
        pass


def _printable(text: bytes) -> str:
    """What another party says, made safe to print."""
    return "".join(each for each in text.decode("utf-8", "replace") if each.isprintable())
