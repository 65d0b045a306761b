"""`ChooseTree`: which of some trees tells apart best what a model still gets wrong, by private choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price
from hedgerow.queries.attacks import RIGHT, WRONG, Attack, contrary, halves_of
from hedgerow.queries.boosting import GradientQuery, bound, mechanism, scores_of_trees, tree_score
from hedgerow.queries.forms import ModelForm, ObliviousForm, model_form, oblivious_form, read_model, read_oblivious
from hedgerow.queries.query import ChoiceQuery, Decoder, Encoder, QueryForm, Sums, short_form
from hedgerow.queries.scores import Score
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import GRID


class ChooseTreeForm(QueryForm, frozen=True, kw_only=True):
    trees: list[ObliviousForm]
    model: ModelForm
    concentrated: bool
    epsilon: str


@dataclass(frozen=True, eq=False)
class ChooseTree(GradientQuery, ChoiceQuery[int]):
    """The place of one of the trees, by private choice: the more the model's gradients differ between its leaves, the likelier."""

    name = "choose_tree"
    label = "V13"
    Form = ChooseTreeForm

    @property
    def score(self) -> Score:  # type: ignore[override]
        return tree_score(self.model.n_classes, self.concentrated)

    @property
    def mechanism(self) -> str:  # type: ignore[override]
        return mechanism(self.concentrated)

    @property
    def choices(self) -> NDArray[np.bool_]:
        return np.ones((1, len(self.trees)), dtype=bool)

    def scores(self, sums: Sums, codebook: Codebook) -> NDArray[np.int64]:
        return scores_of_trees(sums[0], self.concentrated)

    def answer(self, arrays: Sums) -> int:
        return int(arrays[0][0])

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        trees = list(map(oblivious_form, self.trees))
        return ChooseTreeForm(
            number=0, trees=trees, model=model_form(self.model), concentrated=self.concentrated, epsilon=short_form(price)
        )

    @classmethod
    def decode(cls, form: Any, decode: Decoder) -> ChooseTree:
        query = cls(read_oblivious(form.trees, decode), read_model(form.model, decode.codebook), form.concentrated)
        decode.bound_counted(query.zeros_size)
        return query

    @classmethod
    def proven(cls, sensitivity: Fraction, halved_rate: bool, n_classes: int) -> bool:
        return halved_rate and sensitivity in [Fraction(bound(n_classes, concentrated), GRID) for concentrated in (False, True)]

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        def case(name: str, concentrated: bool) -> Attack:
            why = "one row that pulls against all others where a tree leaves them together"
            return Attack(name, why, RIGHT, WRONG, lambda codebook: cls(halves_of(codebook), contrary(), concentrated))

        return [case(cls.name, False), case(f"{cls.name}, exponential mechanism", True)]
