"""The queries: charge before look, the stated noise, and no other way to the rows."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import exact as exact_answers
import numpy as np
import pytest
from strategies import oblivious_trees, small_schema, small_table

from hedgerow.accounting.events import EXPONENTIAL
from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.accounting.prices import Rho
from hedgerow.accounting.zcdp import rho_for
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, PlanError
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.mechanisms.noise import opendp_laplace
from hedgerow.private_table import PrivateTable, is_private_table
from hedgerow.queries import (
    BY_NAME,
    Best,
    BestModel,
    BestScale,
    BoostRound,
    Choose,
    ChooseLocally,
    ChooseTree,
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
from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI, Score, information_gain, scores_of
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.splits import by_threshold, by_value
from hedgerow.trees.tree import Tree

CODEBOOK = Codebook(small_schema())
TREES = [rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(i)) for i in range(3)]
TREE, NODES = TREES[0], TREES[0].levels[1]
CANDIDATES = by_value(CODEBOOK)
ALL = np.ones((len(NODES), len(CANDIDATES)), dtype=bool)  # every attribute asked, every candidate allowed
SIZES = np.full(len(NODES), 100)
BOOSTED = oblivious_trees(CODEBOOK, 2, 4)
MODEL = AdditiveModel(np.array([0.5, 0.0]), tuple(TREES[:1]), (np.random.default_rng(9).normal(size=(TREES[0].n_nodes, 2)),))


def private(rows: int, epsilon: Any = 10, coins: Any = None) -> tuple[PrivateTable, Reservation, MemoryRows]:
    engine = MemoryRows(*small_table(rows), CODEBOOK)
    reservation = Budget(epsilon).reserve(epsilon, "test")
    table = PrivateTable(engine, reservation, coins) if coins else PrivateTable(engine, reservation)
    return table, reservation, engine


def zeros(codes: np.ndarray) -> np.ndarray:
    return np.zeros(len(codes), dtype=np.int64)


def sure(codes: np.ndarray) -> np.ndarray:
    first = 1 / (1 + codes[:, 2])
    return np.stack([first, 1 - first], axis=1)


def flags(codes: np.ndarray) -> np.ndarray:
    return np.minimum(codes[:, 1], 1).astype(np.int64)


QUERY_CASES = {
    "rows": lambda table, epsilon: table.ask(Rows(), epsilon),
    "leaf_counts": lambda table, epsilon: table.ask(LeafCounts(TREES), epsilon),
    "confusion": lambda table, epsilon: table.ask(Confusion(zeros), epsilon),
    "reliability": lambda table, epsilon: table.ask(Reliability(sure, 5), epsilon),
    "score_bins": lambda table, epsilon: table.ask(ScoreBins(sure, 5, (1, 0)), epsilon),
    "gradient_sums": lambda table, epsilon: table.ask(GradientSums(TREES, MODEL), epsilon),
    "leaf_sizes": lambda table, epsilon: table.ask(LeafSizes(TREES), epsilon),
    "boost_round": lambda table, price: table.ask(BoostRound(BOOSTED[:1], MODEL, isinstance(price, Rho)), price)[1],
    "choose_tree": lambda table, epsilon: table.ask(ChooseTree(BOOSTED, MODEL, False), epsilon),
    "sizes": lambda table, epsilon: table.ask(Sizes(TREE, NODES), epsilon),
    "class_counts": lambda table, epsilon: table.ask(ClassCounts(TREE, NODES), epsilon),
    "tables": lambda table, epsilon: table.ask(Tables(TREE, NODES, ALL), epsilon),
    "choose": lambda table, epsilon: table.ask(Choose(TREE, NODES, CANDIDATES, ALL, GINI), epsilon),
    "choose_locally": lambda table, epsilon: table.ask(ChooseLocally(TREE, NODES, CANDIDATES, ALL, SIZES), epsilon),
    "best": lambda table, epsilon: table.ask(Best([zeros, flags]), epsilon),
    "best_model": lambda table, epsilon: table.ask(BestModel([MODEL.probabilities, exact_answers.even]), epsilon),
    "best_scale": lambda table, epsilon: table.ask(BestScale(MODEL, (1.0, 0.5)), epsilon),
}
CHOICES = ("choose", "choose_locally", "best", "best_model", "best_scale", "choose_tree")
COUNTS = [query for query in QUERY_CASES if query not in CHOICES]
# The queries that ask about nodes of a tree: (table, tree, nodes) -> an answer
ABOUT_NODES = {
    "sizes": lambda table, tree, nodes: table.ask(Sizes(tree, nodes), Fraction(1)),
    "class_counts": lambda table, tree, nodes: table.ask(ClassCounts(tree, nodes), Fraction(1)),
    "tables": lambda table, tree, nodes: table.ask(Tables(tree, nodes, np.ones((len(nodes), 4), dtype=bool)), Fraction(1)),
    "choose": lambda table, tree, nodes: table.ask(Choose(tree, nodes, CANDIDATES, np.ones((len(nodes), 4), dtype=bool), MAX), Fraction(1)),
    "choose_locally": lambda table, tree, nodes: table.ask(
        ChooseLocally(tree, nodes, CANDIDATES, np.ones((len(nodes), 4), dtype=bool), np.full(len(nodes), 50)), Fraction(1)
    ),
}


def test_queries_are_the_whole_public_surface() -> None:
    public = {name for name in dir(PrivateTable) if not name.startswith("_")}
    assert public == {"ask", "codebook", "released", "sampler"}
    assert {*BY_NAME, "choose_locally"} == set(QUERY_CASES)
    assert not hasattr(PrivateTable, "__len__")
    assert not hasattr(private(1)[0], "__dict__")


@pytest.mark.parametrize("query", list(QUERY_CASES))
def test_charged_before_the_rows_are_opened(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = private(50)
    seen = []
    monkeypatch.setattr(type(engine), "_open", lambda self: seen.append(reservation.charged) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        QUERY_CASES[query](table, Fraction(1, 3))
    assert seen == [Fraction(1, 3)]
    assert reservation.charged == Fraction(1, 3)  # a crash leaves it charged


@pytest.mark.parametrize("query", list(QUERY_CASES))
def test_refused_without_opening(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = private(50, epsilon=1)
    monkeypatch.setattr(type(engine), "_open", lambda self: pytest.fail("the rows were opened"))
    with pytest.raises(BudgetError):
        QUERY_CASES[query](table, Fraction(2))
    assert reservation.charged == 0


@pytest.mark.parametrize("query", list(QUERY_CASES))
def test_an_epsilon_that_is_not_exact_is_refused(query: str) -> None:
    table, reservation, _ = private(50)
    for epsilon in (0.5, 1, "1"):
        with pytest.raises(PlanError, match="exact fraction"):
            QUERY_CASES[query](table, epsilon)
    assert reservation.charged == 0


@pytest.mark.parametrize("query", COUNTS)
def test_almost_no_noise_gives_the_truth(query: str) -> None:
    """ε = 1000 for a sensitivity of 1: a wrong count would show; the chance that a single number is off is below e^(−200)."""
    enough = Fraction(1000 * (4096 if query in ("gradient_sums", "boost_round") else 1))
    table, reservation, engine = private(300, epsilon=3 * enough)
    answer = QUERY_CASES[query](table, enough)
    exact = {
        "rows": lambda: 300,
        "leaf_counts": lambda: exact_answers.leaf_counts(engine, TREES),
        "confusion": lambda: exact_answers.confusion(engine, zeros),
        "reliability": lambda: exact_answers.reliability(engine, sure, 5),
        "score_bins": lambda: exact_answers.score_bins(engine, sure, 5, (1, 0)),
        "sizes": lambda: by_hand(NODES).sum(axis=1),
        "class_counts": lambda: by_hand(NODES)[:, :2],
        "tables": lambda: exact_answers.split_counts(engine, TREE, NODES),
        "gradient_sums": lambda: exact_answers.gradient_sums(engine, TREES, MODEL),
        "leaf_sizes": lambda: [counts.sum(axis=1) for counts in exact_answers.leaf_counts(engine, TREES)],
        "boost_round": lambda: exact_answers.round_sums(engine, BOOSTED[:1], MODEL),
    }[query]()
    for noisy, true in zip(answer, exact, strict=True) if query in ("leaf_counts", "leaf_sizes", "gradient_sums") else [(answer, exact)]:
        assert np.array_equal(noisy, true)
    (event,) = reservation.events
    assert (event.query, event.mechanism, event.epsilon) == (query, "discrete Laplace", enough)


# ---------------------------------------------------------------- prices in concentrated privacy


def with_delta(epsilon: Any = 1, delta: Any = "1e-6", sampler: str = "hedgerow") -> tuple[PrivateTable, Reservation, MemoryRows]:
    engine = MemoryRows(*small_table(50), CODEBOOK)
    reservation = Budget(epsilon, delta).reserve(epsilon, "test", delta)
    return PrivateTable(engine, reservation, sampler=sampler), reservation, engine


QUERIES = {"leaf_counts": len(TREES), "leaf_sizes": len(TREES), "tables": 4, "gradient_sums": len(TREES), "score_bins": 2}
SQUARED = {"gradient_sums": 4096**2, "boost_round": 2027**2}


@pytest.mark.parametrize("query", COUNTS)
def test_a_price_in_rho_is_gaussian_noise_charged_before_the_look(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = with_delta()
    price = Rho(reservation.rho / 3)
    seen = []
    monkeypatch.setattr(type(engine), "_open", lambda self: seen.append(reservation.rho_charged) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        QUERY_CASES[query](table, price)
    assert seen == [reservation.rho / 3]
    (event,) = reservation.events
    queries, squared = QUERIES.get(query, 1), SQUARED.get(query, 1)
    assert (event.query, event.mechanism, event.epsilon, event.rho) == (query, "discrete Gaussian", 0, price.value)
    assert (event.queries, event.sensitivity, event.scale) == (queries, squared, queries * squared / (2 * price.value))


@pytest.mark.parametrize("query", list(QUERY_CASES))
def test_more_rho_than_the_whole_is_refused_without_opening(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = with_delta()
    monkeypatch.setattr(type(engine), "_open", lambda self: pytest.fail("the rows were opened"))
    price: Any = reservation.epsilon + 1 if query in CHOICES else Rho(reservation.rho * 2)
    with pytest.raises(BudgetError, match="more than what is left"):
        QUERY_CASES[query](table, price)
    assert reservation.events == ()
    assert reservation.rho_charged == 0


@pytest.mark.parametrize("query", COUNTS)
def test_gaussian_noise_is_refused_where_pure_epsilon_was_reserved(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = private(50)
    monkeypatch.setattr(type(engine), "_open", lambda self: pytest.fail("the rows were opened"))
    with pytest.raises(BudgetError, match="delta above 0"):
        QUERY_CASES[query](table, Rho(Fraction(1, 1000)))
    assert reservation.events == ()


@pytest.mark.parametrize("query", CHOICES)
def test_choices_are_paid_in_pure_epsilon(query: str) -> None:
    table, reservation, _ = with_delta()
    with pytest.raises(PlanError, match="exact fraction"):
        QUERY_CASES[query](table, Rho(Fraction(1, 1000)))
    QUERY_CASES[query](table, Fraction(1, 100))
    assert reservation.rho_charged == Fraction(1, 20_000)  # ε²/2
    assert [event.epsilon for event in reservation.events] == [Fraction(1, 100)]


def test_the_exponential_mechanism_costs_a_quarter_of_that() -> None:
    table, reservation, _ = with_delta()
    table.ask(Choose(TREE, NODES, CANDIDATES, ALL, GINI, EXPONENTIAL), Fraction(1, 100))
    assert reservation.rho_charged == Fraction(1, 80_000)


@pytest.mark.parametrize("query", COUNTS)
def test_almost_no_gaussian_noise_gives_the_truth(query: str) -> None:
    """σ² = 1/1000 or less: the chance that a single number is off is below e^(−490)."""
    table, reservation, _ = with_delta(10**12)
    sure, _, _ = private(50, epsilon=10**9)
    answer, exact = QUERY_CASES[query](table, Rho(Fraction(10**11))), QUERY_CASES[query](sure, Fraction(10**9))
    if query == "boost_round":  # whose vectors are clipped otherwise for a pure price
        exact = exact_answers.round_sums(with_delta()[2], BOOSTED[:1], MODEL, True)
    many = query in ("leaf_counts", "leaf_sizes", "gradient_sums")
    for noisy, true in zip(answer, exact, strict=True) if many else [(answer, exact)]:
        assert np.array_equal(noisy, true)
    assert reservation.rho_charged == 10**11 <= reservation.rho == rho_for(Fraction(10**12), Fraction("1e-6"))


def test_prices_that_are_none() -> None:
    for bad in (0.5, 1, "1", Fraction(0), Fraction(-1)):
        with pytest.raises(PlanError, match="above 0"):
            Rho(bad)  # type: ignore[arg-type]
    assert Rho(Fraction(1, 2)) / 2 == Rho(Fraction(1, 8)) * 2 == Rho(Fraction(1, 4))


def by_hand(nodes: Any) -> np.ndarray:
    """(nodes, classes + undeclared) counts of small_table(300), row by row along the path of each node."""
    columns, labels = small_table(300)
    codes, classes = CODEBOOK.encode(columns), CODEBOOK.encode_classes(labels)
    counts = np.zeros((len(nodes), 3), dtype=np.int64)
    for i, node in enumerate(nodes):
        for row, label in zip(codes, classes, strict=True):
            if all(row[attribute] in values for attribute, values in TREE.path(int(node))):
                counts[i, label] += 1
    return counts


def test_rows_of_an_undeclared_class_count_as_rows_and_in_no_class() -> None:
    columns, labels = small_table(300)
    labels = np.where(np.arange(300) % 3 == 0, "no such class", labels)
    table = PrivateTable(MemoryRows(columns, labels, CODEBOOK), Budget(4000).reserve(4000, "test"))
    sizes, counts = table.ask(Sizes(TREE, NODES), Fraction(1000)), table.ask(ClassCounts(TREE, NODES), Fraction(1000))
    assert np.array_equal(sizes, by_hand(NODES).sum(axis=1))
    codes, declared = CODEBOOK.encode(columns), labels != "no such class"
    for i, node in enumerate(NODES):
        ((attribute, values),) = TREE.path(int(node))
        here = np.isin(codes[:, attribute], values)
        assert sizes[i] == here.sum()
        assert counts[i].tolist() == [(here & (labels == c)).sum() for c in ("no", "yes")]
        assert counts[i].sum() == (here & declared).sum() < sizes[i]


def test_tables_are_attribute_by_class_counts_of_what_was_asked() -> None:
    table, reservation, _ = private(300, epsilon=3000)
    asked = np.zeros((len(NODES), 4), dtype=bool)
    asked[0, [0, 3]] = asked[1, 2] = True
    answer = table.ask(Tables(TREE, NODES, asked), Fraction(1000))
    columns, labels = small_table(300)
    codes, classes = CODEBOOK.encode(columns), CODEBOOK.encode_classes(labels)
    first = [0, 4, 6, 11, 14]
    assert answer.shape == (len(NODES), 14, 2)
    for i, node in enumerate(NODES):
        here = np.ones(300, dtype=bool)
        for attribute, values in TREE.path(int(node)):
            here &= np.isin(codes[:, attribute], values)
        for attribute in range(4):
            for code in range(CODEBOOK.sizes[attribute]):
                wanted = [(here & (codes[:, attribute] == code) & (classes == c)).sum() * asked[i, attribute] for c in range(2)]
                assert answer[i, first[attribute] + code].tolist() == wanted
    assert [(e.queries, e.scale) for e in reservation.events] == [(2, Fraction(2, 1000))]  # the most asked at one node


@pytest.mark.parametrize("score", [GINI, MAX, NORMAL_GINI, information_gain(1000)])
def test_almost_no_noise_chooses_the_best(score: Score) -> None:
    """ε = 100,000: a split that is worse by 1/50 of the sensitivity is taken with a chance below e^(−1000)."""
    table, reservation, engine = private(300, epsilon=10**6)
    candidates = by_threshold(CODEBOOK)
    allowed = np.random.default_rng(5).random((len(NODES), len(candidates))) < 0.5
    allowed[:, 1] = True
    exact = np.where(allowed, scores_of(score, exact_answers.split_counts(engine, TREE, NODES), candidates), np.iinfo(np.int64).min)
    for mechanism in ("permute-and-flip", "exponential mechanism"):
        chosen = table.ask(Choose(TREE, NODES, candidates, allowed, score, mechanism), Fraction(10**5))
        got = exact[np.arange(len(NODES)), chosen]
        assert (got >= exact.max(axis=1) - score.sensitivity / 50).all()
    assert [event.mechanism for event in reservation.events] == ["permute-and-flip", "exponential mechanism"]
    factor = 1 if score.monotone else 2
    for event in reservation.events:
        assert (event.query, event.queries, event.sensitivity) == ("choose", 1, score.plain_sensitivity)
        assert event.scale == factor * score.plain_sensitivity / 10**5


def test_the_best_predictor_is_the_one_that_is_right_most_often() -> None:
    table, reservation, engine = private(300, epsilon=3000)
    predictors = [zeros, flags, lambda codes: 1 - zeros(codes), lambda codes: (codes[:, 0] == 0).astype(np.int64)]
    right = [np.trace(exact_answers.confusion(engine, predict)) for predict in predictors]
    columns, labels = small_table(300)
    codes, classes = CODEBOOK.encode(columns), CODEBOOK.encode_classes(labels)
    assert right == [(predict(codes) == classes).sum() for predict in predictors]
    assert table.ask(Best(predictors), Fraction(1000)) == int(np.argmax(right))
    (event,) = reservation.events
    assert (event.sensitivity, event.scale) == (1, Fraction(1, 1000))
    with pytest.raises(PlanError, match="no predictors"):
        table.ask(Best([]), Fraction(1))
    assert len(reservation.events) == 1


@pytest.mark.parametrize("query", list(ABOUT_NODES))
def test_nodes_that_overlap_are_refused_before_the_charge(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = private(50)
    monkeypatch.setattr(type(engine), "_open", lambda self: pytest.fail("the rows were opened"))
    child = int(NODES[0])
    grandchild = int(TREE.children(child)[0])
    other = Tree((2,), np.array([-1], dtype=np.int32), np.empty(0, np.int32))
    for tree, nodes in [
        (TREE, [0, child]),
        (TREE, [child, 0]),
        (TREE, [child, child]),
        (TREE, [child, grandchild]),
        (TREE, [0, grandchild]),
        (TREE, [*NODES, int(TREE.leaves[-1])]),
        (TREE, []),
        (other, [0]),
    ]:
        with pytest.raises(PlanError, match="none above another"):
            ABOUT_NODES[query](table, tree, nodes)
    assert reservation.charged == 0
    monkeypatch.undo()
    ABOUT_NODES[query](table, TREE, [child, int(TREE.children(int(NODES[1]))[0])])  # of different levels, but disjoint
    assert reservation.charged == 1


LIES = {
    "a smaller sensitivity": replace(GINI, sensitivity=GINI.sensitivity / 2),
    "a larger sensitivity": replace(GINI, sensitivity=GINI.sensitivity * 2),
    "another grid": replace(MAX, unit=2),
    "monotone": replace(NORMAL_GINI, monotone=True),
    "a smaller N": replace(information_gain(10**6), sensitivity=information_gain(10).sensitivity),
    "another N in its name": replace(information_gain(10), name="information gain, N = 1000000"),
    "a score of one's own": Score("votes", 1, Fraction(1), True, lambda counts: counts.sum(axis=(1, 2))),
}


@pytest.mark.parametrize("lie", list(LIES))
def test_a_score_that_is_not_in_the_list_is_refused(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = private(50)
    monkeypatch.setattr(type(engine), "_open", lambda self: pytest.fail("the rows were opened"))
    with pytest.raises(PlanError, match="not in the list"):
        table.ask(Choose(TREE, NODES, CANDIDATES, ALL, LIES[lie]), Fraction(1))
    assert reservation.charged == 0


def test_a_listed_name_gets_the_listed_score() -> None:
    """A function that comes with a true name and true constants is not called: the score is the list's own."""
    table, _, _ = private(300, epsilon=10**7)
    ours = replace(GINI, of=lambda counts: pytest.fail("a grower's function saw exact counts"))
    for score in (GINI, ours):
        table.ask(Choose(TREE, NODES, CANDIDATES, ALL, score), Fraction(10**6))


