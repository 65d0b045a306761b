"""The section of docs/PEERS_AUC.md about what `auc.py` has stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, stdev

from hedgerow_experiments.auc import DELTAS, EPSILONS, SETS
from hedgerow_experiments.document import Block, Table
from hedgerow_experiments.experiment import Result

Areas = Mapping[str, Sequence[float]]  # by ε, one for each fit, in the same order


def blocks(results: Sequence[Result]) -> list[Block]:
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for result in sorted(results, key=lambda each: int(each.job["repetition"])):
        cell = found.setdefault((result.job["set"], result.job["delta"]), {epsilon: [] for epsilon in EPSILONS})
        for epsilon in EPSILONS:
            cell[epsilon] += result.found["auc"][epsilon]
    cells = [(name, delta) for name in SETS for delta in DELTAS if (name, delta) in found]
    rows = [[name, "pure" if delta == "0" else f"δ = {delta}", *_line(found[name, delta])] for name, delta in cells]
    fallen = [(name, delta) for name, delta in cells if falls(found[name, delta])]
    named = ", ".join(f"{name} ({'pure' if delta == '0' else 'δ'})" for name, delta in fallen)
    said = f"It does in {len(fallen)} of {len(cells)} lines: {named}." if fallen else f"It does in none of the {len(cells)} lines."
    return [
        "± one standard error over all fits. The last column is the largest fall from a smaller to a larger ε, as the mean difference on "
        "the same folds with its standard error over the fits; 0 where the AUC never falls.",
        Table(["AUC", "", *(f"ε = {epsilon}" for epsilon in EPSILONS), "largest fall"], rows),
        f"Does the AUC anywhere fall by more than its standard error as ε grows? {said} Of 10 pairs of ε in each line, some may by chance.",
    ]


def _line(areas: Areas) -> list[str]:
    means = [f"{fmean(areas[epsilon]):.3f} ± {_error(areas[epsilon]):.3f}" for epsilon in EPSILONS]
    fall, error = max(_falls(areas))
    return [*means, f"{fall:.3f} ± {error:.3f}" if fall > 0 else "0"]


def falls(areas: Areas) -> bool:
    """Whether the AUC is clearly lower at a larger ε: by more than the standard error of the difference."""
    return any(fall > error for fall, error in _falls(areas))


def _falls(areas: Areas) -> list[tuple[float, float]]:
    """How much lower it is at the larger of two ε, with the standard error."""
    pairs = combinations(EPSILONS, 2)
    differences = [[a - b for a, b in zip(areas[small], areas[large], strict=True)] for small, large in pairs]
    return [(fmean(each), _error(each)) for each in differences]


def _error(values: Sequence[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
