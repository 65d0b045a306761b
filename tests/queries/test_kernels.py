"""The compiled loops against definitions written out row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.inference.vote_loops import add_counts
from hedgerow.queries import kernels
from hedgerow.trees.additive_model import GRID, AdditiveModel
from hedgerow.trees.routing import ABREAST, TOGETHER, route
from hedgerow.trees.tree import Tree, TreeBuilder

SIZES = (3, 1, 5, 2, 4)
N_CLASSES = 3
ROWS = TOGETHER + 2 * ABREAST + 3  # no whole number of any part
DTYPES = [np.uint8, np.uint16]


def irregular_tree(seed: int, splits: int = 25, sizes: tuple[int, ...] = SIZES) -> Tree:
    """Leaves at all depths, codes that share a child, codes without a branch, attributes asked again."""
    rng = np.random.default_rng(seed)
    builder = TreeBuilder(sizes)
    leaves = [0]
    for _ in range(splits):
        node = leaves.pop(int(rng.integers(len(leaves))))
        attribute = int(rng.integers(len(sizes)))
        raw = rng.integers(-1, 3, sizes[attribute])
        raw[rng.integers(sizes[attribute])] = 0  # at least one child
        used = sorted(set(raw.tolist()) - {-1})
        leaves += builder.split(node, attribute, [used.index(group) if group >= 0 else -1 for group in raw.tolist()])
    tree = builder.build()
    tree.check()
    return tree


def rows_for(sizes: tuple[int, ...], rows: int, seed: int, dtype: Any) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Codes with the one that has no branch, classes with two that are not declared."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size + (rng.random(rows) < 0.2), rows) for size in sizes], axis=1).astype(dtype)
    return codes, rng.choice(np.array([0, 1, 2, N_CLASSES, 65_535], dtype=np.uint16), rows, p=[0.4, 0.3, 0.2, 0.05, 0.05])


def end_of(tree: Tree, row: NDArray[Any]) -> int:
    node = 0
    while tree.attribute[node] >= 0:
        below = tree.children(node)
        code = int(row[tree.attribute[node]])
        if code == len(below) or below[code] < 0:
            return node
        node = int(below[code])
    return node


def slot_of(tree: Tree, nodes: NDArray[np.int64], node: int) -> int:
    while node >= 0:
        if node in nodes:
            return list(nodes).index(node)
        node = int(tree.parent[node])
    return -1


def leaf_counts_by_hand(tree: Tree, codes: NDArray[Any], classes: NDArray[np.uint16]) -> NDArray[np.int64]:
    counts = np.zeros((len(tree.leaves), N_CLASSES), dtype=np.int64)
    for row, label in zip(codes, classes, strict=True):
        node = end_of(tree, row)
        if tree.attribute[node] < 0 and label < N_CLASSES:
            counts[tree.leaves.tolist().index(node), label] += 1
    return counts


def node_counts_by_hand(
    tree: Tree, nodes: NDArray[np.int64], codes: NDArray[Any], classes: NDArray[np.uint16]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Class counts; split counts with a stop cell for each attribute."""
    by_class = np.zeros((len(nodes), N_CLASSES + 1), dtype=np.int64)
    by_split = np.zeros((len(nodes), sum(tree.sizes) + len(tree.sizes), N_CLASSES + 1), dtype=np.int64)
    for row, label in zip(codes, classes, strict=True):
        slot, column = slot_of(tree, nodes, end_of(tree, row)), min(int(label), N_CLASSES)
        if slot >= 0:
            by_class[slot, column] += 1
            cell = 0
            for size, code in zip(tree.sizes, row, strict=True):
                by_split[slot, cell + int(code), column] += 1
                cell += size + 1
    return by_class, by_split


def an_antichain(tree: Tree, seed: int) -> NDArray[np.int64]:
    """Nodes of the second level, in any order, and not all of them: some ask, so that rows end below."""
    rng = np.random.default_rng(seed)
    level = rng.permutation(tree.levels[2])
    return np.asarray(level[: max(1, len(level) - 1)], dtype=np.int64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(8))
