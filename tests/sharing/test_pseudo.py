"""Pseudo-data: rows that take the paths they were made for, in the numbers that were released, and what may be said about them."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import forests, schemas, small_schema, small_table, trees

import hedgerow
from hedgerow import (
    DPDFClassifier,
    LocalTreeClassifier,
    PrivateRDTClassifier,
    Release,
    SNRForestClassifier,
    count,
    merge,
    merge_columns,
    pseudo_data,
)
from hedgerow.datasets import patients
from hedgerow.engines.files import TableFile
from hedgerow.errors import PlanError
from hedgerow.inference.vote import MAJORITY, SUMMED_COUNTS, vote_named
from hedgerow.release.certificate import anonymity_certificate, no_certificate
from hedgerow.release.parts import NEIGHBOURS, NEIGHBOURS_OF_PARTS
from hedgerow.schema.attributes import Categorical, Numeric, Target, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.csv_dialect import CSVDialect
from hedgerow.schema.schema import Schema
from hedgerow.sharing.match import class_match, path_match
from hedgerow.sharing.pseudo.decoding import value_text, values_by_code
from hedgerow.sharing.pseudo.diversity import Diversity
from hedgerow.sharing.pseudo.files import write_csv, write_parquet
from hedgerow.sharing.pseudo.generate import (
    BASEGEN,
    BLOCK,
    FOREST,
    HITS,
    MAX_ROWS,
    METHODS,
    PGEN,
    Block,
    PseudoRows,
    Recipe,
    joined,
    model_of,
    model_of_paths,
)
from hedgerow.sharing.pseudo.sizes import whole_numbers, whole_numbers_by_row
from hedgerow.sharing.pseudo.values import HIGH, LOW, MIDDLE, NORMAL, NUMERIC, TICKETS, UNIFORM, declared_codes, shares_told
from hedgerow.trees.forest import NODES, CountedForest
from hedgerow.trees.paths import paths_left, paths_of, paths_with_hits, reach
from hedgerow.trees.routing import route
from hedgerow.trees.tree import Tree, TreeBuilder

few = settings(max_examples=60, deadline=None)


def exact_release(forest: CountedForest, vote: str = SUMMED_COUNTS) -> Release:
    return Release(forest, no_certificate("exact counts"), algorithm="test", vote=vote)


def counted(codebook: Codebook, grown: list[Tree], rows: int, seed: int) -> CountedForest:
    """Trees with the exact counts of random rows, all of which have a branch everywhere."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, rows) for size in codebook.sizes], axis=1).astype(codebook.dtype)
    labels = rng.integers(0, codebook.n_classes, rows)
    return CountedForest(codebook, tuple(grown), tuple(leaf_counts(tree, codes, labels, codebook.n_classes) for tree in grown))


def leaf_counts(tree: Tree, codes: Any, labels: Any, n_classes: int) -> Any:
    found = np.zeros((tree.n_nodes, n_classes), dtype=np.int64)
    np.add.at(found, (route(tree, codes), labels), 1)
    assert not np.delete(found, tree.leaves, axis=0).any()  # nobody stops on the way
    return found[tree.leaves]


@st.composite
def one_tree(draw: Any) -> CountedForest:
    codebook = Codebook(draw(schemas()), draw(st.integers(1, 6)))
    return counted(codebook, [draw(trees(codebook.sizes))], draw(st.integers(0, 300)), draw(st.integers(0, 2**32)))


def all_rows(made: PseudoRows) -> Block:
    return joined(list(made.blocks()))


def small_forest(rows: int = 500, grown: int = 1) -> CountedForest:
    codebook = Codebook(small_schema(), 4)
    found = []
    for first in range(grown):
        builder = TreeBuilder(codebook.sizes)
        for child in builder.split(0, first):
            builder.split(child, (first + 1) % 4)
        found.append(builder.build())
    return counted(codebook, found, rows, 3)


# ---------------------------------------------------------------- pgen: Proposition 1


@pytest.mark.slow
@few
@given(one_tree(), st.integers(0, 2**32), st.sampled_from(NUMERIC))
def test_rows_take_their_paths_and_every_path_and_class_has_its_number(forest: CountedForest, seed: int, numeric: str) -> None:
    if not forest.counts[0].sum():
        assert len(pseudo_data(exact_release(forest), seed=seed)) == 0
        return
    made = all_rows(PseudoRows([model_of(forest, None)], Recipe(PGEN, None, numeric, seed=seed)))
    assert np.array_equal(leaf_counts(forest.trees[0], made.codes, made.classes, forest.codebook.n_classes), forest.counts[0])
    for j, numbers in made.numbers.items():
        assert np.array_equal(forest.codebook.coders[j].encode(numbers), made.codes[:, j])


@pytest.mark.slow
@few
@given(one_tree(), st.integers(1, 2000), st.integers(0, 2**32))
def test_an_asked_size_is_met_exactly_and_each_path_within_one_row(forest: CountedForest, rows: int, seed: int) -> None:
    made = PseudoRows([model_of(forest, None)], Recipe(PGEN, rows, seed=seed))
    block = all_rows(made)
    assert len(block) == made.rows == rows
    if total := forest.counts[0].sum():
        found = leaf_counts(forest.trees[0], block.codes, block.classes, forest.codebook.n_classes)
        share = forest.counts[0].sum(axis=1) * (rows / total)
        assert (np.abs(found.sum(axis=1) - share) < 1 + 1e-9).all()


