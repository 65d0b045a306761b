"""The strongest attack there is, where the law of the output is known: the likelihood ratio of the two tables.

A forest whose trees were drawn before any row was seen is its exact leaf counts plus independent discrete Laplace noise. Whoever knows
both tables knows both laws: the log ratio of a count o is (|o − c| − |o − c′|)/scale, and the ratios of all counts add up. By the
Neyman–Pearson lemma no event tells more than a threshold on that sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.audit.neighbours import Pair, Table
from hedgerow.audit.outputs import Feature, Features, release_features
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.persons import KEY_BYTES
from hedgerow.errors import AuditError
from hedgerow.queries import LeafCounts
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import LEAVES


@dataclass(eq=False)
class KnownRatio:
    """The features of a release, and "log likelihood ratio": of D′ against D, for this pair of tables."""

    pair: Pair
    _known: dict[bytes, tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]] = field(default_factory=dict, repr=False)

    def __call__(self, release: Release) -> Features:
        found: dict[str, Feature] = dict(release_features(release))
        return found | {"log likelihood ratio": self.ratio(release)}

    def ratio(self, release: Release) -> float:
        forest = release.forest
        if forest.measured != LEAVES or len(forest.noise) != 1 or not isinstance(forest.noise[0], Fraction) or release.released:
            raise AuditError(
                f"likelihood ratio: got a release of {release.algorithm!r}; expected one of random trees over one table, planned without n̂ "
                "(a declared number of rows, or a depth): its output distribution is known."
            )
        before, after = self._exact(release)
        total = sum(int((np.abs(o - c) - np.abs(o - more)).sum()) for o, c, more in zip(forest.counts, before, after, strict=True))
        return float(total / forest.noise[0])

    def _exact(self, release: Release) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        """Exact leaf counts on both tables; the structure is public, so mostly it is that of the last release."""
        forest = release.forest
        key = b"".join(tree.attribute.tobytes() + tree.branch.tobytes() for tree in forest.trees)
        if key not in self._known:
            tables = (self.pair.without, self.pair.with_row)
            counted = [_rows_of(table, forest.codebook).sums(LeafCounts(forest.trees)) for table in tables]
            self._known[key] = (counted[0], counted[1])
        return self._known[key]


def _rows_of(table: Table, codebook: Codebook) -> MemoryRows:
    """Nobody in these tables has more rows than are counted, so that any key keeps all of them."""
    persons = None if codebook.schema.person is None else table.columns[codebook.schema.person]
    return MemoryRows(table.columns, table.target, codebook, persons=persons, key=bytes(KEY_BYTES))
