"""Releases put together: accuracy of batches and of divided columns (Jagannathan et al. 2012, Figures 4 and 5), and the time to merge.

The folds, the tree structures, the batches and the divisions of columns are seeded; the noise is secret and cannot be. Within a fold
all numbers of batches and all ε use the same structures. Every count is made by `hedgerow.count` and put together by `hedgerow.merge`
or `merge_columns`: an accuracy is that of the release which owners would get.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.accuracy import FOLDS, private_rdt, snr_forest
from benchmarks.busy import Others
from benchmarks.measure import Line, at_least, not_run, seconds, table
from benchmarks.memory import REPOSITORY, extra_memory, megabytes
from hedgerow import (
    Categorical,
    PrivateRDTClassifier,
    RandomDecisionTreesClassifier,
    Release,
    Schema,
    Target,
    count,
    merge,
    merge_columns,
)
from hedgerow.datasets import load
from hedgerow.datasets.dataset import Dataset
from hedgerow.errors import HedgerowError, MissingColumnsWarning

EPSILON = "0.5"  # of Figure 4
BATCHES = (1, 2, 4, 6, 8, 10)
EPSILONS = ("5", "4", "3", "2", "1", "0.75", "0.5", "0.25", "0.1")  # of Figure 5
VOTES_TREES = 5  # for each owner, as in the paper
VOTES_REPEATS = 10
OWNERS, QUICK_OWNERS = 100, 10  # of the merge that is timed
TREES, HEIGHT, VALUES, CLASSES = 10, 4, 10, 10  # VALUES ** HEIGHT leaves in each tree


def folds(data: Dataset, seed: int) -> Iterator[tuple[int, Any, Any]]:
    """The folds of `accuracy.fold_accuracies`, each with the seed of its structures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Nursery has a class of two rows, fewer than the folds
        parts = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(data.X, data.y))
    for fold, (train, test) in enumerate(parts):
        yield seed * FOLDS + fold, train, test


def mean_and_error(found: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))


def shown(found: Sequence[float]) -> str:
    mean, error = mean_and_error(found)
    return f"{mean:.3f} ± {error:.3f}"


# ---------------------------------------------------------------- batches, or owners with the same columns: Figure 4


def batch_lines(data_name: str, what: str, make: Callable[[Any, int], Any], seeds: range, planned: bool = False) -> list[Line]:
    """Accuracy when the training rows come in m batches; beside it the loss against m = 1 and what one batch alone gives.

    planned: the number of batches was known when the trees were planned; otherwise the same trees serve every m
    """
    data = load(data_name)
    X, y = data.X, data.y
    merged: dict[int, list[float]] = defaultdict(list)
    alone: dict[int, list[float]] = defaultdict(list)
    noise: dict[int, list[float]] = defaultdict(list)
    for seed in seeds:
        for number, train, test in folds(data, seed):
            for m in BATCHES:
                plan = make(data.schema, number).public_plan(rows=len(train), tables=m if planned else 1)
                batch = np.random.default_rng([number, m]).integers(m, size=len(train))  # of each row by itself
                parts = [train[batch == i] for i in range(m)]
                releases = [count(plan, X[p], y[p], owner=f"owner {i}", disjoint=True) for i, p in enumerate(parts)]
                whole = merge(releases)
                merged[m].append(float(np.mean(whole.predict(X[test]) == y[test])))
                alone[m].append(float(np.mean(releases[0].predict(X[test]) == y[test])))
                noise[m].append(whole.forest.leaf_noise_sd)
    lines = []
    for m in BATCHES:
        mean, error = mean_and_error([a - b for a, b in zip(merged[m], merged[1], strict=True)])  # the same folds and structures
        beside = "" if m == 1 else f"against m = 1: {mean:+.3f} ± {error:.3f}; one batch alone: {shown(alone[m])}"
        lines.append(Line(f"{what}, m = {m}, noise sd {np.mean(noise[m]):.1f}", shown(merged[m]), beside, None, "", None))
    return lines


def batches(quick: bool = False, repeats: int = 3) -> list[Line]:
    seeds = range(1 if quick else repeats)
    lines = []
    for name in ("nursery", "mushroom"):
        kinds = [("Private-RDT", private_rdt(EPSILON), False), ("SNR forest", snr_forest(EPSILON), False)]
        kinds.append(("SNR forest planned for m", snr_forest(EPSILON), True))
        for algorithm, make, planned in kinds:
            what = f"{algorithm}, {name.title()}, ε = {EPSILON}"
            try:
                lines += batch_lines(name, what, make, seeds, planned)
            except HedgerowError as error:
                lines.append(not_run(what, str(error)))
    return lines


# ---------------------------------------------------------------- owners with different columns: Figure 5


def votes_of_the_paper() -> Dataset:
    """Votes with each missing vote replaced by the majority of its bill. That reads the rows: only to reproduce the figure."""
    data = load("votes")
    columns = {}
    for name, values in data.columns.items():
        columns[name] = np.where(values == "?", "y" if np.sum(values == "y") >= np.sum(values == "n") else "n", values)
    attributes = [Categorical(attribute.name, ("y", "n")) for attribute in data.schema.attributes]
    return replace(data, columns=columns, schema=Schema(attributes, data.schema.target, data.schema.rows))


