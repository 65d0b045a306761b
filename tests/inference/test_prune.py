"""DPDF after the noise: pruning by Eq. 27 and the three votes, against recursive definitions in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import codes_for, schemas, trees

from hedgerow.inference.prune import gini, pruned_nodes, resting_place
from hedgerow.inference.vote import MAJORITY, PRUNED_SUM, WEIGHTED, vote_named
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import LEAVES, NODES, CountedForest
from hedgerow.trees.routing import route
from hedgerow.trees.tree import Tree, TreeBuilder

CLOSE = Fraction(1, 10**9)  # a tie in exact arithmetic may fall either way in floats
VOTES = (WEIGHTED, MAJORITY, PRUNED_SUM)


@st.composite
def counted_forests(draw: Any) -> CountedForest:
    """Forests with a count for every node (some negative, some zero), or for every leaf."""
    codebook = Codebook(draw(schemas()), draw(st.integers(1, 4)))
    grown = tuple(draw(st.lists(trees(codebook.sizes), min_size=1, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    measured = draw(st.sampled_from([NODES, NODES, LEAVES]))
    low, high = draw(st.sampled_from([(-50, 200), (-3, 4), (0, 3), (-20, 1)]))
    sizes = [tree.n_nodes if measured == NODES else len(tree.leaves) for tree in grown]
    counts = tuple(rng.integers(low, high, (size, codebook.n_classes)) for size in sizes)
    return CountedForest(codebook, grown, counts, (Fraction(5),), measured)


def index(counts: np.ndarray) -> Fraction:
    """G of Eq. 4 for one node, negative counts taken as 0: −(1 − Σ share²), −1 for a node without rows."""
    positive = [max(int(n), 0) for n in counts]
    return sum((Fraction(n, max(sum(positive), 1)) ** 2 for n in positive), Fraction(0)) - 1


def children_of(tree: Tree, node: int) -> list[int]:
    return sorted({int(child) for child in tree.children(node)} - {-1})


def mean_index(counts: np.ndarray, children: list[int]) -> Fraction | None:
    """The children's mean, weighted by their own sizes; None where they have no rows."""
    sizes = [max(int(counts[child].sum()), 0) for child in children]
    weighed = sum((n * index(counts[child]) for n, child in zip(sizes, children, strict=True)), Fraction(0))
    return weighed / sum(sizes) if sum(sizes) else None


def keeps(tree: Tree, counts: np.ndarray, node: int) -> set[int]:
    """The nodes below `node` that PruneTree leaves."""
    if tree.attribute[node] < 0:
        return set()
    children = children_of(tree, node)
    kept: set[int] = set().union(*[keeps(tree, counts, child) for child in children])
    if not kept:  # all children are leaves by now
        mean = mean_index(counts, children)
        if mean is None or index(counts[node]) >= mean:
            return set()
    return kept | set(children)


def is_tie(forest: CountedForest, t: int) -> bool:
    """Whether some parent's index is its children's mean, so closely that floats may decide either way."""
    tree, counts = forest.trees[t], forest.node_counts[t]
    for node in np.flatnonzero(tree.attribute >= 0):
        mean = mean_index(counts, children_of(tree, int(node)))
        if mean is not None and abs(mean - index(counts[node])) < CLOSE:
            return True
    return False


@pytest.mark.slow
@given(counted_forests())
def test_pruning_by_the_recursive_definition(forest: CountedForest) -> None:
    for t, tree in enumerate(forest.trees):
        if is_tie(forest, t):
            continue
        kept = keeps(tree, forest.node_counts[t], 0)
        assert set(np.flatnonzero(~pruned_nodes(forest, t)).tolist()) == kept | {0}


@pytest.mark.slow
@given(counted_forests())
def test_what_pruning_leaves_is_a_tree_and_rows_rest_in_it(forest: CountedForest) -> None:
    for t, tree in enumerate(forest.trees):
        removed, place = pruned_nodes(forest, t), resting_place(forest, t)
        assert not removed[0]
        for node in range(1, tree.n_nodes):
            above = int(tree.parent[node])
            assert removed[node] or not removed[above]
            siblings = {int(child) for child in tree.children(above)} - {-1}
            assert len({bool(removed[child]) for child in siblings}) == 1  # all children of a node or none
            assert place[node] == (place[above] if removed[node] else node)
        assert not removed[place].any()


def test_equation_27_by_hand() -> None:
    codebook = Codebook(Schema([Categorical("a", [0, 1]), Categorical("b", [0, 1])], Target("y", ["no", "yes"])))
    builder = TreeBuilder(codebook.sizes)
    builder.split(builder.split(0, 0)[0], 1)
    tree = builder.build()

    def pruned(*counts: list[int]) -> list[int]:
        return np.flatnonzero(pruned_nodes(CountedForest(codebook, (tree,), (np.array(counts),), (), NODES), 0)).tolist()

    root, better, worse = [50, 50], [40, 10], [10, 40]
    assert pruned(root, better, worse, [40, 0], [0, 10]) == []  # every split helps
    assert pruned(root, better, worse, [20, 5], [20, 5]) == [3, 4]  # a tie: 'at least' takes the leaves away
    assert pruned(root, better, worse, [25, 25], [1, 0]) == [3, 4]  # weighted: the large child is worse than its parent
    assert pruned(root, better, worse, [1, 0], [25, 25]) == [3, 4]
    assert pruned([99, 1], [50, 50], [50, 50], [50, 0], [0, 50]) == []  # the root is better, but not all its children are leaves
    assert pruned([99, 1], [50, 50], [50, 50], [25, 25], [25, 25]) == [1, 2, 3, 4]  # first the leaves, then their parent
    assert pruned(root, better, worse, [-3, -1], [0, 0]) == [3, 4]  # children without rows say nothing
    assert pruned(root, better, worse, [30, -9], [9, -30]) == []  # negative counts are 0 in G; the second has no weight
    # Eq. 27 weighs by the children's own sizes (line 42), not by the parent's count: (8·0 + 2·(−1/2))/10 > −0.32
    assert pruned(root, [40, 10], worse, [8, 0], [1, 1]) == []


