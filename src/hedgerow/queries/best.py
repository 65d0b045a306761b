"""`Best`: which of some predictors gets the most rows right, by private choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError
from hedgerow.queries.attacks import RIGHT, WRONG, Attack, by_a, first_class
from hedgerow.queries.confusion import add_confusions, make_ready
from hedgerow.queries.forms import MOST_CHOICES, PredictorForm
from hedgerow.queries.predictors import Predictor
from hedgerow.queries.query import Block, ChoiceQuery, Decoder, Encoder, QueryForm, Sums, short_form
from hedgerow.queries.scores import MAX
from hedgerow.schema.codebook import Codebook


class BestForm(QueryForm, frozen=True, kw_only=True):
    predictors: list[PredictorForm]
    epsilon: str


@dataclass(frozen=True, eq=False)
class Best(ChoiceQuery[int]):
    """Which of some fixed predictors, such as `Confusion` takes, gets the most rows right. The answer is its place."""

    predictors: Sequence[Predictor]

    name = "best"
    label = "V9"
    Form = BestForm
    score = MAX
    calls_predictors = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "predictors", tuple(self.predictors))

    @property
    def choices(self) -> NDArray[np.bool_]:
        return np.ones((1, len(self.predictors)), dtype=bool)

    def check(self, codebook: Codebook) -> None:
        if not self.predictors:
            raise PlanError("best: got no predictors; expected at least one.")

    def prepare(self, codebook: Codebook) -> None:
        make_ready(self.predictors, codebook)

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros((codebook.n_classes + 1, codebook.n_classes), dtype=np.int64) for _ in self.predictors]

    def add(self, block: Block, sums: Sums) -> None:
        add_confusions(self.predictors, block, sums)

    def scores(self, sums: Sums, codebook: Codebook) -> NDArray[np.int64]:
        return np.array([[np.trace(table) for table in sums]], dtype=np.int64)

    def answer(self, arrays: Sums) -> int:
        return int(arrays[0][0])

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        forms = [encode.predictor(each) for each in self.predictors]
        return BestForm(number=0, predictors=forms, epsilon=short_form(price))

    @classmethod
    def decode(cls, form: BestForm, decode: Decoder) -> Best:
        decode.bound(len(form.predictors), MOST_CHOICES)
        decode.bound(len(form.predictors) * (decode.codebook.n_classes + 1) * decode.codebook.n_classes)
        return cls([decode.predictor(each) for each in form.predictors])

    @classmethod
    def proven(cls, sensitivity: Fraction, halved_rate: bool, n_classes: int) -> bool:
        return sensitivity == MAX.plain_sensitivity

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        why = "one row that only one of two predictors gets right"
        return [Attack(cls.name, why, RIGHT, WRONG, lambda codebook: cls([first_class, by_a]))]
