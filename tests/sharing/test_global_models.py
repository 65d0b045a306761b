"""Global models: what anybody may learn from public rows. Oracles by brute force; scikit-learn's checks; every kind of table."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.utils.estimator_checks import parametrize_with_checks
from strategies import schemas, small_schema, small_table, tables

from hedgerow import Categorical, ConjunctiveRuleClassifier, DecisionTableClassifier, Numeric, Schema, SchemaEncoder, Target, global_model
from hedgerow.errors import PlanError, SchemaError, TableError
from hedgerow.estimators import all_estimators
from hedgerow.sharing.global_model import GLOBAL_MODELS
from hedgerow.sharing.global_models.antecedents import Antecedent
from hedgerow.sharing.global_models.dealing import folds, held_out
from hedgerow.sharing.global_models.subset_search import CrossValidation, LeaveOneOut, best_first, grouped

ENCODINGS = [(categorical, numeric) for categorical in ("onehot", "codes") for numeric in ("value", "cells")]


# ------------------------------------------------------------ scikit-learn's own checks


class EncoderOfAnything(SchemaEncoder):
    """The checks fit tables of any width: here the schema is made to fit them, a number for each column."""

    def _declared_schema(self, X: Any) -> Schema:
        names = getattr(X, "columns", None)
        width = X.shape[1] if hasattr(X, "shape") else np.asarray(X).shape[1]
        names = [f"x{j}" for j in range(width)] if names is None else list(names)
        return Schema([Numeric(str(name), -1e9, 1e9) for name in names], Target("the target", ["a", "b"]))


FIT_READS_NOTHING = "fit reads no row: everything is taken from the schema, so there is nothing in X to refuse before transform"
EXCUSED: dict[str, dict[str, str]] = {
    "EncoderOfAnything": {
        "check_complex_data": FIT_READS_NOTHING,
        "check_estimators_empty_data_messages": FIT_READS_NOTHING,
        "check_estimator_sparse_tag": FIT_READS_NOTHING,
        "check_fit1d": FIT_READS_NOTHING,
    }
}


@parametrize_with_checks(
    [EncoderOfAnything(), DecisionTableClassifier(), DecisionTableClassifier(cv=3), ConjunctiveRuleClassifier()],
    expected_failed_checks=lambda estimator: EXCUSED.get(type(estimator).__name__, {}),
)
def test_sklearn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_global_models_are_not_taken_for_private_estimators() -> None:
    assert not {"SchemaEncoder", "DecisionTableClassifier", "ConjunctiveRuleClassifier"} & set(all_estimators())


# ------------------------------------------------------------ the encoder


def mixed_schema() -> Schema:
    return Schema(
        [
            Categorical("colour", ["red", "green"], other="other", missing="unknown"),
            Categorical("flag", [0, 1]),
            Numeric("age", 0, 100),
            Numeric("pay", 0, 10, missing="not said"),
        ],
        Target("class", ["no", "yes"]),
    )


def mixed_rows() -> dict[str, list[Any]]:
    return {
        "colour": ["red", "pink", None, "green"],
        "flag": [1, 0, 7, None],  # 7 is not declared, and has no branch
        "age": [-5, 33.0, None, "400"],
        "pay": [2.5, None, "?", 11],
    }


def test_one_column_for_each_value_and_branch() -> None:
    encoder = SchemaEncoder(mixed_schema()).fit()
    assert list(encoder.get_feature_names_out()) == [
        "colour=red", "colour=green", "colour=other", "colour=unknown", "flag=0", "flag=1", "age", "pay", "pay=not said",
    ]  # fmt: skip
    assert encoder.transform(mixed_rows()).tolist() == [
        [1, 0, 0, 0, 0, 1, 0, 2.5, 0],
        [0, 0, 1, 0, 1, 0, 33, 5, 1],
        [0, 0, 0, 1, 0, 0, 50, 5, 1],  # no branch for the flag: all zeros; a missing number: the middle of its bounds
        [0, 1, 0, 0, 0, 0, 100, 10, 0],
    ]
    assert encoder.attribute_of_column().tolist() == [0, 0, 0, 0, 1, 1, 2, 3, 3]


def test_codes_and_cells() -> None:
    encoder = SchemaEncoder(mixed_schema(), bins=4, categorical="codes", numeric="cells").fit()
    coded = encoder.transform(mixed_rows())
    assert list(encoder.get_feature_names_out()) == ["colour", "flag", "age", "pay"]
    assert coded.dtype == np.int64
    assert coded.tolist() == [[0, 1, 0, 1], [2, 0, 1, 4], [3, 2, 4, 4], [1, 2, 3, 3]]


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_table_of_any_schema_becomes_finite_numbers_row_by_row(data: Any) -> None:
    schema = data.draw(schemas())
    columns, _ = data.draw(tables(schema))
    rows = len(next(iter(columns.values())))
    for categorical, numeric in ENCODINGS:
        encoder = SchemaEncoder(schema, 3, categorical, numeric).fit()
        matrix = encoder.transform(columns)
        assert matrix.shape == (rows, len(encoder.get_feature_names_out()))
        assert np.isfinite(matrix).all()
        for i in range(rows):  # a row is encoded by itself
            alone = encoder.transform({name: column[i : i + 1] for name, column in columns.items()})
            assert np.array_equal(alone[0], matrix[i])
        codes = encoder.codebook_.encode(columns)
        for j, attribute in enumerate(schema.attributes):
            own = matrix[:, encoder.attribute_of_column() == j]
            if isinstance(attribute, Categorical) and categorical == "onehot":
                assert np.array_equal(own.sum(axis=1), codes[:, j] < encoder.codebook_.sizes[j])
            elif isinstance(attribute, Numeric) and numeric == "value":
                assert ((attribute.low <= own[:, 0]) & (own[:, 0] <= attribute.high)).all()
            else:
                assert np.array_equal(own[:, 0], codes[:, j])


@pytest.mark.parametrize(("categorical", "numeric"), ENCODINGS)
def test_every_kind_of_table_gives_the_same_matrix(categorical: str, numeric: str) -> None:
    columns, _ = small_table(40)
    encoder = SchemaEncoder(small_schema(), categorical=categorical, numeric=numeric)
    expected = encoder.fit_transform(columns)
    frame = pandas.DataFrame(columns)
    reordered = frame[list(reversed(frame.columns))].assign(more=1)
    array = np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    for table in (frame, reordered, polars.DataFrame(columns), array, array.tolist()):
        assert np.array_equal(encoder.transform(table), expected), type(table)
    as_frame = clone(encoder).set_output(transform="pandas").fit_transform(frame.set_index(np.arange(5, 45)))
    assert list(as_frame.columns) == list(encoder.get_feature_names_out())
    assert list(as_frame.index) == list(range(5, 45))
    assert np.array_equal(pickle.loads(pickle.dumps(encoder)).transform(frame), expected)  # noqa: S301


def test_the_encoder_says_what_is_wrong(tmp_path: Any) -> None:
    schema = mixed_schema()
    schema.save(tmp_path / "schema.toml")
    assert SchemaEncoder(str(tmp_path / "schema.toml")).fit().transform(mixed_rows()).shape == (4, 9)
    encoder = SchemaEncoder(schema)
    with pytest.raises(NotFittedError):
        encoder.transform(mixed_rows())
    with pytest.raises(TableError, match="flag"):
        encoder.fit().transform({name: column for name, column in mixed_rows().items() if name != "flag"})
    with pytest.raises(TableError, match="X has 3 features"):
        encoder.fit().transform(np.zeros((2, 3)))
    with pytest.raises(SchemaError, match="input_features"):
        encoder.fit().get_feature_names_out(["a"])
    for wrong in ({"schema": None}, {"categorical": "one-hot"}, {"numeric": "number"}, {"bins": 0}):
        with pytest.raises(SchemaError, match=next(iter(wrong))):
            SchemaEncoder(**{"schema": schema, **wrong}).fit()


# ------------------------------------------------------------ the decision table


def majority(classes: list[Any]) -> Any:
    """The most frequent class; of several the first."""
    counts = Counter(classes)
    return max(sorted(counts), key=lambda c: counts[c])


def table_answer(rows: list[tuple[Any, ...]], classes: list[Any], row: tuple[Any, ...]) -> Any:
    """What a decision table of these rows says about another one."""
    same = [c for other, c in zip(rows, classes, strict=True) if other == row]
    return majority(same or classes)


def naively_right(X: np.ndarray, y: np.ndarray, subset: tuple[int, ...], fold: np.ndarray) -> int:
    """Rows predicted right by the table of the rows in other folds: learned again for every row."""
    rows, right = [tuple(row) for row in X[:, list(subset)].tolist()], 0
    for i, row in enumerate(rows):
        others = [k for k in range(len(rows)) if fold[k] != fold[i]]
        right += table_answer([rows[k] for k in others], [y[k] for k in others], row) == y[i]
    return right


def all_subsets(attributes: int) -> list[tuple[int, ...]]:
    return [subset for size in range(attributes + 1) for subset in combinations(range(attributes), size)]


@given(st.integers(2, 14), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_accuracy_by_counts_is_that_of_learning_again_for_every_row(rows: int, n_classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (rows, 3)), rng.integers(0, n_classes, rows)
    fold = np.arange(rows) % 3
    fold = fold if rows > 2 else np.arange(rows)
    for subset in all_subsets(3):
        groups = grouped(X, [3, 3, 3], subset)
        assert LeaveOneOut(y, n_classes)(groups.group, groups.count) == naively_right(X, y, subset, np.arange(rows))
        assert CrossValidation(y, n_classes, fold)(groups.group, groups.count) == naively_right(X, y, subset, fold)


@given(st.integers(3, 25), st.integers(0, 2**32 - 1), st.sampled_from([None, 3]))
@settings(max_examples=40, deadline=None)
def test_a_patient_search_finds_the_best_and_smallest_subset(rows: int, seed: int, cv: int | None) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (rows, 4)), rng.integers(0, 3, rows)
    table = DecisionTableClassifier(cv=cv, patience=1000, random_state=seed % 1000).fit(X, y)
    _, codes = np.unique(y, return_inverse=True)
    fold = np.arange(rows) if cv is None else folds(codes, cv, seed % 1000)
    scores = {subset: naively_right(X, y, subset, fold) for subset in all_subsets(4)}
    best = max(scores.values())
    assert round(table.search_accuracy_ * rows) == scores[table.attributes_] == best
    assert len(table.attributes_) == min(len(subset) for subset, score in scores.items() if score == best)


def exclusive_or(noise: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two attributes at `first` that only together tell the class, among `noise` attributes that tell nothing at all."""
    grid = np.stack(np.meshgrid(*[[0, 1]] * (noise + 2), indexing="ij"), axis=-1).reshape(-1, noise + 2)
    X = np.repeat(grid, 3, axis=0)
    return X, np.array(["even", "odd"])[X[:, first] ^ X[:, first + 1]]


