"""The papers' rules for structure and tuning, checked against the formulas and against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import codes_for, forests, small_schema, small_table

from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.engines.exact import ExactTable
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import PlanError
from hedgerow.growers import rdt, snr
from hedgerow.inference import confidence
from hedgerow.inference.vote import MOST_CONFIDENT, SUMMED_COUNTS, SummedCounts, vote_named
from hedgerow.private_table import PrivateTable
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.training.shared_plans import rebuild
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.routing import route

CODEBOOK = Codebook(small_schema())


def wide(attributes: int, values: int, classes: int = 2) -> Codebook:
    target = Target("y", list(range(classes)))
    return Codebook(Schema([Categorical(f"a{i}", list(range(values))) for i in range(attributes)], target))


def private(rows: int, epsilon: Any, codebook: Codebook = CODEBOOK) -> tuple[PrivateTable, Reservation]:
    reservation = Budget(epsilon).reserve(epsilon, "test")
    return PrivateTable(MemoryRows(*small_table(rows), codebook), reservation), reservation


# ---------------------------------------------------------------- Private-RDT


@pytest.mark.parametrize(
    ("sizes", "n", "h"),
    [
        ((3, 5, 4, 4, 3, 2, 3, 3), 12_960, 4),  # nursery: k/2 = 4, log_3.375 12960 = 7.8
        ((2,) * 16, 435, 7),  # votes: k/2 = 8, log_2 435 = 8.8
        ((5,) * 22, 8_124, 4),  # about mushroom
        ((5, 5), 10**9, 1),
        ((10,) * 10, 1_000, 2),  # log_10 1000 is exactly 3
        ((10,) * 10, 999, 1),
        ((10,) * 10, 1, 1),
        ((1, 1, 1, 1), 100, 2),
    ],
)
def test_the_height_rule(sizes: tuple[int, ...], n: int, h: int) -> None:
    assert rdt.height_rule(sizes, n) == h


def test_the_height_rule_takes_two_branches_for_a_threshold() -> None:
    """Ten numbers of 20 cells: 1000 rows are ⌊log_20 1000⌋ = 2 questions less one, or ⌊log_2 1000⌋ = 9 less one, of 10/2 at most."""
    book = Codebook(Schema([Numeric(f"a{i}", 0, 1) for i in range(10)], Target("y", [0, 1])), 20)
    heights = {}
    for how in ("bins", "thresholds"):
        (tree,) = rdt.structures(book, 1000, rdt.Settings(1, numeric_splits=how), np.random.default_rng(0))
        heights[how] = tree.height
    assert heights == {"bins": 1, "thresholds": 5}


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_full_height_and_no_attribute_twice_on_a_path(seed: int, height: int) -> None:
    tree = rdt.build_tree_structure(CODEBOOK, height, "bins", np.random.default_rng(seed))
    tree.check()
    for leaf in tree.leaves:
        asked = [attribute for attribute, _ in tree.path(int(leaf))]
        assert len(asked) == height == len(set(asked))


def test_random_thresholds_split_cells_in_two() -> None:
    codebook = Codebook(Schema([Numeric("a", 0, 1, missing="none"), Numeric("b", 0, 1)], Target("y", [0, 1])), bins=8)
    seen = set()
    for seed in range(200):
        tree = rdt.build_tree_structure(codebook, 2, "thresholds", np.random.default_rng(seed))
        for node in np.flatnonzero(tree.attribute >= 0):
            below = tree.children(int(node))
            cells = below[:8]
            assert len(set(cells.tolist())) == 2
            assert (np.diff(cells) >= 0).all()  # one threshold: left cells together, right cells together
            if tree.attribute[node] == 0:
                assert below[8] not in cells  # a missing value has its own branch
            seen.add(int((cells == cells[0]).sum()))
    assert seen == set(range(1, 8))


def test_events_add_up_to_epsilon_exactly() -> None:
    for rows, depth, verbs in [(None, None, ["rows", "leaf_counts"]), (500, None, ["leaf_counts"]), (None, 2, ["leaf_counts"])]:
        codebook = Codebook(small_schema(rows))
        epsilon = Fraction(1, 3)
        table, reservation = private(300, epsilon, codebook)
        settings = rdt.Settings(n_estimators=7, max_depth=depth)
        plan = rdt.plan(codebook, settings, epsilon, rows or 1, rows is not None, np.random.default_rng(0))
        grown = rdt.grow(table, plan, np.random.default_rng(0))
        assert [event.query for event in reservation.events] == verbs
        assert reservation.charged == epsilon
        assert reservation.events == plan.events
        assert grown.forest.noise == (reservation.events[-1].scale,) == (7 / reservation.events[-1].epsilon,)
        assert ("rows" in grown.released) == ("rows" in verbs)


def test_a_public_plan_fixes_the_trees_that_are_grown() -> None:
    codebook = Codebook(small_schema(400))
    plan = rdt.plan(codebook, rdt.Settings(), Fraction(1), 400, True, np.random.default_rng(5))
    grown = rdt.grow(private(300, 1, codebook)[0], plan, np.random.default_rng(99))
    assert grown.forest.trees == plan.trees


def test_absurd_plans_are_refused() -> None:
    with pytest.raises(PlanError, match="max_leaves"):
        rdt.structures(wide(40, 50), None, rdt.Settings(max_depth=20), np.random.default_rng(0))
    with pytest.raises(PlanError, match="max_leaves"):
        snr.structures(wide(6, 10), 10**9, Fraction(10**6), snr.Settings(max_leaves=1000), np.random.default_rng(0))
    with pytest.raises(PlanError, match=r"plan\(rows=10000\)"):
        rdt.plan(CODEBOOK, rdt.Settings(), Fraction(1), None, False, np.random.default_rng(0))


@pytest.mark.slow
def test_once_rows_are_paid_for_trees_shrink_instead_of_a_refusal() -> None:
    rng = np.random.default_rng(0)
    for most, height in [(3000, 3), (30, 1), (5, 0)]:
        trees = rdt.structures_within_max_leaves(wide(10, 10), 10**8, rdt.Settings(n_estimators=2, max_leaves=most), rng)
        assert {tree.height for tree in trees} == {height}
    for most in (4000, 60, 6):
        fitted = snr.structures_within_max_leaves(wide(6, 10), 10**7, Fraction(10), snr.Settings(max_leaves=most), rng)
        assert sum(len(tree.leaves) for tree in fitted) <= most


def test_plain_pruning_changes_no_count_that_a_training_row_meets() -> None:
    columns, labels = small_table(60)
    engine = MemoryRows(columns, labels, CODEBOOK)

    settings = rdt.Settings(n_estimators=4, max_depth=3)
    whole = rdt.grow_plain(ExactTable(engine), CODEBOOK, settings, False, np.random.default_rng(1))
    pruned = rdt.grow_plain(ExactTable(engine), CODEBOOK, settings, True, np.random.default_rng(1))
    assert sum(len(t.leaves) for t in pruned.trees) < sum(len(t.leaves) for t in whole.trees)
    codes = CODEBOOK.encode(columns)
    assert np.array_equal(SummedCounts(whole).probabilities(codes), SummedCounts(pruned).probabilities(codes))
    assert all((counts.sum(axis=1) > 0).all() for counts in pruned.counts)


def test_plain_rdt_of_an_empty_table() -> None:
    empty = np.zeros((1, 2), dtype=np.int64)
    tree = rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(0))
    pruned, counts = rdt._without_empty(tree, np.zeros((len(tree.leaves), 2), dtype=np.int64))
    assert pruned.n_nodes == 1
    assert np.array_equal(counts, empty)


# ---------------------------------------------------------------- SNR forest


@given(
    st.integers(1, 30), st.integers(2, 9), st.integers(2, 6), st.integers(1, 10**6),
    st.fractions(Fraction(1, 100), 10, max_denominator=100),
)  # fmt: skip
def test_the_number_of_trees_by_its_formula(attributes: int, values: int, classes: int, n: int, beta: Fraction) -> None:
    tau = snr.number_of_trees(wide(attributes, values, classes), n, beta, snr.Settings())
    theta = [classes * math.sqrt(2) * t / float(beta) for t in range(attributes + 2)]
    assert 1 <= tau <= attributes
    if tau > 1:
        assert theta[tau] < n / values**2 * (1 + 1e-9)
    if tau < attributes:
        assert theta[tau + 1] >= n / values**2 * (1 - 1e-9)


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(1, 5000), st.fractions(Fraction(1, 20), 20, max_denominator=20))
def test_no_node_is_made_below_the_least_support(seed: int, n: int, beta: Fraction) -> None:
    trees = snr.structures(CODEBOOK, n, beta, snr.Settings(), np.random.default_rng(seed))
    theta = CODEBOOK.n_classes * math.sqrt(2) * len(trees) / float(beta)
    roots = [int(tree.attribute[0]) for tree in trees if tree.n_nodes > 1]
    assert len(set(roots)) == len(roots)
    for tree in trees:
        for node in range(1, tree.n_nodes):
            support = n / math.prod(CODEBOOK.sizes[a] for a, _ in tree.path(node))
            assert support > max(theta, 1) * (1 - 1e-9)


def test_snr_events_add_up_to_epsilon_exactly() -> None:
    for rows in (None, 5000):
        codebook = Codebook(small_schema(rows))
        table, reservation = private(5000, Fraction(2, 7), codebook)
        plan = snr.plan(codebook, snr.Settings(), Fraction(2, 7), rows or 1, rows is not None, np.random.default_rng(0))
        grown = snr.grow(table, plan, np.random.default_rng(0))
        assert reservation.charged == Fraction(2, 7)
        assert len(reservation.events) == (2 if rows is None else 1)
        assert grown.forest.noise == (reservation.events[-1].scale,)
        assert grown.chosen["trees"].startswith(str(len(grown.forest.trees)))


# ---------------------------------------------------------------- votes, against definitions


@pytest.mark.slow
@given(forests(), st.integers(0, 2**32))
def test_summed_counts_by_definition(forest: CountedForest, seed: int) -> None:
    codes = codes_for(forest.codebook.sizes, 10, seed)
    got = vote_named(SUMMED_COUNTS, forest).probabilities(codes)
    assert np.allclose(got.sum(axis=1), 1)
    for i in range(len(codes)):
        ends = [int(route(tree, codes[i : i + 1])[0]) for tree in forest.trees]
        sums = sum(forest.node_counts[t][end] / forest.leaves_below[t][end] for t, end in enumerate(ends))
        if (np.asarray(sums) > 0).any():
            positive = np.maximum(sums, 0)
            assert np.allclose(got[i], positive / positive.sum())


def confident_vote(forest: CountedForest, row: np.ndarray) -> int:
    """Sections 4.5 to 4.7, written out for one row."""
    n_classes = forest.codebook.n_classes
    chosen = []
    for t, tree in enumerate(forest.trees):
        node = int(route(tree, row[None, :])[0])
        path = [node]
        while tree.parent[path[-1]] >= 0:
            path.append(int(tree.parent[path[-1]]))
        kept = [0]
        for candidate in path[::-1][1:]:
            counts = forest.node_counts[t][candidate]
            scale = math.sqrt(sum(float(s) ** 2 for s in forest.noise))
            ratio = counts.sum() / (n_classes * math.sqrt(2 * forest.leaves_below[t][candidate]) * scale)
            if ratio < 1:
                break
            kept.append(candidate)
        shares = []
        for candidate in kept:
            positive = np.maximum(forest.node_counts[t][candidate], 0)
            shares.append(positive / positive.sum() if positive.sum() else np.full(n_classes, 1 / n_classes))
        chosen.append(max(shares, key=lambda share: share.max()))
    highest = max(share.max() for share in chosen)
    winners = {c for share in chosen for c in np.flatnonzero(share == highest)}
    return winners.pop() if len(winners) == 1 else int(np.sum(chosen, axis=0).argmax())


@pytest.mark.slow
@given(forests(), st.integers(0, 2**32), st.integers(1, 40))
def test_the_confident_vote_by_definition(forest: CountedForest, seed: int, scale: int) -> None:
    noisy = CountedForest(forest.codebook, forest.trees, forest.counts, (Fraction(scale),))
    codes = codes_for(forest.codebook.sizes, 10, seed)
    got = vote_named(MOST_CONFIDENT, noisy).probabilities(codes)
    assert np.allclose(got.sum(axis=1), 1)
    assert got.argmax(axis=1).tolist() == [confident_vote(noisy, row) for row in codes]


def test_signal_to_noise_is_equation_10() -> None:
    tree = rdt.build_tree_structure(CODEBOOK, 1, "bins", np.random.default_rng(0))
    counts = np.full((len(tree.leaves), 2), 10)
    forest = CountedForest(CODEBOOK, (tree,), (counts,), (Fraction(8),))
    leaves = len(tree.leaves)
    ratios = confidence.signal_to_noise(forest, 0, "paper")
    assert ratios[0] == pytest.approx(20 * leaves / (2 * math.sqrt(2 * leaves) * 8))
    assert ratios[1] == pytest.approx(20 / (2 * math.sqrt(2) * 8))
    assert confidence.signal_to_noise(forest, 0, "tight")[1] == pytest.approx(20 / (math.sqrt(2) * math.sqrt(2) * 8))


# ---------------------------------------------------------------- where the paths of an SNR forest end


def test_the_literal_stopping_rule_asks_one_question_more_than_ours() -> None:
    """Six attributes of 4 values, n = 1000, θ = 20: support 1000, 250, 62.5, 15.6, … on the levels of every path."""
    book = Codebook(Schema([Categorical(f"a{i}", list(range(4))) for i in range(6)], Target("y", [0, 1])))
    grow = [snr.build_random_tree(book, 0, 1000, Fraction(400), 10**6, np.random.default_rng(0), literal) for literal in (False, True)]
    assert [tree.height for tree in grow] == [2, 3]
    assert [set(tree.depth[tree.leaves].tolist()) for tree in grow] == [{2}, {3}]  # 62.5 is above θ, 15.6 is not
    # A support of exactly θ: ours makes no such node; literally it is not below the noise, and asks on.
    even = [snr.build_random_tree(book, 0, 1024, Fraction(64**2), 10**6, np.random.default_rng(0), literal) for literal in (False, True)]
    assert [tree.height for tree in even] == [1, 3]


def test_the_stopping_rule_is_one_of_two_and_said_only_where_it_is_not_ours() -> None:
    from hedgerow import SNRForestClassifier

    X, y = small_table(500)
    schema = small_schema()
    literal = SNRForestClassifier(schema, 20, stopping_rule="literal", random_state=0).fit(X, y).release_
    ours = SNRForestClassifier(schema, 20, random_state=0).fit(X, y).release_
    assert literal.parameters["stopping_rule"] == "literal"
    assert "stopping_rule" not in ours.parameters
    assert literal.forest.trees[0].height >= ours.forest.trees[0].height
    with pytest.raises(PlanError, match="stopping_rule"):
        SNRForestClassifier(schema, 20, stopping_rule="other").plan(500)
    plan = SNRForestClassifier(schema, 20, stopping_rule="literal", random_state=0).public_plan(rows=500)
    assert rebuild(plan)