class Columns:
    """Accuracies over all folds: of forests united from two owners, of forests of the whole table, and with columns missing."""

    def __init__(self, data: Dataset, each: Sequence[str], whole: Sequence[str], seeds: range) -> None:
        self.data, self.names = data, np.array(data.schema.names)
        self.united: dict[str, list[float]] = defaultdict(list)  # by the ε of each owner
        self.total: dict[str, str] = {}  # from that ε to the one in the certificate
        self.whole: dict[str, list[float]] = defaultdict(list)
        self.only_a: dict[str, list[float]] = defaultdict(list)  # the united forest on rows that lack B's columns
        self.a_alone: dict[str, list[float]] = defaultdict(list)
        self.plain: list[float] = []
        self.heights: set[tuple[int, int]] = set()  # of an owner's trees, and of those of the whole table
        for seed in seeds:
            for number, train, test in folds(data, seed):
                self.fold(number, train, test, each, whole)

    def fold(self, number: int, train: Any, test: Any, each: Sequence[str], whole: Sequence[str]) -> None:
        order = np.random.default_rng(number).permutation(len(self.names))
        half = len(order) // 2
        in_a, in_b = sorted(order[:half]), sorted(order[half:])
        everything = list(range(len(order)))
        rows = self.rows(test, everything)
        for epsilon in each:
            a = self.counted(epsilon, in_a, train, 2 * number, "A")
            b = self.counted(epsilon, in_b, train, 2 * number + 1, "B")
            united = merge_columns([a, b])
            self.total[epsilon] = str(united.certificate.epsilon)
            self.united[epsilon].append(self.accuracy(united, rows, test))
            self.a_alone[epsilon].append(self.accuracy(a, self.rows(test, in_a), test))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MissingColumnsWarning)
                self.only_a[epsilon].append(self.accuracy(united, self.rows(test, in_a), test))
        for epsilon in whole:
            release = self.counted(epsilon, everything, train, number, "")
            self.whole[epsilon].append(self.accuracy(release, rows, test))
        self.heights.add((united.forest.trees[0].height, release.forest.trees[0].height))
        plain = RandomDecisionTreesClassifier(VOTES_TREES, prune=False, schema=self.data.schema, random_state=number)
        plain.fit(self.data.X[train], self.data.y[train])
        self.plain.append(float(np.mean(plain.predict(self.data.X[test]) == self.data.y[test])))

    def rows(self, which: Any, columns: Sequence[int]) -> dict[str, Any]:
        return {name: self.data.columns[name][which] for name in self.names[columns]}

    def counted(self, epsilon: str, columns: Sequence[int], train: Any, seed: int, owner: str) -> Release:
        schema = Schema([self.data.schema.attributes[j] for j in columns], self.data.schema.target)
        plan = PrivateRDTClassifier(schema, epsilon, VOTES_TREES, random_state=seed).public_plan(rows=len(train))
        return count(plan, self.rows(train, columns), self.data.y[train], owner=owner)

    def accuracy(self, release: Release, rows: dict[str, Any], test: Any) -> float:
        return float(np.mean(release.predict(rows) == self.data.y[test]))


def double(epsilon: str) -> str:
    return f"{float(2 * Fraction(epsilon)):g}"


def columns(quick: bool = False) -> list[Line]:
    seeds = range(1 if quick else VOTES_REPEATS)
    halves = [f"{float(Fraction(epsilon) / 2):g}" for epsilon in EPSILONS]
    each = sorted({*EPSILONS, *halves}, key=Fraction, reverse=True)
    try:
        found = Columns(load("votes"), each, [double(epsilon) for epsilon in each], seeds)
        paper = Columns(votes_of_the_paper(), EPSILONS, sorted({*EPSILONS, *map(double, EPSILONS)}), seeds)
    except HedgerowError as error:
        return [not_run("Private-RDT, Votes, columns of two owners", str(error))]
    lines = []
    for epsilon in each:
        what = f"Votes, ε = {epsilon} for each of two owners, {found.total[epsilon]} in the merged certificate"
        peer = f"whole table, ε = {double(epsilon)}: {shown(found.whole[double(epsilon)])}"
        lines.append(Line(what, shown(found.united[epsilon]), peer, None, "", None))
    for epsilon in EPSILONS:
        what = f"Votes, ε = {epsilon} for each owner: rows that lack the columns of B"
        peer = f"the forest of A alone: {shown(found.a_alone[epsilon])}"
        lines.append(Line(what, shown(found.only_a[epsilon]), peer, None, "", None))
    for epsilon in EPSILONS:
        what = f"Votes as in the paper (two values), ε = {epsilon} for each owner, {paper.total[epsilon]} in the merged certificate"
        beside = [f"ε = {e}: {shown(paper.whole[e])}" for e in (epsilon, double(epsilon))]
        lines.append(Line(what, shown(paper.united[epsilon]), f"whole table, {', '.join(beside)}", None, "", None))
    for label, result in (("Votes", found), ("Votes as in the paper", paper)):
        heights = "; ".join(f"{one} of an owner's trees, {whole} of the whole table's" for one, whole in sorted(result.heights))
        lines.append(Line(f"{label}: RDT without privacy, not pruned, heights: {heights}", shown(result.plain), "", None, "", None))
    return lines


# ---------------------------------------------------------------- how long it takes


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


def speed(quick: bool = False) -> list[Line]:
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
    parser.add_argument("--quick", action="store_true", help="one repeat; fewer owners")
    parser.add_argument("--repeats", type=int, default=3, help="cross-validations of the batches, with fold seeds 0, 1, …")
    parser.add_argument("--measure", type=Path, help="merge the releases of this folder in this process, print JSON")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure)))
        return
    for lines in (batches(given.quick, given.repeats), columns(given.quick), speed(given.quick)):
        print(table(lines), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