def test_every_row_ends_where_its_codes_lead(seed: int, dtype: Any) -> None:
    tree = irregular_tree(seed)
    codes, _ = rows_for(SIZES, ROWS, seed, dtype)
    ends = [end_of(tree, row) for row in codes]
    assert route(tree, codes).tolist() == ends
    assert route(tree, np.asfortranarray(codes)).tolist() == ends
    assert any(tree.attribute[node] >= 0 for node in ends)  # some rows stop on the way
    assert len({int(tree.depth[node]) for node in ends if tree.attribute[node] < 0}) > 1  # and leaves are at several depths


@pytest.mark.parametrize("rows", range(2 * ABREAST + 2))
def test_few_rows(rows: int) -> None:
    tree = irregular_tree(1)
    codes, classes = rows_for(SIZES, rows, rows, np.uint8)
    assert route(tree, codes).tolist() == [end_of(tree, row) for row in codes]
    assert np.array_equal(kernels.leaf_counts([tree], codes, classes, N_CLASSES)[0], leaf_counts_by_hand(tree, codes, classes))


@pytest.mark.parametrize("dtype", DTYPES)
def test_leaf_counts_are_added(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "BLOCK", 100)
    trees = [irregular_tree(seed, splits) for seed, splits in enumerate((0, 1, 6, 25))]
    codes, classes = rows_for(SIZES, ROWS, 0, dtype)
    wanted = [leaf_counts_by_hand(tree, codes, classes) for tree in trees]
    results = [np.full_like(counts, 7) for counts in wanted]
    kernels.add_leaf_counts(trees, codes, classes, results)
    places = list(map(kernels.leaf_places, trees))
    kernels.add_leaf_counts(trees, codes, classes, results, places)
    kernels.add_leaf_counts(trees, codes[:0], classes[:0], results, places)
    for counts, expected in zip(results, wanted, strict=True):
        assert expected.sum() > 0
        assert np.array_equal(counts, 7 + 2 * expected)
    for counts, expected in zip(kernels.leaf_counts(trees, codes, classes, N_CLASSES), wanted, strict=True):
        assert np.array_equal(counts, expected)


def test_progress_of_leaf_counts_changes_no_count() -> None:
    tree = irregular_tree(3)
    codes, classes = rows_for(SIZES, ROWS, 3, np.uint8)
    told: list[float] = []
    (counts,) = kernels.leaf_counts([tree], codes, classes, N_CLASSES, told.append)
    assert told == [(part + 1) / kernels.PARTS for part in range(kernels.PARTS)]
    assert np.array_equal(counts, leaf_counts_by_hand(tree, codes, classes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5])
def test_class_and_split_counts_are_added(seed: int, dtype: Any) -> None:
    tree = irregular_tree(seed)
    nodes = an_antichain(tree, seed)
    slot = kernels.slots(tree, nodes)
    codes, classes = rows_for(SIZES, ROWS, seed, dtype)
    by_class, by_split = node_counts_by_hand(tree, nodes, codes, classes)
    assert by_class[:, -1].sum() > 0
    counts, cells = np.full_like(by_class, 7), np.full_like(by_split, 7)
    for part in (slice(None), slice(None), slice(0)):
        kernels.add_class_counts(tree, slot, codes[part], classes[part], counts)
        kernels.add_split_counts(tree, slot, codes[part], classes[part], cells)
    assert np.array_equal(counts, 7 + 2 * by_class)
    assert np.array_equal(cells, 7 + 2 * by_split)
    assert np.array_equal(kernels.class_counts(tree, nodes, codes, classes, N_CLASSES), by_class)
    first, n_cells = kernels.split_cells(tree)
    assert first.tolist() == [0, 4, 6, 12, 15]
    assert n_cells == 20 == by_split.shape[1]
    declared = [cell for start, size in zip(first, SIZES, strict=True) for cell in range(start, start + size)]
    assert np.array_equal(kernels.split_counts(tree, nodes, codes, classes, N_CLASSES), by_split[:, declared, :N_CLASSES])


def test_no_rows_and_no_questions() -> None:
    root = TreeBuilder(SIZES).build()
    codes, classes = rows_for(SIZES, ROWS, 0, np.uint8)
    assert not kernels.leaf_counts([root], codes[:0], classes[:0], N_CLASSES)[0].any()
    assert kernels.leaf_counts([root], codes, classes, N_CLASSES)[0].tolist() == [np.bincount(classes)[:N_CLASSES].tolist()]
    assert kernels.leaf_counts([root], codes, classes, 0)[0].shape == (1, 0)