@pytest.mark.parametrize("noise", [0, 1, 2, 3])
def test_best_first_sees_past_the_two_attributes_of_an_exclusive_or(noise: int) -> None:
    """Neither helps alone. With 5 attributes at most, 5 expansions without success (the empty subset and 4 of the attributes)
    are enough to expand one of the two, wherever they stand; a greedy search (patience 1) finds nothing."""
    for first in range(noise + 1):
        X, y = exclusive_or(noise, first)
        table = DecisionTableClassifier().fit(X, y)
        assert table.attributes_ == (first, first + 1)
        assert table.search_accuracy_ == 1
        assert (table.predict(X) == y).all()
        assert DecisionTableClassifier(patience=1).fit(X, y).attributes_ == ()


def test_an_exclusive_or_behind_many_useless_attributes_needs_more_patience() -> None:
    X, y = exclusive_or(noise=5, first=5)
    assert DecisionTableClassifier().fit(X, y).attributes_ == ()
    assert DecisionTableClassifier(patience=8).fit(X, y).attributes_ == (5, 6)


def test_the_search_ends_after_so_many_expansions_without_success() -> None:
    expanded: list[tuple[int, ...]] = []

    def right(subset: tuple[int, ...], further: Any) -> list[int]:
        expanded.append(subset)
        return [10 if set(subset) | {j} == {2} else 0 for j in further]

    assert best_first(6, 5, right, patience=3) == ((2,), 10)
    assert expanded == [(), (2,), (0,), (1,)]  # one success, then three expansions without


