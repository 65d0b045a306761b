"""A boosted tree taken apart: Shapley values by their definition, and sums that come out."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from hedgerow import Categorical, HedgerowClassifier, Schema, Target
from hedgerow.inference.boosted_parts import Step, Typical, beyond_noise, pairs_of, settled_variance, taken_apart
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


@pytest.mark.parametrize("asked", [(0,), (2, 0), (0, 1, 2), (0, 1, 0), (0, 1, 2, 3), (2, 0, 3, 0, 1)])
def test_variances_are_those_of_what_is_taken_apart(asked: tuple[int, ...]) -> None:
    """Over draws of noise on the leaves. Contributions had an even share of the variance of their leaf, however rare the value."""
    rng = np.random.default_rng(1)
    tree = tree_of(asked, rng)
    shares = {j: 0.5 * rng.dirichlet(np.ones(size)) + 0.5 / size for j, size in enumerate(SIZES)}
    variances = np.tile(0.5 + rng.random((tree.n_nodes, 1)), 2000)
    apart = taken_apart(tree, rng.normal(0, np.sqrt(variances)), variances, shares)
    for j in set(asked):
        assert apart.variances[j][:, 0] == pytest.approx(apart.typical[j].var(axis=1), rel=0.15, abs=1e-9)
        assert apart.noise[j][:, 0] == pytest.approx(apart.contributions[j].var(axis=1), rel=0.4, abs=1e-9)


@pytest.mark.parametrize("asked", [(1, 3), (0, 1, 2), (0, 1, 0, 3)])
def test_pairs_are_what_is_left_of_two_without_each(asked: tuple[int, ...]) -> None:
    """The mean given both values, less the means given each, and the mean of all once more."""
    rng = np.random.default_rng(len(asked))
    tree = tree_of(asked, rng)
    scores = rng.normal(size=(tree.n_nodes, 2))
    shares = {j: rng.dirichlet(np.ones(size)) for j, size in enumerate(SIZES)}
    grid = np.stack(np.meshgrid(*(np.arange(size) for size in SIZES), indexing="ij"), axis=-1).reshape(-1, len(SIZES))
    weight = np.prod([shares[j][grid[:, j]] for j in range(len(SIZES))], axis=0)
    value = scores[tree.leaves_of(grid)]

    def given(row: np.ndarray, known: tuple[int, ...]) -> np.ndarray:
        same = (grid[:, list(known)] == row[list(known)]).all(axis=1)
        return np.asarray((weight[same, None] * value[same]).sum(axis=0) / weight[same].sum())

    found = pairs_of(tree, scores, shares)
    assert len(found) == len(set(asked)) * (len(set(asked)) - 1) // 2
    for first, second, both in found:
        j, k = first.attributes[0], second.attributes[0]
        for row in grid[rng.choice(len(grid), 8)]:
            expected = given(row, (j, k)) - given(row, (j,)) - given(row, (k,)) + given(row, ())
            assert both[first.leaves_of(row[None])[0], second.leaves_of(row[None])[0]] == pytest.approx(expected, abs=1e-12)


def test_the_strongest_interaction_is_the_one_that_is_there() -> None:
    draw = np.random.default_rng(2)
    columns = {f"a{i}": draw.integers(0, 3, 8000) for i in range(5)}
    labels = (columns["a1"] == columns["a3"]).astype(int)
    schema = Schema([Categorical(name, [0, 1, 2]) for name in columns], Target("y", [0, 1]), 8000)
    release = HedgerowClassifier(schema, 8, 1e-6, random_state=0).fit(columns, labels).release_
    found = release.interactions()
    assert found[0].attributes == ("a1", "a3")
    assert found[0].size > 5 * found[1].size
    assert found[0].text().startswith("a1 and a3 together: ")
    assert 0.5 < found[0].share <= 1


def test_the_draw_of_trees_counts_beyond_their_noise_alone() -> None:
    rng, codes = np.random.default_rng(5), np.arange(3)[:, None] * np.array([[1, 0, 0, 0]])
    noise, whole = 0.04, []
    for _ in range(200):
        drawn = [number for number in range(60) if rng.random() < 0.5]  # the others do not ask
        found = [
            Typical(n, ObliviousTree(SIZES, (0,), ((0, 1, 1, 0),)), rng.normal(0.3, 0.2, (2, 3)), np.full((2, 3), noise)) for n in drawn
        ]
        whole.append((sum(one.scores for one in found)[[0, 1, 1]], beyond_noise(found, 60, codes) + noise * len(found)))
    sums, variances = map(np.array, zip(*whole, strict=True))
    np.testing.assert_allclose(variances.mean(axis=0), sums.var(axis=0), rtol=0.3)
    alike = [Typical(n, found[0].tree, np.full((2, 3), 0.3), np.full((2, 3), noise)) for n in range(60)]
    assert not beyond_noise(alike, 60, codes).any()  # trees that all do the same
    assert not beyond_noise(alike[:1], 1, codes).any()  # one tree tells nothing of others
    assert beyond_noise(alike[7:8], 60, codes) == pytest.approx(60 / 59 * 0.3**2 - noise)


def test_later_trees_take_back_what_noise_did_before() -> None:
    """Simulated: each tree adds noise to the mean scores of its sides, and takes back a part of what these deviate by."""
    rng, codes = np.random.default_rng(6), np.arange(3)[:, None] * np.array([[1, 0, 0, 0]])
    rows = np.array([0.6, 0.3, 0.1])
    variances = np.array([0.01, 0.02, 0.05, 0.0])[:, None] * [1.0, 2.0]
    steps = [Step(ObliviousTree(SIZES, (0,), ((0, 1, 2, 3),)), np.append(rows, 0.0), variances, np.zeros((4, 2)))]
    for number in range(30):
        sides = [(0, 1, 1, 0), (0, 0, 1, 0), (0, 1, 0, 0)][number % 3]
        shares = np.bincount(sides[:3], rows)
        own = np.array([[0.002, 0.004], [0.004, 0.004]]), shares[:, None] * [0.3, 0.6]
        steps.append(Step(ObliviousTree(SIZES, (0,), (sides,)), shares, *own))
    found = settled_variance(steps, codes, rows)
    for c in range(2):
        draws = np.zeros((4000, 3))
        for step in steps:
            at = step.tree.leaves_of(codes)
            of_sides = np.zeros((len(draws), step.tree.n_nodes))
            for side in set(at.tolist()):
                of_sides[:, side] = np.average(draws[:, at == side], axis=1, weights=rows[at == side])
            said = rng.normal(size=of_sides.shape) * np.sqrt(step.variances[:, c]) - step.back[:, c] * of_sides
            draws = draws + (said - (said @ step.shares)[:, None])[:, at]
        np.testing.assert_allclose(found[:, c], draws.var(axis=0), rtol=0.12)
    untouched = [Step(step.tree, step.shares, step.variances, 0 * step.back) for step in steps]
    assert (settled_variance(untouched, codes, rows) > 1.5 * found).all()
    questions, other = ((0, 1, 1, 0), (0, 1, *[0] * (SIZES[1] - 1))), np.array([0.8, 0.2, *[0.0] * (SIZES[1] - 2)])
    apart = taken_apart(
        ObliviousTree(SIZES, (0, 1), questions), np.zeros((4, 2)), np.full((4, 2), 0.5), {0: rows, 1: other}, np.array([[2.0, 1.0]] * 4)
    )
    np.testing.assert_allclose(apart.steps[0].shares, [0.6, 0.4])
    np.testing.assert_allclose(apart.steps[0].variances, 0.5 * (0.8**2 + 0.2**2))
    np.testing.assert_allclose(apart.steps[0].back[:, 1], [0.8 * 0.48 + 0.2 * 0.12, 0.8 * 0.32 + 0.2 * 0.08])
    np.testing.assert_allclose(apart.steps[0].back[:, 0], 2 * apart.steps[0].back[:, 1])
