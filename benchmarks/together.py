"""Owners who count together: accuracy for k owners beside today's counts that are merged, and time and bytes of the secure sum.

    python -m benchmarks.together accuracy [--repetitions 3]     Private-RDT at ε = 0.5 (needs the public sets); into together.json
    python -m benchmarks.together figure                         together.json as a table, and as docs/together.svg
    python -m benchmarks.together time [--owners 3 5 10]         k processes on one machine, 10 trees × 10,000 leaves × 2 classes

The accuracy needs no network: a secure sum gives the sum, so that the vectors of all owners are added up in this process. That is also
how two owners are measured, which a run refuses. With t = 0 the ε is that against whoever knows no owner's share (docs/TOGETHER.md).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow
from hedgerow.engines.memory import MemoryRows
from hedgerow.multiparty.certificates import make_certificate
from hedgerow.multiparty.meeting import Meeting
from hedgerow.multiparty.parties import Parties, Party, add_party
from hedgerow.multiparty.secure_sum import ShamirSum
from hedgerow.release.parts import TableName, Together
from hedgerow.training.counting import Agreement, count_rows

OWNERS = (1, 2, 3, 4, 6, 8, 10)
EPSILON = "0.5"
STORED, FIGURE = Path(__file__).with_name("together.json"), Path(__file__).resolve().parents[1] / "docs" / "together.svg"
NAMES = {"t = 0": "together, t = 0", "t = 1": "together, t = 1", "merged": "count and merge"}


# ---------------------------------------------------------------- accuracy


class InOneProcess:
    """Adds up the vectors of owners that come one after the other: the last gets the sum."""

    name = "noise in shares, added up in one process: a measurement"

    def __init__(self, owners: int, tolerated: int) -> None:
        self.shares, self._left, self._total = owners - tolerated, owners, 0

    def sum(self, numbers: Any) -> Any:
        self._total = self._total + numbers
        self._left -= 1
        return np.array(self._total if not self._left else numbers * 0, dtype=np.int64)


def together(plan: Any, tables: list[tuple[Any, Any]], tolerated: int = 1) -> Any:
    """The release of all tables."""
    adding = InOneProcess(len(tables), tolerated)
    agreed = Agreement("0" * 32, Together([f"owner {i}" for i in range(len(tables))], tolerated), "", adding)
    releases = [count_rows(MemoryRows(X, y, plan.codebook), plan, TableName(disjoint=True), agree=lambda: agreed) for X, y in tables]
    return releases[-1]


def accuracies(name: str, owners: int, repetitions: int) -> dict[str, list[float]]:
    """Of each repetition and fold: counted together for t = 0 and t = 1, and counted by each and merged."""
    from hedgerow_experiments.folds import accuracy, folds_of, rows_of
    from hedgerow_experiments.jagannathan_data import paper_data

    data, found = paper_data(name), {way: list[float]() for way in NAMES}
    for seed in range(repetitions):
        for fold, (train, test) in enumerate(folds_of(data, seed)):
            plan = hedgerow.PrivateRDTClassifier(data.schema, EPSILON, random_state=seed).public_plan(rows=len(train))
            part = np.random.default_rng([seed, fold, owners]).integers(owners, size=len(train))
            tables = [(rows_of(data, train[part == i]), data.y[train[part == i]]) for i in range(owners)]
            each = [hedgerow.count(plan, X, y, owner=f"owner {i}", disjoint=True, n_jobs=1) for i, (X, y) in enumerate(tables)]
            found["merged"].append(accuracy(hedgerow.merge(each), data, test))
            for tolerated in (0, 1):
                if owners > 2 * tolerated:
                    found[f"t = {tolerated}"].append(accuracy(together(plan, tables, tolerated), data, test))
    return found


def accuracy_lines(repetitions: int) -> Iterator[str]:
    stored: dict[str, dict[str, dict[str, list[float]]]] = {}
    for name in ("nursery", "mushroom"):
        for owners in OWNERS:
            found = accuracies(name, owners, repetitions)
            stored.setdefault(name, {})[str(owners)] = {way: [round(each, 5) for each in values] for way, values in found.items()}
            STORED.write_text(json.dumps(stored, indent=0) + "\n", encoding="utf-8")
            yield f"{name}, {owners}: " + ", ".join(f"{way} {mean_of(values)}" for way, values in found.items())


def mean_of(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {error_of(values):.3f}" if values else "–"


def error_of(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) / len(values) ** 0.5


def figure_lines(figure: Path = FIGURE) -> Iterator[str]:
    """The table; the figure is drawn beside it."""
    from hedgerow_experiments.charts import Lines, Panel, Point, Series
    from hedgerow_experiments.drawing import draw

    stored: dict[str, dict[str, dict[str, list[float]]]] = json.loads(STORED.read_text(encoding="utf-8"))
    yield "| | " + " | ".join(f"k = {owners}" for owners in OWNERS) + " |"
    yield "| --- " * (len(OWNERS) + 1) + "|"
    panels = []
    for name, by_owners in stored.items():
        series = []
        for way, words in NAMES.items():
            found = {int(owners): values[way] for owners, values in by_owners.items() if values[way]}
            yield f"| {name.title()}, {words} | " + " | ".join(mean_of(found.get(owners, [])) for owners in OWNERS) + " |"
            points = [Point(owners, float(np.mean(values)), error_of(values)) for owners, values in found.items()]
            series.append(Series(words, points))
        panels.append(Panel(name.title(), series))
    ticks = [(owners, str(owners)) for owners in OWNERS]
    title = "Private-RDT at ε = 0.5, rows spread over k owners: mean accuracy, whiskers of one standard error"
    figure.write_text(draw(Lines(title, panels, "owners k", "accuracy", ticks, columns=2)) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- time and bytes


def one_party(folder: str, number: int, counts: int) -> None:
    """One process: a vector of so many counts in a secure sum; prints seconds and bytes."""
    sent = 0
    exchange = Meeting.exchange

    def counted(meeting: Meeting, messages: Any, most: int, doing: str) -> Any:
        nonlocal sent
        own = (
            [messages] * (len(meeting.present) - 1)
            if isinstance(messages, bytes)
            else [m for p, m in messages.items() if p != meeting.number]
        )
        sent += sum(map(len, own))
        return exchange(meeting, messages, most, doing)

    Meeting.exchange = counted  # type: ignore[method-assign]
    parties = Parties.load(Path(folder) / "parties.toml")
    numbers = np.random.default_rng(number).integers(-1000, 1000, counts).astype(object)
    with Meeting(parties, number, Path(folder) / f"owner-{number}.key") as meeting:
        meeting.exchange(b"", 0, "beginning")
        start, used = time.perf_counter(), time.process_time()
        ShamirSum(meeting, parties.shares).sum(numbers)
        print(json.dumps({"seconds": time.perf_counter() - start, "cpu": time.process_time() - used, "bytes": sent}))


def time_lines(owners: list[int], counts: int) -> Iterator[str]:
    for k in owners:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(1, k + 1):
                certificate = make_certificate(Path(folder) / f"owner-{number}.key", f"owner-{number}")
                add_party(Path(folder) / "parties.toml", Party(f"owner-{number}", f"localhost:{27700 + number}", certificate))
            command = [sys.executable, "-m", "benchmarks.together", "party", folder]
            processes = [
                subprocess.Popen([*command, str(number), "--counts", str(counts)], stdout=subprocess.PIPE, text=True)
                for number in range(1, k + 1)
            ]
            found = [json.loads(process.communicate()[0]) for process in processes]
        seconds, cpu, sent = (max(each[what] for each in found) for what in ("seconds", "cpu", "bytes"))
        yield f"| {k} | {counts:,} | {seconds:.1f} s | {cpu:.1f} s | {sent / 1e6:.1f} MB |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "figure", "time", "party"])
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--owners", type=int, nargs="+", default=[3, 5, 10])
    parser.add_argument("--counts", type=int, default=200_000)
    given = parser.parse_args()
    if given.what == "party":
        one_party(given.rest[0], int(given.rest[1]), given.counts)
        return
    lines = {
        "accuracy": lambda: accuracy_lines(given.repetitions), "figure": figure_lines,
        "time": lambda: time_lines(given.owners, given.counts),
    }  # fmt: skip
    for line in lines[given.what]():
        print(line, flush=True)


if __name__ == "__main__":
    main()
