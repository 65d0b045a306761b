"""Rule sets: what is taken and what is refused, what pruning may and may not do, files that say the same, and pseudo-data."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_rules, disjoint_rules, forests, requirements

import hedgerow
from hedgerow import LocalTreeClassifier, PrivateRDTClassifier, Release, RuleSet, pseudo_data
from hedgerow.anonymity.requirement import Requirement
from hedgerow.datasets import patients
from hedgerow.errors import HedgerowError, PlanError, ReleaseError, SchemaError
from hedgerow.release.certificate import no_certificate
from hedgerow.release.files import with_hash
from hedgerow.release.signing import load_private_key, make_key
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.schema import Schema
from hedgerow.sharing.anonymous_release import anonymous_release
from hedgerow.sharing.measure import measure
from hedgerow.sharing.prune import prune
from hedgerow.sharing.rules.disjoint import check_disjoint, overlap
from hedgerow.sharing.rules.files import RuleSetDocument, document_of
from hedgerow.sharing.rules.prune import prune_rules
from hedgerow.sharing.rules.reading import paths_of_rules, rules_of_paths
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.paths import Paths, paths_of
from hedgerow.trees.tree import TreeBuilder

SHOP = Schema(
    [Categorical("a", ["x", "y", "z"]), Categorical("b", [0, 1]), Numeric("n", 0, 100, missing="unknown")], Target("t", ["p", "q"])
)
X0, Y0, B1 = {"a": "x", "b": 0}, {"a": ["y"], "b": [0]}, {"b": 1}


def shop(*rules: tuple[Any, Any], bins: int = 4) -> RuleSet:
    """Rules as (conditions, counts of p and q)."""
    return RuleSet.of(SHOP, [{"if": conditions, "counts": {"p": p, "q": q}} for conditions, (p, q) in rules], bins)


def every_row(sizes: tuple[int, ...]) -> np.ndarray:
    return np.array(list(itertools.product(*map(range, sizes))), dtype=np.uint8).reshape(-1, len(sizes))


def allows(paths: Paths) -> np.ndarray:
    """(rows of codes, rules): whether the rule allows the row, by going through all of them."""
    codes = every_row(paths.codebook.sizes)
    found = np.ones((len(codes), len(paths)), dtype=bool)
    for a in range(codes.shape[1]):
        found &= paths.allowed[:, paths.first_code[a] + codes[:, a].astype(int)].T
    return found


def good(required: Requirement, hit: float, miss: float, counts: Any) -> bool:
    """The requirement once more, with exact fractions."""
    hits, misses = Fraction(hit), Fraction(miss)
    total = hits + misses
    if required.k is not None and total < required.k:
        return False
    if required.alpha is not None and (total == 0 or hits / total > required.alpha):
        return False
    if required.c is not None and required.l is not None:
        if counts is not None:
            falling = sorted((int(x) for x in counts), reverse=True)
            return falling[0] < required.c * sum(falling[required.l - 1 :])
        return required.l <= misses + 1 and hits < required.c * misses / (required.l - 1)
    return True


# ---------------------------------------------------------------- rules


def test_rules_become_paths() -> None:
    paths = shop(
        ({"a": ["x"], "n": {"low": 0, "high": 50}}, (5, 3)),
        ({"a": ["y", "z"]}, (2, 4)),
        ({"a": "x", "n": [{"low": 50}, "unknown"], "b": "1.0"}, (0, 0)),
    ).paths
    assert [paths.words(i) for i in range(3)] == ["a = x and n = 0 to 50", "a in {y, z}", "a = x and b = 1 and n in {50 to 100, unknown}"]
    assert (paths.hit.tolist(), paths.miss.tolist()) == ([5, 4, 0], [3, 2, 0])


def test_what_allows_everything_asks_nothing() -> None:
    rules = shop(({"a": ["x", "y", "z"], "n": [{"low": 0, "high": 25}, {"low": 25}, "unknown"], "b": 0}, (1, 1)))
    assert rules.rules == [{"if": {"b": [0]}, "counts": {"p": 1, "q": 1}}]


def test_an_interval_without_the_missing_numbers_asks_for_a_number() -> None:
    assert shop(({"n": {"low": 0}}, (1, 1))).rules[0]["if"] == {"n": [{"low": 0, "high": 100}]}


def test_an_edge_as_it_is_shown_is_that_edge() -> None:
    rules = shop(({"n": {"high": 33.3333}}, (1, 1)), bins=3)
    assert rules.rules[0]["if"]["n"] == [{"low": 0, "high": 100 / 3}]


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([({"a": ["x"]}, (1, 1)), ({"b": [0]}, (1, 1))], r"rules 1 and 2 overlap: a = x; b = 0\. Who has a = x and b = 0 is in both"),
        ([({"a": "x"}, (1, 1)), ({"a": "y"}, (1, 1)), ({"a": ["y", "z"], "b": 0}, (1, 1))], "rules 2 and 3 overlap"),
        ([({}, (1, 1)), ({"n": {"low": 75}}, (1, 1))], "rules 1 and 2 overlap: everybody; n = 75 to 100"),
        ([({"n": {"high": 75}}, (1, 1)), ({"n": {"low": 50}}, (1, 1))], "Who has n = 50 to 75 is in both"),
        ([({"c": ["x"]}, (1, 1))], "rule 1: 'c' is no attribute of the schema; expected one of a, b, n"),
        ([({"a": ["w"]}, (1, 1))], "rule 1: 'w' is no value of 'a'; expected one of x, y, z"),
        ([({"a": [["x"]]}, (1, 1))], "is no value of 'a'"),
        ([({"a": {"low": 0}}, (1, 1))], "is no value of 'a'"),
        ([({"a": None}, (1, 1))], "None is no value of 'a'"),
        ([({"a": []}, (1, 1))], "rule 1: got no value of 'a'; expected at least one"),
        ([(X0, (1, 1)), ({"b": 1, "n": {"low": 60, "high": 40}}, (1, 1))], "rule 2: 'n' from 60 to 40; expected low below high"),
        ([({"n": {"low": 50, "high": 50}}, (1, 1))], "expected low below high"),
        ([({"n": {"high": 33}}, (1, 1))], r"33 lies inside a cell of 'n'; .* nearest edges are 25 and 50.*bins, now 4"),
        ([({"n": {"low": -1}}, (1, 1))], "-1 is no 'n'; expected numbers from 0 to 100"),
        ([({"n": {"high": 101}}, (1, 1))], "101 is no 'n'"),
        ([({"n": {"low": "0"}}, (1, 1))], "low of 'n': got '0'; expected a finite number"),
        ([({"n": {"low": float("nan")}}, (1, 1))], "expected a finite number"),
        ([({"n": {"high": 10**400}}, (1, 1))], "expected a finite number"),
        ([({"n": {"low": True}}, (1, 1))], "expected a finite number"),
        ([({"n": 50}, (1, 1))], r"got 50 for the number 'n'; expected .*'unknown'"),
        ([({"n": {}}, (1, 1))], "for the number 'n'"),
        ([({"n": {"low": 0, "top": 50}}, (1, 1))], "for the number 'n'"),
        ([({"a": "x"}, (1.0, 1))], r"rule 1: persons of class 'p': got 1\.0; expected a whole number"),
        ([({"a": "x"}, (1, -1))], "persons of class 'q': got -1"),
        ([({"a": "x"}, (1, True))], "got True; expected a whole number"),
        ([({"a": "x"}, ("1", 1))], "got '1'; expected a whole number"),
        ([({"a": "x"}, (None, 1))], "expected a whole number"),
        ([({"a": "x"}, (float("inf"), 1))], "expected a whole number"),
        ([({"a": "x"}, (2**70, 1))], "expected a whole number"),
    ],
)
def test_bad_rules(rules: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        shop(*rules)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([], "got a list of 0; expected a list of 1 to"),
        ("rules", "got 'rules'; expected a list"),
        ([3], "rule 1: got 3; expected"),
        ([{"if": {}}], "rule 1: got the fields 'if'; expected"),
        ([{"if": [], "counts": {"p": 1, "q": 1}}], "rule 1: got the fields"),
        ([{"if": {}, "counts": {"p": 1, "q": 1}, "weight": 2}], "'weight'"),
        ([{"if": {}, "counts": [1, 1]}], "as counts; expected the persons of each class"),
        ([{"if": {}, "counts": {"p": 1}}], "got no count of the class 'q'; .* Say 0"),
        ([{"if": {}, "counts": {"p": 1, "q": 1, "r": 1}}], "'r' is no class; expected one of p, q"),
        ([{"if": {}, "class": "r", "hit": 1, "miss": 1}], "'r' is no class"),
        ([{"if": {}, "class": ["p"], "hit": 1, "miss": 1}], "is no class"),
        ([{"if": {}, "class": "p", "hit": 1.5, "miss": 1}], "rule 1: hit: got 1.5"),
        ([{"if": {}, "class": "p", "hit": 2, "miss": 3}], "with 2 classes another one must be larger"),
        ([{"if": {}, "class": "p", "hit": 2, "miss": 3, "counts": {}}], "got the fields"),
        (
            [{"if": {"b": 0}, "class": "p", "hit": 2, "miss": 2}, {"if": {"b": 1}, "counts": {"p": 1, "q": 1}}],
            "rule 2 has counts of all classes, rule 1 only hit and miss",
        ),
    ],
)
def test_bad_forms(rules: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        RuleSet.of(SHOP, rules, 4)


@settings(deadline=None, max_examples=50)
@given(any_rules())
def test_rules_are_refused_if_and_only_if_somebody_may_be_in_two(paths: Paths) -> None:
    inside = allows(paths)
    together = inside.T.astype(int) @ inside.astype(int)
    pairs = [(i, j) for i in range(len(paths)) for j in range(i + 1, len(paths)) if together[i, j]]
    assert overlap(paths) == (pairs[0] if pairs else None)
    if pairs:
        with pytest.raises(PlanError, match=f"rules {pairs[0][0] + 1} and {pairs[0][1] + 1} overlap"):
            RuleSet(paths)
    else:
        check_disjoint(paths)


def test_many_rules_are_compared_in_blocks() -> None:
    schema = Schema([Categorical("a", list(range(1300)))], Target("t", ["p", "q"]))
    one = {"counts": {"p": 1, "q": 1}}
    rules = [{"if": {"a": i}, **one} for i in range(1299)]
    assert len(RuleSet.of(schema, rules)) == 1299
    with pytest.raises(PlanError, match="rules 1100 and 1300 overlap"):
        RuleSet.of(schema, [*rules, {"if": {"a": [1299, 1099]}, **one}])


# ---------------------------------------------------------------- pruning


@settings(deadline=None, max_examples=100)
@given(disjoint_rules(), st.data(), st.booleans())
def test_what_every_pruned_rule_set_is(before: Paths, data: Any, hits: bool) -> None:
    counts = before.counts
    assert counts is not None
    required = data.draw(requirements(before.codebook.n_classes))
    given_ = replace(before, counts=None) if hits else before
    found = prune_rules(given_, required)
    after = found.paths
    assert measure(after, required).satisfied
    told = [None] * len(after) if after.counts is None else after.counts
    assert all(good(required, *each) for each in zip(after.hit, after.miss, told, strict=True))
    assert all(step.why and step.words() for step in found.steps)
    # nobody is invented: each rule is a union of rules, with all their persons and nobody else, and nobody is in two
    was, is_ = allows(before), allows(after)
    assert (is_.sum(axis=1) <= 1).all()
    for rule in range(len(after)):
        inside = [i for i in range(len(before)) if was[is_[:, rule], i].any()]
        assert np.array_equal(was[:, inside].any(axis=1), is_[:, rule])
        assert after.totals[rule] == counts[inside].sum()
        if not hits:
            assert after.counts is not None
            assert np.array_equal(after.counts[rule], counts[inside].sum(axis=0))
    left_out = sum(step.persons for step in found.left_out)
    assert after.totals.sum() + left_out == before.totals.sum()
    if measure(given_, required).satisfied and not hits:
        assert (found.steps, np.array_equal(after.allowed, before.allowed)) == ((), True)
    again = prune_rules(after, required)
    assert again.steps == ()
    if found.empty:
        with pytest.raises(ReleaseError, match="nothing to share"):
            _ = found.rule_set
        return
    shared = found.rule_set
    assert shared.certificate.guarantee == "anonymity"
    assert shared.certificate.epsilon is None
    assert shared.certificate.by_hits == hits


@settings(deadline=None, max_examples=50)
@given(disjoint_rules(), st.data(), st.booleans())
def test_what_was_saved_is_what_is_read(tmp_path_factory: Any, paths: Paths, data: Any, hits: bool) -> None:
    path = tmp_path_factory.mktemp("rules") / "rules.json"
    rules = RuleSet(replace(paths, counts=None) if hits and (paths.hit >= paths.miss).all() else paths)
    pruned = prune_rules(rules.paths, data.draw(requirements(paths.codebook.n_classes)))
    for each in [rules] if pruned.empty else [rules, pruned.rule_set]:
        each.save(path)
        read = RuleSet.load(path)
        assert read.rules == each.rules
        assert (read.content_hash, read.certificate, read.schema) == (each.content_hash, each.certificate, each.schema)
        for name in ("allowed", "asked", "label", "hit", "miss", "counts"):
            assert np.array_equal(getattr(read.paths, name), getattr(each.paths, name)), name
        plain = {"rules": json.loads(json.dumps(each.rules)), "bins": each.codebook.bins}
        path.write_text(json.dumps(plain))
        assert RuleSet.load(path, each.schema).rules == each.rules


@settings(deadline=None, max_examples=50)
@given(forests())
def test_the_paths_of_a_tree_are_disjoint_rules(forest: CountedForest) -> None:
    exact = CountedForest(forest.codebook, forest.trees[:1], (np.abs(forest.counts[0]),))
    rules = RuleSet.from_release(Release(exact, no_certificate("a test"), algorithm="local tree", vote="summed counts"))
    paths = paths_of(exact)
    inside, own = allows(paths), allows(rules.paths)
    there = inside.any(axis=0)  # a path whose questions contradict each other is no rule
    assert np.array_equal(inside[:, there], own)
    assert np.array_equal(paths.counts[there] if paths.counts is not None else None, rules.paths.counts)
    assert rules_of_paths(paths_of_rules(rules.codebook, rules.rules)) == rules.rules


def test_kin_are_merged() -> None:
    pruned = shop((X0, (1, 0)), (Y0, (4, 1)), (B1, (9, 9))).prune(5)
    assert sorted(pruned.paths.totals.tolist()) == [6, 18]
    assert [step.words() for step in pruned.steps] == [
        "a = x and b = 0: merged into a in {x, y} and b = 0 (1 persons, fewer than 5); 6 persons together"
    ]


def test_rules_that_fill_a_larger_one_are_merged_into_it() -> None:
    """As a leaf of a tree is merged with the subtree beside it. What lies elsewhere stays."""
    rules = shop(
        ({"a": "x"}, (1, 0)),
        ({"a": "y", "b": 0}, (30, 30)), ({"a": "y", "b": 1}, (20, 20)),
        ({"a": "z", "b": 0}, (50, 50)), ({"a": "z", "b": 1}, (50, 50)),
    )  # fmt: skip
    pruned = rules.prune(5)
    assert pruned.left_out == ()
    assert sorted(zip([pruned.paths.words(i) for i in range(3)], pruned.paths.totals.tolist(), strict=True)) == [
        ("a = z and b = 0", 100), ("a = z and b = 1", 100), ("a in {x, y}", 101),
    ]  # fmt: skip


def test_a_rule_that_makes_no_rule_with_others_is_left_out() -> None:
    rules = shop((X0, (1, 0)), ({"a": "y", "b": 1}, (9, 9)))
    pruned = rules.prune(5)
    assert pruned.paths.totals.tolist() == [18]
    assert [step.words() for step in pruned.left_out] == [
        "a = x and b = 0: left out with 1 persons (1 persons, fewer than 5); it makes no rule with others"
    ]
    assert rules.prune(50).empty


def test_the_nearest_is_merged() -> None:
    cells = shop(*(({"n": {"low": 25 * i, "high": 25 * i + 25}}, (size, size)) for i, size in enumerate([9, 9, 1, 8])))
    assert "n = 50 to 100" in [cells.prune(5).paths.words(i) for i in range(3)]  # both neighbours are near: the smaller one
    taxonomy = {"x": "u", "y": "v", "z": "u", "u": "top", "v": "top"}
    schema = Schema([Categorical("a", ["x", "y", "z"], taxonomy=taxonomy)], Target("t", ["p", "q"]))
    rules = [{"if": {"a": a}, "counts": {"p": n, "q": n}} for a, n in (("x", 1), ("y", 5), ("z", 50))]
    assert "a in {x, z}" in [RuleSet.of(schema, rules).prune(5).paths.words(i) for i in range(2)]


def test_nobody_is_nothing_to_share() -> None:
    everybody = shop((X0, (50, 50)), ({"a": ["y", "z"], "b": 0}, (1, 0)), (B1, (1, 1))).prune(60)
    assert len(everybody.paths) == 1
    assert everybody.empty  # one rule that asks nothing tells the classes of the table, and is no model


def test_hits_are_whole_persons() -> None:
    """Eq. 1 gives 1.5 hits of 4 persons, which is (1, 2)-diverse; the 2 of 4 that would be published are not."""
    schema = Schema([Categorical("a", ["w", "x", "y", "z"])], Target("t", ["p", "q", "r"]))
    persons = (("w", "r", 3, 5), ("x", "p", 1, 1), ("y", "q", 1, 1), ("z", "r", 3, 5))
    pruned = RuleSet.of(schema, [{"if": {"a": a}, "class": c, "hit": h, "miss": m} for a, c, h, m in persons]).prune(c=1, l=2)
    assert [step.into for step in pruned.steps] == ["a in {x, y}", "a in {w, x, y}"]
    assert pruned.steps[1].why.startswith("in whole persons: hit 2 is not below")
    assert pruned.rule_set.rules[0] == {"if": {"a": ["w", "x", "y"]}, "class": "p", "hit": 4, "miss": 8}
    assert "by its hit and miss" in pruned.rule_set.certificate.sentence()


def test_pruned_as_a_tree_is() -> None:
    """On a tree whose branches lie beside each other, rules and tree are pruned alike."""
    table = patients(2_000, seed=3)
    model = LocalTreeClassifier(table.schema).fit(table.X, table.y)
    rules = RuleSet.from_release(model.release_)
    assert np.array_equal(rules.predict(dict(table.columns)), model.predict(dict(table.columns)))
    pruned, tree = rules.prune(40), prune(model.release_.forest, Requirement.of(40))
    assert pruned.left_out == ()
    assert pruned.paths.totals.sum() == 2_000
    assert 0.5 < len(pruned.paths) / len(tree.groups) < 2


# ---------------------------------------------------------------- from trees


def tree_release(counts: Any, noise: Any = (), trees: int = 1) -> Release:
    builder = TreeBuilder(RuleSet.of(SHOP, [{"if": {}, "counts": {"p": 1, "q": 1}}], 4).codebook.sizes)
    builder.split(0, 0)
    codebook = shop((X0, (1, 1))).codebook
    forest = CountedForest(codebook, (builder.build(),) * trees, (np.array(counts),) * trees, noise)
    return Release(forest, no_certificate("a test"), algorithm="local tree", vote="summed counts")


def test_a_pruned_tree_keeps_its_anonymity_as_rules() -> None:
    for hits in (False, True):
        shared = anonymous_release(prune(tree_release([[14, 6], [3, 19], [1, 1]]).forest, Requirement.of(5), hits_only=hits))
        rules = RuleSet.from_release(shared)
        assert rules.certificate.requirement == shared.certificate.requirement
        assert (rules.paths.counts is None) == hits
        document_of(rules)  # measured again


def test_thresholds_that_follow_rows_are_said_and_only_those_that_are_asked_are_shared(tmp_path: Path) -> None:
    table = patients(1_500, seed=3)
    tree = LocalTreeClassifier(table.schema, bins="values").fit(table.X, table.y).release_
    rules = RuleSet.from_release(tree)
    assert rules.at_values
    rules.save(tmp_path / "rules.json")
    pruned = RuleSet.load(tmp_path / "rules.json").prune(60)
    shared = pruned.rule_set
    shared.save(tmp_path / "shared.json")
    read = RuleSet.load(tmp_path / "shared.json")
    assert read.rules == shared.rules == rules_of_paths(pruned.paths)  # the same rules, over fewer cells
    assert np.array_equal(shared.predict(dict(table.columns)), RuleSet(pruned.paths).predict(dict(table.columns)))
    assert any("between values of two persons" in said for said in read.certificate.assumptions)
    for entry in read.schema.attributes:
        if isinstance(entry, Numeric):
            ends = {number for rule in read.rules for each in rule["if"].get(entry.name, []) for number in each.values()}
            assert set(entry.edges or ()) <= ends | {entry.low, entry.high}
    assert sum(read.codebook.sizes) < sum(rules.codebook.sizes)
    quiet = msgspec.structs.replace(document_of(shared), at_values=msgspec.UNSET)  # it may not be kept quiet
    (tmp_path / "quiet.json").write_bytes(msgspec.json.encode(with_hash(quiet)))
    with pytest.raises(ReleaseError, match="in other words"):
        RuleSet.load(tmp_path / "quiet.json")
    public = RuleSet.from_release(LocalTreeClassifier(table.schema).fit(table.X, table.y).release_)
    assert not public.at_values
    made = pseudo_data([shared, public], seed=1)
    assert len(made.target) == 3_000


@pytest.mark.parametrize(
    ("release", "says"),
    [
        (lambda: tree_release([[1, 1], [1, 1], [1, 1]], (Fraction(2),)), "the counts are noisy"),
        (lambda: tree_release([[1, 1], [1, 1], [1, 1]], trees=2), "got 2 trees, whose paths overlap"),
        (lambda: tree_release([[1, -1], [1, 1], [1, 1]]), "a count is below 0"),
    ],
)
def test_what_is_no_rule_set(release: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        RuleSet.from_release(release())


# ---------------------------------------------------------------- files


def test_the_two_plain_forms_say_the_same(tmp_path: Path) -> None:
    lines = ["n,a,t=q,t=p", "0 to 50|unknown,x,3,5", "50 to 100,x,0,1", "", ",y | z,4,2"]
    (tmp_path / "rules.csv").write_text("\n".join(lines) + "\n")
    by_csv = RuleSet.load(tmp_path / "rules.csv", SHOP, 4)
    expected = shop(
        ({"a": "x", "n": [{"high": 50}, "unknown"]}, (5, 3)), ({"a": "x", "n": {"low": 50}}, (1, 0)), ({"a": ["y", "z"]}, (2, 4))
    )
    assert by_csv.rules == expected.rules
    (tmp_path / "hits.CSV").write_text("\ufeffa,t,hit,miss\r\nx,p,5,3\r\n", encoding="utf-8")
    assert RuleSet.load(tmp_path / "hits.CSV", SHOP).rules == [{"if": {"a": ["x"]}, "class": "p", "hit": 5, "miss": 3}]


def test_a_value_may_hold_what_divides_values(tmp_path: Path) -> None:
    schema = Schema([Categorical("a", ["x|y", "x", "y"])], Target("t", ["p", "q"]))
    (tmp_path / "rules.csv").write_text("a,t=p,t=q\nx|y,1,1\n")
    assert RuleSet.load(tmp_path / "rules.csv", schema).rules[0]["if"] == {"a": ["x|y"]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("a,t=p,t=q\n", "got a list of 0"),
        ("a,c,t=p,t=q\nx,,1,1\n", "the column 'c' is no attribute of the schema"),
        ("a,t=p\nx,1\n", "got the columns of persons t=p; expected t=p, t=q; or t, hit, miss"),
        ("a,t=p,t=q,hit\nx,1,1,1\n", "got the columns of persons"),
        ("a,a,t=p,t=q\nx,y,1,1\n", "the column 'a' is there twice"),
        ("a,t=p,t=q\nx,1\n", "rule 1: got 2 cells; the header has 3"),
        ("a,t=p,t=q\nx,1.0,1\n", "rule 1: t=p: got '1.0'; expected a whole number"),
        ("a,t=p,t=q\nx,-1,1\n", "expected a whole number"),
        ("a,t=p,t=q\nx,,1\n", "expected a whole number"),
        ("a,t=p,t=q\nw,1,1\n", "'w' is no value of 'a'"),
        ("n,t=p,t=q\n50 to 0,1,1\n", "from 50 to 0; expected low below high"),
        ("n,t=p,t=q\n0-50,1,1\n", "got '0-50' for the number 'n'"),
        ("n,t=p,t=q\nnan to 50,1,1\n", "expected a finite number"),
        ("n,t=p,t=q\n0 to 33,1,1\n", "nearest edges are 25 and 50"),
        ('a,t=p,t=q\n"x,1,1\n', "no sound CSV"),
    ],
)
def test_bad_csv(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.csv"
    path.write_text(text)
    with pytest.raises(PlanError, match=says) as refused:
        RuleSet.load(path, SHOP, 4)
    assert str(refused.value).startswith(str(path))


def test_csv_columns_that_could_be_two_things(tmp_path: Path) -> None:
    schema = Schema([Categorical("hit", ["x", "y"])], Target("t", ["p", "q"]))
    (tmp_path / "rules.csv").write_text("hit,t=p,t=q\nx,1,1\n")
    with pytest.raises(PlanError, match="'hit' has the name of a column of persons"):
        RuleSet.load(tmp_path / "rules.csv", schema)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"rules": [{"if": {"a": "x", "a": "y"}, "counts": {"p": 1, "q": 1}}]}', "'a' stands twice"),
        ('{"rules": [{"if": {"a": "x"}, "counts": {"p": 1, "q": NaN}}]}', "no rule set"),
        ('{"rules": [], "weight": 1}', "got the field 'weight'; expected only bins and rules"),
        ('{"rules": [], "bins": 5}', "bins: got 4; the file itself says 5"),
        ('{"rules": {"if": {}}}', "expected a list of 1 to"),
        ('{"rules": null}', "got None; expected a list"),
        ("[1]", "no rule set"),
        ('{"rules": [', "no rule set"),
        ("{}", "no rule set"),
        ('{"format": "hedgerow-release", "rules": []}', "no rule set"),
    ],
)
def test_bad_json(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(text)
    with pytest.raises(HedgerowError, match=says):
        RuleSet.load(path, SHOP, 4)


def test_plain_rules_need_a_schema_and_ours_refuse_another(tmp_path: Path) -> None:
    rules, path = shop((X0, (9, 9)), (B1, (9, 9))), tmp_path / "rules.json"
    path.write_text(json.dumps({"rules": rules.rules}))
    with pytest.raises(PlanError, match="expected their schema, too"):
        RuleSet.load(path)
    rules.save(path)
    assert RuleSet.load(path, SHOP, 4).rules == rules.rules
    with pytest.raises(PlanError, match="its own schema has other columns"):
        RuleSet.load(path, Schema(SHOP.attributes, Target("t", ["p", "q", "r"])))
    with pytest.raises(PlanError, match="bins: got 5; the file itself says 4"):
        RuleSet.load(path, bins=5)
    with pytest.raises(PlanError, match=r"expected a name that ends in \.json"):
        rules.save(tmp_path / "rules.csv")
    assert not (tmp_path / "rules.csv").exists()
    with pytest.raises(ReleaseError, match="it is a rule set, not a forest"):
        Release.load(path)


def changed(document: RuleSetDocument, **changes: Any) -> bytes:
    return msgspec.json.encode(with_hash(msgspec.structs.replace(document, **changes)))


def test_a_file_is_not_believed(tmp_path: Path) -> None:
    """Each with a hash that fits: what it claims is measured, and said in one form only."""
    path = tmp_path / "rules.json"
    document = document_of(shop((X0, (9, 9)), (B1, (9, 9))).prune(10).rule_set)
    few = {"if": {"a": ["x"], "b": [0]}, "counts": {"p": 1, "q": 1}}
    private = msgspec.structs.replace(document.certificate, guarantee="epsilon-DP", epsilon="1", requirement=None)
    for changes, says in (
        ({"rules": [few]}, "claims 10-anonymity, and its rules do not satisfy that"),
        ({"rules": []}, "expected a list of 1 to"),
        ({"rules": [*document.rules, {**document.rules[0]}]}, "overlap"),
        ({"rules": [{"if": {"b": 1}, "counts": {"p": 9, "q": 9}}]}, "not written in the one form"),
        ({"rules": [{"if": {"b": [1]}, "class": "p", "hit": 10, "miss": 9}]}, "in other words"),
        ({"certificate": private}, "no rule set has"),
        ({"certificate": msgspec.structs.replace(document.certificate, reason="all is well")}, "in other words"),
        ({"certificate": msgspec.structs.replace(document.certificate, requirement={"k": "-1"})}, "not sound"),
        ({"certificate": msgspec.structs.replace(no_certificate("x"), epsilon="1")}, "in other words"),
        ({"version": 2}, "Install a newer"),
        ({"bins": 0}, "not sound"),
        ({"schema": {}}, "not sound"),
    ):
        path.write_bytes(changed(document, **changes))
        with pytest.raises(ReleaseError, match=says):
            RuleSet.load(path)
    path.write_bytes(msgspec.json.encode(document).replace(b'"p":9', b'"p":8'))
    with pytest.raises(ReleaseError, match="changed or damaged"):
        RuleSet.load(path)
    path.write_bytes(msgspec.json.encode(document))
    assert len(RuleSet.load(path)) == 2


def test_signatures(tmp_path: Path) -> None:
    make_key(tmp_path / "me.key", "me")
    rules, path = shop((X0, (9, 9)), (B1, (9, 9))), tmp_path / "rules.json"
    key = load_private_key(tmp_path / "me.key")
    rules.signed(key).signed(key).save(path)
    (signature,) = RuleSet.load(path).signatures
    forged = msgspec.structs.replace(document_of(shop((X0, (8, 9)))), signatures=[signature])
    path.write_bytes(msgspec.json.encode(forged))
    with pytest.raises(ReleaseError, match="a signature does not fit"):
        RuleSet.load(path)


def test_what_may_not_be_shared_is_not_saved(tmp_path: Path) -> None:
    """A schema that was read from rows, or several rows of a person."""
    unreviewed = Schema([replace(SHOP.attributes[0], unreviewed=True), *SHOP.attributes[1:]], SHOP.target)
    persons = Schema(SHOP.attributes, SHOP.target, person="id", rows_per_person=2)
    for schema in (unreviewed, persons):
        rules = RuleSet.of(schema, shop((X0, (9, 9)), (B1, (9, 9))).rules, 4)
        with pytest.raises(SchemaError):
            _ = rules.prune(5).rule_set


def test_what_claims_too_much_is_not_saved(tmp_path: Path) -> None:
    """Whatever made it: nothing is written that does not satisfy what it claims."""
    claimed = shop((X0, (9, 9))).prune(10).rule_set.certificate
    with pytest.raises(ReleaseError, match="do not satisfy"):
        RuleSet(shop((X0, (1, 1))).paths, claimed).save(tmp_path / "rules.json")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- use


def test_predictions() -> None:
    rules = shop((X0, (9, 1)), (B1, (3, 12)), (Y0, (0, 0)))
    table = {"a": ["x", "x", "z", "y", "w"], "b": [0, 1, 0, 0, 1], "n": [1, 2, 3, 4, None]}
    shares = rules.predict_proba(table)
    everybody = [12 / 25, 13 / 25]  # where no rule is, or nobody in it
    assert shares == pytest.approx(np.array([[0.9, 0.1], [0.2, 0.8], everybody, everybody, [0.2, 0.8]]))
    assert rules.predict(table).tolist() == ["p", "q", "q", "q", "q"]
    by_hits = RuleSet.of(SHOP, [{"if": {"b": 0}, "class": "q", "hit": 3, "miss": 1}], 4)
    assert by_hits.predict_proba({"a": ["x"], "b": [0], "n": [1]}).tolist() == [[0.25, 0.75]]
    assert len(rules.predict({"a": [], "b": [], "n": []})) == 0


@settings(deadline=None, max_examples=50)
@given(disjoint_rules(), st.integers(0, 100))
def test_pseudo_data_keep_every_rule_and_class(paths: Paths, seed: int) -> None:
    made = pseudo_data(RuleSet(paths), seed=seed)
    assert made.method == "pgen"
    assert len(made) == paths.totals.sum()
    counts = np.zeros((len(paths) + 1, paths.codebook.n_classes))
    if len(made):
        np.add.at(counts, (RuleSet(paths).vote.rule(made.codes), made.class_codes), 1)
    assert np.array_equal(counts[:-1], paths.counts)


def test_pseudo_data_of_rules_beside_trees_and_private_forests() -> None:
    table = patients(1_000, seed=3)
    tree = LocalTreeClassifier(table.schema).fit(table.X, table.y).release_
    rules = RuleSet.from_release(tree).prune(30).rule_set
    made = pseudo_data([rules, tree], seed=1)
    sources = made.certificate.sources
    assert [(source.rows, source.trees, source.guarantee) for source in sources] == [(1_000, 0, "anonymity"), (1_000, 1, "none")]
    assert made.certificate.guarantee == "none"
    alone = pseudo_data(rules, seed=1).certificate
    assert alone.statement.startswith("its source rule set satisfies its requirement (every rule satisfies 30-anonymity)")
    assert alone.diversity is not None
    private = PrivateRDTClassifier(table.schema, epsilon=1, n_estimators=2, max_depth=2).fit(table.X, table.y).release_
    mixed = pseudo_data([private, rules], 500, seed=1)
    assert (mixed.method, mixed.certificate.guarantee, len(mixed.target)) == ("forest", "none", 500)
    based = pseudo_data(rules, 300, method="basegen", seed=1)
    assert np.array_equal(rules.predict(based.columns), based.target)
    with pytest.raises(PlanError, match="twice"):
        pseudo_data([rules, rules])


@pytest.mark.parametrize(("given_", "got"), [(3, "int"), ([shop((X0, (1, 1))).paths], "Paths"), ([], "nothing"), ("rules.json", "str")])
def test_pseudo_data_of_something_else(given_: Any, got: str) -> None:
    with pytest.raises(PlanError, match=f"releases: got {got}; expected a Release or a RuleSet"):
        pseudo_data(given_)
    with pytest.raises(PlanError, match="got Paths"):
        pseudo_data(shop((X0, (1, 1))).paths)  # type: ignore[arg-type]


def test_the_public_name() -> None:
    assert hedgerow.RuleSet is RuleSet
    assert repr(shop((X0, (1, 1)))) == "RuleSet(1 rules, no privacy guarantee: exact counts of rules, as they were given)"