@pytest.mark.parametrize("query", ["choose", "choose_locally"])
def test_choices_need_candidates_of_this_schema(query: str) -> None:
    table, reservation, _ = private(50)
    none_at_one = ALL.copy()
    none_at_one[0] = False
    finer = by_threshold(Codebook(small_schema(), bins=7))
    for candidates, allowed in [
        (CANDIDATES, none_at_one),
        (CANDIDATES, ALL[:, :-1]),
        (CANDIDATES, ALL[:-1]),
        (finer, np.ones((len(NODES), len(finer)), dtype=bool)),
    ]:
        by = MAX if query == "choose" else SIZES
        with pytest.raises(PlanError, match="expected candidates"):
            table.ask((Choose if query == "choose" else ChooseLocally)(TREE, NODES, candidates, allowed, by), Fraction(1))
    for asked in (~ALL, ALL[:-1], ALL[:, :-1]):
        with pytest.raises(PlanError, match="which attributes"):
            table.ask(Tables(TREE, NODES, asked), Fraction(1))
    assert reservation.charged == 0


def test_what_is_asked_cannot_make_the_charge_smaller() -> None:
    """Three tables at a node, of which 3 − 1 − 1 = 1 would be charged."""
    table, reservation, _ = private(50)
    asked = np.tile([3, -1, -1, 0], (len(NODES), 1))
    with pytest.raises(PlanError):
        table.ask(Tables(TREE, NODES, asked), Fraction(1))
    assert reservation.charged == 0


