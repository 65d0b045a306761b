"""Which answers the first run of a replay is given: as drawn, or extreme ones that drive training down rare branches.

Every whole number is a possible answer of a counting query, and every allowed candidate one of a private choice; what must hold given the
answers must hold given these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Drawn = Callable[[], Integers]  # what the mechanism itself draws
LARGE = 10**6


@dataclass(frozen=True)
class Answers:
    """count: (exact numbers, the real noise, public randomness) -> released numbers. choose: (scores, allowed, real, …) -> columns."""

    name: str
    count: Callable[[Integers, Drawn, np.random.Generator], Any]
    choose: Callable[[Integers, NDArray[np.bool_], Drawn, np.random.Generator], Any]


def _first(scores: Integers, allowed: NDArray[np.bool_], *_: Any) -> Any:
    return allowed.argmax(axis=1)


def _last(scores: Integers, allowed: NDArray[np.bool_], *_: Any) -> Any:
    return allowed.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1)


def _best(scores: Integers, allowed: NDArray[np.bool_], *_: Any) -> Any:
    return np.where(allowed, scores.astype(np.float64), -np.inf).argmax(axis=1)


def _worst(scores: Integers, allowed: NDArray[np.bool_], *_: Any) -> Any:
    return np.where(allowed, scores.astype(np.float64), np.inf).argmin(axis=1)


def _in_turn(scores: Integers, allowed: NDArray[np.bool_], *_: Any) -> Any:
    return np.where(np.arange(len(allowed)) % 2, _first(scores, allowed), _last(scores, allowed))


def _any(scores: Integers, allowed: NDArray[np.bool_], real: Drawn, rng: np.random.Generator) -> Any:
    return np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=1)


def _wild(exact: Integers, noise: Drawn, rng: np.random.Generator) -> Any:
    """Each number is one of these."""
    drawn = exact + noise().reshape(exact.shape)
    fixed = [np.full_like(exact, number) for number in (-LARGE, -1, 0, 1, LARGE)]
    return np.choose(rng.integers(7, size=exact.shape), [exact, drawn, *fixed])


def _all(number: int) -> Callable[..., Any]:
    return lambda exact, noise, rng: np.full_like(exact, number)


ANSWERS: dict[str, Answers] = {
    each.name: each
    for each in (
        Answers("as drawn", lambda exact, noise, rng: exact + noise().reshape(exact.shape), lambda scores, allowed, real, rng: real()),
        Answers("exact", lambda exact, noise, rng: exact, _best),
        Answers("zero", _all(0), _first),
        Answers("large", _all(LARGE), _last),
        Answers("negative", _all(-LARGE), _worst),
        Answers(
            "alternating",
            lambda exact, noise, rng: np.where(np.arange(exact.size).reshape(exact.shape) % 2, -LARGE, LARGE),
            _in_turn,
        ),
        Answers("wild", _wild, _any),
    )
}
