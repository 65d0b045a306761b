"""Results in files, one JSON object a line, appended as they come: a run that was stopped goes on where it was.

FOLDER/results/runs.jsonl           one line a run: when, versions, cores, SHA-256 of the data files
FOLDER/results/<experiment>.jsonl   one line a job: the job, what it found, seconds, the name of its run
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hedgerow.errors import ExperimentError
from hedgerow_experiments.experiment import Found, Job, Result


def key_of(job: Job) -> str:
    return json.dumps(job, sort_keys=True, ensure_ascii=False)


class Store:
    """The results of one folder. A result is stored once: of several lines about the same job the first counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "results"

    def results(self, experiment: str) -> list[Result]:
        found: dict[str, Result] = {}
        for line in _lines(self.folder / f"{experiment}.jsonl"):
            result = Result(line["job"], line["found"], line["seconds"], line["run"])
            found.setdefault(key_of(result.job), result)
        return [found[key] for key in sorted(found)]  # as if all had come in one order, however they were run

    def runs(self) -> dict[str, dict[str, Any]]:
        return {line["run"]: line for line in _lines(self.folder / "runs.jsonl")}

    def experiments(self) -> list[str]:
        """The names of those with results."""
        return sorted(path.stem for path in self.folder.glob("*.jsonl") if path.stem != "runs")

    def add_run(self, run: dict[str, Any]) -> None:
        self._append("runs", run)

    def add(self, experiment: str, job: Job, found: Found, seconds: float, run: str) -> None:
        self._append(experiment, {"job": job, "found": found, "seconds": round(seconds, 3), "run": run})

    def _append(self, name: str, line: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.jsonl"
        with path.open("a+b") as file:
            _drop_half_a_line(file)
            file.write(_line(line).encode())  # one short write: runs side by side do not mix their lines


def _drop_half_a_line(file: Any) -> None:
    """A run that was killed while it wrote leaves a line without an end: its job has no result."""
    if not file.tell():
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _line(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            if number == text.count("\n") + 1:
                return  # the last line of a run that was killed while it wrote
            raise ExperimentError(
                f"{str(path)!r}, line {number}: got text that is no JSON object ({error.msg}); expected one result a line. "
                "Delete the line, and run the experiment again: it makes what is missing."
            ) from error
