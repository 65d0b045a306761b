"""The scale of a model's probabilities: the score that it is chosen by, and what one row can do to it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import exact as exact_answers
import numpy as np
import pytest

from hedgerow import Budget, Categorical, Schema, Target
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import PlanError
from hedgerow.private_table import PrivateTable
from hedgerow.queries import BestScale, kernels
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import GRID, AdditiveModel
from hedgerow.trees.tree import TreeBuilder

SCALES = np.array([1.0, 1.4, 2.0, 0.7, 0.5, 0.35])


def book(classes: int) -> Codebook:
    return Codebook(Schema([Categorical("a", (0, 1, 2)), Categorical("b", (0, 1))], Target("y", list(range(classes)))))


def model_for(codebook: Codebook, size: float, seed: int = 0) -> AdditiveModel:
    rng = np.random.default_rng(seed)
    trees = []
    for attribute in (0, 1):
        builder = TreeBuilder(codebook.sizes)
        builder.split(0, attribute)
        trees.append(builder.build())
    scores = tuple(size * rng.normal(size=(tree.n_nodes, codebook.n_classes)) for tree in trees)
    return AdditiveModel(rng.normal(size=codebook.n_classes), tuple(trees), scores)


def engine(codebook: Codebook, rows: int, n_jobs: int = 1, labels: Any = None) -> MemoryRows:
    rng = np.random.default_rng(1)
    columns = {"a": rng.integers(0, 4, rows), "b": rng.integers(0, 2, rows)}  # 3 is not declared
    labels = rng.integers(0, codebook.n_classes + 1, rows) if labels is None else labels
    return MemoryRows(columns, labels, codebook, n_jobs)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_score_is_the_brier_score(classes: int) -> None:
    codebook = book(classes)
    model, rows = model_for(codebook, 2.0), engine(codebook, 3000)
    codes, labels = rows._open()
    known = labels < classes
    for scale, found in zip(SCALES, exact_answers.brier_sums(rows, model, SCALES), strict=True):
        margins = scale * model.margins(codes[known])
        shares = np.exp(margins - margins.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        truth = ((np.eye(classes)[labels[known]] - shares) ** 2).sum()
        assert found / GRID == pytest.approx(truth, abs=known.sum() / GRID)  # each row is cut to a step


@pytest.mark.parametrize("size", [0.0, 1.0, 1e5])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_one_row_raises_every_sum_by_something_between_0_and_2(classes: int, size: float) -> None:
    """All neighbours of a small table, one row left out: what [V12] says, and for large margins it is nearly reached."""
    codebook = book(classes)
    model = model_for(codebook, size, seed=classes)
    codes, labels = engine(codebook, 60)._open()
    whole = kernels.brier_sums(model, SCALES, codes, labels, None)
    most = 0
    for i in range(len(codes)):
        rest = np.arange(len(codes)) != i
        step = whole - kernels.brier_sums(model, SCALES, codes[rest], labels[rest], None)
        assert ((step >= 0) & (step <= 2 * GRID)).all()
        assert labels[i] < classes or not step.any()
        most = max(most, int(step.max()))
    assert classes == 1 or size < 1e5 or most == 2 * GRID


def test_threads_and_order_change_nothing() -> None:
    codebook = book(3)
    model = model_for(codebook, 1.0)
    found = [exact_answers.brier_sums(engine(codebook, 20_000, n_jobs), model, SCALES).tolist() for n_jobs in (1, 2, 3)]
    codes, labels = engine(codebook, 20_000)._open()
    order = np.random.default_rng(2).permutation(len(codes))
    assert found[0] == found[1] == found[2] == kernels.brier_sums(model, SCALES, codes[order], labels[order], None).tolist()


def test_a_model_that_is_too_sure_is_scaled_down_one_that_doubts_up_and_a_good_one_is_left() -> None:
    codebook = book(2)
    good = AdditiveModel(np.zeros(2), *_one_table(codebook, 1.0))
    rng = np.random.default_rng(4)
    a = rng.integers(0, 3, 20_000)
    p = good.probabilities(np.column_stack([a, np.zeros_like(a)]).astype(np.uint8))
    labels = (rng.random(len(a)) < p[:, 1]).astype(int)
    rows = MemoryRows({"a": a, "b": np.zeros_like(a)}, labels, codebook)
    for size, expected in ((1.0, 1.0), (2.0, 0.5), (0.5, 2.0)):
        sure = AdditiveModel(np.zeros(2), *_one_table(codebook, size))
        table = PrivateTable(rows, Budget(1).reserve(1, "test"))
        assert SCALES[table.ask(BestScale(sure, SCALES), Fraction(1))] == expected


def _one_table(codebook: Codebook, size: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0)
    return (builder.build(),), (np.array([[0, 0], [0, 1.5], [0, -1.5], [0, 0.5]]) * size,)


@pytest.mark.parametrize("scales", [(), (0.0,), (4.1,), (float("inf"),), (float("nan"),), ((1.0, 0.5),)])
def test_scales_that_are_none_cost_nothing(scales: Any) -> None:
    codebook = book(2)
    reservation = Budget(1).reserve(1, "test")
    with pytest.raises(PlanError, match="best_scale"):
        PrivateTable(engine(codebook, 10), reservation).ask(BestScale(model_for(codebook, 1.0), scales), Fraction(1))
    assert reservation.charged == 0
