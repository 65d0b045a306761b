"""What more rows and more ε bring: jobs, constants that are changed and put back, a rotation by hand, the family's interactions."""

from __future__ import annotations

import os

import numpy as np
import pytest

from hedgerow import HedgerowClassifier, Numeric, Schema, Target
from hedgerow.growers import sizes
from hedgerow_experiments import learning
from hedgerow_experiments.document import Block, Table, inside
from hedgerow_experiments.experiment import Result
from hedgerow_experiments.learning import ALL_SETS, ROTATION_EPSILONS, VARIANTS, accuracies, constants, family
from hedgerow_experiments.learning_report import epsilon_blocks, rotation_blocks, rows_blocks

needs_data = pytest.mark.skipif("HEDGEROW_DATA" not in os.environ, reason="HEDGEROW_DATA is not set: it names the folder of public sets")


def tables(blocks: list[Block]) -> list[Table]:
    return [block for block in inside(blocks) if isinstance(block, Table)]


def test_quick_jobs_are_some_of_all() -> None:
    for experiment in learning.EXPERIMENTS:
        whole = experiment.jobs(False)
        assert all(job in whole for job in experiment.jobs(True))
        assert len({str(job) for job in whole}) == len(whole)


def test_constants_are_changed_and_put_back_whatever_happens() -> None:
    before = {name: getattr(sizes, name) for changed in VARIANTS.values() for name in changed}
    seen = []

    def fails() -> None:
        with constants({"STEP": 0.2, "ROWS_PER_TABLE": 20.0}):
            seen.append((sizes.STEP, sizes.ROWS_PER_TABLE))
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert seen == [({True: 0.2, False: before["STEP"][False]}, 20.0)]
    assert {name: getattr(sizes, name) for name in before} == before


def test_a_variant_changes_what_is_grown() -> None:
    X, y = family(4_000, 0)
    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(X.shape[1])], Target("y", (0, 1)))
    with constants(VARIANTS["more trees"]):
        more = HedgerowClassifier(schema, 4, "1e-6", random_state=0).fit(X, y).release_.chosen["boosted trees"]
    assert more > HedgerowClassifier(schema, 4, "1e-6", random_state=0).fit(X, y).release_.chosen["boosted trees"]


def test_the_family_needs_interactions() -> None:
    """What single attributes tell together is far from what is to be known."""
    from sklearn.linear_model import LogisticRegression

    X, y = family(20_000, 1)
    cells = np.hstack([np.eye(10)[np.minimum((10 * x).astype(int), 9)] for x in X.T])
    alone = LogisticRegression(C=1.0).fit(cells[:10_000], y[:10_000]).score(cells[10_000:], y[10_000:])
    assert 0.5 < alone < 0.75
    assert abs(y.mean() - 0.5) < 0.15


def test_a_set_is_judged_by_the_best_of_the_others() -> None:
    """Three sets like one variant, the fourth another: each is given what most of the others like."""
    sets, likes = ALL_SETS[:4], ("deeper", "deeper", "deeper", "shallower")
    results = [
        Result({"set": name, "variant": variant, "epsilon": epsilon}, {"accuracy": [0.9 if variant == like else 0.5]}, 1.0, "")
        for name, like in zip(sets, likes, strict=True) for variant in VARIANTS for epsilon in ROTATION_EPSILONS
    ]  # fmt: skip
    means, variants = tables(rotation_blocks(results))
    picked = {row[0]: row[-1] for row in variants.rows}
    assert picked["deeper"] == "4"
    assert means.rows[-1][1:3] == ["0.5000", "0.8000"]


def test_reports_of_few_results() -> None:
    boosting = {10**4: 0.9, 10**5: 0.85}
    found = [Result({"rows": n, "seed": 0}, {"delta": 0.8, "pure": 0.7, "boosting": best}, 1.0, "") for n, best in boosting.items()]
    (table,) = tables(rows_blocks(found))
    assert [row[-2] for row in table.rows] == ["0.1000", "0.0500 (0.50)"]
    one = Result({"set": "votes", "epsilon": "1", "delta": "0"}, {"accuracy": [0.9, 0.8]}, 1.0, "")
    means, each = tables(epsilon_blocks([one]))
    assert each.rows[0][0] == "votes"
    assert "0.850" in each.rows[0]
    assert not any("0.8" in cell for row in means.rows for cell in row)  # a mean over one of ten sets is none


@needs_data
def test_accuracies_of_a_further_set() -> None:
    private, plain = accuracies("more/banknote", "4", "1e-6", 1), accuracies("more/banknote", "", "0", 1)
    assert (len(private), len(plain)) == (20, 5)
    assert 0.8 < np.mean(private) < np.mean(plain)
