"""Models in environments of their own: the table goes to a process there as arrays, the answers come back one by one."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from hedgerow.errors import ExperimentError
from hedgerow_experiments.peers.environments import clean_environment, python_of
from hedgerow_experiments.peers.fits import Answer, Failure, Fit
from hedgerow_experiments.peers.tables import Table

SCRIPTS = Path(__file__).resolve().parent / "inside"
STARTING = 300  # seconds for its imports and its copy of the table


def answers(peer: str, variant: str, table: Table, fits: Sequence[Fit], patience: int) -> Iterator[Answer | Failure]:
    """All fits in one process. If one of them takes longer than `patience` seconds, the process is ended, and with it the rest."""
    with _started(peer, variant, table, fits) as process:
        for number in range(len(fits)):
            line = process.line(patience)
            if isinstance(line, str):
                yield from (Failure(f"{line}, or after such a fit") for _ in fits[number:])
                return
            yield Failure(line["failed"]) if "failed" in line else _read(line, process.folder / f"{number}.npz")


def versions(peer: str) -> dict[str, str]:
    """Of the peer and of what it stands on."""
    question = f"import json; from importlib.metadata import version; print(json.dumps({{n: version(n) for n in {PACKAGES[peer]!r}}}))"
    done = subprocess.run([str(python_of(peer)), "-c", question], capture_output=True, text=True, check=False, env=clean_environment())
    if done.returncode:
        raise ExperimentError(f"{peer}: its Python ended with code {done.returncode}. It said: {done.stderr.strip()[-500:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return found


PACKAGES = {
    "diffprivlib": ("diffprivlib", "scikit-learn", "numpy"),
    "interpret": ("interpret-core", "scikit-learn", "numpy"),
    "dpmm": ("dpmm", "scikit-learn", "numpy"),
}


def memory(peer: str, variant: str, table: Table, fit: Fit, patience: int) -> dict[str, Any]:
    """What `inside/peer_memory.py` measures, of one fit in a process that makes no other."""
    with _started(peer, variant, table, [fit], measure="memory") as process:
        line = process.line(patience)
        return {"failed": line} if isinstance(line, str) else line


class _Process:
    """A peer's process, and the folder through which we talk."""

    def __init__(self, peer: str, process: subprocess.Popen[str], folder: Path) -> None:
        self.peer, self.process, self.folder = peer, process, folder

    def line(self, patience: int) -> dict[str, Any] | str:
        """The next line; why there is none if it did not come in time, or if the process ended."""
        assert self.process.stdout is not None
        timer = Timer(patience, self.process.kill)
        timer.start()
        text = self.process.stdout.readline()
        in_time = timer.is_alive()
        timer.cancel()
        if text:
            found: dict[str, Any] = json.loads(text)
            return found
        return f"its process ended with code {self.process.wait()}" if in_time else f"not done within {patience} s"


@contextmanager
def _started(peer: str, variant: str, table: Table, fits: Sequence[Fit], measure: str = "") -> Iterator[_Process]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(table, fits, variant, measure, folder)
        command = [str(python_of(peer)), str(SCRIPTS / f"peer_{peer}.py"), name]
        with (folder / "errors").open("w") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=clean_environment())
        try:
            started = _Process(peer, process, folder)
            if isinstance(why := started.line(STARTING), str):  # the environment is at fault: nothing about the peer is stored
                said = " ".join((folder / "errors").read_text().split())[-500:]
                raise ExperimentError(f"{peer}: {why} before its first fit. Build its environment again. It said: {said}")
            yield started
        finally:
            process.kill()
            process.communicate()


def _write(table: Table, fits: Sequence[Fit], variant: str, measure: str, folder: Path) -> None:
    arrays: dict[str, Any] = {"X": table.X, "y": table.y, "sizes": table.sizes, "bounds": table.bounds}
    for fold, (train, test) in enumerate(table.folds):
        arrays |= {f"train{fold}": train, f"test{fold}": test}
    np.savez(folder / "table.npz", **arrays)
    asked = [{"epsilon": float(fit.epsilon), "fold": fit.fold} for fit in fits]
    job = {"classes": table.n_classes, "variant": variant, "measure": measure, "fits": asked}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def _read(line: dict[str, Any], file: Path) -> Answer:
    with np.load(file) as arrays:
        return Answer(arrays["predicted"].astype(np.int64), arrays["probabilities"], line["fit"], line["predict"])
