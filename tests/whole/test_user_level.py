"""One person, many rows: what is charged, drawn and claimed where up to k rows of a person are counted.

Which rows are kept is tested in `test_persons.py`; here is what follows from k.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import exact as exact_answers
import msgspec
import numpy as np
import pandas as pd
import pytest
from strategies import oblivious_trees, small_schema, small_table

from hedgerow import Budget, HedgerowClassifier, PrivateRDTClassifier, Schema, Unit, count, merge, merge_columns, private_score, pseudo_data
from hedgerow import private_table as table_module
from hedgerow.accounting.charges import counting_event
from hedgerow.accounting.events import DISCRETE_GAUSSIAN, EXPONENTIAL, Event
from hedgerow.accounting.loss import plain_fraction
from hedgerow.accounting.meter import Reservation
from hedgerow.accounting.noise import noise_of
from hedgerow.accounting.prices import Rho
from hedgerow.anonymity.requirement import Requirement
from hedgerow.audit.algorithms import Trainer
from hedgerow.audit.bounds import epsilon_at_level
from hedgerow.audit.likelihood import KnownRatio
from hedgerow.audit.membership import membership
from hedgerow.audit.neighbours import SMALL, pairs_for
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import MergeError, PlanError, ReleaseError, SchemaError
from hedgerow.estimators import all_estimators
from hedgerow.growers import hedgerow as hedgerow_grower
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.plots.report import html_report
from hedgerow.private_table import PrivateTable
from hedgerow.queries import (
    Best,
    BestModel,
    BestScale,
    BoostRound,
    Choose,
    ChooseLocally,
    ChooseTree,
    ClassCounts,
    Confusion,
    GradientSums,
    LeafCounts,
    LeafSizes,
    Reliability,
    Rows,
    ScoreBins,
    Sizes,
    Tables,
)
from hedgerow.queries.scores import BRIER, GINI, MAX, NORMAL_GINI, information_gain, scores_of
from hedgerow.release.certificate import certificate_of, part_of
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.sharing.anonymous_release import anonymous_release
from hedgerow.sharing.prune import prune
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.plan import Plan
from hedgerow.trees.splits import by_threshold, by_value

K = 3
KEY = bytes(16)
PLAIN = Codebook(small_schema())
PERSONS = Codebook(replace(small_schema(), person="who", rows_per_person=K))
TREES = [rdt.build_tree_structure(PLAIN, 2, "bins", np.random.default_rng(i)) for i in range(3)]
TREE, NODES = TREES[0], TREES[0].levels[1]
ALL = np.ones((len(NODES), 4), dtype=bool)
SIZES = np.full(len(NODES), 100)
BOOSTED = oblivious_trees(PLAIN, 2, 4)
MODEL = AdditiveModel(np.array([0.5, 0.0]), tuple(TREES[:1]), (np.random.default_rng(9).normal(size=(TREES[0].n_nodes, 2)),))
PRIVATE = [estimator for estimator in all_estimators().values() if estimator._algorithm.private]
private = pytest.mark.parametrize("algorithm", PRIVATE)


def zeros(codes: np.ndarray) -> np.ndarray:
    return np.zeros(len(codes), dtype=np.int64)


def flags(codes: np.ndarray) -> np.ndarray:
    return np.minimum(codes[:, 1], 1).astype(np.int64)


def sure(codes: np.ndarray) -> np.ndarray:
    first = 1 / (1 + codes[:, 2])
    return np.stack([first, 1 - first], axis=1)


QUERY_CASES: dict[str, Callable[[PrivateTable, Any], Any]] = {
    "rows": lambda table, price: [np.array([table.ask(Rows(), price)])],
    "leaf_counts": lambda table, price: table.ask(LeafCounts(TREES), price),
    "confusion": lambda table, price: [table.ask(Confusion(zeros), price)],
    "reliability": lambda table, price: [table.ask(Reliability(sure, 5), price)],
    "score_bins": lambda table, price: [table.ask(ScoreBins(sure, 5, (1,)), price)],
    "gradient_sums": lambda table, price: table.ask(GradientSums(TREES, MODEL), price),
    "leaf_sizes": lambda table, price: table.ask(LeafSizes(TREES), price),
    "boost_round": lambda table, price: [table.ask(BoostRound(BOOSTED[:1], MODEL, isinstance(price, Rho)), price)[1]],
    "choose_tree": lambda table, epsilon: table.ask(ChooseTree(BOOSTED, MODEL, False), epsilon),
    "sizes": lambda table, price: [table.ask(Sizes(TREE, NODES), price)],
    "class_counts": lambda table, price: [table.ask(ClassCounts(TREE, NODES), price)],
    "tables": lambda table, price: [table.ask(Tables(TREE, NODES, ALL), price)],
    "choose": lambda table, epsilon: table.ask(Choose(TREE, NODES, by_value(table.codebook), ALL, GINI), epsilon),
    "choose_locally": lambda table, epsilon: table.ask(ChooseLocally(TREE, NODES, by_value(table.codebook), ALL, SIZES), epsilon),
    "best": lambda table, epsilon: table.ask(Best([zeros, flags]), epsilon),
    "best_model": lambda table, epsilon: table.ask(BestModel([MODEL.probabilities, exact_answers.even]), epsilon),
    "best_scale": lambda table, epsilon: table.ask(BestScale(MODEL, (1.0, 0.5)), epsilon),
}
CHOICES = ("choose", "choose_locally", "best", "best_model", "best_scale", "choose_tree")
COUNTS = [query for query in QUERY_CASES if query not in CHOICES]


def table_of(codebook: Codebook, rows: int = 60, seed: int = 0, each: int = K) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Columns, labels and ids of a table in which every person has `each` rows."""
    columns, labels = small_table(rows, seed)
    return columns, labels, np.arange(rows) // each


