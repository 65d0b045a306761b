"""docs/ACCURACY.md from stored rows alone: the same rows give the same text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from benchmarks.beside.models import MODELS
from benchmarks.beside.naive_bayes import CELLS
from benchmarks.beside.protocol import EPSILONS, EXTRA, FOLDS, SETS
from benchmarks.beside.store import Row
from benchmarks.beside.summary import Cells, Gap, better_of, cells_of, gaps, over_sets
from hedgerow.datasets import declared_schema

TWO_CLASSES = tuple(name for name in SETS if len(declared_schema(name).target.classes) == 2)
VARIANTS = ("diffprivlib-ordinal", "diffprivlib-one-hot")
OWN = ("hedgerow", "hedgerow-delta")
ELSEWHERE = ("naive-bayes", "dp-ebm", "dp-ebm-fast", "diffprivlib-ordinal", "diffprivlib-one-hot")

HEAD = f"""# Accuracy side by side

Made by `python -m benchmarks.beside report` from `benchmarks/beside/results.jsonl`; each fit is a line there.

- {FOLDS}-fold stratified cross-validation (`StratifiedKFold({FOLDS}, shuffle=True, random_state=0)`); the same folds, the same ε and the
  same public domains and bounds (the schemas that ship with the package) for all. δ is 0 where none is named.
- Every model has one setting for all sets and ε: its defaults, but for what is said here. DPDF is the proven variant with one tree.
- A repetition has new noise on the same folds. It is averaged within its fold before the standard error is taken over the folds.
- Naive Bayes: {CELLS} equal-width cells for each number, Laplace noise on every table, in floating point: a yardstick, not a release.
- diffprivlib deals its rows to the trees at random (`shuffle=True`), since some of the files are sorted:
  with its default (rows in the order of the file) its mean was lower by 0.03 to 0.05 in one cross-validation.
- DP-EBM is interpret's. It takes two classes only, and reads the number of rows and the categories that occur from the rows. With its
  default learning rate, 0.01, it hardly ever predicts a rare class. So it is shown with 0.2 too: the better of two other values (0.05,
  0.2) tried at ε = 1 on the test folds of adult and bank-marketing. That choice favours DP-EBM on these two.
- Boosting has an L2 penalty of 1 and no early stopping. With its defaults it failed on Nursery; without the penalty it diverged on
  Nursery (0.896) and chess-krk (0.674). Three settings were tried on these two sets, and the best was kept.
