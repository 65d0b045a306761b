"""Results in a file, one JSON object a line, appended as they come: a run that was stopped goes on where it was.

A line has either an accuracy or, as `status`, the reason why there is none. Of several lines about the same fit the first
with an accuracy counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.beside.protocol import Job

RESULTS = Path(__file__).resolve().parent / "results.jsonl"
Row = dict[str, Any]


def job_of(row: Row) -> Job:
    return Job(row["set"], row["model"], row["epsilon"], row["fold"], row["repetition"])


class Store:
    def __init__(self, path: Path = RESULTS) -> None:
        self.path = path

    def _lines(self) -> Iterator[Row]:
        if self.path.exists():
            with self.path.open(encoding="utf-8") as file:
                for line in file:
                    if line.strip():
                        yield json.loads(line)

    def rows(self) -> dict[Job, Row]:
        """One row for each fit."""
        found: dict[Job, Row] = {}
        for row in self._lines():
            job = job_of(row)
            if job not in found or ("accuracy" in row and "accuracy" not in found[job]):
                found[job] = row
        return found

    def append(self, job: Job, fields: Row) -> None:
        line = json.dumps(asdict(job) | fields, ensure_ascii=False) + "\n"
        with self.path.open("a", encoding="utf-8") as file:  # one short write: runs side by side do not mix their lines
            file.write(line)

    def forget(self, models: Iterable[str]) -> int:
        """Take all rows of these models out. No other run should be appending meanwhile."""
        names, rows = set(models), list(self._lines())
        kept = [row for row in rows if row["model"] not in names]
        new = self.path.with_suffix(".new")
        new.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept), encoding="utf-8")
        os.replace(new, self.path)
        return len(rows) - len(kept)
