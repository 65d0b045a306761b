"""How well scores tell a class from the others: ROC curve, area under it, Brier score and thresholds, from counts of score bins.

For a class, P_b and N_b are the (noisy) numbers of rows of it and of other classes whose probability of the class lies in bin b of B;
P and N are their sums, σ the standard deviation of the noise on a count.

    AUC         A = Σ_b P_b·v_b / P     v_b = (Σ_{a<b} N_a + N_b/2) / N     rows in one bin count as ties
    error       Σ_b (σ² + P_b)(v_b − A)²/P² + Σ_b (σ² + N_b)(w_b − A)²/N²   noise and draw of rows, to first order (DeLong et al. 1988)
                + σ⁴·Σ_ab (k_ab − A)²/(P·N)²                                what the noise of two counts does together; k is 1, ½ or 0
    Brier       mean of (1 − m_b)² over rows of the class and m_b² over others, m_b the middle of the bin
    recall      of a threshold: the share of P above it; precision: the share of rows above it that are of the class
    threshold   for a recall: within a bin rows are taken for evenly spread; what that may be wrong by is in the errors, as for a threshold
                that lies anywhere in the bin (its width over √12)

A class of which the noise leaves no clear number of rows (P or N not above 2·σ·√B) has no curve, and its area is 0.5 ± 0.5. A mean over
the classes leaves it out, and says so (`Ranking.words`): that is often higher than the mean of all: rare classes are told apart worse.

Which class? That which is named as `positive`; of two classes otherwise the last that the schema declares; of more, each against all
others, and the mean of them (`positive_code`). scikit-learn takes the last in sorted order, `model.classes_[1]`, which may be another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.inference.text import MANY_VALUES, score_with_error, share_with_error
from hedgerow.schema.attributes import text_of

Floats = NDArray[np.float64]
RECALLS = (0.5, 0.8, 0.9)  # of thresholds that are shown
THRESHOLD_HEADS = ("class", "area", "threshold", "recall", "precision", "false positive rate")
CLEAR = 2.0  # a number of rows is told apart from none by so many errors
AREA_BY_BINS = "much of the ± of the area is that of bins, in which rows count as ties, so that it is rather too low: more bins tell closer"
BY_BINS = "the ± of a recall is mostly that of bins, as nobody knows where in one rows lie: more bins tell it closer, more ε hardly does"
MORE = 5  # times as many bins: what they would tell is forecast, before they are advised
CLOSER, WIDER = 0.8, 1.25  # they are if this ± shrinks to so much, and that of the precision grows to no more than so much
END_BINS = 0.15  # how much better than by chance rows of the first and the last bin are told apart, perhaps


def positive_code(classes: Sequence[Any], positive: Any = None) -> int | None:
    """The code of the class that recall, precision, areas, thresholds and Brier scores are about; None is all of them, as means."""
    if positive is None:
        return 1 if len(classes) == 2 else None
    known = [text_of(value) for value in classes]
    if text_of(positive) not in known:
        raise PlanError(f"positive: got {positive!r}; expected one of the declared classes, {', '.join(map(repr, classes))}.")
    return known.index(text_of(positive))


def by_threshold(shares: Floats, code: int, threshold: float) -> NDArray[np.intp]:
    """The class `code` where its probability is at least the threshold, otherwise the most probable of the others."""
    others = shares.copy()
    others[:, code] = -1
    return np.where(shares[:, code] >= threshold, code, others.argmax(axis=1))


def threshold_texts(thresholds: Sequence[float]) -> list[str]:
    """Thresholds as they are shown, to be typed again: three digits that say something, more where different ones would look the same."""
    texts: list[str] = []
    for digits in range(3, 18):
        texts = [_probability(each, digits) for each in thresholds]
        if len(set(texts)) == len(set(thresholds)):
            break
    return texts


def _probability(value: float, digits: int) -> str:
    """So many digits of it, or of what is left to 1 where that is less: 0.500, 0.0227, 0.9985."""
    least = min(value, 1 - value)
    return f"{value:.{digits - 1 - math.floor(math.log10(least))}f}" if least > 0 else f"{value:.0f}"


@dataclass(frozen=True, repr=False)
class OperatingPoint:
    """Every row whose probability of the class `label` is at least `threshold` is taken for it: what that gives, each share with its error.

    `takes(model, X)` tells the rows. mostly_by_bins: whether the recall's error is mostly owed to where in its bin rows lie, so that more
    bins would make it smaller, and more ε hardly
    """

    label: Any
    threshold: float
    recall: float
    recall_error: float
    precision: float
    precision_error: float
    false_positive_rate: float
    false_positive_rate_error: float
    mostly_by_bins: bool = False

    def takes(self, model: Any, X: Any) -> NDArray[np.bool_]:
        """Which rows are taken for the class. model: an estimator, a Pipeline or a Release; its own column of the class is used"""
        classes = [text_of(value) for value in (model.classes_ if hasattr(model, "classes_") else model.classes)]
        return np.asarray(model.predict_proba(X)[:, classes.index(text_of(self.label))] >= self.threshold)

    def __repr__(self) -> str:
        precision = share_with_error(self.precision, self.precision_error) if self.precision == self.precision else "too few rows"
        return (
            f"<OperatingPoint {self.label!r} from probability {threshold_texts([self.threshold])[0]} on: recall "
            f"{share_with_error(self.recall, self.recall_error)}, precision {precision}, false positive rate "
            f"{share_with_error(self.false_positive_rate, self.false_positive_rate_error)}{f'; {BY_BINS}' if self.mostly_by_bins else ''}>"
        )


@dataclass(frozen=True, repr=False, eq=False)
class ClassRanking:
    """One class against all others.

    edges:            of the bins, from 0 to 1
    others, of_class: rows in each bin, noisy or exact
    upper:            whether a probability on an edge is in the bin above it, and not in that below
    alike:            rows of a person, at most: for the chance of the draw they are as one
    """

    label: Any
    edges: Floats
    others: NDArray[np.int64]
    of_class: NDArray[np.int64]
    noise_sd: float
    upper: bool = False
    alike: int = 1

    def opposite(self, label: Any) -> ClassRanking:
        """The other of two classes: its probability is what is left to 1."""
        others, of_class = self.of_class[::-1], self.others[::-1]
        return ClassRanking(label, 1 - self.edges[::-1], others, of_class, self.noise_sd, not self.upper, self.alike)

    @property
    def clear(self) -> bool:
        """Whether there are rows of the class, and of others, as far as the noise lets that be known."""
        return self._clear(times=1)

    def _clear(self, times: int) -> bool:
        """With so many times as many bins."""
        return min(float(self.of_class.sum()), float(self.others.sum())) > CLEAR * self.noise_sd * math.sqrt(times * len(self.others))

    @property
    def auc(self) -> float:
        return float(np.clip(self._area, 0, 1)) if self.clear else 0.5

    @property
    def auc_error(self) -> float:
        """Standard error: the noise on the counts, the draw of rows, and rows of one bin together."""
        return min(0.5, math.hypot(self.auc_noise, self.auc_draw, self.auc_ties))

    @property
    def mostly_by_bins(self) -> bool:
        """Whether more ε would hardly make the error of the area smaller, and more bins would."""
        finer = math.hypot(self._noise(MORE), self.auc_draw, self.auc_ties / MORE)
        return self._clear(MORE) and self.auc_ties > self.auc_error / 2 and finer < CLOSER * self.auc_error

    @property
    def auc_noise(self) -> float:
        """What of the error is owed to the noise."""
        return self._noise(times=1)

    def _noise(self, times: int) -> float:
        """With so many times as many bins, each with noise of its own."""
        variance = self.noise_sd**2
        products = variance**2 * float(((self._wins - self._area) ** 2).sum()) / (self._positive * self._negative) ** 2
        first = float((self._v**2).sum()) / self._positive**2 + float((self._w**2).sum()) / self._negative**2
        return min(0.5, math.sqrt(times * variance * first + times**2 * products)) if self.clear else 0.5

    @property
    def auc_draw(self) -> float:
        """What of the error is owed to the chance of who is in the rows."""
        rows, others = np.maximum(self.of_class, 0), np.maximum(self.others, 0)
        drawn = float((rows * self._v**2).sum()) / self._positive**2 + float((others * self._w**2).sum()) / self._negative**2
        return min(0.5, math.sqrt(self.alike * drawn)) if self.clear else 0.5

    @property
    def auc_ties(self) -> float:
        """What of the error is owed to rows of one bin, which count as ties: the area may be so much larger. In a bin of width L, on the
        scale of log-odds, rows that are spread evenly are told apart by L/12 better than by chance; nobody knows how far those of the first
        and the last bin are spread.
        """
        if not self.clear:
            return 0.5
        inner, within = np.clip(self.edges[1:-1], 1e-9, 1 - 1e-9), np.full(len(self.others), END_BINS)
        within[1:-1] = np.minimum(np.diff(np.log(inner / (1 - inner))) / 12, END_BINS)
        both = np.maximum(self.of_class, 0) * np.maximum(self.others, 0)
        return min(0.5, float(both @ within) / (self._positive * self._negative))

    @property
    def losses(self) -> tuple[Floats, Floats]:
        """(p − y)² at the middle of each bin: of others, of the class."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        return middles**2, (1 - middles) ** 2

    def roc(self) -> tuple[OperatingPoint, ...]:
        """From the threshold that takes no row for the class to that which takes all: one for each edge of a bin."""
        if not self.clear:
            return ()
        return tuple(self._point(edge) for edge in range(len(self.others), -1, -1))

    def at_recall(self, recall: float) -> OperatingPoint | None:
        """The threshold that finds that share of the rows of the class; None where none does."""
        points = self.roc()
        place = next((i for i, point in enumerate(points) if point.recall >= recall), None)
        if not place:
            return None if place is None else points[0]
        upper, lower = points[place - 1], points[place]
        share = (recall - upper.recall) / (lower.recall - upper.recall)
        if share == 1:
            return lower

        def between(name: str) -> float:
            return float((1 - share) * getattr(upper, name) + share * getattr(lower, name))

        def within(name: str) -> float:
            return float(getattr(lower, name) - getattr(upper, name)) / math.sqrt(12)

        def error(name: str) -> float:
            return min(0.5, math.hypot(between(f"{name}_error"), within(name)))

        false, edge = between("false_positive_rate"), len(self.others) - place
        precision, precision_error, unsure = math.nan, 0.5, 0.0
        if lower.precision == lower.precision:
            precision = recall * self._positive / (recall * self._positive + false * self._negative)
            other = upper.precision if upper.precision == upper.precision else precision
            unsure = (other - lower.precision) / math.sqrt(12)
            precision_error = min(0.5, math.hypot(lower.precision_error, unsure))
        by_bins = False
        if within("recall") > error("recall") / 2 and self._clear(MORE):
            finer = self._point(edge, MORE)
            closer = math.hypot(finer.recall_error, within("recall") / MORE) < CLOSER * error("recall")
            by_bins = closer and math.hypot(finer.precision_error, unsure / MORE) < WIDER * precision_error
        return OperatingPoint(
            self.label, between("threshold"), recall, error("recall"), precision, precision_error, false, error("false_positive_rate"),
            by_bins,
        )  # fmt: skip

    def _point(self, edge: int, times: int = 1) -> OperatingPoint:
        """All bins from `edge` up are taken for the class. times: with errors as if each bin were so many, with noise of their own"""
        bins, variance = len(self.others), times * self.noise_sd**2
        above = bins - edge
        recall, false = float(self._above(self.of_class)[edge]), float(self._above(self.others)[edge])

        def share_error(share: float, total: float) -> float:
            noise = variance * (above * (1 - share) ** 2 + edge * share**2) / total**2
            return min(0.5, math.sqrt(noise + self.alike * share * (1 - share) / total))

        taken = recall * self._positive + false * self._negative
        precision, error = math.nan, 0.5
        if taken > max(CLEAR * math.sqrt(2 * above * variance), 0):
            precision = recall * self._positive / taken
            noise = variance * above * ((1 - precision) ** 2 + precision**2) / taken**2
            error = min(0.5, math.sqrt(noise + self.alike * precision * (1 - precision) / taken))
        # A probability on an edge is in the bin below it: the next number above the edge is the least that is taken.
        threshold = float(self.edges[edge] if self.upper and edge < bins else np.nextafter(self.edges[edge], 2.0)) if edge else 0.0
        return OperatingPoint(
            self.label, threshold, recall, share_error(recall, self._positive), precision, error, false,
            share_error(false, self._negative),
        )  # fmt: skip

    def _above(self, counts: NDArray[np.int64]) -> Floats:
        """The share of rows at or above each edge; a share cannot grow with the threshold."""
        tails = np.append(counts[::-1].cumsum()[::-1], 0) / counts.sum()
        return np.clip(np.maximum.accumulate(tails[::-1])[::-1], 0, 1)

    @cached_property
    def _positive(self) -> float:
        return max(float(self.of_class.sum()), 1.0)

    @cached_property
    def _negative(self) -> float:
        return max(float(self.others.sum()), 1.0)

    @cached_property
    def _wins(self) -> Floats:
        """(bin of a row of the class, bin of another row): 1 where the first is above, ½ in the same bin."""
        bins = np.arange(len(self.others))
        return np.asarray(np.sign(bins[:, None] - bins[None, :]) / 2 + 0.5)

    @cached_property
    def _area(self) -> float:
        return float(self.of_class @ self._wins @ self.others) / (self._positive * self._negative)

    @property
    def _v(self) -> Floats:
        return np.asarray(self._wins @ self.others / self._negative - self._area)

    @property
    def _w(self) -> Floats:
        return np.asarray(self.of_class @ self._wins / self._positive - self._area)