- The ten sets are not new to our forests: readings of SNR and DPDF were chosen on nursery, mushroom, votes and car, and Hedgerow's
  constants while looking at all ten, some of them at german-credit too. Then breast-cancer, wine and digits were run for the first time,
  and showed that too few attributes were measured where there are many classes: Hedgerow measures at least C − 1 of them since, and
  numbers in coarser cells where rows are few. iris and patients (synthetic, 10,000 rows) were not looked
  at before all but the scale of probabilities was fixed.
  None of these is in the means."""


@dataclass(frozen=True, eq=False)
class Stored:
    """The rows, and which models are shown."""

    rows: Sequence[Row]

    @cached_property
    def accuracy(self) -> Cells:
        return cells_of(self.rows)

    @cached_property
    def variants(self) -> dict[str, float]:
        return better_of(self.accuracy, [name for name in VARIANTS if any(model == name for _, _, model in self.accuracy)])

    @cached_property
    def models(self) -> list[str]:
        """Those with an accuracy, in the order of the registry; of diffprivlib the better variant."""
        have = {model for _, _, model in self.accuracy} - set(list(self.variants)[1:])
        return [name for name in MODELS if name in have]

    def title(self, model: str) -> str:
        return MODELS[model].title


def report(rows: Iterable[Row]) -> str:
    stored = Stored(sorted(rows, key=lambda row: [str(row[name]) for name in ("set", "model", "epsilon", "repetition", "fold")]))
    parts = [HEAD, *_means(stored), *_lead(stored), *_auc(stored), *_sets(stored), *_times(stored), *_left_out(stored)]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *lines])


def _levels(model: str) -> list[str | None]:
    return list(EPSILONS) if MODELS[model].private else [None] * len(EPSILONS)  # without privacy: the same at every ε


def _by_epsilon(stored: Stored, cells: Cells, sets: Sequence[str], models: Sequence[str]) -> str:
    lines = []
    for model in models:
        found = [over_sets(cells, sets, epsilon, model) for epsilon in _levels(model)]
        if any(found):
            lines.append([stored.title(model), *("" if cell is None else cell.text(len(sets), "sets") for cell in found)])
    return table(["mean accuracy at ε =", *EPSILONS], lines)


def _means(stored: Stored) -> list[str]:
    parts = [f"## Mean over the {len(SETS)} sets", "± one standard error of folds and noise, the sets being fixed."]
    parts.append(_by_epsilon(stored, stored.accuracy, SETS, [model for model in stored.models if not MODELS[model].binary]))
    if len(stored.variants) > 1:
        said = ", ".join(f"{MODELS[name].title} {mean:.3f}" for name, mean in stored.variants.items())
        parts.append(f"Of diffprivlib's two variants the better one on average is shown, here and below ({said}).")
    parts += [f"## Mean over the {len(TWO_CLASSES)} sets with two classes", ", ".join(TWO_CLASSES) + "."]
    return [*parts, _by_epsilon(stored, stored.accuracy, TWO_CLASSES, stored.models)]


def _lead(stored: Stored) -> list[str]:
    parts, present = ["## Where Hedgerow leads and where it loses"], [model for model in OWN if model in stored.models]
    if not present:
        return [*parts, "Hedgerow's own classifier is not in the store yet."]
    rivals = [model for model in stored.models if model not in OWN and MODELS[model].private]
    lines, lost = [], []
    for model in present:
        elsewhere = [name for name in rivals if name in ELSEWHERE]
        held_out = f"all others, {', '.join(EXTRA)} alone"
        for who, several, sets in (("all others", rivals, SETS), ("peers", elsewhere, SETS), (held_out, rivals, EXTRA)):
            found = gaps(stored.accuracy, model, several, sets, EPSILONS)
            lines.append([stored.title(model), who, *_verdict(stored, found)])
            lost += [_loss(stored, model, gap) for gap in found if not gap.won and who == "all others"]
    parts.append("A cell is a set and an ε; it is won where the mean is at least that of the best rival in it.")
    parts.append(table(["", "against", "cells won", "lost by more than 2 standard errors", "mean lead", "worst cell"], lines))
    return [*parts, "Cells lost:", table(["", "set", "ε", "best rival", "gap"], lost)] if lost else [*parts, "No cell is lost."]


def _verdict(stored: Stored, found: Sequence[Gap]) -> list[str]:
    if not found:
        return ["", "", "", ""]
    worst = min(found, key=lambda gap: gap.gap)
    clearly = sum(gap.gap < -2 * gap.error for gap in found)
    mean = sum(gap.gap for gap in found) / len(found)
    where = f"{worst.gap:+.3f}: {worst.set}, ε = {worst.epsilon}, {stored.title(worst.rival)}"
    return [f"{sum(gap.won for gap in found)} of {len(found)}", str(clearly), f"{mean:+.3f}", where]


def _loss(stored: Stored, model: str, gap: Gap) -> list[str]:
    return [stored.title(model), gap.set, gap.epsilon, stored.title(gap.rival), f"{gap.gap:+.3f} ± {gap.error:.3f}"]


def _auc(stored: Stored) -> list[str]:
    cells, parts = cells_of(stored.rows, "auc"), ["## Area under the ROC curve"]
    for name in ("adult", "bank-marketing"):
        parts.append(f"**{name}**\n\n" + _one_set(stored, cells, name, "AUC at ε ="))
    return parts


def _one_set(stored: Stored, cells: Cells, name: str, what: str) -> str:
    lines = []
    for model in stored.models:
        found = [cells.get((name, epsilon, model)) for epsilon in _levels(model)]
        if any(found):
            lines.append([stored.title(model), *("" if cell is None else cell.text() for cell in found)])
    return table([what, *EPSILONS], lines)


def _sets(stored: Stored) -> list[str]:
    parts = ["## Set by set", "± one standard error over the folds."]
    for name in (*SETS, *EXTRA):
        extra = " (beside the ten)" if name in EXTRA else ""
        parts.append(f"### {name}{extra}\n\n" + _one_set(stored, stored.accuracy, name, "accuracy at ε ="))
    return parts


def _times(stored: Stored) -> list[str]:
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in stored.rows:
        if "fit_seconds" in row:
            seconds.setdefault((row["set"], row["model"]), []).append(row["fit_seconds"])
    lines = []
    for name in (*SETS, *EXTRA):
        lines.append([name, *(f"{median(seconds[name, model]):.3g}" if (name, model) in seconds else "" for model in stored.models)])
    said = "Median seconds of one fit, one thread, on a machine that others used too: orders of magnitude, no more."
    return ["## Fit times", said, table(["", *(stored.title(model) for model in stored.models)], lines)]


def _left_out(stored: Stored) -> list[str]:
    have = {model for _, _, model in stored.accuracy}
    lines = [f"- {model.title}: not in the store." for name, model in MODELS.items() if name not in have]
    given_up: dict[tuple[str, str, str], int] = {}
    for row in stored.rows:
        if "accuracy" not in row:
            key = row["model"], row["set"], row["status"]
            given_up[key] = given_up.get(key, 0) + 1
    lines += [f"- {MODELS[model].title}, {name}: {n} fits without a result ({why})." for (model, name, why), n in sorted(given_up.items())]
    versions = sorted({f"{name} {number}" for row in stored.rows for name, number in row.get("versions", {}).items()})
    return ["## Left out", "\n".join(lines) or "Nothing.", f"Versions: {', '.join(versions)}."]
