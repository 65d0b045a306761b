"""Spark on this machine: time against rows, against the engine that streams the same Parquet files, and the bytes that come back.

`local[2]`, and a standalone cluster of two workers with one core each (`tests/spark/cluster.py`). Both, and the streaming engine with two
threads, count the leaves of 10 random trees of height 5. Each has a process of its own, which warms up on a small table first, so that
neither a start of Spark nor a compilation is timed; the shortest of some rounds counts. One job a question: what is timed is that job.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests import exact as exact_answers

from benchmarks.big_table import HEIGHT, SCHEMA, TREES
from benchmarks.busy import _machine_seconds
from benchmarks.measure import Line, at_least, at_most, not_run, table
from benchmarks.memory import REPOSITORY
from benchmarks.scale import write_table
from hedgerow import PrivateRDTClassifier
from hedgerow.schema.codebook import Codebook

ROWS, QUICK_ROWS = (100_000, 1_000_000, 10_000_000), (10_000, 100_000)
FILES = 8  # of each table: as many partitions at least
SMALL = 8_000
ROUNDS = 3
CORES = 2


def write_tables(folder: Path, sizes: tuple[int, ...]) -> list[Path]:
    tables = []
    for rows in (SMALL, *sizes):
        place = folder / str(rows)
        place.mkdir()
        for number in range(FILES):
            write_table(place / f"{number}.parquet", rows // FILES)
        tables.append(place)
    return tables


def trees() -> list[Any]:
    return list(PrivateRDTClassifier(SCHEMA, 1, TREES, HEIGHT, random_state=0).public_plan().trees)


@contextmanager
def session(master: str) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g", "spark.executor.memory": "512m", "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.files.maxPartitionBytes": "8m", "spark.sql.files.openCostInBytes": "4m",
    }  # fmt: skip
    builder = SparkSession.builder.master(master).appName("hedgerow benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    try:
        yield made
    finally:
        made.stop()


def streamed(places: list[Path]) -> list[dict[str, float]]:
    from hedgerow.engines.opening import open_place

    return _timed(places, lambda place: open_place(str(place), Codebook(SCHEMA), CORES))


def local(places: list[Path]) -> list[dict[str, float]]:
    with session(f"local[{CORES}]") as spark:
        return _on_spark(places, spark)


def cluster(places: list[Path]) -> list[dict[str, float]]:
    sys.path.insert(0, str(REPOSITORY / "tests"))
    from spark.cluster import standalone  # type: ignore[import-not-found,unused-ignore]

    with standalone(workers=CORES) as running, session(running.url) as spark:
        return _on_spark(places, spark)


def _on_spark(places: list[Path], spark: Any) -> list[dict[str, float]]:
    from hedgerow.engines.spark import SparkRows

    return _timed(places, lambda place: SparkRows(spark.read.parquet(str(place)), Codebook(SCHEMA)))


def _timed(places: list[Path], engine_of: Callable[[Path], Any]) -> list[dict[str, float]]:
    """The first table warms up. An engine of its own for each round: none may remember."""
    asked = trees()
    found = []
    for number, place in enumerate(places):
        times, begun_at, before = [], time.perf_counter(), _seconds_of_others()
        for _ in range(ROUNDS):
            engine = engine_of(place)
            begun = time.perf_counter()
            counts = exact_answers.leaf_counts(engine, asked)
            times.append(time.perf_counter() - begun)
        others = max(0.0, _seconds_of_others() - before) / (time.perf_counter() - begun_at)
        if number:
            found.append({
                "seconds": min(times), "sent back": getattr(engine, "sent_back", 0), "counts": sum(each.nbytes for each in counts),
                "rows": int(counts[0].sum()), "others": others,
            })  # fmt: skip
    return found


def _seconds_of_others() -> float:
    """CPU time of all programs but this one and those that it started, which are alive: Spark's are many."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(place.name)], spent[int(place.name)] = int(words[1]), sum(map(int, words[11:15]))
    family: set[int] = set()
    more = {os.getpid()}
    while more:
        family |= more
        more = {child for child, parent in parents.items() if parent in family} - family
    return (_machine_seconds() or 0.0) - sum(spent[each] for each in family if each in spent) / os.sysconf("SC_CLK_TCK")


JOBS: dict[str, Callable[[list[Path]], list[dict[str, float]]]] = {"streamed": streamed, "local": local, "cluster": cluster}
NAMES = {"local": f"local[{CORES}]", "cluster": f"cluster of {CORES} workers"}


def in_own_process(job: str, places: list[Path]) -> list[dict[str, float]]:
    command = [sys.executable, "-m", "benchmarks.spark", "--job", job, *map(str, places)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{job} ended with code {done.returncode}: {done.stderr[-2000:]}")
    answer: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return answer


def run(quick: bool = False) -> list[Line]:
    if find_spec("pyspark") is None:
        return [not_run("Spark", "pyspark is not installed")]
    sizes = QUICK_ROWS if quick else ROWS
    with tempfile.TemporaryDirectory(prefix="hedgerow-spark-") as folder:
        places = write_tables(Path(folder), sizes)
        seen = {job: in_own_process(job, places) for job in JOBS}
    lines = []
    for job, name in NAMES.items():
        for found, peer in zip(seen[job], seen["streamed"], strict=True):
            assert found["rows"] == peer["rows"]
            busy = max(found["others"], peer["others"])
            what = f"{name}, {found['rows']:,.0f} rows, {found['sent back']:,.0f} bytes sent back"
            ours, theirs = f"{found['seconds']:.2f} s", f"streamed {peer['seconds']:.2f} s"
            lines.append(at_least(what, ours, theirs, found["seconds"] / peer["seconds"], None).timed(busy))
        *_, before, last = seen[job]
        ratio, rows = last["seconds"] / before["seconds"], last["rows"] / before["rows"]
        busy = max(before["others"], last["others"])
        what = f"{name}, {last['rows']:,.0f} rows against {before['rows']:,.0f}"
        lines.append(at_most(what, f"{last['seconds']:.2f} s", f"{before['seconds']:.2f} s", ratio, 1.1 * rows).timed(busy))
        what = f"{name}, bytes sent back for {last['rows']:,.0f} rows against {seen[job][0]['rows']:,.0f}"
        first = seen[job][0]["sent back"]
        lines.append(at_most(what, f"{last['sent back']:,.0f}", f"{first:,.0f}", last["sent back"] / last["counts"], 1))
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", choices=JOBS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("tables", nargs="*", type=Path)
    given = parser.parse_args()
    print(json.dumps(JOBS[given.job](given.tables)) if given.job else table(run(given.quick)))