def test_a_combination_that_was_never_seen_is_answered_by_the_whole_table() -> None:
    X = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 0]])
    y = np.array(["a", "a", "b", "b", "c", "c", "c"])
    table = DecisionTableClassifier().fit(X, y)
    assert table.attributes_ == (0, 1)
    assert table.combinations_.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert table.counts_.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 3]]
    assert table.predict([[1, 1], [0, 1], [9, 0], [0, -1], [0, 0.5]]).tolist() == ["c", "b", "c", "c", "c"]
    assert np.allclose(table.predict_proba([[1, 1]]), [[2 / 7, 2 / 7, 3 / 7]])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_table_predicts_what_its_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-1, 3, (20, 3)), rng.integers(0, 3, 20)
    new = rng.integers(-2, 4, (30, 3))
    table = DecisionTableClassifier().fit(X, y)
    chosen = list(table.attributes_)
    rows = [tuple(row) for row in X[:, chosen].tolist()]
    expected = [table_answer(rows, y.tolist(), tuple(row)) for row in new[:, chosen].tolist()]
    assert table.predict(new).tolist() == expected


def test_many_wide_attributes_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 10**6, (50, 12)), 2, axis=0)
    groups = grouped(*_coded(X), tuple(range(12)))
    assert groups.count == 50


