"""Exact discrete Gaussian noise, vectorised. Canonne, Kamath & Steinke (NeurIPS 2020), "The discrete Gaussian for
differential privacy", Algorithm 3: discrete Laplace proposals, each accepted or rejected by one coin.

A float may decide a coin only where a proven error bound says that exact arithmetic would decide the same; all others are finished
with certified arithmetic from the bits already drawn. Labels [S6] and [M3] refer to the theorems in PROOF.md.

Running time depends on the values drawn: no claim is made about timing.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.mechanisms.choices import GUARD, Words
from hedgerow.mechanisms.coins import Coins
from hedgerow.mechanisms.exactmath import bernoulli_exp
from hedgerow.mechanisms.samplers import BUFFER_BYTES, LARGEST_DRAW, LARGEST_SCALE, Integers, compiled, discrete_laplace

Verdicts = NDArray[np.uint8]

LARGEST_VARIANCE = LARGEST_SCALE**2
SMALLEST_FOR_FLOATS = Fraction(1, 2**400)  # no number of the kernel under- or overflows from here on

# [S6] When may a float decide "U < e^(-z)", z = (|y| - c)²/(2σ²), c = σ²/t, from the first 64 bits w of U, w <= 2^64 U < w + 1?
# The kernel computes d = fl(fl|y| - fl(c)), then d² · fl(1/(2σ²)), every operation rounded with relative error at most u = 2^-53.
# Let z <= 64. Then |y| - c is at most √128 σ < 11.4σ in size; c <= σ since t >= σ; so |y| < 12.4σ, and d is off by at most
# u(|y| + c + |d|)(1 + 2u) < 24.9uσ. That moves z by less than 2 · 11.4σ · 24.9uσ/(2σ²) · 1.001 < 285u; the other three roundings by
# less than 3u · 64 · 1.001 < 193u. In all less than 478u < 2^-44: e^(-z) moves by a factor within 1 ± 2^-43.9. With the error 2^-42
# ASSUMED of the C library's exp in [S4], and the roundings of w, 1 ± guard and the products (below 2^-49), the relative
# error is below 2^-41, so that for guard = 2^-40 the two implications of [S4] hold word for word:
#     w < T(1 - guard) - 2  implies  U < e^(-z);      w > T(1 + guard) + 2  implies  U >= e^(-z),      T the computed threshold.
# If z > 64, then |y| > c (below c, z <= c²/(2σ²) <= 1/2), d > 11σ has a relative error below 2^-50, and the computed z is above 63.
# There, and where rounding carries a z <= 64 beyond 64, 2^64 e^(-z) and the float threshold are both below 1: the first never holds,
# and the second is right for every w > 2.


def discrete_gaussian(sigma_squared: Fraction, size: int, coins: Coins) -> Integers:
    """`size` independent integers X with P(X = x) ∝ exp(-x²/(2σ²)), exactly.  [S6] What it costs: [M3].

    A proposal Y is discrete Laplace of scale t = ⌊σ⌋ + 1, accepted with probability exp(-(|Y| - σ²/t)²/(2σ²)); three in four are
    for large σ, and more than two in five for any σ.

    sigma_squared : positive rational, at most 2^100. The variance is this number, or less if σ is small (`gaussian_variance`).
    Draws beyond ±(2^63 - 1) are clipped there, which is post-processing (probability below e^(-10^7)).
    """
    if not 0 < sigma_squared <= LARGEST_VARIANCE:
        raise ValueError(
            f"discrete_gaussian: sigma_squared must be positive and at most 2**100, got {sigma_squared}; "
            "more noise means a privacy loss per count too small to be useful: raise rho"
        )
    if size < 0:
        raise ValueError(f"discrete_gaussian: size must not be negative, got {size}")
    return _discrete_gaussian(Fraction(sigma_squared), size, coins)


_REJECTED, _ACCEPTED, _UNDECIDED = 0, 1, 2


def _discrete_gaussian(sigma_squared: Fraction, size: int, coins: Coins, guard: float = GUARD, block: int = BUFFER_BYTES // 8) -> Integers:
    """The sampler with its tuning open to tests: `guard` (infinite: every coin is exact), most proposals at once."""
    scale = Fraction(min(math.isqrt(int(sigma_squared)) + 1, LARGEST_SCALE))  # any scale >= σ would be right
    centre, rate = sigma_squared / scale, 1 / (2 * sigma_squared)
    if sigma_squared >= SMALLEST_FOR_FLOATS:
        centre_float, rate_float = float(centre), float(rate)
    else:
        centre_float, rate_float, guard = 0.0, 0.0, math.inf
    draws = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        # How many to propose follows from how many are missing, and those taken are the first accepted ones, in order:
        # nothing is selected by its value.  [S6]
        n = min(block, (size - done) * 4 // 3 + 16)
        proposals = discrete_laplace(scale, n, coins)
        words = np.frombuffer(coins.bytes(8 * n), dtype=np.uint64)
        verdicts = np.empty(n, dtype=np.uint8)
        _gaussian_kernel(proposals, words, centre_float, rate_float, guard, verdicts)
        for i in np.flatnonzero(verdicts == _UNDECIDED):
            verdicts[i] = _accepts(int(proposals[i]), int(words[i]), scale, centre, rate, coins)
        accepted = proposals[verdicts == _ACCEPTED][: size - done]
        draws[done : done + accepted.size] = accepted
        done += accepted.size
    return draws


@compiled
def _gaussian_kernel(proposals: Integers, words: Words, centre: float, rate: float, guard: float, verdicts: Verdicts) -> None:
    """Decide each proposal by its own word where floats may; leave the others undecided.  [S6]"""
    for i in range(proposals.size):
        size = abs(proposals[i])
        verdict = _UNDECIDED
        if size < LARGEST_DRAW:  # this last one stands for all beyond it as well
            distance = np.float64(size) - centre
            threshold = math.exp(-(distance * distance * rate)) * 2.0**64  # [S6] the only float decision
            word = np.float64(words[i])
            if word < threshold * (1.0 - guard) - 2.0:
                verdict = _ACCEPTED
            elif word > threshold * (1.0 + guard) + 2.0:
                verdict = _REJECTED
        verdicts[i] = verdict


def _accepts(proposal: int, word: int, scale: Fraction, centre: Fraction, rate: Fraction, coins: Coins) -> bool:
    """Finish one coin exactly, begun with the 64 bits `word`.  [S6]"""
    size = abs(proposal)
    if size == LARGEST_DRAW:  # perhaps clipped: how far beyond it was is geometric, since that has no memory
        size += geometric(scale, coins)
    return bernoulli_exp((size - centre) ** 2 * rate, coins, word, 64)


def geometric(scale: Fraction, coins: Coins) -> int:
    """G >= 0 with P(G = g) ∝ e^(-g/scale), unbounded: a discrete Laplace variable that is not negative.  [S6]"""
    total = 0
    while True:
        draw = int(discrete_laplace(scale, 1, coins)[0])
        if draw >= 0:
            total += draw
            if draw < LARGEST_DRAW:
                return total
