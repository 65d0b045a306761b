"""`Confusion`: how often each class is taken for each class by a predictor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price
from hedgerow.errors import TableError
from hedgerow.parallel import ROWS_AT_ONCE, row_blocks
from hedgerow.queries.attacks import RIGHT, WRONG, Attack, first_class
from hedgerow.queries.forms import PredictorForm
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.queries.query import Block, CountingQuery, Counts, Decoder, Encoder, PriceForm, QueryForm, Shapes, Sums, price_form
from hedgerow.schema.codebook import Codebook


class ConfusionForm(QueryForm, frozen=True, kw_only=True):
    predictor: PredictorForm
    price: PriceForm


@dataclass(frozen=True, eq=False)
class Confusion(CountingQuery[Counts]):
    """Counts of (true class, predicted class); the last row is for rows that have no declared class: (classes + 1, classes).

    predict: `predict_codes` of a release, or a `MostProbable`. Of any other function you vouch that it is fixed, that its answer for a
    row follows from that row's codes alone, to the last bit, whatever stands beside it, and that it never raises.
    """

    predict: Predictor

    name = "confusion"
    label = "V3"
    Form = ConfusionForm
    calls_predictors = True

    def check(self, codebook: Codebook) -> None:
        return

    def prepare(self, codebook: Codebook) -> None:
        make_ready([self.predict], codebook)

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros((codebook.n_classes + 1, codebook.n_classes), dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        add_confusions([self.predict], block, sums)

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(codebook.n_classes + 1, codebook.n_classes)]

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        return ConfusionForm(number=0, predictor=encode.predictor(self.predict), price=price_form(price))

    @classmethod
    def decode(cls, form: ConfusionForm, decode: Decoder) -> Confusion:
        decode.bound((decode.codebook.n_classes + 1) * decode.codebook.n_classes)
        return cls(decode.predictor(form.predictor))

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        return [Attack(cls.name, "one row more, wrongly predicted", RIGHT, WRONG, lambda codebook: cls(first_class))]


def make_ready(predictors: Sequence[Predictor | Probabilities], codebook: Codebook) -> None:
    """What a predictor makes once is made now, and not by several threads."""
    nothing: NDArray[np.generic] = np.zeros((1, len(codebook.sizes)), dtype=codebook.dtype)
    for predict in predictors:
        predict(nothing)


def add_confusions(predictors: Sequence[Predictor], block: Block, sums: Sums) -> None:
    """One table for each predictor."""
    for rows in row_blocks(len(block.codes), ROWS_AT_ONCE):
        classes = block.classes[rows]
        for predict, table in zip(predictors, sums, strict=True):
            predicted = predict(block.codes[rows])
            if predicted.shape != classes.shape:  # a broadcast would count a row many times
                raise TableError("a prediction is one class for each row.")
            np.add.at(table, (classes, predicted), 1)
