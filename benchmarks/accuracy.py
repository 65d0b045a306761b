"""Accuracy by repeated 10-fold stratified cross-validation on public sets, beside the forest without privacy.

The folds and the public tree structures are seeded (the seeds are printed); the noise is secret and cannot be. The
standard error is over all folds of all repeats. Plain random decision trees are the ceiling of Private-RDT: pruned
as in the paper, and unpruned, which is what the private forest tends to as ε grows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.measure import Line, not_run, table
from hedgerow import (
    DiffPID3Classifier,
    DPDFClassifier,
    ID3Classifier,
    PrivateID3Classifier,
    PrivateRDTClassifier,
    RandomDecisionTreesClassifier,
    SNRForestClassifier,
)
from hedgerow.datasets import load
from hedgerow.errors import HedgerowError

FOLDS = 10


@dataclass(frozen=True)
class Case:
    what: str
    data: str
    make: Callable[[Any, int], Any]  # (schema, seed) -> an estimator
    target: float | None = None


def private_rdt(epsilon: str) -> Callable[[Any, int], Any]:
    return lambda schema, seed: PrivateRDTClassifier(schema, epsilon, random_state=seed)


def snr_forest(epsilon: str) -> Callable[[Any, int], Any]:
    return lambda schema, seed: SNRForestClassifier(schema, epsilon, random_state=seed)


def plain_rdt(prune: bool) -> Callable[[Any, int], Any]:
    return lambda schema, seed: RandomDecisionTreesClassifier(prune=prune, schema=schema, random_state=seed)


def dpdf(epsilon: str) -> Callable[[Any, int], Any]:
    return lambda schema, seed: DPDFClassifier(schema, epsilon)


def diffpid3(epsilon: str, criterion: str) -> Callable[[Any, int], Any]:
    return lambda schema, seed: DiffPID3Classifier(schema, epsilon, criterion=criterion)


def private_id3(epsilon: str) -> Callable[[Any, int], Any]:
    return lambda schema, seed: PrivateID3Classifier(schema, epsilon)


def plain_id3(schema: Any, seed: int) -> Any:
    return ID3Classifier(schema=schema)


CASES = (
    Case("Private-RDT, Nursery, ε = 0.5", "nursery", private_rdt("0.5"), 0.85),
    Case("Private-RDT, Mushroom, ε = 0.1", "mushroom", private_rdt("0.1"), 0.90),
    Case("SNR forest, Mushroom, ε = 0.5", "mushroom", snr_forest("0.5"), 0.92),
    Case("SNR forest, Nursery, ε = 0.1", "nursery", snr_forest("0.1"), 0.66),
    Case("DPDF, Nursery, ε = 0.5", "nursery", dpdf("0.5"), 0.86),
    Case("DPDF, Nursery, ε = 0.1", "nursery", dpdf("0.1"), 0.66),
    Case("DPDF, Mushroom, ε = 0.5", "mushroom", dpdf("0.5"), 0.97),
    Case("DPDF, Votes, ε = 1", "votes", dpdf("1"), 0.88),
    *(
        Case(f"DiffPID3, {criterion}, Nursery, ε = 0.5", "nursery", diffpid3("0.5", criterion))
        for criterion in ("gini_half", "gini", "max", "information_gain")
    ),
    *(Case(f"Private ID3, {name.title()}, ε = 0.5", name, private_id3("0.5")) for name in ("nursery", "votes", "mushroom")),
    Case("ID3 without privacy, Nursery", "nursery", plain_id3, 0.97),
    Case("ID3 without privacy, Mushroom", "mushroom", plain_id3, 1.0),
    Case("ID3 without privacy, Votes", "votes", plain_id3, 0.93),
    *(
        Case(f"RDT without privacy, {name.title()}, {'pruned' if prune else 'not pruned'}", name, plain_rdt(prune))
        for name in ("nursery", "mushroom")
        for prune in (True, False)
    ),
)


def fold_accuracies(case: Case, seeds: range) -> list[float]:
    data = load(case.data)
    X, y = data.X, data.y
    found = []
    for seed in seeds:
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Nursery has a class of two rows, fewer than the folds
            parts = list(folds.split(X, y))
        for fold, (train, test) in enumerate(parts):
            model = case.make(data.schema, seed * FOLDS + fold).fit(X[train], y[train])
            found.append(float(np.mean(model.predict(X[test]) == y[test])))
    return found


def line(case: Case, seeds: range) -> Line:
    target = "" if case.target is None else f"≥ {case.target:g}"
    try:
        found = fold_accuracies(case, seeds)
    except HedgerowError as error:
        return not_run(case.what, str(error), target)
    mean, error_of_mean = float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))
    met = None if case.target is None else mean >= case.target
    return Line(case.what, f"{mean:.3f} ± {error_of_mean:.3f}", "", None, target, met)


def run(quick: bool = False, repeats: int = 3) -> list[Line]:
    seeds = range(1 if quick else repeats)
    return [line(case, seeds) for case in CASES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repeat")
    parser.add_argument("--repeats", type=int, default=3, help="cross-validations, with fold seeds 0, 1, …")
    given = parser.parse_args()
    print(f"fold seeds: 0 to {(1 if given.quick else given.repeats) - 1}; {FOLDS} folds each")
    print(table(run(given.quick, given.repeats)))


if __name__ == "__main__":
    main()