def test_allowed_must_be_boolean_before_the_charge() -> None:
    table, reservation, _ = private(50)
    with pytest.raises((PlanError, TypeError)):
        table.ask(Choose(TREE, NODES, CANDIDATES, ALL.astype(np.int64), MAX), Fraction(1))
    assert reservation.charged == 0


@pytest.mark.parametrize("mechanism", ["permute and flip", "discrete Laplace", ""])
def test_a_mechanism_that_does_not_exist_is_refused(mechanism: str) -> None:
    table, reservation, _ = private(50)
    with pytest.raises(PlanError, match="mechanism"):
        table.ask(Choose(TREE, NODES, CANDIDATES, ALL, MAX, mechanism), Fraction(1))
    assert reservation.charged == 0


def test_a_local_choice_is_recorded_as_not_proven() -> None:
    table, reservation, _ = private(300)
    table.ask(ChooseLocally(TREE, NODES, CANDIDATES, ALL, SIZES), Fraction(1))
    assert [event.mechanism for event in reservation.events] == ["exponential mechanism with local sensitivity"]


def test_noise_has_the_stated_scale_and_trees_share_epsilon() -> None:
    table, reservation, engine = private(200, epsilon=4000)
    exact = exact_answers.leaf_counts(engine, TREES)
    noise = np.concatenate(
        [
            (noisy - true).ravel()
            for _ in range(300)
            for noisy, true in zip(table.ask(LeafCounts(TREES), Fraction(1, 2)), exact, strict=True)
        ]
    )
    event = reservation.events[0]
    assert (event.queries, event.sensitivity, event.scale) == (3, 1, 6)
    # Scale 6: standard deviation 8.47. A scale 30 % wrong is far outside; false alarm below 1e-9 at more than 15,000 draws.
    assert len(noise) > 15_000
    assert abs(noise.std() / 8.47 - 1) < 0.1
    assert abs(noise.mean()) < 0.5


