"""Releases put together: rows of several tables, columns of several owners, and what the result may claim.

Counts here are made up, since merging sees released counts alone; `test_mergeable.py` counts real rows.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import codes_for, forests, small_schema, small_table
from streams import drawn_once

import hedgerow
from hedgerow import (
    DiffPID3Classifier,
    DPDFClassifier,
    HedgerowClassifier,
    ID3Classifier,
    PrivateID3Classifier,
    PrivateRDTClassifier,
    PublicPlan,
    RandomDecisionTreesClassifier,
    Release,
    SNRForestClassifier,
    merge,
    merge_columns,
)
from hedgerow.accounting.charges import counting_event
from hedgerow.accounting.loss import noise_variance, text_of_fraction
from hedgerow.errors import MergeError, MissingColumnsWarning, ReleaseError, TableError
from hedgerow.inference.confidence import signal_to_noise
from hedgerow.inference.importance import importances
from hedgerow.inference.rebuild import Accumulated, accumulated
from hedgerow.inference.rules import Rule
from hedgerow.inference.vote import MAJORITY, SummedCounts
from hedgerow.plots.draw import tree_svg, tree_text
from hedgerow.plots.report import html_report, show_page
from hedgerow.release.certificate import certificate_of, part_of
from hedgerow.release.parts import NEIGHBOURS, NEIGHBOURS_OF_PARTS, UNIT, UNIT_OF_PARTS, Part, TableName
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import CountedForest, Ensemble
from hedgerow.trees.routing import route
from hedgerow.trees.tree import NODE, Tree, TreeBuilder

ROWS = 3000
WHOLE = small_schema(ROWS)
LEFT, RIGHT, ACROSS = ("age", "shape"), ("colour", "flag"), ("flag", "age", "colour")
BOTH = pytest.mark.parametrize("algorithm", [PrivateRDTClassifier, SNRForestClassifier])

epsilons = st.fractions(Fraction(1, 9), 4, max_denominator=9)
some_tables = st.lists(st.tuples(epsilons, st.sampled_from(["", "north", "south"]), st.booleans()), min_size=1, max_size=5)


def schema_of(names: Sequence[str]) -> Schema:
    """These columns of the whole table, in this order."""
    declared = {attribute.name: attribute for attribute in WHOLE.attributes}
    return Schema([declared[name] for name in names], WHOLE.target, ROWS)


@drawn_once
def plan_of(
    algorithm: Any = PrivateRDTClassifier, columns: tuple[str, ...] = WHOLE.names, epsilon: str = "1", seed: int = 0, **more: Any
) -> PublicPlan:
    """A shared plan; for Private-RDT 4 trees of height 2, which have more than 64 counts over all columns."""
    if algorithm is PrivateRDTClassifier:
        more = {"n_estimators": 4, "max_depth": 2, **more}
    return algorithm(schema_of(columns), epsilon, random_state=seed, **more).public_plan()


def counted(
    plan: PublicPlan,
    seed: int = 0,
    *,
    epsilon: Fraction | None = None,
    batch: str | None = None,
    owner: str = "",
    disjoint: bool = False,
    secret: bool = True,
) -> Release:
    """What one owner's count of some table might have given."""
    rng = np.random.default_rng(seed)
    epsilon = plan.epsilon if epsilon is None else epsilon
    event = counting_event("leaf_counts", epsilon, queries=len(plan.trees))
    counts = [rng.integers(-9, 60, (len(tree.leaves), plan.codebook.n_classes)) for tree in plan.trees]
    part = part_of(
        [event], requested=epsilon, sampler="hedgerow", secret=secret, id=f"table {seed}", name=TableName(batch, owner, disjoint)
    )  # fmt: skip
    return plan.release_of(counts, event.scale, part)


def counted_all(plan: PublicPlan, tables: Sequence[tuple[Fraction, str, bool]], first: int = 0) -> list[Release]:
    return [
        counted(plan, first + number, epsilon=epsilon, owner=owner, disjoint=disjoint)
        for number, (epsilon, owner, disjoint) in enumerate(tables)
    ]


def changed(release: Release, **changes: Any) -> Release:
    """The same release, but for some fields."""
    same = {name: getattr(release, name) for name in ("forest", "certificate", "algorithm", "vote", "parameters", "chosen")}
    return Release(**{**same, **changes})


def renamed(release: Release, **names: str) -> Release:
    """The same counts, said to be of another table."""
    parts = [msgspec.structs.replace(part, **names) for part in release.certificate.parts]
    return changed(release, certificate=certificate_of(parts))


def in_any_steps(data: Any, releases: Sequence[Release], join: Callable[[list[Release]], Release]) -> Release:
    """All of them joined, in any order and in any grouping."""
    waiting = list(data.draw(st.permutations(releases)))
    while len(waiting) > 1:
        first = data.draw(st.integers(0, len(waiting) - 2))
        last = data.draw(st.integers(first + 2, len(waiting)))
        waiting[first:last] = [join(waiting[first:last])]
    return join(waiting)


def batches(releases: Any) -> Release:
    return merge(releases, batches=True)


def loss_by_force(parts: Sequence[Part]) -> Fraction:
    """The worst person: in every ensemble, in any set of tables of which no two are stated to have no person in common."""

    def apart(a: Part, b: Part) -> bool:
        return (a.disjoint and b.disjoint) or (a.group != "" and a.group == b.group)

    total = Fraction(0)
    for ensemble in {part.ensemble for part in parts}:
        here = [part for part in parts if part.ensemble == ensemble]
        sets = (chosen for size in range(1, len(here) + 1) for chosen in itertools.combinations(here, size))
        possible = [chosen for chosen in sets if not any(apart(a, b) for a, b in itertools.combinations(chosen, 2))]
        total += max(sum((Fraction(part.epsilon) for part in chosen), Fraction(0)) for chosen in possible)
    return total


def sums_to(merged: Release, releases: Sequence[Release]) -> bool:
    sums = [sum(each) for each in zip(*(release.forest.counts for release in releases), strict=True)]
    return all(np.array_equal(a, b) for a, b in zip(merged.forest.counts, sums, strict=True))


# ---------------------------------------------------------------- rows: the sum, in any order and by any steps