def test_more_attributes_and_values_than_small_states_hold() -> None:
    sizes = (60_000, *[2] * 4_999)
    builder = TreeBuilder(sizes)
    low, high = builder.split(0, 0, [code // 30_000 for code in range(60_000)])
    for node in (low, high, *builder.split(low, 4_999)):
        if node != low:
            builder.split(node, 2_500 if node != high else 1)
    tree = builder.build()
    assert tree.onward.dtype == np.uint64
    assert irregular_tree(0).onward.dtype == np.uint32
    codes, classes = rows_for(sizes, 50, 0, np.uint16)
    codes[:3, 0] = 60_000, 59_999, 0
    assert route(tree, codes).tolist() == [end_of(tree, row) for row in codes]
    assert np.array_equal(kernels.leaf_counts([tree], codes, classes, N_CLASSES)[0], leaf_counts_by_hand(tree, codes, classes))


def test_votes_take_the_same_way() -> None:
    """Loops of other modules share the descent."""
    tree = irregular_tree(5)
    codes, _ = rows_for(SIZES, ROWS, 5, np.uint8)
    worth = np.arange(tree.n_nodes, dtype=np.float64)[:, None]
    sums = np.ones((ROWS, 1))
    add_counts(codes, tree.ask, tree.onward, tree.height, worth, sums)
    assert sums[:, 0].tolist() == [1 + end_of(tree, row) for row in codes]


HALF, FULL = GRID // 2, GRID
SURE = 5000.0  # a margin that leaves nothing to the other classes


@pytest.mark.parametrize(
    ("margins", "label", "expected"),
    [
        ([0.0, 0.0], 0, [-HALF]), ([0.0, 0.0], 1, [HALF]), ([0.0, 0.0], 2, [0]), ([0.0, SURE], 0, [-FULL]), ([0.0, SURE], 1, [0]),
        ([SURE, SURE, 0.0], 0, [HALF, -HALF, 0]), ([SURE, SURE, 0.0], 2, [-HALF, -HALF, FULL]), ([0.0, SURE, 0.0], 0, [FULL, -FULL, 0]),
        ([0.0, 0.0, SURE], 1, [0, FULL, -FULL]), ([0.0, 0.0, 0.0, 0.0], 3, [-GRID // 4] * 3 + [3 * GRID // 4]),
        ([0.0, 0.0, 0.0], 3, [0, 0, 0]), ([0.0, 0.0, 0.0], 0, [2 * GRID // 3, -(GRID // 3), -(GRID // 3)]),
        ([np.nan, 0.0], 0, [0]), ([7.0], 0, [0]),
    ],
)  # fmt: skip
def test_gradients_by_hand(margins: list[float], label: int, expected: list[int]) -> None:
    out = np.full((2, len(expected)), 7, dtype=np.int64)
    kernels._gradients(np.array([margins] * 2), np.array([label, 65_535], dtype=np.uint16), out)
    assert out.tolist() == [expected, [0] * len(expected)]


@pytest.mark.parametrize(
    ("shares", "label", "expected"),
    [
        ([0.5, 0.5], 0, HALF), ([1.0, 0.0], 0, 0), ([0.0, 1.0], 0, 2 * FULL), ([0.0, 0.0, 1.0], 2, 0),
        ([0.25, 0.25, 0.5], 2, 3 * GRID // 8),
        ([0.25, 0.75], 1, GRID // 8), ([np.nan, 1.0], 0, 2 * FULL), ([np.inf, 0.0], 1, 2 * FULL), ([-3.0, 4.0], 0, 2 * FULL),
        ([0.5, 0.5], 2, 0), ([-0.25, 1.0], 0, 2 * FULL),
    ],
)  # fmt: skip
def test_brier_scores_by_hand(shares: list[float], label: int, expected: int) -> None:
    """Whatever the shares are, a row adds 0 to 2; of no declared class nothing."""
    classes = np.array([65_535, label, label, label, label, 65_535], dtype=np.uint16)
    assert kernels.brier_sum(np.array([shares] * 6), classes) == 4 * expected


def test_sums_of_brier_scores_of_a_model_that_knows_nothing() -> None:
    codes, labels = rows_for(SIZES, 20, 0, np.uint8)
    sums = kernels.brier_sums(AdditiveModel(np.zeros(2), (), ()), np.array([1.0, 0.5, 2.0]), codes, labels, None)
    assert sums.tolist() == [int((labels < 2).sum()) * HALF] * 3


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_sums_over_rows_are_those_of_each_row(classes: int, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if known:
        monkeypatch.setattr(kernels, "BLOCK", 200)
    codes, labels = rows_for(SIZES, ROWS, 7, np.uint8)
    labels = np.minimum(labels, 3)
    rng = np.random.default_rng(2)
    trees = [irregular_tree(seed, splits) for seed, splits in enumerate((0, 6, 25))]
    model = AdditiveModel(rng.normal(size=classes), tuple(trees), tuple(rng.normal(size=(tree.n_nodes, classes)) for tree in trees))
    margins = model.margins(codes)
    shares = np.exp(margins - margins.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    width = kernels.gradient_width(classes)
    steps = np.empty((ROWS, width), dtype=np.int64)
    kernels._gradients(margins, labels, steps)
    exact = np.where((labels < classes)[:, None], (labels[:, None] == np.arange(classes)) - shares, 0)[:, classes - width :] * GRID
    assert (np.abs(steps - exact) <= 1 + 1e-6).all()
    assert (np.abs(steps) <= np.abs(exact) + 1e-6).all()
    found = kernels.gradient_sums(trees, model, codes, labels, margins if known else None)
    for tree, sums in zip(trees, found, strict=True):
        expected = np.zeros_like(sums)
        for row, vector in zip(codes, steps, strict=True):
            end = end_of(tree, row)
            if tree.attribute[end] < 0:
                expected[tree.leaves.tolist().index(end)] += vector
        assert np.array_equal(sums, expected)
    scales = np.array([1.0, 0.5])
    scaled = [np.exp(scale * margins) / np.exp(scale * margins).sum(axis=1, keepdims=True) for scale in scales]
    scores = kernels.brier_sums(model, scales, codes, labels, margins if known else None)
    for score, each in zip(scores.tolist(), scaled, strict=True):
        rows = [sum(((label == c) - p) ** 2 for c, p in enumerate(row)) for label, row in zip(labels, each, strict=True) if label < classes]
        assert score == pytest.approx(GRID * sum(rows), abs=len(rows) + 1)
        assert score <= GRID * sum(rows) + 1e-3


STEP = 1 / GRID


@pytest.mark.parametrize(
    ("shares", "label", "expected"),
    [
        ([0.25, 0.75], 1, [GRID // 4]),
        ([1.2, -0.2], 1, [0]),  # of two classes no gradient is above 1
        ([-STEP, 0.5 + STEP / 2, 0.5 + STEP / 2], 0, [0, 0, 0]),  # (4097, −2048, −2048): one step too long in L1
        ([-1.0, 1.0, 1.0], 0, [0, 0, 0]),  # 2, −1, −1
        ([-1.0001, 1.0001, 1.0], 0, [0, -GRID, -GRID]),  # what is above 2 is no gradient, and the others are short enough
        ([-1.5, 2.5, 0.0], 0, [0, 0, 0]),
        ([np.inf, 0.0, 0.0], 0, [0, 0, 0]),
    ],
)
def test_gradients_are_bounded_whatever_the_shares(
    shares: list[float], label: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exponential function at its worst."""
    coming = iter(shares)
    monkeypatch.setattr(kernels, "exp_minus", lambda x: next(coming))
    plain = getattr(kernels._gradients, "py_func", kernels._gradients)  # itself where nothing is compiled
    out = np.full((1, len(expected)), 7, dtype=np.int64)
    with np.errstate(all="ignore"):
        plain(np.zeros((1, len(shares))), np.array([label], dtype=np.uint16), out)
    assert out.tolist() == [expected]


@pytest.mark.parametrize("seed", range(3))
def test_slots_are_those_of_the_nearest_node_above(seed: int) -> None:
    tree = irregular_tree(seed)
    last = tree.n_nodes - 1
    beside = [int(node) for node in tree.levels[1] if slot_of(tree, np.array([node]), last) < 0]
    for nodes in (np.array([0]), np.array([last]), np.array([last, *beside])):
        assert kernels.slots(tree, nodes).tolist() == [slot_of(tree, nodes, node) for node in range(tree.n_nodes)]
