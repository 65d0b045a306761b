"""How anonymous a tree or a rule set is: which paths satisfy a requirement, and what it satisfies at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.anonymity.requirement import Requirement
from hedgerow.trees.paths import Paths


@dataclass(frozen=True, eq=False)
class Measured:
    """The paths of one tree against a requirement."""

    paths: Paths
    requirement: Requirement
    good: NDArray[np.bool_]

    @property
    def satisfied(self) -> bool:
        return bool(self.good.all())

    def failures(self) -> list[tuple[str, str]]:
        """(path, why) for each path that fails, the smallest group first."""
        order = sorted(np.flatnonzero(~self.good), key=lambda i: (self.paths.totals[i], i))
        return [(self.paths.words(int(i)), self.why(int(i))) for i in order]

    def why(self, path: int) -> str:
        counts = None if self.paths.counts is None else self.paths.counts[path]
        return self.requirement.why_not(float(self.paths.hit[path]), float(self.paths.miss[path]), counts)


def measure(paths: Paths, requirement: Requirement) -> Measured:
    requirement.check_classes(paths.codebook.n_classes)
    return Measured(paths, requirement, requirement.satisfied(paths.label, paths.hit, paths.miss, paths.counts))


def largest_k(paths: Paths) -> int:
    """The largest k for which all paths are k-anonymous."""
    return int(np.floor(paths.totals.min())) if len(paths) else 0


def smallest_alpha(paths: Paths) -> float:
    """The largest share that one class has in a path; 1 where a path is pure or empty."""
    totals = paths.totals
    return float(np.max(np.where(totals > 0, paths.hit / np.where(totals > 0, totals, 1), 1.0))) if len(paths) else 1.0


def smallest_c(paths: Paths, l: int) -> float:  # noqa: E741
    """The number above which every c makes all paths (c, ℓ)-diverse; infinite where none does."""
    if paths.counts is not None:
        falling = -np.sort(-paths.counts, axis=1)
        rest = falling[:, l - 1 :].sum(axis=1)
        first = falling[:, 0]
    else:
        rest, first = np.where(paths.miss + 1 >= l, paths.miss / (l - 1), 0.0), paths.hit
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(rest > 0, first / np.where(rest > 0, rest, 1), np.inf)
    return float(ratio.max()) if len(paths) else 0.0
