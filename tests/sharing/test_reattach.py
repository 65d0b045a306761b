"""ATP with the rows at hand: failing leaves are joined to siblings that go on asking, and every path is measured again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from hedgerow import LocalTreeClassifier
from hedgerow.anonymity.requirement import Requirement
from hedgerow.cli import app
from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.schema import Schema
from hedgerow.sharing.advice import why_empty
from hedgerow.sharing.anonymous_release import anonymous_release
from hedgerow.sharing.measure import measure
from hedgerow.sharing.pipeline import publish
from hedgerow.sharing.prune import BEST, NEEDED, REATTACH, prune
from hedgerow.trees.routing import route

SCHEMA = Schema([Categorical("a", ("x", "y")), Categorical("b", ("u", "v", "w")), Numeric("n", 0, 8)], Target("c", ("no", "yes", "maybe")))


def table(seed: int, n: int, sure: float) -> tuple[dict[str, Any], Any]:
    """Classes that the columns nearly tell; some values are missing or not declared."""
    rng = np.random.default_rng(seed)
    a, b, number = rng.choice(["x", "y", "z"], n, p=[0.5, 0.45, 0.05]), rng.choice(["u", "v", "w"], n), rng.uniform(0, 8, n)
    told = np.where(a == "x", "yes", np.where((b == "u") & (number > 4), "maybe", "no"))
    return {"a": a, "b": b, "n": number}, np.where(rng.random(n) < sure, told, rng.choice(["no", "yes", "maybe"], n))


def grown(seed: int, n: int, sure: float) -> tuple[Any, Any]:
    X, y = table(seed, n, sure)
    forest = LocalTreeClassifier(SCHEMA, confidence=None).fit(X, y).release_.forest
    return forest, (forest.codebook.encode(X), forest.codebook.encode_classes(y))


requirements = st.one_of(
    st.integers(1, 40).map(lambda k: Requirement.of(k)),
    st.tuples(st.sampled_from(["1.5", "3", "8", "20"]), st.integers(2, 3)).map(lambda pair: Requirement.of(c=pair[0], l=pair[1])),
    st.tuples(st.sampled_from(["0.5", "0.9"]), st.integers(1, 20)).map(lambda pair: Requirement.of(k=pair[1], alpha=pair[0])),
)


@given(st.integers(0, 10_000), st.integers(30, 400), st.sampled_from([0.6, 0.9, 1.0]), requirements, st.booleans())
def test_every_path_is_measured_and_satisfies(seed: int, n: int, sure: float, required: Requirement, hits: bool) -> None:
    """What is published are the counts of the rows in its own leaves: nobody is invented, nobody counted twice."""
    forest, rows = grown(seed, n, sure)
    for siblings in (REATTACH, BEST):
        found = prune(forest, required, siblings=siblings, hits_only=hits, rows=rows)
        if found.empty:
            continue
        assert measure(found.paths, required).satisfied
        assert len(found.groups) >= 2
        if siblings == REATTACH:
            assert found.tree is not None
            place = route(found.tree, rows[0])
            for leaf, group in zip(found.tree.leaves, found.groups, strict=True):
                counts = np.bincount(rows[1][place == leaf], minlength=4)[:3]
                assert (group.hit, group.total) == (counts.max(), counts.sum())
                assert group.counts is None if hits else np.asarray(group.counts).tolist() == counts.tolist()
        again = prune(forest, required, siblings=siblings, hits_only=hits, rows=rows)
        assert [group.total for group in again.groups] == [group.total for group in found.groups]


@given(st.integers(0, 10_000), st.integers(30, 300), st.sampled_from([0.6, 0.9, 1.0]), requirements)
def test_the_best_leaves_as_many_in_their_class_as_either(seed: int, n: int, sure: float, required: Requirement) -> None:
    forest, rows = grown(seed, n, sure)

    def right(siblings: str, given: Any) -> float:
        return sum(group.hit for group in prune(forest, required, siblings=siblings, rows=given).groups)

    assert right(BEST, rows) == max(right(NEEDED, None), right(REATTACH, rows))


def test_one_pure_branch_does_not_take_the_tree_with_it() -> None:
    """a = x is pure: the paper's merge makes one leaf of the whole tree; here its persons go on down the other branch."""
    rng = np.random.default_rng(0)
    n = 600
    a, b = rng.choice(["x", "y"], n), rng.choice(["u", "v", "w"], n)
    y = np.where(a == "x", "yes", np.where(rng.random(n) < np.where(b == "u", 0.8, 0.2), "no", "maybe"))
    X = {"a": a, "b": b, "n": np.full(n, 1.0)}
    forest = LocalTreeClassifier(SCHEMA).fit(X, y).release_.forest
    assert forest.trees[0].attribute[0] == 0
    rows = forest.codebook.encode(X), forest.codebook.encode_classes(y)
    required = Requirement(c=Fraction(5), l=2)
    assert prune(forest, required).empty
    found = prune(forest, required, siblings=REATTACH, rows=rows)
    assert found.tree is not None
    assert set(found.tree.attribute[found.tree.attribute >= 0]) == {1}
    assert sum(group.total for group in found.groups) == n
    assert "a" in {cut.attribute for cut in found.cuts}
    assert anonymous_release(found).certificate.guarantee


