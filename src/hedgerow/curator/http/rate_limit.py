"""Rate limit of reservations, per person: one that is given back costs nothing, but stays in the ledger for ever."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hedgerow.curator.http.errors import Refusal

HOUR = 3600.0


class RateLimit:
    """A sliding window: the reservations of each person in the last hour, for this process. `clock` is for tests."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._lock = threading.Lock()
        self._made: dict[str, deque[float]] = {}

    @contextmanager
    def acquire(self, person: str) -> Iterator[None]:
        """Around a reservation: refused where there were too many, and not counted where it was not made."""
        now = self._clock()
        with self._lock:
            made = self._made.setdefault(person, deque())
            while made and made[0] <= now - HOUR:
                made.popleft()
            if len(made) >= self._most:
                wait = {"Retry-After": str(math.ceil(made[0] + HOUR - now))}
                message = f"You have paid for {self._most} requests within an hour, as many as one may. Nothing was spent. Try again later."
                raise Refusal(429, "too_often", message, wait)
            made.append(now)
        try:
            yield
        except BaseException:
            with self._lock:
                made.remove(now)
            raise
