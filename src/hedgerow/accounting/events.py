"""One charged application of a mechanism, as frozen data. The meaning of a field never changes.

An event on disjoint parts of the rows (the leaves of one tree, the nodes of one level) is one event and charged once: a row
is in one part. Which parts are disjoint is decided by `Tree.is_antichain` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

DISCRETE_LAPLACE = "discrete Laplace"
DISCRETE_GAUSSIAN = "discrete Gaussian"
PERMUTE_AND_FLIP = "permute-and-flip"
EXPONENTIAL = "exponential mechanism"
LOCAL_SENSITIVITY = "exponential mechanism with local sensitivity"  # a published algorithm whose ε is not proven


# The sensitivities of the scores that a private choice may have (`queries/scores.py`), for whoever reads a certificate.
MONOTONE = (Fraction(2), Fraction(1))  # count-scaled Gini, max
NOT_MONOTONE = Fraction(1, 2) + Fraction(1, 2**20)  # Gini index: its rate is half of what a monotone score would have
LEAST_GAIN, MOST_GAIN = Fraction(2), Fraction(36)  # information gain, log2(N + 1) + 1/ln 2


@dataclass(frozen=True)
class Event:
    """A query that was charged, and what it costs.

    query:       the name of the private query ("rows", "leaf_counts", …)
    mechanism:   how the answer was made private
    epsilon:     the loss of the whole event, all its queries together; 0 for Gaussian noise, whose loss is `rho`
    queries:     how many times one row may be counted in it (trees of a forest compose sequentially)
    sensitivity: L1 sensitivity of one query; for Gaussian noise its squared L2 sensitivity; of a private choice, the sensitivity
                 of its score
    scale:       scale of the noise on each number: queries · sensitivity / epsilon. For Gaussian noise σ²:
                 queries · sensitivity / (2 · rho). Of a private choice, one over the rate at
                 which a better score is preferred: sensitivity / epsilon for a monotone score, twice that for others
    rho:         the loss in zero-concentrated privacy of Gaussian noise, all queries together; 0 for every other mechanism
    """

    query: str
    mechanism: str
    epsilon: Fraction
    queries: int
    sensitivity: Fraction
    scale: Fraction
    rho: Fraction = Fraction(0)
