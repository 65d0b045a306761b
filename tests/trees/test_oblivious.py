"""Oblivious trees: every row in one leaf, the same leaf by every way to compute it, and nothing unsound from a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import ReleaseError
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.few_rows import few_margins
from hedgerow.trees.oblivious import ObliviousTree, one_question, runs_of, tree_of_runs


@st.composite
def trees(draw: Any, most_answers: int = 3) -> ObliviousTree:
    sizes = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    asked = tuple(draw(st.lists(st.integers(0, len(sizes) - 1), max_size=4)))
    answers = tuple(tuple(draw(st.integers(0, most_answers - 1)) for _ in range(sizes[j] + 1)) for j in asked)
    return ObliviousTree(sizes, asked, answers)


@given(trees(), st.integers(0, 2**32 - 1))
def test_the_answers_spell_the_leaf(tree: ObliviousTree, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size + 1, 50) for size in tree.sizes], axis=1).astype(np.uint8)
    expected = np.zeros(50, dtype=np.int64)
    for j, answers, radix in zip(tree.attributes, tree.answers, tree.radix, strict=True):
        expected = expected * radix + answers.array[codes[:, j]]
    assert (tree.leaves_of(codes) == expected).all()
    assert (expected < tree.n_nodes).all()
    scores = rng.normal(size=(tree.n_nodes, 3))
    model = AdditiveModel(np.zeros(3), (tree,), (scores,))
    for margins in (model.margins(codes), few_margins(model, codes), model.margins(codes.astype(np.uint16))):
        assert (margins == scores[expected]).all()


@given(trees())
def test_a_tree_comes_back_from_its_runs(tree: ObliviousTree) -> None:
    runs = [runs_of(answers) for answers in tree.answers]
    assert tree_of_runs(tree.sizes, tree.attributes, runs) == tree
    assert all(run[1::2] == [a for a, b in zip(run[1::2], [*run[3::2], None], strict=True) if a != b] for run in runs)


def test_two_trees_are_the_same_if_they_ask_the_same() -> None:
    one = one_question((3, 2), 0, (0, 1, 1, 0))
    assert one == one_question((3, 2), 0, (0, 1, 1, 0)) != one_question((3, 2), 0, (0, 1, 1, 1))
    assert one != one_question((3, 3), 0, (0, 1, 1, 0))
    assert one != one_question((3, 3), 1, (0, 1, 1, 0))
    assert one != "a tree"


@pytest.mark.parametrize(
    ("attributes", "answers"),
    [
        ((0,), ((0, 1, 1),)),  # an answer too few
        ((2,), ((0, 1, 1, 0),)),  # no such attribute
        ((-1,), ((0, 1, 1, 0),)),
        ((0,), ((0, -1, 1, 0),)),
        ((0,), ((0, 1, 1, 2**16),)),
        ((0, 0), ((0, 1, 1, 0),)),
        ((0,) * 17, ((0, 1, 1, 0),) * 17),
        ((0,) * 9, ((0, 1, 2, 3),) * 9),  # more leaves than fit
    ],
)
def test_what_is_no_tree_is_refused(attributes: Any, answers: Any) -> None:
    with pytest.raises(ReleaseError, match="oblivious tree: expected"):
        ObliviousTree((3, 2), attributes, answers)


@pytest.mark.parametrize("runs", [[[3, 0]], [[5, 0]], [[4]], [[4, 0, 0]], [[-1, 0, 5, 1]], [[4, -1]], [[]], [], [[10**12, 0]]])
def test_runs_that_do_not_add_up_are_refused(runs: Any) -> None:
    with pytest.raises(ReleaseError, match="oblivious tree: expected"):
        tree_of_runs((3, 2), (0,), runs)


def test_a_tree_above_another_asks_both() -> None:
    upper, lower = one_question((3, 2), 0, (0, 1, 2, 0)), one_question((3, 2), 1, (0, 1, 1))
    both = upper.above(lower)
    assert both == ObliviousTree((3, 2), (0, 1), (upper.answers[0], lower.answers[0]))
    assert (both.radix, both.n_nodes) == ((3, 2), 6)
    assert both.leaves_of(np.array([[2, 0], [1, 1]])).tolist() == [4, 3]


def test_trees_that_make_no_tree_together_are_refused() -> None:
    wide = one_question((2**9 - 1,), 0, range(2**9))
    many = ObliviousTree((1,), (0,) * 9, ((0, 0),) * 9)
    for upper, lower in ((wide, wide), (many, many), (one_question((2,), 0, (0, 1, 1)), one_question((3,), 0, (0, 1, 1, 1)))):
        with pytest.raises(ReleaseError, match="oblivious tree: expected at most 16 levels and 65536 leaves, over the same attributes"):
            upper.above(lower)
