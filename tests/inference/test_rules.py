"""Rules: their numbers by brute force, their words, filters, order."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hedgerow import Release
from hedgerow.accounting.noise import Gaussian
from hedgerow.errors import PlanError
from hedgerow.inference.confidence import unreliable
from hedgerow.inference.prune import gini, pruned_nodes
from hedgerow.inference.rules import COLUMNS, noise_limit, rules, within_noise
from hedgerow.inference.text import plain, share_text, share_with_error, values_in_words
from hedgerow.inference.vote import MAJORITY, MOST_CONFIDENT, PRUNED_SUM, SUMMED_COUNTS, WEIGHTED
from hedgerow.release.certificate import no_certificate
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import NODES, CountedForest
from hedgerow.trees.tree import Tree, TreeBuilder

SCHEMA = Schema(
    [
        Numeric("age", 0, 100, missing="unknown"),
        Categorical("smoker", ("never", "former", "current")),
        Categorical("colour", ("red", "blue", "green", "white", "black")),
    ],
    Target("illness", ("none", "cardiac", "other")),
)
BOOK = Codebook(SCHEMA, 5)


def random_tree(rng: np.random.Generator, splits: int, book: Codebook = BOOK) -> Tree:
    builder = TreeBuilder(book.sizes)
    open_nodes = [0]
    for _ in range(splits):
        node = open_nodes.pop(int(rng.integers(len(open_nodes))))
        attribute = int(rng.integers(len(book.sizes)))
        groups = None
        if rng.random() < 0.5:  # a threshold, or merged values
            cut = int(rng.integers(1, book.sizes[attribute]))
            groups = [int(code >= cut) for code in range(book.sizes[attribute])]
        open_nodes += builder.split(node, attribute, groups)
    return builder.build()


def random_forest(seed: int = 0, trees: int = 3, splits: int = 8, noise: tuple[Fraction, ...] = (Fraction(7),)):
    rng = np.random.default_rng(seed)
    structures = tuple(random_tree(rng, splits) for _ in range(trees))
    counts = tuple(rng.integers(-20, 200, (len(tree.leaves), 3)) for tree in structures)
    return CountedForest(BOOK, structures, counts, noise)


def dpdf_like_forest(seed: int = 0, trees: int = 2, splits: int = 10) -> CountedForest:
    """Every node counted by itself: exact rows handed down, then noise on each count of each node."""
    rng = np.random.default_rng(seed)
    structures, counts = [], []
    for _ in range(trees):
        tree = random_tree(rng, splits)
        exact = tree.add_up(rng.multinomial(120, rng.dirichlet(np.ones(3)), len(tree.leaves)))
        structures.append(tree)
        counts.append(exact + np.round(rng.laplace(0, 9, exact.shape)).astype(np.int64))
    return CountedForest(BOOK, tuple(structures), tuple(counts), (Fraction(9),), NODES)


def release_of(forest: CountedForest, vote: str, **parameters) -> Release:
    return Release(forest, no_certificate("a test"), algorithm="test", vote=vote, parameters=parameters)


def small_forest(counts: list[list[int]], noise: tuple[Fraction, ...] = ()) -> CountedForest:
    """smoker never → leaf; former or current → age below 40, 40 to 80, 80 or more or unknown."""
    builder = TreeBuilder(BOOK.sizes)
    _never, smokes = builder.split(0, 1, [0, 1, 1])
    builder.split(smokes, 0, [0, 0, 1, 1, 2, 2])
    return CountedForest(BOOK, (builder.build(),), (np.array(counts),), noise)


@pytest.mark.parametrize("noise", [(), (Fraction(7),), (Fraction(7), Fraction(5, 3))])
@pytest.mark.parametrize("sub_rules", [False, True])
def test_numbers_follow_from_the_released_counts(noise, sub_rules):
    forest = random_forest(noise=noise)
    found = rules(forest, sub_rules=sub_rules)
    assert found
    for rule in found:
        counts = [int(c) for c in forest.node_counts[rule.tree][rule.node]]
        sd = float(forest.node_noise_sd(rule.tree)[rule.node])
        positive = [max(c, 0) for c in counts]
        share = max(positive) / sum(positive)
        assert rule.support == sum(counts)
        assert rule.support_error == pytest.approx(sd * math.sqrt(3))
        assert rule.confidence == pytest.approx(share)
        assert rule.label == SCHEMA.target.classes[counts.index(max(counts))]
        error = sd * math.sqrt((1 - share) ** 2 + 2 * share**2) / sum(positive)
        assert rule.confidence_error == pytest.approx(min(error, 0.5))


def test_the_delta_method_agrees_with_simulation():
    """Noise of sd 5 on (300, 150, 50), 40,000 times: the spread of the share is the stated error within 3 %."""
    forest = small_forest([[300, 150, 50], [0, 0, 0], [0, 0, 0], [0, 0, 0]], (Fraction(7, 2),))
    (rule,) = [rule for rule in rules(forest) if rule.node == 1]
    sd = forest.leaf_noise_sd
    noisy = np.array([300, 150, 50]) + np.random.default_rng(1).laplace(0, sd / math.sqrt(2), (40_000, 3))
    assert (noisy[:, 0] / noisy.sum(axis=1)).std() == pytest.approx(rule.confidence_error, rel=0.03)


def test_every_leaf_that_a_row_can_reach_is_a_rule_and_sub_rules_add_the_inner_nodes():
    forest = small_forest([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    assert sorted(rule.node for rule in rules(forest)) == [1, 3, 4, 5]
    assert sorted(rule.node for rule in rules(forest, sub_rules=True)) == [0, 1, 2, 3, 4, 5]


def test_rules_hold_for_exactly_the_rows_that_reach_their_node():
    forest = random_forest(5, trees=1, splits=10)
    tree = forest.trees[0]
    everywhere = np.stack(np.meshgrid(*map(np.arange, BOOK.sizes), indexing="ij"), -1).reshape(-1, 3)
    names = SCHEMA.names
    reached = {rule.node: 0 for rule in rules(forest)}
    for codes in everywhere:
        node = 0
        while tree.attribute[node] >= 0:
            node = int(tree.children(node)[codes[tree.attribute[node]]])
        fits = [
            rule.node
            for rule in rules(forest)
            if all(codes[names.index(condition.attribute)] in condition.codes for condition in rule.conditions)
        ]
        assert fits == [node]
        reached[node] += 1
    assert all(reached.values())  # paths that no row can take are left out


def test_words():
    forest = small_forest([[9, 0, 1], [1, 30, 9], [0, 0, 1], [5, 1, 1]])
    words = {rule.node: rule.text() for rule in rules(forest, sub_rules=True)}
    rarer = replace(next(rule for rule in rules(forest, sub_rules=True) if rule.node == 1), share=0.95)
    assert rarer.text().startswith("If smoker is never, then none (confidence 90 %, less than the 95 % of all rows, support 10 rows")
    assert words[0] == "For every row, cardiac (confidence 53.4 %, support 58 rows: cardiac 31, none 15, other 12)."
    assert words[1] == "If smoker is never, then none (confidence 90 %, support 10 rows: none 9, other 1, cardiac 0)."
    smoked = "If smoker is former or current and age is"
    assert words[3] == f"{smoked} below 40, then cardiac (confidence 75 %, support 40 rows: cardiac 30, other 9, none 1)."
    assert words[4] == f"{smoked} 40 to 80, then other (confidence 100 %, support 1 row: other 1, none 0, cardiac 0)."
    assert words[5] == (f"{smoked} 80 or more or unknown, then none (confidence 71.4 %, support 7 rows: none 5, cardiac 1, other 1).")


def test_of_many_classes_the_text_names_the_largest_and_the_row_has_all():
    book = Codebook(Schema([Categorical("a", ("x", "y"))], Target("y", tuple(range(9)))))
    forest = CountedForest(book, (TreeBuilder(book.sizes).build(),), (np.arange(9)[None, :],))
    (rule,) = rules(forest)
    assert "36 rows: 8 8, 7 7, 6 6, 5 5, 4 4, 3 3, 3 other classes less)." in rule.text()
    assert rule.row()["distribution"] == {str(label): label for label in range(9)}


def test_a_rule_has_the_counts_of_its_own_node_where_nodes_were_counted():
    """As in DPDF: the count of an inner node is not the sum of those below it."""
    forest = dpdf_like_forest()
    assert forest.measured == NODES
    for rule in rules(forest, sub_rules=True):
        assert [count for _, count in rule.distribution] == forest.counts[rule.tree][rule.node].tolist()
        assert sum(count for _, count in rule.distribution) == rule.support


def test_noise_is_said():
    forest = small_forest([[10, 1204, 1], [0, 0, 0], [0, 0, 0], [-30, -20, -10]], (Fraction(20),))
    words = {rule.node: str(rule) for rule in rules(forest)}
    assert (
        words[1] == "If smoker is never, then cardiac "
        "(confidence 99 % ± 3 %, support about 1,215 ± 49 rows: cardiac 1,204 ± 28, none 10 ± 28, other 1 ± 28)."
    )
    assert "(confidence 33 % ± 50 %, support about −60 ± 49 rows: other −10 ± 28," in words[5]


@pytest.mark.parametrize(
    ("attribute", "codes", "words"),
    [
        (0, [0], "below 20"),
        (0, [1, 2], "20 to 60"),
        (0, [4], "80 or more"),
        (0, [0, 2], "below 20 or 40 to 60"),
        (0, [5], "unknown"),
        (0, [0, 1, 2, 3, 4], "any number"),
        (1, [0, 2], "never or current"),
        (2, [0, 1, 2], "red, blue or green"),
        (2, [0, 1, 2, 4], "any value but white"),
    ],
)
def test_values_in_words(attribute, codes, words):
    assert values_in_words(BOOK, attribute, codes) == words


def test_long_lists_of_values_are_cut():
    book = Codebook(Schema([Categorical("word", tuple(f"w{i}" for i in range(60)))], Target("y", (0, 1))))
    assert values_in_words(book, 0, list(range(25))) == "w0, w1, w2, w3, w4 or 20 other values"


def test_questions_about_one_attribute_become_one_condition():
    builder = TreeBuilder(BOOK.sizes)
    young, old = builder.split(0, 0, [0, 0, 0, 1, 1, 1])
    builder.split(young, 0, [0, 1, 1, 1, 1, 1])
    builder.split(old, 0, [0, 0, 0, 1, 1, 1])  # its first branch contradicts the question above
    tree = builder.build()
    forest = CountedForest(BOOK, (tree,), (np.ones((4, 3), dtype=np.int64),))
    assert [str(rule.conditions[0]) for rule in rules(forest)] == [
        "age is below 20",
        "age is 20 to 60",
        "age is 60 or more or unknown",
    ]
    assert len(rules(forest, top=3)) == 3  # the impossible one takes no place


def test_filters():
    forest = random_forest(2)
    every = rules(forest)
    assert rules(forest, min_support=300) == [rule for rule in every if rule.support >= 300]
    assert rules(forest, min_confidence=0.5) == [rule for rule in every if rule.confidence >= 0.5]
    assert rules(forest, label="cardiac") == [rule for rule in every if rule.label == "cardiac"]
    assert rules(forest, top=4) == every[:4]
    assert rules(forest, top=0) == []


def test_order():
    def key(rule):
        lower = max(rule.confidence - 2 * rule.confidence_error, 0)
        return (-lower if rule.support > 2 * rule.support_error else 0, -rule.support, rule.tree, rule.node)

    forest = random_forest(3, noise=(Fraction(15),))
    found = rules(forest)
    assert found == sorted(found, key=key)
    assert len({key(rule)[0] for rule in found}) > 5


@pytest.mark.parametrize(("sort", "other"), [("confidence", "support"), ("support", "confidence")])
def test_other_orders(sort, other):
    forest = random_forest(3, noise=(Fraction(15),))
    found = rules(forest, sort=sort)
    assert found == sorted(found, key=lambda r: (-getattr(r, sort), -getattr(r, other), r.tree, r.node))
    assert found[:3] == rules(forest, sort=sort, top=3)
    assert found != rules(forest)


@pytest.mark.parametrize("noise_rule", ["paper", "tight"])
def test_pruned_nodes_are_not_listed_and_what_is_left_ends_in_rules(noise_rule):
    forest = random_forest(4, splits=12, noise=(Fraction(60),))
    expected = set()
    release = release_of(forest, MOST_CONFIDENT, noise_rule=noise_rule)
    for t, tree in enumerate(forest.trees):
        removed = unreliable(forest, t, noise_rule)
        assert (release.removed[t] == removed).all()
        for node in np.flatnonzero(~removed):
            children = tree.children(node) if tree.attribute[node] >= 0 else np.array([-1])
            if all(child < 0 or removed[child] for child in children):
                expected.add((t, int(node)))
    found = {(rule.tree, rule.node) for rule in release.rules(above_noise=False)}
    assert found <= expected
    impossible = expected - found
    assert all((t, node) not in {(r.tree, r.node) for r in rules(forest, sub_rules=True)} for t, node in impossible)
    assert any(unreliable(forest, t, noise_rule).any() for t in range(3))


def test_pruning_a_forest_without_noise_removes_only_what_is_empty():
    forest = small_forest([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert sorted(rule.node for rule in release_of(forest, MOST_CONFIDENT).rules()) == [1, 3, 4]


# ---------------------------------------------------------------- trees whose nodes were counted one by one (DPDF)


def nodes_left_by_eq_27(forest: CountedForest, t: int) -> set[int]:
    """Algorithm 1, PruneTree, once more and slowly: a recursion from the leaves up."""
    tree, counts = forest.trees[t], forest.node_counts[t]

    def impurity(node):
        positive = [max(int(c), 0) for c in counts[node]]
        return 1 - sum((c / sum(positive)) ** 2 for c in positive) if sum(positive) else 1

    def left(node):
        if tree.attribute[node] < 0:
            return {node}
        children = {int(child) for child in tree.children(node) if child >= 0}
        below = {child: left(child) for child in children}
        if all(below[child] == {child} for child in children):  # all of them leaves by now
            sizes = {child: max(int(counts[child].sum()), 0) for child in children}
            mean = math.inf
            if sum(sizes.values()):
                mean = sum(size * impurity(child) for child, size in sizes.items()) / sum(sizes.values())
            if impurity(node) <= mean:
                return {node}
        return {node}.union(*below.values())

    return left(0)


@pytest.mark.parametrize("vote", [WEIGHTED, MAJORITY, PRUNED_SUM])
@pytest.mark.parametrize("seed", range(8))
def test_a_forest_that_prunes_itself_has_the_rules_of_its_pruned_trees(vote, seed):
    forest = dpdf_like_forest(seed)
    release = release_of(forest, vote)
    possible = {(rule.tree, rule.node): rule for rule in rules(forest, sub_rules=True)}
    left, leaves = set(), set()
    for t, tree in enumerate(forest.trees):
        nodes = nodes_left_by_eq_27(forest, t)
        assert nodes == set(np.flatnonzero(~pruned_nodes(forest, t)).tolist())
        inner = {int(tree.parent[node]) for node in nodes if node}
        left |= {(t, node) for node in nodes}
        leaves |= {(t, node) for node in nodes - inner}
    assert {(rule.tree, rule.node) for rule in release.rules(above_noise=False)} == leaves & possible.keys()
    assert {(rule.tree, rule.node) for rule in release.rules(sub_rules=True, above_noise=False)} == left & possible.keys()
    assert release.rules(pruned=False, above_noise=False) == rules(forest)
    for rule in release.rules(sub_rules=True, above_noise=False):
        assert rule == possible[rule.tree, rule.node]  # the numbers of a node do not depend on what is pruned below it
        counts = forest.counts[rule.tree][rule.node]  # its own count, with the noise of one draw
        assert rule.support == counts.sum()
        assert rule.support_error == pytest.approx(forest.leaf_noise_sd * math.sqrt(3))
        positive = np.maximum(counts, 0)
        assert rule.confidence == pytest.approx(positive.max() / positive.sum() if positive.sum() else 1 / 3)


def test_some_of_those_trees_are_really_pruned():
    pruned = [pruned_nodes(dpdf_like_forest(seed), t) for seed in range(8) for t in range(2)]
    assert any(removed.any() for removed in pruned)
    assert any(not removed[1:].all() for removed in pruned)
    assert gini(np.array([0, 0])) == -1


def test_whole_trees_vote_with_all_their_nodes():
    release = release_of(random_forest(), SUMMED_COUNTS)
    assert release.removed is None
    assert release.rules(above_noise=False) == rules(release.forest)
    assert release.rules() == rules(release.forest, above_noise=True)  # as `hedgerow rules` lists them


# ---------------------------------------------------------------- as a table


def test_rules_as_a_data_frame():
    release = release_of(dpdf_like_forest(), WEIGHTED)
    found, frame = release.rules(sub_rules=True, top=7), release.rules(sub_rules=True, top=7, as_frame=True)
    assert tuple(frame.columns) == COLUMNS
    assert list(frame["conditions"]) == [" and ".join(map(str, rule.conditions)) for rule in found]
    assert list(frame["class"]) == [rule.label for rule in found]
    for name in ("confidence", "confidence_error", "support", "support_error", "node"):
        assert list(frame[name]) == [getattr(rule, name) for rule in found]
    assert list(frame["tree"]) == [rule.tree + 1 for rule in found]
    assert list(frame["distribution"]) == [dict(rule.distribution) for rule in found]
    assert list(frame["n_conditions"]) == [len(rule.conditions) for rule in found]
    empty = release.rules(min_support=10**9, as_frame=True)
    assert (len(empty), tuple(empty.columns)) == (0, COLUMNS)


def test_without_pandas_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas.*leave as_frame out"):
        release_of(random_forest(), SUMMED_COUNTS).rules(as_frame=True)


@pytest.mark.parametrize("wrong", [{"sort": "age"}, {"label": "measles"}, {"top": -1}, {"top": 1.5}])
def test_what_cannot_be_asked_is_refused(wrong):
    with pytest.raises(PlanError, match=f"{next(iter(wrong))}: got .*; expected"):
        rules(random_forest(), **wrong)


def test_labels_are_compared_by_their_text():
    book = Codebook(Schema([Categorical("a", ("x", "y"))], Target("y", (0, 1))))
    forest = CountedForest(book, (TreeBuilder(book.sizes).build(),), (np.array([[3, 5]]),))
    (rule,) = rules(forest, label="1")
    assert rule.label == 1
    assert str(rule) == "For every row, 1 (confidence 62.5 %, support 8 rows: 1 5, 0 3)."


def test_a_forest_with_a_hundred_thousand_leaves():
    book = Codebook(Schema([Categorical(f"a{i}", tuple(range(10))) for i in range(5)], Target("y", ("no", "yes"))))
    builder = TreeBuilder(book.sizes)
    level = [0]
    for attribute in range(5):
        level = [child for node in level for child in builder.split(node, attribute)]
    counts = np.random.default_rng(0).integers(0, 50, (100_000, 2))
    forest = CountedForest(book, (builder.build(),), (counts,), (Fraction(1),))
    assert len(rules(forest, top=20)) == 20
    assert len(release_of(forest, MOST_CONFIDENT).rules(top=20)) == 20


def test_nothing_that_could_steer_a_terminal_is_printed():
    assert plain("a\x1b[31mb\u202ec\nd") == "a\ufffd[31mb\ufffdc d"
    assert plain("می\u200cخواهم") == "می\u200cخواهم"
    assert share_with_error(0.5, 0.004) == "50.0 % ± 0.4 %"
    assert [share_text(share) for share in (0, 0.001, 0.006, 1)] == ["0 %", "below 1 %", "1 %", "100 %"]


# ---------------------------------------------------------------- rules that noise alone may have made


def test_rules_within_their_noise_are_left_out_and_counted():
    forest = small_forest([[400, 100, 50], [390, 110, 60], [20, 480, 10], [3, 4, 2]], noise=(Fraction(20),))
    every, told = rules(forest), rules(forest, above_noise=True)
    totals = forest.class_totals / forest.class_totals.sum()
    share = dict(zip(forest.codebook.schema.target.classes, totals, strict=True))
    limit = noise_limit(len(every))
    expected = [
        rule
        for rule in every
        if rule.support > limit * rule.support_error and abs(rule.confidence - share[rule.label]) > limit * rule.confidence_error
    ]
    assert told == expected
    assert 0 < len(told) < len(every)
    left_out = within_noise(forest)
    assert left_out == (len(every) - len(told), len(every), limit)
    assert f"among as many paths as this forest has, {len(every)}, a rule must stand {limit:.1f} errors above the noise" in left_out.text()
    label = told[0].label
    both = len(rules(forest, label=label)), len(rules(forest, label=label, above_noise=True))
    assert both[0] - both[1] == within_noise(forest, label=label).left_out


@pytest.mark.parametrize("sub_rules", [False, True])
def test_paths_that_no_row_can_take_are_not_counted_as_left_out(sub_rules):
    """`hedgerow rules` said that 72 were left out beside 2, and listed 68 with --noisy."""
    forest = random_forest(5, splits=30)
    every, told = rules(forest, sub_rules=sub_rules), rules(forest, sub_rules=sub_rules, above_noise=True)
    left_out = within_noise(forest, sub_rules=sub_rules)
    assert (left_out.left_out, left_out.paths) == (len(every) - len(told), len(every))
    assert len(every) < sum(tree.n_nodes if sub_rules else len(tree.leaves) for tree in forest.trees)  # some contradict themselves
    cells = Schema([Numeric("n", 1, 3, integer=True), Numeric("x", 0, 1)], Target("y", ["a", "b"]))
    book = Codebook(cells, 10)
    builder = TreeBuilder(book.sizes)
    builder.split(0, 0, list(range(10)))
    tree = builder.build()
    counted = CountedForest(book, (tree,), (np.full((len(tree.leaves), 2), 10),), (Fraction(2),))
    assert (len(rules(counted)), within_noise(counted).paths, len(tree.leaves)) == (3, 3, 10)


def test_of_exact_counts_only_empty_rules_are_left_out():
    forest = small_forest([[4, 1, 0], [4, 1, 0], [4, 1, 0], [0, 0, 0]])
    assert [rule.support for rule in rules(forest, above_noise=True)] == [5, 5, 5]
    assert within_noise(forest).left_out == 1


def test_noise_makes_no_rules():
    """Of counts that are noise and even shares alone, hardly any path is listed."""
    rng = np.random.default_rng(3)
    noisy = rng.laplace(0, 20, (4, 3)).round().astype(int) + 500
    forest = small_forest(noisy.tolist(), noise=(Fraction(20),))
    assert len(rules(forest, above_noise=True)) <= 1


def test_the_best_of_many_paths_must_stand_further_above_the_noise():
    """Two hundred leaves of the same shares, and normal noise: at two errors a rare class looks like a rule, at the limit none does."""
    assert [round(noise_limit(paths), 2) for paths in (1, 180, 5000)] == [1.96, 3.64, 4.42]
    book = Codebook(Schema([Categorical("a", tuple(range(200)))], Target("y", ("no", "yes"))))
    builder = TreeBuilder(book.sizes)
    builder.split(0, 0)
    carried = listed = 0
    for seed in range(10):
        counts = np.random.default_rng(seed).normal(np.tile((100, 20), (200, 1)), 36).round().astype(int)
        forest = CountedForest(book, (builder.build(),), (counts,), (Gaussian(Fraction(36**2)),))
        every = [rule for rule in rules(forest) if rule.label == "yes"]
        carried += sum(rule.support > 2 * rule.support_error for rule in every)
        listed += len(rules(forest, label="yes", above_noise=True))
    assert carried > 10
    assert listed <= 2
