"""What released counts tell of a table that does not fit: hardly any rows, or nearly all at an upper bound."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow
from hedgerow import Budget, Categorical, HedgerowClassifier, Numeric, PrivateRDTClassifier, Schema, Target
from hedgerow.errors import SchemaMismatchWarning
from hedgerow.inference.coverage import (
    all_rows,
    at_upper_bound,
    far_by_noise,
    full_trees,
    hardly_any,
    may_lack_rows,
    not_counted,
    only_labels_missing,
)
from hedgerow.schema.codebook import Codebook
from hedgerow.training.settling import mismatches_of, oddities_of
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.tree import TreeBuilder

RNG = np.random.default_rng(5)
ROWS = 20_000
X = pd.DataFrame({"a": RNG.random(ROWS), "b": RNG.random(ROWS), "c": RNG.choice(["u", "v"], ROWS)})
Y = np.where(X.a + RNG.normal(0, 0.3, ROWS) > 0.5, "yes", "no")
SCHEMA = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1), Categorical("c", ["u", "v"])], Target("class", ["no", "yes"]))


def fitted(table: Any, labels: Any, **how: Any) -> HedgerowClassifier:
    return HedgerowClassifier(SCHEMA, 1, 1e-6, budget=Budget(1, 1e-6), random_state=0, **how).fit(table, labels)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_with_hardly_any_rows_is_told(rows: int) -> None:
    with pytest.warns(SchemaMismatchWarning, match=r"rows are counted, and noise alone may make as many: .*schema\.check\(table\)"):
        model = fitted(X.head(rows), Y[:rows])
    assert hardly_any(model.release_.forest) is not None


def test_counts_of_a_plan_that_hold_no_row_are_told() -> None:
    """An owner paid, said nothing, and brought nothing to the merge."""
    plan = HedgerowClassifier(replace(SCHEMA, rows=ROWS), "0.5").public_plan()
    with pytest.warns(SchemaMismatchWarning, match=r"the column class holds other values than the declared classes \(no, yes\)"):
        hedgerow.count(plan, X, np.char.upper(Y.astype(str)), budget=Budget(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hedgerow.count(plan, X, Y, budget=Budget(1))


def test_what_noise_cannot_tell_from_the_target_is_named_beside_it() -> None:
    """Two trees of two columns: a lacks no row, but its counts are so noisy that it may; c, with little noise, lacks all."""
    schema = Schema([SCHEMA.attributes[0], SCHEMA.attributes[2]], SCHEMA.target)
    forest = HedgerowClassifier(schema, 1, 1e-6, budget=Budget(1, 1e-6), random_state=0).fit(X[["a", "c"]], Y).release_.forest
    some, none = (np.zeros_like(counts) for counts in forest.counts)
    rows = int(6 * forest.node_noise_sd(0)[0])  # of each class, so that all are 4.2 standard deviations
    some[0] = rows // 2
    for first in (some, some * 0):
        assert "class (the target) or c (the noisy counts do not tell which) is empty there, or holds" in str(
            not_counted(replace(forest, counts=(first, none)), rows)
        )
    assert "class (the target) or every attribute (the" in str(not_counted(replace(forest, counts=(some * 0, none)), 100 * rows))


def test_where_no_row_is_counted_every_attribute_may_be_at_fault_and_where_some_are_only_the_target() -> None:
    schema = Schema([Categorical("c", ["u", "v"]), Categorical("d", ["u", "v"])], SCHEMA.target)
    table = pd.DataFrame({"c": X.c, "d": RNG.choice(["u", "v"], ROWS)})
    told = r"class \(the target\) or every attribute \(the noisy counts do not tell which\) is empty there, or holds"
    with pytest.warns(SchemaMismatchWarning, match=told):
        HedgerowClassifier(schema, 1, 1e-6, budget=Budget(1, 1e-6), random_state=0).fit(table.apply(lambda column: column.str.upper()), Y)
    with pytest.warns(SchemaMismatchWarning, match=r"about 1\d% of the rows .*class \(the target\) is empty there, or holds"):
        model = HedgerowClassifier(schema, 1, 1e-6, budget=Budget(1, 1e-6), random_state=0).fit(table, np.where(X.a < 0.15, None, Y))
    rows = model.release_.released["rows"]
    assert only_labels_missing(model.release_.forest, rows)
    assert not only_labels_missing(model.release_.forest, 10 * rows)
    assert not only_labels_missing(model.release_.forest, None)


def test_numbers_above_their_bounds_are_told() -> None:
    with pytest.warns(SchemaMismatchWarning, match=r"at or above the upper bound of a \(about (9\d|100)%( ± \d%)?\), where"):
        fitted(X.assign(a=X.a + 1000), Y)


def test_the_most_frequent_value_at_a_bound_is_no_misfit() -> None:
    """Nine tenths employed, of three codes: `fit` said to correct the schema before paying again, and gave no verdict."""
    codes = Schema([Numeric("a", 1, 3, integer=True), *SCHEMA.attributes[1:]], SCHEMA.target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            HedgerowClassifier(codes, 1, 1e-6, budget=Budget(1, 1e-6)).fit(X.assign(a=np.where(X.b < 0.95, 3, 1)), Y)
    percent = Schema([Numeric("a", 0, 100, integer=True), *SCHEMA.attributes[1:]], SCHEMA.target)
    with pytest.warns(SchemaMismatchWarning, match=r"upper bound of a \(.*If that is the most frequent value, all is well"):
        release = HedgerowClassifier(percent, 1, 1e-6, budget=Budget(1, 1e-6)).fit(X.assign(a=np.where(X.b < 0.97, 100, 50)), Y).release_
    assert mismatches_of(release, whole=True) == []  # so that a verdict is given


def test_a_table_that_fits_is_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = fitted(X, Y).release_.forest
        skewed = fitted(X.assign(a=X.a**12, b=1 - X.b**12), Y).release_.forest  # most at 0, most at 1
        sparse = fitted(X.assign(b=np.where(X.b < 0.97, 0, X.b)), Y).release_.forest
        trees = PrivateRDTClassifier(SCHEMA, 1, budget=Budget(1), random_state=0).fit(X, Y).release_.forest
    for forest in (whole, skewed, sparse, trees):
        assert (hardly_any(forest), at_upper_bound(forest)) == (None, None)


@pytest.mark.parametrize("epsilon", [1, 4])
def test_a_question_near_the_upper_end_is_no_bound(epsilon: int) -> None:
    """Of a pure-ε forest, whose first question may cut off the ends: 99 of 100 rows may lie above it."""
    level = np.clip(np.random.default_rng(1).normal(96, 2.5, ROWS), 0, 100)
    schema = Schema([Numeric("level", 0, 100), Numeric("b", 0, 1)], Target("class", ["no", "yes"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HedgerowClassifier(schema, epsilon, budget=Budget(epsilon)).fit(
            {"level": level, "b": X.b.to_numpy()}, np.where(level < 91.5, "yes", "no")
        )


def test_the_columns_of_the_tree_that_lacks_most_are_named() -> None:
    """One that lacks few, in a tree of its own, was named for the others."""
    schema = Schema([Categorical(name, [0, 1]) for name in "abcd"], Target("y", [0, 1]))
    trees, counts = [], []
    for asked, rows in (("d", 100_000), ("a", 92_000), ("bc", 40_000)):
        builder = TreeBuilder((2,) * 4)
        leaves = [0]
        for name in asked:
            leaves = [child for leaf in leaves for child in builder.split(leaf, "abcd".index(name), [0, 1])]
        trees.append(builder.build())
        counts.append(np.full((len(leaves), 2), rows // (2 * len(leaves))))
    forest = CountedForest(Codebook(schema), tuple(trees), tuple(counts), (Fraction(2),))
    said = str(not_counted(forest, 100_000))
    assert said.startswith("up to 60% of the rows have in a, b, c no value that the schema declares")
    both = replace(forest, trees=forest.trees[:2], counts=forest.counts[:2])
    assert str(not_counted(both, 100_000)).startswith("about 8% of the rows have in a no value that the schema declares")


def test_trees_that_lack_rows_do_not_tell_the_number_of_all() -> None:
    """A column without a value in 47 % of the rows took a fifth of the rows from the number that a fit stated, ± a seventeenth."""
    table, off = X.assign(b=np.where(RNG.random(ROWS) < 0.47, np.nan, X.b)), []
    for seed in range(6):
        with pytest.warns(SchemaMismatchWarning, match="in b no value that the schema declares"):
            model = HedgerowClassifier(SCHEMA, 1, 1e-6, budget=Budget(1, 1e-6), random_state=seed).fit(table, Y)
        rows, error = all_rows(model.release_.forest)
        off.append((rows - ROWS) / error)
    assert np.abs(off).max() < 4
    assert may_lack_rows(model.release_.forest)
    closed = Schema([replace(entry, missing="none") for entry in SCHEMA.attributes[:2]], SCHEMA.target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = HedgerowClassifier(closed, 1, 1e-6, budget=Budget(1, 1e-6)).fit(table[["a", "b"]], Y).release_
    assert not may_lack_rows(whole.forest)


def test_a_rare_class_takes_no_verdict_away_where_all_rows_are_counted() -> None:
    """It was asked whether it is spelled as in the table, where no row is left that could be spelled otherwise."""
    three = replace(SCHEMA, target=Target("class", ["no", "yes", "rare"]))
    with pytest.warns(SchemaMismatchWarning, match="hardly any has the class rare"):
        release = HedgerowClassifier(three, 1, 1e-6, budget=Budget(1, 1e-6)).fit(X, Y).release_
    assert mismatches_of(release, whole=True) == []
    assert len(oddities_of(release, whole=True)) == 1
    with pytest.warns(SchemaMismatchWarning):  # a tenth of the rows may be its own
        spelled = HedgerowClassifier(three, 1, 1e-6, budget=Budget(1, 1e-6)).fit(X, np.where(X.c.index % 10 == 0, "Rare", Y)).release_
    assert any("hardly any has the class rare" in text for text in mismatches_of(spelled, whole=True))


def test_a_column_that_is_nearly_always_missing_takes_no_verdict_away() -> None:
    schema = Schema([SCHEMA.attributes[0], replace(SCHEMA.attributes[1], missing="none")], SCHEMA.target)
    table = X[["a"]].assign(b=np.where(X.b < 0.98, np.nan, X.b))
    with pytest.warns(SchemaMismatchWarning, match="nearly all rows are counted as missing or undeclared in b"):
        release = HedgerowClassifier(schema, 1, 1e-6, budget=Budget(1, 1e-6)).fit(table, Y).release_
    assert (mismatches_of(release, whole=True), len(oddities_of(release, whole=True))) == ([], 1)


@pytest.mark.parametrize(("attributes", "rows"), [(31, 2000), (5, 300)])
def test_of_small_tables_noise_alone_makes_hardly_any_seem_to_lack_rows(attributes: int, rows: int) -> None:
    """Laplace noise has long tails where a table has few counts: by a normal quantile 2 to 8 of a hundred forests had such a table."""
    schema = Schema([Categorical(f"a{j}", [0, 1]) for j in range(attributes)], Target("y", [0, 1]))
    trees = []
    for j in range(attributes):
        builder = TreeBuilder((2,) * attributes)
        builder.split(0, j, [0, 1])
        trees.append(builder.build())
    scale, rng, found = Fraction(attributes), np.random.default_rng(1), 0  # ε = 1
    for _ in range(600):
        counts = tuple(np.rint(rows / 4 + rng.laplace(0, float(scale), (2, 2))).astype(np.int64) for _ in trees)
        forest = CountedForest(Codebook(schema), tuple(trees), counts, (scale,))
        errors = np.array([float(forest.node_noise_sd(t)[0]) for t in range(attributes)]) * np.sqrt(2)
        totals = np.array([own.sum() for own in counts], dtype=float)
        found += len(full_trees(totals, errors, far_by_noise(forest))) < attributes
    assert found <= 12