@pytest.mark.slow
@few
@given(one_tree(), st.integers(0, 2**32))
def test_by_hits_the_misses_are_spread_evenly(forest: CountedForest, seed: int) -> None:
    if not forest.counts[0].sum():
        return
    known = paths_of(forest)
    told = paths_with_hits(forest.codebook, forest.trees[0], known.label, known.hit.tolist(), known.miss.tolist())
    made = all_rows(PseudoRows([model_of_paths(told)], Recipe(PGEN, seed=seed)))  # nothing but hits is known
    asked = all_rows(PseudoRows([model_of_paths(known)], Recipe(PGEN, classes=HITS, seed=seed)))
    for block in (made, asked):
        found = leaf_counts(forest.trees[0], block.codes, block.classes, forest.codebook.n_classes)
        assert np.array_equal(found.sum(axis=1), known.totals)
        places = np.arange(len(known))
        assert np.array_equal(found[places, known.label], known.hit) or forest.codebook.n_classes == 1
        others = found.astype(float)
        others[places, known.label] = np.nan
        if forest.codebook.n_classes > 1:
            assert (np.nanmax(others, axis=1) - np.nanmin(others, axis=1) <= 1).all()


def test_misses_do_not_all_go_to_the_same_class() -> None:
    codebook = Codebook(Schema([Categorical("a", list(range(200)))], Target("t", ["x", "y", "z"])))
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0)
    paths = paths_with_hits(codebook, builder.build(), [0] * 200, [5] * 200, [1] * 200)
    numbers = np.bincount(all_rows(PseudoRows([model_of_paths(paths)], Recipe(seed=0))).classes)
    assert numbers[0] == 1000
    assert 60 < numbers[1] < 140


@pytest.mark.slow
@few
@given(forests(), st.sampled_from(METHODS), st.integers(0, 500), st.integers(0, 2**32))
def test_noisy_counts_never_fail_and_sizes_are_exact(forest: CountedForest, method: str, rows: int, seed: int) -> None:
    vote = vote_named(SUMMED_COUNTS, forest)
    made = PseudoRows([model_of(forest, vote)], Recipe(method, rows, seed=seed))
    blocks = list(made.blocks())
    assert sum(map(len, blocks)) == rows
    for block in blocks:
        assert (block.codes < np.array(forest.codebook.sizes)).all()
        assert (block.classes < forest.codebook.n_classes).all()


def test_negative_counts_are_nobody_and_the_size_is_the_noisy_total() -> None:
    codebook = Codebook(Schema([Categorical("a", ["p", "q", "r"])], Target("t", ["x", "y"])))
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0)
    forest = CountedForest(codebook, (builder.build(),), (np.array([[30, -10], [-5, -7], [40, 52]]),), (Fraction(2),))
    data = pseudo_data(exact_release(forest), method=PGEN, seed=0)
    assert len(data) == 100  # 30 − 10 − 5 − 7 + 40 + 52
    assert np.bincount(data.codes[:, 0], minlength=3)[1] == 0
    assert set(data.target[data.columns["a"] == "p"]) == {"x"}
    lost = CountedForest(codebook, forest.trees, (-np.abs(forest.counts[0]),), (Fraction(2),))
    assert len(pseudo_data(exact_release(lost), seed=0)) == 0
    assert len(pseudo_data(exact_release(lost), 7, seed=0)) == 7


def test_values_that_a_path_does_not_ask_about_are_declared_ones_and_alike() -> None:
    schema = small_schema()
    codebook = Codebook(schema, 4)
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 1)
    forest = CountedForest(codebook, (builder.build(),), (np.full((2, 2), 10_000),))
    data = pseudo_data(exact_release(forest), method=PGEN, seed=1)
    for name, declared in (("colour", {"red", "green", "blue"}), ("shape", {"round", "flat"})):
        values, numbers = np.unique(data.columns[name], return_counts=True)
        assert set(values) == declared  # never the branches for other and missing values
        assert numbers.min() > 0.95 * len(data) / len(declared)
    ages = data.columns["age"]
    assert 0 <= ages.min() < 1
    assert 99 < ages.max() <= 100
    assert abs(ages.mean() - 50) < 1


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("numeric", NUMERIC)
def test_numbers_stay_in_their_interval_edges_included(numeric: str) -> None:
    edges = (0.0, 0.1, 0.30000000000000004, 7.0, 10.0)
    codebook = Codebook(Schema([Numeric("n", 0, 10, edges, missing="none")], Target("t", ["x"])))
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0, [0, 1, 1, 2, 3])
    forest = CountedForest(codebook, (builder.build(),), (np.full((4, 1), 1000),))
    made = all_rows(PseudoRows([model_of(forest, None)], Recipe(PGEN, numeric=numeric, seed=0)))
    leaf = route(forest.trees[0], made.codes)
    numbers = made.numbers[0]
    below = [np.nextafter(0.1, 0), np.nextafter(7.0, 0), 10.0]
    for node, low, high in zip((1, 2, 3), (0.0, 0.1, 7.0), below, strict=True):
        here = numbers[leaf == node]
        assert len(here) == 1000
        assert here.min() >= low
        assert here.max() <= high
        expected = {LOW: low, HIGH: high, MIDDLE: low + ((high if high == 10 else np.nextafter(high, 20)) - low) / 2}
        if numeric in expected:
            assert set(here) == {expected[numeric]}
        else:
            assert len(set(here)) > 900
        if numeric == NORMAL:
            assert abs(here.mean() - expected[MIDDLE]) < (high - low) / 50
            assert here.std() < (high - low) / 5
    assert np.isnan(numbers[leaf == 4]).sum() == 1000


