"""Requirements, groups, paths, how anonymity is measured, and the release that claims it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import forests, small_schema, small_table

from hedgerow import LocalTreeClassifier, PrivateRDTClassifier, Release
from hedgerow.anonymity.groups import Group, together
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import HedgerowError, MergeError, PlanError, ReleaseError
from hedgerow.evaluation.private import private_score
from hedgerow.release.document import Document
from hedgerow.release.files import content_hash
from hedgerow.release.merging import merge, merge_columns
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.sharing.anonymous_release import anonymous_release
from hedgerow.sharing.disclosure import disclosure
from hedgerow.sharing.measure import largest_k, measure, smallest_alpha, smallest_c
from hedgerow.sharing.prune import Pruned, prune
from hedgerow.sharing.rules.prune import prune_rules
from hedgerow.training.counting import add_batch, count
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.paths import Paths, paths_of, paths_with_hits, reach
from hedgerow.trees.routing import route
from hedgerow.trees.tree import TreeBuilder

# ---------------------------------------------------------------- requirements


def by_counts(counts: Any) -> Group:
    return Group.of_counts(np.array(counts, dtype=np.float64))


def by_hits(hit: float, miss: float) -> Group:
    return Group(0, float(hit), float(miss))


def test_the_papers_example() -> None:
    """14 of class 1 and 6 of classes 2 and 3 is (5, 3)-diverse, if nothing more is known; the real counts decide where they are."""
    required = Requirement.of(c=5, l=3)
    assert by_hits(14, 6).satisfies(required)
    assert by_counts([14, 3, 3]).satisfies(required)
    assert not by_counts([14, 6, 0]).satisfies(required)
    assert not by_hits(15, 6).satisfies(required)  # strictly below 5 · 6 / 2
    assert not by_counts([15, 3, 3]).satisfies(required)


def test_misses_must_be_able_to_be_of_so_many_classes() -> None:
    assert not by_hits(0, 1).satisfies(Requirement.of(c=100, l=3))
    assert by_hits(1, 2).satisfies(Requirement.of(c=100, l=3))
    assert "cannot be of 2 other classes" in by_hits(1, 1).why_not(Requirement.of(c=100, l=3))


shares = st.sampled_from(["0.1", "1/3", "0.5", "1", "1.5", "2", "5", "7/3", "100"])
class_counts = st.lists(st.integers(0, 30), min_size=2, max_size=6)


def diverse(counts: Any, c: Fraction, l: int) -> bool:  # noqa: E741
    falling = sorted((int(x) for x in counts), reverse=True)
    return falling[0] < c * sum(falling[l - 1 :])


@given(class_counts, shares, st.data())
def test_diversity_against_a_direct_loop(counts: list[int], c: str, data: Any) -> None:
    l = data.draw(st.integers(2, len(counts)))  # noqa: E741
    required = Requirement.of(c=c, l=l)
    assert by_counts(counts).satisfies(required) == diverse(counts, Fraction(c), l)
    hit, miss = max(counts), sum(counts) - max(counts)
    assert by_hits(hit, miss).satisfies(required) == (l <= miss + 1 and hit * (l - 1) < Fraction(c) * miss)


@given(class_counts, st.integers(1, 60), st.sampled_from(["0.1", "1/3", "0.5", "2/3", "0.9", "99/100"]))
def test_k_and_alpha_against_a_direct_loop(counts: list[int], k: int, alpha: str) -> None:
    total, most = sum(counts), max(counts)
    assert by_counts(counts).satisfies(Requirement.of(k)) == (total >= k)
    assert by_counts(counts).satisfies(Requirement.of(k, alpha=alpha)) == (total >= k and most <= Fraction(alpha) * total)
    both = Requirement.of(k, 2, 2, alpha)
    alone = Requirement.of(k), Requirement.of(k, alpha=alpha), Requirement.of(c=2, l=2)
    assert by_counts(counts).satisfies(both) == all(by_counts(counts).satisfies(each) for each in alone)


@given(class_counts, st.integers(1, 60), shares)
def test_what_a_group_lacks_is_said_exactly_if_it_lacks_something(counts: list[int], k: int, c: str) -> None:
    for required in (Requirement.of(k), Requirement.of(c=c, l=2), Requirement.of(k, c, 2, "0.6")):
        for group in (by_counts(counts), by_hits(max(counts), sum(counts) - max(counts))):
            assert (group.why_not(required) == "") == group.satisfies(required)


@pytest.mark.parametrize("c", ["0.1", 0.1, Fraction(1, 10)])
def test_one_tenth_is_one_tenth(c: Any) -> None:
    required = Requirement.of(c=c, l=2)
    assert required.c == Fraction(1, 10)
    assert not by_counts([3, *[3] * 10]).satisfies(required)  # 3 < 0.1 · 30 is wrong; in floats 0.1 · 30 is above 3
    assert by_counts([3, *[3] * 10, 1]).satisfies(required)


def test_one_third_is_one_third() -> None:
    assert not by_counts([1, 1, 1, 1]).satisfies(Requirement.of(c="1/3", l=2))
    assert by_counts([1, 1, 1, 1, 1]).satisfies(Requirement.of(c="1/3", l=2))
    assert by_counts([1, 1, 1]).satisfies(Requirement.of(3, alpha="1/3"))
    assert not by_counts([1, 1, 1]).satisfies(Requirement.of(3, alpha="0.3333"))


@pytest.mark.parametrize("digits", [16, 20, 40])
def test_long_fractions_are_exact_too(digits: int) -> None:
    """The docstring says exact numbers, and a certificate may hold a hundred digits."""
    wrong = []
    for first, rest in itertools.product(range(1, 40), range(1, 40)):
        for more in (0, 1):
            c = Fraction(first * 10**digits // rest + more, 10**digits)
            group = Group(0, float(first), float(rest))
            if c > 0 and group.satisfies(Requirement.of(c=c, l=2)) != (first < c * rest):
                wrong.append((first, rest, c))
    assert not wrong


BAD_REQUIREMENTS: list[tuple[dict[str, Any], str]] = [
    ({}, "give k"),
    ({"k": 0}, "k: got 0"),
    ({"k": -3}, "k: got -3"),
    ({"k": 2.5}, "k: got 2.5"),
    ({"k": True}, "k: got True"),
    ({"k": "5"}, "k: got '5'"),
    ({"c": 5}, "needs both"),
    ({"l": 3}, "needs both"),
    ({"c": 5, "l": 1}, "l: got 1"),
    ({"c": 5, "l": 0}, "l: got 0"),
    ({"c": 5, "l": 2.0}, "l: got 2.0"),
    ({"c": 0, "l": 2}, "c: got 0"),
    ({"c": -1, "l": 2}, "c: got -1"),
    ({"c": float("nan"), "l": 2}, "c: got nan"),
    ({"c": float("inf"), "l": 2}, "c: got inf"),
    ({"c": "many", "l": 2}, "c: got 'many'"),
    ({"c": "1e999", "l": 2}, "c: got"),
    ({"k": 5, "alpha": 1}, "alpha: got 1"),
    ({"k": 5, "alpha": 1.5}, "alpha: got 1.5"),
    ({"k": 5, "alpha": 0}, "alpha: got 0"),
    ({"k": 5, "alpha": "-0.5"}, "alpha: got '-0.5'"),
    ({"alpha": 0.5}, "needs k"),
    ({"alpha": 0.5, "c": 5, "l": 3}, "needs k"),
]


@pytest.mark.parametrize(("given_", "says"), BAD_REQUIREMENTS, ids=[str(bad) for bad, _ in BAD_REQUIREMENTS])
def test_bad_requirements(given_: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says.replace("(", r"\(")):
        Requirement.of(**given_)


def test_more_classes_than_there_are() -> None:
    paths = paths_of(flat([[5, 5, 5], [5, 5, 5]]))
    assert measure(paths, Requirement.of(c=5, l=3)).satisfied
    for refuse in (lambda r: measure(paths, r), lambda r: prune_rules(paths, r), lambda r: prune(flat([[5, 5, 5], [5, 5, 5]]), r)):
        with pytest.raises(PlanError, match="l: got 4; the target has 3 classes"):
            refuse(Requirement.of(c=5, l=4))


def requirements(n_classes: int = 3) -> Any:
    ks = st.integers(1, 40)
    alphas = st.sampled_from(["1/3", "0.4", "0.5", "2/3", "0.9"])
    kinds = [st.builds(Requirement.of, ks), st.builds(lambda k, a: Requirement.of(k, alpha=a), ks, alphas)]
    if n_classes > 1:
        ls = st.integers(2, n_classes)
        kinds.append(st.builds(lambda c, l: Requirement.of(c=c, l=l), shares, ls))  # noqa: E741
        kinds.append(st.builds(Requirement.of, ks, shares, ls, alphas))
    return st.one_of(kinds)


@given(requirements(6))
def test_record_round_trip(required: Requirement) -> None:
    record = required.record()
    assert all(isinstance(text, str) for text in record.values())
    assert Requirement.from_record(json.loads(json.dumps(record))) == required
    assert required.words()


@pytest.mark.parametrize(
    "record",
    [
        {}, {"k": "0"}, {"k": "five"}, {"k": "-1"}, {"k": "1/2"}, {"k": ""}, {"k": "٣"}, {"k": "9" * 101}, {"k": "5", "t": "1"},
        {"k": "5", "alpha": "1"}, {"c": "5"}, {"c": "5", "l": "1"}, {"c": "1e9999", "l": "2"}, {"c": "1/0", "l": "2"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_records(record: dict[str, str]) -> None:
    with pytest.raises(PlanError):
        Requirement.from_record(record)


def test_words() -> None:
    assert Requirement.of(5).words() == "5-anonymity"
    assert Requirement.of(c="0.1", l=3).words() == "(0.1, 3)-diversity"
    assert Requirement.of(5, 2, 2, "0.5").words() == "(0.5, 5)-anonymity and (2, 2)-diversity"


# ---------------------------------------------------------------- groups


@given(st.lists(st.lists(st.integers(0, 50), min_size=4, max_size=4), min_size=1, max_size=5))
def test_class_counts_add(counts: list[list[int]]) -> None:
    found = together([by_counts(each) for each in counts], 4)
    total = np.sum(counts, axis=0)
    assert found.counts is not None
    assert found.counts.tolist() == total.tolist()
    assert (found.label, found.hit, found.miss) == (int(total.argmax()), total.max(), total.sum() - total.max())


def test_equation_1_by_hand() -> None:
    """Three classes. hit_0 = 10 + 4/2 = 12, hit_1 = 8 + 6/2 = 11, hit_2 = 6/2 + 4/2 = 5: 28 persons."""
    found = together([Group(0, 10, 6), Group(1, 8, 4)], 3)
    assert (found.label, found.hit, found.miss, found.counts) == (0, 12, 16, None)
    found = together([Group(0, 10, 6), Group(1, 8, 4), Group(1, 2, 0)], 3)  # hit_1 = 13
    assert (found.label, found.hit, found.miss) == (1, 13, 17)


def test_hits_of_two_classes_lose_nothing() -> None:
    """With two classes a miss can only be of the other one."""
    found = together([Group(0, 7, 3), Group(1, 9, 2)], 2)
    assert (found.label, found.hit, found.miss) == (1, 12, 9)


def test_one_group_of_hits_is_itself() -> None:
    found = together([Group(2, 7, 5)], 3)
    assert (found.label, found.hit, found.miss) == (2, 7, 5)


def test_where_one_group_has_no_counts_hit_and_miss_of_all_decide() -> None:
    found = together([by_counts([10, 6, 0]), Group(1, 8, 4)], 3)
    assert found.counts is None
    assert (found.label, found.hit, found.miss) == (0, 12, 16)


def test_one_class() -> None:
    found = together([Group(0, 7, 0), Group(0, 5, 0)], 1)
    assert (found.label, found.hit, found.miss) == (0, 12, 0)
    assert together([by_counts([7]), by_counts([5])], 1).total == 12


@given(st.integers(1, 5), st.data())
def test_persons_are_never_lost_or_invented(n_classes: int, data: Any) -> None:
    one = st.tuples(st.integers(0, n_classes - 1), st.integers(0, 50), st.integers(0, 50 if n_classes > 1 else 0))
    groups = [Group(label, float(hit), float(miss)) for label, hit, miss in data.draw(st.lists(one, min_size=1, max_size=6))]
    found = together(groups, n_classes)
    assert found.total == pytest.approx(sum(group.total for group in groups))
    assert found.hit >= -1e-9
    assert found.miss >= -1e-9
    hits = [
        sum(g.hit if g.label == j else g.miss / (n_classes - 1) for g in groups if n_classes > 1 or g.label == j) for j in range(n_classes)
    ]
    assert found.hit == pytest.approx(max(hits))
    assert hits[found.label] == pytest.approx(max(hits))


# ---------------------------------------------------------------- paths


def flat(counts: Any, **schema: Any) -> CountedForest:
    """One question with a branch for each row of counts."""
    counts = np.array(counts, dtype=np.int64)
    attribute = schema.get("attribute") or Categorical("a", [f"a{i}" for i in range(len(counts))])
    codebook = Codebook(
        Schema([attribute, Categorical("b", [0, 1])], Target("t", [f"c{i}" for i in range(counts.shape[1])])), schema.get("bins", 32)
    )
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0)
    return CountedForest(codebook, (builder.build(),), (counts,))


def every_row(sizes: tuple[int, ...]) -> np.ndarray:
    return np.array(list(itertools.product(*map(range, sizes))), dtype=np.uint8).reshape(-1, len(sizes))


def allows(paths: Paths, codes: np.ndarray) -> np.ndarray:
    """(rows, paths): whether the path allows all codes of the row."""
    found = np.ones((len(codes), len(paths)), dtype=bool)
    for a in range(codes.shape[1]):
        found &= paths.allowed[:, paths.first_code[a] + codes[:, a].astype(int)].T
    return found


@pytest.mark.slow
@settings(deadline=None)
@given(forests())
def test_every_row_is_on_the_path_of_its_leaf_and_on_no_other(forest: CountedForest) -> None:
    codes = every_row(forest.codebook.sizes)
    for number, tree in enumerate(forest.trees):
        paths = paths_of(forest, number)
        node = route(tree, codes)
        expected = node[:, None] == tree.leaves[None, :]
        assert (allows(paths, codes) == expected).all()
        assert (expected.sum(axis=1) == 1).all()
        assert paths.counts is not None
        assert np.array_equal(paths.counts, forest.counts[number])
        assert np.array_equal(paths.totals, forest.counts[number].sum(axis=1))
        assert np.array_equal(paths.label, forest.counts[number].argmax(axis=1))


@pytest.mark.slow
@settings(deadline=None)
@given(forests())
def test_reach_of_every_node_against_its_path(forest: CountedForest) -> None:
    tree = forest.trees[0]
    allowed, asked = reach(tree)
    first = np.concatenate([[0], np.cumsum(tree.sizes)])
    for node in range(tree.n_nodes):
        steps = tree.path(node)
        assert set(np.flatnonzero(asked[node])) == {attribute for attribute, _ in steps}
        for a, size in enumerate(tree.sizes):
            codes = set(range(size)).intersection(*(set(codes) for attribute, codes in steps if attribute == a))
            assert set(np.flatnonzero(allowed[node, first[a] : first[a + 1]])) == codes


@pytest.mark.slow
@settings(deadline=None)
@given(forests(), st.integers(0, 3))
def test_nodes_that_were_counted_by_themselves_tell_of_their_leaves(forest: CountedForest, seed: int) -> None:
    tree, rng = forest.trees[0], np.random.default_rng(seed)
    counts = rng.integers(0, 9, (tree.n_nodes, forest.codebook.n_classes))
    paths = paths_of(CountedForest(forest.codebook, (tree,), (counts,), (), "nodes"))
    assert paths.counts is not None
    assert np.array_equal(paths.counts, counts[tree.leaves])


def test_words_of_paths() -> None:
    codebook = Codebook(Schema([Categorical("a", ["x", "y", "z"]), Numeric("n", 0, 100)], Target("t", ["p", "q"])), 4)
    builder = TreeBuilder(codebook.sizes)
    left, _ = builder.split(0, 0, [0, 0, 1])
    builder.split(left, 1, [0, 0, 0, 1])
    paths = paths_of(CountedForest(codebook, (builder.build(),), (np.ones((3, 2), dtype=np.int64),)))
    assert {paths.words(i) for i in range(3)} == {"a = z", "a in {x, y} and n = 0 to 75", "a in {x, y} and n = 75 to 100"}
    root = paths_of(CountedForest(codebook, (TreeBuilder(codebook.sizes).build(),), (np.ones((1, 2), dtype=np.int64),)))
    assert root.words(0) == "everybody"


def test_hits_and_misses_of_a_tree() -> None:
    forest = flat([[5, 1, 0], [0, 3, 3]])
    paths = paths_with_hits(forest.codebook, forest.trees[0], [0, 1], [5, 3], [1, 3])
    assert paths.counts is None
    assert paths.totals.tolist() == [6, 6]
    for bad in (([0], [5], [1]), ([0, 1], [5, -3], [1, 3]), ([0, 1], [5, 3], [-1, 3]), ([0, 1], [5, 3], [1])):
        with pytest.raises(ReleaseError, match="one class, one hit and one miss"):
            paths_with_hits(forest.codebook, forest.trees[0], *bad)


def test_shares_as_persons() -> None:
    paths = paths_of(flat([[50, 10, 0], [0, 30, 10]])).scaled(0.01)
    again = paths.scaled(100)
    assert again.counts is not None
    assert again.counts.tolist() == pytest.approx(np.array([[50, 10, 0], [0, 30, 10]]))
    assert again.totals.tolist() == pytest.approx([60, 40])


# ---------------------------------------------------------------- measure


leaf_counts = st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=1, max_size=4)


@pytest.mark.slow
@given(leaf_counts, st.booleans())
def test_what_paths_satisfy_at_most_by_trying(counts: list[list[int]], hits: bool) -> None:
    paths = paths_of(flat(counts))
    if hits:
        paths = replace(paths, counts=None)
    fits = lambda **given_: measure(paths, Requirement.of(**given_)).satisfied  # noqa: E731
    k = largest_k(paths)
    assert k == max([j for j in range(1, 40) if fits(k=j)], default=0)
    alpha = smallest_alpha(paths)
    for tried in [Fraction(i, j) for j in range(2, 37) for i in range(1, j)]:
        if k >= 1 and abs(float(tried) - alpha) > 1e-9:
            assert fits(k=1, alpha=tried) == (tried > alpha)
        elif k >= 1:
            assert fits(k=1, alpha=tried)  # a share of exactly α is allowed
    for l in (2, 3):  # noqa: E741
        c = smallest_c(paths, l)
        for tried in [Fraction(i, j) for j in (1, 2, 3, 4, 5, 7) for i in range(1, 40, 3)]:
            expected = float(tried) > c and abs(float(tried) - c) > 1e-9  # c itself is not enough
            assert fits(c=tried, l=l) == expected
        if c == float("inf"):
            assert not fits(c=10**9, l=l)


def test_measure_names_the_failing_paths_smallest_first() -> None:
    found = measure(paths_of(flat([[3, 1, 0], [9, 9, 9], [1, 0, 0]])), Requirement.of(5))
    assert found.good.tolist() == [False, True, False]
    assert found.failures() == [("a = a2", "1 persons, fewer than 5"), ("a = a0", "4 persons, fewer than 5")]


def test_disclosure_says_what_is_left_to_learn() -> None:
    paths = paths_of(flat([[19, 1, 0], [9, 9, 9]]))
    told = dict(disclosure(paths, Requirement.of(5)))
    assert told["requirement"] == "5-anonymity: satisfied by 2 paths"
    assert told["smallest path"] == "20 persons: a = a0"
    assert told["most certain path"].startswith("95.0% of 20 persons are 'c0': a = a0")
    assert told["at most"] == "20-anonymous; no class has more than 95.0% of a path"
    assert "1 paths (42.6% of all persons)" in told["homogeneity attack"]
    assert "not differential privacy" in told["not claimed"]
    assert "NOT satisfied" in dict(disclosure(paths, Requirement.of(21)))["requirement"]
    assert "no path tells" in dict(disclosure(paths_of(flat([[5, 5, 5], [9, 9, 9]])), Requirement.of(5)))["homogeneity attack"]


# ---------------------------------------------------------------- the release


def local(rows: int = 400) -> Release:
    table, target = small_table(rows)
    return LocalTreeClassifier(small_schema(), bins=8, confidence=None).fit(table, target).release_


def pruned(**given_: Any) -> Pruned:
    required = Requirement.of(**given_) if given_ else Requirement.of(5, 30, 2)
    found = prune(local().forest, required)
    assert not found.empty
    return found


def test_an_anonymous_release_round_trips_and_predicts(tmp_path: Path) -> None:
    found = pruned()
    release = anonymous_release(found)
    release.save(tmp_path / "tree.json")
    again = Release.load(tmp_path / "tree.json")
    assert again.content_hash == release.content_hash
    assert again.forest.trees == release.forest.trees
    assert again.certificate == release.certificate
    assert again.certificate.guarantee == "anonymity"
    assert again.certificate.epsilon is None
    assert again.certificate.parts == []
    assert Requirement.from_record(again.certificate.requirement or {}) == found.requirement
    assert "NOT differential privacy" in again.certificate.sentence()
    assert measure(paths_of(again.forest), found.requirement).satisfied
    table, target = small_table(400, seed=1)
    assert (again.predict(table) == release.predict(table)).all()
    assert (again.predict(table) == target).mean() > 0.7
    assert again.predict_proba(table).sum(axis=1) == pytest.approx(np.ones(400))
    assert again.rules()


def test_nothing_in_the_document_states_an_epsilon() -> None:
    document = json.loads(anonymous_release(pruned()).to_json())
    assert document["certificate"].get("epsilon") is None
    assert all(not ensemble["noise"] for ensemble in document["ensembles"])


def test_the_empty_tree_is_no_release() -> None:
    found = prune(local().forest, Requirement.of(10**6))
    assert found.empty
    for ask in (lambda: anonymous_release(found), lambda: found.forest, lambda: found.paths):
        with pytest.raises(ReleaseError, match="empty"):
            ask()


def altered(change: Callable[[Any], Any], release: Release | None = None) -> bytes:
    """The document with one change and a hash that fits."""
    document = json.loads((release or anonymous_release(pruned())).to_json())
    change(document)
    data = json.dumps(document).encode()
    document["content_hash"] = content_hash(msgspec.json.decode(data, type=Document))
    return json.dumps(document).encode()


def test_a_document_that_was_only_spelt_again_loads() -> None:
    assert Release.from_json(altered(lambda document: None)).certificate.guarantee == "anonymity"


def pure(document: Any) -> None:
    document["trees"][0]["counts"][:2] = [100, 0]


def few(document: Any) -> None:
    document["trees"][0]["counts"][:2] = [2, 1]


def below_zero(document: Any) -> None:
    document["trees"][0]["counts"][:2] = [50, -1]


def two_trees(document: Any) -> None:
    document["trees"] *= 2
    document["ensembles"][0]["trees"] = 2


def claim(**fields: Any) -> Callable[[Any], None]:
    return lambda document: document["certificate"].update(fields)


BAD = {
    "a pure path": (pure, "its paths do not satisfy that"),
    "a small path": (few, "its paths do not satisfy that"),
    "counts below 0": (below_zero, "counts below 0"),
    "several trees": (two_trees, "several trees"),
    "another reason": (claim(reason="every path satisfies 1000-anonymity"), "other words"),
    "no reason": (claim(reason=""), "other words"),
    "no requirement": (claim(requirement=None), "without a requirement"),
    "an empty requirement": (claim(requirement={}), "requirement is not sound"),
    "a requirement that means nothing": (claim(requirement={"k": "0"}), "requirement is not sound"),
    "a requirement with another name": (claim(requirement={"k": "5", "t": "1"}), "requirement is not sound"),
    "more classes than there are": (claim(requirement={"c": "5", "l": "3"}), "requirement is not sound"),
    "more than it satisfies": (
        claim(requirement={"k": "100000"}, reason="every path satisfies 100000-anonymity"), "its paths do not satisfy that",
    ),
    "an epsilon": (claim(epsilon="1"), "no counted table behind it"),
    "differential privacy": (claim(guarantee="epsilon-DP", epsilon="1"), "no counted table behind it"),
    "a requirement without a claim": (claim(guarantee="none"), "or the reverse"),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(BAD))
def test_altered_releases_are_refused(kind: str) -> None:
    change, says = BAD[kind]
    with pytest.raises(ReleaseError, match=says):
        Release.from_json(altered(change))


def test_a_release_without_a_claim_cannot_become_one_by_its_word() -> None:
    """The local tree as it was grown has paths of a few persons."""
    said = claim(guarantee="anonymity", requirement={"k": "50"}, reason="every path satisfies 50-anonymity")
    with pytest.raises(ReleaseError, match="in other words"):
        Release.from_json(altered(said, local()))


def test_noisy_counts_are_not_claimed_to_be_anonymous() -> None:
    with pytest.raises(ReleaseError):
        Release.from_json(altered(lambda document: document["ensembles"][0].update(noise=["2"])))


@pytest.mark.parametrize(
    "fields", [{"neighbours": "add or remove one row"}, {"unit": "person"}, {"assumptions": []}, {"assumptions": ["it is 1-DP"]}], ids=str
)
def test_the_rest_of_the_certificate_is_what_such_a_release_says(fields: dict[str, Any]) -> None:
    with pytest.raises(ReleaseError):
        Release.from_json(altered(claim(**fields)))


def test_counts_of_inner_nodes_are_not_in_it() -> None:
    """A tree that counts every node by itself tells, by difference, of persons on no path."""

    def nodes(document: Any) -> None:
        forest = anonymous_release(pruned()).forest
        counts = forest.node_counts[0].copy()
        counts[0, 0] += 1  # one person at the root
        document["measured"] = "nodes"
        document["trees"][0]["counts"] = counts.ravel().tolist()

    with pytest.raises(ReleaseError):
        Release.from_json(altered(nodes))


def test_it_is_not_to_be_added_to_others() -> None:
    release = anonymous_release(pruned())
    table, target = small_table(50)
    frame = {**table, "class": target}
    private = PrivateRDTClassifier(small_schema(400), 1, n_estimators=1, max_depth=1, random_state=0).fit(*small_table(400)).release_
    tried: list[Callable[[], Any]] = [
        lambda: merge([release, release]),
        lambda: merge([private, release]),
        lambda: merge_columns([private, release]),
        lambda: count(release, frame, owner="me", epsilon=1),
        lambda: add_batch(release, private, False),
    ]
    for each in tried:
        with pytest.raises(HedgerowError) as raised:
            each()
        assert isinstance(raised.value, MergeError), raised.value


def test_a_private_forest_is_not_pruned() -> None:
    private = PrivateRDTClassifier(small_schema(400), 1, n_estimators=1, max_depth=1, random_state=0).fit(*small_table(400)).release_
    with pytest.raises(PlanError, match="noisy"):
        prune(private.forest, Requirement.of(5))


# ---------------------------------------------------------------- only hit and miss


def test_a_release_of_hits_tells_hit_and_miss_only(tmp_path: Path) -> None:
    found = prune(flat([[14, 6, 0], [3, 19, 5]]), Requirement.of(c=5, l=3), hits_only=True)
    assert [(g.label, g.hit, g.miss) for g in found.groups] == [(0, 14, 6), (1, 19, 8)]
    release = anonymous_release(found)
    assert release.forest.counts[0].tolist() == [[14, 3, 3], [4, 19, 4]]
    assert any("only hit and miss" in said for said in release.certificate.assumptions)
    release.save(tmp_path / "tree.json")
    assert Release.load(tmp_path / "tree.json").forest.counts[0].tolist() == [[14, 3, 3], [4, 19, 4]]
    assert not any("only hit and miss" in said for said in anonymous_release(pruned()).certificate.assumptions)


def test_a_release_of_hits_with_odd_misses_can_be_loaded() -> None:
    found = prune(flat([[17, 4, 3], [17, 7, 0]]), Requirement.of(c=5, l=3), hits_only=True)
    if not found.empty:
        Release.from_json(anonymous_release(found).to_json())


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), min_size=4, max_size=4), min_size=2, max_size=4), st.data())
def test_published_hits(counts: list[list[int]], data: Any) -> None:
    """Without a demand on diversity (see above) the published counts always satisfy what was required."""
    required = data.draw(st.builds(Requirement.of, st.integers(1, 60)))
    found = prune(flat(counts), required, hits_only=True)
    if found.empty:
        return
    published = found.forest.counts[0]
    assert published.sum() == np.sum(counts)
    assert (published >= 0).all()
    for group, row in zip(found.groups, published, strict=True):
        others = np.delete(row, group.label)
        assert others.max() - others.min() <= 1
        assert row.sum() == pytest.approx(group.total)
        assert abs(row[group.label] - group.hit) <= 0.5 + 1e-9
    assert Release.from_json(anonymous_release(found).to_json()).forest.counts[0].tolist() == published.tolist()


def test_a_score_of_an_anonymous_tree_claims_no_epsilon() -> None:
    """Its structure was chosen by looking at rows, and its counts are exact: only the score itself is noised."""
    score = private_score(anonymous_release(pruned()), *small_table(50), epsilon=1)
    assert (score.certificate.guarantee, score.certificate.epsilon) == ("none", None)
    assert "no ε of its own" in score.certificate.reason


def test_estimated_hits_satisfy_as_whole_persons_too() -> None:
    found = prune(flat([[1, 2, 0], [2, 0, 0], [1, 2, 2]]), Requirement.of(c="1.5", l=2), hits_only=True)
    if not found.empty:
        Release.from_json(anonymous_release(found).to_json())
