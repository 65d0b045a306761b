"""Where a replay listens: the three places where randomness becomes an answer, the charge, the queries, and the system's coins.

Nothing in `mechanisms/` or `accounting/` knows of it and nothing there has a switch for it. While `Listening` is entered, these functions
are wrapped in this process; in every thread but the one that is replaying the wrappers hand on to the originals, so that a training beside
it draws its own noise. What is trained inside is not for publishing, since its noise is known: `replay` gives back findings alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from fractions import Fraction
from functools import wraps
from types import ModuleType
from typing import Any

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, EXPONENTIAL, PERMUTE_AND_FLIP
from hedgerow.accounting.meter import Reservation
from hedgerow.audit.transcript import Transcript
from hedgerow.mechanisms import choices, gaussian, noise, samplers
from hedgerow.mechanisms.coins import Coins, SeededCoins, SystemCoins
from hedgerow.private_table import PrivateTable

_ONE_AT_A_TIME = threading.RLock()


class Listening:
    """with Listening() as ears: with ears.to(transcript): train(table)"""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._thread = 0
        self._transcript: Transcript | None = None

    def __enter__(self) -> Listening:
        self._stack.enter_context(_ONE_AT_A_TIME)
        self._thread = threading.get_ident()
        self._wrap(Reservation, "charge", self._charge)
        self._wrap(SystemCoins, "bytes", self._bytes)
        self._wrap(samplers, "_discrete_laplace", self._noise(DISCRETE_LAPLACE))
        self._wrap(gaussian, "_discrete_gaussian", self._noise(DISCRETE_GAUSSIAN))
        self._wrap(choices, "_choose", self._choose)
        self._wrap(PrivateTable, "released", self._released)
        for module, name in _holders(noise.add_noise):
            self._wrap(module, name, self._add_noise)
        mine = self._noise(DISCRETE_LAPLACE)(noise.opendp_laplace)  # whose randomness is OpenDP's
        self._stack.callback(noise.SAMPLERS.__setitem__, "opendp", noise.opendp_laplace)
        noise.SAMPLERS["opendp"] = mine
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def to(self, transcript: Transcript) -> Iterator[None]:
        self._transcript = transcript
        try:
            yield
        finally:
            self._transcript = None

    def _heard(self) -> Transcript | None:
        return self._transcript if threading.get_ident() == self._thread else None

    def _wrap(self, holder: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        original = getattr(holder, name)
        setattr(holder, name, wraps(original)(wrapper(original)))
        self._stack.callback(setattr, holder, name, original)

    # ------------------------------------------------------------ wrappers: an original in, what stands in its place out

    def _charge(self, original: Any) -> Any:
        def charge(reservation: Reservation, *events: Any) -> None:
            original(reservation, *events)
            if heard := self._heard():
                heard.charge(reservation, *events)

        return charge

    def _bytes(self, original: Any) -> Any:
        def fresh(coins: SystemCoins, n: int) -> bytes:
            heard = self._heard()
            return original(coins, n) if heard is None else heard.bytes(n)

        return fresh

    def _released(self, original: Any) -> Any:
        def released(table: PrivateTable, query: Any, price: Any) -> Any:
            if heard := self._heard():
                heard.ask(query.name, {**{each.name: getattr(query, each.name) for each in fields(query)}, "price": price})
            return original(table, query, price)

        return released

    def _add_noise(self, original: Any) -> Any:
        def add_noise(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
            heard = self._heard()
            if heard is None:
                return original(counts, event, coins, sampler)
            return heard.count(counts, event, lambda: original(counts, event, coins, sampler))

        return add_noise

    def _noise(self, mechanism: str) -> Callable[[Any], Any]:
        def wrapper(original: Any) -> Any:
            def draw(scale: Fraction, size: int, coins: Any, *more: Any, **named: Any) -> Any:
                heard = self._heard()
                if heard is None:
                    return original(scale, size, coins, *more, **named)
                return heard.draw(mechanism, scale, size, lambda: self._really(lambda own: original(scale, size, own)))

            return draw

        return wrapper

    def _choose(self, original: Any) -> Any:
        def choose(scores: Any, allowed: Any, rate: Fraction, coins: Any, set_aside: bool, *more: Any, **named: Any) -> Any:
            heard = self._heard()
            if heard is None:
                return original(scores, allowed, rate, coins, set_aside, *more, **named)

            def real() -> Any:
                return self._really(lambda own: original(scores, allowed, rate, own, set_aside))

            return heard.choose(scores, allowed, rate, PERMUTE_AND_FLIP if set_aside else EXPONENTIAL, real)

        return choose

    def _really(self, draw: Callable[[Coins], Any]) -> Any:
        """What the mechanism draws, with coins of its own; nobody listens meanwhile (Gaussian noise is made of Laplace noise)."""
        transcript, self._transcript = self._transcript, None
        assert transcript is not None
        try:
            return draw(SeededCoins(1_000_003 * transcript.seed + len(transcript.steps)))
        finally:
            self._transcript = transcript


def _holders(function: Any) -> list[tuple[ModuleType, str]]:
    """Every module that has it, under whatever name: also those that imported it by name."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    return [(module, name) for module in modules for name, value in list(vars(module).items()) if value is function]