@pytest.mark.parametrize("numeric", NUMERIC)
def test_whole_numbers_are_drawn_where_they_are_declared(numeric: str) -> None:
    """An age of 18.7, and 5.5 persons in a household, were made."""
    edges = (0.0, 2.5, 2.9, 7.0, 10.0)
    codebook = Codebook(Schema([Numeric("n", 0, 10, edges, missing="none", integer=True)], Target("t", ["x"])))
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0, [0, 1, 2, 2, 3])
    forest = CountedForest(codebook, (builder.build(),), (np.full((4, 1), 1000),))
    made = all_rows(PseudoRows([model_of(forest, None)], Recipe(PGEN, numeric=numeric, seed=0)))
    leaf, numbers = route(forest.trees[0], made.codes), made.numbers[0]
    drawn = numeric in (UNIFORM, NORMAL)
    assert set(numbers[leaf == 1]) <= {0, 1, 2}
    assert ((numbers[leaf == 2] > 2.4) & (numbers[leaf == 2] < 2.9)).all()  # no whole number lies there
    assert set(numbers[leaf == 3]) <= set(range(3, 11))
    assert not drawn or len(set(numbers[leaf == 3])) > 4
    assert [int((leaf == node).sum()) for node in (1, 2, 3, 4)] == [1000] * 4


def test_intervals_of_neighbouring_floats_hold_their_numbers() -> None:
    tight = 1 + np.finfo(float).eps
    codebook = Codebook(Schema([Numeric("n", 1, 2, (1.0, tight, 2.0))], Target("t", ["x"])))
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0)
    forest = CountedForest(codebook, (builder.build(),), (np.full((2, 1), 50),))
    for numeric in NUMERIC:
        made = all_rows(PseudoRows([model_of(forest, None)], Recipe(PGEN, numeric=numeric)))
        assert np.bincount(made.codes[:, 0]).tolist() == [50, 50]


# ---------------------------------------------------------------- classes that are predicted


@pytest.mark.slow
@few
@given(forests(), st.sampled_from([BASEGEN, FOREST]), st.integers(0, 2**32))
def test_labels_are_the_predictions_of_the_release(forest: CountedForest, method: str, seed: int) -> None:
    release = exact_release(forest)
    data = pseudo_data(release, 200, method=method, seed=seed)
    assert np.array_equal(data.class_codes, release.predict_codes(data.codes))
    assert data.target.tolist() == release.predict(data.columns).tolist()


def test_basegen_is_even_over_the_declared_domain() -> None:
    data = pseudo_data(exact_release(small_forest()), 20_000, method=BASEGEN, seed=0)
    assert set(data.columns["colour"]) == {"red", "green", "blue"}
    assert np.bincount(data.codes[:, 0]).min() > 6_300
    assert np.bincount(data.codes[:, 2]).min() > 4_700  # cells of equal width


def test_forest_draws_what_a_path_leaves_open_as_other_paths_say() -> None:
    codebook = Codebook(small_schema(), 4)
    one, other = TreeBuilder(codebook.sizes), TreeBuilder(codebook.sizes)
    one.split(0, 0)
    other.split(0, 2)
    counts = np.array([[600, 0], [200, 0], [150, 50], [0, 0]]), np.array([[100, 0], [0, 0], [0, 300], [600, 0]])
    forest = CountedForest(codebook, (one.build(), other.build()), counts)
    data = pseudo_data(exact_release(forest), 40_000, method=FOREST, seed=0)
    assert np.allclose(np.bincount(data.codes[:, 0]) / 40_000, [0.6, 0.2, 0.2], atol=0.01)
    assert np.allclose(np.bincount(data.codes[:, 2], minlength=4) / 40_000, [0.1, 0, 0.3, 0.6], atol=0.01)
    shares = shares_told(codebook, [paths_of(forest, 0), paths_of(forest, 1)], np.random.default_rng(0))
    assert [s.sum() for s in shares] == [TICKETS] * 4
    assert shares[1].tolist() == [TICKETS // 2] * 2  # nobody asks: all alike
    assert [len(s) for s in shares] == [declared_codes(codebook, j) for j in range(4)]


def test_which_method_is_the_default() -> None:
    noisy = CountedForest(*(getattr(small_forest(), name) for name in ("codebook", "trees", "counts")), (Fraction(1),))
    assert pseudo_data(exact_release(small_forest()), 5).method == PGEN
    assert pseudo_data(exact_release(small_forest(grown=2)), 5).method == FOREST
    assert pseudo_data(exact_release(noisy), 5).method == FOREST


# ---------------------------------------------------------------- several trees, several owners


def test_trees_share_the_rows_of_the_table_unless_each_is_asked_for() -> None:
    forest = small_forest(grown=3)
    made = PseudoRows([model_of(forest, None)], Recipe(PGEN, seed=0))
    assert made.rows == 500
    assert PseudoRows([model_of(forest, None)], Recipe(PGEN, seed=0, every_tree=True)).rows == 1500
    whole = all_rows(PseudoRows([model_of(forest, None)], Recipe(PGEN, seed=0, every_tree=True)))
    marginal = forest.class_totals * 3
    assert np.bincount(whole.classes).tolist() == marginal.tolist()


def test_rows_of_several_owners_are_added_whatever_their_cells() -> None:
    forest = small_forest(400)
    other = Codebook(small_schema(rows=9), 7)
    builder = TreeBuilder(other.sizes)
    builder.split(0, 2)
    theirs = counted(other, [builder.build()], 300, 5)
    data = pseudo_data([exact_release(forest), exact_release(theirs)], method=PGEN, seed=0)
    assert [source.rows for source in data.certificate.sources] == [400, 300]
    assert np.bincount(data.class_codes).tolist() == (forest.class_totals + theirs.class_totals).tolist()
    assert np.array_equal(Codebook(small_schema(), 4).encode(data.columns), data.codes)
    half = pseudo_data([exact_release(forest), exact_release(theirs)], 70, method=BASEGEN, seed=0)
    assert [source.rows for source in half.certificate.sources] == [40, 30]


def test_owners_with_other_tables_and_the_same_release_twice_are_refused() -> None:
    release = exact_release(small_forest())
    schema = small_schema()
    longer = Schema([*schema.attributes[:3], Categorical("shape", ["flat", "round"], missing="unknown")], schema.target)
    other = CountedForest(Codebook(longer, 4), small_forest().trees, small_forest().counts)
    with pytest.raises(PlanError, match="release 2 has other columns"):
        pseudo_data([release, exact_release(other)])
    with pytest.raises(PlanError, match="twice"):
        pseudo_data([release, release])
    with pytest.raises(PlanError, match="expected a Release"):
        pseudo_data([])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "method: got 'magic'; expected one of auto, pgen, basegen, forest"),
        ({"numeric": "mean"}, "numeric: got 'mean'"),
        ({"classes": "votes"}, "classes: got 'votes'"),
        ({"rows": -1}, "rows: got -1"),
        ({"rows": True}, "rows: got True"),
        ({"rows": MAX_ROWS + 1}, "rows: got"),
        ({"seed": -1}, "seed: got -1"),
        ({"seed": "a"}, "seed: got 'a'"),
    ],
)
def test_requests_that_mean_nothing_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        pseudo_data(exact_release(small_forest()), **options)
    assert words in str(caught.value)


