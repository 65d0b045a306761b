"""Our fit beside diffprivlib's random forest: same table, same number and height of trees, same ε, one thread."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.big_table import numpy_table, ours
from benchmarks.fit_predict import QUICK_ROWS, ROWS, warm_up
from benchmarks.measure import Line, at_least, fastest, not_run, seconds, table
from hedgerow_experiments.peers.environments import missing, python_of

TARGET = 20
PATIENCE = 300  # seconds for one fit of the peer; what takes longer is measured on fewer rows, ours too
SCRIPT = Path(__file__).resolve().parent / "diffprivlib_fit.py"


class PeerFailed(Exception):
    """The peer gave no times."""


def peer_times(python: Path, X: Any, y: Any, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "y.npy", y)
        command = [str(python), str(SCRIPT), folder, str(rounds)]
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it has its own packages
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE * (rounds + 1), check=False, env=clean)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerFailed(type(error).__name__) from error
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise PeerFailed(f"its process ended with code {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def rows_within_patience(python: Path, rows: int) -> int:
    """Few enough rows for one fit of the peer in the time we give it; its time grows at least linearly."""
    probe = min(rows, 50_000)
    one = float(min(peer_times(python, *numpy_table(probe), rounds=1)["seconds"]))
    return min(rows, max(probe, int(probe * PATIENCE / one)))


def run(quick: bool = False, python: Path | None = None) -> list[Line]:
    wanted, rounds = (QUICK_ROWS, 2) if quick else (ROWS, 3)
    if python is None and (why := missing("diffprivlib")):
        return [not_run("fit beside diffprivlib", why, f"≥ {TARGET}")]
    python = python or python_of("diffprivlib")
    try:
        rows = rows_within_patience(python, wanted)
        X, y = numpy_table(rows)
        warm_up(1)
        answers: list[dict[str, Any]] = []

        def peer_fit() -> float:
            answers.append(peer_times(python, X, y, rounds=1))
            return float(answers[-1]["seconds"][0])

        taken = fastest({"ours": lambda: ours(1).fit(X, y), "peer": peer_fit}, rounds)
    except PeerFailed as error:
        return [not_run("fit beside diffprivlib", f"diffprivlib failed ({error})", f"≥ {TARGET}")]
    mine, theirs = taken.best["ours"], taken.best["peer"]
    fewer = "" if rows == wanted else f" (fewer than {wanted:,}: a fit of the peer would take over {PATIENCE} s)"
    peer = f"diffprivlib {answers[0]['versions']['diffprivlib']} {seconds(theirs)}"
    what = f"fit, {rows:,} rows{fewer}, NumPy, 1 thread, beside diffprivlib"
    return [at_least(what, seconds(mine), peer, theirs / mine, None if quick else TARGET).timed(taken.others)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows")
    parser.add_argument("--diffprivlib-python", type=Path, help="the Python of an environment that has diffprivlib")
    given = parser.parse_args()
    print(table(run(given.quick, given.diffprivlib_python)))


if __name__ == "__main__":
    main()
