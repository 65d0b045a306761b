"""Randomness that comes again: each test draws from a stream of its own, named by the test, so that what passed once passes again.

Without this, a test that fails for one noise in a hundred fails on somebody else's change. To look for such tests:

    HEDGEROW_TEST_SEED=7 make test        other streams
    HEDGEROW_TEST_SEED=fresh make test    the system's own randomness, as users have it

Programs that a test starts draw from the system, as they do elsewhere: the package knows nothing of these streams.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

import numpy as np

from hedgerow.mechanisms.coins import SystemCoins

SEED = os.environ.get("HEDGEROW_TEST_SEED", "0")


class Stream:
    """Block number c of a stream is SHAKE-256(seed, name, c), one block for each call."""

    def __init__(self, name: str) -> None:
        self.name, self._blocks, self._lock = name, 0, threading.Lock()

    def bytes(self, n: int) -> bytes:
        with self._lock:
            self._blocks += 1
            block = self._blocks
        return hashlib.shake_256(f"{SEED}\0{self.name}\0{block}".encode()).digest(n)

    def whole(self) -> int:
        return int.from_bytes(self.bytes(16))


_now = Stream("before all tests")
_forks = 0


def begin(name: str) -> None:
    """From here on all randomness of this process is that of `name`."""
    global _now
    if SEED != "fresh":
        _now = Stream(name)
        np.random.seed(_now.whole() % 2**32)  # noqa: NPY002 what scikit-learn takes where no seed is given
        random.seed(_now.whole())


@contextmanager
def stream(name: str) -> Iterator[None]:
    """What is drawn inside belongs to `name`, whoever asks for it first."""
    global _now
    outside, _now = _now, Stream(name)
    try:
        yield
    finally:
        _now = outside


def drawn_once(function: Callable[..., Any]) -> Any:
    """`functools.cache` for what has noise in it: the same whichever test calls it first."""

    @cache
    @wraps(function)
    def drawn(*words: Any, **named: Any) -> Any:
        with stream(f"{function.__module__}.{function.__qualname__}{words!r}{sorted(named.items())!r}"):
            return function(*words, **named)

    return drawn


def install() -> None:
    """Put the streams where noise (the system's coins) and public choices (generators without a seed) come from."""
    if SEED == "fresh":
        return
    unseeded = np.random.default_rng

    def default_rng(seed: Any = None) -> np.random.Generator:
        return unseeded(_now.whole() if seed is None else seed)

    SystemCoins.bytes = lambda self, n: _now.bytes(n)  # type: ignore[method-assign]
    np.random.default_rng = default_rng
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)


def _before_fork() -> None:
    global _forks
    _forks += 1


def _in_child() -> None:
    """A copy of this process must not draw what this process draws."""
    begin(f"{_now.name} fork {_forks}")