def test_paths_alone_predict_nothing() -> None:
    with pytest.raises(PlanError, match="needs predictions"):
        PseudoRows([model_of_paths(paths_of(small_forest()))], Recipe(BASEGEN))
    with pytest.raises(PlanError, match="at least one release"):
        PseudoRows([], Recipe())


def test_a_tree_on_which_nobody_can_be_is_refused() -> None:
    codebook = Codebook(Schema([Categorical("a", [0, 1])], Target("t", ["x"])))
    tree = Tree((2,), np.array([0, 0, -1], dtype=np.int32), np.array([1, -1, -1, -1, 2, -1], dtype=np.int32))
    tree.check()
    forest = CountedForest(codebook, (tree,), (np.array([[5]]),))
    with pytest.raises(PlanError, match="contradict each other"):
        PseudoRows([model_of(forest, None)], Recipe())


# ---------------------------------------------------------------- seeds, blocks, order


def same(one: Block, other: Block) -> bool:
    numbers = all(np.array_equal(one.numbers[j], other.numbers[j], equal_nan=True) for j in one.numbers)
    return numbers and np.array_equal(one.codes, other.codes) and np.array_equal(one.classes, other.classes)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_fixes_the_rows_and_the_size_of_blocks_does_not_change_them(method: str) -> None:
    release = exact_release(small_forest(grown=2))
    rows = 2 * BLOCK + 1234
    whole = joined(list(pseudo_data(release, rows, method=method, seed=5).blocks()))
    for at_once, n_jobs in ((BLOCK, 2), (10_007, 1), (rows + 5, 3)):
        blocks = list(pseudo_data(release, rows, method=method, seed=5).blocks(at_once, n_jobs))
        assert {len(block) for block in blocks[:-1]} <= {at_once}
        assert same(joined(blocks), whole)
    assert not same(joined(list(pseudo_data(release, rows, method=method, seed=6).blocks())), whole)
    with pytest.raises(PlanError, match="at_once"):
        next(pseudo_data(release, 5).blocks(0))


def test_one_row_at_a_time() -> None:
    data = pseudo_data(exact_release(small_forest()), 50, seed=1)
    assert same(joined(list(data.blocks(1))), joined(list(data.blocks())))


@pytest.mark.parametrize("method", METHODS)
def test_of_very_many_rows_only_the_asked_block_is_made(method: str) -> None:
    for n_jobs in (1, 2):
        data = pseudo_data(exact_release(small_forest(grown=2)), 10**13, method=method, seed=0)
        assert len(data) == 10**13
        blocks = data.blocks(n_jobs=n_jobs)
        assert len(next(blocks)) == BLOCK
        blocks.close()  # type: ignore[attr-defined]


def test_every_stretch_of_rows_has_its_share_of_every_path() -> None:
    forest = small_forest(5000)
    made = PseudoRows([model_of(forest, None)], Recipe(PGEN, 100_000, seed=0))
    first = next(made.blocks(2_000))
    found = leaf_counts(forest.trees[0], first.codes, first.classes, 2)
    assert np.abs(found - forest.counts[0] * (2_000 / 5_000)).max() < 4


def test_a_drawn_seed_is_told() -> None:
    data = pseudo_data(exact_release(small_forest()), 100)
    again = pseudo_data(exact_release(small_forest()), 100, seed=int(data.certificate.seed))
    assert same(joined(list(data.blocks())), joined(list(again.blocks())))
    assert pseudo_data(exact_release(small_forest()), 100).seed != data.seed


# ---------------------------------------------------------------- rounding


