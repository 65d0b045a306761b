"""ATP: what pruning by anonymity may and may not do, on any tree, against independent checks."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import forests, requirements

from hedgerow.anonymity.groups import Group, together
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.sharing.prune import Pruned, prune, prune_groups
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.paths import paths_of
from hedgerow.trees.routing import route
from hedgerow.trees.tree import Tree, TreeBuilder

MODES = ("needed", "all")


def every_row(sizes: tuple[int, ...]) -> np.ndarray:
    return np.array(list(itertools.product(*map(range, sizes))), dtype=np.uint8).reshape(-1, len(sizes))


@st.composite
def cases(draw: Any) -> tuple[CountedForest, np.ndarray, np.ndarray, Requirement]:
    """A tree with the exact counts of a table: forest, codes, classes, and something to require."""
    forest = draw(forests())
    codebook, tree = forest.codebook, forest.trees[0]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, skew = draw(st.integers(0, 150)), draw(st.sampled_from([0.3, 1, 3]))
    possible = every_row(codebook.sizes)
    codes = possible[rng.choice(len(possible), rows, p=rng.dirichlet(np.full(len(possible), skew)))]
    labels = rng.choice(codebook.n_classes, rows, p=rng.dirichlet(np.full(codebook.n_classes, 2)))
    return counted(codebook, tree, codes, labels), codes, labels, draw(requirements(codebook.n_classes))


def counted(codebook: Codebook, tree: Tree, codes: np.ndarray, labels: np.ndarray) -> CountedForest:
    counts = np.zeros((tree.n_nodes, codebook.n_classes), dtype=np.int64)
    np.add.at(counts, (route(tree, codes), labels), 1)
    return CountedForest(codebook, (tree,), (counts[tree.leaves],))


def good(required: Requirement, hit: Any, miss: Any, counts: Any) -> bool:
    """The requirement once more, with exact fractions; estimated persons (thirds) as the nearest simple fraction."""
    hit, miss = (Fraction(float(x)).limit_denominator(10**5) for x in (hit, miss))
    total = hit + miss
    if required.k is not None and total < required.k:
        return False
    if required.alpha is not None and (total == 0 or hit / total > required.alpha):
        return False
    if required.c is not None and required.l is not None:
        if counts is not None:
            falling = sorted((int(x) for x in counts), reverse=True)
            return falling[0] < required.c * sum(falling[required.l - 1 :])
        return required.l <= miss + 1 and hit < required.c * miss / (required.l - 1)
    return True


def all_good(found: Pruned) -> bool:
    return all(good(found.requirement, group.hit, group.miss, group.counts) for group in found.groups)


def one_child_somewhere(tree: Tree) -> bool:
    return any(len(set(tree.children(int(node)).tolist())) < 2 for node in np.flatnonzero(tree.attribute >= 0))


def leaves_of(found: Pruned) -> int:
    return 0 if found.tree is None else len(found.tree.leaves)


# ---------------------------------------------------------------- any tree


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(cases(), st.sampled_from(MODES), st.booleans())
def test_what_every_pruned_tree_is(case: Any, siblings: str, hits: bool) -> None:
    forest, codes, labels, required = case
    tree = forest.trees[0]
    found = prune(forest, required, siblings=siblings, hits_only=hits)
    assert all(cut.why and cut.words() and cut.where for cut in found.cuts)
    if found.tree is None:
        assert found.groups == ()
        return
    found.tree.check()
    assert len(found.groups) == len(found.tree.leaves)
    if not one_child_somewhere(tree):  # else see below
        assert len(found.tree.leaves) >= 2
    assert all_good(found)
    assert bool(found.cuts) == (not same_question(found.tree, tree)) or one_child_somewhere(tree)
    # nobody is invented and nobody is lost
    assert sum(group.total for group in found.groups) == pytest.approx(len(codes))
    # every leaf is a union of leaves, with the persons of all of them
    rows = every_row(forest.codebook.sizes)
    before, after = route(tree, rows), route(found.tree, rows)
    assert np.isin(after, found.tree.leaves).all()
    assert len({*zip(before.tolist(), after.tolist(), strict=True)}) == len(set(before.tolist()))
    again = counted(forest.codebook, found.tree, codes, labels).counts[0]
    assert [group.total for group in found.groups] == pytest.approx(again.sum(axis=1).tolist())
    if not hits:
        assert np.array_equal(np.array([group.counts for group in found.groups]), again)
        assert np.array_equal(found.forest.counts[0], again)
        assert found.paths.counts is not None
        assert np.array_equal(found.paths.counts, again)


@pytest.mark.slow
@settings(deadline=None)
@given(cases(), st.sampled_from(MODES), st.booleans())
def test_pruning_a_pruned_tree_changes_nothing(case: Any, siblings: str, hits: bool) -> None:
    forest, _, _, required = case
    found = prune(forest, required, siblings=siblings, hits_only=hits)
    if found.tree is not None:
        again = prune_groups(found.codebook, found.tree, found.groups, required, siblings=siblings)
        assert again.tree == found.tree
        assert again.cuts == ()
        assert [(g.label, g.hit, g.miss) for g in again.groups] == [(g.label, g.hit, g.miss) for g in found.groups]


@pytest.mark.slow
@settings(deadline=None)
@given(cases(), st.sampled_from(MODES), st.booleans())
def test_a_tree_that_satisfies_is_left_alone(case: Any, siblings: str, hits: bool) -> None:
    forest, _, _, required = case
    paths = paths_of(forest)
    if hits:
        paths = replace(paths, counts=None)
    counts = [None] * len(paths) if hits else forest.counts[0]
    satisfied = all(good(required, *each) for each in zip(paths.hit, paths.miss, counts, strict=True))
    found = prune(forest, required, siblings=siblings, hits_only=hits)
    if satisfied:
        assert found.cuts == ()
        if len(forest.trees[0].leaves) > 1:
            assert same_question(found.tree, forest.trees[0])
        else:
            assert found.empty
    else:
        assert found.tree != forest.trees[0]


def same_question(one: Tree | None, other: Tree) -> bool:
    """The same tree, however its nodes are numbered: a row's leaf in one determines its leaf in the other, both ways."""
    assert one is not None
    rows = every_row(one.sizes)
    pairs = set(zip(route(one, rows).tolist(), route(other, rows).tolist(), strict=True))
    return (one.n_nodes, one.height, len(one.leaves)) == (other.n_nodes, other.height, len(other.leaves)) and len(pairs) == len(
        {a for a, _ in pairs}
    ) == len({b for _, b in pairs})


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(cases())
def test_merging_whole_families_against_a_direct_recursion(case: Any) -> None:
    forest, _, _, required = case
    tree, place = forest.trees[0], {int(leaf): i for i, leaf in enumerate(forest.trees[0].leaves)}

    def counts(leaves: frozenset[int]) -> np.ndarray:
        return forest.counts[0][[place[leaf] for leaf in leaves]].sum(axis=0)

    def fine(leaves: frozenset[int]) -> bool:
        numbers = counts(leaves)
        return good(required, numbers.max(), numbers.sum() - numbers.max(), numbers)

    def pruned(node: int) -> tuple[bool, list[frozenset[int]]]:
        """Whether the node is a leaf now, and the leaves below it."""
        if node in place:
            return True, [frozenset([node])]
        below = [pruned(child) for child in sorted(set(tree.children(node).tolist()))]
        leaves = [leaf for _, each in below for leaf in each]
        if any(is_leaf and not fine(each[0]) for is_leaf, each in below):
            return True, [frozenset().union(*leaves)]
        return False, leaves

    _, leaves = pruned(0)
    is_leaf = len(leaves) < 2
    found = prune(forest, required, siblings="all")
    assert found.empty == is_leaf
    if not is_leaf:
        assert sorted(counts(each).tolist() for each in leaves) == sorted(group.counts.tolist() for group in found.groups)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(cases())