@pytest.mark.slow
@BOTH
@settings(max_examples=40)
@given(data=st.data(), tables=some_tables, stated=st.booleans())
def test_order_and_grouping_do_not_matter(algorithm: Any, data: Any, tables: list[Any], stated: bool) -> None:
    def join(some: list[Release]) -> Release:
        return merge(some, batches=True, disjoint=stated)

    releases = counted_all(plan_of(algorithm), tables)
    at_once = join(releases)
    by_steps = in_any_steps(data, releases, join)
    assert by_steps.content_hash == at_once.content_hash
    assert by_steps.to_json() == at_once.to_json()


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data(), tables=some_tables)
def test_counts_and_noises_are_those_of_all_tables(data: Any, tables: list[Any]) -> None:
    releases = counted_all(plan_of(), tables)
    merged = in_any_steps(data, releases, batches)
    assert sums_to(merged, releases)
    assert merged.forest.trees == releases[0].forest.trees
    own = {release.certificate.parts[0].key: release.forest.noise[0] for release in releases}
    assert merged.forest.noise == tuple(own[part.key] for part in merged.certificate.parts)
    assert len(merged.forest.noise) == len(releases)
    assert merged.forest.leaf_noise_sd == pytest.approx(math.sqrt(sum(noise_variance(scale) for scale in own.values())))
    again = Release.from_json(merged.to_json())
    assert (again.to_json(), again.forest.noise) == (merged.to_json(), merged.forest.noise)


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data(), tables=some_tables, stated=st.booleans())
def test_the_claim_is_the_loss_of_the_worst_person(data: Any, tables: list[Any], stated: bool) -> None:
    releases = counted_all(plan_of(), tables)
    merged = in_any_steps(data, releases, lambda some: merge(some, batches=True, disjoint=stated))
    certificate = merged.certificate
    losses = [epsilon for epsilon, _, _ in tables]
    alone = max((epsilon for epsilon, _, disjoint in tables if disjoint), default=Fraction(0))
    added = sum((epsilon for epsilon, _, disjoint in tables if not disjoint), Fraction(0))
    assert certificate.guarantee == "epsilon-DP"
    assert Fraction(certificate.epsilon) == loss_by_force(certificate.parts)
    assert Fraction(certificate.epsilon) == (max(losses) if stated else alone + added)
    assert {part.key: (Fraction(part.epsilon), part.disjoint) for part in certificate.parts} == {
        (owner, f"table {number}"): (epsilon, disjoint) for number, (epsilon, owner, disjoint) in enumerate(tables)
    }
    assert len({part.group for part in certificate.parts}) == 1
    assert {bool(part.group) for part in certificate.parts} == {stated}
    expected = (NEIGHBOURS, UNIT) if len(tables) == 1 else (NEIGHBOURS_OF_PARTS, UNIT_OF_PARTS)
    assert (certificate.neighbours, certificate.unit) == expected


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data(), tables=some_tables)
def test_no_mixture_of_statements_claims_too_little(data: Any, tables: list[Any]) -> None:
    """Owners and mergers state what they like, where they may: the claim covers the worst person, and never more than all tables."""

    def join(some: list[Release]) -> Release:
        if data.draw(st.booleans()):
            with contextlib.suppress(MergeError):
                return merge(some, batches=True, disjoint=True)
        return batches(some)

    merged = in_any_steps(data, counted_all(plan_of(), tables), join)
    parts = merged.certificate.parts
    claimed = Fraction(merged.certificate.epsilon)
    assert max(epsilon for epsilon, _, _ in tables) <= loss_by_force(parts) <= claimed <= sum(epsilon for epsilon, _, _ in tables)
    if not any(part.disjoint and part.group for part in parts):
        assert claimed == loss_by_force(parts)
    assert Release.from_json(merged.to_json()).certificate == merged.certificate


def statements(release: Release) -> list[str]:
    return [text for text in release.certificate.assumptions if "no person has rows in two of these tables" in text]


def test_who_states_what_is_written_down() -> None:
    a, b, c = (counted(plan_of(), seed, owner=name, disjoint=name != "c") for seed, name in enumerate("abc"))
    (by_owners,) = statements(merge([a, b, c]))
    assert by_owners == "each owner states that no person has rows in two of these tables: a (table 0), b (table 1)"
    assert merge([a, b, c]).certificate.epsilon == "2"
    assert "only of some tables" in merge([a, b, c]).certificate.reason
    both = merge([a, c], disjoint=True)
    (by_merger,) = statements(both)
    assert by_merger.startswith("whoever merged (statement ")
    assert by_merger.endswith("no person has rows in two of these tables: a (table 0), c (table 2)")
    assert "largest ε" in both.certificate.reason
    assert both.certificate.epsilon == "1"
    assert statements(merge([a, c])) == []  # one owner's word alone says nothing of the other's table
    assert merge([a, c]).certificate.epsilon == "2"
    nobody = batches([counted(plan_of(), seed) for seed in (0, 1)])
    assert "nobody states that persons are disjoint: the ε of the tables add up" in nobody.certificate.reason
    assert statements(nobody) == []


def test_a_merger_speaks_only_of_the_files_that_are_merged() -> None:
    """What is inside a file of several tables is its owner's to say, and a statement does not grow with later merges."""
    a, b, c, d = (counted(plan_of(), seed, owner=name) for seed, name in enumerate("abcd"))
    with pytest.raises(MergeError, match=r"two\.json holds several tables of which nobody states that they have no person in common"):
        merge([c, merge([a, b])], disjoint=True, names=["one.json", "two.json"])
    assert merge([merge([a, b], disjoint=True), c]).certificate.epsilon == "2"
    assert merge([merge([a, b], disjoint=True), merge([c, d], disjoint=True)]).certificate.epsilon == "2"
    assert merge([merge([a, b], disjoint=True), merge([c, d], disjoint=True)], disjoint=True).certificate.epsilon == "1"
    stated = [counted(plan_of(), seed, owner=name, disjoint=True) for seed, name in enumerate("abc")]
    assert merge([merge(stated[:2]), c], disjoint=True, batches=True).certificate.epsilon == "1"  # both of its owners have said so


@BOTH
def test_one_release_keeps_its_counts_and_claims(algorithm: Any) -> None:
    release = counted(plan_of(algorithm), 3, owner="north")
    alone = merge([release])
    assert alone.to_json() == release.to_json()
    assert alone.certificate == release.certificate


def test_one_table_without_a_claim_leaves_none_for_all() -> None:
    merged = merge([counted(plan_of(), 0), counted(plan_of(), 1, secret=False)])
    assert merged.certificate.guarantee == "none"
    assert merged.certificate.epsilon is None
    assert "table 1: noise came from seeded test coins" in merged.certificate.reason
    assert "table 0" not in merged.certificate.reason


def test_a_batch_and_an_owner_commute() -> None:
    a, b = counted(plan_of(), 0, owner="a"), counted(plan_of(), 1, owner="b", disjoint=True)
    batch = counted(plan_of(), 2, owner="a", batch="May", epsilon=Fraction(1, 3))
    updated_first = merge([batches([a, batch]), b])
    merged_first = batches([merge([a, b]), batch])
    assert updated_first.to_json() == merged_first.to_json()


@given(tables=some_tables.filter(lambda tables: len(tables) > 1), data=st.data())
@settings(max_examples=25)
def test_leaving_an_owner_out_is_merging_the_others(tables: list[Any], data: Any) -> None:
    releases = counted_all(plan_of(), tables)
    out = data.draw(st.integers(0, len(releases) - 1))
    others = [release for number, release in enumerate(releases) if number != out]
    whole, rest = batches(releases), in_any_steps(data, others, batches)
    for all_, one, without in zip(whole.forest.counts, releases[out].forest.counts, rest.forest.counts, strict=True):
        assert np.array_equal(all_ - one, without)
    assert f"table {out}".encode() not in rest.to_json()
    assert Fraction(rest.certificate.epsilon) <= Fraction(whole.certificate.epsilon)
    assert sum(noise_variance(scale) for scale in rest.forest.noise) < sum(noise_variance(scale) for scale in whole.forest.noise)


@BOTH
def test_nothing_that_is_merged_is_changed(algorithm: Any) -> None:
    left, right = plan_of(algorithm, LEFT), plan_of(algorithm, RIGHT)
    releases = [counted(left, 0), counted(left, 1), counted(right, 2)]
    arrays = [counts for release in releases for counts in release.forest.counts]
    before, copies = [release.to_json() for release in releases], [counts.copy() for counts in arrays]
    rows = merge(releases[:2], disjoint=True)
    merge([releases[0]])
    merge_columns([rows, releases[2]])
    merge_columns([releases[0]])
    assert [release.to_json() for release in releases] == before
    assert all(np.array_equal(a, b) for a, b in zip(arrays, copies, strict=True))
    assert not any(np.shares_memory(a, b) for a in rows.forest.counts for b in arrays)