@few
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.integers(0, 10**6), st.integers(0, 2**32))
def test_whole_numbers_add_up_and_are_never_off_by_one(weights: list[float], total: int, seed: int) -> None:
    given_weights = np.array(weights)
    if given_weights.sum() <= 1e-300:
        return
    found = whole_numbers(given_weights, total, np.random.default_rng(seed))
    assert found.sum() == total
    assert (found >= 0).all()
    assert (np.abs(found - given_weights * (total / given_weights.sum())) < 1 + 1e-6).all()
    assert (found[given_weights == 0] == 0).all()


@pytest.mark.slow
def test_whole_numbers_are_right_on_average_and_neighbours_do_not_take_turns() -> None:
    weights = np.array([0.5, 1.25, 0.25, 2.0, 0.0])
    drawn = np.array([whole_numbers(weights, 4, np.random.default_rng(seed)) for seed in range(4000)])
    assert np.allclose(drawn.mean(axis=0), weights, atol=0.05)
    even = whole_numbers(np.full(1000, 0.5), 500, np.random.default_rng(0))
    assert 200 < even[::2].sum() < 300
    by_row = whole_numbers_by_row(np.tile([0.6, 0.4], (10_000, 1)), np.ones(10_000, dtype=np.int64), np.random.default_rng(0))
    assert (by_row.sum(axis=1) == 1).all()
    assert abs(by_row[:, 0].mean() - 0.6) < 0.02


# ---------------------------------------------------------------- paths


@pytest.mark.slow
@few
@given(forests())
def test_reach_is_the_conditions_of_every_path(forest: CountedForest) -> None:
    tree = forest.trees[0]
    allowed, asked = reach(tree)
    first = np.concatenate([[0], np.cumsum(tree.sizes)])
    for node in range(tree.n_nodes):
        expected = np.ones(first[-1], dtype=bool)
        for attribute, codes in tree.path(node):
            span = slice(first[attribute], first[attribute + 1])
            expected[span] &= np.isin(np.arange(tree.sizes[attribute]), codes)
        assert np.array_equal(allowed[node], expected)
        assert set(np.flatnonzero(asked[node])) == {attribute for attribute, _ in tree.path(node)}


@pytest.mark.slow
@few
@given(one_tree(), st.integers(0, 2**32))
def test_what_is_left_of_a_pruned_tree_still_holds_everybody_once(forest: CountedForest, seed: int) -> None:
    tree = forest.trees[0]
    rng = np.random.default_rng(seed)
    removed = rng.random(tree.n_nodes) < 0.3
    removed[0] = False
    for level in tree.levels[1:]:
        removed[level] |= removed[tree.parent[level]]
    paths = paths_left(forest, 0, removed)
    assert np.array_equal(paths.counts.sum(axis=0), forest.counts[0].sum(axis=0))  # type: ignore[union-attr]
    codes = np.stack([rng.integers(0, size, 100) for size in tree.sizes], axis=1)
    first = np.concatenate([[0], np.cumsum(tree.sizes)])[:-1]
    fits = np.stack([paths.allowed[:, first[j] + codes[:, j]] for j in range(codes.shape[1])]).all(axis=0)
    assert (fits.sum(axis=0) == 1).all()


# ---------------------------------------------------------------- private releases


@pytest.fixture(scope="module")
def private() -> dict[str, Release]:
    columns, classes = small_table(6000)
    schema = small_schema(rows=6000)
    made = {
        "rdt": PrivateRDTClassifier(schema, 1, 4, 2, random_state=0),
        "snr": SNRForestClassifier(schema, 1, random_state=0),
        "dpdf": DPDFClassifier(schema, 1, 2),
    }
    return {name: estimator.fit(columns, classes).release_ for name, estimator in made.items()}


@pytest.mark.parametrize("name", ["rdt", "snr", "dpdf"])
@pytest.mark.parametrize("method", METHODS)
def test_pseudo_data_of_a_private_forest(name: str, method: str, private: dict[str, Release]) -> None:
    release = private[name]
    data = pseudo_data(release, method=method, seed=0)
    assert len(data) == round(max(release.forest.class_totals.sum(), 0))
    assert abs(len(data) - 6000) < 1500
    if method == PGEN:
        found = np.bincount(data.class_codes, minlength=2) / len(data)
        assert np.abs(found - release.forest.class_totals / release.forest.class_totals.sum()).max() < 0.1
    else:
        assert class_match(release.predict(data.columns), data.target) == 1


def test_pgen_uses_the_nodes_that_a_noisy_release_predicts_with() -> None:
    codebook = Codebook(Schema([Categorical("a", ["p", "q"]), Categorical("b", [0, 1])], Target("t", ["x", "y"])))
    builder = TreeBuilder(codebook.sizes)
    left, _ = builder.split(0, 0)
    builder.split(left, 1)
    counts = np.array([[100, 100], [100, 10], [0, 90], [50, 5], [50, 5]])  # b says nothing: its leaves are pruned
    forest = CountedForest(codebook, (builder.build(),), (counts,), (Fraction(1, 100),), NODES)
    release = exact_release(forest, MAJORITY)
    assert release.removed is not None
    assert release.removed[0].tolist() == [False, False, False, True, True]
    data = pseudo_data(release, 2000, method=PGEN, seed=0)
    here = data.columns["a"] == "p"
    assert here.sum() == 1100
    assert np.bincount(data.class_codes[here]).tolist() == [1000, 100]


# ---------------------------------------------------------------- what may be claimed


