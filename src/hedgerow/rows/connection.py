"""DuckDB in this process, and what is said when it fails: the kind of the failure, never a text that may quote a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from hedgerow.errors import TableError

Result = TypeVar("Result")
KINDS = ("Conversion Error", "Invalid Input Error", "IO Error", "Out of Memory Error", "Invalid Error")


def connect(threads: int, in_order: bool = False, folder: Path | None = None, memory: str | None = None) -> Any:
    """A private database: in memory, or in a folder of its own, where it may spill what does not fit into `memory`."""
    config: dict[str, Any] = {"threads": threads, "preserve_insertion_order": in_order}
    if folder is not None:
        config |= {"temp_directory": str(folder / "spilled")}
    if memory is not None:
        config |= {"memory_limit": memory}
    connection = duckdb.connect(":memory:" if folder is None else str(folder / "rows.duckdb"), config=config)
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false; SET progress_bar_time = 0")
    return connection


def told_by_kind(name: str, read: Callable[[], Result]) -> Result:
    """What `read` gives. A library's own text may quote a row, so only the kind of its error is passed on.

    It is raised outside the `except`, and not by a context manager, so that the new error does not carry the old one.
    """
    import pyarrow

    try:
        return read()
    except duckdb.InterruptException:
        kind = "interrupt"
    except duckdb.Error as error:
        kind = type(error).__name__
    except (pyarrow.ArrowException, OSError) as error:  # what DuckDB says inside an Arrow stream comes as one of these
        kind = "interrupt" if "INTERRUPT" in str(error) else next((each for each in KINDS if each in str(error)), type(error).__name__)
    except RuntimeError as error:
        if "interrupt" not in str(error).lower():
            raise
        kind = "interrupt"  # so DuckDB reports Ctrl-C
    if kind == "interrupt":
        raise KeyboardInterrupt
    raise TableError(
        f"table {name!r} cannot be read as a table ({kind}): it is damaged, it was taken away, or its rows do not have the columns of its "
        "header. Check it with another program."
    )


def changed(name: str) -> TableError:
    return TableError(
        f"table {name!r} changed while it was read: what was counted belongs to no one table, and nothing was released. What the request "
        "has charged stays spent. Read a copy, or a snapshot, that nobody writes to."
    )
