"""`LeafSizes`: how many rows of declared classes each leaf of some trees holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.queries.attacks import COPIES, ONE_MORE, RIGHT, WRONG, Attack, root
from hedgerow.queries.leaf_counts import LeafCounts
from hedgerow.queries.query import Decoder, Shapes, Sums
from hedgerow.schema.codebook import Codebook


@dataclass(frozen=True, eq=False)
class LeafSizes(LeafCounts):
    """The number of rows of a declared class in every leaf of every tree: one array (leaves,) for each. The trees share the price."""

    name = "leaf_sizes"
    label = "V16"

    def exact(self, sums: Sums, codebook: Codebook) -> Sums:
        return [counts.sum(axis=1) for counts in sums]

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(len(tree.leaves),) for tree in self.trees]

    def zeros(self, codebook: Codebook) -> Sums:
        return LeafCounts(self.trees).zeros(codebook)

    @classmethod
    def decode(cls, form: object, decode: Decoder) -> LeafSizes:
        return cls(LeafCounts.decode(form, decode).trees)  # type: ignore[arg-type]

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        make = lambda codebook: cls([root(codebook)] * COPIES)  # noqa: E731
        return [Attack(cls.name, ONE_MORE, RIGHT, WRONG, make, runs=COPIES, prices=COPIES)]