@pytest.mark.parametrize("query", list(QUERY_CASES))
def test_empty_and_tiny_tables_answer_like_any_other(query: str) -> None:
    for rows in (0, 1):
        table, _, _ = private(rows)
        usual = QUERY_CASES[query](private(300)[0], Fraction(1))
        answer = QUERY_CASES[query](table, Fraction(1))
        assert type(answer) is type(usual)
        assert (
            np.shape(answer) == np.shape(usual)
            if query not in ("leaf_counts", "leaf_sizes", "gradient_sums")
            else len(answer) == len(usual)
        )


def test_one_row_changes_one_cell_of_each_question() -> None:
    """Sensitivity: over many tables, adding any row moves each tree's exact counts by at most one, in one cell; likewise the
    counts of disjoint nodes, and each attribute's table over all nodes together."""
    columns, labels = small_table(40, seed=3)
    labels = labels.astype(object)
    labels[::7] = "undeclared"
    first = [0, 4, 6, 11, 14]
    with_row = MemoryRows(columns, labels, CODEBOOK)
    for gone in range(40):
        keep = np.arange(40) != gone
        without = MemoryRows({n: c[keep] for n, c in columns.items()}, labels[keep], CODEBOOK)
        questions = [lambda e: exact_answers.leaf_counts(e, TREES)[0], lambda e: exact_answers.leaf_counts(e, TREES)[1]]
        for nodes in (np.array([0]), NODES, TREE.leaves):
            tree = TREE if len(nodes) > 1 else Tree(TREE.sizes, np.array([-1], dtype=np.int32), np.empty(0, np.int32))
            questions.append(lambda e, t=tree, n=nodes: exact_answers.class_counts(e, t, n))
            questions += [lambda e, t=tree, n=nodes, a=a: exact_answers.split_counts(e, t, n)[:, first[a] : first[a + 1]] for a in range(4)]
        for question in questions:
            moved = question(with_row) - question(without)
            assert 0 <= moved.sum() == np.abs(moved).sum() <= 1