def test_the_certificate_keeps_the_loss_of_its_release(private: dict[str, Release]) -> None:
    certificate = pseudo_data(private["rdt"], 10, seed=3).certificate
    assert (certificate.guarantee, certificate.epsilon, certificate.neighbours) == ("epsilon-DP", "1", NEIGHBOURS)
    assert "post-processing" in certificate.statement
    assert certificate.assumptions == private["rdt"].certificate.assumptions
    assert certificate.sources[0].content_hash == private["rdt"].content_hash
    assert (certificate.method, certificate.rows, certificate.seed, certificate.diversity) == (FOREST, 10, "3", None)


def test_the_losses_of_several_releases_add_up(private: dict[str, Release]) -> None:
    certificate = pseudo_data([private["rdt"], private["snr"], private["dpdf"]], 30).certificate
    assert (certificate.epsilon, certificate.neighbours) == ("3", NEIGHBOURS_OF_PARTS)
    assert "add up" in certificate.statement


def test_a_merged_release_keeps_what_the_merge_may_claim() -> None:
    columns, classes = small_table(400)
    plan = PrivateRDTClassifier(small_schema(), "0.5", 2, 1, random_state=0).public_plan(rows=400)
    parts = [count(plan, columns, classes, owner=owner, disjoint=True) for owner in "ab"]
    assert pseudo_data(merge(parts), 10).certificate.epsilon == "0.5"
    assert pseudo_data(parts, 10).certificate.epsilon == "1"


def test_owners_with_other_columns_of_the_same_persons() -> None:
    columns, classes = small_table(3000)
    parts = []
    for seed, names in enumerate((("colour", "flag"), ("age", "shape"))):
        schema = Schema([a for a in small_schema().attributes if a.name in names], small_schema().target)
        plan = PrivateRDTClassifier(schema, 1, 3, 1, random_state=seed).public_plan(rows=3000)
        parts.append(count(plan, {name: columns[name] for name in names}, classes, owner=names[0]))
    united = merge_columns(parts)
    for method in METHODS:
        data = pseudo_data(united, method=method, seed=0)
        assert abs(len(data) - 3000) < 300
        assert data.certificate.epsilon == "2"
        assert set(data.columns) == {"colour", "flag", "age", "shape"}


def anonymous(forest: CountedForest) -> Release:
    return Release(forest, anonymity_certificate({"k": "3"}, "3-anonymity"), algorithm="anonymity-pruned tree", vote=SUMMED_COUNTS)


def test_an_anonymous_tree_gives_no_loss_and_the_rows_say_how_diverse_they_are(tmp_path: Path) -> None:
    data = pseudo_data(anonymous(small_forest()), seed=0)
    certificate = data.certificate
    assert (certificate.guarantee, certificate.epsilon, certificate.neighbours) == ("anonymity", None, "")
    assert "3-anonymity" in certificate.statement
    assert "itself need not" in certificate.statement
    assert "ε" not in certificate.sentence()
    assert certificate.diversity is not None
    assert certificate.diversity["measured"]
    assert data.save(tmp_path / "a.csv").diversity == certificate.diversity


def test_without_a_guarantee_there_is_none_nor_in_a_mixture(private: dict[str, Release]) -> None:
    plain = exact_release(small_forest())
    assert (one := pseudo_data(plain, 5).certificate).guarantee == "none"
    assert one.epsilon is None
    assert "exact counts" in one.statement
    for others in ([private["rdt"]], [anonymous(small_forest(300))]):
        both = pseudo_data([plain, *others], 5).certificate
        assert (both.guarantee, both.epsilon) == ("none", None)
    mixed = pseudo_data([private["rdt"], anonymous(small_forest(300))], 5).certificate
    assert (mixed.guarantee, mixed.epsilon) == ("none", None)
    assert [source.epsilon for source in mixed.sources] == ["1", None]


def test_diversity_is_that_of_equal_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.array([[0, 1], [0, 1], [1, 0], [0, 1], [1, 0]], dtype=np.uint8)
    numbers = {2: np.array([1.0, 1.0, 2.0, 1.0, 2.0])}
    wide = np.column_stack([codes, np.zeros(5, dtype=np.uint8)])
    block = Block(wide, numbers, np.array([0, 0, 1, 1, 1], dtype=np.uint16))
    found = Diversity(3)
    found.add(block.part(0, 2))
    found.add(block.part(2, 5))
    assert found.measured() == {
        "measured": True, "groups": 2, "smallest_group": 2, "fewest_classes_in_a_group": 1, "largest_share_of_one_class": 1.0,
    }  # fmt: skip
    monkeypatch.setattr("hedgerow.sharing.pseudo.diversity.MOST_GROUPS", 1)
    many = Diversity(3)
    many.add(block)
    many.add(block)
    assert not many.measured()["measured"]
    assert not Diversity(3).measured()["measured"]


# ---------------------------------------------------------------- values and files


@pytest.mark.slow
@few
@given(forests(), st.integers(0, 2**32))
def test_values_read_back_as_the_same_codes_from_csv_parquet_and_memory(forest: CountedForest, seed: int) -> None:
    """The branches of other and missing values included, whatever the names."""
    data = pseudo_data(exact_release(forest), 60, method=PGEN, seed=seed)
    schema, codebook = forest.codebook.schema, forest.codebook
    assert np.array_equal(codebook.encode(data.columns), data.codes)
    assert np.array_equal(codebook.encode_classes(data.target), data.class_codes)
    file = io.BytesIO()
    write_csv(file, schema, data.blocks())
    head, *rows = csv.reader(io.StringIO(file.getvalue().decode(), newline=""))
    assert head == [*schema.names, schema.target.name]
    columns = {name: np.array([row[i] for row in rows], dtype=object) for i, name in enumerate(head)}
    assert np.array_equal(codebook.encode(columns), data.codes)
    assert np.array_equal(codebook.encode_classes(columns[schema.target.name]), data.class_codes)
    file = io.BytesIO()
    write_parquet(file, schema, data.blocks())
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(file.getvalue()))
    assert table.column_names == head
    assert np.array_equal(codebook.encode(table), data.codes)
    assert np.array_equal(codebook.encode_classes(table.column(schema.target.name)), data.class_codes)


