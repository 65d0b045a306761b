"""Has so much noise added up over batches and owners that counting all rows again would be better?

Jagannathan et al. 2012, 5.2: after some updates, build anew. Computed from released counts and public scales: it costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.accounting.noise import variance_of
from hedgerow.formatting import number
from hedgerow.trees.forest import CountedForest


@dataclass(frozen=True)
class Accumulated:
    """The noise on a count against the counts.

    tables:  how many were counted
    typical: root mean square of the counts in the leaves, the noise taken off
    noise:   standard deviation of the noise on one count, of all tables together
    fresh:   the same if all rows were counted at once, with the ε of the least noisy table
    """

    tables: int
    typical: float
    noise: float
    fresh: float

    @property
    def drowned(self) -> bool:
        return self.tables > 1 and self.noise > self.typical

    @property
    def rebuild(self) -> bool:
        return self.drowned and self.fresh <= self.typical

    def sentence(self) -> str:
        """What to do, for people."""
        so_far = (
            f"a typical count in a leaf is {number(self.typical, 3)}, the noise of {self.tables} tables on it ± {number(self.noise, 3)}"
        )
        once = f"counted at once, all rows would have ± {number(self.fresh, 3)}"
        if self.rebuild:
            return (
                f"REBUILD: {so_far}; {once}. A new forest from all rows would be better, if they can be brought together; it costs its own "
                "ε again."
            )
        if self.drowned:
            return f"too much noise: {so_far}; {once}. Lower trees, fewer trees or a larger ε would help more than rebuilding."
        return f"the counts stand above their noise: {so_far}; {once}, and would tell more, where they may be brought together"


def accumulated(forest: CountedForest) -> Accumulated | None:
    """For the noisiest ensemble of a forest; None where one table was counted at once, or nothing is noisy."""
    worst: Accumulated | None = None
    start = 0
    for ensemble in forest.ensembles:
        counts = forest.counts[start : start + ensemble.trees]
        start += ensemble.trees
        if len(ensemble.noise) < 2:
            continue
        variances = [variance_of(noise) for noise in ensemble.noise]
        power = sum(float(np.square(each, dtype=np.float64).sum()) for each in counts) / sum(each.size for each in counts)
        typical = math.sqrt(max(power - sum(variances), 0.0))
        found = Accumulated(len(variances), typical, math.sqrt(sum(variances)), math.sqrt(min(variances)))
        if worst is None or found.noise * worst.typical > worst.noise * found.typical:
            worst = found
    return worst