def _coded(X: np.ndarray) -> tuple[np.ndarray, list[int]]:
    columns = [np.unique(column, return_inverse=True) for column in X.T]
    return np.stack([codes for _, codes in columns], axis=1), [len(values) for values, _ in columns]


# ------------------------------------------------------------ the conjunctive rule


def entropy_of_parts(covered: np.ndarray, y: np.ndarray) -> float:
    """Rows × entropy, of the covered rows and the others together."""
    total = 0.0
    for part in (y[covered], y[~covered]):
        for count in Counter(part.tolist()).values():
            total -= count * np.log2(count / len(part))
    return total


def all_conditions(X: np.ndarray, covered: np.ndarray, categorical: list[int]) -> list[Antecedent]:
    found = []
    for j in range(X.shape[1]):
        values = sorted(set(X[covered, j].tolist()))
        if j in categorical:
            found += [Antecedent(j, "==", value) for value in values]
        else:
            cuts = [(a + b) / 2 for a, b in pairwise(values)]
            found += [Antecedent(j, test, cut) for cut in cuts for test in ("<=", ">")]
    return found


@pytest.mark.slow
@given(st.integers(4, 24), st.integers(0, 2**32 - 1), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_each_condition_is_the_best_of_all(rows: int, seed: int, least: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, 3, rows), rng.integers(0, 5, rows)], axis=1).astype(float)
    y = rng.integers(0, 3, rows)
    rule = ConjunctiveRuleClassifier(categorical_features=[0], holdout=None, min_covered=least).fit(X, y).rule_
    covered = np.ones(rows, dtype=bool)
    for step in (*rule, None):
        after = {
            condition: entropy_of_parts(covered & condition.holds(X), y)
            for condition in all_conditions(X, covered, [0])
            if least <= (covered & condition.holds(X)).sum() <= covered.sum() - least
        }
        if step is None:
            assert all(bits >= entropy_of_parts(covered, y) - 1e-4 for bits in after.values())
        else:
            assert after[step] == pytest.approx(min(after.values()), abs=1e-4)
            assert after[step] < entropy_of_parts(covered, y)
            covered &= step.holds(X)


def planted(rows: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The class is "yes" where the first column is 2 and the third is above 0.5; the second column is noise."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, 4, rows), rng.integers(0, 4, rows), rng.uniform(0, 1, rows)], axis=1)
    return X, np.where((X[:, 0] == 2) & (X[:, 2] > 0.5), "yes", "no")


@pytest.mark.parametrize("holdout", [None, 1 / 3])
def test_a_planted_rule_is_found(holdout: float | None) -> None:
    X, y = planted()
    rule = ConjunctiveRuleClassifier([0, 1], holdout, random_state=0).fit(X, y)
    assert [(step.attribute, step.test) for step in rule.rule_] == [(0, "=="), (2, ">")]
    assert rule.rule_[0].value == 2
    assert rule.rule_[1].value == pytest.approx(0.5, abs=0.05)
    assert (rule.predict(X) == y).mean() > 0.98
    assert rule.counts_.sum() == len(X)  # held-out rows are counted in the end, too
    assert rule.words(["colour", "shape", "weight"], [["red", "green", "blue"], [], []]).startswith("if colour = blue and weight > 0.")
    assert rule.words().startswith("if column 0 = 2 and column 2 > 0.")


def test_pruning_takes_conditions_away_that_do_not_help() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 5, (90, 6)), rng.integers(0, 2, 90)
    lengths = [
        [len(ConjunctiveRuleClassifier("all", holdout, random_state=seed).fit(X, y).rule_) for seed in range(10)]
        for holdout in (None, 1 / 3)
    ]
    assert sum(lengths[1]) < sum(lengths[0])


