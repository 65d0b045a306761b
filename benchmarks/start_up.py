"""How long a command takes from nothing, beside `import numpy` in a process of its own in the same round."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import Line, at_most
from hedgerow import datasets

ROWS, TO_PREDICT = 5_000, 200
TARGETS = {"--help": 2, "rules": 6, "show": 6, "predict": 9, "fit": 14}  # times numpy's import


def run(quick: bool = False) -> list[Line]:
    """The median of several rounds, each with every command once. Processor time: what others do on the machine hardly changes it."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-start-") as folder:
        jobs = _jobs(Path(folder))
        for words in jobs.values():  # what is compiled is in the cache from here on
            _taken(words)
        rounds = [{name: _taken(words) for name, words in jobs.items()} for _ in range(3 if quick else 11)]
    numpy = _medians([each["import numpy"] for each in rounds])
    lines = []
    for name, most in TARGETS.items():
        ours = _medians([each[name] for each in rounds])
        lines.append(at_most(_words(name), _text(ours), f"import numpy {_text(numpy)}", ours[0] / numpy[0], most))
    return lines


def _jobs(folder: Path) -> dict[str, list[str]]:
    train, rows = datasets.patients(ROWS, seed=1), datasets.patients(TO_PREDICT, seed=2)
    schema, forest = folder / "schema.toml", folder / "forest.json"
    train.schema.save(schema)
    train.to_csv(folder / "train.csv")
    rows.to_csv(folder / "rows.csv")
    hedgerow = [sys.executable, "-m", "hedgerow"]
    fit = [*hedgerow, "fit", str(folder / "train.csv"), "--schema", str(schema), "--epsilon", "1", "-o", str(forest), "--force"]
    return {
        "import numpy": [sys.executable, "-c", "import numpy"],
        "fit": fit,  # first: the others read its forest
        "--help": [*hedgerow, "--help"],
        "rules": [*hedgerow, "rules", str(forest)],
        "show": [*hedgerow, "show", str(forest)],
        "predict": [*hedgerow, "predict", str(forest), str(folder / "rows.csv")],
    }


def _words(name: str) -> str:
    sizes = {"predict": f" of {TO_PREDICT} rows", "fit": f" of {ROWS:,} rows"}
    return f"`hedgerow {name}`{sizes.get(name, '')}"


def _taken(words: list[str]) -> tuple[float, float]:
    """Seconds of processor time, and on the clock."""
    before, start = _processor(), time.perf_counter()
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    clock = time.perf_counter() - start
    return _processor() - before, clock


def _processor() -> float:
    """Seconds that the processes which were started and waited for have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _medians(taken: list[tuple[float, float]]) -> tuple[float, float]:
    processor, clock = zip(*taken, strict=True)
    return median(processor), median(clock)


def _text(taken: tuple[float, float]) -> str:
    return f"{taken[0]:.2f} s ({taken[1]:.2f} s on the clock)"
