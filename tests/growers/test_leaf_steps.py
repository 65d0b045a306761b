"""What a leaf of a boosted tree adds, and the variance of true steps that is learnt from released sums."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.growers.leaf_steps import LEAST, VARIANCE, LeafSteps

LEAVES, TREES = 64, 60


def _trees(seed: int, spread: float, rows: float, sd: float, classes: int = 2) -> list[NDArray[np.float64]]:
    """Sums of trees whose leaves have true steps of this variance, H = `rows` and noise of this size: w = 1."""
    rng = np.random.default_rng(seed)
    width = 1 if classes == 2 else classes
    hessian = np.full((LEAVES, width), rows)
    steps = (rng.normal(0, np.sqrt(spread), (LEAVES, width)) for _ in range(TREES))
    chance = np.sqrt(rows + sd**2)
    return [np.hstack([hessian * s + rng.normal(0, chance, s.shape), hessian + rng.normal(0, sd, s.shape)]) for s in steps]


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


def test_a_step_is_the_posterior_mean_times_eta() -> None:
    steps = LeafSteps(3, 2.0, 0.3, 0.5)
    found, error = steps.of(np.array([[3.0, -1.0, -2.0, 4.0, 4.0, 4.0]]))  # H = 8
    weight = 0.3 * 2 / 3 / (8 + 4 / (VARIANCE * 8) + 1 / VARIANCE)
    assert found == pytest.approx(weight * np.array([[3.0, -1.0, -2.0]]), abs=1e-4)
    assert error == pytest.approx(np.full((1, 3), 2 * weight), abs=1e-4)