def test_a_generator_is_read_with_few_releases_in_memory() -> None:
    """The first one is kept to compare with, the one before may still be at hand; no more, however many come."""
    plan, alive, most = plan_of(), [], []

    def one_at_a_time() -> Iterator[Release]:
        for seed in range(8):
            release = counted(plan, seed)
            alive.append(weakref.ref(release))
            most.append(sum(reference() is not None for reference in alive))
            yield release

    merged = merge(one_at_a_time())
    assert sums_to(merged, [counted(plan, seed) for seed in range(8)])
    assert max(most) <= 3


def test_signatures_that_held_stay_known() -> None:
    keys = [Ed25519PrivateKey.generate() for _ in range(2)]
    first = counted(plan_of(), 0).signed(keys[0]).signed(keys[1])
    merged = merge([first, counted(plan_of(), 1)])
    assert [part.signed_by for part in merged.certificate.parts] == [sorted(each.key for each in first.signatures), []]
    assert merged.signatures == ()
    assert merge([merged]).certificate == merged.certificate


# ---------------------------------------------------------------- rows: what is refused, and why


def another(**changes: Any) -> PublicPlan:
    """The usual plan with some fields changed."""
    return replace(plan_of(), **changes)


def another_schema(bins: int = 5, **changes: Any) -> PublicPlan:
    schema = schema_of(WHOLE.names)
    return another(codebook=Codebook(replace(schema, **changes), bins))


def another_attribute(attribute: Categorical | Numeric) -> PublicPlan:
    attributes = [attribute if old.name == attribute.name else old for old in WHOLE.attributes]
    return another_schema(attributes=attributes)


def with_another_tree(number: int) -> PublicPlan:
    trees = list(plan_of().trees)
    trees[number] = plan_of(seed=1).trees[number]
    assert trees[number] != plan_of().trees[number]
    return another(trees=tuple(trees))


OTHER_PLANS: dict[str, tuple[Callable[[], PublicPlan], str]] = {
    "another seed": (lambda: plan_of(seed=1), r"the structure of \d of 4 trees, the first of them tree 1 \(another seed\?\)"),
    "one tree": (lambda: with_another_tree(2), r"the structure of 1 of 4 trees, the first of them tree 3 "),
    "fewer trees": (lambda: another(trees=plan_of().trees[:3]), "4 trees and 3 trees"),
    "number of trees": (lambda: plan_of(n_estimators=5), "n_estimators: 4 and 5"),
    "algorithm": (lambda: plan_of(SNRForestClassifier), "algorithm: Private-RDT and SNR forest"),
    "vote": (lambda: another(vote=MAJORITY), "vote: summed counts and majority"),
    "setting": (lambda: plan_of(max_depth=1), "max_depth: 2 and 1"),
    "choice": (lambda: another(chosen={"height": 7}), "height: 2 and 7"),
    "bins": (lambda: another_schema(bins=4), "bins: 5 and 4"),
    "bounds": (lambda: another_attribute(Numeric("age", 0, 99)), "the attribute 'age' is declared differently"),
    "value": (
        lambda: another_attribute(Categorical("colour", ["red", "green", "grey"], other="other")),
        "the attribute 'colour' is declared differently",
    ),
    "order of values": (
        lambda: another_attribute(Categorical("colour", ["green", "red", "blue"], other="other")),
        "the attribute 'colour' is declared differently",
    ),
    "branch": (lambda: another_attribute(Categorical("shape", ["round", "flat"], other="unknown")), "'shape' is declared differently"),
    "True for 1": (lambda: another_attribute(Categorical("flag", [False, True])), "the attribute 'flag' is declared differently"),
    "missing": (lambda: another_schema(attributes=WHOLE.attributes[:3]), "the attributes shape are in the first only"),
    "added": (
        lambda: another_schema(attributes=[*WHOLE.attributes, Categorical("more", [1])]),
        "the attributes more are in the second only",
    ),
    "reordered": (lambda: another_schema(attributes=WHOLE.attributes[::-1]), "the order of the attributes"),
    "classes": (lambda: another_schema(target=Target("class", ["no", "maybe"])), "the classes: 'no', 'yes' and 'no', 'maybe'"),
    "order of classes": (lambda: another_schema(target=Target("class", ["yes", "no"])), "the classes: 'no', 'yes' and 'yes', 'no'"),
    "target": (lambda: another_schema(target=Target("label", ["no", "yes"])), "the target: 'class' and 'label'"),
    "planned rows": (lambda: another_schema(rows=ROWS + 1), "rows planned for: 3000 and 3001"),
    "no planned rows": (lambda: another_schema(rows=None), "rows planned for: 3000 and None"),
}


@pytest.mark.parametrize("rows", [None, 800])
@pytest.mark.parametrize("make", [HedgerowClassifier, PrivateRDTClassifier, SNRForestClassifier])
def test_forests_that_were_fitted_say_so(make: Any, rows: int | None) -> None:
    """And not a difference in signal to noise, or in their seeds."""
    first, second = (make(small_schema(rows=rows), 1, random_state=seed).fit(*small_table(800, seed=seed)).release_ for seed in (1, 2))
    with pytest.raises(MergeError, match=r"these forests were fitted, each by itself, not counted in one plan.*Use one plan") as found:
        merge([first, second])
    assert "signal to noise" not in str(found.value)


@pytest.mark.parametrize("kind", list(OTHER_PLANS))
def test_another_plan_is_refused_by_what_differs(kind: str) -> None:
    make, message = OTHER_PLANS[kind]
    ours, theirs = counted(plan_of(), 0), counted(make(), 1)
    with pytest.raises(MergeError, match=message) as found:
        merge([ours, theirs], names=["mine.json", "yours.json"])
    assert "yours.json was not counted by the plan of mine.json" in str(found.value)
    with pytest.raises(MergeError):
        merge([theirs, ours])


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (([0, 1], [False, True]), "the classes: 0, 1 and False, True"),
        pytest.param(([0, 1], ["0", "1"]), r"the classes: 0, 1 and '0', '1'"),
    ],
)
def test_classes_that_python_or_a_reader_takes_for_the_same(classes: tuple[list[Any], list[Any]], message: str) -> None:
    a, b = (another_schema(target=Target("class", values)) for values in classes)
    with pytest.raises(MergeError, match=message):
        merge([counted(a, 0), counted(b, 1)])


def test_what_differs_is_not_an_endless_list() -> None:
    names = [f"a{i}" for i in range(9)]
    a, b = (another_schema(attributes=[Categorical(name, values) for name in names]) for values in ([0, 1], [0, 2]))
    with pytest.raises(MergeError, match=r"'a4' is declared differently; and 4 more\. Count both"):
        merge([counted(a, 0), counted(b, 1)])


def test_a_target_that_is_not_reviewed_differs_by_that() -> None:
    draft = replace(WHOLE.target, unreviewed=True)
    with pytest.raises(MergeError, match="review"):
        merge([counted(plan_of(), 0), counted(another_schema(target=draft), 1)])


def test_the_same_table_is_not_counted_twice() -> None:
    a, b = counted(plan_of(), 0, owner="north"), counted(plan_of(), 1, owner="south")
    for again in ([a, b, a], [batches([a, b]), b]):
        with pytest.raises(MergeError, match=r"the table (north|south) \(table \d\) is in release \d already"):
            merge(again, batches=True)
    mine = counted(plan_of(), 2, batch="May")
    with pytest.raises(MergeError, match="the table May is in first already"):
        merge([mine, counted(plan_of(), 3, batch="May")], batches=True, names=["first"])
    assert len(merge([mine, counted(plan_of(), 3, batch="May", owner="north")]).certificate.parts) == 2


