"""Boosting queries: what is summed, that a row's part is bounded whatever the floats did, exact scores, what is charged and released."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, EXPONENTIAL, PERMUTE_AND_FLIP
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.noise import noise_of, variance_of
from hedgerow.accounting.prices import Rho
from hedgerow.accounting.zcdp import rho_for, zcdp_cost
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, PlanError
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.private_table import PrivateTable
from hedgerow.queries import BoostRound, ChooseTree, boosting_loops
from hedgerow.queries.boosting import MOST_SUMS, MOST_TREES, _roots, bound, hessian_weight, scores_of_trees, tree_score
from hedgerow.queries.bundles import bundled
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.additive_model import GRID, AdditiveModel, gradient_width
from hedgerow.trees.oblivious import MOST_LEAVES, ObliviousTree, one_question

SIZES = (4, 3, 5)


def codebook_of(classes: int) -> Codebook:
    return Codebook(Schema([Categorical(f"a{j}", tuple(range(size))) for j, size in enumerate(SIZES)], Target("y", tuple(range(classes)))))


def trees_of(rng: np.random.Generator, depth: int, number: int) -> list[ObliviousTree]:
    def tree() -> ObliviousTree:
        asked = [int(j) for j in rng.integers(0, len(SIZES), depth)]
        return ObliviousTree(SIZES, tuple(asked), tuple(tuple(int(a) for a in rng.integers(0, 2, SIZES[j] + 1)) for j in asked))

    return [tree() for _ in range(number)]


def rows_of(rng: np.random.Generator, n: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    codes = np.stack([rng.integers(0, size + 1, n) for size in SIZES], axis=1).astype(np.uint8)
    return codes, rng.integers(0, classes + 1, n).astype(np.uint16)


def model_of(rng: np.random.Generator, classes: int, size: float = 2.0) -> AdditiveModel:
    trees = trees_of(rng, 2, 3)
    return AdditiveModel(rng.normal(size=classes), tuple(trees), tuple(size * rng.normal(size=(tree.n_nodes, classes)) for tree in trees))


def vectors(margins: np.ndarray, classes: np.ndarray, concentrated: bool) -> tuple[np.ndarray, np.ndarray]:
    """u_R and u_H of each row."""
    c = margins.shape[1]
    out = np.full((len(margins), gradient_width(c)), -1, dtype=np.int64)
    rest = classes, hessian_weight(concentrated), concentrated, bound(c, concentrated)
    with np.errstate(all="ignore"):
        if c == 2:
            boosting_loops._vectors_of_two(margins[:, 1] - margins[:, 0], *rest, out[:, 0])
        else:
            boosting_loops._vectors(margins, *rest, out)
    return out >> 32, out & (2**32 - 1)


@pytest.mark.parametrize("concentrated", [False, True])
def test_of_two_classes_both_ways_give_the_same(concentrated: bool) -> None:
    rng = np.random.default_rng(3)
    margins = np.concatenate([rng.normal(size=(400, 2)), 30 * rng.normal(size=(100, 2)), [[0.0, 0.0], [50.0, 0.0], [0.0, 40.0]]])
    labels = rng.integers(0, 3, len(margins)).astype(np.uint16)
    out = np.full((len(margins), 1), -1, dtype=np.int64)
    boosting_loops._vectors(margins, labels, hessian_weight(concentrated), concentrated, bound(2, concentrated), out)
    r, h = vectors(margins, labels, concentrated)
    assert np.array_equal(r, out >> 32)
    assert np.array_equal(h, out & (2**32 - 1))


@pytest.mark.parametrize("concentrated", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_a_rows_vector_is_its_gradient_and_hessian_scaled_to_the_bound(classes: int, concentrated: bool) -> None:
    rng = np.random.default_rng(classes)
    codes, labels = rows_of(rng, 500, classes)
    margins = model_of(rng, classes).margins(codes)
    r, h = vectors(margins, labels, concentrated)
    p = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    width = gradient_width(classes)
    exact = np.hstack([np.eye(classes + 1)[labels][:, :classes] - p, hessian_weight(concentrated) * p * (1 - p)])
    exact = exact.reshape(-1, 2, classes)[:, :, classes - width :].reshape(len(codes), -1) * GRID
    norm = np.linalg.norm(exact, axis=1) if concentrated else np.abs(exact).sum(axis=1)
    exact *= np.minimum(1, bound(classes, concentrated) / norm)[:, None]
    exact[labels == classes] = 0
    found = np.hstack([r, h])
    assert (np.abs(found - exact) < 1 + 1e-6).all()
    assert (np.abs(found) <= np.abs(exact) + 1e-6).all()
    assert (norm > bound(classes, concentrated)).any()  # some were too long


@settings(max_examples=200)
@given(st.data(), st.sampled_from([2, 3, 5]), st.booleans())
def test_no_row_is_longer_than_is_charged(data: Any, classes: int, concentrated: bool) -> None:
    """Also where the margins are no numbers."""
    numbers = st.floats(width=64) | st.sampled_from([0.0, 1e-300, 700.0, -700.0, 1e6, -1e6, math.inf, -math.inf, math.nan])
    margins = np.array(data.draw(st.lists(st.lists(numbers, min_size=classes, max_size=classes), min_size=1, max_size=4)))
    labels = np.array(data.draw(st.lists(st.integers(0, classes), min_size=len(margins), max_size=len(margins))), dtype=np.uint16)
    r, h = vectors(margins, labels, concentrated)
    most = bound(classes, concentrated)
    size = (r**2 + h**2).sum(axis=1) if concentrated else (np.abs(r) + np.abs(h)).sum(axis=1)
    assert (size <= (most**2 if concentrated else most)).all()
    assert (h >= 0).all()
    assert (h <= GRID).all()
    assert (r[labels == classes] == 0).all()
    assert (h[labels == classes] == 0).all()


def test_bounds_and_weights_are_those_of_the_theorem() -> None:
    assert bound(3, True) == bound(9, True) == math.isqrt(49 * GRID**2 // 100)  # 0.7
    assert bound(2, True) == math.isqrt(49 * GRID**2 // 200)  # 0.7/√2
    assert (bound(3, False), bound(2, False)) == (GRID, GRID // 2)
    assert (hessian_weight(True), hessian_weight(False)) == (1.0, 0.25)


@pytest.mark.parametrize("concentrated", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_row_that_the_model_has_wrong_with_no_doubt_is_as_long_as_the_bound_allows(classes: int, concentrated: bool) -> None:
    """Shares of exactly 1 and 0, Hessians of exactly 0: the vector is the gradient alone, and not one step shorter than it may be."""
    margins, labels = np.zeros((2, classes)), np.array([0, 1], np.uint16)
    margins[:, 1] = 5000.0
    r, h = vectors(margins, labels, concentrated)
    most = bound(classes, concentrated)
    each = most if classes == 2 else math.isqrt(most**2 // 2) if concentrated else most // 2
    assert r[0].tolist() == ([-each] if classes == 2 else [each, -each, 0])
    assert not r[1].any()  # it is right
    assert not h.any()


class Divided(int):
    """A bound by which vectors are scaled as floating point might do it at its worst."""

    steps: float

    def __new__(cls, most: int, steps: float) -> Divided:
        made = super().__new__(cls, most)
        made.steps = steps
        return made

    def __truediv__(self, other: Any) -> float:
        return self.steps


def plain_vectors(margins: list[float], weight: float, euclidean: bool, most: int) -> list[list[int]]:
    """u_R and u_H of a row of the first class, not compiled."""
    plain = getattr(boosting_loops._vectors, "py_func", boosting_loops._vectors)  # itself where nothing is compiled
    out = np.full((1, 3), 7, dtype=np.int64)
    plain(np.array([margins]), np.zeros(1, np.uint16), weight, euclidean, most, out)
    return [(out[0] >> 32).tolist(), (out[0] & (2**32 - 1)).tolist()]


NOTHING = [[0] * 3] * 2
EVEN = [0.0, 0.0, -5000.0]  # shares 1/2, 1/2, 0


@pytest.mark.parametrize(
    ("weight", "euclidean", "most", "expected"),
    [
        (0.0, False, Divided(10, 10.0), [[5, -5, 0], [0] * 3]),
        (0.0, False, Divided(9, 10.0), NOTHING),  # one step too long
        (0.0, True, Divided(7, 10.9), NOTHING),  # 25 + 25 is one more than 49
        (2.0, True, Divided(15, 20.0), NOTHING),  # 4 · 10² is more than 15²: Hessians count as gradients do
        (2.0, True, Divided(20, 20.0), [[10, -10, 0], [10, 10, 0]]),
        (2.0, False, Divided(39, 20.0), NOTHING),
        (2.0, False, Divided(40, 20.0), [[10, -10, 0], [10, 10, 0]]),
        (4.0, False, 100_000, [[2048, -2048, 0], [4096, 4096, 0]]),  # a Hessian of 1 is the largest that is taken
        (6.0, False, 100_000, NOTHING),
        (0.0, False, Divided(2000, math.nan), NOTHING),
        (0.0, False, Divided(2000, -1.0), NOTHING),
        (0.0, False, Divided(2000, math.inf), NOTHING),
        (0.0, False, Divided(4000, GRID + 1.0), NOTHING),
    ],
)
def test_the_bound_is_enforced_and_not_only_computed(weight: float, euclidean: bool, most: int, expected: list[list[int]]) -> None:
    """A vector that was scaled wrongly, and is too long by its whole numbers, is not counted; nor is what is no number."""
    assert plain_vectors(EVEN, weight, euclidean, most) == expected


@pytest.mark.parametrize(
    ("steps", "euclidean", "most", "label", "expected"),
    [
        (100.0, True, 62, 1, 0),  # 0.5 and 0.25 · 1.5 · 100: 50 and 37, of length 62.2
        (100.0, True, 63, 1, 50 * 2**32 + 37),
        (100.0, False, 86, 1, 0),
        (100.0, False, 87, 1, 50 * 2**32 + 37),
        (100.0, False, 86, 0, 0),
        (100.0, False, 87, 0, -50 * 2**32 + 37),
        (-1.0, True, 100, 1, 0), (math.nan, True, 100, 1, 0), (GRID + 1.0, False, 1, 1, 0),
    ],
)  # fmt: skip
def test_of_two_classes_the_bound_is_enforced_and_not_only_computed(
    steps: float, euclidean: bool, most: int, label: int, expected: int
) -> None:
    assert plain_of_two(0.0, label, 1.5, euclidean, Divided(most, steps)) == expected


def plain_of_two(gap: float, label: int, weight: float, euclidean: bool, most: int) -> int:
    plain = getattr(boosting_loops._vectors_of_two, "py_func", boosting_loops._vectors_of_two)  # itself where nothing is compiled
    out = np.full(1, -1, dtype=np.int64)
    plain(np.array([gap]), np.array([label], np.uint16), weight, euclidean, most, out)
    return int(out[0])


def test_of_two_classes_a_gradient_beyond_1_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an e^−x of −3 the shares are −½ and 3/2."""
    monkeypatch.setattr(boosting_loops, "exp_minus", lambda _: -3.0)
    found = [plain_of_two(gap, label, 0.0, False, 10**6) for gap in (1.0, -1.0) for label in (0, 1)]
    assert found == [2048 * 2**32, 0, 0, -2048 * 2**32]


