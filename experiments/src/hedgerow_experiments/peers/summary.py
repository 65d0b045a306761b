"""Numbers from stored results: means over folds, over sets, and who leads where. Nothing here fits anything."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import fmean, median

from hedgerow_experiments.experiment import Result
from hedgerow_experiments.peers.models import MODELS
from hedgerow_experiments.peers.tables import EPSILONS, EXTRA, FOLDS, SETS
from hedgerow_experiments.statistics import Mean, cross_validated_mean, difference

VARIANTS = ("diffprivlib-ordinal", "diffprivlib-one-hot")
Key = tuple[str, str, str]  # set, ε, model
Folds = dict[int, float]  # the mean of the repetitions in each fold


@dataclass(frozen=True)
class Gap:
    """How far a model is above the best of its rivals in one cell, on the folds that both have; below it, if negative."""

    set: str
    epsilon: str
    rival: str
    lead: Mean

    @property
    def won(self) -> bool:
        return self.lead.clear and self.lead.mean > 0

    @property
    def lost(self) -> bool:
        return self.lead.clear and self.lead.mean < 0


class Summary:
    """The stored results, and which models are shown."""

    def __init__(self, results: Iterable[Result]) -> None:
        stored = [result for result in results if result.job["model"] in MODELS]
        self.fits = [result for result in stored if "repetition" in result.job]
        self.memory = {(result.job["set"], result.job["model"]): result.found for result in stored if result.job.get("measure") == "memory"}

    def folds(self, field: str) -> dict[Key, Folds]:
        """Repetitions are averaged within their fold: they share its rows, and differ by their noise alone."""
        values: dict[Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for result in self.fits:
            name, model = result.job["set"], result.job["model"]
            for epsilon in MODELS[model].levels:
                for fold, value in enumerate(result.found.get(epsilon, {}).get(field, ())):
                    if value is not None:
                        values[name, epsilon, model][fold].append(value)
        return {key: {fold: fmean(several) for fold, several in sorted(by_fold.items())} for key, by_fold in values.items()}

    @cached_property
    def accuracy(self) -> dict[Key, Folds]:
        return self.folds("accuracy")

    @cached_property
    def auc(self) -> dict[Key, Folds]:
        return self.folds("auc")

    @cached_property
    def variants(self) -> dict[str, float]:
        """The mean accuracy of each of diffprivlib's variants over the cells of the ten sets that both have, the better first."""
        places = [{(name, epsilon) for name, epsilon, model in self.accuracy if model == variant and name in SETS} for variant in VARIANTS]
        shared = sorted(set.intersection(*places))
        means = {v: fmean(cell(self.accuracy, name, epsilon, v).mean for name, epsilon in shared) for v in VARIANTS if shared}
        return dict(sorted(means.items(), key=lambda entry: (-entry[1], entry[0])))

    @cached_property
    def models(self) -> list[str]:
        """Those with an accuracy, in the order of the tables; of diffprivlib the better variant."""
        have = {model for _, _, model in self.accuracy} - set(list(self.variants)[1:])
        return [name for name in MODELS if name in have]

    @cached_property
    def best_paper(self) -> str:
        """The papers' forest with the best mean over sets and ε, of those that have as many cells as any; "" if there is none."""
        scores = {}
        for model in (name for name in self.models if MODELS[name].kind == "paper"):
            have = [(name, epsilon) for name in SETS for epsilon in EPSILONS if (name, epsilon, model) in self.accuracy]
            if have:
                scores[model] = (len(have), fmean(cell(self.accuracy, name, epsilon, model).mean for name, epsilon in have))
        return max(scores, key=lambda model: scores[model], default="")

    def failures(self) -> dict[tuple[str, str, str], int]:
        """(model, set, why the first of them failed) -> how many fits have no result."""
        found: Counter[tuple[str, str, str]] = Counter()
        for result in self.fits:
            name, model = result.job["set"], result.job["model"]
            for epsilon in MODELS[model].levels:
                level = result.found.get(epsilon, {})
                done = sum(value is not None for value in level.get("accuracy", ()))
                if "failed" in level:
                    found[model, name, level["failed"]] += MODELS[model].folds - done
        return dict(sorted(found.items()))

    def repetitions(self, model: str, name: str) -> int:
        return sum(result.job["model"] == model and result.job["set"] == name for result in self.fits)

    def median_seconds(self, field: str) -> dict[tuple[str, str], float]:
        """Of all fits of a model on a set."""
        seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for result in self.fits:
            for epsilon in MODELS[result.job["model"]].levels:
                taken = result.found.get(epsilon, {}).get(field, ())
                seconds[result.job["set"], result.job["model"]] += [value for value in taken if value is not None]
        return {key: median(values) for key, values in seconds.items() if values}

    def versions(self) -> list[str]:
        return sorted({f"{name} {number}" for result in self.fits for name, number in result.found.get("versions", {}).items()})


def cell(folds: dict[Key, Folds], name: str, epsilon: str, model: str) -> Mean:
    return cross_validated_mean(list(folds.get((name, epsilon, model), {}).values()), FOLDS)


def over_sets(folds: dict[Key, Folds], sets: Sequence[str], epsilon: str, model: str) -> Mean | None:
    """The mean over the sets that the model has. The error is that of folds and noise; the sets themselves are fixed."""
    have = [cell(folds, name, epsilon, model) for name in sets if (name, epsilon, model) in folds]
    return Mean(fmean(each.mean for each in have), sqrt(sum(each.error**2 for each in have)) / len(have), len(have)) if have else None


def gaps(folds: dict[Key, Folds], model: str, rivals: Sequence[str], sets: Sequence[str], epsilons: Sequence[str] = EPSILONS) -> list[Gap]:
    """One for each cell that the model and at least one rival have on the same folds."""
    found = []
    for name in sets:
        for epsilon in epsilons:
            mine = folds.get((name, epsilon, model), {})
            theirs = {rival: folds[name, epsilon, rival] for rival in rivals if mine.keys() & folds.get((name, epsilon, rival), {}).keys()}
            if not theirs:
                continue
            best = max(theirs, key=lambda rival: fmean(theirs[rival].values()))
            shared = sorted(mine.keys() & theirs[best].keys())
            found.append(Gap(name, epsilon, best, difference([mine[f] for f in shared], [theirs[best][f] for f in shared], FOLDS)))
    return found


EVERY_SET = (*SETS, *EXTRA)
