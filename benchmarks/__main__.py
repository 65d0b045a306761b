"""Run every benchmark in one go: `python -m benchmarks [--quick] [--only SECTION...]`, from the root of the repository.

Speed, memory and throughput, and how much accuracy a tree loses that learns from pseudo-data. The accuracy of the
forests is measured by `hedgerow experiments run NAME`.

Writes benchmarks/RESULTS.md and benchmarks/results.json (with --quick or --only it only prints: a rough run does not
replace a careful one, and those files hold one run). A peer that is missing is reported as not run. Nothing here
asserts: times depend on the machine, so they are given as ratios of one run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import hedgerow
from benchmarks import (
    advice,
    csv_files,
    curator_load,
    exports,
    fit_predict,
    flagship,
    flagship_large,
    greedy,
    kernels,
    memory,
    merging,
    pseudo,
    sampler,
    spark,
    start_up,
)  # fmt: skip
from benchmarks import scale as streamed
from benchmarks.busy import QUIET
from benchmarks.measure import Line, at_least, not_run, table
from benchmarks.peers import compare
from hedgerow_experiments.folds import FOLDS

FOLDER = Path(__file__).resolve().parent
ACCURACY = "The accuracy of the forests is in [docs/REPRODUCTION.md](../docs/REPRODUCTION.md) and [docs/PEERS.md](../docs/PEERS.md)."
PACKAGES = ("numpy", "numba", "scikit-learn", "pyarrow", "narwhals", "opendp")


def sampler_lines() -> list[Line]:
    lines = []
    for scale, ours, theirs in sampler.measure():
        what = f"discrete Laplace, scale {scale}"
        if theirs is None:
            lines.append(not_run(what, "OpenDP is not installed"))
        else:
            lines.append(at_least(what, f"{ours:.3g} draws/s", f"OpenDP {theirs:.3g} draws/s", ours / theirs, 50))
    return lines


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "hedgerow": hedgerow.__version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def report(sections: dict[str, list[Line]], notes: dict[str, str], facts: dict[str, str]) -> str:
    parts = ["# Benchmarks", "", ACCURACY, "", "Made by `python -m benchmarks`. All numbers are from one run on one machine;"]
    parts += ["the ratios are what to compare.", ""]
    parts.append(", ".join(f"{name} {value}" for name, value in facts.items()) + ".")
    for name, lines in sections.items():
        parts += ["", f"## {name}", "", notes[name], "", table(lines)]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repeats; prints, writes no file")
    parser.add_argument("--diffprivlib-python", type=Path, help="the Python of an environment that has diffprivlib")
    parser.add_argument("--only", nargs="+", metavar="SECTION", help="sections whose names begin so, such as merging; only prints")
    given = parser.parse_args()
    notes = {
        "Start-up": (
            "A command in a new process, beside a process that imports numpy and ends, in the same rounds; medians. Ratio: of processor "
            "times, which other programs on the machine hardly change."
        ),
        "Noise": "Draws a second, the best of three runs; ratio: ours over OpenDP's.",
        "Fit and predict": (
            "20 attributes of 5 values, 10 trees of height 5, encoding included; the shortest of several interleaved "
            f"rounds in which other programs used at most {QUIET} CPUs (where there was none, no verdict). "
            "Ratio: the peer's time over ours, at the same number of threads; for twice the rows, ours over ours."
        ),
        "Hedgerow forest": (
            "Raw columns to a fitted forest. Ratio: the peer's time over ours, one thread each; for twice the rows, and from a file, ours "
            "over ours; bytes a row: what a fit in memory needs at its worst over codes and classes."
        ),
        "Greedy trees": "As above, for DPDF and a random forest with as many trees and levels.",
        "Memory": (
            "The peak of resident memory during fit over what was resident just before (packages, input table), each "
            "in a process of its own. Ratio: that peak over the size of the encoded table and the model."
        ),
        "diffprivlib": "Its random forest in an environment of its own, by turns with ours; ratio: its time over ours.",
        "Merging: speed": (
            "Files are read and checked, and merged, one at a time in one run (after they were written: the system has them in memory). "
            "Ratio: reading over merging."
        ),
        "Kernels": (
            "Codes in memory, the shortest of several rounds; what bounds the loops is in docs/SCALE_FIGURES.md. Ratio: as each line says; "
            "for the reference loops, their time over that of the leaf counts."
        ),
        "Streamed tables": (
            f"A Parquet file that is read again for each pass, {streamed.THREADS} threads, each job in a process of its own; the shortest "
            "of several rounds. Ratio: our time over the peer's, or over ours as named."
        ),
        "CSV files": (
            "One pass over a CSV, read, encoded and counted; the shortest of several interleaved rounds. Ratio: our time over that with "
            "DuckDB's reader in the place of our splitter."
        ),
        "Spark": (
            "The same random forest from Parquet files on local[2] and on a cluster of two workers of one core each on this machine, "
            "beside the streamed engine in the same run; bytes of counts that one job sends back."
        ),
        "Curator": (
            f"A real `hedgerow serve` and, in a process of their own, clients who ask {curator_load.RATE} times a second for "
            f"{curator_load.SECONDS} seconds, whether or not they are answered; latency from the moment at which a request was due. "
            f"Meanwhile a forest is trained from {curator_load.ROWS:,} rows. Ratio: the p99 over {curator_load.MOST:g} ms."
        ),
        "Exports": "Exported forests beside our own predict, one thread each, from columns in memory to probabilities, in the same rounds.",
        "Advice": (
            "What `hedgerow advise` expects beside what forests get, in points of accuracy: the mean over ε, a set by coefficients of the "
            "others. From the records in benchmarks/advice.json; those that are missing are measured (minutes, HEDGEROW_DATA)."
        ),
        "Pseudo-data": (
            f"Rows over {pseudo.ATTRIBUTES} attributes of {pseudo.VALUES} values, made and written by two threads in a process of its own; "
            "peak memory over what was resident before. "
            f"Accuracy: {FOLDS} folds, fold seed 0; scikit-learn's decision tree (one-hot, default settings) learned from "
            "pseudo-data of the private forest, as many rows as its noisy total says, beside that forest itself; differences fold by fold. "
            "± is the standard error, corrected for training rows that the folds share."
        ),
    }
    steps: dict[str, Callable[[], list[Line]]] = {
        "Start-up": lambda: start_up.run(given.quick),
        "Noise": sampler_lines,
        "Fit and predict": lambda: fit_predict.run(given.quick),
        "Hedgerow forest": lambda: [*flagship.run(given.quick), *flagship_large.run(given.quick)],
        "Greedy trees": lambda: greedy.run(given.quick),
        "Memory": lambda: memory.run(given.quick),
        "diffprivlib": lambda: compare.run(given.quick, given.diffprivlib_python),
        "Merging: speed": lambda: merging.run(given.quick),
        "Pseudo-data": lambda: pseudo.run(given.quick),
        "Kernels": lambda: kernels.run(given.quick),
        "Streamed tables": lambda: streamed.run(given.quick),
        "CSV files": lambda: csv_files.run(given.quick),
        "Spark": lambda: spark.run(given.quick),
        "Curator": lambda: curator_load.run(given.quick),
        "Exports": lambda: exports.run(given.quick),
        "Advice": lambda: advice.run(given.quick),
    }
    if given.only:
        starts = tuple(name.lower() for name in given.only)
        steps = {name: step for name, step in steps.items() if name.lower().startswith(starts)}
        if not steps:
            parser.error(f"--only: no section begins so; the sections are {', '.join(notes)}")
    sections = {}
    for name, step in steps.items():
        sections[name] = step()
        print(f"\n## {name}\n\n{notes[name]}\n\n{table(sections[name])}", flush=True)
    facts = versions() | {"CPUs": str(cpus()), "date": datetime.now(UTC).date().isoformat()}
    if given.quick or given.only:
        return
    (FOLDER / "RESULTS.md").write_text(report(sections, notes, facts), encoding="utf-8")
    results = {
        "facts": facts,
        "sections": {name: {"note": notes[name], "lines": [asdict(line) for line in lines]} for name, lines in sections.items()},
    }
    (FOLDER / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
