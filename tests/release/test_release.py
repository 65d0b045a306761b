"""Release and plan documents: round trips, old versions, and every kind of bad file gets a clear error."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from hypothesis import given
from hypothesis import strategies as st
from strategies import codes_for, forests, small_schema, small_table
from streams import drawn_once

import hedgerow
from hedgerow import DPDFClassifier, PrivateRDTClassifier, PublicPlan, Release, Schema, SNRForestClassifier
from hedgerow.accounting.loss import text_of_fraction
from hedgerow.errors import ReleaseError
from hedgerow.inference.vote import ADDITIVE, VOTES
from hedgerow.release.certificate import certificate_of, no_certificate
from hedgerow.release.document import FORMAT, PLAN_FORMAT, VERSION, Document
from hedgerow.release.files import MAX_SIGNATURES, content_hash, signed_text
from hedgerow.release.parts import NEIGHBOURS, NEIGHBOURS_OF_PARTS, UNIT, UNIT_OF_PARTS, Part
from hedgerow.release.public_plan import PlanDocument
from hedgerow.release.signing import Signature, sign
from hedgerow.release.version_1 import Document1
from hedgerow.trees.forest import CountedForest

DATA = Path(__file__).parents[1] / "data"
KEY, OTHER_KEY = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
Change = Callable[[Any], Any]
BY_VOTE = [vote for vote in VOTES if vote != ADDITIVE]  # for any trees; those of an additive forest stand in one way (test_hedgerow)


@drawn_once
def trained(algorithm: Any = PrivateRDTClassifier) -> Release:
    return algorithm(small_schema(), "1/3", random_state=0).fit(*small_table(500)).release_


@drawn_once
def plan() -> PublicPlan:
    return PrivateRDTClassifier(small_schema(), "1/3", n_estimators=3, max_depth=2, random_state=0).public_plan()


@drawn_once
def merged() -> Release:
    """Two tables in the same trees."""
    return hedgerow.merge([hedgerow.count(plan(), *small_table(300, seed), owner=owner) for seed, owner in enumerate(("north", "south"))])


@drawn_once
def united() -> Release:
    """Two owners with different columns: two ensembles."""
    whole = small_schema()
    columns, labels = small_table(300)
    releases = []
    for seed, names in enumerate((("age", "shape"), ("colour", "flag"))):
        schema = Schema([attribute for attribute in whole.attributes if attribute.name in names], whole.target)
        own = PrivateRDTClassifier(schema, "1/3", n_estimators=2, max_depth=2, random_state=seed).public_plan()
        releases.append(hedgerow.count(own, {name: columns[name] for name in names}, labels, owner=names[0]))
    return hedgerow.merge_columns(releases)


@drawn_once
def signed() -> Release:
    return merged().signed(KEY)


@drawn_once
def greedy() -> Release:
    return DPDFClassifier(small_schema(), 1, max_depth=2).fit(*small_table(500)).release_


def json_of(thing: Any) -> bytes:
    return msgspec.json.encode(thing.document())


# ---------------------------------------------------------------- round trips


@pytest.mark.slow
@given(forests(), st.sampled_from(BY_VOTE), st.integers(0, 2**32))
def test_round_trip_keeps_every_prediction(forest: CountedForest, vote: str, seed: int) -> None:
    forest = CountedForest(forest.codebook, forest.trees, forest.counts, (Fraction(7, 3),))
    release = Release(forest, no_certificate("a test"), algorithm="test", vote=vote, parameters={"noise_rule": "tight"})
    again = Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert again.forest.trees == release.forest.trees
    codes = codes_for(forest.codebook.sizes, 20, seed)
    assert np.array_equal(again.predict_codes_proba(codes), release.predict_codes_proba(codes))


@pytest.mark.parametrize("algorithm", [PrivateRDTClassifier, SNRForestClassifier])
@pytest.mark.parametrize("name", ["forest.json", "forest.json.gz"])
def test_file_round_trip(algorithm: Any, name: str, tmp_path: Path) -> None:
    release = trained(algorithm)
    release.save(tmp_path / name)
    again = Release.load(tmp_path / name)
    columns, _ = small_table(200, seed=9)
    assert np.array_equal(again.predict_proba(columns), release.predict_proba(columns))
    assert again.predict(columns).tolist() == release.predict(columns).tolist()
    assert (again.certificate, again.chosen, again.released) == (release.certificate, release.chosen, release.released)
    assert again.schema == release.schema
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith(".gz") else b'{"')
    assert [p.name for p in tmp_path.iterdir()] == [name]  # nothing else is left behind


@pytest.mark.parametrize("made", [merged, united, signed, greedy])
def test_round_trip_of_several_tables(made: Callable[[], Release]) -> None:
    release = made()
    again = Release.from_json(release.to_json())
    columns, _ = small_table(200, seed=9)
    assert again.to_json() == release.to_json()
    assert (again.certificate, again.signatures, again.content_hash) == (release.certificate, release.signatures, release.content_hash)
    assert (again.forest.ensembles, again.forest.scales) == (release.forest.ensembles, release.forest.scales)
    assert np.array_equal(again.predict_proba(columns), release.predict_proba(columns))


def test_pickling_goes_through_the_document() -> None:
    release = signed()
    again = pickle.loads(pickle.dumps(release))  # noqa: S301  our own bytes
    assert again.to_json() == release.to_json()
    assert again.signatures == release.signatures != ()


def test_the_certificate_of_a_private_forest() -> None:
    certificate = trained().certificate
    assert certificate.guarantee == "epsilon-DP"
    assert certificate.epsilon == "1/3"
    assert certificate.spent == Fraction(1, 3)
    assert [(e.query, e.epsilon, e.scale) for e in certificate.events] == [
        ("rows", "0.01", "100"),
        ("leaf_counts", "97/300", "3000/97"),
    ]
    assert certificate.neighbours == "add or remove one row"
    assert any("schema" in a for a in certificate.assumptions)
    declared = PrivateRDTClassifier(small_schema(rows=500), 1).fit(*small_table(500)).release_.certificate
    assert any("500, is public" in a for a in declared.assumptions)


def test_a_number_that_was_paid_for_is_in_its_part_alone() -> None:
    assert trained().released == trained().certificate.parts[0].released
    assert set(trained().released) == {"rows"}
    assert merged().released == {}


# ---------------------------------------------------------------- files of today and of old, which load forever


def test_the_oldest_version_still_loads() -> None:
    """A file written by version 1 and never rewritten."""
    release = Release.load(DATA / "release-v1.json")
    expected = json.loads((DATA / "release-v1-predictions.json").read_text())
    columns, _ = small_table(30, seed=1)
    assert release.predict(columns).tolist() == expected


V1 = {path.stem: path for path in sorted((DATA / "release-v1").glob("*.json"))}


@pytest.mark.parametrize("kind", list(V1))
def test_every_kind_of_version_1_still_loads(kind: str) -> None:
    """Files written by version 1 (of commit 89de2c6) for each algorithm and each reason to claim nothing, and never rewritten."""
    written = json.loads(V1[kind].read_text())
    release = Release.load(V1[kind])
    columns, _ = small_table(30, seed=1)
    assert release.predict(columns).tolist() == json.loads((DATA / "release-v1-kinds-predictions.json").read_text())[kind]

    before, certificate = written["certificate"], release.certificate
    same = ("guarantee", "epsilon", "reason", "neighbours", "unit", "assumptions")
    assert {name: getattr(certificate, name) for name in same} == {name: before[name] for name in same}
    assert msgspec.to_builtins(certificate.events) == before["events"]
    assert certificate.sampler == before["sampler"]
    assert (release.released, release.made_by) == (written["released"], written["made_by"])
    assert release.forest.noise == tuple(map(Fraction, written["noise"]))
    assert release.forest.measured == written["measured"]

    assert [part.key for part in certificate.parts] == ([("", written["content_hash"][:32])] if before["events"] else [])
    for part in certificate.parts:
        assert (part.ensemble, part.counting, part.disjoint, part.group, part.counted, part.signed_by) == (0, 1, False, "", True, [])
        assert Fraction(part.epsilon) >= part.spent > 0
        assert bool(part.problem) == (before["guarantee"] == "none")
        assert certificate_of([part]).guarantee == before["guarantee"]

    again = Release.from_json(release.to_json())  # it is written as the version of today
    assert json.loads(release.to_json())["version"] == VERSION
    assert (again.to_json(), again.certificate) == (release.to_json(), certificate)


def test_the_kinds_of_version_1_are_all_there() -> None:
    documents = [json.loads(path.read_text()) for path in V1.values()]
    assert {document["version"] for document in documents} == {1}
    assert {document["measured"] for document in documents} == {"leaves", "nodes"}
    assert {document["certificate"]["guarantee"] for document in documents} == {"epsilon-DP", "none"}
    assert {bool(document["noise"]) for document in documents} == {True, False}
    assert {bool(document["released"]) for document in documents} == {True, False}
    assert len({document["algorithm"] for document in documents}) == 7


def test_version_2_still_loads() -> None:
    """A file written by version 2 and never rewritten: `count` of three owners, one of whom signed, merged and signed by another."""
    path = DATA / "release-v2.json"
    written = json.loads(path.read_text())
    release = Release.load(path)
    columns, _ = small_table(30, seed=1)
    assert release.predict(columns).tolist() == json.loads((DATA / "release-v2-predictions.json").read_text())
    east, north, south = parts = release.certificate.parts
    assert [part.owner for part in parts] == ["east", "north", "south"]
    assert [part.disjoint for part in parts] == [True, True, False]
    assert [bool(part.group) for part in parts] == [True, True, False]
    assert east.group == north.group
    assert (east.id, north.id) == ("2023", "2024")
    assert re.fullmatch("[0-9a-f]{32}", south.id)  # a random name
    assert ([len(part.signed_by) for part in parts], len(release.signatures)) == ([0, 1, 0], 1)
    assert north.signed_by != [release.signatures[0].key] == [written["signatures"][0]["key"]]
    assert (release.certificate.epsilon, release.certificate.neighbours) == ("2/3", NEIGHBOURS_OF_PARTS)
    assert release.forest.noise == (Fraction(9), Fraction(9), Fraction(9))


def test_a_plan_of_version_1_still_loads() -> None:
    """The plan that the owners of release-v2.json counted, signed and never rewritten."""
    shared = PublicPlan.load(DATA / "plan-v1.json")
    assert (shared.epsilon, shared.seed, shared.schema) == (Fraction(1, 3), 0, small_schema())
    assert shared.trees == Release.load(DATA / "release-v2.json").forest.trees
    assert [each.key for each in shared.signatures] == [each.key for each in Release.load(DATA / "release-v2.json").signatures]


# ---------------------------------------------------------------- bad files


def changed(change: Change, made: Callable[[], Any] = trained, rehash: bool = True) -> bytes:
    """A sound document with one change, its hash made to fit so that later checks are reached."""
    document = json.loads(json_of(made()))
    document = change(document) or document
    return with_fitting_hash(document, PlanDocument if made is plan else Document) if rehash else json.dumps(document).encode()


def later(*how: Any, **more: Any) -> Callable[[], bytes]:
    """`changed`, made by the test that needs it and not while tests are collected."""
    return partial(changed, *how, **more)


def with_fitting_hash(document: Any, kind: Any) -> bytes:
    data = json.dumps(document).encode()
    try:
        document["content_hash"] = content_hash(msgspec.json.decode(data, type=kind))
    except msgspec.ValidationError:
        return data
    return json.dumps(document).encode()


def put(*path: Any, value: Any) -> Change:
    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def part(number: int = 0, **fields: Any) -> Change:
    return lambda document: document["certificate"]["parts"][number].update(fields)


def event(number: int = 0, of: int = 0, **fields: Any) -> Change:
    return lambda document: document["certificate"]["parts"][of]["events"][number].update(fields)


def ensemble(number: int = 0, **fields: Any) -> Change:
    return lambda document: document["ensembles"][number].update(fields)


def claim(**fields: Any) -> Change:
    return lambda document: document["certificate"].update(fields)


def both(*changes: Change) -> Change:
    def change(document: Any) -> None:
        for each in changes:
            each(document)

    return change


def derived(document: Any) -> None:
    """The certificate that follows from the parts."""
    parts = msgspec.convert(document["certificate"]["parts"], type=list[Part])
    document["certificate"] = msgspec.to_builtins(certificate_of(parts))


def fewer_queries(document: Any) -> None:
    counted = document["certificate"]["parts"][0]["events"][1]
    counted["queries"], counted["scale"] = 1, str(1 / Fraction(counted["epsilon"]))
    document["ensembles"][0]["noise"] = [counted["scale"]]


def unpaid_rows(document: Any) -> None:
    document["certificate"]["parts"][0]["events"] = document["certificate"]["parts"][0]["events"][1:]


def same_table_twice(document: Any) -> None:
    first, second = document["certificate"]["parts"]
    second.update(owner=first["owner"], id=first["id"])


def noise_twice(document: Any) -> None:
    document["ensembles"][0]["noise"] *= 2


def first_table_only(document: Any) -> None:
    del document["certificate"]["parts"][1:]
    derived(document)


def counted_again_in_one_tree(document: Any) -> None:
    second = document["certificate"]["parts"][1]
    second["events"].append({**second["events"][0], "queries": 1, "scale": "3"})
    second["epsilon"] = "2/3"
    derived(document)


def chosen(mechanism: str) -> Change:
    """One private choice more, by this mechanism."""

    def change(document: Any) -> None:
        second = document["certificate"]["parts"][1]
        choice = {"verb": "best", "mechanism": mechanism, "epsilon": "0.1", "queries": 1, "sensitivity": "1", "scale": "10"}
        second["events"].insert(0, choice)
        second["epsilon"] = "1"
        derived(document)

    return change


def counts_that_one_row_hardly_changes(document: Any) -> None:
    """A row is counted once in each tree: no count has a sensitivity below 1, whatever its event says."""
    for each in document["certificate"]["parts"]:
        each["events"][0].update(sensitivity="1/1000", scale="9/1000")
    document["ensembles"][0]["noise"] = ["9/1000", "9/1000"]


def same_columns(document: Any) -> None:
    names = list(document["schema"]["attributes"])
    document["ensembles"][0]["columns"], document["ensembles"][1]["columns"] = names, names[::-1]


def shaped(document: Any) -> None:
    """A third table, whose number of rows shaped the trees."""
    parts = document["certificate"]["parts"]
    looked = {"verb": "rows", "mechanism": "discrete Laplace", "epsilon": "0.01", "queries": 1, "sensitivity": "1", "scale": "100"}
    parts.append({**parts[1], "owner": "west", "counted": False, "events": [looked], "epsilon": "0.01", "released": {"rows": 100}})
    derived(document)


BEFOREHAND = "chosen beforehand is stated of a table that was counted or chose, or is not stated"
CHOICE = {"verb": "best", "mechanism": "permute-and-flip", "epsilon": "0.1", "queries": 1, "sensitivity": "1", "scale": "10"}
NOTHING_BEFORE = {"chosen_beforehand": True, "events": [], "epsilon": "0", "released": {}}


def exchanged_columns(document: Any) -> None:
    first, second = document["ensembles"]
    first["columns"], second["columns"] = second["columns"], first["columns"]


def layout_of_version_1(document: Any) -> None:
    first = document["certificate"].pop("parts")[0]
    document["certificate"].update(events=first["events"], sampler=first["sampler"])


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else [0]


def many_attributes() -> dict[str, Any]:
    return {f"a{i}": {"kind": "numeric", "low": 0.0, "high": 1.0} for i in range(61_000)}


NO_TREES = "ensembles do not have its trees"
NO_COLUMNS = "ensembles do not have the columns"
OTHER_NOISE = "not what its events say"
TOO_LITTLE = "less than its events add up to"
NOT_DERIVED = "does not follow from its tables"
NO_TABLE = "no counted table behind it"
NOT_COUNTED = "another sensitivity or mechanism than the proven one"
NO_NAME = "no name or no trees"
BAD_NAME = "too long or cannot be printed"

BAD = {
    "empty": (b"", "sound release"),
    "not json": (b"\x00\x01\x02", "sound release"),
    "another json": (b'{"a": 1}', "sound release"),
    "a list": (b"[1, 2]", "sound release"),
    "not utf-8": (b'{"format": "\xff"}', "sound release"),
    "pickle": (pickle.dumps({"a": 1}), "sound release"),
    "deeply nested": (b'{"format": ' + b"[" * 200_000, "sound release"),
    "half a character": (lambda: json_of(trained()).replace(b'"made_by":"', b'"made_by":"\\ud800', 1), "sound release"),
    "other format": (later(put("format", value="other")), "format"),
    "newer version": (later(put("version", value=99)), "newer hedgerow"),
    "version 0": (later(put("version", value=0)), "version 0"),
    "version 2 called version 1": (later(put("version", value=1)), "sound release"),
    "layout of version 1 called version 2": (later(layout_of_version_1), "sound release"),
    "unknown field": (later(put("extra", value=1)), "unknown field"),
    "unknown field of a part": (later(part(extra=1)), "unknown field"),
    "altered count": (later(put("trees", 0, "counts", 0, value=12345), rehash=False), "content hash"),
    "altered epsilon": (later(claim(epsilon="0.001"), rehash=False), "content hash"),
    "altered part": (later(part(disjoint=True), merged, rehash=False), "content hash"),
    # what was charged, and the noise
    "epsilon below its events": (later(claim(epsilon="0.001")), NOT_DERIVED),
    "part with less epsilon than its events": (later(part(epsilon="0.001")), TOO_LITTLE),
    "part without events": (later(part(events=[])), TOO_LITTLE),
    "claim without parts": (later(claim(parts=[])), NO_TABLE),
    "claim without epsilon": (later(claim(epsilon=None)), NOT_DERIVED),
    "event with too little noise": (later(event(1, scale="0.001")), "follow from its ε"),
    "event with negative queries": (later(event(1, queries=-10)), "follow from its ε"),
    "other noise than charged": (later(ensemble(noise=["1/1000"])), OTHER_NOISE),
    "fewer queries than trees": (later(fewer_queries), OTHER_NOISE),
    "replayable coins": (later(part(sampler="hedgerow, seeded test coins: no privacy")), "anyone can replay"),
    "other neighbours": (later(claim(neighbours="nothing")), NOT_DERIVED),
    "other unit": (later(claim(unit="one cell")), NOT_DERIVED),
    "unknown mechanism": (later(event(0, mechanism="none")), NOT_COUNTED),
    "counts by an unknown mechanism": (later(event(1, mechanism="none")), NOT_COUNTED),
    "rows that nobody paid for": (later(unpaid_rows), "not paid for"),
    "another number that nobody paid for": (later(part(released={"mean age": 42})), "not paid for"),
    "a number more than was paid for": (later(lambda d: d["certificate"]["parts"][0]["released"].update(age=42)), "not paid for"),
    "too many trees": (later(lambda d: d.update(trees=[{"attribute": [-1], "branch": [], "counts": [1, 2]}] * 10_001)), "more than"),
    "unreviewed schema": (later(put("schema", "target", "unreviewed", value=True)), "not reviewed"),
    "epsilon without a claim": (later(claim(guarantee="none")), NOT_DERIVED),
    "unknown guarantee": (later(claim(guarantee="perfect")), "guarantee"),
    "claim without noise": (later(ensemble(noise=[])), OTHER_NOISE),
    "claim of greedy trees without noise": (later(ensemble(noise=[]), greedy), OTHER_NOISE),
    "other noise of greedy trees": (later(ensemble(noise=["1/1000"]), greedy), OTHER_NOISE),
    "a noise of greedy trees twice": (later(noise_twice, greedy), OTHER_NOISE),
    "counts of leaves called counts of nodes": (later(put("measured", value="nodes"), merged), OTHER_NOISE),
    "huge exponent": (later(ensemble(noise=["1e999999999"])), "plain fraction"),
    "huge exponent of a part": (later(part(epsilon="1E999999999")), "plain fraction"),
    "huge exponent of an event": (later(event(epsilon="1e-999999999")), "plain fraction"),
    "huge exponent of the claim": (later(claim(epsilon="1e999999999")), NOT_DERIVED),
    "white space around a number": (later(part(epsilon=" 1/3")), "plain fraction"),
    "a number and a line end": (later(event(1, scale="3000/97\n")), "plain fraction"),
    "very long number": (later(part(epsilon="1" + "0" * 400)), "plain fraction"),
    "negative noise": (later(ensemble(noise=["-1"])), "plain fraction"),
    "negative epsilon of a part": (later(part(epsilon="-1")), "plain fraction"),
    "epsilon of a part in digits of another alphabet": (later(part(epsilon="1/\uff13"), merged), "plain fraction"),
    "epsilon of a part with a line in it": (later(part(epsilon="1_0/3_0"), merged), "plain fraction"),
    "noise of zero": (later(ensemble(noise=["0"])), "out of range"),
    "noise beyond all numbers": (later(ensemble(noise=[str(2**50 + 1)])), "out of range"),
    "epsilon of a part of zero": (later(part(epsilon="0")), "out of range"),
    "zero division": (later(ensemble(noise=["1/0"])), "not sound"),
    "not a number": (later(claim(epsilon="nan")), "not sound"),
    # several tables
    "epsilon below the sum of its tables": (later(claim(epsilon="0.66"), merged), NOT_DERIVED),
    "epsilon of one table only": (later(claim(epsilon="1/3"), merged), NOT_DERIVED),
    "epsilon of one ensemble only": (later(claim(epsilon="1/3"), united), NOT_DERIVED),
    "epsilon above the sum of its tables": (later(claim(epsilon="5"), merged), NOT_DERIVED),
    "epsilon of one table where only one is disjoint": (
        later(both(part(0, disjoint=True), derived, claim(epsilon="1/3")), merged),
        NOT_DERIVED,
    ),
    "epsilon of one table in two groups": (
        later(both(part(0, group="g"), part(1, group="h"), derived, claim(epsilon="1/3")), merged),
        NOT_DERIVED,
    ),
    "epsilon of one of two ensembles in one group": (
        later(both(part(0, group="g"), part(1, group="g"), derived, claim(epsilon="1/3")), united),
        NOT_DERIVED,
    ),
    "epsilon below the largest of disjoint tables": (
        later(both(part(0, disjoint=True), part(1, disjoint=True), derived, claim(epsilon="0.33")), merged),
        NOT_DERIVED,
    ),
    "a statement without its assumption": (
        later(both(part(0, disjoint=True), part(1, disjoint=True), claim(epsilon="1/3")), merged),
        NOT_DERIVED,
    ),
    "assumptions left out": (later(claim(assumptions=[]), merged), NOT_DERIVED),
    "a reason of its own": (later(claim(reason="proven by an expert"), merged), NOT_DERIVED),
    "no claim, though no table has a problem": (later(claim(guarantee="none", epsilon=None, reason=""), merged), NOT_DERIVED),
    "an epsilon in digits of another alphabet": (later(claim(epsilon="1\u0665"), merged), NOT_DERIVED),
    "an epsilon on a line of its own": (later(claim(epsilon="\n2/3\n"), merged), NOT_DERIVED),
    "an epsilon that is not in lowest terms": (later(claim(epsilon="4/6"), merged), NOT_DERIVED),
    "tables in another order": (later(lambda d: d["certificate"]["parts"].reverse(), merged), NOT_DERIVED),
    "counts that one row hardly changes": (later(counts_that_one_row_hardly_changes, merged), NOT_COUNTED),
    "counts that were asked for less than once": (later(event(verb="rows", queries=0), merged), "follow from its ε|" + NOT_COUNTED),
    "no table was counted": (later(both(part(0, counted=False), part(1, counted=False), derived), merged), OTHER_NOISE),
    "a statement about trees of a table that was counted": (later(both(part(1, chosen_beforehand=True), derived), merged), BEFOREHAND),
    "a statement that is not one": (later(both(shaped, part(2, chosen_beforehand=False), derived), merged), BEFOREHAND),
    "no looks and no statement": (later(both(shaped, part(2, events=[], epsilon="0", released={}), derived), merged), "add up to"),
    "no looks, a statement and an epsilon": (
        later(both(shaped, part(2, **NOTHING_BEFORE), part(2, epsilon="1"), derived), merged),
        "add up to",
    ),
    "a statement about trees that were tuned": (
        later(
            both(
                shaped,
                lambda d: d["certificate"]["parts"][2]["events"].append(CHOICE),
                part(2, epsilon="1", chosen_beforehand=True),
                derived,
            ),
            merged,
        ),
        BEFOREHAND,
    ),
    "a counted table without looks": (later(both(part(1, **NOTHING_BEFORE), derived), merged), BEFOREHAND),
    "looks, a statement and no epsilon": (
        later(both(shaped, part(2, chosen_beforehand=True, epsilon="0.009"), derived), merged),
        "less than its events",
    ),
    "noise of a table that was not counted": (later(both(part(0, counted=False), derived), merged), OTHER_NOISE),
    "too many tables": (later(lambda d: d["certificate"].update(parts=d["certificate"]["parts"] * 5_001), merged), "more than 10000"),
    "disjoint by the word of somebody else": (later(part(disjoint="somebody"), merged), "sound release"),
    "the same table twice": (later(same_table_twice, merged), "in it twice"),
    "a table with other noise": (later(both(part(epsilon="1/6"), event(epsilon="1/6", scale="18"), derived), merged), OTHER_NOISE),
    "noise of the tables in another order": (
        later(both(part(epsilon="1/6"), event(epsilon="1/6", scale="18"), ensemble(noise=["9", "18"]), derived), merged),
        OTHER_NOISE,
    ),
    "noise of one table only": (later(ensemble(noise=["9"]), merged), OTHER_NOISE),
    "noise of a table that is not there": (later(ensemble(noise=["9", "9", "9"]), merged), OTHER_NOISE),
    "a table counted in fewer trees": (
        later(both(event(queries=1, scale="3"), ensemble(noise=["3", "9"])), merged),
        "counted in all of its trees",
    ),
    "a table counted in no tree": (later(event(verb="rows"), merged), "counted in all of its trees"),
    "a table counted in one tree at last": (later(counted_again_in_one_tree, merged), "counted in all of its trees"),
    "a table of an ensemble that is not there": (later(part(ensemble=1), merged), NO_NAME),
    "a table of a negative ensemble": (later(part(ensemble=-1), merged), NO_NAME),
    "both tables in one of two ensembles": (later(both(part(0, ensemble=1), derived), united), OTHER_NOISE),
    "one problem": (later(part(1, problem="noise came from a table"), merged), NOT_DERIVED),
    "replayable coins of one": (later(part(1, sampler="seeded test coins"), merged), "anyone can replay"),
    "a choice by an unknown mechanism": (later(chosen("none"), merged), "no proof"),
    "a choice by a mechanism for counts": (later(chosen("discrete Laplace"), merged), "no proof"),
    "a look of an unknown kind": (later(event(verb="peek"), merged), "no proof"),
    "rows that one did not pay for": (later(part(1, released={"rows": 300}), merged), "not paid for"),
    "neighbours of one table": (later(claim(neighbours=NEIGHBOURS), merged), NOT_DERIVED),
    "unit of one table": (later(claim(unit=UNIT), merged), NOT_DERIVED),
    "neighbours of several tables": (later(claim(neighbours=NEIGHBOURS_OF_PARTS, unit=UNIT_OF_PARTS)), NOT_DERIVED),
    "counted by later rules": (later(part(1, counting=2), merged), "newer hedgerow"),
    "counted by no rules": (later(part(1, counting=0), merged), "rules of version 0"),
    "empty id": (later(part(id="")), NO_NAME),
    "id of white space": (later(part(id="  ")), BAD_NAME),
    "owner of white space": (later(part(owner=" ")), BAD_NAME),
    "long id": (later(part(id="a" * 201)), BAD_NAME),
    "long owner": (later(part(owner="a" * 201)), BAD_NAME),
    "id with a control character": (later(part(id="a\x1b[2Jb")), BAD_NAME),
    "owner on two lines": (later(part(owner="north\nsouth")), BAD_NAME),
    "unprintable group": (later(part(group="g\x07")), BAD_NAME),
    "long group": (later(part(group="g" * 201)), BAD_NAME),
    "owner that turns the line around": (later(part(owner="north\u202e")), BAD_NAME),
    "signed by too many": (later(part(signed_by=["key"] * 101)), NO_NAME),
    # ensembles
    "no ensembles": (later(put("ensembles", value=[])), NO_TREES),
    "fewer trees in the ensembles": (later(ensemble(trees=2), merged), NO_TREES),
    "more trees in the ensembles": (later(ensemble(trees=4), merged), NO_TREES),
    "an ensemble without trees": (later(both(ensemble(0, trees=4), ensemble(1, trees=0)), united), NO_TREES),
    "an ensemble with fewer than no trees": (later(both(ensemble(0, trees=5), ensemble(1, trees=-1)), united), NO_TREES),
    "a column is missing": (later(ensemble(columns=["colour", "flag", "age"])), NO_COLUMNS),
    "a column too many": (later(lambda d: d["ensembles"][0]["columns"].append("weight")), NO_COLUMNS),
    "a column twice": (later(lambda d: d["ensembles"][0]["columns"].append("age")), NO_COLUMNS),
    "an ensemble without columns": (
        later(both(ensemble(0, columns=["age", "shape", "colour", "flag"]), ensemble(1, columns=[])), united),
        NO_COLUMNS,
    ),
    "two ensembles with the same columns": (later(same_columns, united), "same columns"),
    "a tree that asks for columns of others": (later(exchanged_columns, united), "its ensemble does not have"),
    "an ensemble without a table": (later(first_table_only, united), OTHER_NOISE),
    "exact counts in one ensemble": (later(both(ensemble(1, noise=[]), first_table_only), united), OTHER_NOISE),
    # the rest
    "unknown vote": (later(put("vote", value="dictator")), "votes by"),
    "bad schema": (later(put("schema", value={"target": 3})), "attributes are missing"),
    "endless number": (later(put("schema", "attributes", "age", "high", value=10**400)), "finite"),
    "deep schema": (later(put("schema", "attributes", "age", "edges", value=nested(50))), "age"),
    "many bins": (later(put("bins", value=60_000)), "bins"),
    "many attributes": (later(put("schema", "attributes", value=many_attributes())), "too many|another"),
    "bad bins": (later(put("bins", value=-4)), "bins"),
    "no trees": (later(put("trees", value=[])), "no trees"),
    "too few counts": (later(put("trees", 0, "counts", value=[1])), "counts"),
    "no counts": (later(lambda d: d["trees"][0].pop("counts") and None), "has 0 counts"),
    "a count of text": (later(put("trees", 0, "counts", 0, value="many")), "sound release"),
    "a huge count": (later(put("trees", 0, "counts", 0, value=10**30)), "too large|sound release"),
    "counts that overflow": (later(put("trees", 0, "counts", 0, value=2**62)), "too large"),
    "a huge node": (later(put("trees", 0, "branch", 0, value=10**12)), "too large"),
    "a loop": (later(put("trees", 0, "branch", 0, value=0)), "after its parent"),
    "a far node": (later(put("trees", 0, "branch", 0, value=10**6)), "does not exist"),
    "wrong attribute": (later(put("trees", 0, "attribute", 0, value=77)), "its ensemble does not have"),
    "negative attribute": (later(put("trees", 0, "attribute", 0, value=-2)), "its ensemble does not have"),
}


def check_refused(load: Callable[[Path], Any], data: bytes | Callable[[], bytes], says: str, path: Path) -> None:
    path.write_bytes(data if isinstance(data, bytes) else data())
    with pytest.raises(ReleaseError) as raised:
        load(path)
    where, _, what = str(raised.value).partition(": ")
    assert where == str(path)
    assert re.search(says, what), what
    assert len(what) < 600


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(BAD))
def test_bad_documents(kind: str, tmp_path: Path) -> None:
    check_refused(Release.load, *BAD[kind], tmp_path / "forest.json")


GOOD = {
    "nothing changed": lambda d: None,
    "nothing but the certificate written again": derived,
    "a larger epsilon of a part": both(part(epsilon="1"), derived),
    "another noise, as charged": both(part(epsilon="1/6"), event(epsilon="1/6", scale="18"), ensemble(noise=["18", "9"]), derived),
    "a name of 200 characters": both(part(0, id="é" * 200, owner="a" * 200), derived),
    "the largest epsilon where both owners state it": both(part(0, disjoint=True), part(1, disjoint=True), derived, claim(epsilon="1/3")),
    "the largest epsilon where the merger states it": both(part(0, group="g"), part(1, group="g"), derived, claim(epsilon="1/3")),
    "the sum where one owner states it": both(part(0, disjoint=True), derived, claim(epsilon="2/3")),
    "a private choice more": chosen("permute-and-flip"),
    "a table that shaped the trees": shaped,
    "a table that shaped the trees, and a statement": both(shaped, part(2, chosen_beforehand=True), derived),
    "a table that only counted, and a statement": both(shaped, part(2, **NOTHING_BEFORE), derived, claim(epsilon="2/3")),
    "a problem and no claim": both(part(problem="a test"), derived, claim(guarantee="none", epsilon=None)),
    "tables of one name of different owners": both(part(0, id="2024"), part(1, id="2024"), derived),
}


@pytest.mark.parametrize("kind", list(GOOD))
def test_documents_that_are_not_bad(kind: str) -> None:
    """The changes above are refused for what they say: others like them are not."""
    release = Release.from_json(changed(GOOD[kind], merged))
    assert release.forest.trees == merged().forest.trees


def test_an_owner_may_count_one_table_for_two_sets_of_columns() -> None:
    """Its ε are added like those of others."""
    release = Release.from_json(changed(both(same_table_twice, derived), united))
    assert len({each.key for each in release.certificate.parts}) == 1
    assert release.certificate.epsilon == "2/3"


@pytest.mark.parametrize("made", [trained, merged, united, signed, greedy])
def test_a_document_that_was_only_spelt_again_loads(made: Callable[[], Release]) -> None:
    assert Release.from_json(changed(lambda d: None, made)).to_json() == made().to_json()


def in_seconds(limit: float, data: bytes, says: str) -> None:
    start = time.thread_time()
    with pytest.raises(ReleaseError, match=says):
        Release.from_json(data)
    assert time.thread_time() - start < limit


def awkward(number: int) -> list[str]:
    """Numbers near 1/7, each short enough for a line, whose sum has a denominator as long as all of theirs together."""
    return [f"{10**150 // 7}/{10**150 + 2 * k + 1}" for k in range(number)]


def tables_with(epsilons: list[str]) -> Change:
    def change(document: Any) -> None:
        certificate = document["certificate"]
        first = certificate["parts"][0]
        noise = [str(3 / Fraction(epsilon)) for epsilon in epsilons]
        certificate["parts"] = [
            {**first, "id": f"{i:06}", "epsilon": epsilon, "events": [{**first["events"][0], "epsilon": epsilon, "scale": scale}]}
            for i, (epsilon, scale) in enumerate(zip(epsilons, noise, strict=True))
        ]
        document["ensembles"][0]["noise"] = noise

    return change


def events_with(epsilons: list[str]) -> Change:
    def change(document: Any) -> None:
        first = document["certificate"]["parts"][0]
        first["epsilon"] = "1000"
        first["events"] = [{**first["events"][0], "epsilon": each, "scale": str(3 / Fraction(each))} for each in epsilons]

    return change


@pytest.mark.slow
def test_numbers_that_are_made_to_grow_are_not_added_up() -> None:
    """Each of them is short; their sums would have a million digits, and take hours."""
    in_seconds(3, changed(tables_with(awkward(5_000)), merged), "too many digits")
    in_seconds(3, changed(events_with(awkward(5_000)), merged), "too many digits")
    several = both(tables_with(["1/3", "1/7", "1/11", "0.1"]), derived)
    assert Release.from_json(changed(several, merged)).certificate.epsilon == text_of_fraction(Fraction(1541, 2310))


@pytest.mark.slow
def test_many_tables_are_checked_quickly() -> None:
    """The time grows with the file, not with its square."""
    start = time.thread_time()
    many = both(tables_with(["0.1"] * 5_000), derived)
    release = Release.from_json(changed(many, merged))
    assert len(release.certificate.parts) == len(release.forest.noise) == 5_000
    in_seconds(5, changed(both(many, claim(epsilon="499.9")), merged), NOT_DERIVED)
    assert time.thread_time() - start < 10


@pytest.mark.slow
def test_many_columns_are_checked_quickly() -> None:
    """The time grows with the file, not with its square: 60,000 columns are allowed."""
    names = [f"a{i}" for i in range(20_000)]
    wide = both(
        put("bins", value=1),
        put("schema", "attributes", value={name: {"kind": "numeric", "low": 0.0, "high": 1.0} for name in names}),
        ensemble(columns=names),
        put("trees", value=[{"attribute": [-1], "branch": [], "counts": [1, 2]}] * 3),
    )
    data = changed(wide, merged)
    start = time.thread_time()
    assert Release.from_json(data).schema.names == tuple(names)
    assert time.thread_time() - start < 3


@pytest.mark.parametrize("made", [trained, merged])
def test_every_truncation_is_refused(made: Callable[[], Release], tmp_path: Path) -> None:
    data = made().to_json()
    for packed in (data, gzip.compress(data)):
        for length in range(0, len(packed), max(1, len(packed) // 60)):
            (tmp_path / "cut").write_bytes(packed[:length])
            with pytest.raises(ReleaseError):
                Release.load(tmp_path / "cut")


SOUND = [json_of(made()) for made in (trained, signed, united)]
SOUND_PLAN = json_of(plan().signed(KEY))


def meaning(data: bytes) -> Any:
    """What a document says, however it is spelt: a signature is its bytes."""
    document = json.loads(data)
    for signature in document.get("signatures", []):
        signature["value"] = base64.b64decode(signature["value"])
    return document


@given(st.sampled_from([*SOUND, SOUND_PLAN]), st.integers(0, 2**32), st.integers(0, 255))
def test_no_changed_byte_goes_unnoticed(sound: bytes, seed: int, byte: int) -> None:
    data = bytearray(sound)
    place = seed % len(data)
    if data[place] == byte:
        return
    data[place] = byte
    try:
        (PublicPlan if sound == SOUND_PLAN else Release).from_json(bytes(data))
    except ReleaseError:
        return
    assert meaning(bytes(data)) == meaning(sound)  # only white space or spelling changed


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 50_000_000))
    for load in (Release.load, PublicPlan.load):
        with pytest.raises(ReleaseError, match="larger than 1,000,000 bytes"):
            load(path, max_bytes=1_000_000)
    path.write_bytes(b"\x1f\x8b" + b"garbage")
    with pytest.raises(ReleaseError, match="damaged"):
        Release.load(path)


def test_unreadable_paths(tmp_path: Path) -> None:
    for load, what in ((Release.load, "release"), (PublicPlan.load, "plan")):
        with pytest.raises(ReleaseError, match=f"^{what}.*cannot be read"):
            load(tmp_path / "none.json")
        with pytest.raises(ReleaseError, match=f"^{what}.*cannot be read"):
            load(tmp_path)
    for thing, what in ((trained(), "release"), (plan(), "plan")):
        with pytest.raises(ReleaseError, match=f"^{what}.*cannot be written"):
            thing.save(tmp_path / "no-such-folder" / "forest.json")


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "forest.json").mkdir()
    with pytest.raises(ReleaseError, match="cannot be written"):
        trained().save(tmp_path / "forest.json")
    assert [p.name for p in tmp_path.iterdir()] == ["forest.json"]


def test_loading_imports_no_code_that_reads_rows_or_draws_noise(tmp_path: Path) -> None:
    """Whoever receives a release or a plan needs neither the rows' room nor the noise's."""
    signed().save(tmp_path / "forest.json")
    plan().save(tmp_path / "plan.json")
    program = (
        "import sys; from hedgerow.release.release import Release; from hedgerow.release.public_plan import PublicPlan; "
        "Release.load(sys.argv[1]); PublicPlan.load(sys.argv[2]); "
        "print([m for m in sys.modules if m.startswith(('hedgerow.mechanisms', 'hedgerow.engines', 'sklearn'))])"
    )
    paths = [str(tmp_path / "forest.json"), str(tmp_path / "plan.json")]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------- bad files of version 1


def changed_v1(change: Change, rehash: bool = True, of: Path = DATA / "release-v1.json") -> bytes:
    document = json.loads(of.read_text())
    document = change(document) or document
    data = json.dumps(document).encode()
    if rehash:
        try:
            plain = msgspec.structs.replace(msgspec.json.decode(data, type=Document1), content_hash="")
        except msgspec.ValidationError:
            return data
        document["content_hash"] = hashlib.sha256(msgspec.json.encode(plain)).hexdigest()
    return json.dumps(document).encode()


def event_v1(**fields: Any) -> Change:
    return lambda document: document["certificate"]["events"][0].update(fields)


BAD_V1 = {
    "altered count": (changed_v1(put("trees", 0, "counts", 0, value=31), rehash=False), "content hash"),
    "altered epsilon": (changed_v1(claim(epsilon="0.5"), rehash=False), "content hash"),
    "altered reason": (changed_v1(claim(reason="trust me"), rehash=False), "content hash"),
    "altered noise": (changed_v1(put("noise", value=["2"]), rehash=False), "content hash"),
    "no content hash": (changed_v1(put("content_hash", value=""), rehash=False), "content hash"),
    "signatures, which it had none of": (changed_v1(put("signatures", value=[])), "unknown field"),
    "parts, which it had none of": (changed_v1(claim(parts=[])), "unknown field"),
    "a missing field": (changed_v1(lambda d: {k: v for k, v in d.items() if k != "noise"}), "sound release"),
    "epsilon below its events": (changed_v1(claim(epsilon="0.999")), TOO_LITTLE),
    "claim without events": (changed_v1(claim(events=[])), NO_TABLE),
    "epsilon without a claim": (changed_v1(claim(guarantee="none")), "claims no guarantee"),
    "unknown guarantee": (changed_v1(claim(guarantee="perfect")), "not sound"),
    "unknown guarantee without epsilon": (changed_v1(claim(guarantee="perfect", epsilon=None)), "not sound"),
    "claim without epsilon": (changed_v1(claim(epsilon=None)), "or the reverse"),
    "event with too little noise": (changed_v1(event_v1(scale="0.001")), "follow from its ε"),
    "an event that is no number": (changed_v1(event_v1(epsilon="much")), "not sound"),
    "an event over zero": (changed_v1(event_v1(epsilon="1/0")), "not sound"),
    "other noise than charged": (changed_v1(put("noise", value=["1/1000"])), OTHER_NOISE),
    "fewer queries than trees": (changed_v1(both(event_v1(queries=1, scale="1"), put("noise", value=["1"]))), OTHER_NOISE),
    "replayable coins": (changed_v1(claim(sampler="seeded test coins")), "anyone can replay"),
    "claim of a file with a problem": (changed_v1(claim(guarantee="epsilon-DP", epsilon="2"), of=V1["test-coins"]), "anyone can replay"),
    "claim with local sensitivity": (changed_v1(claim(guarantee="epsilon-DP", epsilon="2"), of=V1["local-sensitivity"]), "no proof"),
    "claim with an unreviewed schema": (changed_v1(claim(guarantee="epsilon-DP", epsilon="2"), of=V1["unreviewed-schema"]), "not reviewed"),
    "claim for exact counts": (changed_v1(claim(guarantee="epsilon-DP", epsilon="2"), of=V1["exact-rdt"]), NO_TABLE),
    "other neighbours": (changed_v1(claim(neighbours="nothing")), "other neighbours"),
    "neighbours of several tables": (changed_v1(claim(neighbours=NEIGHBOURS_OF_PARTS, unit=UNIT_OF_PARTS)), "other neighbours"),
    "rows that nobody paid for": (changed_v1(put("released", value={"rows": 400})), "not paid for"),
    "unknown measure": (changed_v1(put("measured", value="rows")), "sound release"),
    "a schema without attributes": (changed_v1(put("schema", "attributes", value=3)), "not sound"),
    "a schema of nothing": (changed_v1(put("schema", value={})), "not sound"),
    "no trees": (changed_v1(put("trees", value=[])), "no trees"),
    "a loop": (changed_v1(put("trees", 0, "branch", 0, value=0)), "after its parent"),
    "too few counts": (changed_v1(put("trees", 0, "counts", value=[1])), "counts"),
}


@pytest.mark.parametrize("kind", list(BAD_V1))
def test_bad_documents_of_version_1(kind: str, tmp_path: Path) -> None:
    check_refused(Release.load, *BAD_V1[kind], tmp_path / "forest.json")


def test_a_file_of_version_1_that_was_only_spelt_again_loads() -> None:
    again = Release.from_json(changed_v1(lambda d: dict(reversed(d.items()))))
    assert again.to_json() == Release.load(DATA / "release-v1.json").to_json()


@pytest.mark.parametrize("epsilons", [["1e5000000"], ["1e-40000"], awkward(1_500)], ids=["long", "small", "awkward"])
def test_numbers_of_version_1_that_are_made_to_grow_are_not_added_up(epsilons: list[str]) -> None:
    """With "1e999999999" it would take hours, and all of the memory."""
    first = json.loads((DATA / "release-v1.json").read_text())["certificate"]["events"][0]
    in_seconds(0.5, changed_v1(claim(events=[{**first, "epsilon": epsilon} for epsilon in epsilons])), "not sound")


NO_CLAIM = claim(guarantee="none", epsilon=None, reason="")
LAUNDERED = {
    "no reason": later(NO_CLAIM, merged),
    "unreviewed schema": later(both(NO_CLAIM, put("schema", "target", "unreviewed", value=True)), merged),
    "replayable coins": later(both(NO_CLAIM, part(sampler="seeded test coins")), merged),
    "no reason in version 1": partial(changed_v1, NO_CLAIM),
}


@pytest.mark.parametrize("kind", list(LAUNDERED))
def test_no_merge_makes_a_claim_for_a_file_that_made_none(kind: str) -> None:
    try:
        release = Release.from_json(LAUNDERED[kind]())
    except ReleaseError:
        return
    assert certificate_of(release.certificate.parts).guarantee == "none"


# ---------------------------------------------------------------- signatures


def with_signatures(made: Callable[[], Any], signatures: list[Signature]) -> bytes:
    document = json.loads(json_of(made()))
    return json.dumps({**document, "signatures": msgspec.to_builtins(signatures)}).encode()


def flipped(value: str) -> str:
    raw = bytearray(base64.b64decode(value))
    raw[0] ^= 1
    return base64.b64encode(raw).decode()


def rsa_text() -> str:
    public = generate_private_key(65537, 2048).public_key()
    return public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def bad_signatures(format_: str, other_format: str, hash_: str) -> dict[str, list[Signature]]:
    good = sign(KEY, signed_text(format_, hash_))
    return {
        "altered": [Signature(good.key, flipped(good.value))],
        "by another key": [Signature(sign(OTHER_KEY, b"").key, good.value)],
        "of another content": [sign(KEY, signed_text(format_, "0" * 64))],
        "of another kind of document": [sign(KEY, signed_text(other_format, hash_))],
        "of the hash without the kind of document": [sign(KEY, hash_.encode())],
        "no key": [Signature("", good.value)],
        "garbage key": [Signature("ssh-ed25519 garbage", good.value)],
        "key that is no text of a key": [Signature("\u202eé\x00", good.value)],
        "key cut short": [Signature(good.key[:-8], good.value)],
        "key with a name": [Signature(good.key + " north", good.value)],
        "key on two lines": [Signature(good.key + "\n", good.value)],
        "key of another kind": [Signature(rsa_text(), good.value)],
        "key of great length": [Signature(good.key + " " * 100_000, good.value)],
        "empty": [Signature(good.key, "")],
        "not base 64": [Signature(good.key, "*" + good.value[1:])],
        "cut short": [Signature(good.key, base64.b64encode(base64.b64decode(good.value)[:-1]).decode())],
        "too long": [Signature(good.key, good.value[:-2] + good.value)],
        "a good one and a bad one": [good, Signature(good.key, flipped(good.value))],
        "a bad one and a good one": [Signature(good.key, flipped(good.value)), good],
    }


@pytest.mark.parametrize("kind", list(bad_signatures("a", "b", "")))
def test_bad_signatures(kind: str) -> None:
    for read, made, kinds in ((Release.from_json, merged, (FORMAT, PLAN_FORMAT)), (PublicPlan.from_json, plan, (PLAN_FORMAT, FORMAT))):
        data = with_signatures(made, bad_signatures(*kinds, made().content_hash)[kind])
        with pytest.raises(ReleaseError, match="signature does not fit its content"):
            read(data)


def test_signatures_of_another_form_are_refused() -> None:
    good = msgspec.to_builtins(signed().signatures[0])
    for bad in ([{**good, "name": "north"}], [{"key": good["key"]}], [good["key"]], {"0": good}, None):
        with pytest.raises(ReleaseError, match="sound release"):
            Release.from_json(changed(put("signatures", value=bad), merged))


def test_not_too_many_signatures() -> None:
    """Each costs time to check."""
    good = signed().signatures[0]
    assert len(Release.from_json(with_signatures(merged, [good] * MAX_SIGNATURES)).signatures) == MAX_SIGNATURES == 100
    with pytest.raises(ReleaseError, match="more than 100 signatures"):
        Release.from_json(with_signatures(merged, [good] * (MAX_SIGNATURES + 1)))


@pytest.mark.parametrize(
    "change",
    [
        put("trees", 0, "counts", 0, value=12345),
        both(part(epsilon="1"), derived),
        both(part(owner="nord"), derived),
        part(made_by="somebody"),
        put("made_by", value="somebody"),
        put("chosen", value={}),
    ],
)
def test_nothing_can_be_changed_after_signing(change: Change) -> None:
    """Not even by one who makes the content hash fit."""
    assert Release.from_json(changed(change, merged)).signatures == ()
    with pytest.raises(ReleaseError, match="changed after it was signed"):
        Release.from_json(changed(change, signed))


def test_signing_changes_nothing_else(tmp_path: Path) -> None:
    two = merged().signed(KEY).signed(OTHER_KEY)
    again = merged().signed(KEY).signed(OTHER_KEY).signed(KEY)
    assert [each.key for each in two.signatures] == [sign(key, b"").key for key in (KEY, OTHER_KEY)]
    assert sorted(each.key for each in again.signatures) == sorted(each.key for each in two.signatures)  # one for each key
    assert merged().signatures == ()
    assert two.content_hash == merged().content_hash
    two.save(tmp_path / "forest.json")
    loaded = Release.load(tmp_path / "forest.json")
    assert loaded.signatures == two.signatures
    assert {**json.loads(loaded.to_json()), "signatures": []} == json.loads(merged().to_json())


def test_without_its_signatures_a_document_is_an_unsigned_one() -> None:
    assert Release.from_json(with_signatures(signed, [])).signatures == ()


# ---------------------------------------------------------------- plans


@pytest.mark.parametrize("name", ["plan.json", "plan.json.gz"])
def test_a_plan_in_a_file(name: str, tmp_path: Path) -> None:
    shared = plan().signed(KEY)
    shared.save(tmp_path / name)
    again = PublicPlan.load(tmp_path / name)
    same = ("codebook", "trees", "epsilon", "algorithm", "vote", "parameters", "chosen", "seed", "drawn_with", "made_by", "signatures")
    assert {each: getattr(again, each) for each in same} == {each: getattr(shared, each) for each in same}
    assert again.document() == shared.document()
    assert (len(again.signatures), again.content_hash) == (1, plan().content_hash)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.slow
@given(
    forests(), st.sampled_from(BY_VOTE), st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**6), st.none() | st.integers(0, 2**64)
)
def test_any_plan_comes_back(forest: CountedForest, vote: str, epsilon: Fraction, seed: int | None) -> None:
    drawn = PublicPlan(forest.codebook, forest.trees, epsilon, "test", vote, {"a": 1, "b": None, "c": "é"}, {"height": 2}, seed)
    again = PublicPlan.from_json(json_of(drawn))
    assert (again.codebook, again.trees, again.epsilon, again.seed) == (drawn.codebook, drawn.trees, drawn.epsilon, drawn.seed)
    assert again.document() == drawn.document()


def test_a_plan_of_a_release_holds_no_counts() -> None:
    again = PublicPlan.from_json(json_of(replace(PublicPlan.of(merged(), Fraction(1, 7)), shaped_by=())))
    assert (again.trees, again.epsilon, again.codebook) == (merged().forest.trees, Fraction(1, 7), merged().codebook)
    assert all(record.counts == [] for record in again.document().trees)


def test_settings_in_a_plan_do_not_change_what_is_counted() -> None:
    """A plan may come from anyone: no setting of it makes an owner read the schema from rows, or spend more."""
    hostile = {"schema": "infer", "epsilon": "100", "bins": 2, "sampler": "none", "budget": None, "n_jobs": -1, "random_state": 7, "x": 1}
    read = PublicPlan.from_json(changed(lambda d: d["parameters"].update(hostile), plan))
    release = hedgerow.count(read, *small_table(300))
    assert (release.codebook, release.forest.trees) == (plan().codebook, plan().trees)
    assert (release.certificate.guarantee, release.certificate.epsilon) == ("epsilon-DP", "1/3")
    assert release.schema.unreviewed == ()


BAD_PLAN = {
    "empty": (b"", "sound"),
    "not json": (b"\x00\x01\x02", "sound"),
    "a list": (b"[1, 2]", "sound"),
    "deeply nested": (b'{"format": ' + b"[" * 200_000, "sound"),
    "a release": (lambda: json_of(trained()), "it is a release"),
    "a release of version 1": ((DATA / "release-v1.json").read_bytes(), "it is a release"),
    "other format": (later(put("format", value="other"), plan), "format is 'other'"),
    "newer version": (later(put("version", value=2), plan), "newer hedgerow"),
    "version 0": (later(put("version", value=0), plan), "version 0"),
    "unknown field": (later(put("extra", value=1), plan), "unknown field"),
    "with a certificate": (later(put("certificate", value={}), plan), "unknown field"),
    "a missing field": (later(lambda d: {k: v for k, v in d.items() if k != "vote"}, plan), "sound plan"),
    "altered tree": (later(lambda d: d["trees"].reverse(), plan, rehash=False), "content hash"),
    "altered epsilon": (later(put("epsilon", value="10"), plan, rehash=False), "content hash"),
    "altered seed": (later(put("seed", value=1), plan, rehash=False), "content hash"),
    "counts": (later(put("trees", 1, "counts", value=[1]), plan), "holds no counts"),
    "counts of every leaf": (later(lambda d: d.update(trees=json.loads(json_of(merged()))["trees"]), plan), "holds no counts"),
    "unknown vote": (later(put("vote", value="dictator"), plan), "vote is not known"),
    "no trees": (later(put("trees", value=[]), plan), "number of trees"),
    "too many trees": (later(lambda d: d.update(trees=[{"attribute": [-1], "branch": []}] * 10_001), plan), "number of trees"),
    "a loop": (later(put("trees", 0, "branch", 0, value=0), plan), "after its parent"),
    "a far node": (later(put("trees", 0, "branch", 0, value=10**6), plan), "does not exist"),
    "a huge node": (later(put("trees", 0, "branch", 0, value=10**12), plan), "too large"),
    "too few branches": (later(lambda d: d["trees"][0]["branch"].pop() and None, plan), "branches"),
    "no nodes": (later(put("trees", 0, value={"attribute": [], "branch": []}), plan), "0 nodes"),
    "wrong attribute": (later(put("trees", 0, "attribute", 0, value=77), plan), "attribute"),
    "bad schema": (later(put("schema", value={"target": 3}), plan), "attributes are missing"),
    "endless number": (later(put("schema", "attributes", "age", "high", value=10**400), plan), "finite"),
    "deep schema": (later(put("schema", "attributes", "age", "edges", value=nested(50)), plan), "age"),
    "many attributes": (later(put("schema", "attributes", value=many_attributes()), plan), "too many"),
    "bad bins": (later(put("bins", value=0), plan), "bins"),
    "many bins": (later(put("bins", value=60_000), plan), "bins"),
    "no epsilon": (later(put("epsilon", value=None), plan), "sound plan"),
    "epsilon that is no text": (later(put("epsilon", value=1), plan), "sound plan"),
    "epsilon of zero": (later(put("epsilon", value="0"), plan), "out of range"),
    "negative epsilon": (later(put("epsilon", value="-1"), plan), "plain fraction"),
    "epsilon without end": (later(put("epsilon", value="inf"), plan), "plain fraction"),
    "huge exponent": (later(put("epsilon", value="1e999999999"), plan), "plain fraction"),
    "long exponent": (later(put("epsilon", value="1e999"), plan), "plain fraction"),
    "epsilon of many digits": (later(put("epsilon", value="1." + "1" * 150), plan), "digits"),
    "epsilon that is not in lowest terms": (later(put("epsilon", value="2/6"), plan), "shortest form"),
    "epsilon beyond all noise": (later(put("epsilon", value=str(2**50 + 1)), plan), "out of range"),
    "long epsilon": (later(put("epsilon", value="1" * 100_000), plan), "plain fraction"),
    "epsilon over zero": (later(put("epsilon", value="1/0"), plan), "out of range"),
    "epsilon of words": (later(put("epsilon", value="a little"), plan), "plain fraction"),
    "seed of text": (later(put("seed", value="0"), plan), "sound plan"),
    "no owners": (later(put("tables", value=0), plan), "number of owners"),
    "too many owners": (later(put("tables", value=10_001), plan), "number of owners"),
    "made by a page of text": (later(put("made_by", value="hedgerow\x1b[2J"), plan), "usual words"),
    "drawn with something else": (later(put("drawn_with", value="a table"), plan), "usual words"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(BAD_PLAN))
def test_bad_plans(kind: str, tmp_path: Path) -> None:
    check_refused(PublicPlan.load, *BAD_PLAN[kind], tmp_path / "plan.json")


def test_a_plan_that_was_only_spelt_again_loads() -> None:
    assert PublicPlan.from_json(changed(lambda d: dict(reversed(d.items())), plan)).document() == plan().document()


def test_a_signed_plan_cannot_be_changed() -> None:
    document = json.loads(json_of(plan().signed(KEY)))
    document["epsilon"] = "10"
    with pytest.raises(ReleaseError, match="changed after it was signed"):
        PublicPlan.from_json(with_fitting_hash(document, PlanDocument))


def test_a_plan_is_not_a_release(tmp_path: Path) -> None:
    plan().save(tmp_path / "plan.json")
    with pytest.raises(ReleaseError, match=r"plan\.json: it is a plan: nothing was counted yet"):
        Release.load(tmp_path / "plan.json")
    with pytest.raises(ReleaseError, match="it is not a sound release"):
        Release.from_json(changed(put("format", value=FORMAT), plan).replace(b'"version": 1', b'"version": 2'))


# ---------------------------------------------------------------- one form


@pytest.mark.parametrize(("kind", "made"), [(Release, trained), (PublicPlan, plan)])
def test_a_long_number_is_not_repeated(kind: Any, made: Callable[[], Any]) -> None:
    with pytest.raises(ReleaseError, match="it has version") as raised:
        kind.from_json(changed(put("version", value=10**4000), made))
    assert len(str(raised.value)) < 1000


SPELT_OTHERWISE: dict[str, tuple[Change, Callable[[], Any]]] = {
    "noise": (ensemble(noise=["18/2", "9.0"]), merged),
    "order of columns": (ensemble(columns=["shape", "age", "flag", "colour"]), merged),
    "maker": (put("made_by", value=""), merged),
    "number in the schema": (put("schema", "attributes", "age", "low", value=0), merged),
    "order in the schema": (lambda d: d.update(schema=dict(reversed(d["schema"].items()))), merged),
    "epsilon of a plan": (put("epsilon", value="2/6"), plan),
    "number in the schema of a plan": (put("schema", "attributes", "age", "low", value=0), plan),
}


@pytest.mark.parametrize("what", list(SPELT_OTHERWISE))
def test_what_is_loaded_is_what_was_signed(what: str) -> None:
    """A document that would be written otherwise than it was read loses its signatures: its own file would be refused."""
    change, made = SPELT_OTHERWISE[what]
    kind, format_ = (PublicPlan, PLAN_FORMAT) if made is plan else (Release, FORMAT)
    document = json.loads(changed(change, made))
    signature = sign(KEY, signed_text(format_, document["content_hash"]))
    data = json.dumps({**document, "signatures": [msgspec.to_builtins(signature)]}).encode()
    try:
        read = kind.from_json(data)
    except ReleaseError:
        return
    assert kind.from_json(json_of(read)).signatures == (signature,)