STRANGE = Schema(
    [
        Categorical('quo"te, comma', ['a "b"', "c,d", "e;f", "\ttab", " space ", "line\nend", "=1+1"], other="else", missing="gone"),
        Categorical("zahl", [1, 2.5, -0.0, "01"], missing="none"),
        Categorical("whole", [1, 20, -3], missing="none"),
        Categorical("flag", [True, False]),
        Categorical("größe", ["ß", "😀"], other="other", missing="other"),
        Numeric("x", -1e-9, 1e9, (-1e-9, 0.1, 50, 1e9), missing="?"),
    ],
    Target("class'", ["yes, no", 'say "hi"', "ε"]),
)


@pytest.mark.parametrize("name", ["strange.csv", "strange.csv.gz", "strange.parquet"])
def test_strange_names_and_values_round_trip_through_files(name: str, tmp_path: Path) -> None:
    codebook = Codebook(STRANGE)
    grown = []
    for attribute in range(6):
        builder = TreeBuilder(codebook.sizes)
        builder.split(0, attribute)
        grown.append(builder.build())
    release = exact_release(counted(codebook, grown, 3000, 1))
    data = pseudo_data(release, method=PGEN, seed=0)
    for size, codes in zip(codebook.sizes, data.codes.T, strict=True):
        assert set(codes) == set(range(size))  # every branch is there
    written = data.save(tmp_path / name)
    read = TableFile(tmp_path / name, [*STRANGE.names, STRANGE.target.name], dialect=CSVDialect(multiline=True))  # a value has a line break
    codes, classes = read.read(codebook)
    assert np.array_equal(codes, data.codes)
    assert np.array_equal(classes, data.class_codes)
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}.certificate.json"}
    beside = json.loads((tmp_path / f"{name}.certificate.json").read_text())
    assert beside["table"] == name
    assert beside["sha256"] == written.sha256 == hashed(tmp_path / name)
    assert beside["rows"] == 3000
    first = (tmp_path / name).read_bytes()
    data.save(tmp_path / name, n_jobs=2)
    assert (tmp_path / name).read_bytes() == first