def private_table(codebook: Codebook, epsilon: Any = 10, delta: Any = 0, rows: int = 60) -> tuple[PrivateTable, Reservation]:
    columns, labels, who = table_of(codebook, rows)
    engine = MemoryRows(columns, labels, codebook, persons=who if codebook.schema.person else None, key=KEY)
    reservation = Budget(epsilon, delta).reserve(epsilon, "test", delta, Unit.of(codebook.schema))
    return PrivateTable(engine, reservation), reservation


# ---------------------------------------------------------------- the schema


def test_the_schema_names_persons() -> None:
    schema = small_schema()
    assert (schema.person, schema.rows_per_person, schema.k) == (None, None, 1)
    one = replace(schema, person="who")
    assert (one.person, one.rows_per_person, one.k) == ("who", 1, 1)
    five = replace(schema, person="who", rows_per_person=np.int64(5))
    assert (five.k, type(five.rows_per_person)) == (5, int)
    assert "at most 5 of each 'who'" in repr(five)
    different = [schema, one, five, replace(five, rows_per_person=4), replace(five, person="whom")]
    assert all((a == b) == (i == j) for i, a in enumerate(different) for j, b in enumerate(different))
    assert one == replace(one, rows_per_person=1)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rows_per_person": 2}, "needs `person`"),
        ({"person": "colour"}, "attribute or the target"),
        ({"person": "class"}, "attribute or the target"),
        ({"person": ""}, "non-empty"),
        ({"person": 3}, "non-empty"),
        *[({"person": "who", "rows_per_person": bad}, "whole number") for bad in (0, -1, 1.5, 2.0, "2", True, 10**7)],
    ],
    ids=str,
)
def test_what_is_no_person_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        replace(small_schema(), **fields)


def test_persons_in_a_toml_file(tmp_path: Path) -> None:
    schema = replace(small_schema(rows=70), person='who "is" it', rows_per_person=5)
    text = schema.to_toml()
    assert 'person = "who \\"is\\" it"\nrows_per_person = 5\n' in text
    assert Schema.from_toml(text) == schema
    schema.save(tmp_path / "schema.toml")
    assert Schema.load(tmp_path / "schema.toml") == schema
    written = 'person = "who"\n' + small_schema().to_toml()
    assert Schema.from_toml(written).k == 1
    for line, words in {
        "rows_per_person = 3": "needs `person`",
        'person = "class"': "attribute or the target",
        'person = "who"\nrows_per_person = 0': "whole number",
        "person = 3": "non-empty",
        "persons = 3": "unknown key",
    }.items():
        with pytest.raises(SchemaError, match=words):
            Schema.from_toml(f"{line}\n{small_schema().to_toml()}")


def test_a_schema_without_persons_is_written_as_before() -> None:
    """A file without persons has no new field, in a release, in a plan and in TOML."""
    X, y = small_table(100)
    model = PrivateRDTClassifier(small_schema(rows=100), 1, max_depth=1, random_state=0).fit(X, y)
    for text in (model.release_.to_json(), msgspec.json.encode(model.public_plan().document()), small_schema().to_toml().encode()):
        assert b"person" not in text.replace(b"each person has at most one row in the table", b"")


# ---------------------------------------------------------------- events


