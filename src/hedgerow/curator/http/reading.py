"""Reads for a response: on the event loop where the ledger is a file, in batches where it is on a server.

A file is read faster than a thread would start. A server is asked by one or two threads; what came while they were at work shares the next
snapshot. So the more requests there are, the less each costs: one connection, transaction and change of threads for all of a batch. A
batch is taken before its transaction begins: each read sees what was committed before it was requested.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sql
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from hedgerow.curator.ledger.database import Database

READERS, MOST = 2, 16  # threads that read from a server; reads in a batch, of which all wait for the last
Result = TypeVar("Result")
Read = Callable[[sql.Connection], Any]
Outcome = tuple[Any, Exception | None]


async def read(database: Database, work: Callable[[sql.Connection], Result]) -> Result:
    """What `work` returns, which must only read, from the snapshot that it is given."""
    if database.embedded:
        with database.reading() as connection:
            return work(connection)
    try:
        batches = _batches.get()
    except LookupError:
        batches = {}
        _batches.set(batches)
    found: Result = await batches.setdefault(database, _Batches(database)).read(work)
    return found


class _Batches:
    """The reads from one database that wait in one event loop, which alone touches this."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.waiting: deque[tuple[Read, asyncio.Future[Any]]] = deque()
        self.active = 0  # readers that will look at what waits before they end
        self.readers: set[asyncio.Task[None]] = set()  # so that they are not collected
        self.limiter = CapacityLimiter(READERS)  # of their own: slow requests must not keep authentication waiting

    async def read(self, work: Read) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting.append((work, future))
        if self.active < READERS:
            self.active += 1
            reader = asyncio.create_task(self._reader())
            self.readers.add(reader)
            reader.add_done_callback(self.readers.discard)
        return await future

    async def _reader(self) -> None:
        try:
            while self.waiting:
                await self._batch([self.waiting.popleft() for _ in range(min(MOST, len(self.waiting)))])
        finally:
            self.active -= 1  # in the same step in which nothing was left to wait: whoever comes now starts another

    async def _batch(self, batch: list[tuple[Read, asyncio.Future[Any]]]) -> None:
        try:
            outcomes = await to_thread.run_sync(_outcomes, self.database, [work for work, _ in batch], limiter=self.limiter)
            for (_, future), (result, error) in zip(batch, outcomes, strict=True):
                if future.done():  # whoever wanted it has gone
                    continue
                future.set_result(result) if error is None else future.set_exception(error)
        finally:  # where the loop ends
            for _, future in batch:
                future.cancel()


def _outcomes(database: Database, works: Sequence[Read]) -> list[Outcome]:
    """What each returns or raises, all from one snapshot; after an error, which may have ended it, from another."""
    found: list[Outcome] = []
    while len(found) < len(works):
        opened = False
        try:
            with database.reading() as connection:
                opened = True
                while len(found) < len(works):
                    found.append((works[len(found)](connection), None))
        except Exception as error:
            # A database that cannot be opened now is not tried again for each of them. All that was read before an error is as it was.
            found += [(None, error)] * min(1 if opened else len(works), len(works) - len(found))
    return found


_batches: RunVar[dict[Database, _Batches]] = RunVar("hedgerow_batches")  # of an event loop