def test_an_owner_appears_again_only_with_batches() -> None:
    a, more = counted(plan_of(), 0, owner="north"), counted(plan_of(), 1, owner="north")
    with pytest.raises(MergeError, match=r"its owner 'north' is in release 1 already.*batches=True"):
        merge([a, more])
    together = batches([a, more])
    assert len(together.certificate.parts) == 2
    with pytest.raises(MergeError, match="its owner 'north'"):
        merge([counted(plan_of(), 2, owner="south"), together, counted(plan_of(), 3, owner="north")])
    assert len(merge([together, counted(plan_of(), 2, owner="south")]).certificate.parts) == 3  # its batches came in one file
    assert len(merge([counted(plan_of(), 4), counted(plan_of(), 5)]).certificate.parts) == 2  # nobody gave a name


@pytest.mark.parametrize("names", [("same", "same"), ("release 2",)])
def test_names_for_messages_do_not_weaken_a_check(names: tuple[str, ...]) -> None:
    a, more = counted(plan_of(), 0, owner="north"), counted(plan_of(), 1, owner="north")
    with pytest.raises(MergeError, match="its owner 'north'"):
        merge([a, more], names=names)
    with pytest.raises(MergeError, match="copy"):
        merge([a, renamed(a, id="other", owner="south")], names=names)


def test_a_copy_under_another_name_is_refused() -> None:
    release = counted(plan_of(), 0, owner="north")
    assert sum(counts.size for counts in release.forest.counts) >= 64
    for copy in (renamed(release, id="new"), renamed(release, owner="south"), renamed(release, id="new", owner="south")):
        with pytest.raises(MergeError, match=r"release 2 holds the very counts of release 1, noise and all"):
            merge([release, copy], batches=True)
    whole = merge([release, counted(plan_of(), 1, owner="east")])
    parts = [msgspec.structs.replace(part, owner=f"not {part.owner}") for part in whole.certificate.parts]
    with pytest.raises(MergeError, match="it is a copy"):
        merge([whole, changed(whole, certificate=certificate_of(parts))])


def test_equal_counts_by_chance_are_no_copy() -> None:
    """Few counts may well be equal, and so may counts with hardly any noise."""
    few = counted(plan_of(n_estimators=1, max_depth=1), 0)
    assert sum(counts.size for counts in few.forest.counts) < 64
    assert sums_to(merge([few, renamed(few, id="other")]), [few, few])
    quiet = counted(plan_of(), 0, epsilon=Fraction(100))
    assert quiet.forest.leaf_noise_sd < 1
    assert sums_to(merge([quiet, renamed(quiet, id="other")]), [quiet, quiet])


@pytest.mark.parametrize("algorithm", [DPDFClassifier, DiffPID3Classifier, PrivateID3Classifier])
@pytest.mark.parametrize("join", [merge, merge_columns])
def test_trees_that_follow_from_rows_are_refused(algorithm: Any, join: Any) -> None:
    release = algorithm(small_schema(), 5).fit(*small_table(300)).release_
    with pytest.raises(MergeError, match=r"trees were chosen by looking at its rows.*--algorithm hedgerow, rdt or snr"):
        join([release, release])


@pytest.mark.parametrize("algorithm", [RandomDecisionTreesClassifier, ID3Classifier])
@pytest.mark.parametrize("join", [merge, merge_columns])
def test_exact_counts_are_refused(algorithm: Any, join: Any) -> None:
    release = algorithm(schema=small_schema()).fit(*small_table(300)).release_
    with pytest.raises(MergeError, match=r"exact counts without any privacy.*--algorithm hedgerow, rdt or snr"):
        join([release, release])


@pytest.mark.parametrize("join", [merge, merge_columns])
def test_counts_of_unknown_noise_are_refused(join: Any) -> None:
    release = counted(plan_of(), 0)
    (part,) = release.certificate.parts
    other = msgspec.structs.replace(part, events=[msgspec.structs.replace(part.events[0], query="class_counts")])
    odd = msgspec.structs.replace(part, events=[msgspec.structs.replace(part.events[0], mechanism="permute and flip")])
    nodes = changed(release, forest=replace(release.forest, measured="nodes"))
    for bad in (changed(release, certificate=certificate_of([other])), changed(release, certificate=certificate_of([odd])), nodes):
        with pytest.raises(MergeError, match="does not say with which noise its leaves were counted"):
            join([bad])


def test_united_columns_are_refused_among_rows() -> None:
    united = merge_columns([counted(plan_of(columns=LEFT), 0), counted(plan_of(columns=RIGHT), 1)])
    with pytest.raises(MergeError, match=r"whole\.json unites columns of several owners\. Merge the rows of each owner's forests first"):
        merge([united], names=["whole.json"])


@pytest.mark.parametrize("join", [merge, merge_columns])
def test_nothing_cannot_be_merged(join: Any) -> None:
    with pytest.raises(MergeError, match="got no releases"):
        join([])
    with pytest.raises(MergeError, match="got no releases"):
        join(iter(()))


def with_a_huge_count(release: Release, count: int, place: int = 0) -> Release:
    counts = [each.copy() for each in release.forest.counts]
    counts[0].flat[place] = count
    return changed(release, forest=replace(release.forest, counts=tuple(counts)))


@pytest.mark.parametrize("sign", [1, -1])
def test_counts_that_would_overflow_are_refused(sign: int) -> None:
    """Also where the sums would fit, or would wrap around to small numbers."""
    for huge in (2**61, 2**62 - 1, 2**63 - 1):
        first, second = (with_a_huge_count(counted(plan_of(), seed), sign * huge) for seed in (0, 1))
        with pytest.raises(ReleaseError, match="too large"):
            merge([first, second])
    apart = [with_a_huge_count(counted(plan_of(), seed), sign * 2**61, seed) for seed in (0, 1)]
    with pytest.raises(ReleaseError, match="too large"):
        merge(apart)
    left = with_a_huge_count(counted(plan_of(columns=LEFT), 0), 2**61)
    right = with_a_huge_count(counted(plan_of(columns=RIGHT), 1), 2**61)
    with pytest.raises(ReleaseError, match="too large"):
        merge_columns([left, right])
    large = [with_a_huge_count(counted(plan_of(), seed), sign * 2**60) for seed in (0, 1)]
    assert merge(large).forest.counts[0].flat[0] == sign * 2**61


# ---------------------------------------------------------------- columns: the union of the trees


column_sets = st.lists(
    st.permutations(WHOLE.names).flatmap(lambda names: st.integers(1, 4).map(lambda size: tuple(names[:size]))),
    min_size=2, max_size=4, unique_by=frozenset,
)  # fmt: skip


@st.composite
def owners_of_columns(draw: Any, algorithm: Any = PrivateRDTClassifier) -> list[Release]:
    """Owners with columns of their own, which may overlap; each has counted one table or several."""
    releases = []
    for number, columns in enumerate(draw(column_sets)):
        more: dict[str, Any] = {}
        if algorithm is PrivateRDTClassifier:
            more = {"n_estimators": draw(st.integers(1, 3)), "max_depth": draw(st.integers(1, 2))}
        tables = draw(st.lists(st.tuples(epsilons, st.just(""), st.booleans()), min_size=1, max_size=3))
        plan = plan_of(algorithm, columns, seed=draw(st.integers(0, 3)), **more)
        releases.append(merge(counted_all(plan, tables, 10 * number)))
    return releases


