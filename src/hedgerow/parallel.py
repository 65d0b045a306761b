"""Work on several threads: the compiled loops release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import ceil
from numbers import Integral
from pathlib import Path
from typing import Any

ROWS_AT_ONCE = 65_536


def in_threads(work: Callable[[Any], Any], items: Iterable[Any], n_jobs: int) -> list[Any]:
    """`work` on every item, on `n_jobs` threads; the results in the order of the items."""
    items = list(items)
    if n_jobs <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(n_jobs, len(items))) as pool:
        return list(pool.map(work, items))


def row_blocks(rows: int, at_once: int = ROWS_AT_ONCE) -> list[slice]:
    return [slice(start, min(start + at_once, rows)) for start in range(0, rows, at_once)]


def processors() -> int:
    """How many this process may use: those it is bound to, and no more than its container is given time of."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()  # "max 100000" where there is no limit
        bound = min(bound, max(1, ceil(int(quota) / int(period))))
    return bound


def threads_of(n_jobs: int | None) -> int:
    """As scikit-learn counts: None is 1, −1 all processors, −2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs: got {n_jobs!r}; expected a whole number above 0, −1 for all processors, or None for one.")
    n_jobs = int(n_jobs)
    return n_jobs if n_jobs > 0 else max(processors() + 1 + n_jobs, 1)
