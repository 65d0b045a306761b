"""The most memory that a fit needs, over what was resident just before. Imports nothing but Python: it runs in all environments."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

WARM_UP = 200  # rows, about: imports and compiled code are paid for by a small fit before


def few_of(train: Any) -> Any:
    return train[:: max(1, len(train) // WARM_UP)]


def measured(fit: Callable[[], Any], predict: Callable[[Any], Any]) -> dict[str, float]:
    """Megabytes of one fit at its peak, and the seconds of fit and predict."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # freed memory that is still held would hide what the fit needs
    with suppress(OSError):  # not Linux
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
    before = _resident("VmRSS")
    start = time.perf_counter()
    model = fit()
    between = time.perf_counter()
    peak = max(_resident("VmHWM") - before, 0)
    again = time.perf_counter()
    predict(model)
    end = time.perf_counter()
    return {"peak_mb": round(peak / 1e6, 3), "fit_seconds": round(between - start, 6), "predict_seconds": round(end - again, 6)}


def _resident(field: str) -> int:
    """Bytes that are resident now (VmRSS), or were at most (VmHWM)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{field} is not reported here")
