"""Noise on counts and private choices: the loss and the sampling side by side. Theorems M1 to M3 and U1 of PROOF.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, PERMUTE_AND_FLIP, Event
from hedgerow.accounting.loss import noise_scale
from hedgerow.accounting.prices import Price, Rho
from hedgerow.accounting.zcdp import rho_of_gaussian, sigma_squared_for
from hedgerow.errors import PlanError
from hedgerow.mechanisms.choices import exponential_mechanism, permute_and_flip
from hedgerow.mechanisms.coins import Coins
from hedgerow.mechanisms.gaussian import discrete_gaussian
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.mechanisms.scores import Score

Sampler = Callable[[Fraction, int, Coins], NDArray[np.int64]]


def counting_event(
    verb: str, price: Price, queries: int = 1, l1: int = 1, l2_squared: int = 1, rows_per_person: int = 1
) -> Event:
    """`queries` vectors of whole numbers, answered together for one price; by default histograms over disjoint cells.

    price: a fraction is pure ε, and each number gets discrete Laplace noise of scale queries·l1/ε; `Rho` is ρ-zCDP, and each number
           gets discrete Gaussian noise of σ² = queries·l2_squared/(2ρ)
    l1, l2_squared: by how much one row changes one of the vectors, in the L1 norm and in the squared L2 norm
    rows_per_person: how many rows of one person are counted at most (`schema.k`); the price is what that person pays
    """
    l1, l2_squared = l1 * rows_per_person, l2_squared * rows_per_person**2  # [U1]
    if isinstance(price, Rho):
        sigma_squared = sigma_squared_for(queries * l2_squared, price.value)
        return Event(verb, DISCRETE_GAUSSIAN, Fraction(0), queries, Fraction(l2_squared), sigma_squared, price.value)  # [M3]
    if not isinstance(price, Fraction):
        raise PlanError(f"{verb}: ε must be an exact fraction, got {type(price).__name__}.")
    return Event(verb, DISCRETE_LAPLACE, price, queries, Fraction(l1), noise_scale(queries * l1, price))  # [M1]


def add_noise(counts: NDArray[np.int64], event: Event, coins: Coins, sampler: Sampler) -> NDArray[np.int64]:
    """Independent noise of the event's mechanism on every number. Sums outside 64 bits stay at the end: post-processing."""
    if event.mechanism == DISCRETE_GAUSSIAN:
        check_noise_source(event, sampler)
        if event.rho != rho_of_gaussian(event.queries * event.sensitivity, event.scale):
            raise PlanError(f"{event.verb}: the noise does not follow from what was charged.")
        noise = discrete_gaussian(event.scale, counts.size, coins).reshape(counts.shape)  # [M3]
    else:
        if event.scale != Fraction(event.queries * event.sensitivity) / event.epsilon:
            raise PlanError(f"{event.verb}: the noise scale does not follow from what was charged.")
        noise = sampler(event.scale, counts.size, coins).reshape(counts.shape)  # [M1]
    limit = np.iinfo(np.int64).max // 2
    return np.clip(counts, -limit, limit) + np.clip(noise, -limit, limit)


def check_noise_source(event: Event, sampler: Sampler) -> None:
    """Refuse, before anything is charged, Gaussian noise from a sampler that has none here."""
    if event.mechanism == DISCRETE_GAUSSIAN and sampler is not discrete_laplace:
        raise PlanError(f"{event.verb}: Gaussian noise (delta above 0) is drawn by sampler=\"hedgerow\" alone.")


def choice_event(verb: str, epsilon: Fraction, score: Score, mechanism: str, rows_per_person: int = 1) -> Event:
    """A private choice in each of some disjoint parts, for ε in all: the rate is ε/Δ if the score is monotone, else ε/2Δ.

    Δ is what `rows_per_person` rows, those of one person, can change.
    """
    if not isinstance(epsilon, Fraction):
        raise PlanError(f"{verb}: ε must be an exact fraction, got {type(epsilon).__name__}.")
    sensitivity = score.plain_sensitivity * rows_per_person  # [U1]
    scale = noise_scale(sensitivity, epsilon) * (1 if score.monotone else 2)  # [S4] [S5]
    return Event(verb, mechanism, epsilon, 1, sensitivity, scale)


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
