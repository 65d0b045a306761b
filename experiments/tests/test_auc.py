"""AUC as ε grows: jobs, a fall that is told, a section in the document."""

from __future__ import annotations

import os

import pytest

from hedgerow_experiments import auc
from hedgerow_experiments.auc_report import blocks, falls
from hedgerow_experiments.document import Table
from hedgerow_experiments.experiment import Result

needs_data = pytest.mark.skipif("HEDGEROW_DATA" not in os.environ, reason="HEDGEROW_DATA is not set: it names the folder of public sets")
GROWING = {"0.25": [0.6, 0.62], "0.5": [0.7, 0.71], "1": [0.72, 0.74], "2": [0.72, 0.75], "4": [0.8, 0.81]}


def test_quick_jobs_are_some_of_all_and_every_set_has_two_classes() -> None:
    (experiment,) = auc.EXPERIMENTS
    whole = experiment.jobs(False)
    assert all(job in whole for job in experiment.jobs(True))
    assert len({str(job) for job in whole}) == len(whole) == 8 * auc.REPETITIONS + (8 + 2 * 4) * auc.MORE_REPETITIONS


def test_a_fall_is_told() -> None:
    fallen = GROWING | {"4": [0.6, 0.61]}
    assert not falls(GROWING)
    assert falls(fallen)
    assert not falls(GROWING | {"2": [0.70, 0.75]})  # lower by less than the error
    results = [
        Result({"set": name, "delta": "0", "repetition": 0}, {"auc": areas}, 1.0, "")
        for name, areas in (("votes", GROWING), ("adult", fallen))
    ]
    _, table, verdict = blocks(results)
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["votes", "adult"]
    assert [row[-1].split()[0] for row in table.rows] == ["0", "0.130"]
    assert "It does in 1 of 2 lines: adult (pure)" in str(verdict)


@needs_data
def test_areas_of_a_small_set() -> None:
    found = auc.areas("votes", "8", "1e-6", 0)
    assert len(found) == 5
    assert min(found) > 0.9
