"""Sign-in sessions: a random id in a cookie stands for a token that is kept in memory and nowhere else.

So the token itself is never stored by a browser, signing out ends a session at once, and after a restart everybody signs in again.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from hedgerow.mechanisms.coins import SYSTEM

LIFETIME = 8 * 3600  # seconds: a day at work
MOST, MOST_EACH = 10_000, 20  # sessions in all, and of one token


class SignInSessions:
    """Sessions by the hash of their id, so that the time of a look-up tells nothing about existing ids. `clock` is for tests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def begin(self, token: str) -> str:
        """A new session: its id, for the cookie. The oldest give way where there are too many, and those of the same token first."""
        id = SYSTEM.bytes(32).hex()
        with self._lock:
            now = self._clock()
            while self._sessions and (len(self._sessions) >= MOST or next(iter(self._sessions.values()))[1] <= now):
                self._sessions.popitem(last=False)
            own = [digest for digest, (known, _) in self._sessions.items() if known == token]
            for digest in own[: max(0, len(own) - MOST_EACH + 1)]:
                del self._sessions[digest]
            self._sessions[_digest(id)] = (token, now + LIFETIME)
        return id

    def token(self, id: str) -> str | None:
        with self._lock:
            token, ends = self._sessions.get(_digest(id), ("", 0.0))
            return token if token and self._clock() < ends else None

    def end(self, id: str) -> None:
        with self._lock:
            self._sessions.pop(_digest(id), None)


def _digest(id: str) -> bytes:
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()
