"""What a leaf of a boosted tree adds, and the variance of true steps that is learnt from released sums."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.growers.leaf_steps import LEAST, LEAST_SHARE, VARIANCE, LeafSteps

LEAVES, TREES = 64, 60


def _trees(seed: int, spread: float, rows: float, sd: float, classes: int = 2) -> list[NDArray[np.float64]]:
    """Sums of trees whose leaves have true steps of this variance, H = `rows` and noise of this size: w = 1."""
    rng = np.random.default_rng(seed)
    width = 1 if classes == 2 else classes
    hessian = np.full((LEAVES, width), rows)
    steps = (rng.normal(0, np.sqrt(spread), (LEAVES, width)) for _ in range(TREES))
    chance = np.sqrt(rows + sd**2)
    if classes > 2:
        chance = np.sqrt(rows * classes / (classes - 1))  # of labels: over all classes they add up to 0, noise does not

    def gradient(s: NDArray[np.float64]) -> NDArray[np.float64]:
        found = rng.normal(0, chance, s.shape)
        if classes > 2:
            found += rng.normal(0, sd, s.shape) - found.mean(axis=1, keepdims=True)
        return hessian * s + found

    return [np.hstack([gradient(s), hessian + rng.normal(0, sd, s.shape)]) for s in steps]


def _learnt(trees: list[NDArray[np.float64]], sd: float, classes: int = 2) -> float:
    steps = LeafSteps(classes, sd, 0.3, 1.0)
    for sums in trees:
        steps.of(sums)
    return steps.variance.v


@pytest.mark.parametrize("seed", range(5))
def test_where_nothing_is_left_to_learn_steps_become_small(seed: int) -> None:
    assert _learnt(_trees(seed, 0.0, 50.0, 5.0), 5.0) == LEAST


@pytest.mark.parametrize("seed", range(5))
def test_where_steps_are_large_the_variance_stays(seed: int) -> None:
    assert _learnt(_trees(seed, 1.0, 50.0, 5.0), 5.0) == VARIANCE


@pytest.mark.parametrize("seed", range(5))
def test_it_is_an_upper_bound_of_the_true_one(seed: int) -> None:
    assert 0.1 <= _learnt(_trees(seed, 0.1, 50.0, 5.0), 5.0) <= 0.2


def test_noise_alone_shows_nothing() -> None:
    assert _learnt(_trees(0, 0.0, 5.0, 100.0), 100.0) == VARIANCE


def test_one_tree_shows_little() -> None:
    assert _learnt(_trees(0, 0.0, 10.0, 5.0)[:1], 5.0) > 5 * LEAST


def test_more_classes_keep_the_variance() -> None:
    assert _learnt(_trees(0, 0.0, 50.0, 5.0, classes=3), 5.0, classes=3) == VARIANCE


def _shares(trees: list[NDArray[np.float64]], sd: float, trees_to_come: int | None = TREES) -> list[float]:
    """What is taken of the steps of each tree, against those of a forest that is not watched."""
    watched, plain = LeafSteps(3, sd, 0.3, 1.0, trees_to_come), LeafSteps(3, sd, 0.3, 1.0)
    return [float(np.linalg.norm(watched.of(sums)[0]) / np.linalg.norm(plain.of(sums)[0])) for sums in trees]


@pytest.mark.parametrize("seed", range(5))
def test_several_classes_take_little_of_steps_where_trees_find_nothing(seed: int) -> None:
    shares = _shares(_trees(seed, 0.0, 50.0, 5.0, classes=3), 5.0)
    assert shares[: TREES // 10 - 1] == [1.0] * (TREES // 10 - 1)  # too early to tell
    assert max(shares[TREES // 2 :]) < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_several_classes_take_all_of_them_where_trees_find_something(seed: int) -> None:
    assert _shares(_trees(seed, 0.5, 50.0, 5.0, classes=3), 5.0) == [1.0] * TREES


@pytest.mark.parametrize("seed", range(3))
def test_several_classes_do_not_take_all_of_steps_where_trees_find_a_little(seed: int) -> None:
    """m is clearly above 0, and not above FOUND."""
    assert max(_shares(_trees(seed, 0.004, 50.0, 5.0, classes=3), 5.0)[TREES // 2 :]) < 1


def test_a_few_large_steps_are_found_among_many_that_are_none() -> None:
    rng = np.random.default_rng(3)
    trees = _trees(3, 0.0, 50.0, 5.0, classes=3)
    for sums in trees[:20]:
        sums[rng.integers(LEAVES), rng.integers(3)] += 80.0
    assert _shares(trees, 5.0) == [1.0] * TREES  # later ones, too, though nothing is left for them


def test_where_the_model_knows_its_rows_by_heart_next_to_nothing_is_taken() -> None:
    trees = _trees(0, 0.0, 50.0, 1.0, classes=3)
    for sums in trees:
        sums[:, :3] /= 4  # less than chance would do
    assert _shares(trees, 1.0)[-1] == pytest.approx(LEAST_SHARE, abs=0.005)


def test_where_noise_hides_whether_trees_find_anything_most_is_taken() -> None:
    """m is not known to be small: what is taken is less for some trees, and never little."""
    shares = [_shares(_trees(seed, 0.0, 5.0, 100.0, classes=3), 100.0) for seed in range(8)]
    assert np.median(shares) > 0.8
    assert np.min(shares) > 0.2


def test_two_classes_and_forests_without_a_delta_are_not_cut() -> None:
    assert _shares(_trees(0, 0.0, 50.0, 5.0, classes=3), 5.0, trees_to_come=None) == [1.0] * TREES
    assert LeafSteps(2, 5.0, 0.3, 1.0, TREES).share is None
    assert LeafSteps(3, 5.0, 0.3, 1.0, TREES).share is not None


def test_a_step_is_the_posterior_mean_times_eta() -> None:
    steps = LeafSteps(3, 2.0, 0.3, 0.5)
    found, error = steps.of(np.array([[3.0, -1.0, -2.0, 4.0, 4.0, 4.0]]))  # H = 8
    weight = 0.3 * 2 / 3 / (8 + 4 / (VARIANCE * 8) + 1 / VARIANCE)
    assert found == pytest.approx(weight * np.array([[3.0, -1.0, -2.0]]), abs=1e-4)
    assert error == pytest.approx(np.full((1, 3), 2 * weight), abs=1e-4)
