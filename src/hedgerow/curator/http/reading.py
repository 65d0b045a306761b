"""Reads for an answer: on the event loop where the ledger is a file, in one of a few threads where it is on a server.

A file is read faster than a thread would start. Of many threads that wait for a server, each takes the interpreter for a moment at every
step; with more than a few they hinder each other and the loop: at 200 requests a second twice the CPU was used, and requests queued up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from hedgerow.curator.ledger.database import Database

READERS = 4
_readers: RunVar[CapacityLimiter] = RunVar("hedgerow_readers")  # of an event loop
Result = TypeVar("Result")


async def read(database: Database, work: Callable[[], Result]) -> Result:
    """What `work` returns, which must only read from the database."""
    if database.embedded:
        return work()
    try:
        readers = _readers.get()
    except LookupError:
        readers = CapacityLimiter(READERS)
        _readers.set(readers)
    return await to_thread.run_sync(work, limiter=readers)
