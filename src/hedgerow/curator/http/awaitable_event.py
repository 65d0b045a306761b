"""Something that happens once, in a thread, and is waited for by threads and by requests: a request that waits holds no thread."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class Moment(threading.Event):
    """An event that a request can await."""

    def __init__(self) -> None:
        super().__init__()
        self._telling = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def set(self) -> None:
        super().set()
        with self._telling:
            waiting, self._waiting = self._waiting, []
        for loop, told in waiting:
            with suppress(RuntimeError):  # a loop that has ended waits for nothing
                loop.call_soon_threadsafe(told.set)

    async def within(self, seconds: float) -> bool:
        """Whether it has happened, as soon as it has or when the time is over."""
        mine = (asyncio.get_running_loop(), asyncio.Event())
        with self._telling:
            if self.is_set():
                return True
            self._waiting.append(mine)
        try:
            async with asyncio.timeout(seconds):
                await mine[1].wait()
        except TimeoutError:
            pass
        finally:
            with self._telling:
                self._waiting = [other for other in self._waiting if other is not mine]
        return self.is_set()
