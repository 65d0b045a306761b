"""The experiments of Fletcher & Islam 2015: their jobs, one of each kind done, and verdicts from made-up results whose truth is known."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hedgerow_experiments import dpdf, dpdf_claims, dpdf_report, dprf, dprf_report
from hedgerow_experiments.document import Figure, Table
from hedgerow_experiments.experiment import Claim, Experiment, Result
from hedgerow_experiments.folds import data_of, folds_of
from hedgerow_experiments.store import key_of

ALL = (*dpdf.EXPERIMENTS, *dprf.EXPERIMENTS)
BY_NAME = {experiment.name: experiment for experiment in ALL}
needs_files = pytest.mark.skipif(
    not os.environ.get("HEDGEROW_DATA"), reason="HEDGEROW_DATA does not name the folder of the public data sets"
)


def made_up(experiment: Experiment, truth: Callable[[dict], float], noise: float = 0.005, quick: bool = False) -> list[Result]:
    """Results of all jobs: the true accuracy of a job, with a little noise in each fold."""
    draw = random.Random(1)
    jobs = experiment.jobs(quick)
    return [Result(job, {"accuracy": [round(draw.gauss(truth(job), noise), 5) for _ in range(10)]}, 1.0, "run") for job in jobs]


def claim_with(claims: list[Claim], words: str) -> Claim:
    found = [claim for claim in claims if words in claim.text]
    assert len(found) == 1, [claim.text for claim in claims]
    return found[0]


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_quick_jobs_are_full_jobs_and_no_job_comes_twice(experiment: Experiment) -> None:
    full, quick = ([key_of(job) for job in experiment.jobs(few)] for few in (False, True))
    assert len(set(full)) == len(full)
    assert set(quick) <= set(full)
    repetitions = [job.get("repetition", 0) for job in experiment.jobs(False)]
    assert repetitions == sorted(repetitions)


def test_as_many_jobs_as_the_protocols_say() -> None:
    cells = 10 * (5 * 6 + 1) + 3 * (5 * 3 + 1)  # six private models and a forest; on folds in file order three and a forest
    assert [len(experiment.jobs(False)) for experiment in dpdf.EXPERIMENTS] == [30] + [cells] * 6
    assert len(dprf.EXPERIMENTS[0].jobs(False)) == 30 * 9 * 7 * 2


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_without_results_nothing_is_shown_and_everything_is_open(experiment: Experiment) -> None:
    assert experiment.blocks([]) == []
    claims = experiment.claims([])
    assert claims
    assert {claim.verdict for claim in claims} == {"open"}
    assert {claim.verdict for claim in dpdf_claims.overall_claims({})} == {"open"}


# ---------------------------------------------------------------- the work


@pytest.mark.parametrize("model", list(dpdf_report.PRIVATE))
def test_table_1_is_read_from_certificates(model: str) -> None:
    found = dpdf.table_work({"set": "tic-tac-toe", "model": model, "epsilon": "1"})
    queries = 10 if model.startswith("diffpid3") else 9 * int(model[5])
    assert {Fraction(each) for each in found["queries"]} == {Fraction(1, queries)}
    assert 1 <= sum(found["queries"].values()) <= queries
    assert Fraction(found["charged"]) == Fraction(sum(found["queries"].values()), queries)


def test_table_1_agrees_with_the_paper_and_a_wrong_charge_does_not() -> None:
    jobs = dpdf.table_jobs(False)
    divisor = {"di": 10, "dpdf-1": 9, "dpdf-4": 36}

    def results(wrong: int) -> list[Result]:
        found = []
        for number, job in enumerate(jobs):
            parts = next(value for start, value in divisor.items() if job["model"].startswith(start))
            epsilon = Fraction(job["epsilon"]) / (parts + 2 * (number < wrong))
            found.append(Result(job, {"queries": {str(epsilon): 3}, "charged": str(3 * epsilon)}, 1.0, "run"))
        return found

    assert dpdf_claims.table_claims(results(0))[0].verdict == "reproduced"
    assert dpdf_claims.table_claims(results(4))[0].verdict == "partly"
    assert dpdf_claims.table_claims(results(len(jobs)))[0].verdict == "not"
    assert dpdf_claims.table_claims(results(0)[:5])[0].verdict == "open"


@pytest.mark.parametrize("model", [*dpdf_report.PRIVATE, dpdf_report.RANDOM_FOREST])
def test_one_job_of_each_model_of_the_figures(model: str) -> None:
    job = {"set": "tic-tac-toe", "model": model, "repetition": 0}
    for folds in ({}, {"folds": dpdf_report.FILE_ORDER}):
        found = dpdf.figure_work(job | ({} if model == dpdf_report.RANDOM_FOREST else {"epsilon": "2"}) | folds)
        assert len(found["accuracy"]) == 10
        assert all(0 <= value <= 1 for value in found["accuracy"])
        assert np.mean(found["accuracy"]) > 0.4


def test_which_version_a_name_means() -> None:
    data = data_of("tic-tac-toe")
    local, strict = (dpdf.model_of(name, data, "1", 0) for name in ("dpdf-4-local", "dpdf-4"))
    assert (local.sensitivity, strict.sensitivity) == ("local", "global")
    assert (local.n_estimators, local.max_depth, local.min_rows) == (4, 5, 100)
    half, scaled = (dpdf.model_of(name, data, "1", 0) for name in ("diffpid3-half", "diffpid3"))
    assert (half.criterion, scaled.criterion) == ("gini_half", "gini")


def test_folds_in_file_order_hold_neighbours_and_random_ones_do_not() -> None:
    data = data_of("tic-tac-toe")
    in_order, shuffled = dpdf.folds_in_file_order(data), folds_of(data, 0)
    assert sorted(row for _, test in in_order for row in test) == list(range(len(data)))

    def gap(folds: list) -> float:
        return float(np.mean([np.median(np.diff(test)) for _, test in folds]))

    assert gap(in_order) == 1
    assert gap(shuffled) > 3


@pytest.mark.parametrize("model", list(dprf_report.MODELS))
def test_one_job_of_each_model_of_dp_rf(model: str) -> None:
    found = dprf.work({"set": "tic-tac-toe", "model": model, "epsilon": "2", "repetition": 0})
    assert len(found["accuracy"]) == 10
    assert np.mean(found["accuracy"]) > 0.5


def test_the_number_of_rows_is_declared_and_not_paid_for() -> None:
    data = data_of("tic-tac-toe")
    schema = dprf.with_rows(data)
    assert schema.rows == 862  # nine tenths of 958
    for model in dprf_report.MODELS:
        fitted = dprf.model_of(model, schema, "1", 0).fit(data.columns, data.y)
        assert [event.query for event in fitted.release_.certificate.events] == ["leaf_counts"]


@needs_files
def test_most_common_classes_are_those_of_the_files() -> None:
    for name, (count, rows) in dpdf_report.MOST_COMMON.items():
        _, counts = np.unique(data_of(name).y, return_counts=True)
        assert (count, rows) == (counts.max(), counts.sum())
        assert len(counts) == dpdf_report.CLASSES[name]


# ---------------------------------------------------------------- verdicts from results whose truth is known

ORDINARY = {"dpdf-1-local": 0.80, "dpdf-4-local": 0.78, "dpdf-1": 0.80, "dpdf-4": 0.78, "diffpid3-half": 0.60, "diffpid3": 0.80}


def accuracies(values: dict[str, float], forest: float = 0.9, slope: float = 0.02, in_order: float = 0.0) -> Callable[[dict], float]:
    """slope: what a private model gains from one β to the next"""

    def truth(job: dict) -> float:
        shift = in_order if "folds" in job else 0.0
        if job["model"] == "random-forest":
            return forest + shift
        return values[job["model"]] + slope * dpdf_report.BETAS.index(job["epsilon"])

    return truth


def test_the_gap_is_halved_or_not() -> None:
    experiment = BY_NAME["dpdf-figure-2"]
    for gained, verdict in ((0.20, "reproduced"), (0.05, "partly"), (0.0, "not"), (-0.1, "not")):
        values = ORDINARY | {"dpdf-1-local": 0.60 + gained, "dpdf-4-local": 0.60 + gained - 0.01}
        claim = claim_with(experiment.claims(made_up(experiment, accuracies(values))), "halves the gap")
        assert claim.verdict == verdict, claim
    no_gap = accuracies(ORDINARY, forest=0.5)
    assert claim_with(experiment.claims(made_up(experiment, no_gap)), "halves the gap").verdict == "not"


def test_a_difference_inside_the_noise_is_no_win() -> None:
    experiment = BY_NAME["dpdf-figure-7"]
    values = dict.fromkeys(dpdf_report.PRIVATE, 0.7) | {"dpdf-4-local": 0.705}
    claims = experiment.claims(made_up(experiment, accuracies(values), noise=0.05))
    assert claim_with(claims, "τ = 4 always beats").verdict == "not"
    clearly = experiment.claims(made_up(experiment, accuracies(values | {"dpdf-4-local": 0.8}), noise=0.05))
    assert claim_with(clearly, "τ = 4 always beats").verdict == "reproduced"
    assert claim_with(claims, "overlap").verdict == "reproduced"
    apart = experiment.claims(made_up(experiment, accuracies(values | {"dpdf-1-local": 0.8}), noise=0.05))
    assert claim_with(apart, "overlap").verdict == "not"


@pytest.mark.parametrize(("ahead", "verdict"), [(0, "reproduced"), (2, "reproduced"), (3, "partly"), (4, "partly"), (5, "not")])
def test_overlap_ends_where_one_is_ahead_at_half_of_the_budgets(ahead: int, verdict: str) -> None:
    experiment = BY_NAME["dpdf-figure-4"]

    def truth(job: dict) -> float:
        more = job["model"] == dpdf_report.ONE and dpdf_report.BETAS.index(job["epsilon"]) < ahead
        return 0.9 if more else 0.7

    draws = made_up(experiment, truth, noise=0.0)
    wavy = [Result(each.job, {"accuracy": [0.001 * fold + each.found["accuracy"][0] for fold in range(10)]}, 1.0, "run") for each in draws]
    assert claim_with(experiment.claims(wavy), "overlap").verdict == verdict


def test_no_share_of_a_small_gap() -> None:
    experiment = BY_NAME["dpdf-figure-2"]
    for forest, words in ((0.68, "a gap of 4.0 points, too small for a share"), (0.74, "% of a gap of 10.0 points"), (0.5, "no gap")):
        claim = claim_with(experiment.claims(made_up(experiment, accuracies(ORDINARY, forest), noise=0.0)), "halves the gap")
        assert words in claim.ours, claim.ours


def test_accuracy_rises_and_on_connect_4_it_should_not() -> None:
    for name, slope, verdict in (("2", 0.02, "reproduced"), ("2", 0.0, "not"), ("4", 0.0, "reproduced"), ("4", 0.02, "not")):
        experiment = BY_NAME[f"dpdf-figure-{name}"]
        claims = experiment.claims(made_up(experiment, accuracies(ORDINARY, slope=slope)))
        assert claim_with(claims, "rise").verdict == verdict


def test_the_forest_on_connect_4_is_judged_on_random_folds() -> None:
    experiment = BY_NAME["dpdf-figure-4"]
    only_in_order = experiment.claims(made_up(experiment, accuracies(ORDINARY, in_order=-0.5)))
    claim = claim_with(only_in_order, "worse than all private")
    assert claim.verdict == "not"
    assert "15 of 15 are clearly above it" in claim.why
    below = experiment.claims(made_up(experiment, accuracies(ORDINARY, forest=0.5)))
    assert claim_with(below, "worse than all private").verdict == "reproduced"


def test_nursery() -> None:
    experiment = BY_NAME["dpdf-figure-6"]
    cases = (
        (0.93, 0.84, "reproduced", "reproduced"),
        (0.99, 0.70, "partly", "not"),
        (0.99, 0.60, "not", "not"),
        (0.99, 0.95, "partly", "reproduced"),
    )
    for forest, one, gain, distance in cases:
        claims = experiment.claims(made_up(experiment, accuracies(ORDINARY | {"dpdf-1-local": one}, forest)))
        assert claim_with(claims, "almost 25 points").verdict == gain
        assert claim_with(claims, "within 7 points").verdict == distance
        assert ("more than said" in claim_with(claims, "almost 25 points").why) == (one == 0.95)


def test_the_proven_version_loses_or_not() -> None:
    experiment = BY_NAME["dpdf-figure-5"]
    for one, four, verdict in ((0.80, 0.78, "reproduced"), (0.70, 0.78, "partly"), (0.70, 0.70, "not"), (0.9, 0.9, "reproduced")):
        claims = experiment.claims(made_up(experiment, accuracies(ORDINARY | {"dpdf-1": one, "dpdf-4": four})))
        assert claim_with(claims, "proven score").verdict == verdict


def test_acceptable_is_better_than_guessing() -> None:
    for name, level, verdict in (("2", 0.9, "reproduced"), ("2", 0.6, "not"), ("7", 0.9, "not"), ("7", 0.6, "reproduced")):
        experiment = BY_NAME[f"dpdf-figure-{name}"]
        claims = experiment.claims(made_up(experiment, accuracies(dict.fromkeys(dpdf_report.PRIVATE, level))))
        assert claim_with(claims, "acceptable quality").verdict == verdict


def test_claims_about_most_sets() -> None:
    results = {name: made_up(experiment, accuracies(ORDINARY)) for name, experiment in BY_NAME.items() if "dpdf-figure" in name}
    claims = dpdf_claims.overall_claims(results)
    assert claim_with(claims, "halves the gap").verdict == "reproduced"
    assert claim_with(claims, "τ = 1 beats τ = 4").verdict == "reproduced"
    reversed_order = ORDINARY | {"dpdf-1-local": 0.7}
    results = {name: made_up(BY_NAME[name], accuracies(reversed_order)) for name in results}
    assert claim_with(dpdf_claims.overall_claims(results), "τ = 1 beats τ = 4").verdict == "not"
    assert "other than Tic-Tac-Toe it is acceptable on 5" in claim_with(claims, "acceptable").why
    del results["dpdf-figure-3"]
    assert {claim.verdict for claim in dpdf_claims.overall_claims(results)} == {"open"}


@pytest.mark.parametrize(
    ("holds", "partly", "verdict"), [(4, 0, "reproduced"), (3, 1, "partly"), (3, 0, "not"), (2, 1, "not"), (0, 4, "partly")]
)
def test_most_is_more_than_half(holds: int, partly: int, verdict: str) -> None:
    claims = [Claim("", "", "reproduced")] * holds + [Claim("", "", "partly")] * partly + [Claim("", "", "not")] * (6 - holds - partly)
    assert dpdf_claims._most("", claims).verdict == verdict


def test_repetitions_and_our_own_claims_are_marked() -> None:
    whole = dpdf_claims.overall_claims({})
    assert [claim.text for claim in whole if claim.own] == ["Ours, not the paper's: the proven score costs no accuracy."]
    assert not any(claim.part for claim in whole)
    experiment = BY_NAME["dpdf-figure-4"]
    for claims in (experiment.claims([]), experiment.claims(made_up(experiment, accuracies(ORDINARY)))):
        assert [claim.part for claim in claims] == [True, True, True, False, False, False, True]
        assert [claim.own for claim in claims] == [False] * 6 + [True]


def test_folds_in_file_order_count_once() -> None:
    experiment = BY_NAME["dpdf-figure-2"]
    found = dpdf_report.Accuracies(made_up(experiment, accuracies(ORDINARY)))
    assert dpdf_report.mean(found.runs("car", "random-forest")).n == 100
    assert dpdf_report.mean(found.runs("car", "random-forest", folds=dpdf_report.FILE_ORDER)).n == 10


def dp_rf_wins(losing: int, by: float = 0.05, gain: float = 0.05) -> Callable[[dict], float]:
    """DP-RF gains everywhere but in the first cells, where it loses."""
    cells = [(name, beta) for beta in dprf_report.BETAS for name in dprf_report.SETS]

    def truth(job: dict) -> float:
        if job["model"] == dprf_report.THEIRS:
            return 0.5
        if (job["set"], job["epsilon"]) == ("car", "2"):
            return 0.95
        return 0.5 - by if cells.index((job["set"], job["epsilon"])) < losing else 0.5 + gain

    return truth


def test_dp_rf_wins() -> None:
    experiment = BY_NAME["dprf-figure-1"]
    for losing, by, expected in (
        (8, 0.05, ["reproduced", "not", "reproduced", "reproduced", "reproduced"]),
        (8, 0.006, ["reproduced", "reproduced", "reproduced", "partly", "reproduced"]),
        (20, 0.10, ["partly", "not", "reproduced", "reproduced", "partly"]),
        (60, 0.16, ["not", "not", "reproduced", "not", "not"]),
    ):
        claims = experiment.claims(made_up(experiment, dp_rf_wins(losing, by, gain=0.04), noise=0.001))
        assert [claim.verdict for claim in claims] == expected, claims
    assert "a higher mean in 55 of 63" in experiment.claims(made_up(experiment, dp_rf_wins(8)))[0].ours


@pytest.mark.parametrize(("by", "verdict"), [(0.01, "reproduced"), (-0.01, "partly")])
def test_dp_rf_on_average_says_how_often_it_is_clear(by: float, verdict: str) -> None:
    experiment = BY_NAME["dprf-figure-1"]

    def truth(job: dict) -> float:
        if job["model"] == dprf_report.THEIRS:
            return 0.5
        return 0.5 + (by if job["set"] in ("votes", "adult") else 0.3)

    claim = experiment.claims(made_up(experiment, truth, noise=0.08))[-1]
    assert claim.verdict == verdict, claim
    assert "clearly on 7" in claim.why


@pytest.mark.parametrize("name", [name for name in BY_NAME if "figure" in name])
def test_blocks_show_what_is_there_and_are_the_same_each_time(name: str) -> None:
    experiment = BY_NAME[name]
    truth = dp_rf_wins(8) if name.startswith("dprf") else accuracies(ORDINARY)
    results = made_up(experiment, truth, quick=True)
    blocks = experiment.blocks(results)
    assert blocks == experiment.blocks(results[::-1])
    assert [block.name for block in blocks if isinstance(block, Figure)] == [name]
    tables = [block for block in blocks if isinstance(block, Table)]
    assert tables
    assert all(len(row) == len(table.heads) for table in tables for row in table.rows)
    few = experiment.blocks(results[:3])
    assert any("" in row for block in few if isinstance(block, Table) for row in block.rows)
    assert experiment.claims(results) == experiment.claims(results[::-1])
