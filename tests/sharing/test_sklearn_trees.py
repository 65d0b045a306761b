"""scikit-learn's trees as ours: every row takes the same way, to the last bit of a threshold, and counts are of persons."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from hedgerow import Categorical, Numeric, Schema, SchemaEncoder, Target
from hedgerow.errors import PlanError
from hedgerow.sharing import sklearn_trees
from hedgerow.sharing.sklearn_trees import first_above, from_sklearn
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.routing import route
from hedgerow.trees.tree import Tree

COLUMNS = ["colour=red", "colour=green", "colour=blue", "size", "age", "income"]


def schema(missing: str | None = None) -> Schema:
    return Schema(
        [
            Categorical("colour", ["red", "green", "blue"]),
            Categorical("size", ["s", "m", "l", "xl"]),
            Numeric("age", 0, 100, missing=missing),
            Numeric("income", -1e6, 1e6, missing=missing),
        ],
        Target("class", ["zebra", "cow", "ant"]),  # not in scikit-learn's order
    )


def table(rows: int, seed: int, classes: int = 3) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = {
        "colour": rng.choice(["red", "green", "blue"], rows),
        "size": rng.choice(["s", "m", "l", "xl"], rows),
        "age": np.round(rng.uniform(0, 100, rows), int(rng.integers(0, 9))),
        "income": rng.normal(0, 1e5, rows),
    }
    return columns, rng.choice(["ant", "cow", "zebra"][:classes], rows)


def matrix(columns: dict[str, np.ndarray]) -> np.ndarray:
    """The columns COLUMNS, made without the package."""
    one_hot = [columns["colour"] == value for value in ("red", "green", "blue")]
    size = np.array([["s", "m", "l", "xl"].index(value) for value in columns["size"]])
    return np.column_stack([*one_hot, size, columns["age"], columns["income"]]).astype(np.float64)


def same_leaves(ours: Tree, codes: np.ndarray, theirs: np.ndarray) -> bool:
    """Two ways to send rows to leaves are one: the pairs are a matching."""
    pairs = set(zip(route(ours, codes).tolist(), theirs.tolist(), strict=True))
    return len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)


def majority(forest: CountedForest, columns: Any, tree: int = 0) -> np.ndarray:
    node = route(forest.trees[tree], forest.codebook.encode(columns))
    return np.array(forest.codebook.schema.target.classes)[forest.node_counts[tree][node].argmax(axis=1)]


def untied(forest: CountedForest, columns: Any, tree: int = 0) -> np.ndarray:
    counts = np.sort(forest.node_counts[tree][route(forest.trees[tree], forest.codebook.encode(columns))], axis=1)
    return np.asarray(counts[:, -1] > counts[:, -2])


# ---------------------------------------------------------------- the same way, the same counts


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 200), st.sampled_from([1, 3, 10]), st.sampled_from([None, 2, 4]))
def test_a_tree_predicts_and_counts_as_scikit_learn(seed: int, rows: int, min_leaf: int, depth: int | None) -> None:
    columns, y = table(rows, seed)
    kind = ExtraTreeClassifier if seed % 2 else DecisionTreeClassifier
    model = kind(min_samples_leaf=min_leaf, max_depth=depth, random_state=seed).fit(matrix(columns), y)
    forest = from_sklearn(model, COLUMNS, schema())
    tree = forest.trees[0]
    tree.check()
    assert tree.n_nodes == model.tree_.node_count
    fresh, _ = table(300, seed + 1)
    assert same_leaves(tree, forest.codebook.encode(fresh), model.apply(matrix(fresh)))
    sure = untied(forest, fresh)
    assert (majority(forest, fresh)[sure] == model.predict(matrix(fresh))[sure]).all()
    leaf_of = dict(zip(route(tree, forest.codebook.encode(columns)).tolist(), model.apply(matrix(columns)).tolist(), strict=True))
    for leaf, counts in zip(tree.leaves.tolist(), forest.counts[0], strict=True):
        assert counts.sum() == model.tree_.n_node_samples[leaf_of[leaf]]
        here = model.apply(matrix(columns)) == leaf_of[leaf]
        assert counts.tolist() == [int((y[here] == name).sum()) for name in ("zebra", "cow", "ant")]
    recounted = from_sklearn(model, COLUMNS, schema(), columns, y)
    assert recounted.counts[0].tolist() == forest.counts[0].tolist()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([RandomForestClassifier, ExtraTreesClassifier]))
def test_forests_are_counted_anew(seed: int, kind: Any) -> None:
    columns, y = table(80, seed)
    model = kind(n_estimators=4, max_depth=5, bootstrap=True, random_state=seed % 2**31).fit(matrix(columns), y)
    with pytest.raises(PlanError, match="not those of persons"):
        from_sklearn(model, COLUMNS, schema())
    forest = from_sklearn(model, COLUMNS, schema(), columns, y)
    theirs, codes = model.apply(matrix(columns)), forest.codebook.encode(columns)
    for i, tree in enumerate(forest.trees):
        assert same_leaves(tree, codes, theirs[:, i])
        assert forest.counts[i].sum() == 80
        leaf = route(tree, codes)
        for place, node in enumerate(tree.leaves):
            assert forest.counts[i][place].tolist() == [int((y[leaf == node] == name).sum()) for name in ("zebra", "cow", "ant")]


def test_a_forest_without_bootstrap_has_its_own_counts() -> None:
    columns, y = table(120, 4)
    model = ExtraTreesClassifier(n_estimators=5, random_state=1).fit(matrix(columns), y)
    own, counted = from_sklearn(model, COLUMNS, schema()), from_sklearn(model, COLUMNS, schema(), columns, y)
    assert all((a == b).all() for a, b in zip(own.counts, counted.counts, strict=True))
    assert all(not forest.noisy for forest in (own, counted))


def test_weights_are_not_persons() -> None:
    columns, y = table(90, 7)
    X = matrix(columns)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 90)
    for model in (
        DecisionTreeClassifier(max_depth=3).fit(X, y, sample_weight=weights),
        DecisionTreeClassifier(max_depth=3, class_weight="balanced").fit(X, y),
        RandomForestClassifier(3, bootstrap=False, class_weight={"ant": 2}).fit(X, y),
    ):
        with pytest.raises(PlanError, match="Give the rows to count"):
            from_sklearn(model, COLUMNS, schema())
        assert from_sklearn(model, COLUMNS, schema(), columns, y).counts[0].sum() == 90
    # weights that happen to add up to the number of rows: 2 and 2 persons would pass for 1 and 3
    hidden = DecisionTreeClassifier(class_weight={"ant": 0.5, "cow": 1.5}).fit(np.ones((4, 6)), ["ant", "ant", "cow", "cow"])
    with pytest.raises(PlanError, match="Give the rows to count"):
        from_sklearn(hidden, COLUMNS, schema())
    evenly = DecisionTreeClassifier(max_depth=3).fit(X, y, sample_weight=np.ones(90))
    assert from_sklearn(evenly, COLUMNS, schema()).counts[0].sum() == 90
    zero = DecisionTreeClassifier(max_depth=3).fit(X, y, sample_weight=np.arange(90) % 2)  # left out of the counts of the model
    assert from_sklearn(zero, COLUMNS, schema()).counts[0].sum() == 45
    assert from_sklearn(zero, COLUMNS, schema(), columns, y).counts[0].sum() == 90


# ---------------------------------------------------------------- thresholds, to the last bit


@given(st.one_of(st.floats(-1e38, 1e38), st.floats(-1e-44, 1e-44), st.floats(width=32, min_value=-1e9, max_value=1e9)))
def test_the_edge_is_the_first_number_above(threshold: float) -> None:
    edge = first_above(threshold)
    assert float(np.float32(edge)) > threshold
    assert float(np.float32(math.nextafter(edge, -math.inf))) <= threshold


def test_the_edge_of_no_threshold() -> None:
    assert first_above(math.inf) == math.inf
    assert first_above(-math.inf) == -math.inf


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-3, 0.1]))
def test_numbers_around_every_threshold_go_the_same_way(seed: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    x = 1 + unit * np.round(rng.uniform(0, 1e-6 if seed % 2 else 40, 60), 9)  # also numbers that 32 bits can hardly tell apart
    y = rng.choice(["ant", "cow"], 60)
    plain = Schema([Numeric("x", 0, 100)], Target("class", ["ant", "cow"]))
    kind = ExtraTreeClassifier if seed % 3 else DecisionTreeClassifier
    model = kind(random_state=seed).fit(x[:, None], y)
    forest = from_sklearn(model, ["x"], plain)
    near = []
    for t in model.tree_.threshold[model.tree_.children_left >= 0]:
        low = np.float32(t)
        floats = [np.nextafter(low, np.float32(-9e9)), low, np.nextafter(low, np.float32(9e9))]
        middles = [(float(a) + float(b)) / 2 for a, b in pairwise(floats)]
        for number in [t, *map(float, floats), *middles]:
            near += [math.nextafter(number, -9e9), float(number), math.nextafter(number, 9e9)]
    if near:
        rows = np.array(near)[:, None]
        assert same_leaves(forest.trees[0], forest.codebook.encode(rows), model.apply(rows))
    outside = np.array([[-1e9], [-1e-300], [100.5], [1e30]])
    assert same_leaves(forest.trees[0], forest.codebook.encode(outside), model.apply(outside))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 0.7))
def test_missing_numbers_go_the_way_of_scikit_learn(seed: int, share: float) -> None:
    """scikit-learn learns a side for them; a question that parts only numbers from missing ones has the threshold ∞."""
    columns, y = table(120, seed)
    rng = np.random.default_rng(seed)
    for name in ("age", "income"):
        columns[name] = np.where(rng.random(120) < share, np.nan, columns[name])
    y = np.where(np.isnan(columns["age"]), "cow", y)
    model = DecisionTreeClassifier(max_depth=6, random_state=seed % 2**31).fit(matrix(columns), y)
    forest = from_sklearn(model, COLUMNS, schema("none"))
    assert same_leaves(forest.trees[0], forest.codebook.encode(columns), model.apply(matrix(columns)))
    fresh, _ = table(200, seed + 1)
    fresh["income"] = np.where(rng.random(200) < 0.3, np.nan, fresh["income"])
    assert same_leaves(forest.trees[0], forest.codebook.encode(fresh), model.apply(matrix(fresh)))


# ---------------------------------------------------------------- with our encoder


@pytest.mark.parametrize("categorical", ["onehot", "codes"])
@pytest.mark.parametrize("numeric", ["value", "cells"])
@pytest.mark.parametrize("missing", [None, "none"])
def test_a_pipeline_with_the_encoder(categorical: str, numeric: str, missing: str | None) -> None:
    for seed in range(12):
        columns, y = table(150, seed)
        columns["age"][:20] += 200  # beyond the bounds: counts as the bound
        if missing:
            columns["age"][30:60], columns["income"][50:90] = np.nan, np.nan
            y[30:60] = "cow"
        encoder = SchemaEncoder(schema(missing), categorical=categorical, numeric=numeric)
        model = make_pipeline(encoder, DecisionTreeClassifier(random_state=seed, max_depth=7)).fit(columns, y)
        forest = from_sklearn(model, None, schema(missing))
        theirs = model[-1].apply(model[0].transform(columns))
        assert same_leaves(forest.trees[0], forest.codebook.encode(columns), theirs)
        sure = untied(forest, columns)
        assert (majority(forest, columns)[sure] == model.predict(columns)[sure]).all()
        again = from_sklearn(model[-1], model[0], schema(missing), columns, y)
        assert again.counts[0].tolist() == forest.counts[0].tolist()


def test_rows_without_a_branch_stop_and_are_not_counted_anew() -> None:
    columns, y = table(200, 1)
    columns["colour"] = columns["colour"].astype("<U5")
    columns["colour"][:30] = "pink"
    y[:30], y[30:] = "ant", np.where(columns["colour"][30:] == "red", "cow", "zebra")
    model = make_pipeline(SchemaEncoder(schema()), DecisionTreeClassifier(random_state=0)).fit(columns, y)
    forest = from_sklearn(model, None, schema(), columns, y)
    assert forest.counts[0].sum() == 170
    end = route(forest.trees[0], forest.codebook.encode(columns))
    assert (forest.trees[0].attribute[end[:30]] >= 0).all()
    # red, else green, else blue: nobody is left, so the last question is not asked
    narrow = Schema([Categorical("colour", ["red", "green", "blue"])], Target("class", ["ant", "cow", "zebra"]))
    y = np.select([columns["colour"] == c for c in ("red", "green", "blue")], ["ant", "zebra", "ant"], "cow")
    model = make_pipeline(SchemaEncoder(narrow), DecisionTreeClassifier(random_state=0)).fit({"colour": columns["colour"]}, y)
    forest = from_sklearn(model, None, narrow, {"colour": columns["colour"]}, y)
    assert forest.trees[0].n_nodes < model[-1].tree_.node_count
    forest.trees[0].check()
    assert forest.counts[0].sum(axis=1).min() > 0


def test_names_from_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    columns, y = table(60, 2)
    model = DecisionTreeClassifier(max_depth=3).fit(pandas.DataFrame(matrix(columns), columns=COLUMNS), y)
    a, b = from_sklearn(model, None, schema()), from_sklearn(model, COLUMNS, schema())
    assert a.trees == b.trees
    assert a.counts[0].tolist() == b.counts[0].tolist()


def test_one_class_of_many_and_numbers_as_classes() -> None:
    columns, _ = table(30, 3)
    model = DecisionTreeClassifier().fit(matrix(columns), ["cow"] * 30)
    assert from_sklearn(model, COLUMNS, schema()).counts[0].tolist() == [[0, 30, 0]]
    numbers = Schema(schema().attributes, Target("class", [2, 1, 0]))
    y = np.arange(30) % 3
    forest = from_sklearn(DecisionTreeClassifier(max_depth=1).fit(matrix(columns), y.astype(float)), COLUMNS, numbers)
    assert forest.counts[0].sum(axis=0).tolist() == [10, 10, 10]


def test_names_that_hold_an_equals_sign() -> None:
    odd = Schema([Categorical("a=b", ["c=d", True, 1.5]), Numeric("z=", 0, 1)], Target("class", ["no", "yes"]))
    X = np.array([[1, 0, 0, 0.2], [0, 1, 0, 0.4], [0, 0, 1, 0.6]] * 5)
    y = np.array(["yes", "no", "yes"] * 5)
    model = DecisionTreeClassifier().fit(X, y)
    forest = from_sklearn(model, ["a=b=c=d", "a=b=True", "a=b=1.5", "z="], odd)
    assert (majority(forest, {"a=b": ["c=d", True, 1.5], "z=": [0.2, 0.4, 0.6]}) == y[:3]).all()
    twofold = Schema([Categorical("a", ["b=c"]), Categorical("a=b", ["c"])], Target("class", ["no", "yes"]))
    with pytest.raises(PlanError, match="may mean several things"):
        from_sklearn(DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"]), ["a=b=c"], twofold)


def test_edges_are_the_thresholds_and_those_of_a_taxonomy() -> None:
    attributes = list(schema().attributes)
    attributes[2] = Numeric("age", 0, 100, edges=[0, 1, 30, 60, 100], taxonomy=[[0, 30, 60, 100], [0, 100]])
    grouped = Schema(attributes, schema().target)
    columns, y = table(200, 6)
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(matrix(columns), y)
    plain, forest = from_sklearn(model, COLUMNS, schema()), from_sklearn(model, COLUMNS, grouped)
    age = COLUMNS.index("age")
    thresholds = {first_above(t) for t in model.tree_.threshold[model.tree_.feature == age]}
    assert set(plain.codebook.schema.attributes[2].edges) == {0, 100} | thresholds  # type: ignore[union-attr, arg-type]
    assert set(forest.codebook.schema.attributes[2].edges) == {0, 30, 60, 100} | thresholds  # type: ignore[union-attr, arg-type]
    assert same_leaves(forest.trees[0], forest.codebook.encode(columns), model.apply(matrix(columns)))
    assert sorted(forest.counts[0].tolist()) == sorted(plain.counts[0].tolist())


# ---------------------------------------------------------------- what is refused


def fitted() -> DecisionTreeClassifier:
    columns, y = table(60, 5)
    return DecisionTreeClassifier(max_depth=4, random_state=0).fit(matrix(columns), y)


def test_other_models_are_refused() -> None:
    columns, y = table(60, 5)
    X = matrix(columns)
    cases: list[tuple[Any, Any, str]] = [
        (LogisticRegression().fit(X[:, :3], y), COLUMNS[:3], "got LogisticRegression"),
        (GradientBoostingClassifier(n_estimators=2).fit(X, y), COLUMNS, "got GradientBoostingClassifier"),
        (make_pipeline(StandardScaler(), StandardScaler(), DecisionTreeClassifier()).fit(X, y), COLUMNS, "a pipeline of 3 steps"),
        (DecisionTreeClassifier().fit(X, np.column_stack([y, y])), COLUMNS, "predicts 2 targets"),
        (DecisionTreeClassifier().fit(X, np.where(y == "ant", "bee", y)), COLUMNS, "the model predicts 'bee'"),
        (fitted(), COLUMNS[:-1], "got 5 column names"),
        (fitted(), [*COLUMNS[:-1], "wages"], "'wages' is not known"),
        (fitted(), [*COLUMNS[:-1], "colour=pink"], "'colour=pink' is not known"),
        (fitted(), None, "expected the names of the columns"),
        (fitted(), "colour", "expected the names of the columns"),
    ]
    for model, names, words in cases:
        with pytest.raises(PlanError, match=words):
            from_sklearn(model, names, schema())


def test_an_encoder_of_another_schema_is_refused() -> None:
    columns, y = table(60, 5)
    model = make_pipeline(SchemaEncoder(schema(), categorical="codes"), DecisionTreeClassifier()).fit(columns, y)
    turned = Schema([schema().attributes[0], Categorical("size", ["xl", "l", "m", "s"]), *schema().attributes[2:]], schema().target)
    with pytest.raises(PlanError, match="another schema: 'size'"):
        from_sklearn(model, None, turned)
    draft = Schema([replace(attribute, unreviewed=True) for attribute in schema().attributes], schema().target)
    assert from_sklearn(model, None, draft).trees == from_sklearn(model, None, schema()).trees


def test_a_scaler_s_thresholds_do_not_pass_for_numbers_of_the_schema() -> None:
    columns, y = table(60, 5)
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)).fit(matrix(columns), y)
    with pytest.raises(PlanError, match="is not known"):
        from_sklearn(model, None, schema())  # its columns are x0, x1, …


def test_bounds_size_and_half_a_table() -> None:
    columns, y = table(60, 5)
    narrow = Schema([*schema().attributes[:2], Numeric("age", 0, 1), schema().attributes[3]], schema().target)
    with pytest.raises(PlanError, match="declared bounds, 0 to 1"):
        from_sklearn(DecisionTreeClassifier(random_state=0).fit(matrix(columns), y), COLUMNS, narrow)
    with pytest.raises(PlanError, match="only one of X and y"):
        from_sklearn(fitted(), COLUMNS, schema(), columns)
    with pytest.raises(PlanError, match="same number of rows"):
        from_sklearn(fitted(), COLUMNS, schema(), columns, y[:-1])


def test_too_many_branches_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sklearn_trees, "MAX_ENTRIES", 20)
    with pytest.raises(PlanError, match="at most 20 are made"):
        from_sklearn(fitted(), COLUMNS, schema())
