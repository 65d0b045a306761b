"""Edges for numbers of which a few are far larger than the others."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hedgerow import HedgerowClassifier, Numeric, Schema, Target
from hedgerow.engines.growing_edges import growing_edges
from hedgerow.errors import DraftWarning

ROWS = 4_000


def costs(seed: int = 0) -> pd.DataFrame:
    """Costs between 20 and 20,000, and one row of two millions; who is ill had twice the costs."""
    rng = np.random.default_rng(seed)
    cost = np.exp(rng.normal(6, 1.2, ROWS)).round(2)
    ill = (rng.random(ROWS) < 1 / (1 + np.exp(-3 * (np.log(cost) - 6)))).astype(int)
    cost[7] = 2_323_376.0
    return pd.DataFrame({"cost": cost, "age": rng.integers(18, 90, ROWS), "ill": ill})


def drafted(table: pd.DataFrame) -> Schema:
    with pytest.warns(DraftWarning) as said:
        schema = Schema.draft(table, "ill").accept()
    assert "Cells of equal width" in str(said[0].message).replace("cells of", "Cells of")
    return schema


def test_a_draft_gives_them_edges_and_a_forest_tells_them_apart() -> None:
    table = costs()
    schema = drafted(table)
    cost, age = schema.attributes
    assert isinstance(cost, Numeric)
    assert isinstance(age, Numeric)
    assert cost.edges is not None
    assert {100, 200, 500, 1_000, 1_000_000}.issubset(cost.edges)
    assert np.histogram(table["cost"], cost.edges)[0].max() < 0.2 * ROWS  # where most rows are, steps are finer
    assert (cost.edges[0], cost.edges[-1], len(cost.edges)) == (cost.low, cost.high, len(cost.edges))
    assert age.edges is None
    bounds = Schema([Numeric("cost", cost.low, cost.high), age], schema.target)
    right = []
    for each in (schema, bounds):
        model = HedgerowClassifier(each, 2, 1e-6, random_state=0).fit(table.drop(columns="ill"), table["ill"])
        right.append(float(np.mean(model.predict(costs(1).drop(columns="ill")) == costs(1)["ill"])))
    assert right[0] > right[1] + 0.1, right


def test_a_check_names_them_with_edges_to_paste(tmp_path: Path) -> None:
    table = costs()
    bounds = Schema([Numeric("cost", 0, 2_400_000), Numeric("age", 18, 90, integer=True)], Target("ill", [0, 1]))
    table.to_csv(tmp_path / "costs.csv", index=False)
    for checked in (bounds.check(table), bounds.check(tmp_path / "costs.csv")):
        (hint,) = checked.hints
        assert "a few of the cells of equal width" in hint
        assert "cost (edges = [0, 10, " in hint
        assert "age" not in hint
    edges = [float(each) for each in hint.split("[")[1].split("]")[0].split(",")]
    assert drafted(table).check(table).hints == ()
    assert Schema([Numeric("cost", edges=edges), bounds.attributes[1]], bounds.target).check(table).hints == ()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("signs", [(1,), (-1,), (-1, 1)])
def test_edges_ascend_from_bound_to_bound(whole: bool, signs: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    sizes = np.exp(rng.normal(1, 2.5, ROWS))
    numbers = sizes * rng.choice(signs, ROWS)
    numbers = np.rint(numbers) if whole else numbers
    low, high = float(numbers.min()), float(numbers.max())
    edges = growing_edges(low, high, numbers, whole)
    assert edges is not None
    assert (edges[0], edges[-1]) == (low, high)
    assert all(a < b for a, b in pairwise(edges))
    assert len(edges) < 60
    if whole:
        assert all(edge.is_integer() for edge in edges)


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(1000.0),
        np.array([1.0, 2, 3, 1e6]),
        np.where(np.arange(1000) % 2, 0.0, np.linspace(5.8, 6.6, 1000)),  # nothing is far larger: edges that grow tell them less apart
        np.zeros(100),
        np.array([]),
    ],
    ids=["even", "few values", "a cluster beside 0", "one value", "none"],
)
def test_others_keep_cells_of_equal_width(numbers: np.ndarray) -> None:
    low, high = (float(numbers.min()), float(numbers.max()) + 1) if numbers.size else (0.0, 1.0)
    assert growing_edges(low, high, numbers, False) is None
