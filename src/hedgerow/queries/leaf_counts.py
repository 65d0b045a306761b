"""`LeafCounts`: class counts in every leaf of some trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError
from hedgerow.queries.attacks import COPIES, ONE_MORE, RIGHT, WRONG, Attack, root
from hedgerow.queries.forms import TreeForm, tree_form
from hedgerow.queries.query import Block, CountingQuery, Decoder, Encoder, PriceForm, QueryForm, Shapes, Sums, check_tree, price_form
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.tree import Tree


class LeafCountsForm(QueryForm, frozen=True, kw_only=True):
    trees: list[TreeForm]
    price: PriceForm


@dataclass(frozen=True, eq=False)
class LeafCounts(CountingQuery[Sums]):
    """Class counts in every leaf of every tree: one array (leaves, classes) for each. The trees share the price."""

    trees: Sequence[Tree]

    name = "leaf_counts"
    label = "V2"
    Form = LeafCountsForm

    def __post_init__(self) -> None:
        object.__setattr__(self, "trees", tuple(self.trees))

    def check(self, codebook: Codebook) -> None:
        if not self.trees:
            raise PlanError("leaf_counts: got no trees; expected at least one.")
        check_tree("leaf_counts", self.trees, codebook)

    @property
    def queries(self) -> int:
        """The leaves of one tree are disjoint; a row is in one leaf of each tree."""
        return len(self.trees)

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros(shape, dtype=np.int64) for shape in self.shapes(codebook)]

    @cached_property
    def _places(self) -> list[Any]:
        from hedgerow.queries import kernels

        return [kernels.leaf_places(tree) for tree in self.trees]

    def add(self, block: Block, sums: Sums) -> None:
        from hedgerow.queries import kernels

        kernels.add_leaf_counts(list(self.trees), block.codes, block.classes, sums, self._places)

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(len(tree.leaves), codebook.n_classes) for tree in self.trees]

    def answer(self, arrays: Sums) -> Sums:
        return arrays

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        return LeafCountsForm(number=0, trees=[tree_form(tree) for tree in self.trees], price=price_form(price))

    @classmethod
    def decode(cls, form: LeafCountsForm, decode: Decoder) -> LeafCounts:
        trees = decode.trees(form.trees)
        decode.bound(sum(len(tree.leaves) for tree in trees) * decode.codebook.n_classes)
        return cls(trees)

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        make = lambda codebook: cls([root(codebook)] * COPIES)  # noqa: E731
        return [Attack(cls.name, ONE_MORE, RIGHT, WRONG, make, runs=COPIES, prices=COPIES)]
