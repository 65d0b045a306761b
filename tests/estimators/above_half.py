"""Rows of two numbers, whose class says whether the first is above one half, and a forest that learns it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hedgerow import Budget, Numeric, PrivateRDTClassifier, Schema, Target

RNG = np.random.default_rng(3)
X = pd.DataFrame({"a": RNG.random(600), "b": RNG.random(600)})
Y = np.where(X.a > 0.5, "yes", "no")
SCHEMA = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)], Target("class", ["no", "yes"]))


def forest(budget: Budget | None = None, epsilon: Any = 5) -> PrivateRDTClassifier:
    return PrivateRDTClassifier(SCHEMA, epsilon, budget=budget, random_state=0)