def test_merging_what_is_needed_keeps_at_least_as_many_leaves(case: Any) -> None:
    forest, _, _, required = case
    needed, whole = (prune(forest, required, siblings=mode) for mode in MODES)
    assert leaves_of(needed) >= leaves_of(whole)


@pytest.mark.slow
@settings(deadline=None)
@given(cases(), st.sampled_from(MODES), st.booleans(), st.sampled_from([64, 1024]))
def test_shares_of_a_table_are_pruned_as_its_persons(case: Any, siblings: str, hits: bool, rows: int) -> None:
    """For a number of rows by which floats can be divided; for others see below."""
    forest, _, _, required = case
    groups = [Group.of_counts(row.astype(np.float64)) for row in forest.counts[0]]
    if hits:
        groups = [Group(group.label, group.hit, group.miss) for group in groups]
    parts = [Group(g.label, g.hit / rows, g.miss / rows, None if g.counts is None else g.counts / rows) for g in groups]
    one = prune_groups(forest.codebook, forest.trees[0], groups, required, siblings=siblings)
    other = prune_groups(forest.codebook, forest.trees[0], parts, required, siblings=siblings, rows=rows)
    assert one.tree == other.tree
    assert one.cuts == other.cuts
    assert [g.total for g in one.groups] == pytest.approx([g.total * rows for g in other.groups])


