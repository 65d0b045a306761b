"""Pseudo-data: rows a minute into a Parquet file and the memory for it; accuracy of a tree that is learned from them.

The speed: ATTRIBUTES columns, a forest of random trees or a single tree, written by `PseudoData.save` on all processors, in a process of
its own. The accuracy: scikit-learn's decision tree (one-hot, default settings) learned from pseudo-data of a private forest, beside that
forest itself, fold by fold. Folds, structures and pseudo-rows are seeded; the noise is secret and cannot be.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from benchmarks.busy import Others
from benchmarks.measure import Line, at_least, not_run, seconds, table
from benchmarks.memory import REPOSITORY, extra_memory, megabytes
from hedgerow import Categorical, DPDFClassifier, PrivateRDTClassifier, Release, Schema, SNRForestClassifier, Target, pseudo_data
from hedgerow.errors import HedgerowError
from hedgerow_experiments.folds import FOLDS, data_of, folds_of, rows_of
from hedgerow_experiments.folds import accuracy as accuracy_of
from hedgerow_experiments.statistics import cross_validated_mean, difference

ROWS, QUICK_ROWS = 20_000_000, 2_000_000
ATTRIBUTES, VALUES, CLASSES = 15, 5, 4
TREES = 10
TARGET = 20_000_000  # rows a minute
METHODS = ("pgen", "basegen", "forest")
EPSILON = "1"
WITHIN = 0.05  # of the forest's own accuracy
FORESTS: dict[str, Callable[[Schema, int], Any]] = {
    "Private-RDT": lambda schema, seed: PrivateRDTClassifier(schema, EPSILON, random_state=seed),
    "SNR forest": lambda schema, seed: SNRForestClassifier(schema, EPSILON, random_state=seed),
    "DPDF": lambda schema, seed: DPDFClassifier(schema, EPSILON),
}


# ---------------------------------------------------------------- speed and memory


def wide_release(trees: int) -> Release:
    """A private forest over ATTRIBUTES columns of VALUES values."""
    values, classes = [f"value {v}" for v in range(VALUES)], [f"class {c}" for c in range(CLASSES)]
    schema = Schema([Categorical(f"a{j}", values) for j in range(ATTRIBUTES)], Target("class", classes))
    rng = np.random.default_rng(0)
    X = np.array(values, dtype=object)[rng.integers(VALUES, size=(20_000, ATTRIBUTES))]
    y = np.array(classes)[rng.integers(CLASSES, size=len(X))]
    return PrivateRDTClassifier(schema, 1, trees, 5, random_state=0).fit(X, y).release_


def measure(method: str, trees: int, rows: int) -> dict[str, float]:
    """Seconds and peak memory of writing so many rows."""
    release = wide_release(trees)
    with tempfile.TemporaryDirectory(prefix="hedgerow-pseudo-") as folder:
        path = Path(folder) / "pseudo.parquet"
        pseudo_data(release, 200_000, method=method, seed=1).save(path, 2)  # whatever is compiled is compiled here
        spent = 0.0

        def job() -> None:
            nonlocal spent
            start = time.perf_counter()
            pseudo_data(release, rows, method=method, seed=0).save(path, 2)
            spent = time.perf_counter() - start

        others = Others()
        peak, _ = extra_memory(job)
        used = others.cpus()
        size = path.stat().st_size
    return {"seconds": spent, "peak": peak, "size": size} | ({} if used is None else {"others": used})


def speed(quick: bool = False) -> list[Line]:
    rows = QUICK_ROWS if quick else ROWS
    lines = []
    for method, trees in (("pgen", 1), ("pgen", TREES), ("basegen", TREES), ("forest", TREES)):
        what = f"{method}, {trees} tree{'s' if trees > 1 else ''}, {rows:,} rows × {ATTRIBUTES} attributes to Parquet"
        command = [sys.executable, "-m", "benchmarks.pseudo", "--measure", method, "--trees", str(trees), "--rows", str(rows)]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            lines.append(not_run(what, f"the process that measures ended with code {done.returncode}", "≥ 1"))
            continue
        found: dict[str, float] = json.loads(done.stdout)
        a_minute = rows / found["seconds"] * 60
        ours = f"{a_minute / 1e6:.0f} million rows a minute ({seconds(found['seconds'])})"
        beside = f"target {TARGET / 1e6:.0f} million; peak memory {megabytes(int(found['peak']))}, file {megabytes(int(found['size']))}"
        lines.append(at_least(what, ours, beside, a_minute / TARGET, 1).timed(found.get("others")))
    return lines


# ---------------------------------------------------------------- accuracy


class Learned:
    """A scikit-learn tree that has seen pseudo-data of a release only."""

    def __init__(self, release: Release, method: str, seed: int) -> None:
        self.release = release
        data = pseudo_data(release, method=method, seed=seed)
        codes = [np.arange(size + 1) for size in release.codebook.sizes]  # the code without a branch, too
        self.one_hot = OneHotEncoder(categories=codes, sparse_output=False, dtype=np.float32).fit(np.zeros((1, len(codes)), dtype=int))
        self.tree = DecisionTreeClassifier(random_state=0).fit(self.one_hot.transform(data.codes), data.class_codes)

    def predict(self, columns: Any) -> Any:
        return self.release.classes[self.tree.predict(self.one_hot.transform(self.release.codebook.encode(columns)))]


def accuracy_lines(name: str, what: str, make: Callable[[Schema, int], Any], seeds: range) -> list[Line]:
    data = data_of(name)
    found: dict[str, list[float]] = defaultdict(list)
    for seed in seeds:
        for fold, (train, test) in enumerate(folds_of(data, seed)):
            number = seed * FOLDS + fold
            release = make(data.schema, number).fit(rows_of(data, train), data.y[train]).release_
            found["itself"].append(accuracy_of(release, data, test))
            for method in METHODS:
                found[method].append(accuracy_of(Learned(release, method, number), data, test))
    lines = []
    for method in METHODS:
        gap = difference(found[method], found["itself"], FOLDS)
        beside = f"the forest itself {cross_validated_mean(found['itself'], FOLDS)}; difference {gap.signed}"
        goal = method == "forest" and name == "nursery"
        target, met = (f"difference ≥ −{WITHIN:g}", gap.mean >= -WITHIN) if goal else ("", None)
        case = f"{what}, {name.title()}, ε = {EPSILON}: tree learned from {method}"
        lines.append(Line(case, str(cross_validated_mean(found[method], FOLDS)), beside, None, target, met))
    return lines


def accuracy(quick: bool = False, repeats: int = 1) -> list[Line]:
    lines = []
    for name in ("nursery",) if quick else ("nursery", "mushroom", "votes"):
        for what, make in FORESTS.items():
            try:
                lines += accuracy_lines(name, what, make, range(repeats))
            except HedgerowError as error:
                lines.append(not_run(f"{what}, {name.title()}", str(error)))
    return lines


def run(quick: bool = False, repeats: int = 1) -> list[Line]:
    return [*speed(quick), *accuracy(quick, repeats)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows; Nursery only")
    parser.add_argument("--repeats", type=int, default=1, help="cross-validations, with fold seeds 0, 1, …")
    parser.add_argument("--measure", help="measure this method in this process, print JSON")
    parser.add_argument("--trees", type=int, default=TREES)
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.trees, given.rows)))
        return
    print(table(run(given.quick, given.repeats)))


if __name__ == "__main__":
    main()
