"""The Hedgerow forest: its fit of Adult beside DP-EBM's in the same run, beside as many boosted trees without privacy, and how its time
grows with rows.
"""

from __future__ import annotations

import os
from typing import Any

from benchmarks.big_table import SCHEMA, numpy_table
from benchmarks.measure import Line, at_least, at_most, fastest, not_run, seconds
from hedgerow import HedgerowClassifier
from hedgerow.datasets.public import FOLDER_VARIABLE
from hedgerow_experiments.peers import processes
from hedgerow_experiments.peers.environments import missing
from hedgerow_experiments.peers.fits import Answer, Fit
from hedgerow_experiments.peers.tables import table_of

ROWS, QUICK_ROWS = 1_000_000, 100_000
TARGETS = {"pure": 5, "delta": 3}  # so many times as fast as DP-EBM
DELTA = "1e-6"


def beside_dp_ebm(rounds: int) -> list[Line]:
    """One fold of Adult: raw columns to a fitted model, one thread each, ε = 1."""
    what = "fit Adult beside DP-EBM"
    why = missing("interpret") if os.environ.get(FOLDER_VARIABLE) else f"{FOLDER_VARIABLE} is not set"
    if why:
        return [not_run(what, why, f"≥ {TARGETS['pure']}")]
    table = table_of("adult")
    train, _ = table.folds[0]
    X, y = table.rows(train), table.labels[train]

    def ours(delta: Any) -> Any:
        return lambda: HedgerowClassifier(table.schema, 1, delta, n_jobs=1).fit(X, y)

    def peer() -> float:
        (answer,) = processes.answers("interpret", "", table, [Fit("1", 0)], patience=300)
        assert isinstance(answer, Answer), answer
        return answer.fit_seconds

    ours(DELTA)()  # compiled code is loaded once
    taken = fastest({"pure": ours(0), "delta": ours(DELTA), "peer": peer}, rounds)
    lines = []
    for name, words in (("pure", "ε = 1"), ("delta", f"ε = 1, δ = {DELTA}")):
        mine, theirs = taken.best[name], taken.best["peer"]
        lines.append(
            at_least(f"{what}, {words}", seconds(mine), f"DP-EBM {seconds(theirs)}", theirs / mine, TARGETS[name]).timed(taken.others)
        )
    return lines


def beside_boosting(X: Any, y: Any, rounds: int) -> Line:
    """scikit-learn's boosting with as many trees of that depth, on one thread each."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    def ours() -> Any:
        return HedgerowClassifier(SCHEMA, 1, DELTA, n_jobs=1).fit(X, y)

    chosen = ours().release_.chosen
    trees, depth = chosen["boosted trees"], chosen["depth"]

    def peer() -> Any:
        settings = {"max_iter": trees, "max_depth": depth, "max_leaf_nodes": None, "early_stopping": False}
        with threadpool_limits(1):
            return HistGradientBoostingClassifier(**settings).fit(X, y)

    taken = fastest({"ours": ours, "peer": peer}, rounds)
    mine, theirs = taken.best["ours"], taken.best["peer"]
    what = f"fit {len(y):,} rows × 20, δ = {DELTA}, {trees} trees of depth {depth}"
    return at_least(what, seconds(mine), f"HistGradientBoosting {seconds(theirs)}", theirs / mine, 1).timed(taken.others)


def run(quick: bool = False) -> list[Line]:
    rows, rounds = (QUICK_ROWS, 2) if quick else (ROWS, 3)
    lines = beside_dp_ebm(rounds)
    X, y = numpy_table(2 * rows)
    once_X, once_y = X[:rows].copy(), y[:rows].copy()
    lines.append(beside_boosting(once_X, once_y, rounds))
    for delta in (0, DELTA):
        fit: dict[str, Any] = {
            "once": lambda delta=delta: HedgerowClassifier(SCHEMA, 1, delta, n_jobs=2).fit(once_X, once_y),
            "twice": lambda delta=delta: HedgerowClassifier(SCHEMA, 1, delta, n_jobs=2).fit(X, y),
        }
        taken = fastest(fit, rounds)
        over = f"{seconds(taken.best['twice'])} over {seconds(taken.best['once'])}"
        what = f"fit, {2 * rows:,} over {rows:,} rows × 20, δ = {delta}, 2 threads"
        lines.append(at_most(what, over, "", taken.best["twice"] / taken.best["once"], 2.2).timed(taken.others))
    return lines


if __name__ == "__main__":
    from benchmarks.measure import table as as_table

    print(as_table(run()))
