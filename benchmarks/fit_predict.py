"""Fit and predict on a large table, beside scikit-learn's random forest of the same size and number of threads.

Ours includes the encoding of the table, from NumPy and from Arrow. scikit-learn gets NumPy in both cases: whatever it
costs to convert an Arrow table is not counted against it. Ours is compiled on a small table first.
"""

from __future__ import annotations

import argparse
from contextlib import suppress

from benchmarks.big_table import arrow_table, numpy_table, ours, scikit_learn
from benchmarks.measure import Line, at_least, at_most, fastest, not_run, seconds, table

ROWS = 1_000_000
QUICK_ROWS = 100_000
THREADS = (1, 2)
FIT_TARGET, PREDICT_TARGET, TWICE_THE_ROWS_TARGET = 20, 1, 2.2


def tables(rows: int) -> tuple[dict[str, object], object]:
    """The same rows as NumPy and, where pyarrow is installed, as Arrow; and the classes."""
    X, y = numpy_table(rows)
    sources: dict[str, object] = {"NumPy": X}
    with suppress(ImportError):
        sources["Arrow"] = arrow_table(X)
    return sources, y


def beside_scikit_learn(rows: int, threads: int, rounds: int) -> list[Line]:
    goal = {"fit": FIT_TARGET, "predict": PREDICT_TARGET} if rows == ROWS else {}  # the targets are for the full size
    sources, y = tables(rows)
    warm_up(threads)
    peer = scikit_learn(threads)
    times = fastest(
        {source: lambda table=X: ours(threads).fit(table, y) for source, X in sources.items()}
        | {"peer": lambda: peer.fit(sources["NumPy"], y)},
        rounds,
    )
    models = {source: ours(threads).fit(X, y) for source, X in sources.items()}
    predictions = fastest(
        {source: lambda source=source: models[source].predict(sources[source]) for source in sources}
        | {"peer": lambda: peer.predict(sources["NumPy"])},
        rounds + 2,
    )
    lines = []
    for verb, taken in (("fit", times), ("predict", predictions)):
        for source in ("NumPy", "Arrow"):
            what = f"{verb}, {rows:,} rows, {source}, {threads} thread{'s' if threads > 1 else ''}"
            if source not in taken.best:
                lines.append(not_run(what, "pyarrow is not installed"))
                continue
            mine, theirs = taken.best[source], taken.best["peer"]
            peer_words = f"scikit-learn {seconds(theirs)}"
            line = at_least(what, seconds(mine), peer_words, theirs / mine, goal.get(verb))
            lines.append(line.timed(taken.others))
    return lines


def twice_the_rows(rows: int, threads: int, rounds: int) -> Line:
    X, y = numpy_table(2 * rows)
    half_X, half_y = X[:rows].copy(), y[:rows].copy()
    warm_up(threads)
    taken = fastest({"once": lambda: ours(threads).fit(half_X, half_y), "twice": lambda: ours(threads).fit(X, y)}, rounds)
    return at_most(
        f"fit, {2 * rows:,} rows over {rows:,} rows, NumPy, {threads} thread{'s' if threads > 1 else ''}",
        f"{seconds(taken.best['twice'])} over {seconds(taken.best['once'])}",
        "",
        taken.best["twice"] / taken.best["once"],
        TWICE_THE_ROWS_TARGET,
    ).timed(taken.others)


def warm_up(threads: int) -> None:
    """Compile every loop, for each source, on a table too small to matter."""
    sources, y = tables(1_000)
    for X in sources.values():
        ours(threads).fit(X, y).predict(X)


def run(quick: bool = False) -> list[Line]:
    rows, rounds = (QUICK_ROWS, 2) if quick else (ROWS, 4)
    lines = []
    for threads in THREADS:
        lines += beside_scikit_learn(rows, threads, rounds)
    for threads in THREADS:
        lines.append(twice_the_rows(rows, threads, rounds + 1))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows and fewer repeats")
    print(table(run(parser.parse_args().quick)))


if __name__ == "__main__":
    main()
