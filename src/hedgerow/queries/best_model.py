"""`BestModel`: which of some models has the best probabilities, by private choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError, TableError
from hedgerow.parallel import ROWS_AT_ONCE, row_blocks
from hedgerow.queries.attacks import RIGHT, WRONG, Attack, certainly_a, certainly_first
from hedgerow.queries.confusion import make_ready
from hedgerow.queries.forms import MOST_CHOICES, PredictorForm
from hedgerow.queries.predictors import Probabilities
from hedgerow.queries.query import Block, ChoiceQuery, Decoder, Encoder, QueryForm, Sums, short_form
from hedgerow.queries.scores import BRIER
from hedgerow.schema.codebook import Codebook


class BestModelForm(QueryForm, frozen=True, kw_only=True):
    models: list[PredictorForm]
    epsilon: str


@dataclass(frozen=True, eq=False)
class BestModel(ChoiceQuery[int]):
    """Which of some fixed models has the best probabilities. The answer is its place.

    models: `predict_codes_proba` of releases, or `probabilities` of additive models. Of any other function you vouch as in `Confusion`.

    What is summed for each is the rows' Brier score, in whole steps of 1/GRID, each row's at most 2: a proper score, which the true
    probabilities make the best on average, whereas the number of right rows is as good for a model that ranks them badly.
    """

    models: Sequence[Probabilities]

    name = "best_model"
    label = "V17"
    Form = BestModelForm
    score = BRIER
    calls_predictors = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(self.models))

    @property
    def choices(self) -> NDArray[np.bool_]:
        return np.ones((1, len(self.models)), dtype=bool)

    def check(self, codebook: Codebook) -> None:
        if not self.models:
            raise PlanError("best_model: got no models; expected at least one.")

    def prepare(self, codebook: Codebook) -> None:
        make_ready(self.models, codebook)

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros(len(self.models), dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        from hedgerow.queries import kernels

        for rows in row_blocks(len(block.codes), ROWS_AT_ONCE):
            for place, probabilities in enumerate(self.models):
                shares = np.ascontiguousarray(probabilities(block.codes[rows]), dtype=np.float64)
                if shares.shape != (len(block.classes[rows]), block.n_classes):  # a broadcast would count a row many times
                    raise TableError("probabilities are one number for each row and class.")
                sums[0][place] += kernels.brier_sum(shares, block.classes[rows])

    def scores(self, sums: Sums, codebook: Codebook) -> NDArray[np.int64]:
        return -sums[0][None]

    def answer(self, arrays: Sums) -> int:
        return int(arrays[0][0])

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        forms = [encode.predictor(each, probable=True) for each in self.models]
        return BestModelForm(number=0, models=forms, epsilon=short_form(price))

    @classmethod
    def decode(cls, form: BestModelForm, decode: Decoder) -> BestModel:
        decode.bound(len(form.models), MOST_CHOICES)
        return cls([decode.probabilities(each) for each in form.models])

    @classmethod
    def proven(cls, sensitivity: Fraction, halved_rate: bool, n_classes: int) -> bool:
        return sensitivity == BRIER.plain_sensitivity

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        why = "one row that one of two models is sure of wrongly, and the other rightly"
        return [Attack(cls.name, why, RIGHT, WRONG, lambda codebook: cls([certainly_first, certainly_a]))]