def test_rows_are_needed_and_must_be_those_of_the_tree() -> None:
    forest, rows = grown(1, 200, 0.9)
    for siblings in (REATTACH, BEST):
        with pytest.raises(PlanError, match="need the rows"):
            prune(forest, Requirement.of(5), siblings=siblings)
    with pytest.raises(PlanError, match="need the rows"):
        prune(forest, Requirement.of(5), siblings=NEEDED, rows=rows)
    with pytest.raises(PlanError, match="not those that the tree was learnt from"):
        prune(forest, Requirement.of(5), siblings=REATTACH, rows=(rows[0][:100], rows[1][:100]))


def test_why_the_tree_is_empty_and_what_would_be_enough() -> None:
    forest, rows = grown(2, 300, 0.8)
    assert "All persons together" in why_empty(forest, Requirement.of(1_000), NEEDED, False)
    required = Requirement.of(c="1.5", l=2)
    assert prune(forest, required, siblings=BEST, rows=rows).empty
    assert "--table" in why_empty(forest, required, NEEDED, False)
    said = why_empty(forest, required, BEST, False, rows)
    assert "leaves a tree" in said
    enough = Requirement.of(c=said.split("(")[1].split(",")[0], l=2)
    assert not prune(forest, enough, siblings=BEST, rows=rows).empty


def test_where_persons_are_limited_branches_are_merged_as_needed() -> None:
    X, y = table(3, 400, 0.8)
    schema = Schema(SCHEMA.attributes, SCHEMA.target, person="id", rows_per_person=1)
    published = publish(X | {"id": np.arange(400) // 4}, y, schema, Requirement.of(5))
    assert published.pruned is not None
    assert sum(group.total for group in published.pruned.groups) <= 100


def test_from_the_command_line(tmp_path: Path) -> None:
    run = CliRunner().invoke
    run(app, ["demo", "--tables", str(tmp_path / "o"), "--rows", "2000"], catch_exceptions=False)
    office, tree = tmp_path / "o" / "office-a.csv", tmp_path / "tree.json"
    schema = ["--schema", str(tmp_path / "o" / "schema.toml")]
    assert run(app, ["fit", str(office), *schema, "--algorithm", "local-tree", "-o", str(tree)]).exit_code == 0
    words = ["anonymity", "prune", str(tree), "-c", "5", "-l", "2"]
    plain = run(app, [*words, "-o", str(tmp_path / "plain.json")])
    kept = run(app, [*words, "--table", str(office), "-o", str(tmp_path / "kept.json")])
    assert kept.exit_code == 0, kept.output
    assert plain.exit_code in (0, 1)
    assert run(app, ["anonymity", "check", str(tmp_path / "kept.json"), "-c", "5", "-l", "2"]).exit_code == 0
    other = run(app, [*words, "--table", str(tmp_path / "o" / "office-b.csv"), "-o", str(tmp_path / "x.json")])
    assert other.exit_code != 0
    assert "not those that the tree was learnt from" in other.output
    assert not (tmp_path / "x.json").exists()
    impossible = run(app, ["anonymity", "prune", str(tree), "-k", "5000", "-o", str(tmp_path / "x.json")])
    assert impossible.exit_code == 1
    assert "All persons together" in impossible.output
