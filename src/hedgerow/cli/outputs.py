"""Checks and locks of output files: refuse one that cannot be written before anything is spent on what it would hold."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
        raise PlanError(f"output {str(path)!r}: the folder {str(folder)!r} cannot be written to ({error.strerror}).") from error


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Lock a file while it is changed: of two updates at once, one batch would be paid for and lost."""
    while True:
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise PlanError(f"{path} is being changed by another command. Wait for it, then try again. Nothing was spent.") from error
            if os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                continue  # another command has replaced the file since it was opened
            yield
            return
