"""How long it takes to merge the releases of many owners, beside reading them, and the memory for it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.busy import Others
from benchmarks.measure import Line, at_least, not_run, seconds, table
from benchmarks.memory import REPOSITORY, extra_memory, megabytes
from hedgerow import Categorical, PrivateRDTClassifier, Release, Schema, Target, count, merge

OWNERS, QUICK_OWNERS = 100, 10
TREES, HEIGHT, VALUES, CLASSES = 10, 4, 10, 10  # VALUES ** HEIGHT leaves in each tree


def write_releases(folder: Path, owners: int) -> None:
    """A release file for each owner: TREES trees of VALUES ** HEIGHT leaves, counted on a small random table."""
    schema = Schema([Categorical(f"a{j}", tuple(range(VALUES))) for j in range(10)], Target("class", tuple(range(CLASSES))))
    plan = PrivateRDTClassifier(schema, 1, TREES, HEIGHT, random_state=0).public_plan()
    rng = np.random.default_rng(0)
    for owner in range(owners):
        X, y = rng.integers(VALUES, size=(1_000, 10)), rng.integers(CLASSES, size=1_000)
        count(plan, X, y, owner=f"owner {owner}", disjoint=True).save(folder / f"{owner:03}.json.gz")


def measure(folder: Path) -> dict[str, float]:
    """Merge all files of a folder, one at a time: seconds spent in reading and in merging, and the peak of memory."""
    paths = sorted(folder.iterdir())
    first = Release.load(paths[0])
    one = sum(counts.nbytes for counts in first.forest.counts)
    merge([first, Release.load(paths[1])])  # whatever is compiled is compiled here
    del first
    reading = whole = 0.0

    def read(path: Path) -> Release:
        nonlocal reading
        start = time.perf_counter()
        release = Release.load(path)
        reading += time.perf_counter() - start
        return release

    def job() -> Release:
        nonlocal whole
        start = time.perf_counter()
        release = merge(map(read, paths))
        whole = time.perf_counter() - start
        return release

    others = Others()
    peak, _ = extra_memory(job)
    used = others.cpus()
    return {"reading": reading, "merging": whole - reading, "peak": peak, "one": one} | ({} if used is None else {"others": used})


def run(quick: bool = False) -> list[Line]:
    owners = QUICK_OWNERS if quick else OWNERS
    what = f"merge, {owners} owners × {TREES} trees × {VALUES**HEIGHT:,} leaves × {CLASSES} classes"
    with tempfile.TemporaryDirectory(prefix="hedgerow-merge-") as folder:
        write_releases(Path(folder), owners)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        command = [sys.executable, "-m", "benchmarks.merging", "--measure", folder]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return [not_run(what, f"the process that measures ended with code {done.returncode}", "≥ 1")]
    found: dict[str, float] = json.loads(done.stdout)
    ours, peer = f"merging {seconds(found['merging'])}", f"reading {seconds(found['reading'])}, {megabytes(size)} of files"
    time_line = at_least(what, ours, peer, found["reading"] / found["merging"], 1).timed(found.get("others"))
    held = f"the counts of all {owners} together {megabytes(owners * int(found['one']))}"
    over = f"peak memory of that, over the counts of one release ({megabytes(int(found['one']))})"
    return [time_line, at_least(over, megabytes(int(found["peak"])), held, found["peak"] / found["one"], None)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer owners")
    parser.add_argument("--measure", type=Path, help="merge the releases of this folder in this process, print JSON")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure)))
        return
    print(table(run(given.quick)))


if __name__ == "__main__":
    main()
