"""Scores of all attributes, fitted together on noisy sums of gradients and Hessians."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.growers.joint_fit import STEPS, VARIANCE, JointFit, _precision

ROUNDS = 16
Floats = NDArray[np.float64]


def sums_of(codes: NDArray[np.int64], labels: NDArray[np.int64], groups: list[int], scores: list[Floats], classes: int) -> list[Floats]:
    """What a round without noise and without a clip answers: of each attribute ΣR and ΣH, last of rows without a declared value."""
    margins = sum(own[codes[:, j]] for j, own in enumerate(scores))
    p = np.exp(margins - np.max(margins, axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    each = np.hstack([np.eye(classes)[labels] - p, p * (1 - p)])
    each = each[:, [1, 3]] if classes == 2 else each
    found = []
    for j, g in enumerate(groups):
        own = np.zeros((g + 1, each.shape[1]))
        np.add.at(own, codes[:, j], each)
        found.append(own)
    return found


def fitted(
    codes: NDArray[np.int64],
    labels: NDArray[np.int64],
    groups: list[int],
    sd: float,
    seed: int = 0,
    classes: int = 2,
    ordered: bool = False,
) -> JointFit:
    """ordered: all attributes are numbers"""
    shares, order = np.bincount(labels, minlength=classes) / len(labels), [g if ordered else 0 for g in groups]
    fit, rng = JointFit(groups, order, len(labels), shares, sd, ROUNDS, 1.0), np.random.default_rng(seed)
    for _ in range(ROUNDS):
        exact = sums_of(codes, labels, groups, fit.now(), classes)
        fit.learn([own + rng.normal(0, sd, own.shape) for own in exact])
    return fit


def table(n: int, groups: list[int], seed: int = 0, same: int = 1, classes: int = 2) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The class follows from the first attribute; the next `same` − 1 are copies of it, the others tell nothing."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, g, n) for g in groups])
    for copy in range(1, same):
        codes[:, copy] = codes[:, 0]
    labels = np.where(rng.random(n) < 0.8, codes[:, 0] % classes, rng.integers(0, classes, n))
    return codes, labels


def log_odds(fit: JointFit, codes: NDArray[np.int64]) -> Floats:
    margins = sum(own[codes[:, j]] for j, own in enumerate(fit.result()))
    return np.asarray(margins[:, 1] - margins[:, 0])


@pytest.mark.parametrize("same", [1, 4])
def test_attributes_that_say_the_same_do_not_count_twice(same: int) -> None:
    """Naive Bayes would say four times what is true."""
    groups = [2, 2, 2, 2]
    codes, labels = table(20_000, groups, same=same)
    true = np.log([0.1 / 0.9, 0.9 / 0.1])[codes[:, 0]]
    np.testing.assert_allclose(log_odds(fitted(codes, labels, groups, 1.0), codes), true, atol=0.2)


def test_steps_that_go_too_far_together_are_taken_back() -> None:
    """Thirty copies of one attribute: γ = 3/30 for each would be three times what all of them need."""
    groups = [2] * 30
    codes, labels = table(20_000, groups, same=30)
    fit = fitted(codes, labels, groups, 0.1)
    assert fit.gamma < 0.1
    np.testing.assert_allclose(log_odds(fit, codes), np.log([0.1 / 0.9, 0.9 / 0.1])[codes[:, 0]], atol=0.3)


def test_three_classes() -> None:
    groups = [3, 4]
    codes, labels = table(20_000, groups, classes=3)
    result = fitted(codes, labels, groups, 1.0, classes=3).result()
    assert [own.shape for own in result] == [(4, 3), (5, 3)]
    assert (result[0][:3].argmax(axis=1) == [0, 1, 2]).all()
    assert abs(result[1]).max() < 0.1
    for own in result:
        np.testing.assert_allclose(own.sum(axis=1), 0, atol=3 / STEPS)


def test_undeclared_values_have_no_score_but_the_intercept() -> None:
    groups = [2, 3]
    codes, labels = table(2000, groups)
    labels[:700] = 1
    first, second = fitted(codes, labels, groups, 1.0).result()
    np.testing.assert_allclose(first[-1], first[:-1].mean(axis=0), atol=2 / STEPS)
    assert first[-1, 1] > 0
    assert (second[-1] == 0).all()


def test_scores_are_whole_steps_as_a_file_holds_them() -> None:
    codes, labels = table(500, [2, 3])
    for own in (*(fit := fitted(codes, labels, [2, 3], 5.0)).result(), *fit.now(), *fit.errors()):
        assert (own == np.rint(own * STEPS) / STEPS).all()


def test_noise_alone_hardly_moves_it() -> None:
    """Of 400 rows under noise of 500: margins stay far below what steps without a ridge would make of it."""
    groups = [4] * 9
    codes, labels = table(400, groups)
    fits = [log_odds(fitted(codes, labels, groups, 500.0, seed), codes) for seed in range(10)]
    assert np.std(fits) < np.sqrt(VARIANCE)


@pytest.mark.parametrize("jump", [False, True])
def test_groups_of_a_number_help_their_neighbours(jump: bool) -> None:
    """A trend is found under noise in which groups that stand for themselves are lost; a jump is no worse for it."""
    rng, groups = np.random.default_rng(0), [24, 24]
    codes = np.column_stack([rng.integers(0, g, 6000) for g in groups])
    true = np.where(codes[:, 0] < 12, -1.0, 1.0) if jump else (codes[:, 0] - 11.5) / 8
    labels = (rng.random(len(true)) < 1 / (1 + np.exp(-true))).astype(np.int64)
    far = {
        ordered: np.mean([(log_odds(fitted(codes, labels, groups, 80.0, seed, ordered=ordered), codes) - true) ** 2 for seed in range(8)])
        for ordered in (False, True)
    }
    assert far[True] < (0.9 if jump else 0.8) * far[False]


def test_a_value_that_is_no_cell_stands_for_itself() -> None:
    """The last group is that of missing values: it has no neighbours."""
    assert (_precision(5, 4)[4] == [0, 0, 0, 0, 1]).all()
    assert (abs(_precision(5, 4)[3, 2]) > 0.1, _precision(5, 0).shape, _precision(5, 1).shape) == (True, (5, 1), (5, 1))


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("groups", [[2, 3], [4, 4, 4, 4, 4, 4, 4, 4], [12, 12]])
def test_errors_are_about_what_the_noise_does(groups: list[int], ordered: bool) -> None:
    """Over 60 fits of the same rows. Attributes that are independent; where they repeat each other, errors are a rough guide."""
    codes, labels = table(4000, groups)
    several = [fitted(codes, labels, groups, 60.0, seed, ordered=ordered) for seed in range(60)]
    for j in range(1, len(groups)):  # the first holds the intercept, too
        spread = np.std([fit.result()[j][:-1] for fit in several], axis=0).mean()
        assert 0.6 < spread / np.mean([fit.errors()[j][:-1] for fit in several]) < 1.3
