"""Private ID3 to the letter of its paper: what it asks, what that costs, where it fails; and Failure in plain ID3."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hedgerow import Budget, ID3Classifier, PrivateID3Classifier, Release
from hedgerow.errors import BudgetError, HedgerowWarning, PlanError
from hedgerow.growers.id3_published import attribute_entropy
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.private_table import PrivateTable
from hedgerow.queries import ClassCounts, Sizes, Tables
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.routing import route


def wide(attributes: int, values: int = 2, classes: int = 2, **more: Any) -> Schema:
    return Schema([Categorical(f"a{i}", list(range(values))) for i in range(attributes)], Target("y", list(range(classes))), **more)


def tosses(rows: int, attributes: int, values: int = 2, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, values, (rows, attributes)), rng.integers(0, classes, rows)


@pytest.mark.parametrize(("attributes", "q"), [(8, 36), (16, 136), (22, 253)])
def test_a_query_gets_the_paper_s_share_and_those_left_out_are_charged_too(attributes: int, q: int) -> None:
    plan = PrivateID3Classifier(wide(attributes), "0.5", as_published=True).plan()
    assert {event.scale for event in plan.events} == {q / Fraction(1, 2)}  # ε = ε′/q
    assert sum(event.queries for event in plan.events) == q + 2 * (attributes + 1)
    assert plan.epsilon == sum(event.epsilon for event in plan.events) == Fraction(1, 2) * (q + 2 * (attributes + 1)) / q
    assert f"{q} queries" in plan.not_proven


@pytest.mark.parametrize("depth", [None, 1, 3])
def test_the_whole_cost_is_charged_and_no_epsilon_claimed(depth: int | None) -> None:
    model = PrivateID3Classifier(wide(4), 3000, depth, as_published=True)
    release = model.fit(*tosses(4000, 4)).release_
    levels = depth or 4
    q = sum(4 - level for level in range(levels))
    asked = [name for _ in range(levels) for name in ("sizes", "class_counts", "tables")] + ["sizes", "class_counts"]
    assert [event.query for event in release.certificate.events] == asked
    assert release.certificate.spent == Fraction(3000, q) * (q + 2 * (levels + 1)) == model.plan().epsilon
    assert (release.certificate.guarantee, release.certificate.epsilon) == ("none", None)
    assert "not proven" in release.certificate.sentence()
    assert release.parameters == {"max_depth": depth, "as_published": True, "bins": 5}
    assert Release.from_json(release.to_json()).certificate == release.certificate


def test_a_budget_of_epsilon_alone_does_not_pay() -> None:
    model = PrivateID3Classifier(wide(4), 1, as_published=True, budget=Budget(1))
    with pytest.raises(BudgetError, match="requested ε = 2"):
        model.fit(*tosses(100, 4))
    assert model.budget.spent == 0
    budget = Budget(5)
    spent = PrivateID3Classifier(wide(4), 1, as_published=True, budget=budget).fit(*tosses(100, 4)).release_.certificate.spent
    assert 0 < budget.spent == spent <= 2


def test_a_search_reserves_what_its_trials_cost() -> None:
    budget = Budget(100)
    model = PrivateID3Classifier(wide(3), 10, as_published=True, budget=budget)
    release = model.tune(*tosses(200, 3), grid={"max_depth": [1, 2]}).release_
    assert "not proven" in release.certificate.reason
    assert release.certificate.spent == budget.spent > 0


def test_by_default_nothing_of_it_is_said_or_charged() -> None:
    release = PrivateID3Classifier(wide(3), 2, 1).fit(*tosses(50, 3)).release_
    assert release.parameters == {"max_depth": 1, "bins": 5}
    assert (release.certificate.epsilon, release.certificate.spent) == ("2", 2)
    assert ID3Classifier(1, schema=wide(3)).fit(*tosses(50, 3)).release_.parameters == {"max_depth": 1, "bins": 5}


@pytest.mark.parametrize("epsilon", [1, 10, 100])
def test_it_decides_by_what_was_answered(epsilon: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[type, dict[int, Any]] = {Sizes: {}, ClassCounts: {}, Tables: {}}
    real = PrivateTable.ask

    def spy(self: PrivateTable, query: Any, price: Any) -> Any:
        answer = real(self, query, price)
        answers[type(query)] |= dict(zip(query.nodes.tolist(), answer, strict=True))
        return answer

    monkeypatch.setattr(PrivateTable, "ask", spy)
    ended: set[str] = set()
    for seed in range(5):
        for each in answers.values():
            each.clear()
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, (500, 4))
        model = PrivateID3Classifier(wide(4, 3, 3), epsilon, as_published=True)
        model._coins = SeededCoins(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HedgerowWarning)  # coins that can be guessed
            release = model.fit(X, X[:, 0] * (X[:, 1] > 0)).release_
        (tree,), (counts,) = release.forest.trees, release.forest.counts
        for node in range(tree.n_nodes):
            size, classes = int(answers[Sizes][node]), answers[ClassCounts][node]
            assert counts[node].tolist() == ([0, 0, 0] if size <= 0 else classes.tolist())
            why = "failure" if size <= 0 else "pure" if (classes > 0).sum() == 1 else "asked all" if tree.depth[node] == 4 else ""
            ended.add(why)
            assert (tree.attribute[node] < 0) == bool(why)
            if not why:
                left = [a for a in range(4) if a not in [asked for asked, _ in tree.path(node)]]
                entropies = {a: by_the_textbook(answers[Tables][node][3 * a : 3 * a + 3], size) for a in left}
                assert entropies[int(tree.attribute[node])] <= min(entropies.values()) + 1e-9
        nodes = route(tree, np.asarray(X, dtype=np.uint8))
        failed = ~counts[nodes].any(axis=1)
        assert failed[[answers[Sizes][int(node)] <= 0 for node in nodes]].all()
        assert release.failures(X).tolist() == failed.tolist()
    assert ({"failure", "pure"} if epsilon == 1 else {"pure"}) <= ended


def by_the_textbook(cells: np.ndarray, size: int) -> float:
    """Σ |S_d|/|S| · Entropy(S_d), negative counts as 0."""
    cells, found = np.maximum(cells, 0), 0.0
    for row in cells:
        found += sum(-n / size * math.log2(n / row.sum()) for n in row.tolist() if n > 0)
    return found


def test_the_entropy_of_an_attribute_is_weighed_by_the_size_that_was_asked_for() -> None:
    codebook = Codebook(wide(2))
    tables = np.array([[[4, 4], [2, -9], [8, 0], [0, 8]]])  # a0: 8 rows of entropy 1, 2 of entropy 0; a1 tells all
    assert attribute_entropy(tables, np.array([16]), codebook).tolist() == [[0.5, 0.0]]


def test_an_empty_table_fails_everywhere() -> None:
    model = PrivateID3Classifier(wide(2), 4000, as_published=True)
    X, y = np.empty((0, 2), dtype=int), np.empty(0, dtype=int)
    release = model.fit({"a0": X[:, 0], "a1": X[:, 1]}, y).release_
    failed = release.failures({"a0": [0, 1], "a1": [0, 1]})
    assert failed.all() == (release.forest.trees[0].n_nodes == 1)
    again = Release.from_json(release.to_json())
    assert again.failures({"a0": [0, 1], "a1": [0, 1]}).tolist() == failed.tolist()


# ---------------------------------------------------------------- plain ID3


def test_plain_id3_fails_where_no_training_row_has_the_value() -> None:
    X = np.array([[0, 0]] * 5 + [[1, 0]] * 6 + [[0, 1]] * 2)
    y = np.array([0] * 5 + [1] * 6 + [0] * 2)
    schema = Schema([Categorical("a", [0, 1, 2]), Categorical("b", [0, 1])], Target("y", [0, 1]))
    rows = np.array([[0, 0], [1, 1], [2, 0]])
    ours = ID3Classifier(schema=schema).fit(X, y).release_
    assert ours.failures(rows).tolist() == [False, False, False]
    published = ID3Classifier(schema=schema, as_published=True).fit(X, y).release_
    assert published.failures(rows).tolist() == [False, False, True]
    assert published.predict(rows)[:2].tolist() == [0, 1]
    assert published.parameters["as_published"] is True
    assert published.forest.trees[0].n_nodes == ours.forest.trees[0].n_nodes + 1


@pytest.mark.parametrize("model", [PrivateID3Classifier(wide(2), 1, as_published="no"), ID3Classifier(schema=wide(2), as_published=1)])
def test_the_option_is_true_or_false(model: Any) -> None:
    with pytest.raises(PlanError, match="as_published: got"):
        model.fit(*tosses(20, 2))
