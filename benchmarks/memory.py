"""The most memory that fit and predict need over the imported packages and the input table.

Each measurement has a process of its own (`python -m benchmarks.memory --measure …`): it makes the table, warms up on a
small one, gives free memory back to the system, resets the kernel's high-water mark of resident memory, runs, and reads
the mark. The difference to the resident memory just before is what the call needed at its worst. Linux only.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.big_table import arrow_table, numpy_table, ours, scikit_learn
from benchmarks.measure import Line, at_most, not_run, table

ROWS = 1_000_000
TARGET = 2
REPOSITORY = Path(__file__).resolve().parent.parent


def resident(field: str) -> int:
    """Bytes from /proc: VmRSS (resident now) or VmHWM (resident at most)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{field} is not reported here")


def extra_memory(job: Callable[[], object]) -> tuple[int, object]:
    """The peak of resident memory during the job over what was resident before it, and the job's result."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # freed memory that is still held would hide what the job needs
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = resident("VmRSS")
    result = job()
    return resident("VmHWM") - before, result


def measure(who: str, source: str, rows: int, threads: int) -> dict[str, int]:
    X, y = numpy_table(rows)
    data: Any = arrow_table(X) if source == "Arrow" else X
    small: Any = data.slice(0, 1_000) if source == "Arrow" else data[:1_000]
    if source == "Arrow":
        del X
    make = ours if who == "ours" else scikit_learn
    make(threads).fit(small, y[:1_000]).predict(small)
    fit_peak, model = extra_memory(lambda: make(threads).fit(data, y))
    predict_peak, _ = extra_memory(lambda: model.predict(data))  # type: ignore[attr-defined]
    result = {"fit": fit_peak, "predict": predict_peak}
    if who == "ours":
        forest = model.release_.forest  # type: ignore[attr-defined]
        model_bytes = sum(tree.attribute.nbytes + tree.branch.nbytes for tree in forest.trees)
        model_bytes += sum(counts.nbytes for counts in forest.counts)
        codebook = forest.codebook
        encoded = codebook.encode(data).nbytes + codebook.encode_classes(y).nbytes
        result |= {"encoded": encoded, "model": model_bytes}
    return result


def in_own_process(who: str, source: str, rows: int, threads: int) -> dict[str, int]:
    command = [sys.executable, "-m", "benchmarks.memory", "--measure", who, "--source", source]
    command += ["--rows", str(rows), "--threads", str(threads)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise OSError(f"it ended with code {done.returncode}")
    answer: dict[str, int] = json.loads(done.stdout)
    return answer


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def run(quick: bool = False) -> list[Line]:
    rows = ROWS // 10 if quick else ROWS
    lines = []
    for source, threads in (("NumPy", 1), ("NumPy", 2), ("Arrow", 1)):
        what = f"peak memory of fit, {rows:,} rows, {source}, {threads} thread{'s' if threads > 1 else ''}"
        try:
            mine = in_own_process("ours", source, rows, threads)
            theirs = in_own_process("scikit-learn", "NumPy", rows, threads)
        except OSError as error:
            lines.append(not_run(what, f"the process that measures failed ({error})", f"≤ {TARGET}"))
            continue
        needed = mine["encoded"] + mine["model"]
        lines.append(
            at_most(
                f"{what}, over encoded table + model ({megabytes(needed)})",
                megabytes(mine["fit"]),
                f"scikit-learn {megabytes(theirs['fit'])}",
                mine["fit"] / needed,
                TARGET,
            )
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--measure", choices=("ours", "scikit-learn"), help="measure in this process, print JSON")
    parser.add_argument("--source", choices=("NumPy", "Arrow"), default="NumPy")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.source, given.rows, given.threads)))
    else:
        print(table(run(given.quick)))


if __name__ == "__main__":
    main()
