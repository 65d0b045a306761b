"""`ScoreBins`: how the scores of a class are distributed over the rows that are of it, and over those that are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError, TableError
from hedgerow.parallel import ROWS_AT_ONCE, row_blocks
from hedgerow.queries.attacks import RIGHT, WRONG, Attack, certainly_first
from hedgerow.queries.confusion import ConfusionForm, make_ready
from hedgerow.queries.predictors import Probabilities
from hedgerow.queries.query import Block, CountingQuery, Counts, Decoder, Encoder, QueryForm, Shapes, Sums, price_form
from hedgerow.queries.reliability import checked_bins
from hedgerow.schema.codebook import Codebook

OTHERS, OF_CLASS, UNDECLARED = range(3)


class ScoreBinsForm(ConfusionForm, frozen=True, kw_only=True):
    bins: int
    classes: list[int]


@dataclass(frozen=True, eq=False)
class ScoreBins(CountingQuery[Counts]):
    """For each of some classes, counts of (others, of the class, of no declared class; bin of its probability): (scored, 3, bins).

    probabilities: `predict_codes_proba` of a release. Of any other function you vouch as in `Confusion`.
    bins:          from 0 to 1, narrower towards both ends (`score_edges`). A probability on an edge is in the bin below it
    classes:       the codes of the classes that are scored; of two classes one is enough, since the other's probability is what is left
    """

    probabilities: Probabilities
    bins: int
    classes: tuple[int, ...]

    name = "score_bins"
    label = "V18"
    Form = ScoreBinsForm
    calls_predictors = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", checked_bins(self.bins))
        object.__setattr__(self, "classes", tuple(int(code) for code in self.classes))

    @property
    def queries(self) -> int:
        return len(self.classes)

    def check(self, codebook: Codebook) -> None:
        distinct = set(self.classes)
        if not distinct or len(distinct) < len(self.classes) or not all(0 <= code < codebook.n_classes for code in distinct):
            raise PlanError(f"score_bins: got the classes {list(self.classes)}; expected some of the {codebook.n_classes}, each once.")

    def prepare(self, codebook: Codebook) -> None:
        make_ready([self.probabilities], codebook)

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros((len(self.classes), 3, self.bins), dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        edges = score_edges(self.bins)
        for rows in row_blocks(len(block.codes), ROWS_AT_ONCE):
            shares, classes = self.probabilities(block.codes[rows]), block.classes[rows]
            if shares.shape != (len(classes), block.n_classes):  # a broadcast would count a row many times
                raise TableError("probabilities are one number for each row and class.")
            for place, code in enumerate(self.classes):
                sums[0][place] += score_counts(shares[:, code], classes, code, block.n_classes, edges)

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(len(self.classes), 3, self.bins)]

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        predictor = encode.predictor(self.probabilities, probable=True)
        return ScoreBinsForm(number=0, predictor=predictor, bins=self.bins, classes=list(self.classes), price=price_form(price))

    @classmethod
    def decode(cls, form: ScoreBinsForm, decode: Decoder) -> ScoreBins:
        decode.bound(len(form.classes) * 3 * checked_bins(form.bins))
        return cls(decode.probabilities(form.predictor), form.bins, tuple(form.classes))

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        return [Attack(cls.name, "one row more, in cells of both classes", RIGHT, WRONG, lambda codebook: cls(certainly_first, 2, (0, 1)))]


def score_edges(bins: int) -> NDArray[np.float64]:
    """Edges u²/(u² + (1 − u)²), u = 0, 1/bins, …, 1: of equal width in the log-odds of u, so that a rare class is told apart, too.

    Public: no row enters. Only + − × ÷, which every machine rounds in the same way.
    """
    u = np.arange(bins + 1) / bins
    return np.asarray(u * u / (u * u + (1 - u) * (1 - u)))


def score_counts(
    scores: NDArray[np.float64], classes: NDArray[np.uint16], code: int, n_classes: int, edges: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Counts of (others, of the class, of no declared class; bin of the score): (3, bins). A row is in exactly one cell.

    A score that is no finite number is in the lowest bin. Only comparisons place a row, so that no rounding depends on what stands beside
    it.
    """
    place = np.searchsorted(edges[1:-1], np.where(np.isfinite(scores), scores, 0.0), side="left")
    kind = np.where(classes >= n_classes, UNDECLARED, np.where(classes == code, OF_CLASS, OTHERS))
    bins = len(edges) - 1
    return np.bincount(kind * bins + place, minlength=3 * bins).astype(np.int64).reshape(3, bins)