@pytest.mark.slow
@BOTH
@settings(max_examples=30)
@given(data=st.data())
def test_the_order_of_owners_and_steps_does_not_matter(algorithm: Any, data: Any) -> None:
    releases = data.draw(owners_of_columns(algorithm))
    at_once = merge_columns(releases)
    by_steps = in_any_steps(data, releases, merge_columns)
    assert by_steps.content_hash == at_once.content_hash
    again = Release.from_json(at_once.to_json())
    assert (again.to_json(), again.forest.scales) == (at_once.to_json(), at_once.forest.scales)


def test_a_setting_that_differs_is_left_out_in_any_order() -> None:
    own = [counted(plan_of(columns=columns, max_depth=depth), seed) for seed, (columns, depth) in enumerate(((LEFT, None), (RIGHT, 2)))]
    third = counted(plan_of(columns=ACROSS, max_depth=None), 2)
    together = merge_columns(own)
    assert merge_columns([together, third]).content_hash == merge_columns([*own, third]).content_hash
    assert merge_columns([third, together]).content_hash == merge_columns([*own, third]).content_hash


@pytest.mark.slow
@settings(max_examples=40)
@given(releases=owners_of_columns())
def test_the_losses_of_ensembles_add_up(releases: list[Release]) -> None:
    united = merge_columns(releases)
    own = [Fraction(release.certificate.epsilon) for release in releases]
    assert united.certificate.guarantee == "epsilon-DP"
    assert Fraction(united.certificate.epsilon) == sum(own) == loss_by_force(united.certificate.parts)
    assert "the ε of their ensembles add up" in united.certificate.reason
    assert united.certificate.neighbours == NEIGHBOURS_OF_PARTS
    for part in united.certificate.parts:
        assert part.id in {own.id for own in releases_with(releases, united, part.ensemble).certificate.parts}


def releases_with(releases: Sequence[Release], united: Release, ensemble: int) -> Release:
    """The release whose columns an ensemble has."""
    (found,) = [release for release in releases if release.schema.names == united.forest.ensembles[ensemble].columns]
    return found


@pytest.mark.slow
@settings(max_examples=40)
@given(releases=owners_of_columns())
def test_each_tree_keeps_its_noise_and_its_counts(releases: list[Release]) -> None:
    forest = merge_columns(releases).forest
    assert len(forest.trees) == sum(len(release.forest.trees) for release in releases)
    assert forest.noise == ()
    assert forest.noisy
    assert set(forest.codebook.schema.names) == {name for release in releases for name in release.schema.names}
    t = 0
    for ensemble in forest.ensembles:
        (own,) = [release.forest for release in releases if release.schema.names == ensemble.columns]
        assert ensemble.noise == own.noise
        for tree, counts in zip(own.trees, own.counts, strict=True):
            sd = math.sqrt(sum(noise_variance(scale) for scale in own.noise))
            assert forest.scales[t] == own.noise
            assert forest.tree_noise_sd[t] == pytest.approx(sd)
            assert np.allclose(forest.node_noise_sd(t), sd * np.sqrt(tree.leaves_below()))
            assert np.array_equal(forest.counts[t], counts)
            asked = [forest.codebook.schema.names[a] if a >= 0 else None for a in forest.trees[t].attribute]
            assert asked == [ensemble.columns[a] if a >= 0 else None for a in tree.attribute]
            forest.trees[t].check()
            t += 1
    assert forest.leaf_noise_sd == max(forest.tree_noise_sd)


def ends(release: Release, table: Any) -> Iterator[tuple[int, np.ndarray]]:
    """For each tree of a release where the rows of a table end."""
    codes = release.codebook.encode(table)
    for t, tree in enumerate(release.forest.trees):
        yield t, route(tree, codes)


def mean_of_leaves(tree: Tree, counts: np.ndarray, node: int) -> np.ndarray:
    """The mean of the counted leaves below a node, found by walking down."""
    waiting, found = [node], []
    while waiting:
        here = waiting.pop()
        if tree.attribute[here] < 0:
            found.append(counts[int(np.flatnonzero(tree.leaves == here)[0])])
        else:
            waiting += {int(child) for child in tree.children(here) if child >= 0}
    return np.mean(found, axis=0)


def summed_by_hand(releases: Sequence[Release], table: Any, rows: int) -> np.ndarray:
    """Algorithm 3 over the trees of all releases, each read by its own codebook."""
    sums, totals = np.zeros((rows, 2)), []
    for release in releases:
        for t, nodes in ends(release, table):
            tree, counts = release.forest.trees[t], release.forest.counts[t]
            sums += np.array([mean_of_leaves(tree, counts, int(node)) for node in nodes])
            totals.append(counts.sum(axis=0))
    prior = np.maximum(np.mean(totals, axis=0), 0)
    shares = np.maximum(sums, 0)
    return np.array([share / share.sum() if share.sum() > 0 else prior / prior.sum() for share in shares])


def shares_by_hand(release: Release, t: int, node: int) -> np.ndarray:
    """Sections 4.5 and 4.6 for one row and one tree: the shares of the surest node on its path that stands out from the noise."""
    tree, counts = release.forest.trees[t], release.forest.node_counts[t]
    squared = sum(float(scale) ** 2 for scale in release.forest.noise)
    path = [node]
    while path[0] != 0:
        path.insert(0, int(tree.parent[path[0]]))
    best: np.ndarray | None = None
    for here in path:
        leaves = int(tree.leaves_below()[here])
        if here != 0 and counts[here].sum() / math.sqrt(4 * 2 * leaves * squared) < 1:
            break
        positive = np.maximum(counts[here], 0)
        shares = positive / positive.sum() if positive.sum() else np.full(2, 0.5)
        if best is None or shares.max() > best.max():
            best = shares
    assert best is not None
    return best


def confident_by_hand(releases: Sequence[Release], table: Any, rows: int) -> list[int]:
    """Section 4.7 over the trees of all releases; −1 where a tie is left to rounding."""
    chosen: list[list[np.ndarray]] = [[] for _ in range(rows)]
    for release in releases:
        for t, nodes in ends(release, table):
            for row, node in enumerate(nodes):
                chosen[row].append(shares_by_hand(release, t, int(node)))
    winners = []
    for shares in chosen:
        highest = max(share.max() for share in shares)
        labels = {int(c) for share in shares for c in np.flatnonzero(share == highest)}
        summed = np.sum(shares, axis=0)
        even = abs(summed[0] - summed[1]) < 1e-9
        winners.append(labels.pop() if len(labels) == 1 else -1 if even else int(summed.argmax()))
    return winners


@pytest.mark.slow
@settings(max_examples=30)
@given(releases=owners_of_columns(), seed=st.integers(0, 99))
def test_united_sums_are_the_sums_of_both_forests(releases: list[Release], seed: int) -> None:
    table, _ = small_table(25, seed)
    united = merge_columns(releases)
    mine = {name: table[name] for name in united.schema.names}
    assert np.allclose(united.predict_proba(mine), summed_by_hand(releases, table, 25))


@pytest.mark.slow
@settings(max_examples=20)
@given(releases=owners_of_columns(SNRForestClassifier), seed=st.integers(0, 99))
def test_the_surest_tree_of_all_owners_decides(releases: list[Release], seed: int) -> None:
    table, _ = small_table(25, seed)
    united = merge_columns(releases)
    got = united.predict_proba({name: table[name] for name in united.schema.names}).argmax(axis=1)
    expected = np.array(confident_by_hand(releases, table, 25))
    assert (expected >= 0).any()
    assert np.array_equal(got[expected >= 0], expected[expected >= 0])


