"""Figures 5 to 7 of Sharkey et al.: what their jobs are, what one of them finds, and how verdicts follow from results."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pytest

from hedgerow_experiments import sharkey, sharkey_figure_7, sharkey_more, sharkey_more_report
from hedgerow_experiments.document import Figure, Table
from hedgerow_experiments.drawing import draw
from hedgerow_experiments.experiment import Claim, Experiment, Result
from hedgerow_experiments.sharkey_numbers import (
    C45,
    NAIVE_BAYES,
    OWNERS,
    OWNERS_7,
    REQUIREMENTS,
    RULE,
    SET_TITLES,
    SETS_5,
    SETS_6,
    judged,
    lacking,
)
from hedgerow_experiments.store import key_of

FIGURE_5, FIGURE_6, FIGURE_7 = sharkey.EXPERIMENTS
OTHER_MODELS, OTHER_SETS = sharkey_more.EXPERIMENTS
needs_data = pytest.mark.skipif(
    not os.environ.get("HEDGEROW_DATA"), reason="HEDGEROW_DATA does not name the folder of the public data sets"
)  # fmt: skip


# ------------------------------------------------------------ jobs and work


@pytest.mark.parametrize("experiment", sharkey.EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_jobs(experiment: Experiment) -> None:
    full, quick = experiment.jobs(False), experiment.jobs(True)
    assert len(full) == len({key_of(job) for job in full}) == 5 * 10 * len(experiment.sets)
    assert {key_of(job) for job in quick} < {key_of(job) for job in full}
    assert [job["iteration"] for job in full] == sorted(job["iteration"] for job in full), "the first repetition comes first"
    assert {job["set"] for job in quick} == set(experiment.sets)
    assert pickle.dumps(experiment.work), "other processes can find it"


@pytest.mark.parametrize("experiment", sharkey_more.EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_jobs_of_a_few_folds(experiment: Experiment) -> None:
    full, quick = experiment.jobs(False), experiment.jobs(True)
    assert {key_of(job) for job in quick} <= {key_of(job) for job in full}
    for data in experiment.sets:
        folds = sum(job["set"] == data for job in full)
        assert folds >= 3
        assert f"{folds} of {SET_TITLES[data]}" in experiment.protocol, "it says what was run"
    assert pickle.dumps(experiment.work)


def test_rows_are_dealt_in_equal_parts() -> None:
    train = np.arange(100, 203)
    parts = sharkey.dealt(train, 5, (0, 3))
    assert sorted(np.concatenate(parts)) == train.tolist()
    assert {len(part) for part in parts} == {20, 21}
    assert any(a.tolist() != b.tolist() for a, b in zip(parts, sharkey.dealt(train, 5, (1, 3)), strict=True)), "each iteration deals anew"


@needs_data
def test_adult_has_no_missing_values_left() -> None:
    data = sharkey.complete("adult")
    assert len(data) == 45_222
    for attribute in data.schema.attributes:
        assert "?" not in getattr(attribute, "values", ()), "pseudo-rows would draw it"
        assert "?" not in set(data.columns[attribute.name].astype(str))


@needs_data
def test_one_fold_of_figure_5() -> None:
    job = {"set": "car", "iteration": 0, "fold": 0}
    found = FIGURE_5.work(job)
    assert found == FIGURE_5.work(job), "everything is seeded"
    assert found != FIGURE_5.work({"set": "car", "iteration": 1, "fold": 0})
    assert found["accuracy"].keys() == {C45, NAIVE_BAYES}
    trees = found["accuracy"][C45]
    assert list(trees["PGEN"]) == list(trees["BASEGEN"]) == [str(owners) for owners in OWNERS]
    assert trees["PGEN"] != trees["PGEN by counts"]
    assert 0.85 < trees["BASIS"] < 1
    assert abs(trees["PGEN"]["1"] - trees["BASIS"]) < 0.1, "one owner's unpruned tree tells nearly all"
    assert found["class match"][C45]["PGEN"]["1"] > 0.85
    assert found["path match"]["PGEN"]["1"] > found["path match"]["PGEN"]["10"]


@needs_data
def test_one_fold_of_figure_7(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharkey, "REQUIREMENTS", ((20, 2), (10, 4)))
    monkeypatch.setattr(sharkey, "OWNERS_7", (1, 5))
    found = FIGURE_7.work({"set": "nursery", "iteration": 0, "fold": 0})
    weak, strong = found["cells"]["20, 2"], found["cells"]["10, 4"]
    assert found["BASIS"][C45] > 0.93
    for how in ("hits", "counts"):
        assert weak[how]["publishing"] == {"1": 1, "5": 5}
        assert all(0.33 < weak[how][model][m] < found["BASIS"][model] for model in (C45, NAIVE_BAYES) for m in ("1", "5"))
    assert weak["LD"][C45] is not None
    assert strong["LD"][C45] is None, "no table of Nursery satisfies it"
    assert strong["hits"][C45]["1"] is not None, "hit and miss alone can"
    assert strong["counts"][C45] == {"1": None, "5": None}
    assert strong["counts"]["publishing"] == {"1": 0, "5": 0}


@needs_data
def test_one_fold_of_other_models_and_other_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"set": "car", "iteration": 0, "fold": 0}
    models = OTHER_MODELS.work(job)["accuracy"]
    assert models.keys() == {"decision table", "random forest"}
    assert all(list(found["PGEN"]) == ["1", "10"] and found["BASIS"] > 0.85 for found in models.values())
    monkeypatch.setattr(sharkey_more, "OWNERS_7", (1, 5))
    monkeypatch.setattr(sharkey_more_report, "REQUIREMENTS", ((20, 2), (5, 4)))
    found = OTHER_SETS.work(job)
    weak, strong = found["cells"]["20, 2"], found["cells"]["5, 4"]
    assert found["BASIS"][C45] > 0.85 > 0.75 > found["largest class"] > 0.65
    for way in ("hits", "table"):
        assert weak[way]["publishing"] == {"1": 1, "5": 5}
        assert all(0.6 < weak[way][what][C45]["1"] <= 1 for what in ("accuracy", "class match"))
    assert weak["LD"]["class match"][C45] > 0.6
    assert strong["LD"]["accuracy"][C45] is None
    assert strong["table"]["accuracy"][C45] == {"1": None, "5": None}


# ------------------------------------------------------------ report


def noisy(level: float, fold: int, spread: float = 0.004) -> float:
    return level + spread * ((fold * 7) % 5 - 2)


def generated(data: str, fold: int, levels: dict[tuple[str, str], tuple[float, float]], iteration: int = 0) -> Result:
    """One fold; levels: (model, method) → accuracy with one owner, and with ten. BASIS is 0.9, all else 0.85."""
    accuracy: dict[str, Any] = {}
    for number, model in enumerate((C45, NAIVE_BAYES, RULE)):
        accuracy[model] = {"BASIS": noisy(0.9, fold)}
        for method in ("PGEN", "BASEGEN"):
            one, ten = levels.get((model, method), (0.85, 0.85))
            accuracy[model][method] = {
                str(m): noisy(one + (ten - one) * (m - 1) / 9, fold + 3 * m + number, 0.002) for m in OWNERS
            }  # fmt: skip
    matches = {model: {method: accuracy[model][method] for method in ("PGEN", "BASEGEN")} for model in accuracy}
    paths = {method: {str(m): 0.5 if m == 1 else 0.005 for m in OWNERS} for method in ("PGEN", "BASEGEN")}
    found = {"accuracy": accuracy, "class match": matches, "path match": paths}
    return Result({"set": data, "iteration": iteration, "fold": fold}, found, 1.0, "run")


def results_5(levels: dict[tuple[str, str], tuple[float, float]], sets: tuple[str, ...] = SETS_5, folds: int = 10) -> list[Result]:
    return [generated(data, fold, levels) for data in sets for fold in range(folds)]


def claim(claims: list[Claim], begins: str) -> Claim:
    (found,) = [one for one in claims if one.text.startswith(begins)]
    return found


RISES = "Decision trees: with more owners PGEN gets better"
CLOSE = "Decision trees: PGEN does very well"
BEHIND = "Decision trees: PGEN makes better"


@pytest.mark.parametrize(
    ("pgen", "verdict"), [((0.86, 0.89), "reproduced"), ((0.89, 0.86), "not"), ((0.88, 0.8801), "not")], ids=["rises", "falls", "noise"]
)
def test_a_trend_is_one_beyond_the_noise(pgen: tuple[float, float], verdict: str) -> None:
    assert claim(FIGURE_5.claims(results_5({(C45, "PGEN"): pgen})), RISES).verdict == verdict


def test_verdicts_of_figure_5_follow_the_numbers() -> None:
    good = FIGURE_5.claims(results_5({(C45, "PGEN"): (0.89, 0.89), (C45, "BASEGEN"): (0.8, 0.7), (NAIVE_BAYES, "BASEGEN"): (0.84, 0.84)}))
    assert {claim(good, text).verdict for text in (CLOSE, BEHIND, "Naive Bayes: PGEN and BASEGEN differ less")} == {"reproduced"}
    assert claim(good, "Class match").verdict == "reproduced"
    assert claim(good, "Path match").verdict == "reproduced"
    assert claim(good, "Decision trees: neither trend").verdict == "partly", "BASEGEN falls on Adult in these numbers"
    bad = FIGURE_5.claims(results_5({(C45, "PGEN"): (0.7, 0.7), (C45, "BASEGEN"): (0.7, 0.7)}))
    assert claim(bad, CLOSE).verdict == "not"
    assert claim(bad, BEHIND).verdict == "not", "a tie is no win"
    some = FIGURE_5.claims(results_5({(C45, "PGEN"): (0.89, 0.8)}))
    assert claim(some, CLOSE).verdict == "partly"
    assert "Adult with 10" in claim(some, CLOSE).why


def test_verdicts_of_figure_6_follow_the_numbers() -> None:
    levels = {(C45, "PGEN"): (0.89, 0.89), (RULE, "PGEN"): (0.7, 0.7), (RULE, "BASEGEN"): (0.8, 0.8), (NAIVE_BAYES, "BASEGEN"): (0.6, 0.6)}
    claims = FIGURE_6.claims(results_5(levels, SETS_6))
    assert claim(claims, "Conjunctive rules on Adult do much better with BASEGEN").verdict == "reproduced"
    assert claim(claims, "Naive Bayes on Adult does better").verdict == "reproduced"
    assert claim(claims, "Naive Bayes on Nursery does equally well").verdict == "not"
    assert claim(claims, "Conjunctive rules do better on Adult").verdict == "not", "both sets have the same numbers"
    assert claim(claims, "Global decision trees").verdict == "reproduced", "BASIS is the same for all three here: 48 of 52 cells"
    beaten = FIGURE_6.claims(results_5(levels | {(RULE, "BASEGEN"): (0.95, 0.8)}, SETS_6))
    assert claim(beaten, "Global decision trees").verdict == "partly"
    assert "Clearly the opposite: Adult, conjunctive rule, BASEGEN with 1" in claim(beaten, "Global decision trees").why


def pruned(fold: int, gain: float, last: int) -> Result:
    """LD: 0.4 up to the requirement number `last`; PPGEN: so much more with one owner, a little more with five and ten."""
    cells = {}
    for place, (c, ell) in enumerate(REQUIREMENTS):
        ppgen = {str(m): noisy(0.4 + gain + 0.02 * (m > 1) + 0.005 * (m > 5), fold + m + place) for m in OWNERS_7}
        nothing = dict.fromkeys(map(str, OWNERS_7))
        cells[f"{c}, {ell}"] = {
            "hits": {C45: ppgen, NAIVE_BAYES: ppgen},
            "counts": {C45: nothing, NAIVE_BAYES: nothing},
            "LD": dict.fromkeys((C45, NAIVE_BAYES), noisy(0.4, fold) if place < last else None),
        }
    found = {"BASIS": {C45: 0.97, NAIVE_BAYES: 0.9}, "cells": cells}
    return Result({"set": "nursery", "iteration": 0, "fold": fold}, found, 1.0, "run")


def test_verdicts_of_figure_7_follow_the_numbers() -> None:
    far = FIGURE_7.claims([pruned(fold, 0.4, 10) for fold in range(10)])
    near = FIGURE_7.claims([pruned(fold, 0.1, 12) for fold in range(10)])
    level = FIGURE_7.claims([pruned(fold, -0.2, 16) for fold in range(10)])
    for begins, verdicts in {
        "PPGEN is more accurate than LD": ("reproduced", "reproduced", "not"),
        "PPGEN is ahead of LD by more than 30": ("reproduced", "not", "not"),
        "LD stops": ("reproduced", "partly", "not"),
        "PPGEN goes on": ("reproduced", "reproduced", "not"),
        "PPGEN falls sharply": ("not", "not", "not"),
        "More owners": ("reproduced", "reproduced", "reproduced"),
    }.items():
        assert tuple(claim(claims, begins).verdict for claims in (far, near, level)) == verdicts, begins


def compared(data: str, fold: int, by: dict[str, float | None]) -> Result:
    """LD: 0.5 everywhere. PPGEN: so much more in each way of pruning, None for nothing to publish; the largest class has 0.45."""
    cells = {}
    for place, (c, ell) in enumerate(sharkey_more_report.requirements_of(data)):
        ld = noisy(0.5, fold) + 0.001 * place
        cell: dict[str, Any] = {"LD": {what: dict.fromkeys((C45, NAIVE_BAYES), ld) for what in ("accuracy", "class match")}}
        for way, more in by.items():
            each = {str(m): None if more is None else noisy(0.5 + more, fold + m + place, 0.002) for m in OWNERS_7}
            cell[way] = {what: {C45: each, NAIVE_BAYES: each} for what in ("accuracy", "class match")}
        cells[f"{c}, {ell}"] = cell
    found = {"BASIS": {C45: 0.9, NAIVE_BAYES: 0.9}, "largest class": 0.45, "cells": cells}
    return Result({"set": data, "iteration": 0, "fold": fold}, found, 1.0, "run")


def compared_sets(**by: dict[str, float | None]) -> list[Result]:
    return [compared(data, fold, by[data]) for data in by for fold in range(6)]


def test_verdicts_of_the_other_sets_follow_the_numbers() -> None:
    ahead: dict[str, float | None] = {"hits": 0.1, "table": 0.2}
    far = OTHER_SETS.claims(compared_sets(nursery=ahead, car=ahead, cmc=ahead, adult=ahead))
    assert [one.verdict for one in far] == ["reproduced"] * 4
    nothing: dict[str, float | None] = {"hits": None, "table": None}
    some = compared_sets(nursery=ahead, car=nothing, cmc={"hits": None, "table": 0.1}, adult={"hits": -0.1, "table": -0.1})
    car, others, match, average = OTHER_SETS.claims(some)
    assert (car.verdict, others.verdict, match.verdict, average.verdict) == ("not", "not", "reproduced", "partly")
    assert "nothing to publish in 72" in car.why, "no win"
    assert average.own
    assert "Not clearly ahead on Car" in average.why
    assert "Not clearly ahead on Adult: LD minus BASIS is -0.4" in average.why
    assert "Car -0.05" in average.ours, "nothing published counts as the largest class"
    tables = [block for block in OTHER_SETS.blocks(some) if isinstance(block, Table)]
    assert all(len(row) == len(table.heads) for table in tables for row in table.rows)
    assert OTHER_SETS.blocks(some) == OTHER_SETS.blocks(some[::-1])
    assert all(draw(block.chart).startswith("<svg") for block in OTHER_SETS.blocks(some) if isinstance(block, Figure))


def test_verdicts_of_other_models_follow_the_numbers() -> None:
    def results(level: float) -> list[Result]:
        each = {str(m): level for m in sharkey_more_report.FEW_OWNERS}
        found = {"accuracy": {m: {"BASIS": 0.9, "PGEN": each, "BASEGEN": each} for m in sharkey_more_report.OTHERS}}
        return [Result({"set": data, "iteration": 0, "fold": fold}, found, 1.0, "run") for data in OTHER_MODELS.sets for fold in range(3)]

    (near,), (far,) = (OTHER_MODELS.claims(results(level)) for level in (0.88, 0.8))
    assert (near.verdict, far.verdict) == ("reproduced", "not")
    assert far.why.startswith("Clearly the opposite: Car, decision table, PGEN with 1,")
    (table,) = (block for block in OTHER_MODELS.blocks(results(0.8)) if isinstance(block, Table))
    assert len(table.rows) == 2 * 3 * 2


@pytest.mark.parametrize(
    ("holds", "opposite", "verdict"), [(20, 0, "reproduced"), (18, 0, "reproduced"), (18, 1, "partly"), (17, 0, "partly"), (0, 20, "not")]
)
def test_nearly_all_cells_suffice_if_none_is_the_opposite(holds: int, opposite: int, verdict: str) -> None:
    cells = [place < holds for place in range(20)]
    against = [place >= 20 - opposite for place in range(20)]
    assert judged(cells, against) == verdict
    assert judged([*cells[1:], None], against) == "open"
    names = [f"cell {place}" for place in range(20)]
    why = lacking("Not so", names, cells, against)
    assert ("cell 19" in why) == (holds < 20)
    assert ("Clearly the opposite" in why) == (opposite > 0)


def test_a_verdict_that_is_not_full_says_where() -> None:
    for experiment, results in (
        (FIGURE_5, results_5({(C45, "PGEN"): (0.89, 0.8), (C45, "BASEGEN"): (0.9, 0.8)})),
        (FIGURE_6, results_5({(RULE, "PGEN"): (0.9, 0.7)}, SETS_6)),
        (FIGURE_7, [pruned(fold, 0.1, 12) for fold in range(10)]),
    ):
        claims = experiment.claims(results)
        assert {one.verdict for one in claims} >= {"partly", "not"} or experiment is FIGURE_7
        assert all(one.why for one in claims if one.verdict in ("partly", "not")), [one for one in claims if not one.why]


def test_what_is_not_there_is_left_open() -> None:
    for experiment in (*sharkey.EXPERIMENTS, *sharkey_more.EXPERIMENTS):
        assert experiment.blocks([]) == []
        assert {one.verdict for one in experiment.claims([])} == {"open"}
    only_car = results_5({}, ("car",), 1)
    assert {one.verdict for one in FIGURE_5.claims(only_car)} == {"open"}, "one fold says nothing"
    tables = [block for block in FIGURE_5.blocks(only_car) if isinstance(block, Table)]
    assert {row[1] for table in tables for row in table.rows} == {"Car"}
    assert {one.verdict for one in FIGURE_7.claims([pruned(0, 0.4, 10)])} == {"open"}


def test_a_report_does_not_depend_on_the_order_of_results() -> None:
    """A cell in which nothing was published is named, and no nan is written."""
    some, later = results_5({}, folds=4), [pruned(fold, 0.4, 10) for fold in range(4)]
    for experiment, results in ((FIGURE_5, some), (FIGURE_6, some), (FIGURE_7, later)):
        blocks = experiment.blocks(results)
        assert blocks == experiment.blocks(results[::-1])
        assert experiment.claims(results) == experiment.claims(results[::-1])
        assert all(block.caption and draw(block.chart).startswith("<svg") for block in blocks if isinstance(block, Figure))
        words = [str(block.rows) for block in blocks if isinstance(block, Table)] + [one.ours for one in experiment.claims(results)]
        assert "nan" not in " ".join(words)
    (trees, _) = [block for block in FIGURE_7.blocks(later) if isinstance(block, Table)]
    assert trees.rows[-1][1] == "none"
    mixed = sharkey_figure_7.pruned_text([0.5, None, 0.6])
    assert mixed.endswith("(in 2 of 3 folds)")
