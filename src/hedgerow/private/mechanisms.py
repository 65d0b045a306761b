"""Noise on counts and private choices: the loss and the sampling side by side. Theorems M1 and M2 of PROOF.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import DISCRETE_LAPLACE, PERMUTE_AND_FLIP, Event
from hedgerow.accounting.loss import noise_scale
from hedgerow.errors import PlanError
from hedgerow.private.choices import exponential_mechanism, permute_and_flip
from hedgerow.private.coins import Coins
from hedgerow.private.samplers import discrete_laplace
from hedgerow.private.scores import Score

Sampler = Callable[[Fraction, int, Coins], NDArray[np.int64]]


def counting_event(verb: str, epsilon: Fraction, queries: int = 1) -> Event:
    """`queries` histograms over disjoint cells, answered together for ε: each number gets noise of scale queries/ε."""
    if not isinstance(epsilon, Fraction):
        raise PlanError(f"{verb}: ε must be an exact fraction, got {type(epsilon).__name__}.")
    return Event(verb, DISCRETE_LAPLACE, epsilon, queries, Fraction(1), noise_scale(queries, epsilon))  # [M1]


def add_noise(counts: NDArray[np.int64], event: Event, coins: Coins, sampler: Sampler) -> NDArray[np.int64]:
    """Independent discrete Laplace noise on every number. Sums outside 64 bits stay at the end: post-processing."""
    if event.scale != Fraction(event.queries * event.sensitivity) / event.epsilon:
        raise PlanError(f"{event.verb}: the noise scale does not follow from what was charged.")
    noise = sampler(event.scale, counts.size, coins).reshape(counts.shape)  # [M1]
    limit = np.iinfo(np.int64).max // 2
    return np.clip(counts, -limit, limit) + np.clip(noise, -limit, limit)


def choice_event(verb: str, epsilon: Fraction, score: Score, mechanism: str) -> Event:
    """A private choice in each of some disjoint parts, for ε in all: the rate is ε/Δ if the score is monotone, else ε/2Δ."""
    if not isinstance(epsilon, Fraction):
        raise PlanError(f"{verb}: ε must be an exact fraction, got {type(epsilon).__name__}.")
    scale = noise_scale(score.plain_sensitivity, epsilon) * (1 if score.monotone else 2)  # [S4] [S5]
    return Event(verb, mechanism, epsilon, 1, score.plain_sensitivity, scale)


def choose_columns(
    scores: NDArray[np.int64], allowed: NDArray[np.bool_], event: Event, unit: int, coins: Coins
) -> NDArray[np.int64]:
    """One allowed column for each row of integer scores with `unit` steps for 1."""
    rate = 1 / (event.scale * unit)
    choose = permute_and_flip if event.mechanism == PERMUTE_AND_FLIP else exponential_mechanism
    return choose(np.ascontiguousarray(scores), np.ascontiguousarray(allowed), rate, coins)


def opendp_laplace(scale: Fraction, size: int, coins: Coins) -> NDArray[np.int64]:
    """The same noise from OpenDP. It takes a float scale, so the scale is rounded up: never less noise than was paid for."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rounded = float(scale)
    if Fraction(rounded) < scale:
        rounded = math.nextafter(rounded, math.inf)  # [M2]
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=rounded)
    return np.array(measurement([0] * size), dtype=np.int64)


SAMPLERS: dict[str, Sampler] = {"hedgerow": discrete_laplace, "opendp": opendp_laplace}


def sampler_named(name: str, coins: Coins) -> Sampler:
    """The sampler of that name, or an error before anything is spent."""
    if name not in SAMPLERS:
        raise PlanError(f"sampler: got {name!r}; expected one of {', '.join(sorted(SAMPLERS))}.")
    if name == "opendp":
        try:
            import opendp.prelude  # noqa: F401
        except ImportError as error:
            raise PlanError("sampler: \"opendp\" needs the package opendp: pip install 'hedgerow[opendp]'.") from error
        if not coins.secret:
            raise PlanError("sampler: OpenDP draws its own randomness and cannot use test coins.")
    return SAMPLERS[name]
