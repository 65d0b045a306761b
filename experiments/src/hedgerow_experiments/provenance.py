"""With what a run was made: versions, cores, and the data files by their SHA-256."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from hedgerow import __version__
from hedgerow.errors import ExperimentError

PACKAGES = ("numpy", "numba", "scikit-learn", "pyarrow")


def run_of(sets: Iterable[str]) -> dict[str, Any]:
    """The line about a run that begins now."""
    now = datetime.now(UTC).replace(microsecond=0)
    return {
        "run": f"{now:%Y%m%dT%H%M%SZ}-{uuid4().hex[:6]}",
        "started": now.isoformat().replace("+00:00", "Z"),
        "versions": {"python": platform.python_version(), "hedgerow": __version__} | {name: version(name) for name in PACKAGES},
        "cores": os.cpu_count() or 1,
        "data": {name: digest for name in sorted(set(sets)) if (digest := file_hash(name)) is not None},
    }


def file_hash(name: str) -> str | None:
    """SHA-256 of the file of a public set; None for a set that is not read from HEDGEROW_DATA."""
    folder = os.environ.get("HEDGEROW_DATA")
    path = Path(folder or ".") / f"{name}.csv.gz"
    if not folder or not path.exists():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_same_data(run: Mapping[str, Any], runs: Iterable[Mapping[str, Any]]) -> None:
    """Results from two versions of a file cannot be averaged."""
    for other in runs:
        for name, digest in other["data"].items():
            if run["data"].get(name, digest) != digest:
                raise ExperimentError(
                    f"data set {name!r}: got a file with SHA-256 {run['data'][name][:12]}…; the stored results of {other['started']} were "
                    f"made from {digest[:12]}…. Use another --folder for results from this file."
                )
