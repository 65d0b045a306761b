"""A noisy confusion matrix, and what follows from it: accuracy, recall, precision, ROC curves, each with its error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import noise_variance
from hedgerow.errors import PlanError
from hedgerow.inference.coverage import WORTH_SAYING
from hedgerow.inference.ranking import CLEAR, OperatingPoint, Ranking, positive_code
from hedgerow.inference.text import MANY_VALUES, SCORE_MORE, count_with_error, is_lost, plain, score_with_error
from hedgerow.release.certificate import Certificate


@dataclass(frozen=True, repr=False)
class PrivateScore:
    """A noisy confusion matrix: rows are true classes, columns predicted ones. Everything else follows from it.

    undeclared: the noisy number of test rows that have no declared class; they are not part of the matrix
    summed:     how many noisy numbers each number of the matrix is a sum of: some, where it was made of score bins
    ranking:    ROC curves and what follows from them, where "auc" or "brier" was among the metrics
    about:      the code of the class that recall, precision and area are about, where one was named (`positive` is its label)
    alike:      so many rows of a person are counted at most, and taken for one by the errors: they tell little more than one of them
    """

    confusion: NDArray[np.int64]
    undeclared: int
    classes: tuple[Any, ...]
    noise_scale: Fraction
    certificate: Certificate
    summed: int = 1
    ranking: Ranking | None = None
    about: int | None = None
    alike: int = 1

    def __float__(self) -> float:
        """The area under the ROC curve where it was counted, else the accuracy."""
        return self.accuracy if self.ranking is None else self.auc

    item = __float__  # with it scikit-learn takes the score for a number: `scoring=lambda model, X, y: private_score(…)`

    @property
    def positive(self) -> Any:
        """The class that recall, precision, area and thresholds are about: the one that was named; of two classes otherwise the last that
        the schema declares; of more None, which is the mean over all."""
        return None if self._code is None else self.classes[self._code]

    @property
    def _code(self) -> int | None:
        return positive_code(self.classes) if self.about is None else self.about

    @property
    def lost(self) -> bool:
        """Whether the noise is larger than the accuracy that was asked for: then it says nothing."""
        return is_lost(self.accuracy, self.accuracy_error)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on one number of the matrix."""
        return math.sqrt(noise_variance(self.noise_scale) * self.summed)

    @property
    def rows(self) -> float:
        """Noisy number of test rows of a declared class."""
        return max(float(self.confusion.sum()), 1.0)

    @property
    def rows_error(self) -> float:
        return self.noise_sd * len(self.classes)

    @property
    def undeclared_error(self) -> float:
        return self.noise_sd * math.sqrt(len(self.classes))

    @property
    def accuracy(self) -> float:
        """The share of rows whose class is predicted."""
        return float(np.clip(np.trace(self.confusion) / self.rows, 0, 1))

    @property
    def accuracy_error(self) -> float:
        """Standard error of the accuracy: the noise on the matrix and the chance of the draw of rows together."""
        return self._error(self.accuracy)

    def _error(self, share: float) -> float:
        """Of a share of the rows that is told by as many numbers of the matrix as there are classes."""
        k = len(self.classes)
        noise = self.noise_sd**2 * (k * (1 - share) ** 2 + (k * k - k) * share**2) / self.rows**2
        return min(0.5, math.sqrt(noise + self.alike * share * (1 - share) / self.rows))

    @property
    def mismatch(self) -> str | None:
        """A sentence about test rows that have no declared class, or None where noise could explain them or they are few."""
        undeclared, error = self.undeclared, self.undeclared_error
        if undeclared <= (max(4 * error, self.rows) if self.lost else max(8 * error, WORTH_SAYING * self.rows)):
            return None
        known = ", ".join(map(plain, self.classes[:MANY_VALUES])) + (", …" if len(self.classes) > MANY_VALUES else "")
        otherwise = f"spelled otherwise than the declared classes ({known})"
        about = f"about {count_with_error(undeclared, error)} test rows have no declared class"
        if self.lost:
            return f"{about}, more than have one: their labels seem to be {otherwise}. Look at that before you pay for another score"
        return f"{about} and are not part of this score: their labels are missing, or {otherwise}"

    @property
    def majority(self) -> tuple[Any, float]:
        """The most frequent class and its share: what always answering it would score."""
        totals = np.maximum(self.confusion.sum(axis=1), 0)
        best = int(totals.argmax())
        return self.classes[best], float(np.clip(totals[best] / self.rows, 0, 1))

    @property
    def majority_error(self) -> float:
        """Standard error of that share, as of the accuracy."""
        return self._error(self.majority[1])

    @property
    def recall(self) -> float:
        """The share of the rows of the class `positive` that are found; the mean over the classes (macro) where that is None."""
        return self._mean(self._share(1)[0])

    @property
    def recall_error(self) -> float:
        """Standard error: noise and the draw of rows."""
        return self._mean_error(self._share(1)[1])

    @property
    def precision(self) -> float:
        """The share of rows taken for the class `positive` that are of it; the mean over the classes (macro) where that is None."""
        return self._mean(self._share(0)[0])

    @property
    def precision_error(self) -> float:
        return self._mean_error(self._share(0)[1])

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the recalls of all classes: one half, of two classes, for what always answers the most frequent one."""
        return float(self._share(1)[0].mean())

    @property
    def balanced_accuracy_error(self) -> float:
        errors = self._share(1)[1]
        return float(math.sqrt((errors**2).sum()) / len(errors))

    @property
    def f1(self) -> float:
        """2·TP / (2·TP + FP + FN) of the class `positive`; the mean over the classes (macro) where that is None."""
        return self._mean(self._f1()[0])

    @property
    def f1_error(self) -> float:
        """TP moves F by (2 − 2F)/D, a row of a class that is taken for another moves both of theirs by −F/D; D = 2·TP + FP + FN."""
        f, total = self._f1()
        moved = self.noise_sd**2 + self.alike * np.maximum(self.confusion, 0)
        own, right = moved.diagonal(), (2 - 2 * f) / total
        alone = np.sqrt(right**2 * own + (f / total) ** 2 * (moved.sum(axis=0) + moved.sum(axis=1) - 2 * own))
        each = np.minimum(1, 0.5 / np.maximum(alone, 1e-12))  # no share is further off: of a class with next to no rows
        each *= 1 / len(f) if self._code is None else np.arange(len(f)) == self._code
        slope = -np.add.outer(each * f / total, each * f / total)
        slope[np.diag_indices(len(f))] = each * right
        return float(math.sqrt((slope**2 * moved).sum()))

    def _f1(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of each class, and its D."""
        right = self.confusion.diagonal()
        total = np.maximum(self.confusion.sum(axis=0) + self.confusion.sum(axis=1), 1).astype(np.float64)
        return np.clip(2 * right / total, 0, 1), total

    @property
    def auc(self) -> float:
        """Area under the ROC curve of the class `positive`; where that is None, the mean of each class against the others (macro).

        The mean leaves out classes of which the noise hides how many rows there are (`ranking.left_out`): it is then often too high.
        """
        return self._ranked.auc

    @property
    def auc_error(self) -> float:
        return self._ranked.auc_error

    @property
    def brier(self) -> float:
        """Mean of (p − y)² of the class `positive`; where that is None, the sum of it over the classes."""
        return self._ranked.brier

    @property
    def brier_error(self) -> float:
        return self._ranked.brier_error

    def roc(self, label: Any = None) -> tuple[OperatingPoint, ...]:
        """The ROC curve of a class, the highest threshold first."""
        return self._ranked.roc(label)

    def threshold_for(self, *, recall: float | None = None, precision: float | None = None, label: Any = None) -> OperatingPoint:
        """The highest threshold that finds at least that share of the rows of a class; or the lowest that is right so often. No ε."""
        return self._ranked.threshold_for(recall=recall, precision=precision, label=label)

    @property
    def _ranked(self) -> Ranking:
        if self.ranking is None:
            raise PlanError(
                "private_score: the confusion matrix alone was paid for (accuracy, recall, precision). Areas, Brier scores, ROC "
                'curves and thresholds are counted where metrics=["auc"] is given beforehand: another score, with an ε of its own.'
            )
        return self.ranking

    def _share(self, axis: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The diagonal over the sums of the matrix, and the standard errors: of recall (axis 1) or precision (axis 0)."""
        total = np.maximum(self.confusion.sum(axis=axis), 1).astype(np.float64)
        hidden = self._hidden(axis)
        share = np.where(hidden, 0, np.clip(self.confusion.diagonal() / total, 0, 1))
        noise = self.noise_sd**2 * ((1 - share) ** 2 + (len(self.classes) - 1) * share**2) / total**2
        return share, np.where(hidden, 0.5, np.minimum(0.5, np.sqrt(noise + self.alike * share * (1 - share) / total)))

    def _hidden(self, axis: int) -> NDArray[np.bool_]:
        """Classes of which the noise hides whether any rows have them (axis 1), or are taken for them (axis 0). Their share counts as 0,
        which it is where there are none; that of noise to noise would be about one half.
        """
        return np.asarray(self.confusion.sum(axis=axis) < CLEAR * self.noise_sd * math.sqrt(len(self.classes)))

    def _hidden_words(self) -> str:
        """Which classes a mean of precisions counts as 0, though nobody knows."""
        hidden = [] if self._code is not None else [plain(self.classes[c]) for c in np.flatnonzero(self._hidden(0))]
        named = ", ".join(hidden[:MANY_VALUES]) + (", …" if len(hidden) > MANY_VALUES else "")
        return f" (0 for {named}: too few rows are taken for {'it' if len(hidden) == 1 else 'them'} beside the noise)" if hidden else ""

    def _mean(self, shares: NDArray[np.float64]) -> float:
        return float(shares.mean() if self._code is None else shares[self._code])

    def _mean_error(self, errors: NDArray[np.float64]) -> float:
        return float(math.sqrt((errors**2).sum()) / len(errors) if self._code is None else errors[self._code])

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from hedgerow.plots.notebook import score_html  # drawn from the score alone: see pyproject.toml

        return score_html(self, self.certificate.sentence())

    def __repr__(self) -> str:
        return f"PrivateScore({self.words()})"

    def words(self, rows: str = "") -> str:
        """In a line. Where the noise is larger than the answer, that is said, and no number that nobody could rely on."""
        rows = rows or f"about {self.rows:,.0f} ± {self.rows_error:.2g} rows"
        if self.lost:
            return f"accuracy lost in the noise, which is larger than the answer, on {rows}; {self.mismatch or SCORE_MORE}"
        label, share = self.majority
        always = f"always {label!r}: {share:.3f} ± {self.majority_error:.2g}"
        told = [("recall", self.recall, self.recall_error), ("precision", self.precision, self.precision_error)]
        if self.ranking is not None:
            told += [("AUC", self.auc, self.auc_error), ("Brier score", self.brier, self.brier_error)]
        of = "mean of the classes" if self.positive is None else f"of {self.positive!r}"
        hidden = {"precision": self._hidden_words()}
        each = ", ".join(f"{name} {score_with_error(value, error)}{hidden.get(name, '')}" for name, value, error in told)
        each += f" ({self.ranking.words()})" if self.ranking is not None and self.ranking.left_out else ""
        each += f"; {self.mismatch}" if self.mismatch else ""
        return f"accuracy {self.accuracy:.3f} ± {self.accuracy_error:.2g} on {rows}; {always}; {of}: {each}"
