"""Names and constants that stand in certificates: what was released with them must be read in the same way for ever."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.accounting import events
from hedgerow.queries.scores import BRIER, GINI, MAX, MOST_ROWS, NORMAL_GINI, information_gain


def test_names_of_mechanisms() -> None:
    names = [events.DISCRETE_LAPLACE, events.DISCRETE_GAUSSIAN, events.PERMUTE_AND_FLIP, events.EXPONENTIAL, events.LOCAL_SENSITIVITY]
    assert names == [
        "discrete Laplace", "discrete Gaussian", "permute-and-flip", "exponential mechanism",
        "exponential mechanism with local sensitivity",
    ]  # fmt: skip


def test_sensitivities_are_those_of_the_scores() -> None:
    assert {*events.MONOTONE} == {score.sensitivity / score.unit for score in (GINI, MAX, BRIER)} == {1, 2}
    assert NORMAL_GINI.sensitivity / NORMAL_GINI.unit == events.NOT_MONOTONE == Fraction(1, 2) + Fraction(1, 2**20)
    least, most = (information_gain(rows) for rows in (1, MOST_ROWS))
    assert (events.LEAST_GAIN, events.MOST_GAIN) == (2, 36)
    assert events.LEAST_GAIN <= least.sensitivity / least.unit <= Fraction(5, 2)
    assert Fraction(35) < most.sensitivity / most.unit <= events.MOST_GAIN
