"""Edges between values: they separate neighbours, are round, and are not too many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.schema import value_edges
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.value_edges import between, edges_between_values

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12)


@given(finite, finite)
def test_an_edge_separates_its_two_values(x: float, y: float) -> None:
    low, high = min(x, y), max(x, y)
    if low == high:
        return
    (edge,) = between(np.array([low]), np.array([high])).tolist()
    assert low < edge <= high


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4), st.integers(0, 4))
def test_an_edge_is_round_and_near_the_middle(low: int, gap: int, digits: int) -> None:
    a, b = low / 10**digits, (low + gap) / 10**digits
    (edge,) = between(np.array([a]), np.array([b])).tolist()
    assert abs(edge - (a + b) / 2) <= (b - a) / 4 * (1 + 1e-9)
    assert len(repr(abs(edge)).replace(".", "").strip("0")) <= max(len(str(abs(low))), len(str(abs(low + gap)))) + 1


@pytest.mark.parametrize(("a", "b", "edge"), [(37, 38, 37.5), (30, 40, 35), (75, 80, 78), (37.4182, 37.9261, 37.7), (0, 1000, 500)])
def test_edges_that_a_person_would_choose(a: float, b: float, edge: float) -> None:
    assert between(np.array([float(a)]), np.array([float(b)])).tolist() == [edge]


@given(st.lists(st.one_of(finite, st.sampled_from([np.nan, np.inf, -np.inf])), max_size=40), st.booleans())
def test_every_two_values_are_told_apart(numbers: list[float], taxonomy: bool) -> None:
    attribute = Numeric("n", -1000, 1000, taxonomy=[[-1000, 0.25, 1000], [-1000, 1000]] if taxonomy else None)
    edges = edges_between_values(attribute, np.array(numbers, dtype=float))
    cut = Numeric("n", -1000, 1000, edges=edges, taxonomy=attribute.taxonomy)  # ascending, from bound to bound, and nested
    assert cut.edges == edges
    inside = np.unique(np.clip([n for n in numbers if n == n], -1000, 1000))
    cells = np.searchsorted(np.array(edges[1:-1]), inside, side="right")
    at_a_bound = (inside == -1000).sum() if len(inside) else 0
    assert len(set(cells.tolist())) >= len(inside) - at_a_bound


def test_many_values_become_cells_of_about_as_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_edges, "MOST_CELLS", 8)
    numbers = np.concatenate([np.full(500, 3.0), np.random.default_rng(0).exponential(10, 1_500)])
    edges = edges_between_values(Numeric("n", 0, 1000), numbers)
    rows: Any = np.histogram(numbers, edges)[0]
    assert 4 <= len(edges) - 1 <= 8
    assert sorted(rows)[-2] <= 2 * 2_000 / 8  # all but the cell of the value that is there 500 times