@pytest.mark.parametrize(("gap", "label", "counted"), [(0.0, 0, True), (0.0, 1, True), (0.0, 2, False), (math.nan, 1, False)])
def test_of_two_classes_a_row_of_no_class_or_of_no_number_is_not_counted(gap: float, label: int, counted: bool) -> None:
    out = np.full(1, -1, dtype=np.int64)
    boosting_loops._vectors_of_two(np.array([gap]), np.array([label], np.uint16), 1.0, True, 2027, out)
    assert bool(out[0]) is counted


@pytest.mark.parametrize(("weight", "expected"), [(-1.0, 0), (3.0, 2048 * 2**32 + 3072), (4.0, 2048 * 2**32 + 4096), (5.0, 0)])
def test_of_two_classes_a_hessian_beyond_its_range_is_not_counted(weight: float, expected: int) -> None:
    """p(1 − p) is at most ¼: no weight that is used brings it above 1."""
    assert plain_of_two(0.0, 1, weight, True, 10**6) == expected


def test_a_gradient_beyond_1_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of 2 and −3/2 are none: an exponential function at its worst. That of the largest margin is not computed."""
    shares = iter([3.0, -1.0, 4.0, -3.0])
    monkeypatch.setattr(boosting_loops, "exp_minus", lambda x: next(shares))
    apart = [0.0, -1.0, -5000.0]
    assert plain_vectors(apart, 0.0, False, 100_000) == [[2730, -4096, 1365], [0] * 3]  # 1 − 1/3, −1, 1/3
    assert plain_vectors(apart, 0.0, False, 100_000) == [[2048, 0, 0], [0] * 3]  # −2 and 3/2 are left out


def test_a_block_of_more_rows_than_go_down_a_tree_together() -> None:
    rng = np.random.default_rng(5)
    n = 2 * boosting_loops.TOGETHER + 3
    codes, labels = rows_of(rng, n, 2)
    model, tree = AdditiveModel(np.array([0.2, 0.0]), (), ()), trees_of(rng, 2, 1)[0]
    found, expected = np.zeros((1, 4, 2), dtype=np.int64), np.zeros((4, 2), dtype=np.int64)
    boosting_loops.add_tree_sums([tree], model, False, codes, labels, None, found)
    np.add.at(expected, tree.leaves_of(codes), np.hstack(vectors(model.margins(codes), labels, False)))
    assert np.array_equal(found[0], expected)


@pytest.mark.parametrize("concentrated", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("n", "block"), [(50, 8), (3_000, boosting_loops.BLOCK)])
def test_sums_are_those_of_the_leaves_and_a_row_changes_them_by_its_vector(
    classes: int, concentrated: bool, n: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boosting_loops, "BLOCK", block)
    monkeypatch.setattr(boosting_loops, "MOST_PACKED", 3 * block)
    rng = np.random.default_rng(10 * classes + concentrated)
    codes, labels = rows_of(rng, n, classes)
    model, trees = model_of(rng, classes), [*trees_of(rng, 3, 5), one_question(SIZES, 2, range(6))]
    r, h = vectors(model.margins(codes), labels, concentrated)
    shape = (len(trees), 8, 2 * gradient_width(classes))
    found = np.zeros(shape, dtype=np.int64)
    boosting_loops.add_tree_sums(trees, model, concentrated, codes, labels, None, found)
    expected = np.zeros_like(found)
    for t, tree in enumerate(trees):
        np.add.at(expected[t], tree.leaves_of(codes), np.hstack([r, h]))
    assert np.array_equal(found, expected)
    for rows in (slice(0, 0), slice(5, 6), slice(1, n)):  # however they are cut, and with margins that are known
        part = np.zeros_like(found)
        boosting_loops.add_tree_sums(trees, model, concentrated, codes[rows], labels[rows], model.margins(codes[rows]), part)
        rest = np.zeros_like(found)
        others = np.delete(np.arange(n), np.arange(n)[rows])
        boosting_loops.add_tree_sums(trees, model, concentrated, codes[others].astype(np.uint16), labels[others], None, rest)
        assert np.array_equal(part + rest, found)
    for i in range(20 if n > 50 else 3):
        one = np.zeros_like(found)
        boosting_loops.add_tree_sums(trees, model, concentrated, codes[i : i + 1], labels[i : i + 1], None, one)
        change = np.abs(scores_of_trees(found, concentrated) - scores_of_trees(found - one, concentrated))
        assert (change <= bound(classes, concentrated)).all()


WIDE = (40, 6, 300, 2)  # more codes than a byte holds, and more answers in turn than are compared


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("most", [1, 64, 512, 1 << 11, 1 << 16, 1 << 30])
def test_trees_that_are_summed_together_have_their_own_sums(classes: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every upper half with every lower one, a half twice, trees that share none, and of other sizes; few rows and many."""
    monkeypatch.setattr(boosting_loops, "MOST_CELLS", most)
    rng = np.random.default_rng(most)

    def half(depth: int) -> ObliviousTree:
        asked = [int(j) for j in rng.integers(0, len(WIDE), depth)]
        cuts = [(np.arange(WIDE[j] + 1) >= rng.integers(1, WIDE[j])) ^ (rng.random(WIDE[j] + 1) < rng.choice([0, 0.5])) for j in asked]
        for cut in cuts:
            cut[-1] = not cut[:-1].any()  # each has two answers
        return ObliviousTree(WIDE, tuple(asked), tuple(cuts))

    uppers, lowers = [half(2) for _ in range(3)], [half(3) for _ in range(6)]
    trees = [upper.above(lower) for upper in uppers for lower in lowers] + [uppers[0].above(lowers[1]), half(3), half(1), uppers[2]]
    trees += [one_question(WIDE, 0, range(41)), one_question(WIDE, 1, [0] * 7), one_question(WIDE, 2, rng.integers(0, 30, 301))]
    model = AdditiveModel(rng.normal(size=classes), (), ())
    for n in (40, 3_000) if most < 1 << 30 else (200_000,):  # so many cells as rows, and their numbers would need more than 16 bits
        codes = np.stack([rng.integers(0, size + 1, n) for size in WIDE], axis=1).astype(np.uint16)
        labels = rng.integers(0, classes + 1, n).astype(np.uint16)
        found = np.zeros((len(trees), 41, 2 * gradient_width(classes)), dtype=np.int64)
        boosting_loops.add_tree_sums(trees, model, True, codes, labels, None, found)
        own = np.hstack(vectors(model.margins(codes), labels, True))
        for tree, sums in zip(trees, found, strict=True):
            expected = np.zeros_like(sums)
            np.add.at(expected, tree.leaves_of(codes), own)
            assert np.array_equal(sums, expected)


