"""`Reliability`: how often a predictor is right, by how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError, TableError
from hedgerow.parallel import ROWS_AT_ONCE, row_blocks
from hedgerow.queries.attacks import RIGHT, WRONG, Attack, certainly_first
from hedgerow.queries.confusion import ConfusionForm
from hedgerow.queries.predictors import Probabilities
from hedgerow.queries.query import Block, CountingQuery, Counts, Decoder, Encoder, QueryForm, Shapes, Sums, price_form
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import whole

MOST_BINS = 1000


class ReliabilityForm(ConfusionForm, frozen=True, kw_only=True):
    """edges: how bins lie, so that a service that places them otherwise refuses before anything is charged"""

    bins: int
    edges: Literal["narrow near 1"]


@dataclass(frozen=True, eq=False)
class Reliability(CountingQuery[Counts]):
    """Counts of (bin of the largest class probability; wrong, right): (bins, 2), bins from 1/classes to 1, narrow near 1.

    probabilities: `predict_codes_proba` of a release. Of any other function you vouch as in `Confusion`. Rows of no declared class are
    counted nowhere.
    """

    probabilities: Probabilities
    bins: int

    name = "reliability"
    label = "V11"
    Form = ReliabilityForm
    calls_predictors = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", checked_bins(self.bins))

    def check(self, codebook: Codebook) -> None:
        return

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros((self.bins, 2), dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        edges = bin_edges(block.n_classes, self.bins)
        for rows in row_blocks(len(block.codes), ROWS_AT_ONCE):
            sums[0] += reliability(self.probabilities(block.codes[rows]), block.classes[rows], block.n_classes, edges)

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(self.bins, 2)]

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        predictor = encode.predictor(self.probabilities, probable=True)
        return ReliabilityForm(number=0, predictor=predictor, bins=self.bins, edges="narrow near 1", price=price_form(price))

    @classmethod
    def decode(cls, form: ReliabilityForm, decode: Decoder) -> Reliability:
        return cls(decode.probabilities(form.predictor), form.bins)

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        return [Attack(cls.name, "one row more, surely wrong", RIGHT, WRONG, lambda codebook: cls(certainly_first, 2))]


def checked_bins(bins: int) -> int:
    bins = whole("bins", bins)
    if bins > MOST_BINS:
        raise PlanError(f"bins: got {bins}; expected at most {MOST_BINS}.")
    return bins


def bin_edges(classes: int, bins: int) -> NDArray[np.float64]:
    """Bins of the largest of some class probabilities, from 1/classes to 1: u²/(u² + (1 − u)²), for equal steps of u, as in score_bins.py.

    They are narrow near 1, where a forest puts most rows if one class is rare: 0.997 to 1 is the last of ten. Public: no row enters.
    Only + − × ÷ √, which every machine rounds in the same way.
    """
    first = 1 / (1 + math.sqrt(classes - 1))
    u = first + (1 - first) * (np.arange(bins + 1) / bins)
    edges = u * u / (u * u + (1 - u) * (1 - u))
    edges[0], edges[-1] = 1 / classes, 1.0
    return np.asarray(edges)


def reliability(shares: NDArray[np.float64], classes: NDArray[np.uint16], n_classes: int, edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts of (bin of the largest probability; wrong, right) over rows of class probabilities: (bins, 2).

    A row with a probability that is no finite number is in the lowest bin, and taken to say the first class. A row of no declared class
    is counted nowhere. Only comparisons place a row, so that no rounding depends on what stands beside it.
    """
    if shares.shape != (len(classes), n_classes):  # a broadcast would count a row many times
        raise TableError("probabilities are one number for each row and class.")
    sound = np.where(np.isfinite(shares).all(axis=1, keepdims=True), shares, 0.0)
    place = np.searchsorted(edges[1:-1], sound.max(axis=1), side="right")
    right = sound.argmax(axis=1) == classes
    declared = classes < n_classes
    bins = len(edges) - 1
    cells = np.bincount((2 * place + right)[declared], minlength=2 * bins)
    return cells.astype(np.int64).reshape(bins, 2)
