"""Runs inside dpmm's environment: synthetic rows by MST or AIM (the variant), and boosting that learns from these alone.

Numbers are put into cells of equal width over their public bounds, and all domains are given, so that dpmm reads none from the rows;
there are as many synthetic rows as training rows, which takes their number as public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from dpmm.models import mst  # type: ignore[import-not-found]
from dpmm.models.base.mbi import FactoredInference  # type: ignore[import-not-found]
from dpmm.pipelines import AIMPipeline, MSTPipeline  # type: ignore[import-not-found]
from peer_work import work  # type: ignore[import-not-found]
from sklearn.ensemble import HistGradientBoostingClassifier

DELTA = 1e-6
CELLS = 16  # of a number
# dpmm fits its model to the noisy counts in iterations of 20 to 100 ms each. MST's defaults are 2,500 before it selects pairs, for which
# there is no option, and 5,000 after; AIM's are 1,000 after each of up to 16 rounds an attribute, with models of up to 80 MB.
BEFORE, AFTER = 250, 500
ROUNDS, EACH, MEGABYTES = 2, 40, 0.5  # of AIM: rounds an attribute, iterations after each


def _before(domain: Any, iters: int) -> Any:
    return FactoredInference(domain, iters=min(iters, BEFORE))


mst.FactoredInference = _before  # what it selects from: noisy counts, already paid for


class SyntheticBoosting:
    """The settings of boosting are those of the one without privacy; see hedgerow_experiments.peers.local."""

    def __init__(self, generator: Any, domain: dict[str, int], categorical: Any) -> None:
        self.generator, self.domain, self.classes = generator, domain, domain["class"]
        self.adaptive = isinstance(generator, AIMPipeline)
        self.boosting = HistGradientBoostingClassifier(early_stopping=False, l2_regularization=1.0, categorical_features=categorical)

    def fit(self, X: Any, y: Any) -> SyntheticBoosting:
        rows = pd.DataFrame(np.column_stack([X, y]), columns=list(self.domain))
        self.generator.fit(rows, domain=self.domain, marginals_only=self.adaptive)
        if self.adaptive:
            aim = self.generator.gen.generator
            aim.model, aim.fit_state = aim.engine.model, "trained"  # the model of its last round; dpmm would begin at nothing again
        made = self.generator.generate(len(rows))[list(self.domain)].to_numpy()
        self.only = np.unique(made[:, -1])  # boosting needs two classes
        if len(self.only) > 1:
            self.boosting.fit(made[:, :-1], made[:, -1])
        return self

    def predict_proba(self, X: Any) -> Any:
        p = np.zeros((len(X), self.classes))
        p[:, self.only] = self.boosting.predict_proba(X) if len(self.only) > 1 else 1.0
        return p

    def predict(self, X: Any) -> Any:
        return self.predict_proba(X).argmax(axis=1)


def prepare(arrays: Any, classes: int, variant: str) -> tuple[Any, Callable[[float], Any]]:
    X, sizes, (low, high) = arrays["X"].copy(), arrays["sizes"], arrays["bounds"].T
    for j in np.flatnonzero(sizes == 0):
        X[:, j] = np.clip((X[:, j] - low[j]) / (high[j] - low[j]) * CELLS, 0, CELLS - 1)
    domain = {f"a{j}": int(size) or CELLS for j, size in enumerate(sizes)} | {"class": classes}

    def make(epsilon: float) -> SyntheticBoosting:
        given = {"epsilon": epsilon, "delta": DELTA, "n_jobs": 1, "disable_processing": True}
        if variant == "mst":
            generator = MSTPipeline(**given, gen_kwargs={"n_iters": AFTER})
        else:
            fewer = {"n_iters": EACH, "rounds": ROUNDS * len(domain)}
            generator = AIMPipeline(**given, max_model_size=MEGABYTES, gen_kwargs=fewer)
        return SyntheticBoosting(generator, domain, sizes > 0)

    return X.astype(np.int64), make


if __name__ == "__main__":
    work(prepare)