def halves_of_sizes(*sizes: int) -> list[ObliviousTree]:
    """Of one level each, all different."""
    return [one_question((64,) * 20, j, np.arange(65) % size) for j, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("uppers", "lowers", "most", "bundles"),
    [
        ([8] * 4, [8] * 6, 1 << 12, 6),  # two and two
        ([8] * 5, [8] * 5, 1 << 12, 8),  # and at the end one and three
        ([8] * 4, [8] * 6, (1 << 12) - 1, 12),
        ([8] * 4, [8] * 6, 64, 24),
        ([8] * 4, [8] * 6, 1, 24),
        ([8] * 4, [8] * 6, 0, 24),
        ([8] * 4, [8] * 6, 1 << 30, 4),  # 2^16 cells at most: their numbers have 16 bits
        ([2] * 3, [64] * 2, 1 << 10, 2),  # all three above
        ([64], [2] * 6, 1 << 9, 2),
        ([8], [64, 8, 2], 1 << 9, 2),
    ],
)
def test_in_as_few_bundles_as_the_cells_allow(uppers: list[int], lowers: list[int], most: int, bundles: int) -> None:
    halves = halves_of_sizes(*uppers, *lowers)
    trees = [upper.above(lower) for upper in halves[: len(uppers)] for lower in halves[len(uppers) :]]
    _, cells = bundled(trees, most)
    assert len(cells.start) - 1 == bundles
    assert np.diff(cells.begin).max() <= max(min(most, 1 << 16), max(uppers) * max(lowers))


