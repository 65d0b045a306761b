"""Columns whose type cannot hold what is declared are refused by that type, before anything is paid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hedgerow import Budget, Categorical, HedgerowClassifier, Schema, Target, private_score
from hedgerow.errors import TableError

SCHEMA = Schema([Categorical("branch", ("0007", "0042")), Categorical("kind", (1, 2))], Target("y", ("no", "yes")))
TEXT = {"branch": ["0042", "0007"] * 50, "kind": [1, 2] * 50}
NUMBERS = {"branch": [42, 7] * 50, "kind": [1, 2] * 50}
LABELS = np.array(["no", "yes"] * 50)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, lambda columns: {name: np.array(column) for name, column in columns.items()}]
)
def test_codes_that_became_numbers_are_refused_before_they_cost(frame: Any) -> None:
    budget = Budget(1)
    with pytest.raises(TableError, match=r"column 'branch': it holds numbers, .* codes such as '0007'.*Nothing was spent.*dtype"):
        HedgerowClassifier(SCHEMA, 1, budget=budget).fit(frame(NUMBERS), LABELS)
    assert budget.remaining == 1
    model = HedgerowClassifier(SCHEMA, 1, budget=budget).fit(frame(TEXT), LABELS)
    with pytest.raises(TableError, match="it holds numbers"):
        model.predict(frame(NUMBERS))
    paying = Budget(1)
    with pytest.raises(TableError, match="it holds numbers"):
        private_score(model, frame(NUMBERS), LABELS, epsilon=1, budget=paying)
    assert paying.remaining == 1


def test_a_column_of_objects_is_not_looked_into() -> None:
    objects = pd.DataFrame({"branch": pd.Series([42, "0007"] * 50, dtype=object), "kind": [1, 2] * 50})
    HedgerowClassifier(SCHEMA, 1, budget=Budget(1)).fit(objects, LABELS)
