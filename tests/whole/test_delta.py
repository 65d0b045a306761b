"""(ε, δ) from end to end: budgets, the filter, certificates, files, merges, pseudo-data, reports; and that pure ε stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import small_schema, small_table
from streams import drawn_once
from typer.testing import CliRunner

import hedgerow
from hedgerow import PrivateRDTClassifier, Release
from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.charges import counting_event
from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, EXPONENTIAL, PERMUTE_AND_FLIP, Event
from hedgerow.accounting.loss import exact_delta, text_of_delta, text_of_fraction, text_of_loss
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.noise import Gaussian, noise_from_text, noise_of, rough_variance, text_of_noise, variance_of
from hedgerow.accounting.prices import Rho
from hedgerow.accounting.zcdp import gaussian_variance, rho_for, zcdp_cost
from hedgerow.cli import app
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, PlanError, ReleaseError
from hedgerow.evaluation.private import private_score
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.plots.report import html_report
from hedgerow.private_table import PrivateTable
from hedgerow.queries import LeafCounts, Rows
from hedgerow.release.certificate import certificate_of, losses_of, part_of, shaping_part
from hedgerow.release.files import content_hash
from hedgerow.release.merging import _once
from hedgerow.release.parts import EventRecord, Part
from hedgerow.training.algorithms import ALGORITHMS, Algorithm
from hedgerow.training.private.rdt import PrivateRDT
from hedgerow.training.recipe import Recipe
from hedgerow.trees.additive_model import GRID
from hedgerow.trees.forest import CountedForest, Grown
from hedgerow.trees.plan import Plan

MICRO = Fraction(1, 10**6)
WHOLE = rho_for(Fraction(1), MICRO)
Change = Callable[[Any], Any]


class GaussianTrees(PrivateRDT):
    """Random trees counted with Gaussian noise."""

    def plan(self, recipe: Recipe, codebook: Any, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        delta = exact_delta(recipe.delta)
        pure = super().plan(recipe, codebook, epsilon, rows, public)
        if not delta:
            return pure
        whole = rho_for(epsilon, delta)
        trees = recipe.settings["n_estimators"]
        events = [counting_event("rows", Rho(whole / 4)), counting_event("leaf_counts", Rho(whole / 2), trees)]
        return Plan(pure.algorithm, epsilon, rows, pure.rows_source, pure.n_classes, tuple(events), pure.trees, settings=pure.settings,
                    delta=delta)  # fmt: skip

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        if not plan.delta:
            return super().grow(recipe, table, plan)
        first, counts = plan.events
        n = table.ask(Rows(), Rho(first.rho))
        answers = table.ask(LeafCounts(plan.trees), Rho(counts.rho))
        return Grown(CountedForest(table.codebook, plan.trees, tuple(answers), (noise_of(counts),)), {"rows": n}, {"height": 2})


class GaussianAlgorithm(Algorithm):
    """As in the table of algorithms, but for how it plans and grows."""

    method = GaussianTrees()  # type: ignore[assignment]


class GaussianRDT(PrivateRDTClassifier):
    """Random trees counted with Gaussian noise: the smallest estimator with a δ."""

    _algorithm = GaussianAlgorithm(**asdict(ALGORITHMS["rdt"]))

    def __init__(
        self,
        schema: Any = None,
        epsilon: Any = None,
        delta: Any = 0,
        n_estimators: int = 3,
        max_depth: int | None = 2,
        *,
        bins: int = 5,
        numeric_splits: str = "bins",
        max_leaves: int = 10**6,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            schema, epsilon, n_estimators, max_depth, bins=bins, numeric_splits=numeric_splits, max_leaves=max_leaves, budget=budget,
            sampler=sampler, random_state=random_state, n_jobs=n_jobs,
        )  # fmt: skip
        self.delta = delta


@drawn_once
def trained(seed: int = 0, delta: Any = "1e-6") -> Release:
    release: Release = GaussianRDT(small_schema(), 1, delta, random_state=0).fit(*small_table(400, seed)).release_
    return release


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("value", [0, 0.0, "0", "1e-6", 1e-6, Fraction(1, 10**6), "0.5", "1/3"])
def test_a_delta_is_exact(value: Any) -> None:
    assert exact_delta(value) == Fraction(str(value))


@pytest.mark.parametrize("value", [None, -1e-9, 0.51, 1, 2, "nan", float("inf"), True, "much", "1e-999"])
def test_a_delta_that_is_none_is_refused_with_what_it_means(value: Any) -> None:
    with pytest.raises(PlanError, match="delta"):
        exact_delta(value)
    if value in (0.51, 2):
        with pytest.raises(PlanError, match="chance that the guarantee fails"):
            exact_delta(value)


def test_losses_in_words() -> None:
    assert text_of_loss(Fraction(1, 3), Fraction(0)) == "ε = 1/3"
    assert text_of_loss(Fraction(1), MICRO) == "(ε = 1, δ = 1e-06)"
    assert [text_of_delta(Fraction(d)) for d in ("0", "1/3", "0.001")] == ["0", "1/3", "0.001"]


def test_what_an_event_costs_in_concentrated_privacy() -> None:
    def event(mechanism: str) -> Event:
        return Event("choose", mechanism, Fraction(1, 5), 1, Fraction(1), Fraction(5))

    assert zcdp_cost(event(EXPONENTIAL)) == Fraction(1, 200)
    assert zcdp_cost(event(PERMUTE_AND_FLIP)) == zcdp_cost(event(DISCRETE_LAPLACE)) == Fraction(1, 50)
    assert zcdp_cost(counting_event("rows", Rho(Fraction(1, 7)))) == Fraction(1, 7)
    for mechanism in (EXPONENTIAL, PERMUTE_AND_FLIP, DISCRETE_LAPLACE):
        record = EventRecord.of(event(mechanism))
        assert record.zcdp_cost == zcdp_cost(event(mechanism))


@pytest.mark.parametrize("noise", [Fraction(3, 2), Fraction(1, 3), Gaussian(Fraction(123, 4)), Gaussian(Fraction(2**100))])
def test_noise_as_text(noise: Any) -> None:
    assert noise_from_text(text_of_noise(noise)) == noise
    assert variance_of(noise) == pytest.approx(rough_variance(noise), abs=0.2)  # both are rounded alike where noise is wide


@pytest.mark.parametrize("text", ["", "gaussian", "gaussian ", "gaussian 0", "gaussian -1", "gaussian 1e9", "Gaussian 1", "gaussian  1",
                                  "gaussian 1/0", f"gaussian {2**101}", str(2**51), "laplace 1"])  # fmt: skip
def test_noise_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="noise scale"):
        noise_from_text(text)


# ---------------------------------------------------------------- budgets and the filter


Make = Callable[[Any, Any], Budget]


@pytest.fixture(params=["memory", "file"])
def make_budget(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "memory":
        return Budget
    return lambda epsilon, delta: BudgetFile.create(tmp_path / "budget.json", epsilon, delta)


def test_both_totals_are_kept(make_budget: Make) -> None:
    budget = make_budget(2, "3e-6")
    budget.reserve(1, "first", "1e-6").settle()
    budget.reserve("0.25", "pure").settle()  # nothing was charged: all of it comes back
    assert (budget.spent, budget.spent_delta) == (1, MICRO)  # with δ the whole stays
    with pytest.raises(BudgetError, match=r"requested δ = 3e-06, remaining 2e-06 of 3e-06, short by 1e-06\. Nothing was spent"):
        budget.reserve("0.5", "too sure", "3e-6")
    with pytest.raises(BudgetError, match=r"requested ε = 1\.5, remaining 1 of 2"):
        budget.reserve("1.5", "too much", "1e-6")
    budget.reserve(1, "last", "2e-6")
    assert (budget.remaining, budget.remaining_delta) == (0, 0)
    assert "δ = 3e-06, remaining 0" in repr(budget)


def test_a_budget_without_delta_pays_for_pure_epsilon_alone(make_budget: Make) -> None:
    budget = make_budget(1, 0)
    with pytest.raises(BudgetError, match="made without a δ"):
        budget.reserve(1, "fit", "1e-6")
    assert budget.entries == ()
    assert "δ" not in repr(budget)


def test_a_file_without_delta_says_0(tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "budget.json", "1/3")
    budget.reserve("0.1", "fit").settle()
    document = json.loads((tmp_path / "budget.json").read_text())
    assert list(document) == ["format", "version", "epsilon", "delta", "unit", "entries"]
    assert (document["version"], document["delta"]) == (3, "0")
    assert list(document["entries"][0]) == ["key", "when", "what", "reserved", "spent", "delta", "unit"]


def test_a_file_keeps_its_delta(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    BudgetFile.create(path, 1, "1e-6").reserve("0.5", "fit", "1e-7").settle()
    document = json.loads(path.read_text())
    assert (document["version"], document["delta"]) == (3, "0.000001")
    (entry,) = BudgetFile(path).entries
    assert (entry.reserved, entry.spent, entry.delta) == (Fraction(1, 2), Fraction(1, 2), MICRO / 10)
    for change in ({"delta": "-1"}, {"delta": "0.9"}, {"spent": "0.4"}, {"delta": None}):
        path.write_text(json.dumps({**document, "entries": [{**document["entries"][0], **change}]}))
        with pytest.raises(BudgetError, match="damaged"):
            BudgetFile(path)


def test_the_filter_is_exact_to_the_last_digit(make_budget: Make) -> None:
    reservation = make_budget(1, MICRO).reserve(1, "fit", MICRO)
    assert (reservation.delta, reservation.rho, reservation.rho_charged) == (MICRO, WHOLE, 0)
    epsilon = Fraction(1, 10)
    reservation.charge(counting_event("rows", epsilon))
    left = WHOLE - epsilon**2 / 2
    with pytest.raises(BudgetError, match=r"more than what is left of \(ε = 1, δ = 1e-06\)"):
        reservation.charge(counting_event("rows", Rho(left + Fraction(1, 10**30))))
    reservation.charge(counting_event("rows", Rho(left)))
    assert reservation.rho_charged == WHOLE
    with pytest.raises(BudgetError):
        reservation.charge(counting_event("rows", Rho(Fraction(1, 10**30))))
    assert reservation.charged == 1  # the whole ε, whatever the events
    reservation.settle()
    with pytest.raises(BudgetError, match="settled already"):
        reservation.charge(counting_event("rows", Rho(Fraction(1, 10**9))))
    assert len(reservation.events) == 2


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), st.fractions(Fraction(1, 1000), Fraction(1, 5), max_denominator=1000)), max_size=12))
def test_any_sequence_of_events_stays_within_what_is_certified(steps: list[tuple[bool, Fraction]]) -> None:
    reservation = Budget(1, MICRO).reserve(1, "fit", MICRO)
    spent, epsilon = Fraction(0), Fraction(0)
    all_pure = True
    for pure, amount in steps:
        event = counting_event("rows", amount if pure else Rho(amount / 10))
        cost = amount**2 / 2 if pure else amount / 10
        if spent + cost <= WHOLE or (pure and all_pure and epsilon + amount <= 1):  # [Z4]
            reservation.charge(event)
            spent, epsilon, all_pure = spent + cost, epsilon + amount * pure, all_pure and pure
        else:
            with pytest.raises(BudgetError):
                reservation.charge(event)
    assert reservation.rho_charged == spent
    assert spent <= WHOLE or (all_pure and epsilon <= 1)
    part = part_of(reservation.events, requested=Fraction(1), delta=MICRO, sampler="s", secret=True, id="a")
    assert part.zcdp_cost == spent


def test_a_run_of_pure_events_may_spend_all_of_epsilon_and_then_no_noise_of_the_other_kind() -> None:
    """Either all events are pure and their ε fits, or the ρ of all of them does (PROOF.md, Z4): never half of each."""
    reservation = Budget(1, MICRO).reserve(1, "fit", MICRO)
    reservation.charge(counting_event("rows", Fraction(3, 100)))
    reservation.charge(counting_event("leaf_counts", Fraction(97, 100)))
    for event in (counting_event("rows", Rho(Fraction(1, 10**9))), counting_event("rows", Fraction(1, 10**9))):
        with pytest.raises(BudgetError, match="more than what is left"):
            reservation.charge(event)
    mixed = Budget(1, MICRO).reserve(1, "fit", MICRO)
    mixed.charge(counting_event("rows", Fraction(3, 100)))
    mixed.charge(counting_event("leaf_counts", Rho(WHOLE / 2)))
    with pytest.raises(BudgetError, match="more than what is left"):
        mixed.charge(counting_event("rows", Fraction(97, 100)))  # its ε would fit, but the run is no longer pure


def test_charges_that_are_none() -> None:
    reservation = Budget(1, MICRO).reserve(1, "fit", MICRO)
    for event in (
        Event("rows", DISCRETE_GAUSSIAN, Fraction(0), 1, Fraction(1), Fraction(1)),
        Event("rows", DISCRETE_GAUSSIAN, Fraction(0), 1, Fraction(1), Fraction(1), Fraction(-1)),
        Event("rows", DISCRETE_GAUSSIAN, Fraction(0), 1, Fraction(1), Fraction(1), 0.001),  # type: ignore[arg-type]
        Event("rows", DISCRETE_LAPLACE, Fraction(-1, 100), 1, Fraction(1), Fraction(1)),
        Event("rows", DISCRETE_LAPLACE, Fraction(0), 1, Fraction(1), Fraction(1)),
    ):
        with pytest.raises(BudgetError):
            reservation.charge(event)
    assert reservation.events == ()
    with pytest.raises(PlanError, match=r"2\^"):
        Budget(1, "0.5").reserve(Fraction(1, 2**101), "has no ρ", "0.5")


def test_the_command_line_keeps_both_totals(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"

    def run(*words: object) -> Any:
        return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})

    made = run("budget", "init", path, "--epsilon", "1", "--delta", "1e-6")
    assert made.exit_code == 0
    assert "(ε = 1, δ = 1e-06) in all" in made.stdout
    BudgetFile(path).reserve("0.5", "fit something", "4e-7").settle()
    shown = run("budget", "show", path).stdout
    assert "total δ 1e-06, spent 4e-07, remaining 6e-07" in shown
    assert "4e-07" in next(line for line in shown.splitlines() if "fit something" in line)
    run("budget", "init", tmp_path / "pure.json", "--epsilon", "1")
    assert "δ" not in run("budget", "show", tmp_path / "pure.json").stdout
    assert json.loads((tmp_path / "pure.json").read_text())["delta"] == "0"
    refused = run("budget", "init", tmp_path / "no.json", "--epsilon", "1", "--delta", "1")
    assert refused.exit_code != 0
    assert not (tmp_path / "no.json").exists()


# ---------------------------------------------------------------- an estimator with δ


def test_a_fit_with_delta_says_so(tmp_path: Path) -> None:
    budget = Budget(2, "2e-6")
    estimator = GaussianRDT(small_schema(), 1, "1e-6", random_state=0, budget=budget).fit(*small_table(400))
    certificate = estimator.release_.certificate
    assert (certificate.guarantee, certificate.epsilon, certificate.delta) == ("epsilon-delta-DP", "1", "0.000001")
    assert certificate.private
    assert certificate.sentence() == "(ε = 1, δ = 1e-06) differential privacy, neighbours: add or remove one row"
    assert f"composed by zero-concentrated differential privacy to ρ = {text_of_fraction(WHOLE)}" in certificate.reason
    (part,) = certificate.parts
    assert part.spent == certificate.spent == 1
    assert part.zcdp_cost == WHOLE * 3 / 4 <= part.worth == WHOLE
    assert (budget.spent, budget.spent_delta) == (1, MICRO)  # what was not used is not given back
    assert [(event.mechanism, event.epsilon) for event in certificate.events] == [("discrete Gaussian", "0")] * 2
    sigma_squared = 3 / (2 * WHOLE / 2)
    assert estimator.release_.forest.noise == (Gaussian(sigma_squared),)
    assert estimator.release_.forest.leaf_noise_sd == pytest.approx(gaussian_variance(sigma_squared) ** 0.5)
    estimator.release_.save(tmp_path / "forest.json")
    loaded = Release.load(tmp_path / "forest.json")
    assert loaded.to_json() == estimator.release_.to_json()
    assert loaded.forest.noise == estimator.release_.forest.noise
    assert np.array_equal(loaded.predict(small_table(50)[0]), estimator.predict(small_table(50)[0]))
    plan = str(GaussianRDT(small_schema(), 1, "1e-6").plan())
    assert "(ε = 1, δ = 1e-06)" in plan
    assert "ρ = " in plan


def test_with_delta_zero_nothing_changes() -> None:
    release = trained(delta=0)
    text = release.to_json().decode()
    assert release.certificate.guarantee == "epsilon-DP"
    assert all(word not in text for word in ("delta", "rho", "gaussian"))


def test_what_cannot_be_paid_is_refused_before_the_rows_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryRows, "_open", lambda self: pytest.fail("the rows were opened"))
    for budget in (Budget(1), Budget(1, "1e-7"), Budget("0.5", "1e-6")):
        with pytest.raises(BudgetError):
            GaussianRDT(small_schema(), 1, "1e-6", budget=budget).fit(*small_table(50))
        assert budget.entries == ()
    for bad in (-1, 1, "x", None):
        with pytest.raises(PlanError, match="delta"):
            GaussianRDT(small_schema(), 1, bad).fit(*small_table(50))
    with pytest.raises(PlanError, match="tune"):
        GaussianRDT(small_schema(), 1, "1e-6").tune(*small_table(50), grid={"max_depth": [1, 2]})


def test_seeded_coins_claim_nothing_with_delta_either() -> None:
    estimator = GaussianRDT(small_schema(), 1, "1e-6", random_state=0)
    estimator._coins = SeededCoins(1)
    certificate = estimator.fit(*small_table(100)).release_.certificate
    assert (certificate.guarantee, certificate.epsilon, certificate.delta, certificate.private) == ("none", None, None, False)


# ---------------------------------------------------------------- losses put together


def part(epsilon: Any, delta: Any = 0, **fields: Any) -> Part:
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    event = counting_event("leaf_counts", Rho(rho_for(epsilon, delta)) if delta else epsilon)
    made = part_of([event], requested=epsilon, delta=delta, sampler="s", secret=True, id="a")
    return msgspec.structs.replace(made, **fields)


def test_losses_of_several_tables() -> None:
    a, b, c = part(1, MICRO, id="a"), part(2, MICRO / 2, id="b"), part(1, id="c")
    assert losses_of([a, b, c]) == (4, MICRO * 3 / 2)
    stated = [msgspec.structs.replace(each, disjoint=True) for each in (a, b, c)]
    assert losses_of(stated) == (2, MICRO)  # the largest ε and the largest δ, of two different tables
    certificate = certificate_of(stated)
    assert (certificate.guarantee, certificate.epsilon, certificate.delta) == ("epsilon-delta-DP", "2", "0.000001")
    assert "the largest ε, and the δ, of the tables counts" in certificate.reason
    assert losses_of([a, msgspec.structs.replace(b, ensemble=1)]) == (3, MICRO * 3 / 2)  # columns always add up
    assert certificate_of([c]).guarantee == "epsilon-DP"
    assert "delta" not in msgspec.json.encode(certificate_of([c, part(1, id="d")])).decode()


@given(st.data())
def test_no_person_loses_more_than_is_claimed(data: Any) -> None:
    """By trying them all: a person is in any tables of an ensemble of which no two are stated to be disjoint."""
    deltas = st.sampled_from([0, MICRO, MICRO / 3, Fraction(1, 100)])
    parts = [
        part(data.draw(st.sampled_from([1, 2, Fraction(1, 3)])), data.draw(deltas), id=name, disjoint=data.draw(st.booleans()),
             group=data.draw(st.sampled_from(["", "g", "h"])), ensemble=data.draw(st.integers(0, 1)))
        for name in data.draw(st.sampled_from(["a", "ab", "abc", "abcd"]))
    ]  # fmt: skip
    epsilon, delta = losses_of(parts)
    for size in range(1, len(parts) + 1):
        for person in combinations(parts, size):
            pairs = [(a, b) for a, b in combinations(person, 2) if a.ensemble == b.ensemble]
            if any((a.disjoint and b.disjoint) or (a.group and a.group == b.group) for a, b in pairs):
                continue
            assert sum(Fraction(each.epsilon) for each in person) <= epsilon
            assert sum(each.exact_delta for each in person) <= delta
    assert losses_of(parts[::-1]) == (epsilon, delta)
    assert certificate_of(parts).guarantee == ("epsilon-delta-DP" if delta else "epsilon-DP")


def test_a_table_that_shaped_the_trees_keeps_its_whole_loss() -> None:
    release = trained()
    for stated in (False, True):  # the events before the counts are a part of what the whole covers
        shaped = shaping_part(release.certificate.parts[0], stated)
        assert (shaped.epsilon, shaped.exact_delta, shaped.counted, shaped.stated_beforehand) == ("1", MICRO, False, False)
        assert [event.query for event in shaped.events] == ["rows", "leaf_counts"]


def test_a_table_that_shaped_the_trees_is_one_table_in_early_releases_too() -> None:
    """They left its counts out of the list and kept the same (ε, δ): the entry with more looks is kept, whatever the order."""
    whole = shaping_part(trained().certificate.parts[0])
    early = msgspec.structs.replace(whole, events=whole.events[:-1])
    assert (early.epsilon, early.delta) == (whole.epsilon, whole.delta)
    assert _once([whole, early]) == _once([early, whole]) == [whole]


def test_merging_states_both() -> None:
    both = hedgerow.merge([trained(0), trained(1)])
    assert both.certificate.loss == "(ε = 2, δ = 2e-06)"
    assert len(both.forest.noise) == 2
    assert both.forest.leaf_noise_sd == pytest.approx(trained().forest.leaf_noise_sd * 2**0.5)
    assert Release.from_json(both.to_json()).certificate == both.certificate
    stated = hedgerow.merge([trained(0), trained(1)], disjoint=True)
    assert stated.certificate.loss == "(ε = 1, δ = 1e-06)"
    again = hedgerow.merge([trained(1), trained(0)])
    assert again.content_hash == both.content_hash
    pure = rdt_like(trained(0))
    mixed = hedgerow.merge([trained(0), pure])
    assert mixed.certificate.loss == "(ε = 2, δ = 1e-06)"
    assert {type(noise) for noise in mixed.forest.noise} == {Gaussian, Fraction}
    assert Release.from_json(mixed.to_json()).certificate == mixed.certificate


def rdt_like(release: Release) -> Release:
    """Another table, counted with pure ε in the trees of a release."""
    counted: Release = hedgerow.count(release, *small_table(200, 9), epsilon=1)
    first = [each for each in counted.certificate.parts if each.counted]
    assert len(first) == 1
    return counted


def test_a_private_score_of_such_a_forest_is_a_score_with_a_guarantee() -> None:
    score = private_score(trained(), *small_table(100), epsilon=1)
    assert score.certificate.guarantee == "epsilon-DP"
    page = html_report(trained(), score=score, budget=Budget(3, "1e-5"))
    for words in ("plus δ = 1e-06", "together cost (ε = 2, δ = 1e-06)", "ρ each", "privacy loss ε, δ = 1e-06", "of δ = 1e-05 spent"):
        assert words in page, words
    assert "δ" not in html_report(trained(delta=0))


def test_pseudo_data_keep_both(tmp_path: Path) -> None:
    from hedgerow.sharing.pseudo.tables import pseudo_data

    certificate = pseudo_data([trained(0)], 10, seed=1).save(tmp_path / "one.csv")
    assert (certificate.guarantee, certificate.epsilon, certificate.delta) == ("epsilon-delta-DP", "1", "0.000001")
    assert certificate.sentence().startswith("(ε = 1, δ = 1e-06) differential privacy")
    certificate = pseudo_data([trained(0), trained(1), trained(delta=0)], 10, seed=1).save(tmp_path / "three.csv")
    assert (certificate.guarantee, certificate.epsilon, certificate.delta) == ("epsilon-delta-DP", "3", "0.000002")
    pure = pseudo_data([trained(delta=0)], 10, seed=1).save(tmp_path / "pure.csv")
    assert "delta" not in pure.to_json().decode()


def test_the_command_line_shows_both(tmp_path: Path) -> None:
    trained().save(tmp_path / "forest.json")
    hedgerow.merge([trained(0), trained(1)]).save(tmp_path / "both.json")
    for file, loss in (("forest.json", "(ε = 1, δ = 1e-06)"), ("both.json", "(ε = 2, δ = 2e-06)")):
        for words in (["show", tmp_path / file], ["show", tmp_path / file, "--certificate"], ["verify", tmp_path / file]):
            result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "300"})
            assert result.exit_code == 0, result.output
            assert loss in result.stdout + result.stderr
    assert "ρ each" in CliRunner().invoke(app, ["show", str(tmp_path / "both.json"), "--certificate"], env={"COLUMNS": "300"}).stdout


# ---------------------------------------------------------------- files that lie


def forged(change: Change) -> bytes:
    """A release with δ, changed, with a hash that fits."""
    document = trained().document()
    plain = msgspec.to_builtins(document)
    change(plain)
    again = msgspec.convert(plain, type=type(document))
    return msgspec.json.encode(msgspec.structs.replace(again, content_hash=content_hash(again)))


def reclaimed(change: Change) -> bytes:
    """The same where the certificate is made anew from the changed part."""

    def both(plain: Any) -> None:
        change(plain["certificate"]["parts"][0])
        parts = msgspec.convert(plain["certificate"]["parts"], type=list[Part])
        plain["certificate"] = msgspec.to_builtins(certificate_of(parts))

    return forged(both)


def setting(*path: Any, to: Any) -> Change:
    def change(plain: Any) -> None:
        for step in path[:-1]:
            plain = plain[step]
        if to is ...:
            del plain[path[-1]]
        else:
            plain[path[-1]] = to

    return change


def test_unchanged_it_is_believed() -> None:
    assert Release.from_json(forged(lambda plain: None)).to_json() == trained().to_json()
    assert Release.from_json(reclaimed(lambda plain: None)).to_json() == trained().to_json()


RHO = text_of_fraction(WHOLE / 2)
LIES: dict[str, tuple[Callable[[Change], bytes], Change]] = {
    "a smaller δ": (forged, setting("certificate", "delta", to="0.0000001")),
    "no δ": (forged, setting("certificate", "delta", to=...)),
    "pure": (forged, setting("certificate", "guarantee", to="epsilon-DP")),
    "a smaller δ of the table": (reclaimed, setting("delta", to="0.000000001")),
    "a smaller ε of the table": (reclaimed, setting("epsilon", to="0.5")),
    "no δ of the table": (reclaimed, setting("delta", to=...)),
    "δ of 0": (reclaimed, setting("delta", to="0")),
    "δ above 1/2": (forged, setting("certificate", "parts", 0, "delta", to="0.75")),
    "δ in other words": (reclaimed, setting("delta", to="0.0000010")),
    "a smaller ρ": (reclaimed, setting("events", 1, "rho", to="0.001")),
    "no ρ": (reclaimed, setting("events", 1, "rho", to=...)),
    "an ε beside ρ": (reclaimed, setting("events", 1, "epsilon", to="0.1")),
    "less noise": (reclaimed, setting("events", 1, "scale", to="1")),
    "fewer queries": (reclaimed, setting("events", 1, "queries", to=1)),
    "another sensitivity": (reclaimed, setting("events", 1, "sensitivity", to="0.5")),
    "another verb": (reclaimed, setting("events", 1, "verb", to="choose")),
    "an unknown verb": (reclaimed, setting("events", 0, "verb", to="peek")),
    "Laplace with ρ": (reclaimed, setting("events", 1, "mechanism", to="discrete Laplace")),
    "an unknown mechanism": (reclaimed, setting("events", 1, "mechanism", to="uniform")),
    "one event more": (reclaimed, lambda plain: plain["events"].append(plain["events"][1])),
    "other noise on the counts": (forged, setting("ensembles", 0, "noise", to=["gaussian 7"])),
    "Laplace noise on the counts": (forged, setting("ensembles", 0, "noise", to=[text_of_fraction(3 / WHOLE)])),
}


@pytest.mark.parametrize("lie", list(LIES))
def test_a_file_that_contradicts_itself_is_refused(lie: str) -> None:
    make, change = LIES[lie]
    with pytest.raises(ReleaseError, match=r"not sound|not written"):
        Release.from_json(make(change))


def test_gradient_sums_in_a_file_have_their_own_sensitivity() -> None:
    """Of two classes: GRID with Laplace noise, GRID² with Gaussian noise."""

    def more(sensitivity: int) -> Change:
        def change(plain: Any) -> None:
            rho = WHOLE / 8
            event = Event("gradient_sums", DISCRETE_GAUSSIAN, Fraction(0), 2, Fraction(sensitivity), 2 * sensitivity / (2 * rho), rho)
            plain["events"].insert(0, msgspec.to_builtins(EventRecord.of(event)))

        return change

    assert Release.from_json(reclaimed(more(GRID**2))).certificate.private
    for wrong in (1, GRID, 2 * GRID**2):
        with pytest.raises(ReleaseError, match="sensitivity"):
            Release.from_json(reclaimed(more(wrong)))


def test_a_pure_event_in_a_table_with_delta_is_charged_its_square() -> None:
    def more(epsilon: Fraction, mechanism: str) -> Change:
        event = Event("choose", mechanism, epsilon, 1, Fraction(2), 2 / epsilon)
        return lambda plain: plain["events"].insert(0, msgspec.to_builtins(EventRecord.of(event)))

    left = WHOLE / 4  # ε²/2 = 0.0061 is ε = 0.1104; ε²/8 is twice that
    assert Fraction(110, 1000) ** 2 / 2 < left < Fraction(111, 1000) ** 2 / 2
    assert Release.from_json(reclaimed(more(Fraction(110, 1000), PERMUTE_AND_FLIP))).certificate.private
    assert Release.from_json(reclaimed(more(Fraction(220, 1000), EXPONENTIAL))).certificate.private
    for epsilon, mechanism in ((Fraction(111, 1000), PERMUTE_AND_FLIP), (Fraction(222, 1000), EXPONENTIAL)):
        with pytest.raises(ReleaseError, match="less than its events"):
            Release.from_json(reclaimed(more(epsilon, mechanism)))
