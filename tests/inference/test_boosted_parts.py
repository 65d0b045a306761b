"""A boosted tree taken apart: Shapley values by their definition, and sums that come out."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from hedgerow.inference.boosted_parts import taken_apart
from hedgerow.trees.oblivious import ObliviousTree

SIZES = (3, 4, 2, 5)


def tree_of(asked: tuple[int, ...], rng: np.random.Generator) -> ObliviousTree:
    return ObliviousTree(SIZES, asked, tuple(tuple(int(a) for a in rng.integers(0, 2, SIZES[j] + 1)) for j in asked))


@pytest.mark.parametrize("asked", [(0,), (1, 3), (0, 1, 2), (0, 1, 0), (3, 3), (0, 1, 2, 3), (2, 0, 3, 0, 1)])
def test_contributions_are_shapley_values(asked: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(asked))
    tree = tree_of(asked, rng)
    scores = rng.normal(size=(tree.n_nodes, 3))
    shares = {j: rng.dirichlet(np.ones(size)) for j, size in enumerate(SIZES)}
    apart = taken_apart(tree, scores, np.ones_like(scores), shares)
    grid = np.stack(np.meshgrid(*(np.arange(size) for size in SIZES), indexing="ij"), axis=-1).reshape(-1, len(SIZES))
    weight = np.prod([shares[j][grid[:, j]] for j in range(len(SIZES))], axis=0)
    value, attributes = scores[tree.leaves_of(grid)], sorted(set(asked))

    def given(row: np.ndarray, known: tuple[int, ...]) -> np.ndarray:
        same = (grid[:, list(known)] == row[list(known)]).all(axis=1)
        return np.asarray((weight[same, None] * value[same]).sum(axis=0) / weight[same].sum())

    rows = grid[rng.choice(len(grid), 12)]
    for row, leaf in zip(rows, tree.leaves_of(rows), strict=True):
        for j in attributes:
            others, expected = [k for k in attributes if k != j], np.zeros(3)
            for size in range(len(others) + 1):
                times = factorial(size) * factorial(len(others) - size) / factorial(len(attributes))
                for some in combinations(others, size):
                    expected += times * (given(row, (*some, j)) - given(row, some))
            assert apart.contributions[j][leaf] == pytest.approx(expected, abs=1e-12)
            own = apart.own_trees[j].leaves_of(row[None])[0]
            assert apart.typical[j][own] == pytest.approx(given(row, (j,)) - given(row, ()), abs=1e-12)
        assert apart.base + sum(apart.contributions[j][leaf] for j in attributes) == pytest.approx(scores[leaf], abs=1e-12)


def test_the_variance_of_a_typical_effect_is_that_of_a_weighted_mean() -> None:
    rng = np.random.default_rng(1)
    tree = ObliviousTree(SIZES, (0, 2), ((0, 1, 1, 0), (0, 1, 0)))
    shares = {j: np.full(size, 1 / size) for j, size in enumerate(SIZES)}
    variances = rng.random((4, 2))
    apart = taken_apart(tree, np.zeros((4, 2)), variances, shares)
    assert apart.variances[0] == pytest.approx((variances.reshape(2, 2, 2) * 0.25).sum(axis=1))
    assert apart.variances[2] == pytest.approx((variances.reshape(2, 2, 2) * np.array([1 / 9, 4 / 9])[:, None, None]).sum(axis=0))
