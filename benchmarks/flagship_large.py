"""The Hedgerow forest on many rows: streamed from Parquet beside the same fit in memory, and what a fit needs over its encoded rows.

Each job has a process of its own (`python -m benchmarks.flagship_large --job …`), which warms up on a small table first.
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

from benchmarks.big_table import ATTRIBUTES, SCHEMA, numpy_table
from benchmarks.flagship import DELTA
from benchmarks.measure import Line, at_most, fastest, seconds
from benchmarks.memory import REPOSITORY, extra_memory, resident
from benchmarks.scale import MOST_MEMORY, write_table
from hedgerow import HedgerowClassifier

ROWS, QUICK_ROWS = 10_000_000, 100_000
THREADS = 2


def forest() -> HedgerowClassifier:
    return HedgerowClassifier(SCHEMA, 1, DELTA, n_jobs=THREADS, random_state=0)


def streamed(path: Path) -> dict[str, float]:
    return timed(lambda: forest().fit(path))


def in_memory(path: Path) -> dict[str, float]:
    import pyarrow.parquet as pq  # type: ignore[import-untyped,unused-ignore]

    table = pq.read_table(path)
    labels = table.column(SCHEMA.target.name).to_numpy()
    rows = table.drop_columns([SCHEMA.target.name])
    return timed(lambda: forest().fit(rows, labels))


def timed(fit: Any) -> dict[str, float]:
    begun = time.perf_counter()
    chosen = fit().release_.chosen
    return {"seconds": time.perf_counter() - begun, "trees": chosen["boosted trees"], "depth": chosen["depth"]}


def over_encoded(path: Path) -> dict[str, float]:
    """What a fit in memory needs at most, over the codes and classes of its rows."""
    import pyarrow.parquet as pq

    rows = pq.ParquetFile(path).metadata.num_rows
    X, y = numpy_table(rows)
    needed, model = extra_memory(lambda: forest().fit(X, y))
    codebook = model.release_.forest.codebook  # type: ignore[attr-defined]
    encoded = codebook.encode(X).nbytes + codebook.encode_classes(y).nbytes
    return {"bytes": needed - encoded}


JOBS = {"streamed": streamed, "memory": in_memory, "encoded": over_encoded}


def in_own_process(job: str, path: Path, small: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.flagship_large", "--job", job, str(path), str(small)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{job} ended with code {done.returncode}: {done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def run(quick: bool = False, rows: int = 0) -> list[Line]:
    rows = rows or (QUICK_ROWS if quick else ROWS)
    with tempfile.TemporaryDirectory(prefix="hedgerow-large-") as folder:
        large, fifth, tenth, small = (Path(folder) / f"{name}.parquet" for name in ("large", "fifth", "tenth", "small"))
        for path, size in ((large, rows), (fifth, rows // 5), (tenth, rows // 10), (small, 20_000)):
            write_table(path, size)
        seen: dict[str, dict[str, float]] = {}

        def job(name: str) -> float:
            seen[name] = in_own_process(name, large, small)
            return seen[name]["seconds"]

        times = fastest({"streamed": lambda: job("streamed"), "memory": lambda: job("memory")}, 1)
        twice, once = (in_own_process("encoded", path, small)["bytes"] for path in (fifth, tenth))
        each = (twice - once) / (rows // 5 - rows // 10)  # the model is as large, and what is loaded
    best, peak, limit = times.best, seen["streamed"]["peak"], 8 * (len(SCHEMA.target.classes) + 2)
    grown = f"{seen['streamed']['trees']:.0f} trees of depth {seen['streamed']['depth']:.0f}"
    what = f"fit {rows:,} rows × {ATTRIBUTES} from Parquet, δ = {DELTA}, {grown}, {THREADS} threads"
    return [
        at_most(what, seconds(best["streamed"]), f"in memory {seconds(best['memory'])}", best["streamed"] / best["memory"], 1.5).timed(
            times.others
        ),
        at_most("the same, peak memory of the whole process", f"{peak / 1e6:.0f} MB", "1,500 MB", peak / MOST_MEMORY, 1),
        at_most(
            f"bytes a row over the encoded table, from {rows // 10:,} to {rows // 5:,} rows",
            f"{each:.1f}",
            f"8·(C + 2) = {limit}",
            each / limit,
            1,
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=JOBS)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("table", type=Path, nargs="?")
    parser.add_argument("small", type=Path, nargs="?")
    given = parser.parse_args()
    if given.job:
        JOBS[given.job](given.small)
        print(json.dumps({**JOBS[given.job](given.table), "peak": resident("VmHWM")}))
    else:
        from benchmarks.measure import table as as_table

        print(as_table(run(rows=given.rows)))