@dataclass(frozen=True, repr=False, eq=False)
class Ranking:
    """The score bins of some classes: of that which the score is about, or of more than two classes each against the others."""

    of: tuple[ClassRanking, ...]
    classes: tuple[Any, ...]

    @property
    def auc(self) -> float:
        """Area under the ROC curve of a class against the others; of several classes the mean (macro) of those that are clear: `words`."""
        clear = [each.auc for each in self.of if each.clear]
        return float(np.mean(clear)) if clear else 0.5

    @property
    def auc_error(self) -> float:
        """Standard error. The noise of two classes is independent; of the draw and of ties, which are not, the mean error is taken."""
        clear = [each for each in self.of if each.clear]
        if not clear:
            return 0.5
        noise = math.sqrt(sum(each.auc_noise**2 for each in clear)) / len(clear)
        draw, ties = (float(np.mean([getattr(each, name) for each in clear])) for name in ("auc_draw", "auc_ties"))
        return min(0.5, math.hypot(noise, draw, ties))

    @property
    def unclear(self) -> tuple[Any, ...]:
        """Classes with too few rows beside the noise: they are not in the mean."""
        return tuple(each.label for each in self.of if not each.clear)

    @property
    def left_out(self) -> tuple[Any, ...]:
        """Those of them that a mean of other classes leaves out: none where none is clear, and the area is lost in the noise."""
        return self.unclear if len(self.unclear) < len(self.of) else ()

    def words(self, text: Callable[[Any], str] = repr, mean: str = "mean of the classes") -> str:
        """What the area is of: "of 'yes'", "mean of the classes", "mean of 3 of 4 classes, without 'A'". text: of a label"""
        if len(self.of) == 1:
            return f"of {text(self.of[0].label)}"
        if not self.left_out:
            return mean
        named = ", ".join(map(text, self.left_out[:MANY_VALUES])) + (", …" if len(self.left_out) > MANY_VALUES else "")
        return f"mean of {len(self.of) - len(self.left_out)} of {len(self.of)} classes, without {named}"

    def warning(self, would: str = "is") -> str | None:
        """A sentence about the classes that the mean leaves out, or None. would: "would be" of a forecast"""
        if not self.left_out:
            return None
        few = "too few rows beside the noise" if any(each.noise_sd for each in self.of) else "no rows"
        return (
            f"the AUC {would} the {self.words()}, of which there are {few}. It does not compare with a mean over all classes, and is often "
            "higher, as rare classes are told apart worse. Score more rows, or with a larger epsilon; or name one class as positive."
        )

    @property
    def brier(self) -> float:
        """Mean of (p − y)² of the class that was scored; of several, the sum of it over the classes."""
        return float(np.clip(sum(self._mean_loss(each) for each in self.of), 0, 2))

    @property
    def brier_error(self) -> float:
        """Standard error: noise and draw of rows."""
        noise = draw = 0.0
        for each in self.of:
            mean, rows = self._mean_loss(each), self._rows(each)
            for counts, losses in zip((each.others, each.of_class), each.losses, strict=True):
                noise += float(each.noise_sd**2 * ((losses - mean) ** 2).sum()) / rows**2
                draw += math.sqrt(each.alike * float((np.maximum(counts, 0) * (losses - mean) ** 2).sum())) / rows
        return min(0.5, math.hypot(math.sqrt(noise), draw))

    def roc(self, label: Any = None) -> tuple[OperatingPoint, ...]:
        """The ROC curve of a class: what each threshold gives, the highest first. Empty where the class has too few rows."""
        return self._named(label).roc()

    def threshold_for(self, *, recall: float | None = None, precision: float | None = None, label: Any = None) -> OperatingPoint:
        """The threshold that finds about that share of the rows of a class; or the lowest edge of a bin that is right so often.

        Post-processing of counts that were paid for: any number of thresholds costs nothing more. Rows whose probability of the class is
        at least `threshold` are taken for it, as scikit-learn's FixedThresholdClassifier does.
        """
        if (recall is None) == (precision is None):
            raise PlanError("threshold_for: expected either recall=… or precision=…, such as threshold_for(recall=0.8).")
        name, wanted = ("recall", recall) if recall is not None else ("precision", precision)
        if not isinstance(wanted, (int, float)) or not 0 < wanted <= 1:
            raise PlanError(f"threshold_for: got {name}={wanted!r}; expected a share above 0, at most 1.")
        if recall is not None:
            found = self._named(label).at_recall(recall)
        else:
            found = next((point for point in self.roc(label)[::-1] if precision is not None and point.precision >= precision), None)
        if found is None:
            raise PlanError(
                f"threshold_for: no threshold gives a {name} of {wanted}, or the noise leaves too few rows to say. Ask for less, or "
                "score with more rows or a larger epsilon."
            )
        return found

    def threshold_lines(self, recalls: Sequence[float] = RECALLS) -> list[tuple[str, ...]]:
        """Lines of a table under THRESHOLD_HEADS: of each class with enough rows, what the thresholds for these recalls give."""
        lines: list[tuple[str, ...]] = []
        for each in self.of:
            points = [self.threshold_for(recall=wanted, label=each.label) for wanted in recalls if each.clear]
            for point, threshold in zip(points, threshold_texts([point.threshold for point in points]), strict=True):
                precision = share_with_error(point.precision, point.precision_error)
                recall = share_with_error(point.recall, point.recall_error)
                false = share_with_error(point.false_positive_rate, point.false_positive_rate_error)
                precision = precision if point.precision == point.precision else "too few rows"
                label = each.label if isinstance(each.label, str) else text_of(each.label)
                lines.append((label, score_with_error(each.auc, each.auc_error), threshold, recall, precision, false))
        return lines

    def mostly_by_bins(self, recalls: Sequence[float] = RECALLS) -> bool:
        """Whether that is so of one of these thresholds (`OperatingPoint.mostly_by_bins`)."""
        return any(
            self.threshold_for(recall=wanted, label=each.label).mostly_by_bins for each in self.of if each.clear for wanted in recalls
        )

    def _named(self, label: Any) -> ClassRanking:
        if label is None and len(self.of) == 1:
            return self.of[0]
        known = {text_of(each.label): each for each in self.of}
        if len(self.classes) == 2 and len(self.of) == 1:  # the counts of one are those of the other, the other way round
            known |= {text_of(other): self.of[0].opposite(other) for other in self.classes if text_of(other) not in known}
        if label is None:
            raise PlanError(f"label: of more than two classes, name the one that is meant: label=… of {', '.join(map(repr, known))}.")
        if text_of(label) not in known:
            raise PlanError(f"label: got {label!r}; expected one of the classes that were scored, {', '.join(map(repr, known))}.")
        return known[text_of(label)]

    def _rows(self, each: ClassRanking) -> float:
        return max(float(each.others.sum() + each.of_class.sum()), 1.0)

    def _mean_loss(self, each: ClassRanking) -> float:
        of_others, of_class = each.losses
        return float(each.others @ of_others + each.of_class @ of_class) / self._rows(each)

    def __repr__(self) -> str:
        of = self.words(mean=f"mean of {len(self.of)} classes")
        areas, brier = score_with_error(self.auc, self.auc_error), score_with_error(self.brier, self.brier_error)
        return f"Ranking({of}: AUC {areas}; Brier score {brier})"
