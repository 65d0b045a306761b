"""Exact discrete Laplace noise, vectorised.

Each outcome has exactly the stated probability. A compiled kernel compares the first bits of a uniform real with a
threshold, which settles nearly every case; what it cannot settle goes to a `pending` list, and Python finishes that case
with certified arithmetic, from the bits already drawn. Label [S1] refers to the theorem in PROOF.md.

Running time depends on the values drawn: no claim is made about timing.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.mechanisms.coins import Coins
from hedgerow.mechanisms.exactmath import (
    bernoulli_exp,
    exp_minus_bounds,
    leading_bits,
    logistic_bounds,
    uniform_is_below,
)

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

LARGEST_SCALE = 2**50  # what the kernel adds up then stays below 2^60, inside int64
LARGEST_DRAW = 2**63 - 1
BUFFER_BYTES = 2**20
PENDING_ROWS = 4096

_Function = TypeVar("_Function", bound=Callable[..., object])
compiled = cast(Callable[[_Function], _Function], numba.njit(nogil=True, cache=True))


def discrete_laplace(scale: Fraction, size: int, coins: Coins) -> Integers:
    """`size` independent integers X with P(X = x) = (1 - r)/(1 + r) · r^|x|, r = e^(-1/scale), exactly.  [S1]

    X = G1 - G2 for two geometric variables G, P(G = g) = (1 - r) r^g. The binary digits of G are
    independent: digit i is 1 with probability q_i = 1/(1 + e^(gamma 2^i)), where gamma = 1/scale; and the
    excess ⌊G / 2^k⌋ over the first k digits is independent of them, geometric with ratio e^(-gamma 2^k).

    scale : positive rational, at most 2^50.
    Draws beyond ±(2^63 - 1) are clipped there, which is post-processing (probability below e^(-8000)).
    """
    if not 0 < scale <= LARGEST_SCALE:
        raise ValueError(
            f"discrete_laplace: scale must be positive and at most 2**50, got {scale}; "
            "a larger scale means a privacy loss per count too small to be useful: raise epsilon"
        )
    if size < 0:
        raise ValueError(f"discrete_laplace: size must not be negative, got {size}")
    return _discrete_laplace(Fraction(scale), size, coins)


_UNDECIDED, _MORE_EXCESS = 0, 1  # why a draw is pending


def _discrete_laplace(
    scale: Fraction,
    size: int,
    coins: Coins,
    depth: int = 8,
    excess_from: Fraction = Fraction(4),
    runs: int = 8,
) -> Integers:
    """The sampler with its tuning open to tests; none of the three changes the distribution.

    depth : bytes of each threshold known to the kernel.
    excess_from : k is the smallest k >= 0 with gamma 2^k >= excess_from.
    runs : how large an excess the kernel counts by itself.
    """
    thresholds = _thresholds(scale, depth, excess_from)
    k = thresholds.shape[1] - 1
    most_bytes = 2 * depth * (k + runs + 1)  # that one draw can use
    draws = np.empty(size, dtype=np.int64)
    pending = np.empty((PENDING_ROWS, 4), dtype=np.int64)
    done = 0
    while done < size:
        likely_bytes = (size - done) * (2 * k + 3) * 9 // 8
        buffer = np.frombuffer(coins.bytes(min(BUFFER_BYTES, likely_bytes) + most_bytes), dtype=np.uint8)
        done, n_pending = _laplace_kernel(thresholds, buffer, draws, done, pending, most_bytes, runs)
        _settle(draws, pending[:n_pending].tolist(), thresholds, 1 / scale, coins)
    return draws


@lru_cache(maxsize=256)
def _thresholds(scale: Fraction, depth: int, excess_from: Fraction) -> Bytes:
    """Column i < k: the first `depth` bytes of q_i; column k: those of e^(-gamma 2^k).  [S1]"""
    columns = []
    x = 1 / scale
    while x < excess_from:
        columns.append(leading_bits(logistic_bounds, x, 8 * depth))
        x *= 2
    columns.append(leading_bits(exp_minus_bounds, x, 8 * depth))
    table = np.array([list(column.to_bytes(depth, "big")) for column in columns], dtype=np.uint8).T.copy()
    table.flags.writeable = False  # it is shared by all callers
    return table


@compiled
def _laplace_kernel(
    thresholds: Bytes,
    buffer: Bytes,
    draws: Integers,
    done: int,
    pending: Integers,
    most_bytes: int,
    runs: int,
) -> tuple[int, int]:
    """Fill draws[done:] while bytes and room in `pending` surely suffice; (draws finished, entries pending).

    Whether to go on is decided between draws, from the number of bytes read and never from their values, so
    that dropping the unread rest of the buffer selects nothing.  [S1]
    """
    depth, columns = thresholds.shape
    k = columns - 1
    used = 0
    n_pending = 0
    last_start = buffer.size - most_bytes
    last_entry = pending.shape[0] - 2 * columns  # one entry for each digit and excess at most
    while done < draws.size and used <= last_start and n_pending <= last_entry:
        value = 0
        for sign in (1, -1):
            geometric = 0
            for i in range(k):
                byte = buffer[used]
                used += 1
                geometric += int(byte < thresholds[0, i]) << i
                if byte == thresholds[0, i]:  # a tie, one time in 256: the digit counts as 0 so far
                    place = 1
                    while place < depth and buffer[used] == thresholds[place, i]:
                        used += 1
                        place += 1
                    if place == depth:
                        pending[n_pending] = (done, sign, i, _UNDECIDED)
                        n_pending += 1
                    else:
                        geometric += int(buffer[used] < thresholds[place, i]) << i
                        used += 1
            excess = 0
            while True:  # count successes of probability e^(-gamma 2^k) before the first failure
                if excess == runs:
                    pending[n_pending] = (done, sign, k, _MORE_EXCESS)
                    n_pending += 1
                    break
                place = 0
                while place < depth and buffer[used] == thresholds[place, k]:
                    used += 1
                    place += 1
                if place == depth:
                    pending[n_pending] = (done, sign, k, _UNDECIDED)
                    n_pending += 1
                    break
                used += 1
                if buffer[used - 1] > thresholds[place, k]:
                    break
                excess += 1
            value += sign * (geometric + (excess << k))
        draws[done] = value
        done += 1
    return done, n_pending


def _settle(draws: Integers, pending: list[list[int]], thresholds: Bytes, rate: Fraction, coins: Coins) -> None:
    """Finish pending comparisons exactly. Digits and excess enter linearly: add what is missing.  [S1]"""
    depth, columns = thresholds.shape
    k = columns - 1
    finished: dict[int, int] = {}
    for draw, sign, i, why in pending:
        x = rate * 2**i
        # Undecided means that the bytes drawn so far are equal to the threshold's.
        tied = int.from_bytes(thresholds[:, i].tobytes(), "big")
        bounds = logistic_bounds if i < k else exp_minus_bounds
        missing = 0
        if why == _MORE_EXCESS or uniform_is_below(bounds, x, coins, tied, 8 * depth):
            missing = 0 if why == _MORE_EXCESS else 1
            while i == k and bernoulli_exp(x, coins):  # a geometric variable has no memory
                missing += 1
        finished[draw] = finished.get(draw, int(draws[draw])) + sign * missing * 2**i
    for draw, value in finished.items():
        draws[draw] = max(-LARGEST_DRAW, min(LARGEST_DRAW, value))