@pytest.mark.parametrize("query", COUNTS)
def test_counting_has_k_times_the_sensitivity(query: str) -> None:
    events = []
    for codebook in (PLAIN, PERSONS):
        table, reservation = private_table(codebook)
        QUERY_CASES[query](table, Fraction(1, 2))
        events += reservation.events
    one, three = events
    assert (three.sensitivity, three.scale) == (K * one.sensitivity, K * one.scale)
    assert replace(three, sensitivity=one.sensitivity, scale=one.scale) == one
    events = []
    for codebook in (PLAIN, PERSONS):
        table, reservation = private_table(codebook, 1, "1e-6")
        QUERY_CASES[query](table, Rho(Fraction(1, 10_000)))
        events += reservation.events
    one, three = events
    assert three.mechanism == DISCRETE_GAUSSIAN
    assert (three.sensitivity, three.scale) == (K**2 * one.sensitivity, K**2 * one.scale)
    assert replace(three, sensitivity=one.sensitivity, scale=one.scale) == one


@pytest.mark.parametrize("query", CHOICES)
def test_choices_have_k_times_the_sensitivity(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the rate at which the choice is made is one k-th, for the published local choice, too."""
    events, rates = [], []
    monkeypatch.setattr(
        table_module, "choose_columns", lambda scores, allowed, event, unit, coins: rates.append(1 / event.scale) or np.zeros(9, int)
    )
    monkeypatch.setattr(table_module, "exponential_mechanism", lambda scores, allowed, rate, coins: rates.append(rate) or np.zeros(9, int))
    for codebook in (PLAIN, PERSONS):
        table, reservation = private_table(codebook)
        QUERY_CASES[query](table, Fraction(1, 2))
        events += reservation.events
    one, three = events
    assert (three.sensitivity, three.scale) == (K * one.sensitivity, K * one.scale)
    assert replace(three, sensitivity=one.sensitivity, scale=one.scale) == one
    half = len(rates) // 2
    assert rates[:half] == [K * rate for rate in rates[half:]]


@pytest.mark.parametrize("score", [GINI, MAX, NORMAL_GINI, BRIER, information_gain(1000)], ids=lambda score: score.name)
def test_events_for_one_row_are_as_they_were(score: Any) -> None:
    epsilon = Fraction(1, 7)
    assert Choose.cost(epsilon, 1, score, EXPONENTIAL) == Choose.cost(epsilon, 1, score, EXPONENTIAL)
    assert Choose.cost(epsilon, 5, score, EXPONENTIAL).sensitivity == 5 * score.plain_sensitivity
    assert counting_event("rows", epsilon, 2, 3, 4, 1) == counting_event("rows", epsilon, 2, 3, 4)
    assert counting_event("rows", epsilon, 2, 3, 4, 5).scale == 2 * 3 * 5 * 7
    assert counting_event("rows", Rho(epsilon), 2, 3, 4, 5).scale == Fraction(2 * 4 * 25 * 7, 2)


# ---------------------------------------------------------------- what one person changes


def crowded_table() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Persons with 1 to 7 rows, one with equal rows only, two without an id; some labels are undeclared."""
    columns, labels = small_table(60, seed=4)
    rng = np.random.default_rng(1)
    who = rng.integers(0, 14, 60).astype(object)
    who[:8] = [None, "", None, None, "", float("nan"), None, None]
    labels = labels.astype(object)
    labels[::9] = "undeclared"
    for name in columns:
        columns[name][10:16] = columns[name][10]
    columns["colour"][10:16], columns["shape"][10:16], labels[10:16], who[10:16] = "red", "round", "yes", 99
    return columns, labels, who


def without(table: tuple[dict[str, np.ndarray], np.ndarray, np.ndarray], gone: np.ndarray) -> MemoryRows:
    columns, labels, who = table
    return MemoryRows({name: c[~gone] for name, c in columns.items()}, labels[~gone], PERSONS, persons=who[~gone], key=KEY)


def each_person(who: np.ndarray) -> dict[str, np.ndarray]:
    texts = np.array(["" if value is None or value != value else str(value) for value in who])
    return {text: texts == text for text in np.unique(texts)}


@pytest.mark.parametrize("query", COUNTS)
def test_one_person_changes_no_more_than_is_charged_for(query: str) -> None:
    """Every person of a table is left out in turn. The L1 and L2 norms of the change are within the events' sensitivities, and reach them.

    ε is so large that no number has noise: the chance that one is off is below e^(−200).
    """
    table = crowded_table()
    persons = each_person(table[2])
    assert max(gone.sum() for gone in persons.values()) > K + 3

    def exact(gone: np.ndarray) -> tuple[np.ndarray, Event]:
        reservation = Budget(10**9).reserve(10**9, "test", unit=Unit.of(PERSONS.schema))
        answers = QUERY_CASES[query](PrivateTable(without(table, gone), reservation), Fraction(10**8))
        return np.concatenate([np.asarray(answer).ravel() for answer in answers]), reservation.events[0]

    whole, event = exact(np.zeros(60, dtype=bool))
    gaussian, reservation = private_table(PERSONS, 1, "1e-6")
    QUERY_CASES[query](gaussian, Rho(Fraction(1, 10_000)))
    moved = np.array([whole - exact(gone)[0] for gone in persons.values()])
    l1, l2 = np.abs(moved).sum(axis=1), (moved.astype(np.float64) ** 2).sum(axis=1)
    most_l1, most_l2 = event.queries * event.sensitivity, reservation.events[0].queries * reservation.events[0].sensitivity
    assert l1.max() <= most_l1
    assert l2.max() <= most_l2
    if query not in ("gradient_sums", "boost_round"):  # a row's gradient is as large as that only where the model is sure and wrong
        assert l1.max() == most_l1
        assert l2.max() == most_l2


@pytest.mark.parametrize("score", [GINI, MAX, NORMAL_GINI, information_gain(1000), information_gain(4)], ids=lambda score: score.name)
def test_one_person_changes_scores_no_more_than_is_charged_for(score: Any) -> None:
    """The rows may be in several nodes. Of a monotone score the changes of a node lie within its share of k·Δ of each other."""
    table = crowded_table()
    candidates = by_threshold(PERSONS)
    whole = scores_of(score, exact_answers.split_counts(without(table, np.zeros(60, bool)), TREE, NODES), candidates)
    largest = 0
    for gone in each_person(table[2]).values():
        moved = whole - scores_of(score, exact_answers.split_counts(without(table, gone), TREE, NODES), candidates)
        if score.monotone:
            spread = (moved.max(axis=1) - moved.min(axis=1)).sum()
            largest = max(largest, spread)
        else:
            largest = max(largest, np.abs(moved).max(axis=1).sum())
    assert score.sensitivity / 8 < largest <= K * score.sensitivity


def test_one_person_changes_right_answers_no_more_than_is_charged_for() -> None:
    table = crowded_table()
    whole = without(table, np.zeros(60, bool))
    scales = np.array([1.0, 0.5, 0.1])
    for gone in each_person(table[2]).values():
        rest = without(table, gone)
        right = [np.trace(exact_answers.confusion(whole, p)) - np.trace(exact_answers.confusion(rest, p)) for p in (zeros, flags)]
        assert all(0 <= moved <= K for moved in right)
        brier = exact_answers.brier_sums(whole, MODEL, scales) - exact_answers.brier_sums(rest, MODEL, scales)
        assert ((brier >= 0) & (brier <= K * BRIER.sensitivity)).all()


ATTACK_RUNS, ALPHA = 4_000, 5e-7


def lower_bound_on_epsilon(planted: bool) -> float:
    """From how often `rows` says n + k on the table with one person more, and on the one without: ε = 1, confidence 1 − 1e-6."""
    hits = []
    for rows in (60, 60 + K):
        table, _ = private_table(PERSONS, ATTACK_RUNS, rows=rows)
        if planted:
            table._k = 1
        hits.append(sum(table.ask(Rows(), Fraction(1)) >= 60 + K for _ in range(ATTACK_RUNS)))
    return float(epsilon_at_level(hits[1], ATTACK_RUNS, hits[0], ATTACK_RUNS, ALPHA))


@pytest.mark.slow
@pytest.mark.statistical
def test_an_attack_on_one_person_finds_no_more_than_epsilon() -> None:
    """False alarm: 1e-6. With the noise for one row the same attack finds ε above 2 (it is 3; missed with a chance below 1e-6)."""
    assert 0.5 < lower_bound_on_epsilon(planted=False) <= 1
    assert lower_bound_on_epsilon(planted=True) > 2


# ---------------------------------------------------------------- growers and estimators


def frame(rows: int = 600, each: int = K, seed: int = 0) -> pd.DataFrame:
    columns, labels = small_table(rows, seed)
    return pd.DataFrame({**columns, "class": labels, "who": [f"person {i // each}" for i in range(rows)]})


def schema_of(k: int | None, rows: int | None = None) -> Schema:
    return small_schema(rows) if k is None else replace(small_schema(rows), person="who", rows_per_person=k)


def one_row(query: str) -> dict[str, Fraction]:
    """The sensitivities that are proven for one row."""
    if query == "gradient_sums":
        return {"discrete Laplace": Fraction(4096), DISCRETE_GAUSSIAN: Fraction(4096**2)}
    if query == "boost_round":
        return {"discrete Laplace": Fraction(2048), DISCRETE_GAUSSIAN: Fraction(2027**2)}
    if query == "choose_tree":
        return {"permute-and-flip": Fraction(2048, 4096), EXPONENTIAL: Fraction(2027, 4096)}
    if query in ("choose", "best", "best_model", "best_scale"):
        return dict.fromkeys(("permute-and-flip", EXPONENTIAL), Fraction(1 if query == "best" else 2))
    return {"discrete Laplace": Fraction(1), DISCRETE_GAUSSIAN: Fraction(1)}


@private
@pytest.mark.parametrize("rows", [None, 600])
def test_k_rows_of_epsilon_are_one_row_of_a_kth(algorithm: Any, rows: int | None) -> None:
    """With the same coins a fit of ε for k rows makes the same forest as one of ε/k for one row: noise, choices and self-tuning agree."""
    made, plans = [], []
    columns, labels, who = table_of(PERSONS, 600)
    for k, epsilon in ((None, Fraction(2)), (K, Fraction(2 * K))):
        model = algorithm(schema_of(k, rows), epsilon, random_state=0)
        codebook = model._codebook(model.schema, None)
        recipe, method = model._recipe(), model._algorithm.method
        plan: Plan = method.plan(recipe, codebook, epsilon, rows or 600, rows is not None)
        engine = MemoryRows(columns, labels, codebook, persons=None if k is None else who, key=KEY)
        reservation = Budget(epsilon).reserve(epsilon, "test", unit=Unit.of(codebook.schema))
        grown = method.grow(recipe, PrivateTable(engine, reservation, SeededCoins(5)), plan)
        made.append((grown, reservation.events))
        plans.append(plan)
    (one, one_events), (three, three_events) = made
    assert one.forest.trees == three.forest.trees
    assert all(np.array_equal(a, b) for a, b in zip(one.forest.counts, three.forest.counts, strict=True))
    assert one.forest.noise == three.forest.noise
    assert (one.released, one.chosen) == (three.released, three.chosen)
    for before, after in [(one_events, three_events), (plans[0].events, plans[1].events)]:
        paid = [replace(e, epsilon=e.epsilon / K, sensitivity=e.sensitivity / K) for e in after]
        assert paid == list(before)
    assert plans[0].trees == plans[1].trees
    assert plans[0].chosen == plans[1].chosen
    assert plans[0].noise_sd == plans[1].noise_sd
    assert (plans[0].rows_per_person, plans[1].rows_per_person) == (1, K)
    assert ("rows of a person" in str(plans[1]), "rows of a person" in str(plans[0])) == (True, False)


def test_a_hedgerow_forest_with_delta_sees_the_true_noise() -> None:
    epsilon, delta, n = Fraction(1), Fraction("1e-6"), 100_000
    found = []
    for codebook in (PLAIN, PERSONS):
        shares = hedgerow_grower.BudgetShares.after_rows(codebook, n, epsilon, delta, Fraction(0))
        other = replace(shares, amount=Fraction(1, 10), concentrated=True)
        counts = counting_event("leaf_counts", other.price(Fraction(1, 2)), queries=4, rows_per_person=codebook.schema.k)
        assert noise_of(counts).sigma_squared == pytest.approx(other.noise_sd(4, Fraction(1, 2)) ** 2)
        sizes = hedgerow_grower.Sizes.of(codebook, n, shares, epsilon, hedgerow_grower.Settings())
        found.append((sizes.x, shares.noise_sd(4), other.rate(Fraction(1, 10))))
    for one, three, factor in zip(*found, (1 / K, K, 1 / K), strict=True):
        assert three == pytest.approx(factor * one)


@private
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_a_release_states_the_noise_that_was_drawn(algorithm: Any, delta: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every estimator: events of k rows, their noise in the forest, and a file that is believed when it is read again."""
    if delta and not algorithm._algorithm.delta:
        pytest.skip("it has no Gaussian noise")
    drawn = []
    real = table_module.add_noise

    def watched(counts: Any, event: Any, coins: Any, sampler: Any) -> Any:
        drawn.append(event)
        return real(counts, event, coins, sampler)

    monkeypatch.setattr(table_module, "add_noise", watched)
    model = algorithm(schema_of(K), 30, **({"delta": delta} if delta else {}), random_state=0).fit(frame(3000))
    release = model.release_
    (part,) = release.certificate.parts
    for event in part.events:
        k = K**2 if event.mechanism == DISCRETE_GAUSSIAN else K
        assert plain_fraction(event.sensitivity) == k * one_row(event.query)[event.mechanism]
    if delta:
        assert {event.mechanism for event in part.events} >= {DISCRETE_GAUSSIAN, EXPONENTIAL}
    counted = {noise_of(event) for event in drawn if event.query in ("leaf_counts", "class_counts", "tables")}
    assert set(release.forest.noise) <= counted
    last = [noise_of(event) for event in drawn if event.query == "leaf_counts"]
    assert not last or release.forest.noise == (last[-1],)
    assert (part.rows_per_person, part.of_persons, part.k) == (K, True, K)
    again = Release.from_json(release.to_json())
    assert again.certificate == release.certificate
    assert again.schema == release.schema
    assert again.to_json() == release.to_json()


def tampered(release: Release, change: Callable[[dict[str, Any]], None]) -> bytes:
    from hedgerow.release.document import Document
    from hedgerow.release.files import with_hash

    plain = json.loads(release.to_json())
    change(plain)
    return msgspec.json.encode(with_hash(msgspec.convert(plain, Document)))


def less_noise(plain: dict[str, Any]) -> None:
    """The events and the noise of one row, under the name of k."""
    for event in plain["certificate"]["parts"][0]["events"]:
        event["sensitivity"], event["scale"] = "1", str(int(event["scale"]) // K)
    for ensemble in plain["ensembles"]:
        ensemble["noise"] = [str(int(noise) // K) for noise in ensemble["noise"]]


def fewer_in_the_part(plain: dict[str, Any]) -> None:
    plain["certificate"]["parts"][0]["rows_per_person"] = 1


def none_in_the_part(plain: dict[str, Any]) -> None:
    del plain["certificate"]["parts"][0]["rows_per_person"]


def more_in_the_schema(plain: dict[str, Any]) -> None:
    plain["schema"]["rows_per_person"] = K + 1


def none_in_the_schema(plain: dict[str, Any]) -> None:
    del plain["schema"]["rows_per_person"], plain["schema"]["person"]


def another_unit(plain: dict[str, Any]) -> None:
    plain["certificate"]["unit"] = "one row"


def zero_rows(plain: dict[str, Any]) -> None:
    plain["certificate"]["parts"][0]["rows_per_person"] = 0


@pytest.mark.parametrize(
    "change", [less_noise, fewer_in_the_part, none_in_the_part, more_in_the_schema, none_in_the_schema, another_unit, zero_rows]
)
def test_a_file_that_claims_more_than_its_noise_is_refused(change: Any) -> None:
    model = PrivateRDTClassifier(schema_of(K, 600), 1, n_estimators=2, max_depth=1, random_state=0).fit(frame())
    assert tampered(model.release_, lambda plain: None) == model.release_.to_json()
    with pytest.raises(ReleaseError, match="not sound"):
        Release.from_json(tampered(model.release_, change))


def test_an_information_gain_of_k_rows_is_believed() -> None:
    for criterion in ("information_gain", "max", "gini_half"):
        model = all_estimators()["DiffPID3Classifier"](schema_of(K), 30, criterion=criterion, random_state=0).fit(frame())
        assert Release.from_json(model.release_.to_json()).certificate.guarantee == "epsilon-DP"


def test_private_scores_have_the_noise_of_persons() -> None:
    data = frame(300)
    release = PrivateRDTClassifier(schema_of(K), 3, max_depth=1, random_state=0).fit(data).release_
    score = private_score(release, data, epsilon=2)
    assert score.noise_scale == Fraction(K, 2)
    assert score.certificate.unit == "one person"
    assert [event.sensitivity for event in score.certificate.events] == [str(K)]


# ---------------------------------------------------------------- what is claimed


def part(k: int | None, id: str = "a", epsilon: Any = 1, **fields: Any) -> Any:
    event = counting_event("leaf_counts", Fraction(epsilon), rows_per_person=k or 1)
    about = {} if k is None else {"person": "who", "rows_per_person": k}
    made = part_of([event], requested=Fraction(epsilon), sampler="a sampler", secret=True, id=id, **about)
    return msgspec.structs.replace(made, **fields)


NEIGHBOURS = {
    (None,): ("one row", "add or remove one row"),
    (1,): ("one person", "add or remove one person, with at most one row counted"),
    (3,): ("one person", "add or remove one person, with at most 3 rows counted"),
    (None, None): ("one person", "add or remove one person, with at most one row in each counted table"),
    (3, 3): ("one person", "add or remove one person, with at most 3 rows counted in each counted table"),
    (1, None): ("one person", "add or remove one person, with at most one row counted in each counted table"),
    (3, None): ("one person", "add or remove one person, with at most 1 to 3 rows counted in each counted table, as the table states"),
    (3, 5): ("one person", "add or remove one person, with at most 3 to 5 rows counted in each counted table, as the table states"),
}


@pytest.mark.parametrize("units", list(NEIGHBOURS), ids=str)
def test_the_unit_is_stated(units: tuple[int | None, ...]) -> None:
    parts = [part(k, id=f"table {i}", ensemble=i) for i, k in enumerate(units)]
    certificate = certificate_of(parts)
    assert (certificate.unit, certificate.neighbours) == NEIGHBOURS[units]
    assert certificate.epsilon == str(len(units))  # losses add up, whatever a person is in each table
    assert certificate.sentence() == f"ε = {len(units)} differential privacy, neighbours: {certificate.neighbours}"
    one_row_each = "each person has at most one row in the table" in certificate.assumptions
    assert one_row_each == (None in units)
    said = [text for text in certificate.assumptions if text.startswith("a person is one value of the column 'who'")]
    assert len(said) == len({k for k in units if k})
    assert certificate.of_persons == (None not in units)


def test_losses_of_persons_in_several_tables_add_unless_disjoint() -> None:
    assert certificate_of([part(3), part(3, id="b", epsilon=2)]).epsilon == "3"
    assert certificate_of([part(3, disjoint=True), part(3, id="b", epsilon=2, disjoint=True)]).epsilon == "2"


def test_a_report_speaks_of_persons() -> None:
    data = frame()
    alone = PrivateRDTClassifier(schema_of(K), 1, max_depth=1, random_state=0).fit(data).release_
    page = html_report(alone)
    assert "had any one person, with all of their rows, been left out of the table" in page
    assert "with at most 3 rows counted" in page
    assert "two ids" in page
    assert "any one row" not in page
    assert "k rows make k times" not in page
    rows = PrivateRDTClassifier(schema_of(None), 1, max_depth=1, random_state=0).fit(data.drop(columns="who")).release_
    assert "had any one row been left out of the table" in html_report(rows)


def test_plans_and_merges_of_another_unit_are_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_depth": 1, "n_estimators": 2, "random_state": 0}
    plans = {k: PrivateRDTClassifier(schema_of(k), 1, **settings).public_plan() for k in (None, 1, K)}
    for k, plan in plans.items():
        plan.save(tmp_path / f"{k}.json")
        again = PublicPlan.load(tmp_path / f"{k}.json")
        assert (again.schema, again.content_hash) == (plan.schema, plan.content_hash)
    assert len({plan.content_hash for plan in plans.values()}) == 3
    counted = {k: count(plan, frame() if k else frame().drop(columns="who"), owner=f"owner {k}") for k, plan in plans.items()}
    other = count(plans[K], frame(seed=1), owner="another")
    for a, b in [(None, K), (1, K), (None, 1)]:
        with pytest.raises(MergeError, match="what one person is"):
            merge([counted[a], counted[b]])
    both = merge([counted[K], other])
    assert both.certificate.neighbours == NEIGHBOURS[3, 3][1]
    assert both.certificate.epsilon == "2"
    assert both.forest.noise == (Fraction(2 * K), Fraction(2 * K))
    assert Release.from_json(both.to_json()).certificate == both.certificate
    with pytest.raises(PlanError, match="another schema"):
        PrivateRDTClassifier(schema_of(1), 1, **settings)._count(
            MemoryRows(*small_table(10), Codebook(schema_of(1)), persons=np.arange(10), key=KEY), plans[K], None
        )


def test_columns_of_owners_with_other_units_are_united() -> None:
    data = frame()
    whole = schema_of(K)
    releases = {}
    for names, k in ((("colour", "flag"), K), (("age", "shape"), K), (("age",), None), (("shape",), 2)):
        schema = Schema([a for a in whole.attributes if a.name in names], whole.target, person="who" if k else None, rows_per_person=k)
        table = data[[*names, "class", *(["who"] if k else [])]]
        releases[names, k] = PrivateRDTClassifier(schema, 1, max_depth=1, random_state=0).fit(table).release_
    first, same, none, two = releases.values()
    mixed = "at most 1 to 3 rows"
    for others, k, words in [([same], K, "at most 3 rows"), ([none], None, mixed), ([none, two], None, mixed)]:
        united = merge_columns([first, *others])
        assert united.schema.rows_per_person == k
        assert words in united.certificate.neighbours
        assert united.certificate.epsilon == str(1 + len(others))
        again = Release.from_json(united.to_json())
        assert again.certificate == united.certificate
    alone = merge_columns([first])
    assert alone.schema.rows_per_person == K
    assert Release.from_json(alone.to_json()).certificate == alone.certificate


def test_more_rows_of_the_same_persons_are_added() -> None:
    model = PrivateRDTClassifier(schema_of(K), 1, max_depth=1, random_state=0)
    model.partial_fit(frame(seed=0), batch="one").partial_fit(frame(seed=1), batch="two")
    assert model.release_.certificate.epsilon == "2"
    assert model.release_.certificate.neighbours == NEIGHBOURS[3, 3][1]
    assert [part.rows_per_person for part in model.release_.certificate.parts] == [K, K]
    assert Release.from_json(model.release_.to_json()).certificate == model.release_.certificate


def test_a_shared_plan_of_a_hedgerow_forest_has_the_noise_of_persons() -> None:
    model = HedgerowClassifier(schema_of(K), 1)
    plan = model.public_plan(tables=2)
    assert model._algorithm.method.shared_plan(model._recipe(), plan.codebook, Fraction(1), None).events[0].scale == 4 * K
    assert count(plan, frame(), owner="a").forest.noise == (Fraction(4 * K),)


def test_pseudo_data_of_several_releases_states_their_unit() -> None:
    releases = [PrivateRDTClassifier(schema_of(K), 1, max_depth=1, random_state=i).fit(frame(seed=i)).release_ for i in range(2)]
    made = pseudo_data(releases, 50)
    assert made.certificate.neighbours == NEIGHBOURS[3, 3][1]
    assert pseudo_data(releases[:1], 50).certificate.neighbours == NEIGHBOURS[3,][1]


def test_anonymity_is_refused_where_a_person_may_have_several_rows() -> None:
    """Its paths count rows, and it speaks of persons."""
    from hedgerow import LocalTreeClassifier

    for k in (1, K):
        local = LocalTreeClassifier(schema_of(k)).fit(frame(each=2)).release_
        pruned = prune(local.forest, Requirement(k=2))
        if k == 1:
            release = anonymous_release(pruned)
            assert Release.from_json(release.to_json()).certificate.guarantee == "anonymity"
        else:
            with pytest.raises(SchemaError, match="rows_per_person"):
                anonymous_release(pruned)


def test_at_most_k_rows_of_everybody_are_counted() -> None:
    """End to end: 40 persons with 15 rows each; with almost no noise, the counts are of 3 rows of each."""
    model = PrivateRDTClassifier(schema_of(K), 10_000, n_estimators=1, max_depth=1, random_state=0).fit(frame(600, each=15))
    assert model.release_.forest.counts[0].sum() == 40 * K


# ---------------------------------------------------------------- audits


@pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")  # noise may look like rows that fit no leaf
def test_pairs_of_an_audit_differ_in_one_person() -> None:
    """The likelihood ratio of any output is at most ε, and reaches it: the person's rows are all alike and all counted."""
    schema = replace(SMALL, rows=50, person="who", rows_per_person=K)
    reached = 0.0
    for name in ("one row", "balanced"):
        (pair,) = pairs_for(schema, [name])
        assert len(pair.with_row) == len(pair.without) + K
        assert len(set(pair.with_row.columns["who"])) == len(set(pair.without.columns["who"])) + 1
        ratio = KnownRatio(pair)
        for table in (pair.without, pair.with_row):
            release = Trainer("PrivateRDTClassifier", "2", {"n_estimators": 2, "max_depth": 1})(table)
            assert abs(ratio.ratio(release)) <= 2 + 1e-9
            for exact in ratio._exact(release):
                likely = Release(replace(release.forest, counts=tuple(exact)), release.certificate, algorithm="RDT", vote=release.vote)
                reached = max(reached, abs(ratio.ratio(likely)))
    assert reached == pytest.approx(2)
    with pytest.raises(PlanError, match="names persons"):
        membership(Trainer("PrivateRDTClassifier", "1"), pair.with_row, epsilon=1)
