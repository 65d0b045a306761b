"""Membership inference. A verdict of "violated" on an honest release has a chance of at most one in a million (FALSE_ALARM), by the
bounds themselves; three tests train honest releases with fresh noise, and their other statements have margins of at least 1e-9."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import binom

from hedgerow.audit.algorithms import Trainer
from hedgerow.audit.membership import attacks_on, best_threshold, interval_of, membership, probability_of, rarest_rows
from hedgerow.audit.membership_report import HEADS, membership_svg, rows_of, sentences
from hedgerow.audit.neighbours import SMALL, Table, plain_row
from hedgerow.audit.outputs import aligned
from hedgerow.errors import PlanError

RDT = {"n_estimators": 1, "max_depth": 1}


@pytest.fixture
def table() -> Table:
    """Row 4 is the only one with its values and its class."""
    rows = [plain_row(SMALL)] * 30
    return Table.of([*rows[:3], plain_row(SMALL, 1, a=1, b=2), *rows[3:]], SMALL)


def test_the_rarest_rows_come_first_and_none_twice(table: Table) -> None:
    assert rarest_rows(table, 5) == [3, 0]  # 30 rows are alike: one of them stands for all


def test_a_row_without_a_declared_class_is_no_target(table: Table) -> None:
    target = table.target.copy()
    target[3] = "?"
    assert rarest_rows(Table(table.columns, target, table.schema), 5) == [0]
    with pytest.raises(PlanError, match="no declared class"):
        membership(Trainer("PrivateRDTClassifier", "1", RDT), Table(table.columns, target, table.schema), epsilon=1, targets=[3], runs=40)


@pytest.mark.slow
@pytest.mark.statistical
def test_an_honest_release_stays_below_its_bound(table: Table) -> None:
    report = membership(Trainer("PrivateRDTClassifier", "1", RDT), table, epsilon=1, runs=100, targets=2, workers=1)
    assert not report.violated
    assert report.allowed == pytest.approx((np.e - 1) / (np.e + 1))
    assert {attack.kind for attack in report.attacks} == {"probability", "best event"}
    assert {attack.row for attack in report.attacks} == {3, 0}
    assert all(attack.runs == (50, 50) for attack in report.attacks)
    for attack in report.attacks:
        assert attack.corrected[0] <= attack.interval[0] <= attack.advantage <= attack.interval[1] <= attack.corrected[1]


@pytest.mark.slow
@pytest.mark.statistical
def test_a_release_that_claims_too_little_is_caught(table: Table) -> None:
    """Trained at ε = 40, claimed 0.1: the noise is 0 in all but e^-40 of the runs, the row is seen, and 0.05 is allowed."""
    report = membership(Trainer("PrivateRDTClassifier", "40", RDT), table, epsilon=0.1, runs=100, targets=[3], workers=1)
    assert report.violated
    assert report.strongest.advantage > 0.9
    assert sentences(report)[-1].startswith("VIOLATED")


@pytest.mark.slow
@pytest.mark.statistical
def test_growing_trees_on_the_same_table_twice_gives_no_advantage(table: Table) -> None:
    """Paths that only some runs have must not tell the sides apart: both sides are trained on the same rows."""
    from hedgerow.audit.attack import batch
    from hedgerow.audit.membership import Seen

    train = Trainer("DPDFClassifier", "1", {"max_depth": 3, "min_rows": 5})
    seen = Seen({name: column[[3]] for name, column in table.columns.items()}, (1,), (3,))
    one, two = (batch(train, seen, table, 200) for _ in range(2))
    assert not any(attack.violated for attack in attacks_on(3, [3], one, two, 0.0, 2))


def test_both_sides_have_the_same_columns() -> None:
    path = np.array(["", "yes"], dtype=object)
    one, two = aligned({"n": np.zeros(2), "path": path}, {"n": np.ones(3), "m": np.ones(3)})
    assert one.keys() == two.keys()
    assert two["path"].tolist() == [""] * 3
    assert np.isnan(one["m"]).all()
    assert (len(one["n"]), len(two["n"])) == (2, 3)


def test_the_threshold_is_the_one_with_the_largest_advantage() -> None:
    name = probability_of(0)
    event, swapped = best_threshold(name, {name: np.array([1.0, 2, 3, 4])}, {name: np.array([-1.0, 0, 1, 1.5])})
    assert (event.words.endswith("≥ 2"), swapped) == (True, False)
    _, swapped = best_threshold(name, {name: np.array([0.0, 0.1])}, {name: np.array([5.0, 6.0])})
    assert swapped


@pytest.mark.slow
def test_intervals_cover_the_difference_as_often_as_they_say() -> None:
    """Summed exactly over both binomials."""
    runs, k = 30, np.arange(31)
    for p, q in ((0.5, 0.5), (0.9, 0.2), (1.0, 0.0), (0.3, 0.25)):
        chances = np.outer(binom.pmf(k, runs, p), binom.pmf(k, runs, q))
        inside = np.array([[low <= p - q + 1e-12 and p - q - 1e-12 <= high for low, high in
                            (interval_of((int(a), int(b)), (runs, runs), 0.05) for b in k)] for a in k])  # fmt: skip
        assert chances[inside].sum() >= 0.95


def test_what_cannot_be_attacked_is_refused(table: Table) -> None:
    train = Trainer("PrivateRDTClassifier", "1", RDT)
    for wrong in ({"runs": 10}, {"runs": 40, "targets": [99]}, {"runs": 40, "targets": []}):
        with pytest.raises(PlanError, match="expected at least"):
            membership(train, table, epsilon=1, **wrong)  # type: ignore[arg-type]


def test_a_function_that_always_fails_is_refused_rather_than_found_harmless(table: Table) -> None:
    def broken(_: Any) -> Any:
        raise TypeError("a bad call")

    with pytest.raises(PlanError, match="TypeError: a bad call"):
        membership(broken, table, epsilon=1, runs=40, workers=1)


def test_words_and_picture(table: Table) -> None:
    report = membership(Trainer("PrivateRDTClassifier", "1", RDT), table, epsilon=1, runs=60, targets=[3], what="a <b>", workers=1)
    assert all(len(row) == len(HEADS) for row in rows_of(report))
    assert rows_of(report)[0][0] == "4"
    found, bound, _ = sentences(report)
    assert "row 4" in found
    assert "0.462" in bound
    picture = membership_svg(report)
    ElementTree.fromstring(picture)
    assert "a &lt;b&gt;" in picture
