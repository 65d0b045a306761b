"""Three owners with the same columns: which way gives the best model? Accuracy and AUC of each, for the same rows, ε and test rows.

    python -m benchmarks.owners [--sets adult nursery] [--repetitions 5] [--epsilon 0.5 1] [--owners 3]

Needs the public sets (HEDGEROW_DATA). Rows are divided at random: a fifth to test, the others over the owners. Every owner pays the same
(ε, δ); nobody is in two tables, so that it is also what a person loses. Counted together: `benchmarks.together`, in one process.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import hedgerow
from benchmarks.together import together
from hedgerow.datasets import load_public

DELTA = "1e-6"
Rows = tuple[Any, Any]
Model = Callable[[Any], Any]  # rows to probabilities


def ways(schema: Any, epsilon: str, tables: list[Rows], pooled: Rows, seed: int) -> Iterator[tuple[str, Model]]:
    def fitted(rows: Rows, delta: str | int) -> Any:
        return hedgerow.HedgerowClassifier(schema, epsilon, delta=delta, random_state=seed, n_jobs=1).fit(*rows).release_

    def counted(plan: Any) -> list[Any]:
        return [hedgerow.count(plan, X, y, owner=f"owner {i}", disjoint=True, n_jobs=1) for i, (X, y) in enumerate(tables)]

    n, k = len(pooled[1]), len(tables)
    snr = hedgerow.SNRForestClassifier(schema, epsilon, random_state=seed)
    plain = hedgerow.HedgerowClassifier(schema, epsilon)
    alone = [fitted(rows, DELTA) for rows in tables]
    yield "one owner alone: fit, δ", alone[0].predict_proba
    yield "each owner: fit, δ; the mean of their probabilities", lambda X: np.mean([each.predict_proba(X) for each in alone], axis=0)
    pure = [fitted(rows, 0) for rows in tables]
    yield "one owner alone: fit, pure ε", pure[0].predict_proba
    yield "each owner: fit, pure ε; the mean of their probabilities", lambda X: np.mean([each.predict_proba(X) for each in pure], axis=0)
    yield "count and merge, hedgerow", hedgerow.merge(counted(plain.public_plan(tables=k))).predict_proba
    noisy = hedgerow.HedgerowClassifier(schema, epsilon, delta=DELTA)
    yield "count and merge, hedgerow, δ", hedgerow.merge(counted(noisy.public_plan(tables=k))).predict_proba
    yield "together, hedgerow, δ", together(noisy.public_plan(), tables).predict_proba
    yield "count and merge, snr", hedgerow.merge(counted(snr.public_plan(rows=n, tables=k))).predict_proba
    yield "together, hedgerow", together(plain.public_plan(), tables).predict_proba
    yield "together, snr", together(snr.public_plan(rows=n), tables).predict_proba
    yield "all rows in one place: fit, δ", fitted(pooled, DELTA).predict_proba
    yield "all rows in one place: fit, pure ε", fitted(pooled, 0).predict_proba


def auc_of(probabilities: Any, y: Any, classes: Any) -> float:
    """Of two classes the second; of more the mean of each against the others, weighted by its rows."""
    from sklearn.metrics import roc_auc_score

    shown = [c for c, label in enumerate(classes) if 0 < (y == label).sum() < len(y)]
    shown = [1] if len(classes) == 2 else shown
    each = [roc_auc_score(y == classes[c], probabilities[:, c]) for c in shown]
    return float(np.average(each, weights=[(y == classes[c]).sum() for c in shown]))


def measured(name: str, epsilon: str, owners: int, repetitions: int) -> dict[str, list[tuple[float, float]]]:
    data = load_public(name)
    found: dict[str, list[tuple[float, float]]] = {}
    y, n = np.asarray(data.y), len(data.y)
    for seed in range(repetitions):
        order = np.random.default_rng([seed, owners]).permutation(n)
        test, train = order[: n // 5], order[n // 5 :]
        tables = [(data.X[part], y[part]) for part in np.array_split(train, owners)]
        Xt, yt = data.X[test], y[test]
        for way, model in ways(data.schema, epsilon, tables, (data.X[train], y[train]), seed):
            p, classes = model(Xt), np.asarray(data.schema.target.classes)
            found.setdefault(way, []).append((float((classes[p.argmax(axis=1)] == yt).mean()), auc_of(p, yt, classes)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["adult", "bank-marketing", "nursery", "mushroom"])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--epsilon", nargs="+", default=["0.5"])
    parser.add_argument("--owners", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.sets:
        for epsilon in given.epsilon:
            for way, scores in measured(name, epsilon, given.owners, given.repetitions).items():
                means, errors = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / len(scores) ** 0.5
                shown = " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True))
                print(f"| {name} | {epsilon} | {way} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
