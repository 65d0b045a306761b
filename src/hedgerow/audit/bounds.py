"""From how often an event happened to a lower bound on ε that holds with a stated confidence.

If training is (ε, δ)-differentially private, every event has P[E | D] ≤ e^ε · P[E | D′] + δ for neighbouring D and D′. So
ln((P[E | D] − δ) / P[E | D′]) is at most ε, and with a lower bound on the first probability and an upper bound on the second it is
at most ε unless one of the two bounds is wrong. Clopper–Pearson bounds are wrong with at most the stated probability, at any n.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

FALSE_ALARM = 1e-6  # of all verdicts of one audit together
SHOWN = (0.95, 0.999)  # the confidences that a report shows

Counts = NDArray[Any] | int


def at_least(hits: Counts, runs: Counts, alpha: float) -> NDArray[np.float64]:
    """A probability is at least this, but for a chance of `alpha` (Clopper–Pearson, one-sided)."""
    k, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(runs, dtype=np.float64))
    found = np.zeros(k.shape)
    some = k > 0
    found[some] = betaincinv(k[some], n[some] - k[some] + 1, alpha)
    return found


def at_most(hits: Counts, runs: Counts, alpha: float) -> NDArray[np.float64]:
    """A probability is at most this, but for a chance of `alpha`."""
    k = np.asarray(hits)
    return np.asarray(1 - at_least(np.asarray(runs) - k, runs, alpha))


def epsilon_at_least(
    hits: Counts, runs: Counts, other_hits: Counts, other_runs: Counts, confidence: float, delta: float = 0.0
) -> NDArray[np.float64]:
    """A lower bound on ε from an event that is more likely on the first table; 0 where nothing is shown. α is halved for the two tables."""
    alpha = (1 - confidence) / 2
    return epsilon_at_level(hits, runs, other_hits, other_runs, alpha, delta)


def epsilon_at_level(
    hits: Counts, runs: Counts, other_hits: Counts, other_runs: Counts, alpha: float, delta: float = 0.0
) -> NDArray[np.float64]:
    """As `epsilon_at_least`, with the chance of error of each of the two bounds: 1 − 1e-12 could not be told from 1."""
    p = at_least(hits, runs, alpha) - delta
    q = at_most(other_hits, other_runs, alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(np.where(p > 0, np.log(np.maximum(p, 1e-300) / q), 0.0), 0.0)


def delta_at_least(hits: int, runs: int, other_hits: int, other_runs: int, epsilon: float, alpha: float) -> float:
    """A lower bound on the δ that (ε, δ) would need for this event: the hockey-stick divergence at ε is at least as large."""
    p, q = float(at_least(hits, runs, alpha)), float(at_most(other_hits, other_runs, alpha))
    return max(0.0, p - math.exp(epsilon) * q)


def advantage_allowed(epsilon: float, delta: float = 0.0) -> float:
    """What membership inference may gain at most: true positive rate minus false positive rate of any attack on (ε, δ)."""
    return (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
