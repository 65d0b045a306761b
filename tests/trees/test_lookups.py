"""Leaves of many rows in many trees at once: by comparisons and by tables, and the margins that follow."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from hedgerow.trees import additive_model
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.lookups import FEW_EDGES, lookups_of
from hedgerow.trees.oblivious import Answers, ObliviousTree, one_question
from hedgerow.trees.tree import TreeBuilder

SIZES = (40, 6, 300, 2)  # more codes than a byte holds, and more answers in turn than are compared


def drawn(rng: np.random.Generator, depth: int) -> ObliviousTree:
    asked = tuple(int(j) for j in rng.integers(0, len(SIZES), depth))
    return ObliviousTree(SIZES, asked, tuple(Answers(rng.integers(0, 3, SIZES[j] + 1)) for j in asked))


def test_edges_say_where_the_answer_changes() -> None:
    first, second = Answers([2, 2, 0, 5, 5]), Answers([0, 1, 1, 0])
    plan = lookups_of([((1, 0), (first, second)), ((0,), (second,))])
    assert (plan.used.tolist(), plan.levels.tolist(), plan.first.tolist()) == ([0, 1], [1, 0, 0], [0, 2, 3])
    assert (plan.code.tolist(), plan.edges.tolist()) == ([0, 2, 3, 1, 3, 1, 3], [0, 3, 5, 7])
    assert plan.more.astype(np.int16).tolist() == [4, -4, 10, 1, -1, 1, -1]  # the lower level has two answers
    assert (plan.table.tolist(), plan.steps.shape) == ([-1, -1, -1], (0, 1))


def test_an_answer_that_changes_often_has_a_table() -> None:
    often = Answers(np.arange(FEW_EDGES + 2) % 2)
    plan = lookups_of([((0, 0), (often, Answers([0] * len(often)))), ((0, 0), (often, often))])
    assert plan.table.tolist() == [0, -1, 1, 2]
    assert plan.steps.tolist() == [(often.array * stride).tolist() for stride in (1, 2, 1)]
    assert (plan.code.size, plan.edges.tolist()) == (0, [0] * 5)


@pytest.mark.parametrize("at_once", [1, 300, 1 << 13])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("rows", [0, 1, 1_300])
def test_margins_are_the_sums_of_what_the_leaves_score_in_the_order_of_the_trees(
    at_once: int, classes: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some trees at once, a tree of another kind between them, and some that are known."""
    monkeypatch.setattr(additive_model, "AT_ONCE", at_once)
    rng = np.random.default_rng(at_once)
    builder = TreeBuilder(SIZES)
    builder.split(0, 1, [0, 1, 2, 0, 1, 2])
    trees = [
        *(drawn(rng, depth) for depth in (3, 1, 4, 2)),
        builder.build(),
        one_question(SIZES, 2, rng.integers(0, 40, 301)),
        drawn(rng, 5),
    ]
    scores = [rng.normal(size=(tree.n_nodes, classes)) for tree in trees]
    codes = np.stack([rng.integers(0, size + 1, rows) for size in SIZES], axis=1).astype(np.uint16)
    model = AdditiveModel(rng.normal(size=classes), tuple(trees), tuple(scores))
    expected = np.tile(model.base, (rows, 1))
    for number, (tree, own) in enumerate(zip(trees, scores, strict=True)):
        if number == 2:
            known = expected.copy()
        if isinstance(tree, ObliviousTree):
            expected += own[tree.leaves_of(codes)]
        else:
            values = codes[:, 1]
            expected += own[np.where(values < 6, 1 + values % 3, 0)]
    assert np.array_equal(model.margins(codes), expected)
    model.add_margins(codes, known, known=2)
    assert np.array_equal(known, expected)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  after it was used, too
    assert np.array_equal(again.margins(codes), expected)


def test_any_truth_is_the_second_answer() -> None:
    assert Answers(np.array([0, 255, 0], dtype=np.uint8).view(np.bool_)).radix == 2
    assert Answers(np.zeros(3, dtype=np.bool_)).radix == 1