def test_trees_of_another_schema_are_refused_before_the_charge() -> None:
    table, reservation, _ = private(10)
    with pytest.raises(PlanError, match="another schema"):
        table.ask(LeafCounts([Tree((2,), np.array([-1], dtype=np.int32), np.empty(0, np.int32))]), Fraction(1))
    with pytest.raises(PlanError, match="no trees"):
        table.ask(LeafCounts([]), Fraction(1))
    assert reservation.charged == 0


def test_it_cannot_be_copied_or_pickled() -> None:
    table, _, _ = private(5)
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="rows stay"):
            act(table)
    assert "5" not in repr(table)


def test_seeded_coins_repeat_and_system_coins_do_not() -> None:
    first = [private(100, coins=SeededCoins(7))[0].ask(Rows(), Fraction(1, 100)) for _ in range(2)]
    assert first[0] == first[1]
    drawn = {private(100)[0].ask(Rows(), Fraction(1, 10_000)) for _ in range(8)}
    assert len(drawn) > 1


def test_opendp_as_sampler() -> None:
    pytest.importorskip("opendp")
    engine = MemoryRows(*small_table(100), CODEBOOK)
    table = PrivateTable(engine, Budget(10).reserve(10, "test"), sampler="opendp")
    assert abs(table.ask(Rows(), Fraction(1)) - 100) < 60
    assert len(table.ask(LeafCounts(TREES), Fraction(1))) == 3
    with pytest.raises(PlanError, match="sampler"):
        PrivateTable(engine, Budget(1).reserve(1, "test"), sampler="numpy")
    with pytest.raises(PlanError, match="test coins"):
        PrivateTable(engine, Budget(1).reserve(1, "test"), SeededCoins(1), sampler="opendp")
    gaussian, reservation, _ = with_delta(sampler="opendp")
    with pytest.raises(PlanError, match='sampler="hedgerow" alone'):
        gaussian.ask(Rows(), Rho(Fraction(1, 1000)))
    assert reservation.events == ()


