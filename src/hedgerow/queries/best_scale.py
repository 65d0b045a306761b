"""`BestScale`: by which of some numbers a model's margins should be multiplied, by private choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError
from hedgerow.queries.attacks import RIGHT, WRONG, Attack, sure_of_some
from hedgerow.queries.forms import MOST_CHOICES, ModelForm, model_form, read_model
from hedgerow.queries.query import Block, ChoiceQuery, Decoder, Encoder, QueryForm, Sums, frozen, short_form
from hedgerow.queries.scores import BRIER
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel

LARGEST = 4


class BestScaleForm(QueryForm, frozen=True, kw_only=True):
    model: ModelForm
    scales: list[float]
    epsilon: str


@dataclass(frozen=True, eq=False)
class BestScale(ChoiceQuery[int]):
    """By which of some fixed numbers a model's margins should be multiplied, so that its probabilities fit best. The answer is its place.

    What is summed for each scale is the rows' Brier score of softmax(scale · margins), in whole steps of 1/GRID, each row's at most 2.
    """

    model: AdditiveModel
    scales: Sequence[float]

    name = "best_scale"
    label = "V12"
    Form = BestScaleForm
    score = BRIER

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", frozen(self.scales, np.float64))

    @property
    def choices(self) -> NDArray[np.bool_]:
        return np.ones((1, len(self.scales)), dtype=bool)

    def check(self, codebook: Codebook) -> None:
        scales = np.asarray(self.scales)
        fits = type(self.model) is AdditiveModel and self.model.fits(codebook.sizes, codebook.n_classes)
        if not fits or scales.ndim != 1 or not len(scales) or not ((scales > 0) & (scales <= LARGEST)).all():
            raise PlanError(f"best_scale: expected an AdditiveModel over this schema, and scales above 0 and at most {LARGEST}.")

    @property
    def needs_margins_of(self) -> AdditiveModel:
        return self.model

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros(len(self.scales), dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        from hedgerow.queries import kernels

        sums[0] += kernels.brier_sums(self.model, np.array(self.scales), block.codes, block.classes, block.margins)

    def scores(self, sums: Sums, codebook: Codebook) -> NDArray[np.int64]:
        return -sums[0][None]

    def answer(self, arrays: Sums) -> int:
        return int(arrays[0][0])

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        numbers = [float(scale) for scale in self.scales]
        return BestScaleForm(number=0, model=model_form(self.model), scales=numbers, epsilon=short_form(price))

    @classmethod
    def decode(cls, form: BestScaleForm, decode: Decoder) -> BestScale:
        model = read_model(form.model, decode.codebook)
        decode.bound(len(form.scales), MOST_CHOICES)
        return cls(model, form.scales)

    @classmethod
    def proven(cls, sensitivity: Fraction, halved_rate: bool, n_classes: int) -> bool:
        return sensitivity == BRIER.plain_sensitivity

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        why = "one row that is surely wrong at full scale, and a guess at the other"
        return [Attack(cls.name, why, RIGHT, WRONG, lambda codebook: cls(sure_of_some(), (1.0, 1e-6)))]
