"""Reads for answers: on the loop for a file, by a few threads for a server."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from hedgerow.curator.http import reading


def test_a_file_is_read_on_the_loop() -> None:
    database: Any = SimpleNamespace(embedded=True)
    assert asyncio.run(reading.read(database, threading.get_ident)) == threading.get_ident()


def test_a_server_is_read_by_a_few_threads_at_once_in_each_loop() -> None:
    database: Any = SimpleNamespace(embedded=False)
    lock, full, under_way, most = threading.Lock(), threading.Barrier(reading.READERS), 0, 0

    def work() -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        full.wait(60)  # so many are at work at once …
        with lock:
            under_way -= 1
        return threading.get_ident()

    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(reading.read(database, work) for _ in range(5 * reading.READERS)))

    for _ in range(2):
        found = asyncio.run(all_of_them())
        assert threading.get_ident() not in found
        assert most == reading.READERS  # … and never more
