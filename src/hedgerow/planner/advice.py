"""`hedgerow.advise`: which accuracy to expect from which ε, and the smallest ε that would do. Reads no private row, costs no ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import exact_delta, text_of_fraction
from hedgerow.errors import PlanError
from hedgerow.inference.coverage import all_rows, class_shares
from hedgerow.inference.vote import ADDITIVE
from hedgerow.planner.curve import OFF, curve, logit, share
from hedgerow.planner.made_rows import DUMMY, FOREST, LIKE, MEASURED, Maker, dummy_rows, forest_rows, like_rows, own_shares
from hedgerow.planner.public_table import public_table
from hedgerow.planner.trials import accuracy_of
from hedgerow.release.release import Release, class_array
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.training.algorithms import PRIVATE
from hedgerow.trees.plan import EXPECTED

HEDGEROW = "hedgerow"
MOSTLY = 0.8  # of the rows: where the most frequent class has more, another one is rare
ALL = (HEDGEROW, "snr", "rdt", "dpdf")
CHOICES = ("best_scale", "best_model")  # queries of a Hedgerow forest that was fitted, not only counted
EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "4")
MOST_ROWS = 50_000  # more rows than these are made by nobody's patience: the answer is then that for so many
SETS = {DUMMY: "ten", LIKE: "ten", FOREST: "23", MEASURED: "23"}  # that OFF is the mean of
TRUST = {
    DUMMY: "rows made from the schema alone: they tell how ε and the number of rows matter, not how hard the task is",
    LIKE: "a public table that is taken to be alike: as good as the likeness",
    FOREST: "an earlier release, how sure it is of itself, and how forests went on from there on public sets",
    MEASURED: "an earlier release and its measured accuracy, and how forests went on from there on public sets",
}

LEVEL = (
    "These went on from ε = 0.2; from 1 to 4, nine of 23 public sets gained less than 1.5 points, and four other tables 0 to 0.4. For all "
    "of 12 classes of four tables of people what was expected was too high, by 5 to 11 points in mean."
)


@dataclass(frozen=True)
class Expectation:
    """The accuracy to expect of one algorithm at one ε; low and high: about four of five real fits should lie between them. Of less ε
    than that of an earlier release nothing is known, and this is a guess that was 5 to 10 points too low: `advice.known` leaves it out.
    """

    algorithm: str
    epsilon: str
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Advice:
    """Expectations, and what they rest on. source: "dummy", "like", "forest" or "measured".

    baseline: the most frequent class and its share, of the earlier release or the public table; None of the schema alone
    earlier:  the ε of the earlier release: what is expected of less goes on from there, and was not measured
    baseline_error: of that share, by the noise of the earlier release
    measured: its accuracy, if that was given
    nearly:   whether the earlier release had rows and ε enough for nearly all that can be learnt (its plan's verdict)
    """

    expectations: tuple[Expectation, ...]
    source: str
    rows: int
    delta: str
    target: float | None = None
    baseline: tuple[Any, float] | None = None
    earlier: Fraction = Fraction(0)
    baseline_error: float = 0.0
    measured: float | None = None
    nearly: bool = False

    @property
    def trust(self) -> str:
        """How far the numbers are to be trusted, from the measurement in docs/ADVICE.md."""
        points = f"on {SETS[self.source]} public sets it was off by {OFF[self.source] * 100:.1f} points on average"
        below = f". Below ε = {text_of_fraction(self.earlier)}, that of the release, nothing was measured" if self.earlier else ""
        near = f"the {self.measured:.3f} that was measured" if self.measured else "what the release has"
        more = f". {LEVEL} Where the columns tell no more, a larger ε stays near {near}" if self.source in (FOREST, MEASURED) else ""
        if self.nearly:
            more = ". For so many rows that release has nearly what a model without privacy would learn: no more is expected of a larger ε"
        return f"{TRUST[self.source]}; {points}{below}{more}"

    @property
    def known(self) -> tuple[Expectation, ...]:
        """All but those of less ε than the earlier release has."""
        return tuple(each for each in self.expectations if Fraction(each.epsilon) >= self.earlier)

    @property
    def smallest(self) -> Expectation | None:
        """The smallest ε, and the algorithm, for which the target is to be expected; None where none of them would do."""
        if self.target is None:
            return None
        enough = [each for each in self.known if each.accuracy >= self.target]
        return min(enough, key=lambda each: (Fraction(each.epsilon), -each.accuracy), default=None)

    def sentence(self) -> str:
        """What follows for the target."""
        found = self.smallest
        made_up = self.source == DUMMY
        best = max(self.known, key=lambda each: each.accuracy, default=None)
        if best is None:
            less = f"less than ε = {text_of_fraction(self.earlier)}, that of the release, gives"
            asked = f"what {less}" if self.target is None else f"whether {less} an accuracy of {self.target:g}"
            return f"{asked} is not known: ask for no less"
        if self.target is None:
            on = ", on made-up classes" if made_up else ""
            return f"the most to expect: {best.accuracy:.3f}, {best.algorithm} at ε = {best.epsilon}{on}"
        if self.baseline is not None and self.target <= self.baseline[1]:
            return (
                f"an accuracy of {self.target:g} tells nothing: without learning, the most frequent class alone gives as much. "
                "Judge by the area under the ROC curve instead (`hedgerow evaluate --auc`)"
            )
        if found is None:
            if made_up:
                return (
                    f"an accuracy of {self.target:g} was not reached on made-up classes up to ε = {self._largest} "
                    f"(at most {best.accuracy:.3f}): your table may be easier or harder"
                )
            return (
                f"an accuracy of {self.target:g} is not to be expected up to ε = {self._largest}: the most to expect is {best.accuracy:.3f}"
            )
        expected = f"expected {found.accuracy:.3f}, {found.low:.3f} to {found.high:.3f}"
        if self.baseline is not None and found.low <= self.baseline[1] and self.baseline[1] > MOSTLY:
            return (
                f"whether some ε gives an accuracy of {self.target:g} is not known: what is {expected}, at ε = {found.epsilon}, is not "
                f"clear of the {self.baseline[1]:.3f} of always answering the most frequent class, and of a rare class such numbers were "
                "mostly too high. Judge by the area under the ROC curve instead (`hedgerow evaluate --auc`)"
            )
        about = "; of made-up classes, not of your table" if made_up else ""
        if found.low < self.target and self.source in (FOREST, MEASURED):
            return (
                f"whether some ε gives an accuracy of {self.target:g} is not known: if one does, about {found.epsilon}, {found.algorithm} "
                f"({expected}), and such numbers were too high more often than too low"
            )
        sure = "" if found.low >= self.target else ", if it is not missed, which is about as likely"
        return f"the smallest ε for an accuracy of {self.target:g}{sure}: {found.epsilon}, {found.algorithm} ({expected}{about})"

    def __str__(self) -> str:
        lines = [f"ε = {each.epsilon}, {each.algorithm}: {self.words(each)}" for each in self.expectations]
        return "\n".join(["accuracy to expect", *lines, self.baseline_sentence(), self.sentence(), f"made from: {self.trust}"])

    def words(self, each: Expectation) -> str:
        """What to expect, in words: of less than the ε of the earlier release nothing is known."""
        if Fraction(each.epsilon) < self.earlier:
            return "not known: less ε than that of the release"
        return f"{each.accuracy:.3f} ({each.low:.2f} to {each.high:.2f})"

    def baseline_sentence(self) -> str:
        """What would be right without learning anything, as far as that is known."""
        if self.baseline is None:
            return (
                "how frequent the classes are is not known from the schema, so neither is what always answering the most frequent one "
                "would give: a public table that is alike (like) or an earlier release (forest) would tell"
            )
        (label, its_share), error = self.baseline, self.baseline_error
        about = f"{its_share:.3f} ± {error:.2g}" if error else f"{its_share:.3f}"
        return f"always answering the most frequent class, {label}, would give about {about}"

    @property
    def _largest(self) -> str:
        return max((each.epsilon for each in self.expectations), key=Fraction)


def advise(
    schema: Schema,
    rows: int,
    *,
    like: Any = None,
    forest: Release | str | Path | None = None,
    accuracy: float | None = None,
    delta: Any = 0,
    target_accuracy: float | None = None,
    algorithms: Sequence[str] | None = None,
    epsilons: Sequence[Any] = EPSILONS,
    repeats: int = 3,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Advice:
    """What accuracy to expect at each ε from each algorithm. Reads no private row, costs no ε.

    rows:     how many the private table has, about; where the schema names persons, how many are counted, at most rows_per_person of each
    like:     a public table that is alike: a pair (X, y) as `fit` takes it, a data frame with the target's column, or a CSV or Parquet
              file. forest: an earlier release of the same table. Without either, rows are made from the schema alone
    accuracy: of the earlier release, as it was measured on other rows (`private_score`, `hedgerow evaluate`): the best to begin from
    algorithms: by default hedgerow, snr, rdt and dpdf; from an earlier release hedgerow alone, since how far others are from it was not
              measured
    delta:    for algorithms that can use one
    repeats:  fits on rows that are made anew each time
    progress: is told the share that is done
    """
    if algorithms is None:
        algorithms = ALL if forest is None else (HEDGEROW,)
    _check(rows, like, forest, accuracy, target_accuracy, algorithms, repeats)
    release = Release.load(forest) if isinstance(forest, (str, Path)) else forest
    like = None if like is None else public_table(like, schema)
    rows_made = min(rows, MOST_ROWS)
    source, maker = _maker(schema, rows_made, like, release)
    exact = text_of_fraction(exact_delta(delta))
    texts = [str(epsilon) for epsilon in epsilons]
    fitted = list(algorithms)
    if release is not None:  # fits on made rows tell only how far the others are from Hedgerow's forest
        fitted = [HEDGEROW, *(name for name in algorithms if name != HEDGEROW)] if set(algorithms) != {HEDGEROW} else []
    found: dict[tuple[str, str], list[float]] = {}
    trials = [(turn, algorithm, epsilon) for turn in range(repeats) for algorithm in fitted for epsilon in texts]
    made, turn_made = None, -1
    for number, (turn, algorithm, epsilon) in enumerate(trials):
        if made is None or turn != turn_made:
            made, turn_made = maker(seed + turn), turn
        found.setdefault((algorithm, epsilon), []).append(accuracy_of(algorithm, schema, epsilon, exact, made, seed + turn))
        if progress is not None:
            progress((number + 1) / len(trials))
    if release is None:
        expected = [_expectation(*place, float(np.mean(got)), got, OFF[source]) for place, got in found.items()]
        return Advice(tuple(expected), source, rows, exact, target_accuracy, None if like is None else _most_frequent(schema, like[1]))
    source = FOREST if accuracy is None else MEASURED
    shares, earlier = own_shares(release), Fraction(release.certificate.epsilon or 0)
    asked = [float(Fraction(text)) / schema.k for text in texts]  # noise for k rows of a person at once is that of ε/k for one
    nearly, own_epsilon = _knows_nearly_all(release, rows), float(Fraction(release.certificate.epsilon or 0)) / release.schema.k
    asked = [min(epsilon, own_epsilon) for epsilon in asked] if nearly else asked
    heights = dict(zip(texts, _curve(release, shares, rows, asked, accuracy, exact != "0"), strict=True))
    frequent, errors = class_shares(release.forest)  # counted, if with noise; what the forest predicts is off for rare classes
    most = int(frequent.argmax())
    baseline = (release.classes[most], float(frequent[most]))
    least = baseline[1] if accuracy is None else min(baseline[1], accuracy)  # a forest may be worse than that; then it was measured
    (at_own,) = _curve(release, shares, rows, [own_epsilon], accuracy, exact != "0")
    stays = accuracy or _expectation(HEDGEROW, "", max(at_own, least), [], OFF[source]).low  # more ε may bring no more
    expected = []
    for algorithm in algorithms:
        for epsilon in texts:
            got, ours = found.get((algorithm, epsilon), []), found.get((HEDGEROW, epsilon), [])
            apart = logit(float(np.mean(got))) - logit(float(np.mean(ours))) if got else 0.0
            mean = max(float(share(logit(heights[epsilon]) + apart)), least)
            each = _expectation(algorithm, epsilon, mean, got, OFF[source])
            expected.append(replace(each, low=min(each.low, stays)))
    return Advice(tuple(expected), source, rows, exact, target_accuracy, baseline, earlier, float(errors[most]), accuracy, nearly)


def _knows_nearly_all(release: Release, rows: int) -> bool:
    """Whether it is a Hedgerow forest that was fitted to one table, with rows and ε enough for nearly all that can be learnt, as its plan
    says: of forests that are only counted, and of other algorithms, a plan does not.
    """
    certificate, schema = release.certificate, release.schema
    if release.vote != ADDITIVE or len(certificate.parts) != 1 or not any(event.query in CHOICES for event in certificate.events):
        return False
    of_class = min(rows, all_rows(release.forest)[0]) / (len(schema.target.classes) * schema.k)
    return of_class * float(Fraction(certificate.epsilon or 0)) >= EXPECTED[Fraction(certificate.delta or 0) > 0][0][0]


def _most_frequent(schema: Schema, labels: Any) -> tuple[Any, float]:
    """The most frequent class of a public table and its share of the rows that have a class."""
    codes = Codebook(schema).encode_classes(np.asarray(labels))
    counts = np.bincount(codes, minlength=len(schema.target.classes))[: len(schema.target.classes)]
    return class_array(schema)[counts.argmax()], float(counts.max() / max(counts.sum(), 1))


def _curve(
    release: Release, shares: NDArray[np.float64], rows: int, epsilons: list[float], accuracy: float | None, delta: bool
) -> Sequence[float]:
    """What to expect of a Hedgerow forest. epsilons: for one row of a person each."""
    assert release.certificate.epsilon is not None
    own, majority = float(shares.max(axis=1).mean()), float(shares.mean(axis=0).max())
    earlier = float(Fraction(release.certificate.epsilon)) / release.schema.k
    measured = accuracy is not None
    found = curve(epsilons, earlier, accuracy or own, majority, rows, shares.shape[1], delta=delta, measured=measured)
    return [float(each) for each in found]


def _expectation(algorithm: str, epsilon: str, mean: float, got: list[float], off: float) -> Expectation:
    spread = float(np.std(got, ddof=1)) if len(got) > 1 else 0.0
    far = 1.28 * math.hypot(spread, 1.25 * off)  # a mean absolute error is 0.8 standard deviations
    return Expectation(algorithm, epsilon, mean, max(0.0, mean - far), min(1.0, mean + far))


def _maker(schema: Schema, rows: int, like: Any, release: Release | None) -> tuple[str, Maker]:
    if release is not None:
        if release.schema.names != schema.names or release.schema.target.classes != schema.target.classes:
            raise PlanError("forest: it was learnt with other columns or classes than the schema declares. Give the schema of its table.")
        if release.certificate.epsilon is None:
            raise PlanError("forest: it claims no ε, so that nothing tells how much its noise hides. Give one that was learnt with an ε.")
        return FOREST, forest_rows(release, rows)
    if like is not None:
        return LIKE, like_rows(schema, rows, *like)
    return DUMMY, dummy_rows(schema, rows)


def _check(rows: Any, like: Any, forest: Any, accuracy: Any, target: Any, algorithms: Sequence[str], repeats: Any) -> None:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 20:
        raise PlanError(f"rows: got {rows!r}; expected about how many rows the table has, at least 20.")
    if like is not None and forest is not None:
        raise PlanError("like, forest: got both; expected a public table or an earlier release.")
    if accuracy is not None and (forest is None or not 0 < accuracy < 1):
        expected = "expected that of the earlier release: give it as forest, too" if forest is None else "expected a share between 0 and 1"
        raise PlanError(f"accuracy: got {accuracy!r}; {expected}.")
    if target is not None and not 0 < target < 1:
        raise PlanError(f"target_accuracy: got {target!r}; expected a share between 0 and 1, such as 0.8.")
    unknown = [name for name in algorithms if name not in PRIVATE]
    if unknown or not algorithms:
        raise PlanError(f"algorithms: got {', '.join(unknown) or 'none'}; expected some of {', '.join(PRIVATE)}.")
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise PlanError(f"repeats: got {repeats!r}; expected a whole number of at least 1.")
