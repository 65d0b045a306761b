"""Noise on counts and private choices, as the event that was charged says. Theorems M1 to M6 of PROOF.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, PERMUTE_AND_FLIP, Event
from hedgerow.accounting.shared_gaussian import near_one_draw
from hedgerow.accounting.zcdp import rho_of_gaussian
from hedgerow.errors import PlanError
from hedgerow.mechanisms.choices import exponential_mechanism, permute_and_flip
from hedgerow.mechanisms.coins import Coins
from hedgerow.mechanisms.gaussian import discrete_gaussian
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.mechanisms.shares import WholeNumbers, laplace_share

Sampler = Callable[[Fraction, int, Coins], NDArray[np.int64]]


def add_noise(counts: NDArray[np.int64], event: Event, coins: Coins, sampler: Sampler) -> NDArray[np.int64]:
    """Independent noise of the event's mechanism on every number. Sums outside 64 bits stay at the end: post-processing."""
    if event.mechanism == DISCRETE_GAUSSIAN:
        check_noise_source(event, sampler)
        if event.rho != rho_of_gaussian(event.queries * event.sensitivity, event.scale):
            raise PlanError(f"{event.query}: the noise does not follow from what was charged.")
        noise = discrete_gaussian(event.scale, counts.size, coins).reshape(counts.shape)  # [M3]
    else:
        if event.scale != Fraction(event.queries * event.sensitivity) / event.epsilon:
            raise PlanError(f"{event.query}: the noise scale does not follow from what was charged.")
        noise = sampler(event.scale, counts.size, coins).reshape(counts.shape)  # [M1]
    limit = np.iinfo(np.int64).max // 2
    return np.clip(counts, -limit, limit) + np.clip(noise, -limit, limit)


def add_share(counts: NDArray[np.int64], event: Event, coins: Coins, shares: int) -> WholeNumbers:
    """One owner's counts with its share of the event's noise, of which `shares` are a whole draw: for a secure sum alone.  [M4]"""
    check_shared_noise(event, shares)
    if event.mechanism == DISCRETE_GAUSSIAN:
        if event.rho != rho_of_gaussian(event.queries * event.sensitivity, event.scale):
            raise PlanError(f"{event.query}: the noise does not follow from what was charged.")
        share = discrete_gaussian(event.scale / shares, counts.size, coins).reshape(counts.shape)  # [M6]
        return np.asarray(counts.astype(object) + share.astype(object))
    if event.scale != Fraction(event.queries * event.sensitivity) / event.epsilon:
        raise PlanError(f"{event.query}: the noise scale does not follow from what was charged.")
    noise = laplace_share(event.scale, shares, counts.size, coins).reshape(counts.shape)
    noisy: WholeNumbers = counts.astype(object) + noise
    return noisy


def check_shared_noise(event: Event, shares: int) -> None:
    """Refuse, before anything is charged, noise that does not come in that many shares."""
    if event.mechanism not in (DISCRETE_LAPLACE, DISCRETE_GAUSSIAN):
        raise PlanError(
            f"{event.query}: owners who count together add noise in shares, and this is {event.mechanism}. Nothing was spent. What works "
            "are counts in the trees of a plan: `hedgerow plan --save`."
        )
    if event.mechanism == DISCRETE_GAUSSIAN and not near_one_draw(event.scale, event.queries * event.sensitivity, shares):
        raise PlanError(
            f"{event.query}: {shares} shares of discrete Gaussian noise of σ² = {float(event.scale):.3g} in all are too small for their "
            "sum to be like one draw. Nothing was spent. Leave δ out of the plan, or plan with a smaller ε."
        )


def check_noise_source(event: Event, sampler: Sampler) -> None:
    """Refuse, before anything is charged, Gaussian noise from a sampler that has none here."""
    if event.mechanism == DISCRETE_GAUSSIAN and sampler is not discrete_laplace:
        raise PlanError(f'{event.query}: Gaussian noise (delta above 0) is drawn by sampler="hedgerow" alone.')


def choose_columns(scores: NDArray[np.int64], allowed: NDArray[np.bool_], event: Event, unit: int, coins: Coins) -> NDArray[np.int64]:
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
