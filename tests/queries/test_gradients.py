"""Sums of gradients: what they are, that a row's part in them is bounded whatever the scores, and depends on that row alone."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import exact as exact_answers
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import codes_for, small_schema, small_table, trees

from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Rho
from hedgerow.engines import memory as memory_module
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import PlanError
from hedgerow.private_table import PrivateTable
from hedgerow.queries import GradientSums, kernels
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.additive_model import GRID, MOST_SCORE, AdditiveModel, exp_minus, gradient_norms, gradient_width
from hedgerow.trees.routing import route
from hedgerow.trees.tree import Tree, TreeBuilder

SIZES = (3, 2)


def model_of(sizes: tuple[int, ...], k: int, draw: Any, most: float = 60.0) -> AdditiveModel:
    """Any model: scores of all sizes, ties and extremes among them."""
    grown = tuple(draw(st.lists(trees(sizes, 3), max_size=3)))
    score = st.one_of(st.floats(-most, most), st.sampled_from([0.0, 1.0, -1.0, most, -most, MOST_SCORE, -MOST_SCORE]))
    arrays = [draw(st.lists(score, min_size=n * k, max_size=n * k)) for n in (1, *(tree.n_nodes for tree in grown))]
    return AdditiveModel(np.array(arrays[0]), grown, tuple(np.array(a).reshape(-1, k) for a in arrays[1:]))


def gradients(model: AdditiveModel, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Each row's integer vector."""
    out = np.full((len(codes), gradient_width(model.n_classes)), -1, dtype=np.int64)
    kernels._gradients(model.margins(codes), classes, out)
    return out


