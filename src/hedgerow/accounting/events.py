"""One charged application of a mechanism, as frozen data. The meaning of a field never changes.

An event on disjoint parts of the rows (the leaves of one tree, the nodes of one level) is one event and charged once: a row
is in one part. Which parts are disjoint is decided by `Tree.is_antichain` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

DISCRETE_LAPLACE = "discrete Laplace"
PERMUTE_AND_FLIP = "permute-and-flip"
EXPONENTIAL = "exponential mechanism"
LOCAL_SENSITIVITY = "exponential mechanism with local sensitivity"  # a published algorithm whose ε is not proven


@dataclass(frozen=True)
class Event:
    """What was asked of the rows and what it costs.

    verb:        the verb of the private table ("rows", "leaf_counts", …)
    mechanism:   how the answer was made private
    epsilon:     the loss of the whole event, all its queries together
    queries:     how many times one row may be counted in it (trees of a forest compose sequentially)
    sensitivity: L1 sensitivity of one query; of a private choice, the sensitivity of its score
    scale:       scale of the noise on each number: queries · sensitivity / epsilon. Of a private choice, one over the rate at
                 which a better score is preferred: sensitivity / epsilon for a monotone score, twice that for others
    """

    verb: str
    mechanism: str
    epsilon: Fraction
    queries: int
    sensitivity: Fraction
    scale: Fraction
