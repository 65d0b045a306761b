"""How a time is taken, and one line of the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from benchmarks.busy import QUIET, Others


@dataclass(frozen=True)
class Times:
    """The shortest time of each job, in seconds, and the most CPUs that other programs used in a round that counts."""

    best: dict[str, float]
    others: float | None


def fastest(jobs: Mapping[str, Callable[[], object]], rounds: int) -> Times:
    """Time the jobs in `rounds` quiet rounds. A job that returns a float has timed itself.

    Every round runs each job once, so that a slow spell hits them all. A round in which other programs kept the machine
    busy is repeated, up to three times as many rounds in all; if none was quiet, all count and `others` tells.
    """
    seen: list[tuple[float, dict[str, float]]] = []
    known = True
    while len(seen) < 3 * rounds and sum(used <= QUIET for used, _ in seen) < rounds:
        others = Others()
        taken = {name: _seconds_of(job) for name, job in jobs.items()}
        used = others.cpus()
        known = used is not None
        seen.append((used or 0.0, taken))
    counted = [entry for entry in seen if entry[0] <= QUIET] or seen
    best = {name: min(taken[name] for _, taken in counted) for name in jobs}
    return Times(best, max(used for used, _ in counted) if known else None)


def _seconds_of(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = job()
    return result if isinstance(result, float) else time.perf_counter() - start


@dataclass(frozen=True)
class Line:
    """One comparison.

    ratio:  the number that the target is about (its meaning stands in `what` or in the section's note)
    met:    None where there is no target, or nothing was measured, or the machine was too busy to tell
    others: CPUs that other programs used meanwhile, where a time was taken
    """

    what: str
    ours: str
    peer: str
    ratio: float | None
    target: str
    met: bool | None
    others: float | None = None

    def cells(self) -> list[str]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}" if self.ratio < 100 else f"{self.ratio:.0f}"
        met = {None: "", True: "yes", False: "no"}[self.met]
        if self.others is not None and self.others > QUIET:
            met = f"busy machine ({self.others:.1f} CPUs)"
        return [self.what, self.ours, self.peer, ratio, self.target, met]

    def timed(self, others: float | None) -> Line:
        """The line with what other programs used; without a verdict if that was much."""
        return replace(self, others=others, met=self.met if others is None or others <= QUIET else None)


def not_run(what: str, why: str, target: str = "") -> Line:
    return Line(what, f"not run: {why}", "", None, target, None)


def at_least(what: str, ours: str, peer: str, ratio: float, target: float | None) -> Line:
    if target is None:
        return Line(what, ours, peer, ratio, "", None)
    return Line(what, ours, peer, ratio, f"≥ {target:g}", ratio >= target)


def at_most(what: str, ours: str, peer: str, ratio: float, target: float) -> Line:
    return Line(what, ours, peer, ratio, f"≤ {target:g}", ratio <= target)


def seconds(time_taken: float) -> str:
    return f"{time_taken:.3f} s"


def table(lines: list[Line]) -> str:
    """A Markdown table."""
    head = ["what", "ours", "peer", "ratio", "target", "met"]
    rows = [head, ["---"] * len(head), *(line.cells() for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
