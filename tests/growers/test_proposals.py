"""Candidates of a round: drawn at random, and more often like those that were chosen."""

from __future__ import annotations

import numpy as np

from hedgerow.growers.proposals import HALVES, NEAR, Proposals

SIZES, NUMERIC = (40, 3), (40, 0)  # a number in 40 cells, and a category
CELLS = [np.arange(40), np.arange(3)]
SCORES = [np.zeros((40, 2)), np.zeros((3, 2))]


def proposals(seed: int = 0) -> Proposals:
    return Proposals(SIZES, NUMERIC, CELLS, SCORES, np.ones(2), np.random.default_rng(seed))


def cuts(drawn: Proposals, rounds: int = 400) -> np.ndarray:
    """Where the number was cut."""
    found = []
    for _ in range(rounds):
        for tree in drawn.candidates(2)[:: HALVES + 1]:  # every half once
            found += [int(np.argmax(a.array[:40])) for j, a in zip(tree.attributes, tree.answers, strict=True) if j == 0]
    return np.array(found)


def test_at_first_every_cut_is_as_likely() -> None:
    found = cuts(proposals())
    assert set(found) == set(range(1, 40))
    assert np.bincount(found, minlength=40)[1:].max() < 2.5 * len(found) / 39


def test_cuts_near_chosen_ones_are_drawn_more_often_and_all_others_still() -> None:
    drawn = proposals()
    for _ in range(60):
        trees = drawn.candidates(2)
        near = [
            tree for tree in trees for j, a in zip(tree.attributes, tree.answers, strict=True) if j == 0 and a.array[:25].argmax() == 20
        ]
        for tree in near[:1]:
            drawn.learn(tree)
    assert drawn.below[0][-1] == 1
    assert (np.diff(drawn.below[0]) > 0).all()
    found = cuts(drawn)
    inside = np.mean(np.abs(found - 20) <= 4)
    assert 0.3 < inside < NEAR + 0.3 * 9 / 39 + 0.05  # 9 of 39 are there by chance
    assert set(found) == set(range(1, 40))


def test_a_number_with_one_cell_alone_is_not_asked_about() -> None:
    one = Proposals(SIZES, NUMERIC, [np.zeros(40, dtype=np.int64), np.arange(3)], SCORES, np.ones(2), np.random.default_rng(0))
    assert all(j == 1 for tree in one.candidates(3) for j in tree.attributes)
