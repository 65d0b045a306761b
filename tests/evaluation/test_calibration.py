"""Calibration: what one row changes, the law of the noise, what is made of the counts, and that refusals spend nothing."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import exact as exact_answers
import numpy as np
import pandas as pd
import pytest
from strategies import small_schema, small_table

import hedgerow.parallel as parallel
from hedgerow import Budget, PrivateRDTClassifier, RandomDecisionTreesClassifier, calibration, private_calibration
from hedgerow.accounting.loss import noise_variance
from hedgerow.accounting.prices import Rho
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, PlanError, TableError
from hedgerow.evaluation.private import private_evaluation, private_score
from hedgerow.inference.calibration import Calibration, growth
from hedgerow.plots.reliability_svg import reliability_svg
from hedgerow.plots.report import html_report
from hedgerow.private_table import PrivateTable
from hedgerow.queries import Reliability
from hedgerow.queries.reliability import bin_edges, reliability
from hedgerow.release.certificate import no_certificate
from hedgerow.schema.codebook import Codebook

COLUMNS, LABELS = small_table(4000)
MODEL = PrivateRDTClassifier(small_schema(), 20, random_state=0).fit(COLUMNS, LABELS)
TEST, TRUTH = small_table(2000, seed=1)
CODEBOOK = Codebook(small_schema())
NOTHING = no_certificate("a test")


def stretched(share: float) -> float:
    """In equal steps of it bins are narrow near 1."""
    return 1 / (1 + math.sqrt((1 - share) / share))


def by_hand(shares: Any, classes: Any, n_classes: int, bins: int) -> np.ndarray:
    counts = np.zeros((bins, 2), dtype=np.int64)
    low = 1 / n_classes
    for row, label in zip(shares, classes, strict=True):
        if label < n_classes:
            top = max(row) if all(math.isfinite(p) for p in row) else low
            first = stretched(low)
            place = min(max(int((stretched(top) - first) / (1 - first) * bins + 1e-12), 0), bins - 1)
            counts[place, int(list(row).index(top) == label if top in list(row) else label == 0)] += 1
    return counts


# ---------------------------------------------------------------- the counts


def test_counts_as_by_hand() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([0.5, 0.5, 0.5], 500)
    classes = rng.integers(0, 4, 500).astype(np.uint16)  # 3: not declared
    counts = reliability(shares, classes, 3, bin_edges(3, 7))
    assert np.array_equal(counts, by_hand(shares, classes, 3, 7))
    assert counts.sum() == (classes < 3).sum()


def test_what_is_not_finite_is_in_the_lowest_bin_and_no_error() -> None:
    bad = [[math.nan, 1.0], [math.inf, 0.0], [-math.inf, 1.0], [math.nan, math.nan], [7.0, -3.0], [0.1, 0.1]]
    counts = reliability(np.array(bad), np.zeros(6, dtype=np.uint16), 2, bin_edges(2, 4))
    assert counts.tolist() == [[0, 5], [0, 0], [0, 0], [0, 1]]  # 7 is finite: the highest bin


def test_edges_belong_to_the_bin_above_and_one_class_has_bins_too() -> None:
    edges = bin_edges(2, 4)
    shares = np.stack([edges, 1 - edges], axis=1)
    assert reliability(shares, np.zeros(5, dtype=np.uint16), 2, edges)[:, 1].tolist() == [1, 1, 1, 2]
    assert reliability(np.ones((3, 1)), np.zeros(3, dtype=np.uint16), 1, bin_edges(1, 2)).sum() == 3


def test_one_row_changes_one_cell_by_one() -> None:
    """Every table of up to two rows over every combination of values, and every row that can be added to it."""
    release = MODEL.release_
    ages, shapes, labels = (20.0, 90.0), ("round", ""), ("no", "yes", "neither")
    rows = list(itertools.product(("red", "blue", "??"), (1, 7), ages, shapes, labels))
    names = ("colour", "flag", "age", "shape")

    def counted(table: tuple[Any, ...]) -> np.ndarray:
        columns = {name: np.array([row[i] for row in table], dtype=object) for i, name in enumerate(names)}
        return exact_answers.reliability(
            MemoryRows(columns, np.array([row[4] for row in table], dtype=object), CODEBOOK), release.predict_codes_proba, 6
        )

    alone = {row: counted((row,)) for row in rows}
    for row, counts in alone.items():
        assert counts.min() >= 0
        assert counts.sum() == (row[4] != "neither")
    for first in rows[::5]:
        for second in rows[::7]:
            assert np.array_equal(counted((first, second)), alone[first] + alone[second])


def test_blocks_threads_and_files_count_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = calibration(MODEL, TEST, TRUTH).counts
    seen = []
    ask = MODEL.release_.predict_codes_proba

    def watched(codes: np.ndarray) -> np.ndarray:
        seen.append(len(codes))
        return ask(codes)

    monkeypatch.setattr("hedgerow.engines.memory.row_blocks", lambda rows: parallel.row_blocks(rows, 64))
    for n_jobs in (1, 4):
        assert np.array_equal(exact_answers.reliability(MemoryRows(TEST, TRUTH, CODEBOOK, n_jobs), watched, 10), whole)
    assert max(seen) == 64  # never the whole table
    pd.DataFrame({**TEST, "class": TRUTH}).to_csv(tmp_path / "test.csv", index=False)
    assert np.array_equal(calibration(MODEL, tmp_path / "test.csv").counts, whole)


def test_probabilities_of_another_shape_are_refused() -> None:
    for wrong in (lambda codes: np.ones((len(codes), 3)), lambda codes: np.ones((1, 2)), lambda codes: np.ones(len(codes))):
        with pytest.raises(TableError):
            exact_answers.reliability(MemoryRows(TEST, TRUTH, CODEBOOK), wrong, 10)


# ---------------------------------------------------------------- the noise


@pytest.mark.parametrize("price", [Fraction(1, 2), Rho(Fraction(1, 20))])
def test_the_noise_is_the_one_that_is_charged(price: Any) -> None:
    """4,000 draws of noise: their variance is known to about 4 % (Laplace, kurtosis 6), and 8 times that is never seen."""
    budget = Budget(1000, "1e-6").reserve(1000, "test", "1e-6")
    table = PrivateTable(MemoryRows({name: column[:9] for name, column in TEST.items()}, TRUTH[:9], CODEBOOK), budget)
    exact = exact_answers.reliability(
        MemoryRows({name: column[:9] for name, column in TEST.items()}, TRUTH[:9], CODEBOOK), MODEL.release_.predict_codes_proba, 5
    )
    noise = np.array([table.ask(Reliability(MODEL.release_.predict_codes_proba, 5), price) - exact for _ in range(400)])
    said = noise_variance(Fraction(2)) if isinstance(price, Fraction) else 10.0
    assert noise.var() == pytest.approx(said, rel=0.3)
    assert abs(noise.mean()) < 8 * math.sqrt(said / noise.size)
    event = budget.events[0]
    assert (event.query, event.queries, event.sensitivity) == ("reliability", 1, 1)


def test_the_truth_within_its_error() -> None:
    exact = calibration(MODEL, TEST, TRUTH)
    noisy = private_calibration(MODEL, TEST, TRUTH, epsilon=1)
    assert noisy.certificate.epsilon == "1"
    assert [event.query for event in noisy.certificate.events] == ["reliability"]
    assert noisy.noise_scale == 1
    assert np.abs(noisy.counts - exact.counts).max() < 40 * noisy.noise_sd
    assert abs(noisy.rows - 2000) < 8 * noisy.rows_error
    assert abs(noisy.ece - exact.ece) < 8 * noisy.ece_error
    assert "calibration error 0." in repr(noisy)


def test_public_rows_are_exact_and_say_that_nothing_was_charged() -> None:
    found = calibration(MODEL, TEST, TRUTH, bins=8)
    shares = MODEL.predict_proba(TEST)
    labels = (TRUTH == "yes").astype(int)
    assert np.array_equal(found.counts, by_hand(shares, labels, 2, 8))
    assert found.rows == 2000
    assert not found.charged
    assert "not charged" in repr(found)
    assert "nothing was charged" in found.certificate.sentence()
    top, right = shares.max(axis=1), shares.argmax(axis=1) == labels
    place = np.array([min(int((stretched(each) - 0.5) * 16 + 1e-12), 7) for each in top])
    middles = [sum(u * u / (u * u + (1 - u) ** 2) for u in (0.5 + b / 16, 0.5 + (b + 1) / 16)) / 2 for b in range(8)]
    ece = sum((place == b).mean() * abs(right[place == b].mean() - middles[b]) for b in np.unique(place))
    assert found.ece == pytest.approx(ece)


# ---------------------------------------------------------------- what is made of them


def simulated(rows: int, off: float, scale: Fraction, runs: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """(exact ECE, raw noisy ECE, ece, ece_error, by_chance) of forests that are right by `off` more often than they say."""
    rng = np.random.default_rng(seed)
    edges = bin_edges(2, 10)
    rate = np.clip((edges[1:] + edges[:-1]) / 2 + off, 0, 1)
    p = -math.expm1(-1 / scale)
    found = []
    for _ in range(runs):
        bins = rng.multinomial(rows, np.full(10, 0.1))
        right = rng.binomial(bins, rate)
        counts = np.stack([bins - right, right], axis=1)
        exact = Calibration(counts, edges, Fraction(0), NOTHING)
        noisy = Calibration(counts + rng.geometric(p, (10, 2)) - rng.geometric(p, (10, 2)), edges, scale, NOTHING)
        raw = np.abs(noisy._gaps).sum() / noisy.rows
        found.append((exact.ece, raw, noisy.ece, noisy.ece_error, exact.by_chance))
    return tuple(np.array(found).T)


@pytest.mark.parametrize("off", [0, -0.05, -0.2, 0.1])
def test_the_error_of_the_calibration_error_is_honest(off: float) -> None:
    exact, raw, ece, error, _ = simulated(1000, off, Fraction(4), 400)
    assert (np.abs(ece - exact) < 2 * error).mean() > 0.95
    assert math.sqrt(((ece - exact) ** 2).mean()) < 1.1 * error.mean()
    assert abs((ece - exact).mean()) < 0.6 * abs((raw - exact).mean()) + 0.002  # most of what noise adds is gone
    assert (ece - exact).mean() > -0.003  # and no forest looks better than it is


def test_what_the_draw_of_rows_makes() -> None:
    """What the middles add is not in these forests, which say the middle of a bin exactly: it is taken out of what is stated."""
    exact, _, _, _, chance = simulated(1000, 0, Fraction(4), 400)
    found = Calibration(np.full((10, 2), 50), bin_edges(2, 10), Fraction(0), NOTHING)
    m = found.middles
    alone = float(np.sqrt(2 / math.pi * 100 * m * (1 - m)).sum() / 1000)
    assert alone < found.by_chance < 2 * alone
    assert exact.mean() == pytest.approx(chance.mean(), rel=1)
    assert exact.mean() < chance.mean()


@pytest.mark.parametrize(("says", "right"), [(0.998, 0.928), (0.998, 0.998), (0.985, 0.985), (0.97, 0.90), (0.94, 0.94), (0.7, 0.6)])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_forest_that_always_says_the_same(says: float, right: float, classes: int) -> None:
    """Of bins of equal width one had nearly all rows of a rare class: 0.070 was stated as 0.039 ± 0.005, and 0 as 0.031 ± 0.002."""
    rng = np.random.default_rng(classes)
    edges, rows = bin_edges(classes, 10), 4000
    shares = np.full((rows, classes), (1 - says) / (classes - 1))
    shares[:, 0] = says
    labels = np.where(rng.random(rows) < right, 0, 1).astype(np.uint16)
    exact = Calibration(reliability(shares, labels, classes, edges), edges, Fraction(0), NOTHING)
    assert exact.ece == pytest.approx(abs(says - (labels == 0).mean()), abs=2.2 * exact.ece_error)
    assert exact.ece_error < 0.03 if says < 0.9 else exact.ece_error < 0.016
    if says == right:
        assert exact.ece < 2.5 * exact.by_chance


@pytest.mark.parametrize("middle", [1 / 3, 0.5, 0.7, 1.0])
def test_what_noise_adds_to_a_distance(middle: float) -> None:
    rng = np.random.default_rng(0)
    z = (1 - middle) * rng.laplace(0, 4, 10**6) - middle * rng.laplace(0, 4, 10**6)
    for gap in (0.0, 3.0, -10.0):
        told = growth(np.array([gap]), np.array([middle]), 4.0)[0]
        assert told == pytest.approx(np.abs(gap + z).mean() - abs(gap), abs=0.04)


def test_shares_with_their_errors() -> None:
    counts = np.array([[40, 60], [3, -2], [0, 500], [0, 0]])
    noisy = Calibration(counts, bin_edges(2, 4), Fraction(2), NOTHING)
    assert noisy.seen.tolist() == [True, False, True, False]
    assert noisy.shares[[0, 2]].tolist() == [0.6, 1.0]
    assert np.isnan(noisy.shares[[1, 3]]).all()
    expected = math.sqrt(noisy.noise_sd**2 * (0.4**2 + 0.6**2) / 100**2 + 0.6 * 0.4 / 100)
    assert noisy.share_errors[0] == pytest.approx(expected, rel=0.01)
    assert 0 < noisy.share_errors[2] < 0.02
    empty = Calibration(np.zeros((4, 2), dtype=np.int64), bin_edges(2, 4), Fraction(0), NOTHING)
    assert (empty.ece, empty.by_chance, empty.seen.any()) == (0, 0, False)


# ---------------------------------------------------------------- what it costs


def test_refusals_spend_nothing() -> None:
    budget = Budget("0.15")
    private_calibration(MODEL, TEST, TRUTH, epsilon="0.1", budget=budget)
    assert [entry.what for entry in budget.entries] == ["calibration"]
    for wrong, error in [
        ({"epsilon": "0.1"}, BudgetError),
        ({"epsilon": 0}, PlanError),
        ({"epsilon": "0.01", "bins": 0}, PlanError),
        ({"epsilon": "0.01", "bins": 2.5}, PlanError),
        ({"epsilon": "0.01", "bins": True}, PlanError),
        ({"epsilon": "0.01", "bins": 10**9}, PlanError),
        ({"epsilon": "1e-30"}, PlanError),
        ({"epsilon": "0.01", "y": TRUTH[:-1]}, TableError),
        ({"epsilon": "0.01", "X": {"colour": TEST["colour"]}}, TableError),
        ({"epsilon": "0.01", "X": "absent.csv"}, TableError),
        ({"epsilon": "0.01", "release": "forest.json"}, PlanError),
    ]:
        for ask in (private_calibration, private_evaluation):
            with pytest.raises(error):
                ask(**{"release": MODEL, "X": TEST, "y": TRUTH, "budget": budget, **wrong})
    assert budget.spent == Fraction(1, 10)


def test_both_at_once_share_one_charge() -> None:
    budget = Budget(1)
    score, found = private_evaluation(MODEL, TEST, TRUTH, epsilon="0.5", budget=budget)
    assert budget.spent == Fraction(1, 2)
    assert len(budget.entries) == 1
    assert score.certificate == found.certificate
    assert [(event.query, event.epsilon) for event in found.certificate.events] == [("confusion", "0.25"), ("reliability", "0.25")]
    assert found.certificate.epsilon == "0.5"
    assert score.noise_scale == found.noise_scale == 4


def test_a_forest_without_a_guarantee_gives_none_to_its_calibration() -> None:
    plain = RandomDecisionTreesClassifier(schema=small_schema(), random_state=0).fit(COLUMNS, LABELS)
    found = private_calibration(plain, TEST, TRUTH, epsilon=1)
    assert not found.certificate.private


# ---------------------------------------------------------------- pictures


def test_the_picture_shows_every_bin_that_is_seen() -> None:
    for found in (private_calibration(MODEL, TEST, TRUTH, epsilon=1), calibration(MODEL, TEST, TRUTH, bins=3)):
        drawn = reliability_svg(found)
        root = ElementTree.fromstring(drawn)
        assert drawn.count("<circle") == found.seen.sum()
        assert drawn.count("<g>") == len(found.counts)
        assert "stroke-dasharray" in drawn
        assert "nan" not in drawn
        assert "calibration error" in "".join(root.itertext())


def test_the_report_has_a_section_and_counts_each_charge_once() -> None:
    score, both = private_evaluation(MODEL, TEST, TRUTH, epsilon="0.5")
    page = html_report(MODEL.release_, score=score, calibration=both)
    assert "Expected calibration error" in page
    assert "paid for together with the score" in page
    assert "together cost ε = 20.5" in page
    alone = private_calibration(MODEL, TEST, TRUTH, epsilon="0.25")
    assert "the release and its calibration together cost ε = 20.25" in html_report(MODEL.release_, calibration=alone)
    other = private_score(MODEL, TEST, TRUTH, epsilon="0.5")
    page = html_report(MODEL.release_, score=other, calibration=alone)
    assert "the release, its score and its calibration together cost ε = 20.75" in page
    public = html_report(MODEL.release_, calibration=calibration(MODEL, TEST, TRUTH))
    assert "nothing was charged" in public
    assert "Expected calibration error" not in html_report(MODEL.release_)
