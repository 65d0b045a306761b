"""Importances: by brute force from the released counts, and against the textbook where the counts are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from strategies import forests, small_schema, small_table

from hedgerow import RandomDecisionTreesClassifier
from hedgerow.inference.importance import importances
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import NODES, CountedForest
from hedgerow.trees.tree import TreeBuilder


def impurity(counts) -> float:
    positive = [max(int(c), 0) for c in counts]
    return 1 - sum((c / sum(positive)) ** 2 for c in positive)


def by_brute_force(forest: CountedForest, removed=None) -> dict[str, float]:
    names = forest.codebook.schema.names
    sums = dict.fromkeys(names, 0.0)
    for t, tree in enumerate(forest.trees):
        counts, sd = forest.node_counts[t], forest.node_noise_sd(t)

        def clear(node, t=t, counts=counts, sd=sd):
            gone = removed is not None and removed[t][node]
            return not gone and counts[node].sum() > 2 * sd[node] * math.sqrt(counts.shape[1])

        for node in range(tree.n_nodes):
            if tree.attribute[node] < 0 or not clear(node):
                continue
            children = {int(child) for child in tree.children(node) if child >= 0}
            gain = sum(
                sum(max(int(c), 0) for c in counts[child]) * (impurity(counts[node]) - impurity(counts[child]))
                for child in children
                if clear(child)
            )
            sums[names[tree.attribute[node]]] += max(gain, 0)
    total = sum(sums.values())
    return {name: value / total if total > 0 else 0.0 for name, value in sums.items()}


@pytest.mark.slow
@given(forests())
def test_they_follow_from_the_counts(forest):
    expected = by_brute_force(forest)
    assert importances(forest) == pytest.approx(expected)
    assert sum(expected.values()) == pytest.approx(1) or set(importances(forest).values()) == {0}


@pytest.mark.slow
@given(forests())
def test_noise_and_pruning_take_nodes_out(forest):
    noisy = CountedForest(forest.codebook, forest.trees, forest.counts, (Fraction(25),))
    apart = CountedForest(forest.codebook, forest.trees, forest.node_counts, (Fraction(25),), NODES)
    removed = [np.arange(tree.n_nodes) % 3 == 2 for tree in forest.trees]
    for each in (noisy, apart):
        assert importances(each) == pytest.approx(by_brute_force(each))
        assert importances(each, removed) == pytest.approx(by_brute_force(each, removed))


def test_with_exact_counts_they_are_the_textbooks():
    """Decrease of the Gini impurity, weighted by rows: as scikit-learn defines it for one tree."""
    book = Codebook(Schema([Categorical("a", (0, 1)), Categorical("b", (0, 1))], Target("y", (0, 1))))
    builder = TreeBuilder(book.sizes)
    left, _ = builder.split(0, 0)
    builder.split(left, 1)
    forest = CountedForest(book, (builder.build(),), (np.array([[5, 45], [30, 0], [10, 10]]),))
    # nodes: root (45, 55), left (40, 10), right (5, 45), below left (30, 0) and (10, 10)
    at_a = 100 * impurity([45, 55]) - 50 * impurity([40, 10]) - 50 * impurity([5, 45])
    at_b = 50 * impurity([40, 10]) - 20 * impurity([10, 10])
    assert importances(forest) == pytest.approx({"a": at_a / (at_a + at_b), "b": at_b / (at_a + at_b)})


def test_attributes_with_many_values_do_not_win_by_noise():
    """Two rows and much noise in each of sixty children: a few rows of noise look pure, and sixty such children important."""
    book = Codebook(Schema([Categorical("many", range(60)), Categorical("two", (0, 1))], Target("y", (0, 1))))
    rng = np.random.default_rng(0)
    trees, counts = [], []
    for attribute in (0, 1):
        builder = TreeBuilder(book.sizes)
        n = len(builder.split(0, attribute))
        trees.append(builder.build())
        rows = np.ones((n, 2), dtype=np.int64) if attribute == 0 else np.array([[550, 50], [50, 550]])
        counts.append(rows + np.round(rng.laplace(0, 10, (n, 2))).astype(np.int64))
    assert importances(CountedForest(book, tuple(trees), tuple(counts), (Fraction(10),)))["two"] > 0.9
    assert importances(CountedForest(book, tuple(trees), tuple(counts)))["two"] < 0.9  # without the rule


def test_a_release_has_them_and_nothing_is_zero():
    X, y = small_table(2000)
    release = RandomDecisionTreesClassifier(schema=small_schema(), max_depth=2, random_state=0).fit(X, y).release_
    shares = release.feature_importances()
    assert list(shares) == list(small_schema().names)
    assert shares["colour"] + shares["age"] > 0.9
    assert sum(shares.values()) == pytest.approx(1)
    stump = CountedForest(release.codebook, (TreeBuilder(release.codebook.sizes).build(),), (np.array([[3, 5]]),))
    assert set(importances(stump).values()) == {0}
