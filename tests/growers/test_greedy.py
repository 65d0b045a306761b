"""The trees that are chosen privately: what they charge, and that every decision follows from what was answered."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hedgerow import Budget, ID3Classifier, PrivateID3Classifier
from hedgerow.errors import BudgetError, HedgerowError, PlanError
from hedgerow.estimators.diffpid3 import DiffPID3Classifier
from hedgerow.estimators.dpdf import DPDFClassifier
from hedgerow.growers import diffpid3, dpdf, id3
from hedgerow.private_table import PrivateTable
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.routing import route
from hedgerow.trees.splits import by_threshold
from hedgerow.trees.tree import Tree

GREEDY = [DPDFClassifier, DiffPID3Classifier, PrivateID3Classifier]


def wide(attributes: int, values: int = 2, classes: int = 2) -> Schema:
    return Schema([Categorical(f"a{i}", list(range(values))) for i in range(attributes)], Target("y", list(range(classes))))


def coin_tosses(rows: int, schema: Schema, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Independent values and classes: no node is ever pure, so that no branch ends early."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, len(a.values), rows) for a in schema.attributes if isinstance(a, Categorical)]
    return np.stack(columns, axis=1), rng.integers(0, len(schema.target.classes), rows)


def concept(rows: int, seed: int = 0, values: int = 2, attributes: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """y = a0 or (a1 and a2), one row in twenty wrong."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (rows, attributes))
    y = ((X[:, 0] == 1) | ((X[:, 1] == 1) & (X[:, 2] == 1))).astype(np.int64)
    return X, np.where(rng.random(rows) < 0.05, 1 - y, y)


def charged(release: Release) -> list[tuple[str, Fraction]]:
    return [(event.query, Fraction(event.epsilon)) for event in release.certificate.events]


def attributes_on_paths(tree: Tree) -> list[list[int]]:
    return [[attribute for attribute, _ in tree.path(int(leaf))] for leaf in tree.leaves]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[tuple[Any, ...]]]:
    """asked(name): a list that fills with (what the query holds, price, answer) of every query of that name."""

    def record(name: str) -> list[tuple[Any, ...]]:
        calls: list[tuple[Any, ...]] = []
        real = PrivateTable.ask

        def spy(self: PrivateTable, query: Any, price: Any) -> Any:
            answer = real(self, query, price)
            if query.name == name:
                calls.append((*(getattr(query, each.name) for each in fields(query)), price, answer))
            return answer

        monkeypatch.setattr(PrivateTable, "ask", spy)
        return calls

    return record


# ---------------------------------------------------------------- DPDF


