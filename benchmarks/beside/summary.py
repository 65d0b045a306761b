"""Numbers from stored rows: means over folds, over sets, and who leads where. Nothing here fits anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from benchmarks.beside.protocol import FOLDS
from benchmarks.beside.store import Row

Key = tuple[str, str | None, str]  # set, ε, model


@dataclass(frozen=True)
class Cell:
    """A mean with its standard error; `n` is what it is a mean of: folds, or sets."""

    mean: float
    error: float
    n: int

    def text(self, of: int = FOLDS, what: str = "folds") -> str:
        fewer = "" if self.n == of else f" ({self.n} of {of} {what})"
        return f"{self.mean:.3f} ± {self.error:.3f}{fewer}"


Cells = dict[Key, Cell]


def cells_of(rows: Iterable[Row], field: str = "accuracy") -> Cells:
    """Repetitions are averaged within their fold first: folds differ, repetitions of one fold do so less."""
    values: dict[Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.get(field) is not None:
            values[row["set"], row["epsilon"], row["model"]][row["fold"]].append(row[field])
    found = {}
    for key, by_fold in values.items():
        means = [fmean(sorted(several)) for _, several in sorted(by_fold.items())]
        error = stdev(means) / sqrt(len(means)) if len(means) > 1 else float("nan")
        found[key] = Cell(fmean(means), error, len(means))
    return found


def over_sets(cells: Cells, sets: Sequence[str], epsilon: str | None, model: str) -> Cell | None:
    """The mean over the sets that the model has. The error is that of folds and noise; the sets themselves are fixed."""
    have = [cells[name, epsilon, model] for name in sets if (name, epsilon, model) in cells]
    if not have:
        return None
    return Cell(fmean(cell.mean for cell in have), sqrt(sum(cell.error**2 for cell in have)) / len(have), len(have))


def better_of(cells: Cells, models: Sequence[str]) -> dict[str, float]:
    """The mean of each model over the (set, ε) that all of them have, the best first."""
    places = [{(name, epsilon) for name, epsilon, found in cells if found == model} for model in models]
    shared = sorted(set.intersection(*places), key=str) if places else []
    if not shared:
        return {}
    means = {model: fmean(cells[name, epsilon, model].mean for name, epsilon in shared) for model in models}
    return dict(sorted(means.items(), key=lambda entry: (-entry[1], entry[0])))


@dataclass(frozen=True)
class Gap:
    """How far a model is above the best of its rivals in one cell; below it, if negative."""

    set: str
    epsilon: str
    rival: str
    gap: float
    error: float

    @property
    def won(self) -> bool:
        return self.gap >= 0


def gaps(cells: Cells, model: str, rivals: Sequence[str], sets: Sequence[str], epsilons: Sequence[str]) -> list[Gap]:
    """One for each cell that the model and at least one rival have."""
    found = []
    for name in sets:
        for epsilon in epsilons:
            mine = cells.get((name, epsilon, model))
            theirs = [(cells[name, epsilon, rival], rival) for rival in rivals if (name, epsilon, rival) in cells]
            if mine is None or not theirs:
                continue
            best, rival = max(theirs, key=lambda entry: entry[0].mean)
            found.append(Gap(name, epsilon, rival, mine.mean - best.mean, sqrt(mine.error**2 + best.error**2)))
    return found
