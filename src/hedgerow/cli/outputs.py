"""Refuse an output that could not be written before anything is spent on what it would hold."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hedgerow.errors import PlanError


def check_output(path: Path, inputs: list[Path | None], force: bool = True) -> None:
    """`force=False` keeps an existing file. An input of the same command is never overwritten."""
    if path.is_dir():
        raise PlanError(f"output {str(path)!r} is a folder; expected the name of a file.")
    for given in inputs:
        if given is not None and path.resolve() == given.resolve():
            raise PlanError(f"output {str(path)!r} is also an input of this command; choose another name.")
    if path.exists() and not force:
        raise PlanError(f"output {str(path)!r} exists already. Choose another name, or add --force to replace it.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise PlanError(f"output {str(path)!r}: the folder {str(folder)!r} does not exist. Make it first.")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PlanError(
            f"output {str(path)!r}: the folder {str(folder)!r} cannot be written to ({error.strerror})."
        ) from error
