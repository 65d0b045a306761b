"""Candidates of a round: drawn at random, and more often like those that were chosen."""

from __future__ import annotations

import numpy as np

from hedgerow.growers.proposals import CANDIDATES, LOWERS, NEAR, Proposals

SIZES, NUMERIC = (40, 3), (40, 0)  # a number in 40 cells, and a category
CELLS = [np.arange(40), np.arange(3)]
SCORES = [np.zeros((40, 2)), np.zeros((3, 2))]


def proposals(seed: int = 0) -> Proposals:
    return Proposals(SIZES, NUMERIC, CELLS, SCORES, np.ones(2), np.random.default_rng(seed))


def cuts(drawn: Proposals, rounds: int = 400) -> np.ndarray:
    """Where the number was cut."""
    found = []
    for _ in range(rounds):
        for tree in drawn.candidates(2)[:: LOWERS + 1]:  # no half twice
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


def test_every_upper_half_stands_with_every_lower_one_in_each_group() -> None:
    trees = proposals().candidates(5, groups=3)
    assert len(trees) == 3 * CANDIDATES
    for group in range(3):
        own = trees[group * CANDIDATES : (group + 1) * CANDIDATES]
        halves = [(tree.answers[:2], tree.answers[2:]) for tree in own]
        uppers, lowers = [halves[k][0] for k in range(0, CANDIDATES, LOWERS)], [halves[k][1] for k in range(LOWERS)]
        assert halves == [(upper, lower) for upper in uppers for lower in lowers]
    assert trees[0].answers != trees[CANDIDATES].answers


def test_questions_about_a_category_are_never_all_or_none_and_some_follow_the_scores() -> None:
    """Of two values both sides; of ten any part, three of ten times a part at one end of the order of a class's scores."""
    sizes, scores = (2, 10), [np.zeros((2, 2)), np.column_stack([np.arange(10.0), np.arange(10.0) * np.tile([1, -1], 5)])]
    drawn = Proposals(sizes, (0, 0), [np.arange(2), np.arange(10)], scores, np.ones(2), np.random.default_rng(0))
    found: dict[int, list[np.ndarray]] = {0: [], 1: []}
    for tree in (tree for _ in range(100) for tree in drawn.candidates(2)[:: LOWERS + 1]):
        for j, answers in zip(tree.attributes, tree.answers, strict=True):
            found[j].append(answers.array)
    assert all(own[:2].tolist() == [0, 1] for own in found[0])
    assert {own[2] for own in found[0]} == {0, 1}  # a value that is none of them has any side
    many = np.array(found[1])
    assert 0 < many[:, :10].sum(axis=1).min() <= many[:, :10].sum(axis=1).max() < 10
    orders = [np.argsort(scores[1][:, c]) for c in (0, 1)]
    ordered = np.mean([any((np.diff(own[order].astype(int)) >= 0).all() for order in orders) for own in many[:, :10]])
    assert 0.25 < ordered < 0.4  # by chance one of a hundred more
