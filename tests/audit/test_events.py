"""The search for events. All numbers are drawn with a seed, so no test can fail by chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow.audit.attack import finding_of
from hedgerow.audit.events import OneOf, Score, Threshold, best_event
from hedgerow.audit.outputs import Columns

LEVEL = 5e-7


def names(values: Any) -> Any:
    return np.array(values, dtype=object)


def noise(seed: int, runs: int = 2000) -> Any:
    return np.random.default_rng(seed).normal(size=runs)


def test_a_threshold_is_found_in_both_directions() -> None:
    first: Columns = {"other": noise(0), "count": noise(1) + 3}
    second: Columns = {"other": noise(2), "count": noise(3)}
    found = best_event(first, second, classifier=False)
    assert found is not None
    assert isinstance(found.event, Threshold)
    assert found.event.name == "count"
    assert found.event.at_least != found.swapped  # large on the first table: "at least" is likelier there, "at most" on the second
    back = best_event(second, first, classifier=False)
    assert back is not None
    assert back.bound == pytest.approx(found.bound)
    assert back.swapped != found.swapped


def test_a_name_is_found() -> None:
    draw = np.random.default_rng(4)
    first: Columns = {"shape": names(draw.choice(["a", "b", "c"], 2000, p=[0.6, 0.3, 0.1]))}
    second: Columns = {"shape": names(draw.choice(["a", "b", "c"], 2000, p=[0.1, 0.3, 0.6]))}
    found = best_event(first, second, classifier=False)
    assert found is not None
    assert isinstance(found.event, OneOf)
    assert found.event.values in ({"a"}, {"c"})
    assert found.bound > 1


def test_a_combination_that_only_the_classifier_sees() -> None:
    """The sign of a product: each number by itself has the same distribution on both tables."""
    one, two = np.random.default_rng(5).choice([-1.0, 1.0], (2, 4000))
    first: Columns = {"u": one, "v": one, "w": noise(6, 4000)}
    second: Columns = {"u": two, "v": -two, "w": noise(7, 4000)}
    blind = best_event(first, second, classifier=False)
    found = best_event(first, second)
    assert blind is not None
    assert found is not None
    assert blind.bound < 0.2
    assert isinstance(found.event, Score)
    assert found.bound > 3


def test_missing_numbers_are_no_hits() -> None:
    values = np.array([1.0, np.nan, 3.0])
    assert Threshold("x", True, 2.0).happened({"x": values}).tolist() == [False, False, True]
    assert Threshold("x", False, 2.0).happened({"x": values}).tolist() == [True, False, False]
    assert Threshold("x", True, 2.0).happened({"y": values}).tolist() == [False] * 3


def test_a_number_that_only_one_table_has_is_found() -> None:
    found = best_event({"x": noise(8, 400)}, {"y": noise(9, 400)}, classifier=False)
    assert found is not None
    assert found.bound > 3


def test_an_absent_name_is_absent_whether_or_not_another_run_has_it() -> None:
    event = OneOf("path", frozenset({""}))
    assert event.happened({"path": names(["", "yes"])}).tolist() == [True, False]
    assert event.happened({"n": np.zeros(2)}).tolist() == [True, True]


@pytest.mark.parametrize("rare", ["first", "second"])
@pytest.mark.parametrize("classifier", [False, True])
def test_a_name_that_one_run_of_one_table_has_does_not_tell_the_tables_apart(rare: str, classifier: bool) -> None:
    """A path that a single run of thousands has is no leak; the way in which its absence is stored must not be one either."""
    tables: dict[str, Columns] = {name: {"n": noise(seed), "m": noise(seed + 1)} for name, seed in (("first", 10), ("second", 12))}
    path = names([""] * 2000)
    path[0] = "yes"
    tables[rare]["path"] = path
    finding = finding_of("null", "the same distribution twice", tables["first"], tables["second"], 0.5, 0.0, LEVEL, classifier)
    assert not finding.violated
    assert finding.bounds["95 %"] < 0.5


def test_a_name_on_one_table_that_is_a_missing_number_on_the_other_is_absent_on_both() -> None:
    path = names([""] * 2000)
    path[0] = "yes"
    first: Columns = {"n": noise(14), "m": noise(15), "path": path}
    second: Columns = {"n": noise(16), "m": noise(17), "path": np.full(2000, np.nan)}
    assert not finding_of("null", "", first, second, 0.5, 0.0, LEVEL).violated


def test_nothing_released_is_no_event() -> None:
    assert best_event({}, {}) is None
    assert finding_of("none", "", {}, {}, 1.0, 0.0, LEVEL).event == "nothing was released"


def test_the_measuring_half_takes_no_part_in_the_search() -> None:
    """What is only in the second half of the runs is not found; what is only in the first is found and not confirmed."""
    leak, quiet = np.where(np.arange(2000) % 2 == 0, 9.0, 0.0), np.zeros(2000)
    searched = finding_of("x", "", {"x": leak}, {"x": quiet}, 1.0, 0.0, LEVEL, classifier=False)
    assert searched.event.startswith("x ")
    assert searched.hits[0] / searched.runs[0] == searched.hits[1] / searched.runs[1]
    assert not searched.violated
    first: Columns = {"x": noise(18), "hidden": np.where(np.arange(2000) % 2 == 1, 9.0, 0.0)}
    measured = finding_of("x", "", first, {"x": noise(19), "hidden": quiet}, 1.0, 0.0, LEVEL, classifier=False)
    assert "hidden ≥" not in measured.event
    assert not measured.violated
    assert measured.runs == (1000, 1000)