def by_numpy(model: AdditiveModel, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The gradient itself, by the definition."""
    margins = np.tile(model.base, (len(codes), 1))
    for tree, scores in zip(model.trees, model.scores, strict=True):
        margins += scores[route(tree, codes)]
    shares = np.exp(margins - margins.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    found = (classes[:, None] == np.arange(model.n_classes)) - shares
    found[classes >= model.n_classes] = 0
    return found[:, 1:] if model.n_classes == 2 else found


def every_row(sizes: tuple[int, ...], k: int) -> tuple[np.ndarray, np.ndarray]:
    """All rows that there can be: every code, the one without a branch too, with every class and none."""
    rows = list(product(*(range(size + 1) for size in sizes), range(k + 1)))
    table = np.array(rows)
    return table[:, :-1].astype(np.uint8), table[:, -1].astype(np.uint16)


@pytest.mark.slow
@given(st.data(), st.integers(1, 4))
def test_no_row_has_a_longer_gradient_than_is_charged(data: Any, k: int) -> None:
    model = model_of(SIZES, k, data.draw)
    codes, classes = every_row(SIZES, k)
    steps = gradients(model, codes, classes)
    l1, l2_squared = gradient_norms(k)
    assert np.abs(steps).sum(axis=1).max() <= l1
    assert (steps**2).sum(axis=1).max() <= l2_squared
    assert not steps[classes == k].any()
    exact = by_numpy(model, codes, classes)
    assert (np.abs(steps - exact * GRID) <= 1 + 1e-6).all()  # cut to whole steps, and never set to 0 by the bound
    assert (np.abs(steps) <= np.abs(exact) * GRID + 1e-6).all()  # towards zero


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_bound_is_attained(k: int) -> None:
    """A row of one class that the model is sure to be of another."""
    model = AdditiveModel(np.array([0.0] * (k - 1) + [100.0]), (), ())
    steps = gradients(model, np.zeros((1, 2), dtype=np.uint8), np.zeros(1, dtype=np.uint16))
    l1, l2_squared = gradient_norms(k)
    assert (np.abs(steps).sum(), (steps**2).sum()) == (l1, l2_squared)


def test_margins_that_are_no_numbers_add_nothing() -> None:
    """They cannot come from a model, which is checked; the bound does not rest on that."""
    margins = np.array([[np.nan, 0, 0], [np.inf, np.inf, 0], [-np.inf, -np.inf, -np.inf], [1e308, -1e308, 0]])
    out = np.full((4, 3), 7, dtype=np.int64)
    kernels._gradients(margins, np.zeros(4, dtype=np.uint16), out)
    assert np.abs(out).sum(axis=1).max() <= 2 * GRID
    assert not out[:3].any()


def uncompiled(shares: list[float], label: int, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The kernel's own lines, where the floats before the bound have computed these numbers in place of e^(-x)."""
    coming = iter(shares)
    monkeypatch.setattr(kernels, "exp_minus", lambda x: next(coming))
    out = np.full((1, gradient_width(len(shares))), 7, dtype=np.int64)
    with np.errstate(all="ignore"):
        getattr(kernels._gradients, "py_func", kernels._gradients)(np.zeros((1, len(shares))), np.array([label], dtype=np.uint16), out)
    return out[0]


any_floats = st.one_of(st.floats(), st.floats(-3, 3), st.sampled_from([0.0, 1.0, -1.0, 2.0, -0.5, 1e-3]))


@pytest.mark.slow
@given(st.lists(any_floats, min_size=2, max_size=5), st.integers(0, 5))
@settings(max_examples=400)
def test_the_bound_holds_whatever_the_floats_computed(shares: list[float], label: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        steps = uncompiled(shares, label, patch)
    l1, l2_squared = gradient_norms(len(shares))
    assert np.abs(steps).sum() <= l1
    assert (steps**2).sum() <= l2_squared


def test_each_of_the_two_norms_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector that is short enough in one norm and too long in the other adds nothing, as if its row were not there."""
    step = 1 / GRID
    good = [0.25, 0.25, 0.25, 0.25]
    assert np.abs(uncompiled(good, 0, monkeypatch)).sum() == GRID * 3 // 2
    long_in_l2 = [-step, 1 - 0.5 * step, 0.75 * step, 0.75 * step]  # (4097, -4095, 0, 0): 8192 in L1, 2·4096² + 2 squared
    assert not uncompiled(long_in_l2, 0, monkeypatch).any()
    long_in_l1 = [-0.1, -0.2, 0.9, 0.4]  # 1.1 + 0.2 + 0.9 + 0.4, squared 2.22; and a vector that is long in L1 alone:
    assert not uncompiled(long_in_l1, 0, monkeypatch).any()
    spread = [0.0, -0.4, 0.7, 0.7]  # 1 + 0.4 + 0.7 + 0.7, squared 2.14
    assert not uncompiled(spread, 0, monkeypatch).any()
    longer = [0.1, -0.3, 0.4, 0.4, 0.4]  # 0.9 + 0.3 + 1.2 = 2.4, squared 1.38
    assert not uncompiled(longer, 0, monkeypatch).any()


@pytest.mark.slow
@given(st.data(), st.integers(2, 4))
def test_neighbours_differ_by_one_row_in_one_leaf_of_each_tree(data: Any, k: int) -> None:
    """Brute force: every row that can be added, to a table of a few."""
    model = model_of(SIZES, k, data.draw)
    asked = data.draw(st.lists(trees(SIZES, 3), min_size=1, max_size=3))
    rows, labels = every_row(SIZES, k)
    few = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=4))
    before = kernels.gradient_sums(asked, model, rows[few], labels[few])
    steps = gradients(model, rows, labels)
    l1, l2_squared = gradient_norms(k)
    for new in range(len(rows)):
        place = data.draw(st.integers(0, len(few))) if new == 0 else new % (len(few) + 1)  # anywhere among the others
        more = [*few[:place], new, *few[place:]]
        after = kernels.gradient_sums(asked, model, rows[more], labels[more])
        change = [b - a for a, b in zip(before, after, strict=True)]
        for tree, moved in zip(asked, change, strict=True):
            ends = route(tree, rows[new : new + 1])[0]
            expected = np.zeros_like(moved)
            expected[tree.leaves == ends] = steps[new]
            assert np.array_equal(moved, expected)
        assert sum(np.abs(moved).sum() for moved in change) <= len(asked) * l1
        assert sum((moved**2).sum() for moved in change) <= len(asked) * l2_squared


def grown(seed: int, sizes: tuple[int, ...], depth: int = 3) -> Tree:
    rng = np.random.default_rng(seed)
    builder, front = TreeBuilder(sizes), [0]
    for _ in range(depth):
        front = [child for node in front for child in builder.split(node, int(rng.integers(len(sizes))))]
    return builder.build()


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_row_has_the_same_gradient_wherever_it_stands(k: int) -> None:
    """To the last bit: alone, at any place of a block of any length, on any number of threads."""
    sizes, rng = (4, 3, 5), np.random.default_rng(k)
    structures = tuple(grown(seed, sizes) for seed in range(6))
    model = AdditiveModel(rng.normal(size=k), structures, tuple(rng.normal(0, 2, (t.n_nodes, k)) for t in structures))
    codes = codes_for(sizes, 3 * kernels.BLOCK // 2, seed=1)
    classes = rng.integers(0, k + 1, len(codes)).astype(np.uint16)
    margins, steps = model.margins(codes), gradients(model, codes, classes)
    assert np.array_equal(model.margins(codes, n_jobs=3), margins)
    for start, length in [(0, 1), (1, 2), (5, 7), (511, 3), (8000, 513), (3, 8193)]:
        part = slice(start, start + length)
        assert np.array_equal(model.margins(codes[part]), margins[part])
        assert np.array_equal(gradients(model, codes[part], classes[part]), steps[part])
    for row in range(0, 200):
        assert np.array_equal(gradients(model, codes[row : row + 1], classes[row : row + 1])[0], steps[row])


def rows_engine(rows: int, n_jobs: int = 1, k: int = 2) -> MemoryRows:
    schema = small_schema()
    if k > 2:
        schema = Schema(schema.attributes, Target("class", ["no", "yes", *(f"c{i}" for i in range(k - 2))]))
    columns, labels = small_table(rows)
    labels = np.where(np.arange(rows) % 7 == 0, "undeclared", np.where(np.arange(rows) % 5 == 0, f"c{k - 3}", labels))
    return MemoryRows(columns, labels, Codebook(schema), n_jobs)


@pytest.mark.parametrize("k", [2, 3])
def test_the_engine_adds_up_the_gradients_of_each_leaf(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = rows_engine(20_000, k=k)
    sizes, rng = engine.codebook.sizes, np.random.default_rng(0)
    structures = [grown(seed, sizes) for seed in range(4)]
    model = AdditiveModel(np.zeros(k), tuple(structures[:3]), tuple(rng.normal(size=(t.n_nodes, k)) for t in structures[:3]))
    codes, classes = engine._open()
    steps = gradients(model, codes, classes)
    expected = []
    for tree in structures[2:]:
        sums = np.zeros((tree.n_nodes, steps.shape[1]), dtype=np.int64)
        np.add.at(sums, route(tree, codes), steps)
        expected.append(sums[tree.leaves])
    for n_jobs, kept in product((1, 2, 3), (2**25, 0)):
        monkeypatch.setattr(memory_module, "KEPT_MARGINS", kept)
        found = exact_answers.gradient_sums(rows_engine(20_000, n_jobs, k), structures[2:], model)
        assert all(map(np.array_equal, found, expected))
    exact = by_numpy(model, codes, classes)
    first = np.zeros((structures[2].n_nodes, steps.shape[1]))
    np.add.at(first, route(structures[2], codes), exact)
    assert np.abs(expected[0] / GRID - first[structures[2].leaves]).max() < 20_000 / GRID


def test_a_longer_model_continues_the_margins_and_any_other_does_not() -> None:
    engine, rng = rows_engine(3000, 2), np.random.default_rng(3)
    structures = [grown(seed, engine.codebook.sizes) for seed in range(5)]
    scores = [rng.normal(size=(tree.n_nodes, 2)) for tree in structures]
    changed = [scores[0] / 2, *scores[1:]]
    asked = [structures[4]]
    for values, length, base in [(scores, 0, 0), (scores, 2, 0), (scores, 5, 0), (scores, 5, 0), (scores, 3, 0), (changed, 4, 0),
                                 (changed, 5, 1), (scores, 5, 1)]:  # fmt: skip
        model = AdditiveModel(np.array([0.0, base]), tuple(structures[:length]), tuple(values[:length]))
        fresh = exact_answers.gradient_sums(rows_engine(3000), asked, model)
        assert np.array_equal(exact_answers.gradient_sums(engine, asked, model)[0], fresh[0]), (length, base)


@given(st.floats(0, 39.9))
@example(0.0)
@example(math.log(2) / 2)
def test_exp_minus(x: float) -> None:
    assert exp_minus(x) == pytest.approx(math.exp(-x), rel=1e-13)


def test_exp_minus_far_out() -> None:
    assert exp_minus(0.0) == 1.0
    for x in (40.0, 1e9, math.inf, math.nan):
        assert exp_minus(x) == 0.0


# ---------------------------------------------------------------- what is refused, before anything is charged


def table_with(price: Any) -> tuple[PrivateTable, Any]:
    reservation = Budget(10**6, "1e-6" if isinstance(price, Rho) else 0).reserve(10**6, "test", "1e-6" if isinstance(price, Rho) else 0)
    return PrivateTable(rows_engine(300), reservation), reservation


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.01 * MOST_SCORE])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    tree = grown(0, SIZES, 1)
    scores = np.zeros((tree.n_nodes, 2))
    AdditiveModel(np.zeros(2), (tree,), (scores,))
    scores[-1, 1] = bad
    with pytest.raises(PlanError, match="not a number"):
        AdditiveModel(np.zeros(2), (tree,), (scores,))
    with pytest.raises(PlanError, match="not a number"):
        AdditiveModel(np.array([0, bad]), (), ())


def test_a_model_cannot_be_changed_after_it_was_checked() -> None:
    base, tree = np.zeros(2), grown(0, SIZES, 1)
    scores = np.zeros((tree.n_nodes, 2))
    model = AdditiveModel(base, (tree,), (scores,))
    base[0] = scores[0, 0] = np.nan
    assert np.isfinite(model.margins(codes_for(SIZES, 5, 0))).all()
    for array in (model.base, *model.scores):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


class Other(AdditiveModel):
    """Its margins could be anything, and depend on other rows."""


def test_models_and_trees_of_another_schema_are_refused() -> None:
    table, reservation = table_with(Fraction(1))
    sizes = table.codebook.sizes
    right, foreign = grown(0, sizes, 1), grown(0, (9, 9), 1)
    model = AdditiveModel(np.zeros(2), (), ())
    bad: list[tuple[Any, Any]] = [
        ([], model),
        ([foreign], model),
        ([right], AdditiveModel(np.zeros(3), (), ())),
        ([right], AdditiveModel(np.zeros(2), (foreign,), (np.zeros((foreign.n_nodes, 2)),))),
        ([right], (np.zeros(2), (), ())),
        ([right], Other(np.zeros(2), (), ())),
    ]
    for asked, wrong in bad:
        with pytest.raises(PlanError, match="gradient_sums"):
            table.ask(GradientSums(asked, wrong), Fraction(1))
    for shapes in [(np.zeros((2, 2)), (), ()), (np.zeros(2), (right,), ()), (np.zeros(2), (right,), (np.zeros((1, 2)),))]:
        with pytest.raises(PlanError, match="one score for each class"):
            AdditiveModel(*shapes)  # type: ignore[arg-type]
    assert reservation.events == ()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("price", [Fraction(10**6), Rho(Fraction(10**8))])
def test_almost_no_noise_gives_the_sums_and_the_event_says_what_was_charged(price: Any, k: int) -> None:
    engine = rows_engine(500, k=k)
    asked = [grown(seed, engine.codebook.sizes, 2) for seed in range(3)]
    model = AdditiveModel(np.arange(k, dtype=float), (), ())
    delta = "1e-6" if isinstance(price, Rho) else 0
    reservation = Budget(10**9, delta).reserve(10**9, "test", delta)
    answers = PrivateTable(engine, reservation).ask(GradientSums(asked, model), price)
    for noisy, true in zip(answers, exact_answers.gradient_sums(engine, asked, model), strict=True):
        assert noisy.shape == true.shape
        assert np.abs(noisy - true).max() <= 60
    (event,) = reservation.events
    l1, l2_squared = gradient_norms(k)
    if isinstance(price, Rho):
        assert (event.mechanism, event.epsilon, event.rho, event.queries) == ("discrete Gaussian", 0, price.value, 3)
        assert (event.sensitivity, event.scale) == (l2_squared, 3 * l2_squared / (2 * price.value))
    else:
        assert (event.mechanism, event.epsilon, event.rho, event.queries) == ("discrete Laplace", price, 0, 3)
        assert (event.sensitivity, event.scale) == (l1, 3 * l1 / price)


def test_one_class_is_no_news() -> None:
    schema = Schema([Categorical("a", ["x"])], Target("c", ["only"]))
    engine = MemoryRows({"a": ["x"] * 9}, ["only"] * 9, Codebook(schema))
    tree = Tree(engine.codebook.sizes, np.array([-1], dtype=np.int32), np.empty(0, dtype=np.int32))
    assert exact_answers.gradient_sums(engine, [tree], AdditiveModel(np.zeros(1), (), ()))[0].tolist() == [[0]]