def test_one_tree_has_its_leaves_whatever_the_cells() -> None:
    _, cells = bundled(halves_of_sizes(64, 64, 2, 2), 3)
    assert np.diff(cells.begin).tolist() == [64, 64, 2, 2]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_with_one_class_alone_no_row_pulls_anywhere(rows: int) -> None:
    """Nothing to learn, and nothing that depends on whether there are rows."""
    found, tree = np.zeros((1, 5, 2), dtype=np.int64), one_question(SIZES, 0, range(5))
    codes, labels = np.zeros((rows, 3), np.uint8), np.zeros(rows, np.uint16)
    boosting_loops.add_tree_sums([tree], AdditiveModel(np.zeros(1), (), ()), True, codes, labels, None, found)
    assert not found.any()


def test_as_many_leaves_as_a_tree_may_have() -> None:
    sizes = (MOST_LEAVES - 1,)
    tree, codes = one_question(sizes, 0, range(MOST_LEAVES)), np.array([[0], [1], [MOST_LEAVES - 1]], np.uint16)
    found = np.zeros((1, MOST_LEAVES, 2), dtype=np.int64)
    boosting_loops.add_tree_sums([tree], AdditiveModel(np.zeros(2), (), ()), True, codes, np.ones(3, np.uint16), None, found)
    assert np.flatnonzero(found[0, :, 0]).tolist() == codes[:, 0].tolist()


