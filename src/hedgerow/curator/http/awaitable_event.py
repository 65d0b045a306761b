"""A threading.Event that asyncio code can await too: a request that waits for work in a thread holds no thread itself."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class AwaitableEvent(threading.Event):
    """Set once, from any thread; waited for with `wait` in threads and with `within` in coroutines."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting_lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def set(self) -> None:
        super().set()
        with self._waiting_lock:
            waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            with suppress(RuntimeError):  # a loop that has ended waits for nothing
                loop.call_soon_threadsafe(event.set)

    async def within(self, seconds: float) -> bool:
        """Whether it is set, as soon as it is or when the time is over."""
        mine = (asyncio.get_running_loop(), asyncio.Event())
        with self._waiting_lock:
            if self.is_set():
                return True
            self._waiting.append(mine)
        try:
            async with asyncio.timeout(seconds):
                await mine[1].wait()
        except TimeoutError:
            pass
        finally:
            with self._waiting_lock:
                self._waiting = [other for other in self._waiting if other is not mine]
        return self.is_set()
