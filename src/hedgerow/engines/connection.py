"""DuckDB in this process, and what is said when it fails: the kind of the failure, never a text that may quote a row."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from hedgerow.errors import TableError

Result = TypeVar("Result")
INTERRUPTED = "INTERRUPT Error"
KINDS = (INTERRUPTED, "Conversion Error", "Invalid Input Error", "IO Error", "Out of Memory Error", "Invalid Error")
DAMAGED = "it is damaged, it was taken away, or its rows do not have the columns of its header. Check it with another program."


def private_folder() -> tempfile.TemporaryDirectory[str]:
    """For what does not fit into memory: readable by its owner only, and taken away."""
    return tempfile.TemporaryDirectory(prefix="hedgerow-", ignore_cleanup_errors=True)


@contextmanager
def connected(threads: int, in_order: bool = False) -> Iterator[Any]:
    """A private database in memory. What a query must spill goes to a folder of its own."""
    with private_folder() as folder, connect(":memory:", Path(folder), threads, in_order) as connection:
        yield connection


def connect(database: str, folder: Path, threads: int, in_order: bool = False, memory: str | None = None) -> Any:
    """A connection that spills to the folder, and reads nothing but what it is told: no variables of this program, one time zone."""
    config: dict[str, Any] = {
        "threads": threads,
        "preserve_insertion_order": in_order,
        "temp_directory": str(folder / "spilled"),
        "python_enable_replacements": False,
    }
    if memory is not None:
        config |= {"memory_limit": memory}
    connection = duckdb.connect(database, config=config)
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false; SET progress_bar_time = 0")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def told_by_kind(name: str, read: Callable[[], Result], advice: str = DAMAGED) -> Result:
    """What `read` gives. A library's own text may quote a row, so only the kind of its error is passed on.

    It is raised outside the `except`, and not by a context manager, so that the new error does not carry the old one.
    """
    import pyarrow

    try:
        return read()
    except duckdb.InterruptException:
        kind = INTERRUPTED
    except duckdb.Error as error:
        kind = type(error).__name__
    except (pyarrow.ArrowException, OSError) as error:  # what DuckDB says inside an Arrow stream comes as one of these
        said = str(error).lstrip()  # its first words are DuckDB's own; what follows may be a value
        kind = next((each for each in KINDS if said.startswith(each)), type(error).__name__)
    except RuntimeError as error:
        if not str(error).lower().startswith(("interrupt", "query interrupted")):
            raise
        kind = INTERRUPTED  # so DuckDB reports Ctrl-C
    if kind == INTERRUPTED:
        raise KeyboardInterrupt
    raise TableError(f"table {name!r} cannot be read as a table ({kind}): {advice}")


def changed(name: str) -> TableError:
    return TableError(
        f"table {name!r} changed while it was read: what was counted belongs to no one table, and nothing was released. What the request "
        "has charged stays spent. Read a copy, or a snapshot, that nobody writes to."
    )