def test_sums_of_many_rows_are_taken_apart_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that all pull one way, in parts that are as small as a test needs."""
    monkeypatch.setattr(boosting_loops, "MOST_PACKED", 10_000)
    n, tree = 25_000, one_question(SIZES, 0, (0,) * 5)
    found = np.zeros((1, 1, 6), dtype=np.int64)
    codes, labels = np.zeros((n, 3), np.uint8), np.ones(n, np.uint16)
    boosting_loops.add_tree_sums([tree], AdditiveModel(np.array([0.3, -0.2, 0.0]), (), ()), False, codes, labels, None, found)
    r, h = vectors(np.array([[0.3, -0.2, 0.0]]), np.ones(1, np.uint16), False)
    assert found[0, 0].tolist() == (n * np.hstack([r, h])[0]).tolist()
    assert (found[0, 0] < 0).any()


def test_packed_sums_cannot_overflow() -> None:
    assert boosting_loops.MOST_PACKED * GRID < 2**31
    assert max(bound(c, concentrated) for c in (2, 3) for concentrated in (False, True)) <= GRID


@given(st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3), st.integers(0, 3))
def test_roots_are_exact(leaf: list[int], small: int) -> None:
    gradients = np.array([[leaf, [small, 0, 0], [2**25, 1, 0]]], dtype=np.int64)
    for part in (gradients, gradients % 2**20, gradients[:, 1:]):
        assert _roots(part).tolist() == [[math.isqrt(sum(u * u for u in one)) for one in part[0].tolist()]]


@pytest.mark.parametrize("square", [2**52 - 1, 2**52, 2**61 - 1, (2**30 - 1) ** 2, (2**30 - 1) ** 2 - 1, 3])
def test_roots_at_the_edges(square: int) -> None:
    root = math.isqrt(square)
    assert _roots(np.array([[[root, 0]], [[root + 1, 0]]], dtype=np.int64)).tolist() == [[root], [root + 1]]


@pytest.mark.parametrize("m", [3, 2000, 30_000, 37_500])
def test_roots_that_floats_round_up(m: int) -> None:
    """m⁴ + 2m² is one less than the square of m² + 1: from m = 10,000 on a float takes it for that square."""
    assert _roots(np.array([[[m * m, m, -m], [m * m + 1, 0, 0]]])).tolist() == [[m * m, m * m + 1]]


@pytest.mark.parametrize("leaf", [[2**31] * 3, [2**31 - 1] * 4, [3_037_000_499], [2**62, 0, 0], [0, 0, 0]])
def test_roots_that_64_bits_do_not_hold(leaf: list[int]) -> None:
    assert _roots(np.array([[leaf]], dtype=np.int64)).tolist() == [[math.isqrt(sum(u * u for u in leaf))]]


def test_the_score_of_a_tree_is_the_sum_over_its_leaves_of_a_norm() -> None:
    sums = np.array([[[3, -4, 0, 900, 900, 900], [2, 2, 1, 900, 900, 900]], [[0, 0, -7, 900, 900, 900], [0] * 6]])
    assert scores_of_trees(sums, True).tolist() == [[5 + 3, 7]]
    assert scores_of_trees(sums, False).tolist() == [[7 + 5, 7]]
    assert scores_of_trees(sums[:, :1], True).tolist() == [[5, 7]]  # one leaf
    assert scores_of_trees(sums[:, :1], False).tolist() == [[7, 7]]
    assert scores_of_trees(np.array([[[3, 4, 900, 900], [0, 1, 900, 900]]]), True).tolist() == [[5 + 1]]
    two = np.array([[[-3, 900], [5, 900]]])
    assert scores_of_trees(two, True).tolist() == scores_of_trees(two, False).tolist() == [[8]]
    score = tree_score(3, True)
    assert (score.name, score.unit, score.sensitivity) == ("gradient norm", GRID, bound(3, True))
    with pytest.raises(NotImplementedError, match="no split"):
        score.of(sums)


def engine_of(classes: int = 3, n: int = 400) -> MemoryRows:
    codes, labels = rows_of(np.random.default_rng(0), n, classes)
    return MemoryRows.of_codes(codes, labels, codebook_of(classes), 1, None)


@pytest.mark.parametrize("chosen", [1, 3])
@pytest.mark.parametrize("concentrated", [False, True])
def test_a_round_charges_its_choices_and_its_sums_and_no_more_than_its_price(concentrated: bool, chosen: int) -> None:
    rng = np.random.default_rng(0)
    engine, model, trees = engine_of(), model_of(rng, 3), trees_of(rng, 2, 6)
    budget = Budget(1, Fraction(1, 10**6) if concentrated else 0)
    reservation = budget.reserve(1, "a round", budget.delta)
    price: Any = Rho(rho_for(Fraction(1), Fraction(1, 10**6)) / 2) if concentrated else Fraction(1, 2)
    places, sums = PrivateTable(engine, reservation).ask(BoostRound(trees, model, concentrated, chosen), price)
    *choices, counting = reservation.events
    assert [event.query for event in choices] == ["choose_tree"] * chosen
    assert counting.query == "boost_round"
    assert {event.mechanism for event in choices} == {EXPONENTIAL if concentrated else PERMUTE_AND_FLIP}
    assert counting.mechanism == (DISCRETE_GAUSSIAN if concentrated else DISCRETE_LAPLACE)
    assert counting.queries == chosen
    if concentrated:
        spent = sum(zcdp_cost(event) for event in reservation.events)
        assert price.value * Fraction(999, 1000) < spent <= price.value
        assert counting.sensitivity == bound(3, True) ** 2
    else:
        assert reservation.charged == price
        assert counting.sensitivity == bound(3, False)
    assert [place // (6 // chosen) for place in places] == list(range(chosen))
    assert sums.shape == (chosen, 4, 6)


def test_one_tree_needs_no_choice() -> None:
    rng = np.random.default_rng(0)
    reservation = Budget(1).reserve(1, "a round")
    places, _ = PrivateTable(engine_of(), reservation).ask(BoostRound(trees_of(rng, 2, 2), model_of(rng, 3), False, 2), Fraction(1))
    assert places == [0, 1]
    assert [event.query for event in reservation.events] == ["boost_round"]
    assert reservation.charged == 1


def test_a_round_that_cannot_be_paid_charges_nothing() -> None:
    """The choice alone would have fitted."""
    rng = np.random.default_rng(0)
    reservation = Budget(1).reserve(1, "a round")
    table = PrivateTable(engine_of(), reservation)
    with pytest.raises(BudgetError, match="boost_round requested"):
        table.ask(BoostRound(trees_of(rng, 2, 2), model_of(rng, 3), False), Fraction(2))
    assert reservation.charged == 0
    assert reservation.events == ()


@pytest.mark.parametrize("concentrated", [False, True])
def test_noise_on_the_sums_is_what_was_charged(concentrated: bool) -> None:
    rng = np.random.default_rng(0)
    engine, model, trees = engine_of(n=50), model_of(rng, 3), trees_of(rng, 6, 1)
    exact = np.zeros((1, 64, 6), dtype=np.int64)
    boosting_loops.add_tree_sums(trees, model, concentrated, *engine._open(), None, exact)
    delta = Fraction(1, 10**6) if concentrated else Fraction(0)
    price: Any = Rho(Fraction(1, 100)) if concentrated else Fraction(1, 10)
    noise = []
    for seed in range(30):
        reservation = Budget(4, delta).reserve(4, "a round", delta)
        table = PrivateTable(engine, reservation, SeededCoins(seed))
        noise.append(table.ask(BoostRound(trees, model, concentrated), price)[1] - exact[0])
    expected = variance_of(noise_of(reservation.events[0]))
    assert np.var(noise) == pytest.approx(expected, rel=0.05)
    assert abs(np.mean(noise)) < 4 * math.sqrt(expected / np.size(noise))


def test_the_better_tree_is_chosen_where_money_is_no_matter() -> None:
    """One tree tells the classes apart, the others do not."""
    labels = np.random.default_rng(3).integers(0, 3, 300).astype(np.uint16)
    codes = np.stack([labels, np.zeros(300), np.zeros(300)], axis=1).astype(np.uint8)
    engine = MemoryRows.of_codes(codes, labels, codebook_of(3), 1, None)
    trees = [one_question(SIZES, 1, range(4)), one_question(SIZES, 0, range(5)), one_question(SIZES, 2, range(6))]
    model = AdditiveModel(np.zeros(3), (), ())
    for concentrated in (False, True):
        table = PrivateTable(engine, Budget(10**4).reserve(10**4, "choices"))
        assert table.ask(ChooseTree(trees, model, concentrated), Fraction(1000)) == 1
    assert PrivateTable(engine, Budget(10**4).reserve(10**4, "rounds")).ask(BoostRound(trees, model, False), Fraction(5000))[0] == [1]


def test_what_is_not_sound_is_refused_before_anything_is_charged() -> None:
    rng = np.random.default_rng(0)
    reservation = Budget(1).reserve(1, "rounds")
    table, model, trees = PrivateTable(engine_of(), reservation), model_of(rng, 3), trees_of(rng, 2, 4)
    elsewhere = ObliviousTree((4, 3), (0,), ((0, 1, 1, 0, 0),))
    wrong: list[Any] = [
        BoostRound([], model, False), BoostRound(trees, model_of(rng, 2), False), BoostRound([elsewhere], model, False),
        BoostRound(trees, model, False, 3), BoostRound(trees, model, False, 0), BoostRound(trees, model, False, 5),
        BoostRound(trees, model, False, True), BoostRound(trees, model, 1), BoostRound(trees * 300, model, False),  # type: ignore[arg-type]
        BoostRound(["a tree"], model, False), ChooseTree(trees, "a model", False), ChooseTree([], model, True),  # type: ignore[list-item, arg-type]
        BoostRound(trees, model, True),  # vectors for ρ, and the price is pure
    ]  # fmt: skip
    for query in wrong:
        with pytest.raises(PlanError, match=query.name):
            table.ask(query, Fraction(1, 2))
    assert reservation.charged == 0


def test_as_many_trees_and_sums_as_are_taken() -> None:
    assert (MOST_TREES, MOST_SUMS) == (1000, 2**24)
    model, book = AdditiveModel(np.zeros(2), (), ()), codebook_of(2)
    small = one_question(SIZES, 0, (0, 1, 1, 0, 0))
    large = ObliviousTree(SIZES, (0,) * 14, ((0, 1, 1, 0, 0),) * 14)  # 2^14 leaves, two numbers in each
    for trees, most in ((small, 1000), (large, 512)):
        ChooseTree([trees] * most, model, False).check(book)
        with pytest.raises(PlanError, match=f"at most 1000 trees, and {2**24} numbers"):
            ChooseTree([trees] * (most + 1), model, False).check(book)
    with pytest.raises(PlanError, match="oblivious trees over this schema"):
        ChooseTree([small, ObliviousTree((4, 3), (0,), ((0, 1, 1, 0, 0),))], model, False).check(book)


def test_trees_of_different_sizes_have_the_room_of_the_largest() -> None:
    rng = np.random.default_rng(0)
    trees, model = [*trees_of(rng, 1, 1), *trees_of(rng, 3, 1), *trees_of(rng, 2, 1)], model_of(rng, 3)
    query = BoostRound(trees, model, False, 3)
    assert (query.leaves, query.queries, query.zeros_size) == (8, 3, 3 * 8 * 6)
    assert query.shapes(codebook_of(3)) == [(3,), (3, 8, 6)]
    assert [each.shape for each in query.zeros(codebook_of(3))] == [(3, 8, 6)]


@pytest.mark.parametrize("chosen", [1, 4])
def test_how_a_round_shares_its_price(chosen: int) -> None:
    """Three tenths of ε pay for the choices, a fifth of ρ; nothing where there is nothing to choose."""
    *choices, counting = BoostRound.costs(Fraction(1), 1, 2, chosen, 3)
    assert [event.epsilon for event in choices] == [Fraction(3, 10) / chosen] * chosen
    assert counting.epsilon == Fraction(7, 10)
    *choices, counting = BoostRound.costs(Rho(Fraction(1)), 1, 2, chosen, 3)
    each = Fraction(1, 5) / chosen  # ε²/8 for each choice
    assert all(each * Fraction(999, 1000) < event.epsilon**2 / 8 <= each for event in choices)
    assert zcdp_cost(counting) == Fraction(4, 5)
    for price in (Fraction(1), Rho(Fraction(1))):
        assert BoostRound.costs(price, 1, 1, chosen, 3) == (BoostRound.cost(price, 1, chosen, 3),)