@pytest.mark.parametrize("trees", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_dpdf_charges_its_epsilon_exactly_at_full_depth(depth: int, trees: int) -> None:
    """Eq. 10: β/(τ(2δ − 1)) for each of δ times Q1 and δ − 1 times Q2 of τ trees."""
    beta = Fraction(700, 3)
    model = DPDFClassifier(wide(6), beta, trees, depth, min_rows=1)
    release = model.fit(*coin_tosses(4000, wide(6))).release_
    each = beta / (trees * (2 * depth - 1))
    assert charged(release) == (([("class_counts", each), ("choose", each)] * (depth - 1)) + [("class_counts", each)]) * trees
    assert release.certificate.spent == beta == Fraction(release.certificate.epsilon)
    assert [(event.query, event.epsilon, event.scale) for event in model.plan().events] == [
        (event.query, Fraction(event.epsilon), Fraction(event.scale)) for event in release.certificate.events
    ]
    assert release.forest.noise == (1 / each,)
    assert [tree.height for tree in release.forest.trees] == [depth - 1] * trees
    roots = [int(tree.attribute[0]) for tree in release.forest.trees]
    assert len(set(roots)) == trees or depth == 1
    for tree, counts in zip(release.forest.trees, release.forest.counts, strict=True):
        assert len(counts) == tree.n_nodes
        for path in attributes_on_paths(tree):
            assert len(set(path)) == len(path)


def dpdf_splits(tree: Tree, counts: np.ndarray, depth: int, min_rows: int, left: int) -> np.ndarray:
    """Line 16 with d < δ, from released counts: which nodes have to be split."""
    wanted = np.zeros(tree.n_nodes, dtype=bool)
    for node in range(tree.n_nodes):
        f, size = counts[node].tolist(), int(counts[node].sum())
        d = int(tree.depth[node]) + 1
        pure = any(max(n, 0) / size >= 1 for n in f) if size > 0 else True
        wanted[node] = d < depth and size >= min_rows and not pure and left - (d - 1) > 0
    return wanted


@pytest.mark.parametrize("epsilon", ["0.3", 1, 3, 30, 1000])
@pytest.mark.parametrize("sensitivity", ["global", "local"])
def test_dpdf_splits_by_what_was_released(epsilon: Any, sensitivity: str) -> None:
    ended = 0
    for seed, (depth, min_rows) in enumerate([(2, 100), (4, 1), (4, 60), (5, 250), (6, 10)]):
        model = DPDFClassifier(wide(4), epsilon, 2, depth, min_rows, sensitivity=sensitivity)
        release = model.fit(*concept(1500, seed, attributes=4)).release_
        assert release.certificate.spent <= Fraction(epsilon)
        events = iter(release.certificate.events)
        for tree, counts in zip(release.forest.trees, release.forest.node_counts, strict=True):
            wanted = dpdf_splits(tree, counts, depth, min_rows, left=4)
            assert np.array_equal(tree.attribute >= 0, wanted)
            ended += int((~wanted & (tree.depth + 1 < depth)).sum())
            # Q1 on every level that exists, Q2 between them
            verbs = [next(events).query for _ in range(2 * tree.height + 1)]
            assert verbs == ["class_counts", "choose"] * tree.height + ["class_counts"]
        assert next(events, None) is None
    assert ended  # some branch did end early: the rule was put to the test


def test_dpdf_that_ends_early_leaves_the_rest_in_the_budget() -> None:
    budget = Budget(10)
    release = DPDFClassifier(wide(6), 5, 3, 4, min_rows=10**9, budget=budget).fit(*concept(500)).release_
    each = Fraction(5, 3 * 7)
    assert charged(release) == [("class_counts", each)] * 3
    assert budget.spent == release.certificate.spent == Fraction(5, 7)
    assert release.certificate.epsilon == "5"  # what was asked for
    assert budget.remaining == 10 - Fraction(5, 7)
    assert [tree.n_nodes for tree in release.forest.trees] == [1, 1, 1]


def test_dpdf_needs_an_attribute_for_every_root() -> None:
    budget = Budget(10)
    with pytest.raises(PlanError, match="at most 3"):
        DPDFClassifier(wide(3), 1, 4, budget=budget).fit(*concept(100, attributes=3))
    with pytest.raises(PlanError, match="n_estimators"):
        DPDFClassifier(wide(3), 1, 4).plan()
    assert budget.spent == 0
    release = DPDFClassifier(wide(3), 500, 3, 3, min_rows=1).fit(*coin_tosses(500, wide(3))).release_
    assert {int(tree.attribute[0]) for tree in release.forest.trees} == {0, 1, 2}


def with_a_single_value() -> Schema:
    return Schema([Categorical("a", [0, 1]), Categorical("b", [7]), Categorical("c", [0, 1])], Target("y", [0, 1]))


@pytest.mark.parametrize("algorithm", [DPDFClassifier, DiffPID3Classifier])
def test_an_attribute_with_a_single_value_is_never_asked(algorithm: Any) -> None:
    X, y = concept(400, attributes=3)
    X[:, 1] = 7
    release = algorithm(with_a_single_value(), 1000).fit(X, y).release_
    assert all(1 not in tree.attribute for tree in release.forest.trees)


def test_dpdf_roots_are_distinct_where_an_attribute_has_a_single_value() -> None:
    """Three attributes, but only two that can be a root: three trees are refused, or have three roots; never a root twice."""
    X, y = coin_tosses(400, wide(3))
    X[:, 1] = 7
    try:
        release = DPDFClassifier(with_a_single_value(), 500, 3, 2, min_rows=1).fit(X, y).release_
    except PlanError:
        return
    roots = [int(tree.attribute[0]) for tree in release.forest.trees if tree.n_nodes > 1]
    assert len(set(roots)) == len(roots)


def test_dpdf_with_local_sensitivity_claims_no_epsilon(tmp_path: Any) -> None:
    budget = Budget(10)
    model = DPDFClassifier(wide(6), 7, 2, 3, min_rows=1, sensitivity="local", budget=budget)
    release = model.fit(*coin_tosses(3000, wide(6))).release_
    certificate = release.certificate
    assert (certificate.guarantee, certificate.epsilon) == ("none", None)
    assert "not proven" in certificate.sentence()
    assert certificate.spent == budget.spent == 7  # it is paid all the same
    assert {e.mechanism for e in certificate.events if e.query == "choose"} == {"exponential mechanism with local sensitivity"}
    release.save(tmp_path / "r.json")
    assert Release.load(tmp_path / "r.json").certificate == certificate
    # Each choice states the sensitivity that was used at its smallest node: 2m/(m + 1)² for m rows, by the noisy counts.
    stated = [event for event in certificate.events if event.query == "choose"]
    used = []
    for tree, counts in zip(release.forest.trees, release.forest.counts, strict=True):
        for depth in range(2):
            asking = [node for node in range(tree.n_nodes) if tree.depth[node] == depth and tree.attribute[node] >= 0]
            m = min(max(1, int(counts[node].sum())) for node in asking)
            used.append(Fraction(2 * m, (m + 1) ** 2))
    assert [Fraction(event.sensitivity) for event in stated] == used
    assert all(each < Fraction(1, 100) for each in used)
    assert [event.shown_sensitivity for event in stated] == [f"{float(each):.3g} at most" for each in used]
    # A tree that never chose has nothing unproven in it.
    plain = DPDFClassifier(wide(6), 7, 1, 3, min_rows=10**9, sensitivity="local").fit(*concept(300)).release_
    assert plain.certificate.guarantee == "epsilon-DP"


@pytest.mark.parametrize("sensitivity", ["global", "local"])
def test_dpdf_learns(sensitivity: str) -> None:
    X, y = concept(4000)
    for trees, vote in [(1, "confidence"), (3, "majority"), (3, "sum"), (3, "confidence")]:
        model = DPDFClassifier(wide(6), 30, trees, 4, sensitivity=sensitivity, vote=vote).fit(X, y)
        assert model.score(X, y) > 0.85


def test_dpdf_with_more_nodes_than_one_question_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then only the largest go on, by their released counts."""
    monkeypatch.setattr(dpdf, "LARGEST_QUESTION", 3 * 12 * 2)  # three nodes with 12 cells and 2 classes
    release = DPDFClassifier(wide(6), 1000, 1, 5, min_rows=1).fit(*concept(4000)).release_
    tree, size = release.forest.trees[0], release.forest.counts[0].sum(axis=1)
    for level in tree.levels:
        went_on = tree.attribute[level] >= 0
        assert went_on.sum() <= 3
    third = tree.levels[2]
    assert len(third) == 4
    wanted = dpdf_splits(tree, release.forest.counts[0], 5, 1, 6)[third]
    largest = sorted(third[wanted], key=lambda node: -size[node])[:3]
    assert sorted(largest) == third[tree.attribute[third] >= 0].tolist()


# ---------------------------------------------------------------- DiffPID3


def mixed(missing: bool = True) -> Schema:
    return Schema(
        [
            Categorical("kind", [0, 1, 2]),
            Numeric("x", 0, 1, missing="none" if missing else None),
            Numeric("z", 0, 1, edges=(0, 0.5, 1)),
            Categorical("flag", [0, 1]),
        ],
        Target("y", [0, 1]),
    )


def mixed_table(rows: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = {
        "kind": rng.integers(0, 3, rows),
        "x": np.where(rng.random(rows) < 0.1, np.nan, rng.random(rows)),
        "z": rng.random(rows),
        "flag": rng.integers(0, 2, rows),
    }
    inside = (columns["x"] > 0.25) & (columns["x"] < 0.75)
    return columns, np.where(rng.random(rows) < 0.05, 1 - inside, inside).astype(np.int64)


@pytest.mark.parametrize("criterion", diffpid3.SCORES)
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_diffpid3_charges_its_epsilon_exactly_at_full_depth(depth: int, criterion: str) -> None:
    beta = Fraction(1000, 7)
    model = DiffPID3Classifier(wide(6), beta, depth, criterion=criterion)
    release = model.fit(*coin_tosses(4000, wide(6))).release_
    each = beta / (2 * depth)
    assert charged(release) == [("sizes", each), ("choose", each)] * (depth - 1) + [("sizes", each), ("class_counts", each)]
    assert len(release.certificate.events) == 2 * depth
    assert release.certificate.spent == beta
    assert [e.epsilon for e in model.plan().events] == [each] * (2 * depth)
    (tree,) = release.forest.trees
    assert tree.height == depth - 1
    assert release.forest.noise == (1 / each,)
    for path in attributes_on_paths(tree):
        assert len(set(path)) == len(path)
    constant = {"gini": 2, "max": 1, "gini_half": Fraction(1, 2), "information_gain": math.log2(10**6 + 1) + 1 / math.log(2)}
    for event in release.certificate.events:
        if event.query == "choose":
            assert event.mechanism == "exponential mechanism"
            assert float(Fraction(event.sensitivity)) == pytest.approx(float(constant[criterion]), rel=1e-2)
            twice = 2 if criterion == "gini_half" else 1
            assert Fraction(event.scale) == twice * Fraction(event.sensitivity) / each


def reachable(tree: Tree, node: int, codebook: Codebook) -> list[set[int]]:
    """For each attribute, the codes that a row in the node can have."""
    codes = [set(range(size)) for size in codebook.sizes]
    for attribute, values in tree.path(node):
        codes[attribute] &= set(values)
    return codes


@pytest.mark.parametrize("epsilon", [1, 10, 100, 2000])
@pytest.mark.parametrize("criterion", diffpid3.SCORES)
def test_diffpid3_splits_by_what_was_answered(criterion: str, epsilon: int, asked: Any) -> None:
    """A node is split if its noisy size is large enough and some split would part the codes that can still reach it."""
    sizes = asked("sizes")
    depth = 5
    release = DiffPID3Classifier(mixed(), epsilon, depth, criterion=criterion, bins=6).fit(*mixed_table(2000)).release_
    codebook, (tree,) = release.codebook, release.forest.trees
    assert codebook.sizes == (3, 7, 2, 2)
    each, t, C = Fraction(epsilon, 2 * depth), 7, 2
    candidates = by_threshold(codebook).splits
    assert len(sizes) == tree.height + 1
    for level, (_, nodes, e, answer) in enumerate(sizes):
        assert e == each
        assert sorted(nodes) == tree.levels[level].tolist()
        for node, n in zip(nodes, answer.tolist(), strict=True):
            codes = reachable(tree, int(node), codebook)
            useful = [s for s in candidates if len({s.groups[code] for code in codes[s.attribute]}) > 1]
            large = n / (t * C) >= math.sqrt(2) / float(each)
            assert (tree.attribute[node] >= 0) == (large and bool(useful) and level + 1 < depth)
            if tree.attribute[node] >= 0:
                below = tree.children(int(node)).tolist()
                groups = tuple(sorted(set(below)).index(child) for child in below)
                assert groups in [s.groups for s in useful if s.attribute == tree.attribute[node]]


def test_diffpid3_thresholds_are_contiguous_and_nested() -> None:
    release = DiffPID3Classifier(mixed(), 3000, 5, bins=8).fit(*mixed_table(4000)).release_
    (tree,) = release.forest.trees
    asked_twice = 0
    for node in np.flatnonzero(tree.attribute >= 0):
        attribute = int(tree.attribute[node])
        cells = release.codebook.numeric_cells(attribute)
        if not cells:
            continue
        codes = reachable(tree, int(node), release.codebook)[attribute]
        below = tree.children(int(node))
        here = sorted(code for code in codes if code < cells)
        assert here == list(range(here[0], here[-1] + 1))  # an interval
        sides = [int(below[code]) for code in here]
        assert sides == sorted(sides)  # a threshold inside it: left cells together, right cells together
        assert len(set(sides)) == 2
        if release.codebook.sizes[attribute] > cells:
            assert below[cells] not in below[:cells]  # a missing value has its own branch
        asked_twice += attribute in [a for a, _ in tree.path(int(node))]
    assert asked_twice  # the class is an interval of x: two thresholds on one path


@pytest.mark.parametrize("criterion", diffpid3.SCORES)
def test_diffpid3_learns(criterion: str) -> None:
    columns, y = mixed_table(6000)
    model = DiffPID3Classifier(mixed(), 400, 4, criterion=criterion, bins=8).fit(columns, y)
    assert model.score(columns, y) > 0.85


def test_diffpid3_that_ends_early_leaves_the_rest_in_the_budget() -> None:
    budget = Budget(1)
    release = DiffPID3Classifier(wide(6), "0.1", 5, budget=budget).fit(*concept(20)).release_  # 20 rows: far below √2·4/0.01
    assert charged(release) == [("sizes", Fraction(1, 100)), ("class_counts", Fraction(1, 100))]
    assert budget.remaining == Fraction(98, 100)
    assert release.certificate.spent == Fraction(2, 100)
    assert release.certificate.epsilon == "0.1"  # what was asked for


def test_information_gain_of_more_rows_than_declared() -> None:
    """4000 rows where 2500 are declared: the score still tells. (Far above N it does not: every class count is on the straight part.)"""
    X, y = concept(4000)
    model = DiffPID3Classifier(wide(6), 1000, 4, criterion="information_gain", most_rows=2500).fit(X, y)
    assert model.score(X, y) > 0.85
    far = DiffPID3Classifier(wide(6), 1000, 4, criterion="information_gain", most_rows=1).fit(X, y).release_
    assert far.certificate.spent == 1000


# ---------------------------------------------------------------- ID3


@pytest.mark.parametrize(("attributes", "queries"), [(8, 36), (16, 136), (22, 253)])
def test_private_id3_asks_the_queries_of_table_1(attributes: int, queries: int) -> None:
    codebook = Codebook(wide(attributes))
    assert id3.number_of_queries(codebook, id3.Settings()) == queries == attributes * (attributes + 1) // 2
    plan = PrivateID3Classifier(wide(attributes), 3).plan()
    assert sum(event.queries for event in plan.events) == queries
    assert {event.epsilon / event.queries for event in plan.events} == {Fraction(3, queries)}
    assert {event.scale for event in plan.events} == {Fraction(queries, 3)}
    assert sum(event.epsilon for event in plan.events) == 3


@pytest.mark.parametrize("depth", [None, 1, 2, 3, 4, 9])
def test_private_id3_charges_its_epsilon_exactly_at_full_depth(depth: int | None) -> None:
    epsilon = Fraction(5000, 3)
    model = PrivateID3Classifier(wide(5), epsilon, depth)
    release = model.fit(*coin_tosses(6000, wide(5))).release_
    levels = min(5, depth or 5)
    q = sum(5 - level for level in range(levels))
    assert charged(release) == [("tables", epsilon / q * (5 - level)) for level in range(levels)]
    assert [event.queries for event in release.certificate.events] == [5 - level for level in range(levels)]
    assert release.certificate.spent == epsilon
    assert release.forest.noise == (q / epsilon,)
    assert release.forest.trees[0].height == levels
    for path in attributes_on_paths(release.forest.trees[0]):
        assert len(set(path)) == len(path)


def entropy_gain(cells: np.ndarray) -> float:
    """Information gain of an attribute from its (value, class) table, by the textbook; negative counts are 0."""
    cells = np.maximum(cells, 0)

    def entropy(counts: np.ndarray) -> float:
        return -sum(x / counts.sum() * math.log2(x / counts.sum()) for x in counts.tolist() if x > 0)

    n = cells.sum()
    if n == 0:
        return 0.0
    return entropy(cells.sum(axis=0)) - sum(row.sum() / n * entropy(row) for row in cells if row.sum() > 0)


@pytest.mark.parametrize("epsilon", [2, 20, 200, 5000])
def test_private_id3_decides_by_what_was_answered(epsilon: int, asked: Any) -> None:
    calls = asked("tables")
    X, y = concept(800, values=3, attributes=4)
    release = PrivateID3Classifier(wide(4, 3), epsilon).fit(X, y).release_
    (tree,), first = release.forest.trees, [0, 3, 6, 9, 12]
    counts = {}
    assert len(calls) == tree.height
    for _, nodes, left, _, answer in calls:
        for node, allowed, table in zip(nodes, left, answer, strict=True):
            used = [attribute for attribute, _ in tree.path(int(node))]
            assert np.flatnonzero(~allowed).tolist() == sorted(used)
            gains = [entropy_gain(table[first[a] : first[a + 1]]) if allowed[a] else -1 for a in range(4)]
            attribute = int(tree.attribute[node])
            assert gains[attribute] >= max(gains) - 1e-9
            for child, row in zip(tree.children(node), table[first[attribute] : first[attribute + 1]], strict=True):
                counts[int(child)] = row
    for node in range(1, tree.n_nodes):
        positive = np.maximum(counts[node], 0)
        ends = counts[node].sum() <= 0 or (positive > 0).sum() <= 1 or tree.depth[node] == 4
        assert (tree.attribute[node] < 0) == ends
    assert np.array_equal(release.forest.counts[0], [counts[int(leaf)] for leaf in tree.leaves])


def test_private_id3_learns_given_much_epsilon() -> None:
    X, y = concept(4000)
    assert PrivateID3Classifier(wide(6), 1000).fit(X, y).score(X, y) > 0.9


# ---------------------------------------------------------------- plain ID3 against a recursive reference


class Reference:
    """Algorithm 1 of Jagannathan et al. 2012, row by row. Ties between attributes are any of them: it takes the tree's."""

    def __init__(self, X: np.ndarray, y: np.ndarray, sizes: tuple[int, ...], classes: int, most: int) -> None:
        self.X, self.y, self.sizes, self.classes, self.most = X, y, sizes, classes, most

    def predict(self, row: np.ndarray, tree: Tree) -> int:
        here, left, node, depth = np.arange(len(self.y)), set(range(len(self.sizes))), 0, 0
        while True:
            counts = np.bincount(self.y[here], minlength=self.classes)
            if (counts > 0).sum() <= 1 or not left or depth == self.most:
                assert tree.attribute[node] < 0 or node == 0
                return int(counts.argmax())
            # Minus the gain up to a constant: Π n_v^n_v / Π n_vc^n_vc, in whole numbers, so that ties are exact.
            cost = {}
            for a in left:
                cells = np.zeros((self.sizes[a], self.classes), dtype=int)
                np.add.at(cells, (self.X[here, a], self.y[here]), 1)
                above = math.prod(int(n) ** int(n) for n in cells.sum(axis=1))
                cost[a] = Fraction(above, math.prod(int(n) ** int(n) for n in cells.ravel()))
            asks = int(tree.attribute[node])
            assert cost[asks] == min(cost.values())
            below = here[self.X[here, asks] == row[asks]]
            child = int(tree.children(node)[row[asks]])
            assert (child < 0) == (len(below) == 0)
            if not len(below):
                return int(counts.argmax())
            here, left, node, depth = below, left - {asks}, child, depth + 1


@pytest.mark.parametrize("depth", [None, 1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_plain_id3_against_the_reference(seed: int, depth: int | None) -> None:
    rng = np.random.default_rng(seed)
    attributes, classes = int(rng.integers(1, 5)), int(rng.integers(2, 4))
    sizes = tuple(int(n) for n in rng.integers(2, 4, attributes))
    schema = Schema([Categorical(f"a{i}", list(range(n))) for i, n in enumerate(sizes)], Target("y", list(range(classes))))
    rows = int(rng.integers(1, 40))
    X = np.stack([rng.integers(0, n, rows) for n in sizes], axis=1)
    y = (X.sum(axis=1) + (rng.random(rows) < 0.3)) % classes
    model = ID3Classifier(depth, schema=schema).fit(X, y)
    assert model.release_.certificate.guarantee == "none"
    everything = np.stack([rng.integers(0, n, 100) for n in sizes], axis=1)
    reference = Reference(X, y, sizes, classes, attributes if depth is None else depth)
    (tree,) = model.release_.forest.trees
    predicted = model.predict(everything)
    for row, got in zip(everything, predicted, strict=True):
        wanted = reference.predict(row, tree)
        counts = np.bincount(y[reached(X, tree, row)], minlength=classes)
        assert got == wanted or (counts[got] == counts.max() and counts[wanted] == counts.max())


def reached(X: np.ndarray, tree: Tree, row: np.ndarray) -> np.ndarray:
    """The training rows that lie in the node where the row ends."""
    (node,) = route(tree, row[None, :].astype(np.uint8))
    inside = np.ones(len(X), dtype=bool)
    for attribute, codes in tree.path(int(node)):
        inside &= np.isin(X[:, attribute], codes)
    return np.flatnonzero(inside)


def test_plain_id3_keeps_rows_whose_other_values_are_not_declared() -> None:
    X = np.array([[0, 9]] * 10 + [[1, 0]] * 30)
    y = np.array([1] * 9 + [0] + [0] * 30)
    model = ID3Classifier(schema=wide(2)).fit(X, y)
    assert model.predict([[0, 9], [1, 0]]).tolist() == [1, 0]


def test_plain_id3_learns_a_concept_exactly() -> None:
    X = np.array(np.meshgrid(*[range(3)] * 4)).reshape(4, -1).T
    y = np.where((X[:, 0] == 2) | ((X[:, 1] == 1) & (X[:, 3] > 0)), "yes", "no")
    schema = Schema([Categorical(f"a{i}", [0, 1, 2]) for i in range(4)], Target("y", ["no", "yes"]))
    model = ID3Classifier(schema=schema).fit(X, y)
    assert (model.predict(X) == y).all()
    assert 2 not in model.release_.forest.trees[0].attribute  # the attribute that says nothing
    assert model.release_.forest.node_counts[0][0].sum() == len(X)
    assert (ID3Classifier().fit(X, y).predict(X) == y).all()


# ---------------------------------------------------------------- refusals


BAD = [
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"epsilon": float("inf")}, "epsilon"),
    ({"epsilon": None}, "epsilon"),
    ({"epsilon": Fraction(1, 2**70)}, "larger epsilon"),
    ({"max_depth": 0}, "max_depth"),
    ({"max_depth": -3}, "max_depth"),
    ({"max_depth": 2.5}, "max_depth"),
    ({"max_depth": True}, "max_depth"),
    ({"bins": 0}, "bins"),
    ({"sampler": "numpy"}, "sampler"),
    ({"budget": 3}, "budget"),
    ({"schema": None}, "schema"),
]
BAD_DPDF = [
    ({"n_estimators": 0}, "n_estimators"),
    ({"n_estimators": 7}, "n_estimators"),
    ({"min_rows": 0}, "min_rows"),
    ({"vote": "loudest"}, "vote"),
    ({"sensitivity": "smooth"}, "sensitivity"),
]
BAD_DIFFPID3 = [
    ({"criterion": "entropy"}, "criterion"),
    ({"criterion": "information_gain", "most_rows": 0}, "most_rows"),
    ({"criterion": "information_gain", "most_rows": 2**40}, "most_rows"),
]


@pytest.mark.parametrize(
    ("algorithm", "settings", "says"),
    [(a, s, t) for a in GREEDY for s, t in BAD]
    + [(DPDFClassifier, s, t) for s, t in BAD_DPDF]
    + [(DiffPID3Classifier, s, t) for s, t in BAD_DIFFPID3],
)
def test_bad_requests_are_refused_before_anything_is_spent(algorithm: Any, settings: dict[str, Any], says: str) -> None:
    budget = Budget(10)
    with pytest.raises(HedgerowError, match=says):
        algorithm(**{"schema": wide(6), "epsilon": 1, "budget": budget, **settings}).fit(*concept(50))
    assert budget.spent == 0


@pytest.mark.parametrize("algorithm", GREEDY)
def test_a_budget_that_cannot_pay_the_whole_is_not_begun(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the tree might end early and cost less: what is left over would tell."""
    budget = Budget(1)
    monkeypatch.setattr(PrivateTable, "__init__", lambda *_, **__: pytest.fail("the rows were given to a table"))
    with pytest.raises(BudgetError, match=r"short by 0\.5"):
        algorithm(wide(6), "1.5", budget=budget).fit(*concept(50))
    assert budget.spent == 0


@pytest.mark.parametrize("algorithm", GREEDY)
def test_a_crash_leaves_the_whole_charge(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(2)
    monkeypatch.setattr("hedgerow.training.fit.part_of", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        algorithm(wide(6), 1, budget=budget).fit(*concept(50))
    assert budget.remaining == 1