def hashed(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


@few
@given(schemas())
def test_codes_and_values_are_one_to_one(schema: Schema) -> None:
    for entry in (*schema.attributes, schema.target):
        if not isinstance(entry, Numeric):
            values = values_by_code(entry)
            assert values.count(None) <= 1
            assert len({value_text(value) for value in values}) == len(values) or any(text_of(v) != value_text(v) for v in values)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    data = pseudo_data(exact_release(small_forest()), 10)
    monkeypatch.setattr("hedgerow.sharing.pseudo.files._texts", lambda entry: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        data.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
    assert path.read_text() == "old"
    with pytest.raises(PlanError, match="cannot be written: No such file"):
        data.save(tmp_path / "nowhere" / "a.csv")
    with pytest.raises(PlanError, match=r"ends in \.csv"):
        data.save(tmp_path / "a.txt")


def test_columns_frames_and_arrays(private: dict[str, Release]) -> None:
    data = hedgerow.pseudo_data(private["rdt"], 100, seed=0)
    frame = data.frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == ["colour", "flag", "age", "shape", "class"]
    assert (frame["class"] == data.y).all()
    assert data.X.shape == (100, 4)
    assert data.columns["flag"].dtype.kind == "i"
    assert data.columns["age"].dtype == np.float64
    assert np.array_equal(private["rdt"].codebook.encode(frame), data.codes)
    assert repr(data) == "PseudoData(100 rows, forest, seed 0)"
    nothing = pseudo_data(private["rdt"], 0)
    assert nothing.X.shape == (0, 4)
    assert len(nothing.frame()) == 0
    assert next(nothing.blocks(), None) is None


def test_an_empty_table_can_be_saved(tmp_path: Path) -> None:
    for name in ("a.csv", "a.parquet"):
        pseudo_data(exact_release(small_forest()), 0).save(tmp_path / name)
        assert list(TableFile(tmp_path / name, ["colour"]).columns) == ["colour", "flag", "age", "shape", "class"]


def test_progress_and_blocks_of_a_large_file(tmp_path: Path) -> None:
    seen: list[float] = []
    pseudo_data(exact_release(small_forest()), 17 * BLOCK + 5, seed=0).save(tmp_path / "a.parquet", 2, seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert len(seen) == 18
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(tmp_path / "a.parquet")
    assert file.metadata.num_rows == 17 * BLOCK + 5
    assert file.metadata.num_row_groups == 2


# ---------------------------------------------------------------- how alike


def test_class_match_and_path_match() -> None:
    assert class_match(["a", "b", "b"], ["a", "b", "a"]) == pytest.approx(2 / 3)
    with pytest.raises(ValueError):
        class_match(["a"], ["a", "b"])
    with pytest.raises(ValueError):
        class_match([], [])
    forest = small_forest()
    paths = paths_of(forest)
    assert path_match(paths, paths) == 1
    codebook = forest.codebook
    one, other = TreeBuilder(codebook.sizes), TreeBuilder(codebook.sizes)
    for child in one.split(0, 0):
        one.split(child, 1)
    for child in other.split(0, 1):
        other.split(child, 0)  # the same questions in another order: the same paths
    a, b = (paths_of(counted(codebook, [builder.build()], 0, 0)) for builder in (one, other))
    assert path_match(a, b) == 1
    stump = TreeBuilder(codebook.sizes)
    stump.split(0, 1)
    left, right = 8, 2
    shallow = paths_of(counted(codebook, [stump.build()], 0, 0))
    assert path_match(a, shallow) == 0
    assert (len(a), len(shallow)) == (left, right)
    label = a.label.copy()
    label[0] = 1  # one leaf says something else: 7 of 9
    changed = paths_with_hits(codebook, one.build(), label, [0] * 8, [0] * 8)
    assert path_match(a, changed) == pytest.approx(7 / 9)


# ---------------------------------------------------------------- trees that are cut at values of their own


def owners_with_edges_of_their_own() -> list[Release]:
    tables = [patients(1_500, seed) for seed in (21, 22)]
    return [LocalTreeClassifier(table.schema, bins="values", min_leaf=30).fit(table.columns, table.y).release_ for table in tables]


@pytest.mark.parametrize("method", ["pgen", "basegen", "forest"])
def test_owners_may_have_other_edges(method: str) -> None:
    releases = owners_with_edges_of_their_own()
    assert releases[0].codebook != releases[1].codebook
    made = pseudo_data(releases, method=method, seed=4)
    assert len(made) == 3_000
    for place, entry in enumerate(made.schema.attributes):
        if isinstance(entry, Numeric):  # the edges of both, and codes that are those of the numbers
            wanted = {edge for release in releases for edge in release.schema.attributes[place].cell_edges(1)}  # type: ignore[union-attr]
            assert set(entry.cell_edges(1)) == wanted
    assert np.array_equal(Codebook(made.schema, 1).encode(made.columns), made.codes)
    if method == "pgen":  # each row is on a path of its owner's tree, so many on each: the counts of both trees come out
        for k in range(2):
            one = pseudo_data(releases[k], seed=4)
            nodes = route(releases[k].forest.trees[0], releases[k].codebook.encode(one.columns))
            leaves = releases[k].forest.trees[0].leaves
            assert np.array_equal(np.bincount(nodes, minlength=leaves.max() + 1)[leaves], releases[k].forest.counts[0].sum(axis=1))
        assert sorted(Counter(made.target.tolist()).items()) == sorted(
            (sum((Counter(pseudo_data(each, seed=4).target.tolist()) for each in releases), Counter())).items()
        )


def test_other_bounds_are_still_refused() -> None:
    table = patients(500, 1)
    wider = [replace(a, high=a.high + 1) if isinstance(a, Numeric) else a for a in table.schema.attributes]
    releases = [LocalTreeClassifier(Schema(each, table.schema.target), bins="values").fit(table.columns, table.y).release_
                for each in (table.schema.attributes, wider)]  # fmt: skip
    with pytest.raises(PlanError, match="other columns, values, bounds"):
        pseudo_data(releases)


def test_paths_match_by_their_numbers_whatever_the_cells() -> None:
    first, second = (
        Codebook(Schema([Numeric("n", 0, 10, edges, missing="none")], Target("t", ["x", "y"]))) for edges in ([0, 2, 4, 10], [0, 4, 7, 10])
    )

    def stump(codebook: Codebook, cell: int) -> Any:
        builder = TreeBuilder(codebook.sizes)
        builder.split(0, 0, [int(code >= cell) for code in range(codebook.sizes[0])])
        return paths_with_hits(codebook, builder.build(), [0, 1], [5, 5], [1, 1])

    assert path_match(stump(first, 2), stump(second, 1)) == 1  # both ask whether n is below 4
    assert path_match(stump(first, 1), stump(second, 1)) == 0


def test_a_tree_learned_from_pgen_says_what_its_source_said() -> None:
    """The paper's aim, on a tree whose counts are clear."""
    forest = small_forest(4000)
    codebook = forest.codebook
    clear = CountedForest(codebook, forest.trees, (np.where(np.arange(len(forest.counts[0]))[:, None] % 2 == [0, 1], 200, 3),))
    release = exact_release(clear)
    data = pseudo_data(release, method=PGEN, seed=0)
    learned = hedgerow.ID3Classifier(schema=small_schema(), bins=4).fit(data.columns, data.target)
    rows = pseudo_data(release, 4000, method=BASEGEN, seed=1)
    assert class_match(learned.predict(rows.columns), release.predict(rows.columns)) > 0.95


def test_every_method_and_kind_of_number_has_a_name_of_its_own() -> None:
    assert len({*METHODS, *NUMERIC}) == len(METHODS) + len(NUMERIC)
    assert UNIFORM in NUMERIC
    assert list(itertools.chain(METHODS)) == ["pgen", "basegen", "forest"]


def test_a_file_cannot_ask_for_a_disk_full_of_rows() -> None:
    codebook = Codebook(small_schema())
    tree = TreeBuilder(codebook.sizes)
    tree.split(0, 0)
    built = tree.build()
    forest = CountedForest(codebook, (built,), (np.full((len(built.leaves), 2), 2**40),))
    release = Release(forest, no_certificate("a test"), algorithm="test", vote="summed counts")
    with pytest.raises(PlanError, match="give the number yourself"):
        hedgerow.pseudo_data(release, seed=1)
    assert len(hedgerow.pseudo_data(release, 100, seed=1)) == 100