def rule_facts(rules: Sequence[Rule]) -> set[Any]:
    return {
        (frozenset(map(str, rule.conditions)), rule.label, rule.support, round(rule.support_error, 9), round(rule.confidence_error, 9))
        for rule in rules
    }


@pytest.mark.slow
@BOTH
@settings(max_examples=20)
@given(data=st.data())
def test_rules_of_a_union_are_those_of_its_owners(algorithm: Any, data: Any) -> None:
    """The same conditions by name, the same numbers, and each its own error; SNR pruning goes by each tree's own noise."""
    releases = data.draw(owners_of_columns(algorithm))
    united = merge_columns(releases)
    own = set.union(*(rule_facts(release.rules(above_noise=False)) for release in releases))
    assert rule_facts(united.rules(above_noise=False)) == own
    assert rule_facts(united.rules(pruned=False, sub_rules=True, above_noise=False)) >= own


@BOTH
def test_everything_that_is_shown_works_on_a_union(algorithm: Any, tmp_path: Path) -> None:
    """Different numbers of trees, different ε, one side of several tables."""
    left = plan_of(algorithm, LEFT) if algorithm is SNRForestClassifier else plan_of(columns=LEFT, n_estimators=2)
    right = plan_of(algorithm, ACROSS, epsilon="5")
    releases = [merge([counted(left, 0), counted(left, 1, epsilon=Fraction(1, 3))]), counted(right, 2)]
    united = merge_columns(releases)
    forest = united.forest
    assert len(forest.trees) == len(left.trees) + len(right.trees)
    assert len(left.trees) != len(right.trees)
    assert len(set(forest.tree_noise_sd)) == 2
    shares = united.feature_importances()
    assert set(shares) == {*LEFT, *ACROSS}
    assert sum(shares.values()) == pytest.approx(1)
    for t in range(len(forest.trees)):
        root = forest.codebook.schema.names[forest.trees[t].attribute[0]]
        assert root in tree_text(forest, t)
        assert tree_svg(forest, t, removed=united.removed).startswith("<svg")
        assert f"Tree {t + 1} of" in show_page(united, t)
    assert "table 2" in html_report(united)
    united.save(tmp_path / "united.json")
    again = Release.load(tmp_path / "united.json")
    table, _ = small_table(50)
    assert again.to_json() == united.to_json()
    assert (again.forest.ensembles, again.forest.scales) == (forest.ensembles, forest.scales)
    assert np.array_equal(again.predict_proba(table), united.predict_proba(table))
    assert again.feature_importances() == shares


def test_importances_within_an_owner_stay_in_proportion() -> None:
    releases = [counted(plan_of(columns=LEFT), 0, epsilon=Fraction(50)), counted(plan_of(columns=RIGHT), 1, epsilon=Fraction(30))]
    united = importances(merge_columns(releases).forest)
    for release in releases:
        own = importances(release.forest)
        together = sum(united[name] for name in own)
        assert 0 < together < 1
        for name, share in own.items():
            assert united[name] / together == pytest.approx(share)


def test_one_owner_alone_is_no_union() -> None:
    release = counted(plan_of(columns=LEFT), 0)
    assert merge_columns([release]).to_json() == release.to_json()


def test_a_shared_column_needs_one_declaration() -> None:
    shared = merge_columns([counted(plan_of(columns=LEFT), 0), counted(plan_of(columns=ACROSS), 1)])
    assert sorted(shared.schema.names) == ["age", "colour", "flag", "shape"]
    schema = schema_of(ACROSS)
    attributes = [Numeric("age", 0, 50) if attribute.name == "age" else attribute for attribute in schema.attributes]
    other = replace(plan_of(columns=ACROSS), codebook=Codebook(replace(schema, attributes=attributes)))
    with pytest.raises(MergeError, match=r"declare the column 'age' differently\. Agree on one declaration"):
        merge_columns([counted(plan_of(columns=LEFT), 0), counted(other, 1)])
    truth = Schema([Categorical("flag", [False, True]), *schema_of(LEFT).attributes], WHOLE.target, ROWS)
    with pytest.raises(MergeError, match="declare the column 'flag' differently"):
        merge_columns([counted(replace(plan_of(columns=LEFT), codebook=Codebook(truth)), 0), counted(plan_of(columns=ACROSS), 1)])


def test_the_same_columns_are_rows_to_be_added() -> None:
    a, b, c = counted(plan_of(columns=LEFT), 0), counted(plan_of(columns=LEFT, seed=1), 1), counted(plan_of(columns=RIGHT), 2)
    for releases in ([a, b], [merge_columns([a, c]), b]):
        with pytest.raises(MergeError, match=r"have the same columns \(age, shape\).*merge without --columns"):
            merge_columns(releases)


def test_the_same_columns_in_another_order_are_the_same() -> None:
    with pytest.raises(MergeError, match="have the same columns"):
        merge_columns([counted(plan_of(columns=LEFT), 0), counted(plan_of(columns=LEFT[::-1]), 1)])


def test_one_batch_may_be_counted_on_two_sets_of_columns() -> None:
    """An owner who holds both has the same batch of persons in both; their losses add."""
    united = merge_columns([counted(plan_of(columns=columns), seed, batch="May") for seed, columns in enumerate((LEFT, RIGHT))])
    assert united.certificate.epsilon == "2"
    assert Release.from_json(united.to_json()).certificate == united.certificate


def test_the_same_table_is_not_united_twice() -> None:
    a, b = counted(plan_of(columns=LEFT), 0), counted(plan_of(columns=RIGHT), 1)
    with pytest.raises(MergeError, match="the table table 0 is in release 1 already"):
        merge_columns([merge_columns([a, b]), a])


OTHER_READINGS: dict[str, tuple[Callable[[], PublicPlan], str]] = {
    "algorithm": (lambda: plan_of(SNRForestClassifier, RIGHT), "algorithm: Private-RDT and SNR forest"),
    "vote": (lambda: replace(plan_of(columns=RIGHT), vote=MAJORITY), "vote: summed counts and majority"),
    "noise rule": (
        lambda: replace(plan_of(columns=RIGHT), parameters={**plan_of(columns=RIGHT).parameters, "noise_rule": "tight"}),
        "noise rule paper and tight",
    ),
    "target": (lambda: of_target(Target("label", ["no", "yes"])), "the target: 'class' and 'label'"),
    "classes": (lambda: of_target(Target("class", ["no", "maybe"])), "the classes: 'no', 'yes' and 'no', 'maybe'"),
    "order of classes": (lambda: of_target(Target("class", ["yes", "no"])), "the classes: 'no', 'yes' and 'yes', 'no'"),
    "bins": (lambda: replace(plan_of(columns=RIGHT), codebook=Codebook(schema_of(RIGHT), 4)), "5 and 4 bins"),
}


def of_target(target: Target) -> PublicPlan:
    return replace(plan_of(columns=RIGHT), codebook=Codebook(replace(schema_of(RIGHT), target=target)))


@pytest.mark.parametrize("kind", list(OTHER_READINGS))
def test_forests_that_are_read_differently_are_not_united(kind: str) -> None:
    make, message = OTHER_READINGS[kind]
    with pytest.raises(MergeError, match=f"yours cannot be united with mine. What differs: .*{message}"):
        merge_columns([counted(plan_of(columns=LEFT), 0), counted(make(), 1)], names=["mine", "yours"])


