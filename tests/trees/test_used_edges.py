"""Edges that no tree asks about can be left out: every row takes the same path."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import Categorical, LocalTreeClassifier, Numeric, Schema, Target
from hedgerow.trees.routing import route
from hedgerow.trees.used_edges import with_used_edges

SCHEMA = Schema(
    [
        Numeric("n", 0, 10, edges=[0, *np.linspace(0.1, 9.9, 50).tolist(), 10], missing="none"),
        Categorical("c", ["x", "y"]),
        Numeric("m", 0, 8, edges=[0, 1, 2, 3, 4, 5, 8], taxonomy=[[0, 2, 8], [0, 8]]),
        Numeric("unused", 0, 1, edges=[0, 0.5, 1]),
    ],
    Target("t", ["no", "yes"]),
)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_rows_take_the_same_paths_and_each_edge_is_asked_about(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.uniform(-1, 11, 300), rng.uniform(0, 8, 300)
    n[rng.random(300) < 0.1] = np.nan
    rows = {"n": n, "c": rng.choice(["x", "y", "z"], 300), "m": m, "unused": np.full(300, 0.7)}
    y = np.where((n > 4) ^ (m > 3) ^ (rng.random(300) < 0.2), "yes", "no")
    model = LocalTreeClassifier(SCHEMA, confidence=1, max_depth=depth or None).fit(rows, y)
    forest = model.release_.forest
    cut = with_used_edges(forest)
    there = [route(each.trees[0], each.codebook.encode(rows)) for each in (forest, cut)]
    assert np.array_equal(*there)
    assert cut.counts is forest.counts
    n_edges, m_edges = (set(cut.codebook.schema.attributes[place].edges) for place in (0, 2))  # type: ignore[union-attr]
    assert {0, 2, 8} <= m_edges  # those of the taxonomy stay
    assert cut.codebook.schema.attributes[3].edges == (0, 1)  # type: ignore[union-attr]
    again = with_used_edges(cut)
    assert again.codebook == cut.codebook
    assert again.trees == cut.trees
    tree = cut.trees[0]
    for place, edges in ((0, n_edges), (2, m_edges - {2.0})):
        first = tree.first_branch[tree.attribute == place]
        asked = {
            cut.codebook.schema.attributes[place].edges[cell + 1]  # type: ignore[union-attr,index]
            for start in first
            for cell in range(cut.codebook.numeric_cells(place) - 1)
            if tree.branch[start + cell] != tree.branch[start + cell + 1]
        }
        assert asked - {2.0} == edges - {0.0, 8.0, 10.0}
