"""How long a look at the rows takes tells how many they are: where that is private, it ends at a multiple of some seconds."""

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
        """Before anything is told about the work, be it done or failed; told again, nothing is waited for."""
        if not self._waited:
            self._waited = True
            self._sleep(self._seconds - (self._clock() - self._began) % self._seconds)
