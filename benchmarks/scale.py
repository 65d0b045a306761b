"""Tables that are larger than memory: streamed from Parquet, against DuckDB's own time for one query over the same columns.

The table is `big_table`, made in blocks and written to a folder that is taken away. Each job runs in a process of its own
(`python -m benchmarks.scale --job …`), which warms up on a small table first, so that no compilation is timed and the
high-water mark of its memory is its own; jobs take turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.big_table import ATTRIBUTES, HEIGHT, SCHEMA, TREES, numpy_table
from benchmarks.measure import Line, at_most, fastest
from benchmarks.memory import REPOSITORY, resident

ROWS, QUICK_ROWS = 100_000_000, 1_000_000
BLOCK = 1_000_000
TENTH = 10
THREADS = 2
ROUNDS = 3
MOST_MEMORY = 1.5e9
DPDF_TREES, DPDF_DEPTH = 4, 5


def write_table(path: Path, rows: int) -> None:
    """Row groups of `BLOCK` rows, each with a seed of its own, small integers as they are."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
    import pyarrow.parquet as pq  # type: ignore[import-untyped,unused-ignore]

    names = [*SCHEMA.names, SCHEMA.target.name]
    shape = pa.schema([(name, pa.uint8()) for name in names])
    with pq.ParquetWriter(path, shape, compression="zstd") as writer:
        for number, start in enumerate(range(0, rows, BLOCK)):
            X, y = numpy_table(min(BLOCK, rows - start), seed=number)
            columns = [*X.T.astype(np.uint8), y.astype(np.uint8)]
            writer.write_table(pa.Table.from_arrays([pa.array(column) for column in columns], schema=shape))


def forest(path: Path) -> dict[str, float]:
    from hedgerow import PrivateRDTClassifier

    return _trained(PrivateRDTClassifier(SCHEMA, 1, n_estimators=TREES, max_depth=HEIGHT, n_jobs=THREADS, random_state=0), path)


def dpdf(path: Path) -> dict[str, float]:
    from hedgerow import DPDFClassifier

    return _trained(DPDFClassifier(SCHEMA, 10, n_estimators=DPDF_TREES, max_depth=DPDF_DEPTH, n_jobs=THREADS), path)


def _trained(estimator: Any, path: Path) -> dict[str, float]:
    engine = estimator._engine_for(path, None, None, False)
    begun = time.perf_counter()
    estimator._train(engine)
    return {"seconds": time.perf_counter() - begun, "passes": engine.passes}


def query(path: Path) -> dict[str, float]:
    """DuckDB itself: grouped by two attributes and the class, the sum of every other."""
    import duckdb

    a, b, *others = SCHEMA.names
    sums = ", ".join(f"sum({name})" for name in others)
    groups = f"{a}, {b}, {SCHEMA.target.name}"
    with duckdb.connect(":memory:", config={"threads": THREADS}) as connection:
        begun = time.perf_counter()
        connection.execute(f"SELECT {groups}, {sums} FROM read_parquet('{path}') GROUP BY {groups}").fetchall()
        return {"seconds": time.perf_counter() - begun, "passes": 1}


JOBS = {"forest": forest, "dpdf": dpdf, "query": query}


def in_own_process(job: str, path: Path, small: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scale", "--job", job, str(path), str(small)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{job} ended with code {done.returncode}: {done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def run(quick: bool = False) -> list[Line]:
    rows = QUICK_ROWS if quick else ROWS
    with tempfile.TemporaryDirectory(prefix="hedgerow-scale-") as folder:
        large, tenth, small = (Path(folder) / name for name in ("large.parquet", "tenth.parquet", "small.parquet"))
        for path, size in ((large, rows), (tenth, rows // TENTH), (small, 10_000)):
            write_table(path, size)
        seen: dict[str, dict[str, float]] = {}

        def job(name: str, path: Path) -> float:
            found = in_own_process(name, path, small)
            seen[f"{name} {path.stem}"] = found
            return found["seconds"]

        times = fastest(
            {
                "query": lambda: job("query", large),
                "forest": lambda: job("forest", large),
                "forest tenth": lambda: job("forest", tenth),
                "dpdf": lambda: job("dpdf", large),
            },
            1 if quick else ROUNDS,
        )
        best = times.best
        peak, passes = seen["forest large"]["peak"], seen["dpdf large"]["passes"]
        each = best["dpdf"] / passes
        size = large.stat().st_size
        lines = [
            at_most(
                f"{TREES} random trees of height {HEIGHT}, {rows:,} rows × {ATTRIBUTES} in Parquet ({size / 1e9:.2f} GB)",
                f"{best['forest']:.1f} s",
                f"DuckDB's query {best['query']:.2f} s",
                best["forest"] / best["query"],
                4,
            ).timed(times.others),
            at_most(
                f"{rows:,} rows against {rows // TENTH:,}",
                f"{best['forest']:.2f} s",
                f"{best['forest tenth']:.2f} s",
                best["forest"] / best["forest tenth"],
                11,
            ).timed(times.others),
            at_most("the same, peak memory of the whole process", f"{peak / 1e6:.0f} MB", "1,500 MB", peak / MOST_MEMORY, 1),
            at_most(
                f"DPDF, {DPDF_TREES} trees of depth {DPDF_DEPTH}: {passes:.0f} passes, {seen['dpdf large']['peak'] / 1e6:.0f} MB at most",
                f"{each:.1f} s a pass",
                f"random trees {best['forest']:.1f} s a pass",
                each / best["forest"],
                5,
            ).timed(times.others),
        ]
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=JOBS)
    parser.add_argument("table", type=Path)
    parser.add_argument("small", type=Path)
    given = parser.parse_args()
    JOBS[given.job](given.small)
    print(json.dumps({**JOBS[given.job](given.table), "peak": resident("VmHWM")}))