def test_a_sampler_without_gaussian_noise_is_refused_before_the_charge() -> None:
    table, reservation, _ = with_delta()
    table._sampler = opendp_laplace
    with pytest.raises(PlanError, match='sampler="hedgerow" alone'):
        table.ask(Rows(), Rho(Fraction(1, 1000)))
    assert reservation.events == ()


def test_what_is_a_private_table() -> None:
    assert is_private_table(private(5)[0])
    assert not is_private_table(small_table(5)[0])


def test_only_queries_of_the_closed_list_are_asked() -> None:
    class Cheaper(Rows):
        @classmethod
        def cost(cls, price: Any, k: int, queries: int = 1, n_classes: int = 2) -> Any:
            return replace(Rows.cost(Fraction(100), k), epsilon=Fraction(1, 10**9))

    table, reservation, _ = private(50)
    for strange in (Cheaper(), object()):
        with pytest.raises(PlanError, match="closed list"):
            table.ask(strange, Fraction(1, 100))  # type: ignore[arg-type]
    assert not reservation.events


def test_a_query_cannot_change_after_it_was_made() -> None:
    """Asked again with a smaller mask, tables would be charged for one attribute and told for all."""
    asked, allowed, nodes = ALL.copy(), ALL.copy(), np.array(NODES)
    tables, choice = Tables(TREE, nodes, asked), Choose(TREE, nodes, CANDIDATES, allowed, GINI)
    asked[:, 1:] = False
    allowed[:] = False
    nodes[:] = 0
    assert tables.attributes.all()
    assert choice.allowed.all()
    assert list(tables.nodes) == list(choice.nodes) == list(NODES)
    scale = BestScale(MODEL, np.array([1.0, 0.5]))
    for array in (tables.attributes, tables.nodes, choice.allowed, choice.nodes, scale.scales):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]  # type: ignore[index]
    assert isinstance(Best([zeros]).predictors, tuple)
    assert isinstance(LeafCounts([TREE]).trees, tuple)
    assert isinstance(GradientSums([TREE], MODEL).trees, tuple)
