"""`GradientSums`: the gradient of an additive model's log-likelihood, summed in the leaves of some trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from hedgerow.accounting.events import Event
from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError
from hedgerow.queries.attacks import COPIES, RIGHT, SURE, WRONG, Attack, root
from hedgerow.queries.forms import ModelForm, TreeForm, model_form, read_model, tree_form
from hedgerow.queries.query import Block, CountingQuery, Decoder, Encoder, PriceForm, QueryForm, Shapes, Sums, check_tree, price_form
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel, gradient_norms, gradient_width
from hedgerow.trees.tree import Tree


class GradientSumsForm(QueryForm, frozen=True, kw_only=True):
    trees: list[TreeForm] = msgspec.field(name="asked")
    model: ModelForm
    price: PriceForm


@dataclass(frozen=True, eq=False)
class GradientSums(CountingQuery[Sums]):
    """Sums, over the rows of every leaf of every tree, of the gradient of an additive model's log-likelihood.

    A row of class y adds trunc(GRID · (1[y = c] − softmax(F)_c)) for each class c; of two classes, for the second alone. Divide by
    `additive_model.GRID` to get the gradient. One array (leaves, classes or 1) for each tree; the trees share the price.
    """

    trees: Sequence[Tree]
    model: AdditiveModel

    name = "gradient_sums"
    label = "V10"
    Form = GradientSumsForm

    def __post_init__(self) -> None:
        object.__setattr__(self, "trees", tuple(self.trees))

    def check(self, codebook: Codebook) -> None:
        if not self.trees or type(self.model) is not AdditiveModel or not self.model.fits(codebook.sizes, codebook.n_classes):
            raise PlanError("gradient_sums: expected at least one tree, and an AdditiveModel over this schema.")
        check_tree("gradient_sums", self.trees, codebook)

    @property
    def queries(self) -> int:
        return len(self.trees)

    @classmethod
    def norms(cls, n_classes: int) -> tuple[int, int]:
        return gradient_norms(n_classes)

    def event(self, price: Price, k: int) -> Event:
        return self.cost(price, k, self.queries, self.model.n_classes)

    @property
    def needs_margins_of(self) -> AdditiveModel:
        return self.model

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros(shape, dtype=np.int64) for shape in self.shapes(codebook)]

    def add(self, block: Block, sums: Sums) -> None:
        from hedgerow.queries import kernels

        more = kernels.gradient_sums(list(self.trees), self.model, block.codes, block.classes, block.margins)
        for total, some in zip(sums, more, strict=True):
            total += some

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(len(tree.leaves), gradient_width(codebook.n_classes)) for tree in self.trees]

    def answer(self, arrays: Sums) -> Sums:
        return arrays

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        trees = [tree_form(tree) for tree in self.trees]
        return GradientSumsForm(number=0, trees=trees, model=model_form(self.model), price=price_form(price))

    @classmethod
    def decode(cls, form: GradientSumsForm, decode: Decoder) -> GradientSums:
        trees, model = decode.trees(form.trees), read_model(form.model, decode.codebook)
        decode.bound(sum(len(tree.leaves) for tree in trees) * gradient_width(decode.codebook.n_classes))
        return cls(trees, model)

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        make = lambda codebook: cls([root(codebook)] * COPIES, SURE)  # noqa: E731
        why = "one row of the class that the model excludes"
        return [Attack(cls.name, why, RIGHT, WRONG, make, runs=COPIES, prices=COPIES)]