# ---------------------------------------------------------------- trees by hand


def tree_of(attributes: list[Any], splits: list[tuple[int, int, Any]], counts: Any, bins: int = 32) -> CountedForest:
    counts = np.array(counts, dtype=np.int64)
    codebook = Codebook(Schema(attributes, Target("t", [f"c{i}" for i in range(counts.shape[1])])), bins)
    builder = TreeBuilder(codebook.sizes)
    for node, attribute, groups in splits:
        builder.split(node, attribute, groups)
    return CountedForest(codebook, (builder.build(),), (counts,))


CITIES = Categorical(
    "city",
    ["paris", "lyon", "rome", "milan"],
    taxonomy={"paris": "france", "rome": "italy", "lyon": "france", "milan": "italy", "france": "europe", "italy": "europe"},
)


def merged_codes(found: Pruned) -> list[set[int]]:
    return sorted((set(found.paths.codes(i, 0).tolist()) for i in range(len(found.paths))), key=min)


def test_the_nearest_by_the_taxonomy() -> None:
    forest = tree_of([CITIES], [(0, 0, None)], [[1, 1], [50, 50], [3, 3], [40, 40]])
    found = prune(forest, Requirement.of(5))
    assert merged_codes(found) == [{0, 1}, {2}, {3}]  # lyon, though rome is smaller
    (cut,) = found.cuts
    assert (cut.where, cut.attribute, cut.merged, cut.persons, cut.whole_family) == (
        "at the root",
        "city",
        "city in {paris, lyon}",
        102,
        False,
    )
    assert cut.why == "2 persons, fewer than 5"
    assert "the branches city in {paris, lyon} are merged (2 persons, fewer than 5); 102 persons together" in cut.words()


def test_merging_goes_up_the_taxonomy_when_a_family_is_not_enough() -> None:
    forest = tree_of([CITIES], [(0, 0, None)], [[1, 1], [1, 0], [30, 3], [40, 40]])
    found = prune(forest, Requirement.of(5))
    assert merged_codes(found) == [{0, 1, 2}, {3}]
    assert len(found.cuts) == 2


def test_without_a_taxonomy_the_smallest() -> None:
    forest = tree_of([Categorical("a", list("wxyz"))], [(0, 0, None)], [[1, 1], [50, 50], [6, 6], [40, 40]])
    assert merged_codes(prune(forest, Requirement.of(5))) == [{0, 2}, {1}, {3}]