def test_a_rule_without_conditions_answers_with_the_majority() -> None:
    X, y = planted()
    rule = ConjunctiveRuleClassifier(max_antecedents=0).fit(X, y)
    assert rule.rule_ == ()
    assert rule.words() == "always no"
    assert np.allclose(rule.predict_proba(X), [(y == "no").mean(), (y == "yes").mean()])
    assert len(ConjunctiveRuleClassifier([0, 1], holdout=None, max_antecedents=1).fit(X, y).rule_) == 1


def test_covered_and_other_rows_get_their_own_shares() -> None:
    X = np.array([[0.0], [0], [0], [1], [1], [1]])
    y = np.array([0, 0, 1, 1, 1, 1])
    rule = ConjunctiveRuleClassifier(holdout=None).fit(X, y)
    assert rule.rule_ == (Antecedent(0, ">", 0.5),)  # the purer side is covered
    assert np.allclose(rule.predict_proba([[1.0], [0.0]]), [[0, 1], [2 / 3, 1 / 3]])


def test_rows_are_dealt_out_class_by_class() -> None:
    classes = np.array([0] * 30 + [1] * 60 + [2] * 9)
    held = held_out(classes, 1 / 3, 0)
    assert [int(held[classes == c].sum()) for c in range(3)] == [10, 20, 3]
    fold = folds(classes, 3, 0)
    assert all(np.bincount(fold[classes == c]).tolist() == [(classes == c).sum() // 3] * 3 for c in range(3))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: DecisionTableClassifier(cv=1), "cv"),
        (lambda: DecisionTableClassifier(patience=0), "patience"),
        (lambda: ConjunctiveRuleClassifier(holdout=1.0), "holdout"),
        (lambda: ConjunctiveRuleClassifier(max_antecedents=-1), "max_antecedents"),
        (lambda: ConjunctiveRuleClassifier(min_covered=0), "min_covered"),
        (lambda: ConjunctiveRuleClassifier("some"), "categorical_features"),
        (lambda: ConjunctiveRuleClassifier([7]), "categorical_features"),
        (lambda: ConjunctiveRuleClassifier([True]), "categorical_features"),
    ],
)
def test_settings_are_checked(make: Any, word: str) -> None:
    X, y = planted(30)
    with pytest.raises(PlanError, match=word):
        make().fit(X, y)


# ------------------------------------------------------------ the models by name


def nursery_like(rows: int = 400, seed: int = 0) -> tuple[Schema, dict[str, np.ndarray], np.ndarray]:
    """Text attributes of which two decide the class, as in nursery."""
    rng = np.random.default_rng(seed)
    domains = {
        "parents": ["usual", "pretentious", "great_pret"],
        "finance": ["convenient", "inconv"],
        "social": ["nonprob", "slightly_prob", "problematic"],
        "health": ["recommended", "priority", "not_recom"],
    }
    columns = {name: np.array(domain)[rng.integers(0, len(domain), rows)] for name, domain in domains.items()}
    spec = np.where(columns["parents"] == "great_pret", "spec_prior", "priority")
    target = np.where(columns["health"] == "not_recom", "not_recom", spec)
    schema = Schema(
        [Categorical(name, domain) for name, domain in domains.items()], Target("class", ["not_recom", "priority", "spec_prior"])
    )
    return schema, columns, target


@pytest.mark.parametrize("name", GLOBAL_MODELS)
def test_every_model_learns_from_every_kind_of_table(name: str) -> None:
    schema, columns, y = nursery_like()
    model = global_model(name, schema, random_state=0)
    expected = model.fit(columns, y).predict(columns)
    assert (expected == y).mean() > (0.6 if name == "conjunctive rule" else 0.95)
    assert set(expected) <= set(schema.target.classes)
    frame = pandas.DataFrame(columns)
    array = np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    for table in (frame, polars.DataFrame(columns), array, array.tolist()):
        assert np.array_equal(clone(model).fit(table, y).predict(table), expected), type(table)
    assert cross_val_score(model, frame, y, cv=3).mean() > 0.6
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(columns), expected)  # noqa: S301
    assert global_model(name.replace(" ", "-").title(), schema)["model"].__class__ is model["model"].__class__


