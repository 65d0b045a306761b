"""Models in environments of their own: the table goes to a process there as arrays, the answers come back one by one."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from benchmarks.beside.protocol import Answer, Failure, Job, Table
from benchmarks.peers.make_env import folder_of, python_in

HERE = Path(__file__).resolve().parent


class PeerFailed(Exception):
    """The peer's process ended by itself: its environment is at fault, and nothing about it is stored."""


def missing(peer: str) -> str:
    there = python_in(folder_of(peer)).exists()
    return "" if there else f"its environment is not there; make it with `python benchmarks/peers/make_env.py --peer {peer}`"


def answers(peer: str, variant: str, table: Table, jobs: Sequence[Job], patience: int) -> Iterator[Answer | Failure]:
    """All jobs in one process. If one of them takes longer than `patience`, the process is ended, and with it the rest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(table, jobs, variant, folder)
        command = [str(python_in(folder_of(peer))), str(HERE / f"peer_{peer}.py"), name]
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}  # it has its own packages
        with (folder / "errors").open("w") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=clean)
        try:
            for number, job in enumerate(jobs):
                timer = Timer(patience, process.kill)
                timer.start()
                assert process.stdout is not None
                line = process.stdout.readline()
                in_time = timer.is_alive()
                timer.cancel()
                if not line and in_time:
                    raise PeerFailed((folder / "errors").read_text().strip())
                if not line:
                    yield from (Failure(left, f"not done within {patience} s, or after such a fit") for left in jobs[number:])
                    return
                yield _read(job, json.loads(line), folder / f"{number}.npz")
        finally:
            process.kill()
            process.wait()


def _write(table: Table, jobs: Sequence[Job], variant: str, folder: Path) -> None:
    arrays: dict[str, Any] = {"X": table.X, "y": table.y, "sizes": table.sizes, "bounds": table.bounds}
    for fold, (train, test) in enumerate(table.folds):
        arrays |= {f"train{fold}": train, f"test{fold}": test}
    np.savez(folder / "table.npz", **arrays)
    asked = [{"epsilon": float(job.epsilon or 0), "fold": job.fold} for job in jobs]
    (folder / "jobs.json").write_text(json.dumps({"classes": table.n_classes, "variant": variant, "jobs": asked}))


def _read(job: Job, line: dict[str, object], file: Path) -> Answer | Failure:
    if "error" in line:
        return Failure(job, str(line["error"]))
    with np.load(file) as arrays:
        predicted, p = arrays["predicted"].astype(np.int64), arrays["probabilities"]
    versions = line["versions"]
    assert isinstance(versions, dict)
    return Answer(job, predicted, p, float(str(line["fit"])), float(str(line["predict"])), versions)