def test_a_leaf_is_nearer_than_a_subtree() -> None:
    attributes = [Categorical("a", list("xyz")), Categorical("b", [0, 1])]
    forest = tree_of(attributes, [(0, 0, None), (2, 1, None)], [[1, 1], [90, 90], [6, 6], [6, 6]])
    found = prune(forest, Requirement.of(5))
    assert len(found.paths) == 3
    assert merged_codes(found)[0] == {0, 2}


def test_what_hung_below_a_merged_sibling_is_removed() -> None:
    attributes = [Categorical("a", list("xyz")), Categorical("b", [0, 1])]
    forest = tree_of(attributes, [(0, 0, None), (2, 1, None), (3, 1, None)], [[1, 1], [6, 6], [6, 6], [9, 9], [9, 9]])
    found = prune(forest, Requirement.of(5))
    assert sorted(group.total for group in found.groups) == [18, 18, 26]


def test_the_whole_family_becomes_its_parent() -> None:
    attributes = [Categorical("a", list("xy")), Categorical("b", [0, 1, 2])]
    forest = tree_of(attributes, [(0, 0, None), (1, 1, None)], [[20, 20], [1, 1], [9, 9], [8, 8]])
    for mode, totals in (("all", [36, 40]), ("needed", [18, 18, 40])):
        found = prune(forest, Requirement.of(5), siblings=mode)
        assert sorted(group.total for group in found.groups) == totals
        (cut,) = found.cuts
        assert cut.where == "a = x"
        assert cut.whole_family == (mode == "all")
        assert ("all branches of b" in cut.words()) == (mode == "all")


def test_from_the_leaves_up() -> None:
    """The lower family becomes one leaf, which still fails, and is merged with its sibling above: nothing is left."""
    attributes = [Categorical("a", list("xy")), Categorical("b", [0, 1])]
    forest = tree_of(attributes, [(0, 0, None), (1, 1, None)], [[20, 20], [1, 1], [1, 1]])
    for mode in MODES:
        found = prune(forest, Requirement.of(5), siblings=mode)
        assert found.empty
        assert len(found.cuts) == 2


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), min_size=8, max_size=8), st.integers(1, 60), st.data())
def test_cells_are_merged_into_intervals(sizes: list[int], k: int, data: Any) -> None:
    ends = data.draw(st.lists(st.booleans(), min_size=7, max_size=7))
    groups = np.concatenate([[0], np.cumsum(ends)]).tolist()
    counts = [[sum(size for size, group in zip(sizes, groups, strict=True) if group == g), 0] for g in range(groups[-1] + 1)]
    found = prune(tree_of([Numeric("n", 0, 80)], [(0, 0, groups)], counts, bins=8), Requirement.of(k))
    if not found.empty:
        for codes in merged_codes(found):
            assert codes == set(range(min(codes), max(codes) + 1))


def test_cells_with_missing_numbers_are_merged_with_adjacent_cells() -> None:
    """A branch that has taken the missing numbers in still has neighbours."""
    numeric = Numeric("n", 0, 40, missing="unknown")
    forest = tree_of([numeric], [(0, 0, [0, 1, 2, 3, 0])], [[2, 0], [9, 0], [9, 0], [6, 0]], bins=4)
    found = prune(forest, Requirement.of(5))  # cell 0 and unknown have 2 persons; cell 1 is adjacent, but cell 3 is smaller
    assert {0, 1, 4} in merged_codes(found)


def test_real_counts_decide() -> None:
    forest = tree_of([Categorical("a", list("xyz"))], [(0, 0, None)], [[14, 6, 0], [50, 20, 20], [9, 9, 9]])
    required = Requirement.of(c=5, l=3)
    assert prune(forest, required, hits_only=True).cuts == ()
    assert len(prune(forest, required).cuts) == 1