@pytest.mark.slow
def test_a_tie_is_always_pruned() -> None:
    """Children with exactly their parent's shares do not make it better, whatever the shares are."""
    for no, yes, first, second in np.ndindex(8, 8, 5, 5):
        if no + yes and first and second:
            forest = stumps([[no * (first + second), yes * (first + second)], [no * first, yes * first], [no * second, yes * second]])
            assert pruned_nodes(forest, 0).tolist() == [False, True, True]


def test_gini_of_equation_4() -> None:
    assert gini(np.array([[5, 5], [7, 0], [0, 0], [-4, 3], [2, 4]])).tolist() == pytest.approx([-0.5, 0, -1, 0, -4 / 9])


# ---------------------------------------------------------------- votes


def shares_at(forest: CountedForest, t: int, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positive counts, and class shares, of the node of the pruned tree where a row ends."""
    tree = forest.trees[t]
    node = int(route(tree, row[None, :])[0])
    kept = ~pruned_nodes(forest, t)
    while not kept[node]:
        node = int(tree.parent[node])
    positive = np.maximum(forest.node_counts[t][node], 0)
    return positive, positive / positive.sum() if positive.sum() else np.full(len(positive), 1 / len(positive))


def votes_for(forest: CountedForest, row: np.ndarray, weigh: str) -> tuple[np.ndarray, np.ndarray]:
    """The votes by the paper's words, and the summed shares that decide a tie."""
    votes, summed = np.zeros(forest.codebook.n_classes), np.zeros(forest.codebook.n_classes)
    for t in range(len(forest.trees)):
        positive, shares = shares_at(forest, t, row)
        summed += shares
        if weigh == PRUNED_SUM:
            votes += positive
        else:
            says = positive.sum() > 0  # a node with no positive count says nothing
            votes[shares.argmax()] += says * (shares.max() if weigh == WEIGHTED else 1)
    return votes, summed


@pytest.mark.slow
@pytest.mark.parametrize("weigh", VOTES)
@given(counted_forests(), st.integers(0, 2**32))
def test_votes_by_definition(weigh: str, forest: CountedForest, seed: int) -> None:
    codes = codes_for(forest.codebook.sizes, 6, seed)
    got = vote_named(weigh, forest).probabilities(codes)
    assert got.shape == (6, forest.codebook.n_classes)
    assert (got >= 0).all()
    assert np.allclose(got.sum(axis=1), 1)
    for row, found in zip(codes, got, strict=True):
        votes, summed = votes_for(forest, row, weigh)
        if len(forest.trees) == 1:
            assert np.allclose(found, shares_at(forest, 0, row)[1])
            continue
        shares = votes / votes.sum() if votes.sum() else summed / summed.sum()
        assert np.allclose(found, shares, atol=1e-6)
        best = np.flatnonzero(shares > shares.max() - 1e-6)
        assert summed[found.argmax()] >= summed[best].max() - 1e-3 if len(best) > 1 else found.argmax() == best[0]


def stumps(*counts: list[list[int]]) -> CountedForest:
    """Trees of one question each: counts of the root and of its two leaves."""
    codebook = Codebook(Schema([Categorical("a", [0, 1])], Target("y", ["no", "yes"])))
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0)
    tree = builder.build()
    return CountedForest(codebook, (tree,) * len(counts), tuple(np.array(c) for c in counts), (), NODES)


def test_the_three_votes_can_differ() -> None:
    row = np.array([[0]], dtype=np.uint8)
    forest = stumps(
        [[50, 50], [60, 40], [0, 50]],  # no, confidence 0.6
        [[50, 50], [55, 45], [0, 50]],  # no, confidence 0.55
        [[50, 50], [-5, 4], [50, 0]],  # yes, confidence 1: a negative count is 0
    )
    got = {weigh: vote_named(weigh, forest).probabilities(row)[0] for weigh in VOTES}
    assert got[WEIGHTED].tolist() == pytest.approx([1.15 / 2.15, 1 / 2.15], abs=1e-6)
    assert got[MAJORITY].tolist() == pytest.approx([2 / 3, 1 / 3], abs=1e-6)
    assert got[PRUNED_SUM].tolist() == pytest.approx([115 / 204, 89 / 204], abs=1e-6)
    sure = stumps([[50, 50], [51, 49], [0, 50]], [[50, 50], [0, 4], [50, 0]])
    assert [int(vote_named(weigh, sure).probabilities(row)[0].argmax()) for weigh in VOTES] == [1, 1, 1]
    # one vote against one: the summed shares decide, 0.51 + 0 against 0.49 + 1
    assert vote_named(MAJORITY, sure).probabilities(row)[0].tolist() == pytest.approx([0.5, 0.5], abs=1e-6)


def test_a_single_tree_gives_class_shares_of_its_pruned_node() -> None:
    codes = np.array([[0], [1], [2]], dtype=np.uint8)  # 2: not declared, the row stays at the root
    for weigh in VOTES:
        kept = vote_named(weigh, stumps([[30, 30], [30, 10], [0, 20]])).probabilities(codes)
        assert kept.tolist() == [[0.75, 0.25], [0, 1], [0.5, 0.5]]
        pruned = vote_named(weigh, stumps([[30, 10], [15, 5], [15, 5]])).probabilities(codes)
        assert pruned.tolist() == [[0.75, 0.25]] * 3
