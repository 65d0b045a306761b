"""DPDF on a large table, beside scikit-learn's random forest with as many trees, levels and threads."""

from __future__ import annotations

from typing import Any

from benchmarks.big_table import SCHEMA, numpy_table
from benchmarks.measure import Line, at_least, at_most, fastest, seconds
from hedgerow import DPDFClassifier

ROWS, QUICK_ROWS = 1_000_000, 100_000
TREES, DEPTH = 4, 5


def dpdf(threads: int) -> Any:
    return DPDFClassifier(SCHEMA, 1, TREES, DEPTH, n_jobs=threads)


def peer(threads: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=TREES, max_depth=DEPTH, n_jobs=threads, random_state=0)


def run(quick: bool = False) -> list[Line]:
    rows = QUICK_ROWS if quick else ROWS
    X, y = numpy_table(2 * rows)
    once_X, once_y = X[:rows].copy(), y[:rows].copy()
    lines = []
    for threads in (1, 2):
        dpdf(threads).fit(X[:1000], y[:1000])
        taken = fastest(
            {
                "ours": lambda threads=threads: dpdf(threads).fit(once_X, once_y),
                "twice": lambda threads=threads: dpdf(threads).fit(X, y),
                "peer": lambda threads=threads: peer(threads).fit(once_X, once_y),
            },
            3,
        )
        best, many = taken.best, f"{threads} thread{'s' if threads > 1 else ''}"
        what = f"DPDF, {TREES} trees of {DEPTH} levels, {rows:,} rows, {many}"
        ratio = best["peer"] / best["ours"]
        lines.append(
            at_least(what, seconds(best["ours"]), f"scikit-learn {seconds(best['peer'])}", ratio, None if quick else 5).timed(taken.others)
        )
        over = f"{seconds(best['twice'])} over {seconds(best['ours'])}"
        lines.append(at_most(f"{what}: twice the rows", over, "", best["twice"] / best["ours"], 2.2).timed(taken.others))
    return lines
