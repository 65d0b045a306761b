"""Time padding: the time of a query tells how many rows there are; where that is private, it ends at a multiple of some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable


class Padding:
    """Begun with the work; `wait` returns at the next multiple of `seconds` after that, once. 0: at once. The clock is for tests."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self._seconds, self._clock, self._sleep = seconds, clock, sleep
        self._began = clock()
        self._waited = not seconds

    def wait(self) -> None:
        """Called before anything about the work is visible, be it done or failed; called again, it returns at once."""
        if not self._waited:
            self._waited = True
            self._sleep(self._seconds - (self._clock() - self._began) % self._seconds)