@pytest.mark.parametrize("name", GLOBAL_MODELS)
def test_every_model_bears_missing_and_undeclared_values(name: str) -> None:
    columns, y = small_table(300)  # has undeclared colours, missing shapes, ages out of bounds
    model = global_model(name, small_schema(), random_state=1).fit(columns, y)
    assert (model.predict(columns) == y).mean() > 0.7
    strange = {"colour": [None, "mauve"], "flag": [9, None], "age": [None, "old"], "shape": ["square", None]}
    shares = model.predict_proba(strange)
    assert shares.shape == (2, 2)
    assert np.allclose(shares.sum(axis=1), 1)
    learned_from_nothing = global_model(name, small_schema(), random_state=1).fit(strange, ["no", "yes"])
    assert set(learned_from_nothing.predict(strange)) <= {"no", "yes"}


@pytest.mark.slow
@pytest.mark.parametrize("name", GLOBAL_MODELS)
def test_a_random_state_makes_a_model_repeatable(name: str) -> None:
    columns, y = small_table(200)
    models = [global_model(name, small_schema(), random_state=7).fit(columns, y) for _ in range(2)]
    assert np.array_equal(models[0].predict_proba(columns), models[1].predict_proba(columns))


def test_folds_and_held_out_rows_follow_the_random_state() -> None:
    columns, y = small_table(90)
    accuracy = {
        seed: [
            global_model("decision table", small_schema(), cv=5, random_state=seed).fit(columns, y)["model"].search_accuracy_
            for _ in range(2)
        ]
        for seed in range(6)
    }
    assert all(first == second for first, second in accuracy.values())
    assert len({first for first, _ in accuracy.values()}) > 1


def test_naive_bayes_by_hand() -> None:
    schema = Schema([Categorical("a", ["x", "y"]), Categorical("b", ["u", "v", "w"])], Target("class", ["n", "p"]))
    columns = {"a": ["x", "x", "y", "y", "y"], "b": ["u", "v", "v", "u", "?"]}
    model = global_model("naive bayes", schema).fit(columns, ["n", "n", "p", "p", "p"])
    p = model.predict_proba({"a": ["x", "?"], "b": ["w", "?"]})
    n_weight, p_weight = 2 / 5 * (3 / 4) * (1 / 5), 3 / 5 * (1 / 5) * (1 / 5)  # one row of class p has no branch for b
    assert p[0, 0] == pytest.approx(n_weight / (n_weight + p_weight))
    assert p[1].tolist() == pytest.approx([2 / 5, 3 / 5])  # what is unknown says nothing
    assert isinstance(model["model"], CategoricalNB)


def test_the_rule_of_a_pipeline_in_words() -> None:
    schema, columns, y = nursery_like()
    model = global_model("conjunctive rule", schema, random_state=0).fit(columns, y)
    encoder = model["encoder"]
    words = model["model"].words(encoder.get_feature_names_out(), [encoder.codebook_.labels[j] for j in encoder.attribute_of_column()])
    assert words == "if health = not_recom then not_recom, else priority"


def test_any_estimator_may_be_given() -> None:
    columns, y = small_table(300)
    model = global_model(LogisticRegression(C=3.0), small_schema(), max_iter=5000, random_state=0).fit(columns, y)
    assert model["model"].max_iter == 5000
    assert model["model"].C == 3.0
    assert (model.predict(columns) == y).mean() > 0.8
    assert list(model[:-1].get_feature_names_out())[:3] == ["colour=red", "colour=green", "colour=blue"]
    for own, encoding in ((DecisionTableClassifier(cv=4), "codes"), (CategoricalNB(), "codes"), (ConjunctiveRuleClassifier(), "codes")):
        made = global_model(own, small_schema()).fit(columns, y)
        assert made["encoder"].categorical == encoding
        assert made["model"] is not own
        assert made.predict(columns).shape == y.shape
    assert global_model("conjunctive rule", small_schema())["model"].categorical_features == [True, True, False, True]


def test_what_cannot_be_a_global_model_is_refused() -> None:
    with pytest.raises(PlanError, match="decision tree, cart, naive bayes"):
        global_model("neural network", small_schema())
    with pytest.raises(PlanError, match="instance"):
        global_model(LogisticRegression, small_schema())
    with pytest.raises(PlanError, match="min_leaf"):
        global_model("decision tree", small_schema(), leaves=3)
    with pytest.raises(SchemaError, match="schema"):
        global_model("decision tree", None)
