"""Who is signed in: a random name in a cookie stands for a token that is kept in memory and nowhere else.

So the token itself is never stored by a browser, signing out ends a visit at once, and a service that starts again asks anew.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from hedgerow.mechanisms.coins import SYSTEM

LIFETIME = 8 * 3600  # seconds: a day at work
MOST, MOST_EACH = 10_000, 20  # visits in all, and by one token


class Visits:
    """Visits by the hash of their name: how long a look-up takes tells nothing about names that there are. `clock` is for tests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._found: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def begin(self, token: str) -> str:
        """A new visit: its name, for the cookie. The oldest give way where there are too many, and those of the same token first."""
        name = SYSTEM.bytes(32).hex()
        with self._lock:
            now = self._clock()
            while self._found and (len(self._found) >= MOST or next(iter(self._found.values()))[1] <= now):
                self._found.popitem(last=False)
            own = [digest for digest, (known, _) in self._found.items() if known == token]
            for digest in own[: max(0, len(own) - MOST_EACH + 1)]:
                del self._found[digest]
            self._found[_digest(name)] = (token, now + LIFETIME)
        return name

    def token(self, name: str) -> str | None:
        with self._lock:
            token, ends = self._found.get(_digest(name), ("", 0.0))
            return token if token and self._clock() < ends else None

    def end(self, name: str) -> None:
        with self._lock:
            self._found.pop(_digest(name), None)


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
