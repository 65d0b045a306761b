"""Model sharing (Sharkey et al. 2008): Figures 5 to 7. Global models from pseudo-data beside those from the pooled tables.

BASIS: learnt from all training rows. PGEN, BASEGEN: from pseudo-data of the owners' unpruned trees. PPGEN: the same from trees that
were pruned to a requirement. LD: from the training rows, generalised to that requirement. Stratified 10 folds; rows dealt to owners
at random.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.measure import Line, not_run, table
from hedgerow.anonymity.requirement import Requirement
from hedgerow.datasets import load
from hedgerow.datasets.dataset import Dataset
from hedgerow.errors import HedgerowError, PlanError
from hedgerow.estimators.local_tree import LocalTreeClassifier
from hedgerow.global_models.models import global_model
from hedgerow.pseudo.tables import pseudo_data
from hedgerow.release import Release
from hedgerow.sharing import generalised_model, publish

FOLDS = 10
OWNERS = (1, 2, 3, 5, 10)
SETS = ("nursery", "car", "cmc", "adult")
MODELS = ("C4.5", "decision tree", "naive bayes")
REQUIREMENTS = [(c, ell) for ell in (2, 3, 4, 5) for c in (20, 15, 10, 5)]  # weaker first, as in Figure 7


def folds(data: Dataset, most: int = FOLDS) -> Iterator[tuple[int, Any, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Nursery has a class of two rows, fewer than the folds
        parts = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(data.X, data.y))
    for fold, (train, test) in enumerate(parts[:most]):
        yield fold, train, test


def learnt(model: str, schema: Any, columns: Any, target: Any) -> Any:
    """C4.5 is the owners' own kind of tree, as the paper's miner learns it; the others are scikit-learn's and ours, by name."""
    if model == "C4.5":
        return LocalTreeClassifier(schema=schema).fit(columns, target)
    return global_model(model, schema, random_state=0).fit(columns, target)


def right(model: Any, data: Dataset, test: Any) -> float:
    rows = {name: values[test] for name, values in data.columns.items()}
    return float(np.mean(np.asarray(model.predict(rows)).astype(str) == data.target[test].astype(str)))


def shared(data: Dataset, train: Any, owners: int, seed: int, requirement: Requirement | None = None, **how: Any) -> list[Release]:
    whose = np.random.default_rng([seed, owners]).permutation(len(train)) % owners
    found = []
    for owner in range(owners):
        mine = train[whose == owner]
        columns = {name: values[mine] for name, values in data.columns.items()}
        release = publish(columns, data.target[mine], data.schema, requirement, **how).shared
        found += [] if release is None else [release]
    return found


def shown(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else f"{values[0]:.3f}"


def generation(name: str, models: tuple[str, ...] = MODELS, owners: tuple[int, ...] = OWNERS, most: int = FOLDS) -> list[Line]:
    """Figures 5 and 6: PGEN and BASEGEN beside BASIS, for 1 to 10 owners."""
    data = load(name)
    found: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for fold, train, test in folds(data, most):
        rows = {column: values[train] for column, values in data.columns.items()}
        for model in models:
            found[model, "basis", 0].append(right(learnt(model, data.schema, rows, data.target[train]), data, test))
        for m in owners:
            trees = shared(data, train, m, fold, confidence=None)  # as in the paper, no pruning in this study
            for method in ("pgen", "basegen"):
                made = pseudo_data(trees, method=method, seed=fold)
                for model in models:
                    found[model, method, m].append(right(learnt(model, data.schema, made.columns, made.target), data, test))
    lines = []
    for model in models:
        basis = found[model, "basis", 0]
        for m in owners:
            pgen, base = found[model, "pgen", m], found[model, "basegen", m]
            gap = f"PGEN against BASIS {np.mean(pgen) - np.mean(basis):+.3f}"
            what = f"{name}, {model}, {m} owner{'s' if m > 1 else ''}: PGEN"
            lines.append(Line(what, shown(pgen), f"BASIS {shown(basis)}; BASEGEN {shown(base)}; {gap}", None, "", None))
    return lines


def generalised(model: str, data: Dataset, train: Any, test: Any, requirement: Requirement) -> float | None:
    rows, there = ({name: values[part] for name, values in data.columns.items()} for part in (train, test))
    predict = generalised_model(partial(learnt, model), rows, data.target[train], data.schema, requirement)
    return None if predict is None else float(np.mean(predict(there).astype(str) == data.target[test].astype(str)))


def pruning(
    name: str, models: tuple[str, ...] = ("C4.5", "naive bayes"), owners: tuple[int, ...] = (1, 5, 10), most: int = FOLDS
) -> list[Line]:
    """Figure 7: PPGEN beside LD over (c, ℓ), by class counts and by hit and miss."""
    data = load(name)
    lines = []
    for c, ell in REQUIREMENTS:
        if ell > len(data.schema.target.classes):
            continue
        requirement = Requirement.of(c=c, l=ell)
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for fold, train, test in folds(data, most):
            for m in owners:
                for counts, hits in (("counts", False), ("hits", True)):
                    trees = shared(data, train, m, fold, requirement, hits_only=hits)
                    for model in models:
                        if trees:
                            made = pseudo_data(trees, method="pgen", seed=fold)
                            fitted = learnt(model, data.schema, made.columns, made.target)
                            found[model, f"{m} by {counts}"].append(right(fitted, data, test))
            for model in models:
                value = generalised(model, data, train, test, requirement)
                if value is not None:
                    found[model, "LD"].append(value)
        for model in models:
            ours = "; ".join(
                f"{m} owners by {counts} {shown(found[model, f'{m} by {counts}']) if found[model, f'{m} by {counts}'] else 'empty'}"
                for m in owners
                for counts in ("counts", "hits")
            )
            peer = f"LD {shown(found[model, 'LD'])}" if found[model, "LD"] else "LD: no table satisfies it"
            lines.append(Line(f"{name}, {model}, ({c}, {ell}): PPGEN", ours, peer, None, "", None))
    return lines


def run(quick: bool = False) -> list[Line]:
    lines: list[Line] = []
    most = 2 if quick else FOLDS
    for name in SETS:
        try:
            lines += generation(name, most=most)
        except (HedgerowError, PlanError) as error:
            lines.append(not_run(name, str(error)))
    try:
        lines += pruning("nursery", most=most)
    except HedgerowError as error:
        lines.append(not_run("nursery, pruning", str(error)))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--pruning", nargs="*", default=[])
    given = parser.parse_args()
    for name in given.sets:
        print(table(generation(name, most=given.folds)), flush=True)
    for name in given.pruning:
        print(table(pruning(name, most=given.folds)), flush=True)


if __name__ == "__main__":
    main()