def test_noise_rules_of_snr_forests_must_agree() -> None:
    left, right = plan_of(SNRForestClassifier, LEFT), plan_of(SNRForestClassifier, RIGHT, noise_rule="tight")
    with pytest.raises(MergeError, match="noise rule paper and tight"):
        merge_columns([counted(left, 0), counted(right, 1)])
    tight = merge_columns([counted(plan_of(SNRForestClassifier, LEFT, noise_rule="tight"), 0), counted(right, 1)])
    assert tight.noise_rule == "tight"


def test_a_target_that_is_a_column_elsewhere_is_refused() -> None:
    """No schema of this package names its target as an attribute; one that was made by other means might."""
    odd = schema_of(("colour",))
    object.__setattr__(odd, "attributes", (Categorical("class", ["no", "yes"]),))
    release = counted(plan_of(columns=("colour",)), 1)
    clash = changed(release, forest=replace(release.forest, codebook=Codebook(odd)))
    with pytest.raises(MergeError, match="the target 'class' is an attribute of yours"):
        merge_columns([counted(plan_of(columns=LEFT), 0), clash], names=["mine", "yours"])


# ---------------------------------------------------------------- rows that lack the columns of an owner


@drawn_once
def united_of(algorithm: Any) -> Release:
    return merge_columns([counted(plan_of(algorithm, LEFT), 0), counted(plan_of(algorithm, ("colour",)), 1)])


FRAMES: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
    "mapping": dict,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@BOTH
@pytest.mark.parametrize("kind", list(FRAMES))
@pytest.mark.parametrize("absent", [("colour",), LEFT, ("age", "colour"), ("shape",)])
def test_rows_are_classified_by_the_columns_that_they_have(algorithm: Any, kind: str, absent: tuple[str, ...]) -> None:
    release = united_of(algorithm)
    names = release.schema.names
    table = {name: column for name, column in small_table(80, seed=3)[0].items() if name in names}
    codes = release.codebook.encode(table)
    for name in absent:
        codes[:, names.index(name)] = release.codebook.sizes[names.index(name)]
    expected = release.predict_codes_proba(codes)
    rows = FRAMES[kind]({name: column for name, column in table.items() if name not in absent})
    with pytest.warns(MissingColumnsWarning) as said:
        got = release.predict_proba(rows)
    assert [str(each.message) for each in said] == [
        f"the column(s) {', '.join(name for name in names if name in absent)} are missing: the rows are classified by those that they have."
    ]
    assert np.array_equal(got, expected)
    assert not np.array_equal(got, release.predict_proba(FRAMES[kind](table)))
    with pytest.warns(MissingColumnsWarning):
        assert release.predict(rows).tolist() == release.classes[expected.argmax(axis=1)].tolist()


