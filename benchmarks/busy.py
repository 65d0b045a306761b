"""How much of the machine other programs took meanwhile: on a busy machine a ratio of times says little.

Two threads that share one free core look like one, and a peer that uses both suffers more than we do, or less. So the
results give no verdict on times where others used much.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

QUIET = 0.25  # CPUs that others may use on average before a verdict is withheld


class Others:
    """The average number of CPUs that other programs used since this was made; None where the system does not tell."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._machine, self._own = _machine_seconds(), _own_seconds()

    def cpus(self) -> float | None:
        machine = _machine_seconds()
        if machine is None or self._machine is None:
            return None
        used = machine - self._machine - (_own_seconds() - self._own)
        return max(0.0, used / (time.perf_counter() - self._start))


def _machine_seconds() -> float | None:
    """CPU time that all programs have used since the start of the system (Linux)."""
    try:
        numbers = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = numbers
    return float(user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """CPU time of this process and of those that it started and has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
