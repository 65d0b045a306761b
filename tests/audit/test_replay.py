"""Transcript replay: no request of ours differs on neighbouring tables, wherever their rows are; planted faults do, each in seconds.

Nothing here is statistical: keys, names and the answers of the first run are seeded.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from audit import planted_replays as faults
from audit.test_planted import CASES, TABLES, Case
from slow import slow_but

from hedgerow import private_table as verbs
from hedgerow.accounting.meter import Reservation
from hedgerow.audit import random_pairs, replay
from hedgerow.audit.algorithms import ALGORITHMS
from hedgerow.audit.answers import ANSWERS
from hedgerow.audit.content import difference, parts_of
from hedgerow.audit.listening import Listening
from hedgerow.audit.neighbours import SMALL, Pair, pairs_for
from hedgerow.audit.replaying import Replay
from hedgerow.audit.requests import OTHERS, PLACES, WIDE, Request, evaluate, fit, place_named
from hedgerow.audit.transcript import Transcript
from hedgerow.errors import AuditError, PlanError
from hedgerow.mechanisms import choices, gaussian, samplers
from hedgerow.mechanisms import noise as mechanisms
from hedgerow.mechanisms.coins import SYSTEM, SystemCoins
from hedgerow.mechanisms.samplers import discrete_laplace
from hedgerow.private_table import PrivateTable
from hedgerow.schema.schema import Schema
from hedgerow.trees.tree import TreeBuilder

UNITS = {"row": SMALL, "person": replace(SMALL, person="who"), "person, k = 3": replace(SMALL, person="who", rows_per_person=3)}
REQUESTS = {**{name: (fit(name), 1) for name in ALGORITHMS}, **OTHERS}
QUICK = ("as drawn", "large")
FILES = [engine for engine in PLACES if engine != "memory"]
PLACED = [(number, *each) for number, each in enumerate(product(ALGORITHMS, FILES))]
of_each_unit = pytest.mark.parametrize("unit", UNITS)


def is_sound(found: Replay) -> bool:
    assert not found.violated, [finding.wrong for finding in found.findings if finding.wrong]
    assert all(finding.share <= 1 for finding in found.findings)
    return sum(finding.queries for finding in found.findings) > 0


# ---------------------------------------------------------------- our own requests


@of_each_unit
@pytest.mark.parametrize("name", slow_but(["hedgerow", "diffpid3", "count"], REQUESTS))
def test_every_request_is_the_same_on_neighbouring_tables(name: str, unit: str) -> None:
    (ask, times), schema = REQUESTS[name], UNITS[unit]
    train = Request(ask)
    assert is_sound(replay(train, pairs_for(schema, ["outlier", "purity", "empty", "outside"]), epsilon=times, answers=QUICK))
    assert is_sound(replay(train, random_pairs(schema, 6), epsilon=times, answers=["wild"]))


@pytest.mark.parametrize("each", slow_but([(0, "hedgerow", "csv"), (7, "rdt", "parquet"), (14, "diffpid3", "duckdb")], PLACED))
def test_wherever_the_rows_are(each: tuple[int, str, str]) -> None:
    """Another table and other answers for each: what engines answer does not depend on who asks."""
    kinds, (number, name, engine) = list(ANSWERS), each
    for i, schema in enumerate((UNITS["row"], UNITS["person, k = 3" if number % 2 else "person"])):
        pairs = random_pairs(schema, 24)[(5 * number + i) % 24 :][:1]
        with place_named(engine) as place:
            assert is_sound(replay(Request(fit(name), place=place), pairs, epsilon=1, answers=[kinds[(number + i) % len(kinds)]]))


@pytest.mark.parametrize("each", slow_but(1, zip(OTHERS, (*FILES, "csv"), strict=True)), ids="-".join)
def test_other_requests_from_files(each: tuple[str, str]) -> None:
    name, engine = each
    ask, times = OTHERS[name]
    with place_named(engine) as place:
        assert is_sound(replay(Request(ask, place=place), random_pairs(UNITS["person, k = 3"], 5)[4:], epsilon=times, answers=["wild"]))


@pytest.mark.parametrize("unit", slow_but(1, UNITS))
def test_with_a_delta(unit: str) -> None:
    schema = replace(UNITS[unit], attributes=WIDE.attributes)
    train = Request(fit("hedgerow"), 2, {"delta": "1e-6"})
    found = replay(train, pairs_for(schema, ["outlier"]), epsilon=2, answers=["as drawn", "large"])
    assert is_sound(found)
    shares = found.findings[0].shares
    assert shares.keys() == {"rows", "leaf_counts", "choose_tree", "boost_round", "best_scale"}


@pytest.mark.slow
def test_the_bounds_of_the_queries_are_attained() -> None:
    """Else a sensitivity would be stated larger than it is, or the tables would not be aimed well."""
    shares: dict[str, float] = {}
    for name in ("hedgerow", "dpdf", "diffpid3", "private-id3", "evaluate"):
        for finding in replay(Request(REQUESTS[name][0]), pairs_for(SMALL, ["outlier", "purity"]), answers=QUICK).findings:
            shares |= {verb: max(share, shares.get(verb, 0.0)) for verb, share in finding.shares.items()}
    for verb in ("rows", "leaf_counts", "sizes", "class_counts", "tables", "confusion", "reliability", "score_bins"):
        assert shares[verb] == 1, verb
    assert 0.5 < shares["choose"] <= 1


def test_another_sampler() -> None:
    pytest.importorskip("opendp")
    assert is_sound(replay(Request(fit("rdt"), settings={"sampler": "opendp"}), pairs_for(SMALL, ["outlier"]), answers=QUICK))


# ---------------------------------------------------------------- planted faults that the statistical audit finds, too

SEES = {  # what replay says of them
    "half the noise": "under noise of scale 1/4; that is ε = 4, and 2 was charged",
    "true purity": "what comes out is not",
    "branches for present values": "trees[0].sizes is",
    "classes from data": "numbers are answered",
    "noise reused across trees": "without fresh noise",
    "rows dealt by position": "under noise of scale 1; that is ε =",
    "levels forgotten": "all queries together cost ε = 10, and 2 is claimed",
    "monotone discount": "move apart by 2 steps, at a rate of 2; that is ε = 4, and 2 was charged",
    "strange values refused": "ValueError",
    "DPDF as published": "choose, query 2: the scores of the candidates move apart",
    "true size": "what comes out is not",
    "exact score": "output.accuracy is",
    "ε split by the exact size": "leaf_counts, query 1, asks for something else",
    "lonely row refused": "one run ends",
    "missing values filled in": "the exact numbers differ by 41 in L1",
    "noise seeded with the rows": "output.certificate.parts[0].id is",
    "choice among true finalists": "choose, query 1, asks for something else: allowed",
}
CANNOT = {  # a function that replay refuses to judge, with its sound version; and why
    "local sensitivity": "was drawn for no query of a PrivateTable",
    "float noise": "not the same twice|was drawn for no query",
    "seed kept": "not the same twice",
}


def replayed(case: Case, train: Any) -> Replay:
    pair = TABLES.get(case.pair) or pairs_for(names=[case.pair])[0]
    return replay(train, [pair], epsilon=case.epsilon)


def test_the_lists_are_whole() -> None:
    assert SEES.keys() | CANNOT.keys() == {case.name for case in CASES}


@pytest.mark.parametrize("case", slow_but(4, [case for case in CASES if case.name in SEES]), ids=lambda case: case.name)
def test_a_planted_fault_is_seen_and_its_sound_version_is_not_accused(case: Case) -> None:
    found = replayed(case, case.train)
    assert found.violated
    assert SEES[case.name] in found.findings[0].wrong
    assert is_sound(replayed(case, case.sound))


@pytest.mark.parametrize("case", [case for case in CASES if case.name in CANNOT], ids=lambda case: case.name)
def test_what_replay_cannot_see_it_refuses_to_judge(case: Case) -> None:
    for train in (case.train, case.sound):
        with pytest.raises(AuditError, match=CANNOT[case.name]):
            replayed(case, train)


# ---------------------------------------------------------------- faults in the trusted code itself

FAULTS: dict[str, tuple[faults.Fault, Request, Schema, str]] = {
    "half of σ²": (faults.half_sigma_squared, Request(fit("hedgerow"), 2, {"delta": "1e-6"}), WIDE, "in squared L2, under noise of σ²"),
    "noise made smaller": (faults.noise_made_smaller, Request(fit("rdt")), SMALL, "is not the exact numbers with the noise that was drawn"),
    "rows counted twice": (faults.rows_counted_twice, Request(fit("rdt")), SMALL, "ε = 2, and 1 was charged"),
    "blocks overlap": (faults.blocks_overlap, Request(fit("rdt")), SMALL, "the exact numbers differ by"),
    "twice the rate": (faults.twice_the_rate, Request(fit("dpdf")), SMALL, "the scores of the candidates move apart"),
    "one choice for another": (
        faults.one_choice_for_another, Request(fit("hedgerow"), 2, {"delta": "1e-6"}), WIDE, "exponential mechanism was charged",
    ),
    "a look before the charge": (faults.look_before_the_charge, Request(fit("rdt")), SMALL, "without being charged first"),
    "rows of a person forgotten": (
        faults.rows_of_a_person_forgotten, Request(fit("rdt")), UNITS["person, k = 3"], "differ by 9 in L1, under noise of scale 3",
    ),
    "an attribute that counts rows": (faults.kept_attribute, Request(fit("snr")), SMALL, "output.n_samples_ is"),
    "a text that counts rows": (faults.score_with_rows, Request(evaluate), SMALL, "printed is"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_trusted_code_is_seen(name: str) -> None:
    plant, train, schema, words = FAULTS[name]
    pairs = [*pairs_for(schema, ["outlier", "purity"]), *random_pairs(schema, 4)]
    with plant():
        assert any(words in replay(train, [pair], answers=QUICK).findings[0].wrong for pair in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("engine", FILES)
def test_a_fault_in_an_engine_is_seen_where_the_rows_are(engine: str) -> None:
    with faults.batches_counted_twice(), place_named(engine) as place:
        found = replay(Request(fit("rdt"), place=place), pairs_for(SMALL, ["outlier"]), answers=["zero"])
    assert "that is ε = 2, and 1 was charged" in found.findings[0].wrong


def test_a_meter_that_lets_too_much_through_is_seen() -> None:
    with faults.charge_forgotten(), faults.whole_price_for_each_level():
        found = replay(Request(fit("dpdf")), pairs_for(SMALL, ["purity"]), epsilon=1, answers=["exact"])
    assert "its queries cost more than the 1 that was reserved" in found.findings[0].wrong


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3])
def test_what_is_kept_of_a_person_depends_on_no_other(k: int) -> None:
    """Where the number of an occurrence goes on from one person to the next, removing one changes what is kept of another."""
    schema = replace(SMALL, person="who", rows_per_person=k)
    train, pairs = Request(fit("rdt"), settings={"n_estimators": 1, "max_depth": 3}), random_pairs(schema, 40)
    with faults.occurrence_goes_on():
        found = replay(train, pairs, epsilon=1, answers=["zero"])
    assert max(finding.share for finding in found.findings) > 1
    assert "the exact numbers differ by" in next(finding.wrong for finding in found.findings if finding.wrong)
    assert is_sound(replay(train, pairs, epsilon=1, answers=["zero"]))


# ---------------------------------------------------------------- the machine itself


def test_nothing_is_left_behind() -> None:
    def held() -> list[Any]:
        names = [samplers._discrete_laplace, gaussian._discrete_gaussian, choices._choose, mechanisms.add_noise, verbs.add_noise]
        return [*names, *mechanisms.SAMPLERS.values(), SystemCoins.bytes, Reservation.charge, *vars(PrivateTable).values()]

    before = held()
    with Listening():
        assert held() != before
    assert held() == before

    def fails(table: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(fails, pairs_for(SMALL, ["outlier"]))
    assert held() == before


def test_other_threads_draw_their_own_noise() -> None:
    transcript, found = Transcript(ANSWERS["zero"], 0), list[Any]()

    def beside() -> None:
        found.append((SYSTEM.bytes(16), discrete_laplace(Fraction(10**9), 4, SYSTEM).tolist()))

    with Listening() as ears, ears.to(transcript):
        for _ in range(2):
            thread = threading.Thread(target=beside)
            thread.start()
            thread.join()
        assert SYSTEM.bytes(16) == Transcript(ANSWERS["zero"], 0).bytes(16)
    assert found[0] != found[1]
    assert transcript.loose == ""


def test_a_pair_of_equal_tables_uses_nothing_of_the_charge() -> None:
    table = pairs_for(SMALL, ["balanced"])[0].with_row
    found = replay(Request(fit("hedgerow")), [Pair("equal", "a table against itself", table, table)])
    assert is_sound(found)
    assert found.findings[0].share == 0


def test_a_function_that_asks_nothing_is_refused() -> None:
    with pytest.raises(AuditError, match="no query was seen"):
        replay(lambda table: 1, pairs_for(SMALL, ["outlier"]))
    with pytest.raises(PlanError, match="expected a pair"):
        replay(Request(fit("rdt")), [])
    with pytest.raises(PlanError, match="no such"):
        replay(Request(fit("rdt")), pairs_for(SMALL, ["outlier"]), answers=["no such"])


def test_a_forest_without_a_seed_is_refused_and_not_accused() -> None:
    train = Request(fit("rdt"), settings={"random_state": None, "n_estimators": 30})
    with pytest.raises(AuditError, match="not the same twice"):
        replay(train, pairs_for(SMALL, ["outlier"]))


def test_content() -> None:
    builder = TreeBuilder((2, 3))
    first = builder.build()
    builder.split(0, 1)
    second, same = builder.build(), builder.build()
    assert len(same.leaves) == 3  # remembered by one of the two alone
    assert difference(parts_of(second), parts_of(same)) == ""
    assert difference(parts_of(first), parts_of(second)).startswith("attribute is ")
    one: dict[str, Any] = {"a": [1, {"b": np.arange(20)}], "f": lambda x: x}
    assert difference(parts_of(one), parts_of(one | {"a": [1, {"b": np.arange(20)}]})) == ""
    assert difference(parts_of(one), parts_of(one | {"a": [1, {"b": np.arange(20) + 1}]})).startswith("a[1].b is <i8 (20,) hash")
    one["itself"] = one
    assert parts_of(one)
    assert "on one table alone" in difference(parts_of([{}]), parts_of([{}, {}]))


@of_each_unit
def test_random_neighbours_are_neighbours(unit: str) -> None:
    schema = UNITS[unit]
    sizes = set()
    for pair in random_pairs(schema, 32):
        rows = [
            [tuple(map(repr, row)) for row in zip(*table.columns.values(), table.target, strict=True)]
            for table in (pair.without, pair.with_row)
        ]
        more = list(rows[1])
        for row in rows[0]:
            more.remove(row)
        sizes.add(len(rows[0]))
        if schema.person is None:
            assert len(more) == 1
        else:
            who = {row[list(pair.with_row.columns).index("who")] for row in more}
            assert len(who) == 1
            assert who.isdisjoint(row[list(pair.without.columns).index("who")] for row in rows[0])
    assert min(sizes) == 0
    assert max(sizes) > 200
