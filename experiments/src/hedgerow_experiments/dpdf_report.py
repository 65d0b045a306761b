"""Table 1 and Figures 2 to 7 of DPDF's paper from stored results, as tables and charts; and the accuracies that claims are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean

from hedgerow_experiments.charts import Lines, Panel, Point, Series
from hedgerow_experiments.document import Block, Figure, Table
from hedgerow_experiments.experiment import Result
from hedgerow_experiments.statistics import CLEAR, Mean, cross_validated_mean, difference

BETAS = ("0.1", "0.25", "0.5", "1", "2")
DELTA = 5
FIGURES = {
    2: ("car", "Car"),
    3: ("chess-krk", "Chess KRK"),
    4: ("connect-4", "Connect-4"),
    5: ("mushroom", "Mushroom"),
    6: ("nursery", "Nursery"),
    7: ("tic-tac-toe", "Tic-Tac-Toe"),
}
PRIVATE = {
    "dpdf-1-local": "DPDF τ = 1, as published",
    "dpdf-4-local": "DPDF τ = 4, as published",
    "dpdf-1": "DPDF τ = 1, proven",
    "dpdf-4": "DPDF τ = 4, proven",
    "diffpid3-half": "DiffPID3, Gini index",
    "diffpid3": "DiffPID3, count-scaled Gini",
}
ONE, FOUR, BASELINE = PUBLISHED = ("dpdf-1-local", "dpdf-4-local", "diffpid3-half")
RANDOM_FOREST = "random-forest"
NAMES = PRIVATE | {RANDOM_FOREST: "random forest, not private"}
FILE_ORDER = "file order"
# Rows of the most common class, and all rows: what guessing it everywhere gets right in stratified folds.
MOST_COMMON = {
    "car": (1210, 1728), "chess-krk": (4553, 28056), "connect-4": (44473, 67557), "mushroom": (4208, 8124), "nursery": (4320, 12960),
    "tic-tac-toe": (626, 958),
}  # fmt: skip
CLASSES = {"car": 4, "chess-krk": 18, "connect-4": 3, "mushroom": 2, "nursery": 5, "tic-tac-toe": 2}
TITLES = dict(FIGURES.values())

# ---------------------------------------------------------------- accuracies, cell by cell

Runs = dict[int, list[float]]  # for each repetition the accuracy in its folds


class Accuracies:
    """Fold accuracies by set, model, β and kind of folds; pairs are compared on the repetitions that both have."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.cells: dict[tuple[str, str, str, str], Runs] = {}
        for result in results:
            job = result.job
            cell = (job["set"], job["model"], job.get("epsilon", ""), job.get("folds", ""))
            self.cells.setdefault(cell, {})[job["repetition"]] = result.found["accuracy"]

    def runs(self, name: str, model: str, beta: str = "", folds: str = "") -> Runs:
        """Folds in file order are the same in every repetition: their accuracies are averaged and count once."""
        found = self.cells.get((name, model, beta, folds), {})
        if folds == FILE_ORDER and found:
            return {0: [fmean(fold) for fold in zip(*(found[each] for each in sorted(found)), strict=True)]}
        return found

    def over_betas(self, name: str, model: str, betas: Sequence[str], folds: str = "") -> Runs:
        """The mean over all β, fold by fold, of the repetitions that have them all."""
        runs = [self.runs(name, model, beta, folds) for beta in betas]
        return {each: [fmean(fold) for fold in zip(*(run[each] for run in runs), strict=True)] for each in common(*runs)}


def common(*runs: Runs) -> list[int]:
    return sorted(set.intersection(*(set(run) for run in runs)))


def mean(runs: Runs) -> Mean:
    return cross_validated_mean([value for each in sorted(runs) for value in runs[each]])


def minus(ours: Runs, theirs: Runs) -> Mean:
    both = common(ours, theirs)
    return difference([value for each in both for value in ours[each]], [value for each in both for value in theirs[each]])


def cell_text(value: Mean) -> str:
    return str(value) if value.n else ""


def better(value: Mean) -> bool:
    return value.clear and value.mean > 0


def worse(value: Mean) -> bool:
    return value.clear and value.mean < 0


def points(value: float) -> str:
    return f"{100 * value:+.1f} points".replace("-", "−")


# ---------------------------------------------------------------- Table 1

PAPER = {  # as printed, rounded to three digits
    "diffpid3": ("0.010", "0.025", "0.050", "0.100", "0.200"),
    "dpdf-1": ("0.011", "0.028", "0.056", "0.111", "0.222"),
    "dpdf-4": ("0.003", "0.007", "0.014", "0.028", "0.056"),
}


def charged_by(results: Sequence[Result], model: str, beta: str) -> list[Fraction]:
    """The different ε of single queries that certificates of this model hold; one, if all is well."""
    found = [result.found["queries"] for result in results if (result.job["model"], result.job["epsilon"]) == (model, beta)]
    return sorted({Fraction(epsilon) for queries in found for epsilon in queries})


def table_blocks(results: Sequence[Result]) -> list[Block]:
    rows = []
    for kind, printed in PAPER.items():
        for model in PRIVATE:
            if model.startswith(kind):
                charged = [charged_by(results, model, beta) for beta in BETAS]
                rows.append([PRIVATE[model], *(", ".join(f"{each} = {float(each):.4f}" for each in cell) for cell in charged)])
        rows.append([f"the paper, {'DiffPID3' if kind == 'diffpid3' else f'DPDF τ = {kind[-1]}'}", *printed])
    return [Table(["ε of one query", *(f"β = {beta}" for beta in BETAS)], rows)] if results else []


# ---------------------------------------------------------------- Figures 2 to 7


def figure_blocks(name: str, results: Sequence[Result]) -> list[Block]:
    if not results:
        return []
    found, title = Accuracies(results), TITLES[name]
    number = next(number for number, each in FIGURES.items() if each[0] == name)
    series = []
    for model in NAMES:
        marks = [(beta, value) for beta in BETAS if (value := _at(found, name, model, beta)).n]
        series.append(
            Series(NAMES[model], [Point(float(beta), each.mean, CLEAR * each.error) for beta, each in marks], model == RANDOM_FOREST)
        )
    ticks = [(float(beta), beta) for beta in BETAS]
    shown = [each for each in series if each.points]
    chart = Lines(f"DPDF and DiffPID3 on {title}", [Panel("", shown)], "privacy budget β", "accuracy", ticks, log_x=True)
    caption = (
        f"Accuracy on {title} against the privacy budget β (logarithmic). Whiskers: two standard errors. The random forest "
        "(dashed) has no privacy and no β. The versions as published have no proven ε."
    )
    share = MOST_COMMON[name][0] / MOST_COMMON[name][1]
    return [
        Figure(f"dpdf-figure-{number}", chart, caption),
        _table(found, name, tuple(NAMES), ""),
        f"Always guessing the most common class gets {share:.3f}. Next: the same models on folds of neighbouring rows.",
        _table(found, name, (*PUBLISHED, RANDOM_FOREST), FILE_ORDER),
    ]


def _at(found: Accuracies, name: str, model: str, beta: str, folds: str = "") -> Mean:
    return mean(found.runs(name, model, "" if model == RANDOM_FOREST else beta, folds))


def _table(found: Accuracies, name: str, models: Sequence[str], folds: str) -> Table:
    rows = [[NAMES[model], *(cell_text(_at(found, name, model, beta, folds)) for beta in BETAS)] for model in models]
    return Table([f"accuracy{', folds in file order' if folds else ''}", *(f"β = {beta}" for beta in BETAS)], rows)
