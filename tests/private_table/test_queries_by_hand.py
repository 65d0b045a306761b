"""Every query against its theorem, computed by hand: from the same coins come the same answers, and the event is the one that is proven."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import exact as exact_answers
import numpy as np
import pytest
from strategies import oblivious_trees, small_schema, small_table

from hedgerow.accounting.events import (
    DISCRETE_GAUSSIAN,
    DISCRETE_LAPLACE,
    EXPONENTIAL,
    LOCAL_SENSITIVITY,
    PERMUTE_AND_FLIP,
    Event,
)
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Rho
from hedgerow.accounting.units import Unit
from hedgerow.accounting.zcdp import choice_epsilon
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import PlanError, TableError
from hedgerow.growers import rdt
from hedgerow.mechanisms.choices import exponential_mechanism, permute_and_flip
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.mechanisms.gaussian import discrete_gaussian
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.private_table import PrivateTable
from hedgerow.queries import (
    Best,
    BestModel,
    BestScale,
    BoostRound,
    Choose,
    ChooseLocally,
    ClassCounts,
    Confusion,
    GradientSums,
    LeafCounts,
    LeafSizes,
    Reliability,
    Rows,
    ScoreBins,
    Sizes,
    Tables,
)
from hedgerow.queries.reliability import MOST_BINS, checked_bins
from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI, information_gain, scores_of
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import GRID, AdditiveModel
from hedgerow.trees.splits import by_value

EPSILON = Fraction(1, 7)
RHO = Fraction(1, 70)
K = 3
PLAIN = Codebook(small_schema())
PERSONS = Codebook(replace(small_schema(), person="who", rows_per_person=K))
TREES = [rdt.build_tree_structure(PLAIN, 2, "bins", np.random.default_rng(i)) for i in range(3)]
TREE, NODES = TREES[0], TREES[0].levels[1]
BOOSTED = oblivious_trees(PLAIN, 2, 4)
MODEL = AdditiveModel(np.array([0.5, 0.0]), tuple(TREES[:1]), (np.random.default_rng(9).normal(0, 3, (TREES[0].n_nodes, 2)),))
SEEDS = range(12)
COLUMNS, LABELS = small_table(150)
each_k = pytest.mark.parametrize("k", [1, K])


def zeros(codes: np.ndarray) -> np.ndarray:
    return np.zeros(len(codes), dtype=np.int64)


def flags(codes: np.ndarray) -> np.ndarray:
    return np.minimum(codes[:, 1], 1).astype(np.int64)


def sure(codes: np.ndarray) -> np.ndarray:
    first = 1 / (1 + codes[:, 2])
    return np.stack([first, 1 - first], axis=1)


def engine_of(k: int) -> MemoryRows:
    if k == 1:
        return MemoryRows(COLUMNS, LABELS, PLAIN)
    return MemoryRows(COLUMNS, LABELS, PERSONS, persons=np.arange(150) // 4, key=bytes(16))


def asked(engine: MemoryRows, seed: int, query: Any, delta: Any = 0) -> tuple[Any, Event]:
    """The answer, and the one event."""
    reservation = Budget(1, delta).reserve(1, "test", delta, Unit.of(engine.codebook.schema))
    answer = query(PrivateTable(engine, reservation, SeededCoins(seed)))
    (event,) = reservation.events
    return answer, event


COUNTS: dict[str, tuple[Any, Any, int, int, int]] = {  # query; the truth; how many queries; L1 and squared L2 of one row
    "rows": (lambda t, p: [np.array([t.ask(Rows(), p)])], lambda e: [np.array([exact_answers.count_rows(e)])], 1, 1, 1),
    "leaf_counts": (lambda t, p: t.ask(LeafCounts(TREES), p), lambda e: exact_answers.leaf_counts(e, TREES), 3, 1, 1),
    "confusion": (lambda t, p: [t.ask(Confusion(flags), p)], lambda e: [exact_answers.confusion(e, flags)], 1, 1, 1),
    "reliability": (lambda t, p: [t.ask(Reliability(sure, 5), p)], lambda e: [exact_answers.reliability(e, sure, 5)], 1, 1, 1),
    "score_bins": (
        lambda t, p: [t.ask(ScoreBins(sure, 5, (0, 1)), p)],
        lambda e: [exact_answers.score_bins(e, sure, 5, (0, 1))],
        2,
        1,
        1,
    ),
    "sizes": (lambda t, p: [t.ask(Sizes(TREE, NODES), p)], lambda e: [exact_answers.class_counts(e, TREE, NODES).sum(axis=1)], 1, 1, 1),
    "class_counts": (
        lambda t, p: [t.ask(ClassCounts(TREE, NODES), p)],
        lambda e: [exact_answers.class_counts(e, TREE, NODES)[:, :2]],
        1,
        1,
        1,
    ),
    "leaf_sizes": (
        lambda t, p: t.ask(LeafSizes(TREES), p),
        lambda e: [counts.sum(axis=1) for counts in exact_answers.leaf_counts(e, TREES)],
        3,
        1,
        1,
    ),
    "gradient_sums": (
        lambda t, p: t.ask(GradientSums(TREES, MODEL), p),
        lambda e: exact_answers.gradient_sums(e, TREES, MODEL),
        3,
        GRID,
        GRID**2,
    ),
}


@each_k
@pytest.mark.parametrize("query", list(COUNTS))
def test_counts_are_the_truth_and_the_noise_of_the_coins(query: str, k: int) -> None:
    ask, truth, queries, l1, l2_squared = COUNTS[query]
    engine = engine_of(k)
    exact = truth(engine)
    for seed in SEEDS:
        answer, event = asked(engine, seed, lambda table: ask(table, EPSILON))
        assert event == Event(query, DISCRETE_LAPLACE, EPSILON, queries, Fraction(k * l1), 7 * queries * k * l1)
        coins = SeededCoins(seed)
        for found, counts in zip(answer, exact, strict=True):
            assert np.array_equal(found, counts + discrete_laplace(event.scale, counts.size, coins).reshape(counts.shape))
    answer, event = asked(engine, 1, lambda table: ask(table, Rho(RHO)), 1e-6)
    squared = k * k * l2_squared
    assert event == Event(query, DISCRETE_GAUSSIAN, Fraction(0), queries, Fraction(squared), 35 * queries * squared, RHO)
    coins = SeededCoins(1)
    for found, counts in zip(answer, exact, strict=True):
        assert np.array_equal(found, counts + discrete_gaussian(event.scale, counts.size, coins).reshape(counts.shape))


@each_k
@pytest.mark.parametrize("chosen", [1, 2])
def test_a_round_is_its_choices_and_the_noisy_sums_of_the_chosen_trees(chosen: int, k: int) -> None:
    """By the same coins, one after the other: a choice in each group, then the noise."""
    engine, group = engine_of(k), 4 // chosen
    for seed in SEEDS:
        for price, delta in ((EPSILON, 0), (Rho(RHO), 1e-6)):
            gaussian = isinstance(price, Rho)
            exact = exact_answers.round_sums(engine, BOOSTED, MODEL, gaussian)
            reservation = Budget(2, delta).reserve(2, "test", delta, Unit.of(engine.codebook.schema))
            table = PrivateTable(engine, reservation, SeededCoins(seed))
            places, sums = table.ask(BoostRound(BOOSTED, MODEL, gaussian, chosen), price)
            coins, expected = SeededCoins(seed), []
            *choices, counting = reservation.events
            choose, epsilon = (
                (exponential_mechanism, choice_epsilon(RHO / 5 / chosen)) if gaussian else (permute_and_flip, EPSILON * 3 / 10 / chosen)
            )
            most = 2027 if gaussian else 2048
            for number in range(chosen):
                scores = np.abs(exact[number * group : (number + 1) * group, :, :1]).sum(axis=(1, 2))[None]
                expected.append(number * group + int(choose(scores, np.ones((1, group), dtype=bool), epsilon / (2 * most * k), coins)[0]))
                mechanism = EXPONENTIAL if gaussian else PERMUTE_AND_FLIP
                scale = 2 * Fraction(most * k, GRID) / epsilon
                assert choices[number] == Event("choose_tree", mechanism, epsilon, 1, Fraction(most * k, GRID), scale)
            assert places == expected
            draw = discrete_gaussian if gaussian else discrete_laplace
            assert np.array_equal(sums, exact[places] + draw(counting.scale, sums.size, coins).reshape(sums.shape))
            if gaussian:
                squared, rho = (most * k) ** 2, RHO * 4 / 5
                assert counting == Event(
                    "boost_round", DISCRETE_GAUSSIAN, Fraction(0), chosen, Fraction(squared), chosen * squared / (2 * rho), rho
                )
            else:
                left = EPSILON * 7 / 10
                assert counting == Event("boost_round", DISCRETE_LAPLACE, left, chosen, Fraction(most * k), chosen * most * k / left)


@each_k
def test_tables_are_noisy_where_they_are_asked_and_0_elsewhere(k: int) -> None:
    """Attributes 0 and 2 of one node, 1 of all others: no row is in more than two tables."""
    engine = engine_of(k)
    wanted = np.zeros((len(NODES), 4), dtype=bool)
    wanted[0, [0, 2]] = wanted[1:, 1] = True
    answer, event = asked(engine, 5, lambda table: table.ask(Tables(TREE, NODES, wanted), EPSILON))
    assert event == Event("tables", DISCRETE_LAPLACE, EPSILON, 2, Fraction(k), Fraction(14 * k))
    exact = exact_answers.split_counts(engine, TREE, NODES)
    noisy = exact + discrete_laplace(event.scale, exact.size, SeededCoins(5)).reshape(exact.shape)
    assert np.array_equal(answer, np.where(np.repeat(wanted, PLAIN.sizes, axis=1)[:, :, None], noisy, 0))


@each_k
@pytest.mark.parametrize("score", [GINI, MAX, NORMAL_GINI, information_gain(1000)])
@pytest.mark.parametrize("mechanism", [PERMUTE_AND_FLIP, EXPONENTIAL])
def test_splits_are_chosen_at_the_proven_rate(score: Any, mechanism: str, k: int) -> None:
    engine = engine_of(k)
    candidates = by_value(engine.codebook)
    allowed = np.random.default_rng(0).random((len(NODES), len(candidates))) < 0.7
    allowed[:, 0] = True
    sensitivity = score.sensitivity / score.unit * k
    rate = EPSILON / sensitivity / (1 if score.monotone else 2)
    law = permute_and_flip if mechanism == PERMUTE_AND_FLIP else exponential_mechanism
    exact = scores_of(score, exact_answers.split_counts(engine, TREE, NODES), candidates)
    for seed in SEEDS:
        chosen, event = asked(engine, seed, lambda table: table.ask(Choose(TREE, NODES, candidates, allowed, score, mechanism), EPSILON))
        assert event == Event("choose", mechanism, EPSILON, 1, sensitivity, 1 / rate)
        assert np.array_equal(chosen, law(exact, allowed, rate / score.unit, SeededCoins(seed)))


def test_splits_are_chosen_by_permute_and_flip_unless_it_is_said() -> None:
    engine = engine_of(1)
    candidates = by_value(PLAIN)
    allowed = np.ones((len(NODES), len(candidates)), dtype=bool)
    _, event = asked(engine, 0, lambda table: table.ask(Choose(TREE, NODES, candidates, allowed, MAX), EPSILON))
    assert event.mechanism == PERMUTE_AND_FLIP


@each_k
def test_local_choices_have_the_rates_of_their_paper(k: int) -> None:
    """ε(n + 1)²/4n for the Gini index at a node of n rows, n of at least 1; k rows of a person share it."""
    engine = engine_of(k)
    candidates = by_value(engine.codebook)
    allowed = np.random.default_rng(1).random((len(NODES), len(candidates))) < 0.7
    allowed[:, 1] = True
    sizes = np.resize([-4, 0, 1, 2, 9, 100], len(NODES))
    exact = scores_of(NORMAL_GINI, exact_answers.split_counts(engine, TREE, NODES), candidates)
    for seed in SEEDS:
        chosen, event = asked(engine, seed, lambda table: table.ask(ChooseLocally(TREE, NODES, candidates, allowed, sizes), EPSILON))
        assert (event.query, event.mechanism, event.epsilon, event.queries) == ("choose", LOCAL_SENSITIVITY, EPSILON, 1)
        assert (event.sensitivity, event.scale) == (Fraction(k, 2), k / EPSILON)  # at one row, the smallest node
        coins = SeededCoins(seed)
        for i, size in enumerate(np.maximum(sizes, 1).tolist()):
            rate = EPSILON * (size + 1) ** 2 / (4 * size) / NORMAL_GINI.unit / k
            assert chosen[i] == exponential_mechanism(exact[[i]], allowed[[i]], rate, coins)[0]
        assert chosen.dtype == np.int64


@each_k
def test_the_best_predictor_is_chosen_at_the_proven_rate(k: int) -> None:
    engine = engine_of(k)
    predictors = [zeros, flags, lambda codes: 1 - zeros(codes)]
    right = np.array([[np.trace(table[:2]) for table in exact_answers.confusions(engine, predictors)]], dtype=np.int64)
    for seed in range(60):
        chosen, event = asked(engine, seed, lambda table: table.ask(Best(predictors), EPSILON / 7))
        assert event == Event("best", PERMUTE_AND_FLIP, EPSILON / 7, 1, Fraction(k), Fraction(49 * k))
        assert chosen == permute_and_flip(right, np.ones((1, 3), dtype=bool), EPSILON / 7 / k, SeededCoins(seed))[0]


@each_k
def test_the_best_model_is_chosen_at_the_proven_rate(k: int) -> None:
    engine = engine_of(k)
    other = AdditiveModel(np.array([0.3, 0.0]), (), ())
    models = [MODEL.probabilities, exact_answers.even, other.probabilities]
    scores = -np.array([exact_answers.brier_sums(engine, MODEL, np.array([1.0, 1e-300])).tolist()
                        + exact_answers.brier_sums(engine, other, np.ones(1)).tolist()])  # fmt: skip
    assert len(set(scores[0].tolist())) == 3
    for seed in range(60):
        chosen, event = asked(engine, seed, lambda table: table.ask(BestModel(models), EPSILON))
        assert event == Event("best_model", PERMUTE_AND_FLIP, EPSILON, 1, Fraction(2 * k), Fraction(14 * k))
        assert chosen == permute_and_flip(scores, np.ones((1, 3), dtype=bool), EPSILON / (2 * k) / GRID, SeededCoins(seed))[0]


@pytest.mark.parametrize("wrong", [lambda codes: np.ones((len(codes), 1)), lambda codes: np.ones((1, 2)), lambda codes: np.ones(2)])
def test_probabilities_of_another_shape_choose_nothing(wrong: Any) -> None:
    with pytest.raises(TableError, match="one number for each row and class"):
        asked(engine_of(1), 0, lambda table: table.ask(BestModel([exact_answers.even, wrong]), EPSILON))


def test_no_models_are_refused_before_they_cost() -> None:
    with pytest.raises(PlanError, match="got no models"):
        asked(engine_of(1), 0, lambda table: table.ask(BestModel([]), EPSILON))


@each_k
def test_the_best_scale_is_chosen_at_the_proven_rate(k: int) -> None:
    engine = engine_of(k)
    scales = (1.0, 0.5, 0.25)
    scores = -exact_answers.brier_sums(engine, MODEL, np.array(scales))[None]
    for seed in range(60):
        chosen, event = asked(engine, seed, lambda table: table.ask(BestScale(MODEL, scales), EPSILON))
        assert event == Event("best_scale", PERMUTE_AND_FLIP, EPSILON, 1, Fraction(2 * k), Fraction(14 * k))
        assert chosen == permute_and_flip(scores, np.ones((1, 3), dtype=bool), EPSILON / (2 * k) / GRID, SeededCoins(seed))[0]


# ---------------------------------------------------------------- ends of ranges


def test_how_many_bins() -> None:
    assert (checked_bins(1), checked_bins(1000)) == (1, MOST_BINS)
    with pytest.raises(PlanError, match="at most 1000"):
        checked_bins(1001)
    with pytest.raises(PlanError, match=r"^bins"):
        checked_bins(0)


@pytest.mark.parametrize("scales", [(), (0.0, 0.5), (4.1, 0.5), (float("nan"),), ((0.5, 1.0),), 0.5, (-0.5,)])
def test_scales_are_above_0_and_at_most_4(scales: Any) -> None:
    reservation = Budget(1).reserve(1, "test")
    table = PrivateTable(engine_of(1), reservation, SeededCoins(0))
    with pytest.raises(PlanError, match="best_scale"):
        table.ask(BestScale(MODEL, scales), EPSILON)
    assert reservation.events == ()
    assert table.ask(BestScale(MODEL, (4.0,)), EPSILON) == 0
    assert table.ask(BestScale(MODEL, (1e-9,)), EPSILON) == 0


def test_what_is_asked_must_fit() -> None:
    """One fault at a time, each refused before anything is charged."""
    reservation = Budget(1).reserve(1, "test")
    table = PrivateTable(engine_of(1), reservation, SeededCoins(0))
    narrow = Codebook(replace(small_schema(), attributes=small_schema().attributes[:2]))
    other = rdt.build_tree_structure(narrow, 1, "bins", np.random.default_rng(0))
    foreign = AdditiveModel(np.zeros(2), (other,), (np.zeros((other.n_nodes, 2)),))
    three = AdditiveModel(np.zeros(3), (), ())
    candidates, allowed = by_value(PLAIN), np.ones((len(NODES), 4), dtype=bool)
    root = np.array([0])
    nobody = allowed.copy()
    nobody[0] = False
    wrong: list[Any] = [
        lambda: table.ask(LeafCounts([]), EPSILON),
        lambda: table.ask(LeafCounts([TREE, other]), EPSILON),
        lambda: table.ask(GradientSums([], MODEL), EPSILON),
        lambda: table.ask(GradientSums(TREES, foreign), EPSILON),
        lambda: table.ask(GradientSums(TREES, three), EPSILON),
        lambda: table.ask(GradientSums(TREES, object()), EPSILON),  # type: ignore[arg-type]
        lambda: table.ask(GradientSums([TREE, other], MODEL), EPSILON),
        lambda: table.ask(BestScale(foreign, (1.0,)), EPSILON),
        lambda: table.ask(BestScale(three, (1.0,)), EPSILON),
        lambda: table.ask(BestScale(object(), (1.0,)), EPSILON),  # type: ignore[arg-type]
        lambda: table.ask(Sizes(other, root), EPSILON),
        lambda: table.ask(Sizes(TREE, np.array([], dtype=np.int64)), EPSILON),
        lambda: table.ask(Sizes(TREE, np.array([0, 1])), EPSILON),
        lambda: table.ask(Tables(TREE, NODES, allowed.astype(np.int64)), EPSILON),
        lambda: table.ask(Tables(TREE, NODES, allowed[:, :3]), EPSILON),
        lambda: table.ask(Tables(TREE, NODES, allowed[:-1]), EPSILON),
        lambda: table.ask(Tables(TREE, NODES, np.zeros_like(allowed)), EPSILON),
        lambda: table.ask(Choose(TREE, NODES, candidates, allowed.astype(np.int64), MAX), EPSILON),
        lambda: table.ask(Choose(TREE, NODES, candidates, allowed[:-1], MAX), EPSILON),
        lambda: table.ask(Choose(TREE, NODES, candidates, nobody, MAX), EPSILON),
        lambda: table.ask(Choose(TREE, NODES, by_value(PERSONS), allowed, MAX), EPSILON),
        lambda: table.ask(Choose(TREE, NODES, candidates, allowed, MAX, LOCAL_SENSITIVITY), EPSILON),
        lambda: table.ask(ChooseLocally(TREE, NODES, candidates, nobody, np.full(len(NODES), 9)), EPSILON),
        lambda: table.ask(ChooseLocally(TREE, NODES, candidates, allowed, np.full(len(NODES) - 1, 9)), EPSILON),
        lambda: table.ask(Best([]), EPSILON),
    ]
    for call in wrong:
        with pytest.raises(PlanError):
            call()
    assert reservation.events == ()
