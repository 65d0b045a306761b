"""Work on several threads: the compiled loops release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

ROWS_AT_ONCE = 65_536


def in_threads(work: Callable[[Any], Any], items: Iterable[Any], n_jobs: int) -> list[Any]:
    """`work` on every item, on `n_jobs` threads; the results in the order of the items."""
    items = list(items)
    if n_jobs <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(max_workers=min(n_jobs, len(items))) as pool:
        return list(pool.map(work, items))


def row_blocks(rows: int, at_once: int = ROWS_AT_ONCE) -> list[slice]:
    return [slice(start, min(start + at_once, rows)) for start in range(0, rows, at_once)]