def test_one_class() -> None:
    forest = tree_of([Categorical("a", list("xyz"))], [(0, 0, None)], [[1], [5], [9]])
    for hits in (False, True):
        found = prune(forest, Requirement.of(5), hits_only=hits)
        assert sorted(group.total for group in found.groups) == [6, 9]
        assert found.forest.counts[0].sum() == 15


def test_a_single_leaf_is_the_empty_tree() -> None:
    found = prune(tree_of([Categorical("a", list("xyz"))], [], [[50, 50]]), Requirement.of(5))
    assert found.empty
    assert found.cuts == ()


@pytest.mark.parametrize("mode", MODES)
def test_a_chain_with_one_leaf_is_the_empty_tree(mode: str) -> None:
    attributes = [Categorical("one", ["only"]), Categorical("b", [0, 1])]
    forest = tree_of(attributes, [(0, 0, None), (1, 1, None)], [[1, 1], [9, 9]])
    found = prune(forest, Requirement.of(5), siblings=mode)
    assert found.empty  # the two leaves are merged; below the root there is one leaf with everybody


def test_refusals() -> None:
    forest = tree_of([Categorical("a", list("xy"))], [(0, 0, None)], [[1, 1], [9, 9]])
    required = Requirement.of(5)
    with pytest.raises(PlanError, match="got 2 trees"):
        prune(replace(forest, trees=forest.trees * 2, counts=forest.counts * 2), required)
    with pytest.raises(PlanError, match="noisy"):
        prune(replace(forest, noise=(Fraction(2),)), required)
    with pytest.raises(PlanError, match="siblings: got 'some'"):
        prune(forest, required, siblings="some")
    with pytest.raises(PlanError, match="one group of persons for each leaf"):
        prune_groups(forest.codebook, forest.trees[0], [Group(0, 1, 1)], required)
    with pytest.raises(PlanError, match="l: got 3"):
        prune(forest, Requirement.of(c=5, l=3))


# ---------------------------------------------------------------- shares, and hits that are merged in steps


def shares_of(forest: CountedForest, rows: int) -> list[Group]:
    return [Group.of_counts(row / rows) for row in forest.counts[0]]


def test_shares_of_a_table_of_any_size() -> None:
    forest = tree_of([Categorical("a", list("xyz"))], [(0, 0, None)], [[1, 0], [24, 0], [24, 0]])
    found = prune_groups(forest.codebook, forest.trees[0], shares_of(forest, 49), Requirement.of(1), rows=49)
    assert found.cuts == ()


def test_the_paths_of_a_tree_with_shares() -> None:
    forest = tree_of([Categorical("a", list("xyz"))], [(0, 0, None)], [[1, 1], [31, 0], [16, 15]])
    found = prune_groups(forest.codebook, forest.trees[0], shares_of(forest, 64), Requirement.of(5), rows=64)
    assert found.paths.totals.sum() == pytest.approx(1)


def test_equation_1_counts_all_merged_siblings_at_once() -> None:
    """Section 3.2: the new node's counts are determined "treating the set of sibling nodes as the children of the new node"."""
    attributes = [Categorical("a", list("xy")), Categorical("b", list("pqr"))]
    groups = [Group(0, 50, 50), Group(0, 6, 3), Group(1, 5, 2), Group(2, 4, 1)]
    forest = tree_of(attributes, [(0, 0, None), (1, 1, None)], np.zeros((4, 3)))
    at_once = together(groups[1:], 3)
    assert (at_once.label, at_once.hit, at_once.miss) == (0, 7.5, 13.5)
    for mode in ("all", "needed"):
        found = prune_groups(forest.codebook, forest.trees[0], groups, Requirement.of(20), siblings=mode)
        (merged,) = [group for group in found.groups if group.total == 21]
        assert (mode, merged.label, merged.hit, merged.miss) == (mode, 0, 7.5, 13.5)
