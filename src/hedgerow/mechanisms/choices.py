"""The two private choices, exact and vectorised over rows: exponential mechanism and permute-and-flip.

A float may decide only where a proven error bound says that exact arithmetic would decide the same; everything else goes to
a `pending` list and is finished with certified arithmetic from the bits already drawn. Labels [S4] and [S5] refer to
the theorems in PROOF.md. Running time depends on the scores: no claim is made about timing.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.mechanisms.coins import Coins
from hedgerow.mechanisms.exactmath import bernoulli_exp, uniform_index
from hedgerow.mechanisms.samplers import BUFFER_BYTES, PENDING_ROWS, Integers, compiled

Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

# [S4] When may a float decide "U < e^(-x)", x = rate·gap, from the first 64 bits w of U, w <= 2^64 U < w + 1?
# Let t = fl(2^64 exp(-fl(fl(rate)·gap))). With gap < 2^53 exact and 2^-1000 <= rate <= 2^1000, the computed
# argument is x(1 + e), |e| < 2^-51.9. For x up to 64 that moves e^(-x) by a factor within 1 ± 2^-45.8.
# ASSUMED of the C library: exp has relative error below 2^-42 on [-64, 0] (those in use: about 2^-52), and
# returns something in [0, 2^-65] for smaller arguments. Rounding w, 1 ± guard and the products adds less than
# 2^-49. In all the relative error is below 2^-41, so that with guard = 2^-40
#     w < t(1 - guard) - 2  implies  w + 1 <= 2^64 e^(-x), that is U < e^(-x);
#     w > t(1 + guard) + 2  implies  w     >= 2^64 e^(-x), that is U >= e^(-x).
# For x > 64 both t and 2^64 e^(-x) are below 1: the first never holds, the second is right for any w > 2.
# All else (also a gap of 2^53 or more, or an extreme rate) is decided by certified arithmetic on the same w.
GUARD = 2.0**-40


def exponential_mechanism(scores: Integers, allowed: Flags, rate: Fraction, coins: Coins) -> Integers:
    """For each row choose an allowed column c with probability exactly ∝ exp(rate · score_c).  [S4]

    `allowed` must be public: it may not depend on private rows, and errors may speak of it.

    Rejection: pick an allowed column uniformly, accept it with probability exp(-rate · (max - score)), else
    pick again. The cost is ε = 2 · rate · Δ, or rate · Δ for a monotone score, Δ the score's sensitivity.
    """
    return _choose(scores, allowed, rate, coins, set_aside=False)


def permute_and_flip(scores: Integers, allowed: Flags, rate: Fraction, coins: Coins) -> Integers:
    """For each row choose an allowed column by permute-and-flip (McKenna & Sheldon, NeurIPS 2020).  [S5]

    As the exponential mechanism, but a rejected column is set aside and not picked again; same cost in pure
    ε, never a worse expected score. (In zCDP it does NOT cost the same: its range is not bounded by ε.)
    """
    return _choose(scores, allowed, rate, coins, set_aside=True)


def _choose(
    scores: Integers,
    allowed: Flags,
    rate: Fraction,
    coins: Coins,
    set_aside: bool,
    guard: float = GUARD,
    buffer_words: int = BUFFER_BYTES // 8,
) -> Integers:
    """Both mechanisms; tests open `guard` (infinite: every comparison is exact) and shrink the buffer."""
    if scores.dtype != np.int64 or allowed.dtype != np.bool_:
        raise TypeError(f"private choice: need int64 scores and bool allowed, got {scores.dtype}, {allowed.dtype}")
    if scores.ndim != 2 or scores.shape != allowed.shape:
        raise ValueError(f"private choice: need two matrices of one shape, got {scores.shape}, {allowed.shape}")
    if rate < 0:
        raise ValueError(f"private choice: rate must not be negative, got {rate}")
    if not allowed.any(axis=1).all():
        raise ValueError("private choice: every row needs at least one allowed column; drop rows with no candidate")
    if rate and not Fraction(1, 2**1000) <= rate <= 2**1000:
        # A float of this rate would not have the precision that GUARD assumes: decide everything exactly.
        rate_float, guard = 0.0, math.inf
    else:
        rate_float = float(rate)
    n_rows, columns = scores.shape
    chosen = np.empty(n_rows, dtype=np.int64)
    capacity = max(1, min(PENDING_ROWS, 2**20 // max(1, columns)))
    # An entry: row, position picked, its coin, how many candidates are left, and which.
    pending = np.empty((capacity, 4 + columns), dtype=np.int64)
    scores, allowed = np.ascontiguousarray(scores), np.ascontiguousarray(allowed)
    done = 0
    while done < n_rows:
        n_words = max(2, min(buffer_words, (n_rows - done) * 4 * columns))
        words = np.frombuffer(coins.bytes(8 * n_words), dtype=np.uint64)
        done, n_pending = _choice_kernel(scores, allowed, rate_float, guard, set_aside, words, chosen, done, pending)
        for row, position, coin, n_left, *candidates in pending[:n_pending].tolist():
            values = scores[row].tolist()
            best = max(values[c] for c in np.flatnonzero(allowed[row]))
            gaps = {c: best - values[c] for c in candidates[:n_left]}  # Python integers: no overflow
            chosen[row] = _finish_choice(gaps, position, coin % 2**64, rate, set_aside, coins)
    return chosen


def _finish_choice(gaps: dict[int, int], position: int, word: int, rate: Fraction, set_aside: bool, coins: Coins) -> int:
    """Go on with a row exactly where the kernel left it.  [S4] [S5]

    gaps : for each candidate still in play, in the kernel's order, how far it is below the best.
    position : which candidate is picked, its coin begun with the 64 bits `word`; -1 if none is.
    """
    bits = 64
    while True:
        if position < 0:
            position, word, bits = uniform_index(len(gaps), coins), 0, 0
        column = list(gaps)[position]
        if bernoulli_exp(rate * gaps[column], coins, word, bits):
            return column
        if set_aside:
            del gaps[column]
        position = -1


@compiled
def _choice_kernel(
    scores: Integers,
    allowed: Flags,
    rate: float,
    guard: float,
    set_aside: bool,
    words: Words,
    chosen: Integers,
    done: int,
    pending: Integers,
) -> tuple[int, int]:
    """Choose in rows from `done` on; (rows finished or pending, how many of them are pending).

    A row for which the words run out is pending too, with its candidates as they stand: starting it afresh
    would favour the columns that are accepted early.
    """
    n_rows, columns = scores.shape
    candidates = np.empty(columns, dtype=np.int64)
    largest_word = np.uint64(0xFFFFFFFFFFFFFFFF)
    used = 0
    n_pending = 0
    while done < n_rows and used + 2 <= words.size and n_pending < pending.shape[0]:
        n_left = 0
        best = np.int64(-(2**63))
        for column in range(columns):
            if allowed[done, column]:
                candidates[n_left] = column
                n_left += 1
                best = max(best, scores[done, column])
        while True:
            picked = np.int64(-1)
            coin = np.uint64(0)
            if used + 2 <= words.size:
                pick = words[used]
                used += 1
                left = np.uint64(n_left)
                if pick > largest_word - (largest_word % left + np.uint64(1)) % left:
                    continue  # above the largest multiple of n_left: the remainder would not be uniform
                picked = np.int64(pick % left)
                column = candidates[picked]
                # best >= score, so this is the true gap even where int64 would overflow.
                gap = np.uint64(best) - np.uint64(scores[done, column])
                if gap == np.uint64(0):
                    chosen[done] = column
                    break
                coin = words[used]
                used += 1
                if gap < np.uint64(2**53):
                    threshold = math.exp(-rate * np.float64(gap)) * 2.0**64  # [S4] the only float decision
                    if np.float64(coin) < threshold * (1.0 - guard) - 2.0:
                        chosen[done] = column
                        break
                    if np.float64(coin) > threshold * (1.0 + guard) + 2.0:
                        if set_aside:
                            n_left -= 1
                            candidates[picked] = candidates[n_left]
                        continue
            pending[n_pending, :4] = (done, picked, np.int64(coin), n_left)  # int64: the same 64 bits
            pending[n_pending, 4 : 4 + n_left] = candidates[:n_left]
            n_pending += 1
            break
        done += 1
    return done, n_pending
