"""Reads for responses: on the loop for a file, in batches for a server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hedgerow.curator.http import reading
from hedgerow.errors import LedgerError


class Server:
    """A database on a server, as far as reads see it: each snapshot has a number."""

    embedded = False

    def __init__(self, away: bool = False) -> None:
        self.away, self.snapshots, self.lock = away, 0, threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with self.lock:
            self.snapshots += 1
            number = self.snapshots
        if self.away:
            raise LedgerError("away")
        yield number


class File(Server):
    embedded = True


def test_a_file_is_read_on_the_loop() -> None:
    database: Any = File()
    found: Any = asyncio.run(reading.read(database, lambda snapshot: (snapshot, threading.get_ident())))
    assert found == (1, threading.get_ident())


async def busy(database: Any, then: list[Any]) -> list[Any]:
    """What becomes of reads that are requested while all readers are at work."""
    started, go = threading.Semaphore(0), threading.Event()

    def first(snapshot: Any) -> Any:
        started.release()
        assert go.wait(60)
        return snapshot

    slow = []
    for _ in range(reading.READERS):
        slow.append(asyncio.create_task(reading.read(database, first)))
        await asyncio.to_thread(started.acquire)
    waiting = [asyncio.create_task(reading.read(database, work)) for work in then]
    await asyncio.sleep(0)  # all are in the queue
    go.set()
    assert sorted(await asyncio.gather(*slow)) == list(range(1, reading.READERS + 1))
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_reads_that_waited_share_a_snapshot_that_began_after_them() -> None:
    for _ in range(2):  # in a loop of its own, too
        database = Server()
        found = asyncio.run(busy(database, [lambda snapshot: (snapshot, threading.get_ident())] * reading.MOST))
        assert {snapshot for snapshot, _ in found} == {reading.READERS + 1}
        assert threading.get_ident() not in {thread for _, thread in found}


def test_no_batch_is_larger_than_the_most() -> None:
    found = asyncio.run(busy(Server(), [lambda snapshot: snapshot] * (2 * reading.MOST + 1)))
    assert max(found.count(snapshot) for snapshot in set(found)) == reading.MOST
    assert len(found) == 2 * reading.MOST + 1


def test_an_error_is_of_its_own_read_alone() -> None:
    def wrong(_: int) -> int:
        raise LedgerError("wrong")

    found = asyncio.run(busy(Server(), [lambda snapshot: snapshot, wrong, lambda snapshot: snapshot]))
    assert (found[0], found[2]) == (reading.READERS + 1, reading.READERS + 2)  # the transaction may be broken: the rest gets another
    assert isinstance(found[1], LedgerError)


def test_a_database_that_is_away_is_tried_once_for_a_batch() -> None:
    database: Any = Server(away=True)
    found = reading._outcomes(database, [lambda snapshot: snapshot] * reading.MOST)
    assert database.snapshots == 1
    assert {type(error) for _, error in found} == {LedgerError}
    with pytest.raises(LedgerError, match="away"):
        asyncio.run(reading.read(database, lambda snapshot: snapshot))


def test_who_has_gone_does_not_hinder_others() -> None:
    async def some() -> Any:
        database: Any = Server()
        gone = asyncio.create_task(reading.read(database, lambda snapshot: snapshot))
        stays = asyncio.create_task(reading.read(database, lambda snapshot: snapshot))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays, gone.cancelled()

    assert asyncio.run(some()) == (1, True)


def test_nobody_waits_for_readers_that_have_just_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that ended in the same turn of the loop was counted as one that would look: the request hung until another came."""

    async def all_at_once() -> list[Any]:
        gate = asyncio.get_running_loop().create_future()

        async def run_sync(work: Any, *given: Any, limiter: Any) -> Any:
            await gate
            return work(*given)

        async def late() -> Any:
            await gate
            return await reading.read(database, lambda snapshot: "late")

        monkeypatch.setattr("hedgerow.curator.http.reading.to_thread.run_sync", run_sync)
        database: Any = Server()
        tasks = []
        for _ in range(reading.READERS):
            tasks.append(asyncio.create_task(reading.read(database, lambda snapshot: "first")))
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # its reader waits at the gate, with nothing left to read
        tasks.append(asyncio.create_task(late()))
        await asyncio.sleep(0)
        gate.set_result(None)  # all readers end, and the late one reads, in one turn
        async with asyncio.timeout(30):
            return await asyncio.gather(*tasks)

    assert asyncio.run(all_at_once()) == ["first"] * reading.READERS + ["late"]
