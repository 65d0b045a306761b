"""Counts that are kept while a tree grows are the ones that a new pass would give."""

from __future__ import annotations

from typing import Any

import exact as exact_answers
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import codes_for, small_schema

from hedgerow.engines import growing
from hedgerow.engines.memory import MemoryRows
from hedgerow.queries import ClassCounts, Query, Tables, kernels
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.tree import TreeBuilder

CODEBOOK = Codebook(small_schema())
K = CODEBOOK.n_classes


class Watched(MemoryRows):
    """Rows that remember what was asked of them."""

    def __init__(self, codes: Any, classes: Any) -> None:
        super().__init__(None, None, CODEBOOK)
        self._encoded, self._source = (codes, classes), None
        self.asked: list[Query[Any]] = []

    def _pass(self, query: Query[Any]) -> Any:
        self.asked.append(query)
        return super()._pass(query)


def rows(seed: int, number: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return codes_for(CODEBOOK.sizes, number, seed), rng.integers(0, K + 1, number).astype(np.uint16)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_order_of_questions_about_growing_trees(data: Any) -> None:
    codes, classes = rows(data.draw(st.integers(0, 100)))
    engine = Watched(codes, classes)
    builder = TreeBuilder(CODEBOOK.sizes)
    leaves = [0]
    for _ in range(data.draw(st.integers(1, 8))):
        step = data.draw(st.sampled_from(["classes", "splits", "split one", "split asked", "new tree", "all leaves"]))
        tree = builder.build()
        if step == "new tree":
            builder, leaves = TreeBuilder(CODEBOOK.sizes), [0]
        elif step in ("split one", "split asked"):
            wanted = leaves if step == "split asked" else leaves[:1]
            for node in list(wanted):
                attribute = data.draw(st.integers(0, len(CODEBOOK.sizes) - 1))
                groups = None if data.draw(st.booleans()) else [code % 2 for code in range(CODEBOOK.sizes[attribute])]
                leaves.remove(node)
                leaves += builder.split(node, attribute, groups)
            leaves = leaves[:12] if len(leaves) > 12 else leaves
        else:
            some = leaves if step == "all leaves" else data.draw(st.lists(st.sampled_from(leaves), min_size=1, unique=True))
            nodes = np.array(some, dtype=np.int64)
            if step == "splits":
                np.testing.assert_array_equal(
                    exact_answers.split_counts(engine, tree, nodes), kernels.split_counts(tree, nodes, codes, classes, K)
                )
            else:
                np.testing.assert_array_equal(
                    exact_answers.class_counts(engine, tree, nodes), kernels.class_counts(tree, nodes, codes, classes, K)
                )


def test_the_children_of_a_split_need_no_pass() -> None:
    engine = Watched(*rows(1))
    builder = TreeBuilder(CODEBOOK.sizes)
    root = np.zeros(1, dtype=np.int64)
    exact_answers.class_counts(engine, builder.build(), root)
    exact_answers.split_counts(engine, builder.build(), root)
    children = np.array(builder.split(0, 0), dtype=np.int64)
    exact_answers.class_counts(engine, builder.build(), children)  # known
    exact_answers.split_counts(engine, builder.build(), children[:2])
    assert [type(question) for question in engine.asked] == [ClassCounts, Tables, Tables]
    other = TreeBuilder(CODEBOOK.sizes)  # another tree: its root is known, and so are the children of its root
    exact_answers.class_counts(engine, other.build(), root)
    exact_answers.split_counts(engine, other.build(), root)
    exact_answers.class_counts(engine, (other.split(0, 1), other.build())[1], np.array([1, 2]))
    assert len(engine.asked) == 3


def test_a_tree_that_only_looks_alike_is_counted_anew() -> None:
    engine = Watched(*rows(2))
    codes, classes = engine._encoded or rows(2)
    for attribute in (0, 3):  # as many nodes, other questions
        builder = TreeBuilder(CODEBOOK.sizes)
        builder.split(0, attribute)
        tree = builder.build()
        nodes = tree.leaves.astype(np.int64)
        np.testing.assert_array_equal(exact_answers.split_counts(engine, tree, nodes), kernels.split_counts(tree, nodes, codes, classes, K))
        np.testing.assert_array_equal(exact_answers.class_counts(engine, tree, nodes), kernels.class_counts(tree, nodes, codes, classes, K))


def test_large_tables_are_not_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr(growing, "MOST_KEPT", 10)
    engine = Watched(*rows(3))
    tree = TreeBuilder(CODEBOOK.sizes).build()
    for _ in range(2):
        exact_answers.split_counts(engine, tree, np.zeros(1, dtype=np.int64))
    assert len(engine.asked) == 2