def test_an_owner_whose_columns_are_missing_has_no_say() -> None:
    """Its trees say the same about every row; those of the other decide as they would with its mean leaf beside them."""
    release = united_of(PrivateRDTClassifier)
    table, _ = small_table(60, seed=5)
    with pytest.warns(MissingColumnsWarning):
        got = release.predict_proba({name: table[name] for name in LEFT})
    own = counted(plan_of(columns=LEFT), 0)
    other = counted(plan_of(columns=("colour",)), 1)
    constant = sum(counts.mean(axis=0) for counts in other.forest.counts)
    sums = np.full((60, 2), constant)
    for t, nodes in ends(own, table):
        sums += np.array([mean_of_leaves(own.forest.trees[t], own.forest.counts[t], int(node)) for node in nodes])
    assert (sums > 0).all()
    assert np.allclose(got, sums / sums.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", list(FRAMES))
def test_some_column_must_be_there(kind: str) -> None:
    release = united_of(PrivateRDTClassifier)
    nothing = FRAMES[kind]({"something else": np.array(["red", "green"])})
    with pytest.raises(TableError, match=r"the declared column\(s\) age, shape, colour are missing"):
        release.predict_proba(nothing)


@pytest.mark.parametrize("kind", list(FRAMES))
def test_a_forest_of_one_owner_needs_all_of_its_columns(kind: str) -> None:
    table, _ = small_table(20)
    rows = FRAMES[kind]({"age": table["age"]})
    for release in (counted(plan_of(columns=LEFT), 0), merge_columns([counted(plan_of(columns=LEFT), 0)])):
        with pytest.raises(TableError, match=r"the declared column\(s\) shape are missing"):
            release.predict_proba(rows)


def test_an_array_has_its_columns_by_position() -> None:
    release = united_of(PrivateRDTClassifier)
    table, _ = small_table(20)
    rows = np.stack([table[name].astype(object) for name in release.schema.names], axis=1)
    assert np.array_equal(release.predict_proba(rows), release.predict_proba({n: table[n] for n in release.schema.names}))
    with pytest.raises(TableError, match="one column for each declared attribute"):
        release.predict_proba(rows[:, :2])


# ---------------------------------------------------------------- rows that stop above the leaves


@pytest.mark.slow
@given(forests(), st.integers(0, 2**32))
def test_a_row_that_stops_above_the_leaves_weighs_like_an_average_leaf(forest: CountedForest, seed: int) -> None:
    codes = codes_for(forest.codebook.sizes, 8, seed)
    codes[0] = forest.codebook.sizes  # a row of which nothing is known stops at every root
    got = SummedCounts(forest).probabilities(codes)
    for row in range(len(codes)):
        sums = np.zeros(forest.codebook.n_classes)
        for tree, counts in zip(forest.trees, forest.counts, strict=True):
            sums = sums + mean_of_leaves(tree, counts, int(route(tree, codes[row : row + 1])[0]))
        positive = np.maximum(sums, 0)
        if positive.sum() > 1e-9:
            assert np.allclose(got[row], positive / positive.sum())


def test_an_unknown_value_does_not_outvote_what_is_known() -> None:
    """Two trees: one knows the row's colour, the other stops at its root, above fifty full leaves."""
    codebook = Codebook(Schema([Categorical("colour", ["red", "green"]), Categorical("code", list(range(50)))], Target("y", ["no", "yes"])))
    trees = []
    for attribute in (0, 1):
        builder = TreeBuilder(codebook.sizes)
        builder.split(0, attribute)
        trees.append(builder.build())
    counts = (np.array([[0, 30], [30, 0]]), np.tile([20, 5], (50, 1)))
    forest = CountedForest(codebook, tuple(trees), counts)
    red_and_unknown = np.array([[0, 50]], dtype=np.uint8)
    assert SummedCounts(forest).probabilities(red_and_unknown)[0] == pytest.approx([20 / 55, 35 / 55])


# ---------------------------------------------------------------- is it time to count anew?


def forest_of(counts: Sequence[Any], ensembles: Sequence[tuple[int, Sequence[Fraction]]]) -> CountedForest:
    """Single leaves with these counts; for each ensemble its number of trees and its scales."""
    codebook = Codebook(Schema([Categorical(f"a{i}", [0, 1]) for i in range(len(ensembles))], Target("y", ["no", "yes"])))
    tree = Tree(codebook.sizes, np.array([-1], dtype=NODE), np.empty(0, dtype=NODE))
    arrays = tuple(np.array(each, dtype=np.int64).reshape(1, 2) for each in counts)
    if len(ensembles) == 1:
        return CountedForest(codebook, (tree,) * len(arrays), arrays, tuple(ensembles[0][1]))
    united = tuple(Ensemble(trees, (f"a{i}",), tuple(noise)) for i, (trees, noise) in enumerate(ensembles))
    return CountedForest(codebook, (tree,) * len(arrays), arrays, (), "leaves", united)


pairs_of_counts = st.lists(st.tuples(st.integers(-500, 500), st.integers(-500, 500)), min_size=1, max_size=4)
scales = st.lists(st.fractions(Fraction(1, 50), 100, max_denominator=50), min_size=2, max_size=5)


@pytest.mark.slow
@example(counts=[(0, 0)], noise=[Fraction(10), Fraction(10)])  # less than the noise: there is no signal
@given(counts=pairs_of_counts, noise=scales)
def test_noise_and_signal_by_direct_computation(counts: list[tuple[int, int]], noise: list[Fraction]) -> None:
    found = accumulated(forest_of(counts, [(len(counts), noise)]))
    assert found is not None
    variances = [noise_variance(scale) for scale in noise]
    flat = [value for pair in counts for value in pair]
    power = sum(value**2 for value in flat) / len(flat) - sum(variances)
    assert found.tables == len(noise)
    assert found.noise == pytest.approx(math.sqrt(sum(variances)))
    assert found.fresh == pytest.approx(math.sqrt(min(variances)))
    assert found.typical == pytest.approx(math.sqrt(max(power, 0)), abs=1e-6)
    assert found.typical >= 0
    assert math.isfinite(found.typical)
    assert found.drowned == (found.noise > found.typical)
    assert found.rebuild == (found.noise > found.typical >= found.fresh)
    assert found.sentence()


@pytest.mark.slow
@given(st.lists(st.tuples(pairs_of_counts, scales), min_size=2, max_size=3))
def test_the_noisiest_ensemble_speaks_for_a_union(ensembles: list[Any]) -> None:
    counts = [pair for pairs, _ in ensembles for pair in pairs]
    found = accumulated(forest_of(counts, [(len(pairs), noise) for pairs, noise in ensembles]))
    alone = [accumulated(forest_of(pairs, [(len(pairs), noise)])) for pairs, noise in ensembles]
    assert found in alone
    assert all(found.noise * other.typical >= other.noise * found.typical for other in alone)


def test_one_table_needs_no_rebuilding() -> None:
    assert accumulated(counted(plan_of(), 0).forest) is None
    assert accumulated(forest_of([(5, 5)], [(1, ())])) is None
    assert accumulated(merge_columns([counted(plan_of(columns=LEFT), 0), counted(plan_of(columns=RIGHT), 1)]).forest) is None
    one_of_two = merge_columns([merge([counted(plan_of(columns=LEFT), seed) for seed in (0, 1)]), counted(plan_of(columns=RIGHT), 2)])
    assert accumulated(one_of_two.forest).tables == 2


@pytest.mark.parametrize(
    ("signal", "tables", "scale", "drowned", "rebuild", "says"),
    [
        (100, 4, 10, False, False, "the counts stand above their noise: a typical count"),  # the noise of a table is 14, that of four 28
        (35, 9, 10, True, True, "REBUILD"),  # 42 of nine, 14 if counted at once
        (15, 4, 20, True, False, "too much noise"),  # 57 of four, and 28 if counted at once: that would not help
        (0, 2, 10, True, False, "too much noise"),
    ],
)
def test_when_to_rebuild(signal: int, tables: int, scale: int, drowned: bool, rebuild: bool, says: str) -> None:
    noise = [Fraction(scale)] * tables
    value = round(math.sqrt(signal**2 + sum(noise_variance(each) for each in noise)))  # the counts hold both
    found = accumulated(forest_of([(value, -value)], [(1, noise)]))
    assert found is not None
    assert (found.drowned, found.rebuild) == (drowned, rebuild)
    assert found.sentence().startswith(says)


def test_one_table_is_never_drowned_by_others() -> None:
    assert not Accumulated(1, 0.0, 10.0, 10.0).drowned
    assert not Accumulated(1, 0.0, 10.0, 10.0).rebuild


@pytest.mark.parametrize("huge", [2**60, -(2**60)])
def test_huge_counts_are_typical_ones(huge: int) -> None:
    found = accumulated(forest_of([(huge, huge)], [(1, [Fraction(1), Fraction(2)])]))
    assert found is not None
    assert found.typical == pytest.approx(2.0**60)


# ---------------------------------------------------------------- errors grow by the root of the number of tables


@BOTH
@pytest.mark.parametrize("tables", [1, 2, 5])
def test_errors_grow_by_the_root_of_the_number_of_tables(algorithm: Any, tables: int) -> None:
    plan = plan_of(algorithm)
    merged = merge([counted(plan, seed) for seed in range(tables)])
    one = changed(merged, forest=replace(merged.forest, noise=merged.forest.noise[:1]))  # the same counts from one table
    root = math.sqrt(tables)
    assert len(merged.forest.noise) == tables
    assert merged.forest.leaf_noise_sd == pytest.approx(root * one.forest.leaf_noise_sd)
    for t in range(len(merged.forest.trees)):
        assert np.allclose(merged.forest.node_noise_sd(t), root * one.forest.node_noise_sd(t))
        for rule in ("paper", "tight"):
            assert np.allclose(signal_to_noise(merged.forest, t, rule), signal_to_noise(one.forest, t, rule) / root)
    many, few = ({(r.tree, r.node): r for r in release.rules(pruned=False, above_noise=False)} for release in (merged, one))
    assert many.keys() == few.keys()
    for key, rule in many.items():
        assert rule.support_error == pytest.approx(root * few[key].support_error)
        assert rule.confidence_error == pytest.approx(min(root * few[key].confidence_error, 0.5))


def test_pruning_knows_the_noise_of_all_tables() -> None:
    """A node with 1.5 times the noise of one table stands out from it, and not from the noise of four."""
    plan = plan_of(SNRForestClassifier)
    least = 2 * math.sqrt(2) * float(counted(plan, 0).forest.noise[0])  # |C|·√2/ε, for a leaf
    counts = tuple(np.full((len(tree.leaves), 2), math.ceil(0.75 * least)) for tree in plan.trees)
    parts = [counted(plan, seed) for seed in range(4)]
    zeros = [changed(part, forest=replace(part.forest, counts=tuple(each * 0 for each in counts))) for part in parts]
    full = changed(parts[0], forest=replace(parts[0].forest, counts=counts))
    one = merge([full])
    assert all(not removed.any() for removed in one.removed)
    merged = merge([full, zeros[1], *(with_a_huge_count(zeros[seed], seed - 1) for seed in (2, 3))])
    for tree, removed in zip(plan.trees, merged.removed, strict=True):
        assert tree.n_nodes == 1 or removed[tree.leaves].all()


def test_a_merged_release_states_its_scales_in_its_file() -> None:
    merged = batches([counted(plan_of(), 0, epsilon=Fraction(2, 3)), counted(plan_of(), 1, epsilon=Fraction(4))])
    (ensemble,) = merged.document().ensembles
    assert ensemble.noise == [text_of_fraction(4 / Fraction(2, 3)), text_of_fraction(Fraction(1))]
    assert hedgerow.Release.from_json(merged.to_json()).forest.noise == (Fraction(6), Fraction(1))


def test_owners_of_other_columns_are_told_which_trees_to_fit() -> None:
    """They were sent to the mean of predictions, which needs the same columns."""
    X, y = small_table(3000)
    boosted = hedgerow.HedgerowClassifier(small_schema(), 5, 1e-6, random_state=0).fit(X, y).release_
    assert boosted.correction.trees
    with pytest.raises(MergeError, match=r"made for all of its columns together.*hedgerow fit --algorithm rdt"):
        merge_columns([boosted, boosted])
