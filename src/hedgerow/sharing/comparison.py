"""What sharing models costs (Sharkey et al. 2008, 4): the global model beside what it stands for, on rows that may be looked at.

basis     the same kind of model, from all owners' rows pooled: what nobody could learn without pooling them
owners    each owner's own tree
LD        the same kind of model, from the pooled rows generalised to the same requirement
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.anonymity.requirement import Requirement
from hedgerow.release.release import Release
from hedgerow.schema.schema import Schema
from hedgerow.sharing.global_model import global_model
from hedgerow.sharing.match import class_match, path_match
from hedgerow.sharing.pipeline import generalised_model
from hedgerow.trees.paths import paths_of

Table = tuple[Any, Any]  # columns and labels


@dataclass(frozen=True)
class Compared:
    """One model on the test rows. The matches are with the basis; None where there is none, such as paths of what is no tree.

    accuracy: None where there is no model
    """

    what: str
    accuracy: float | None
    class_match: float | None = None
    path_match: float | None = None


def compare(
    learnt: Any,
    kind: Any,
    owners: Sequence[tuple[str, Release]],
    tables: Sequence[Table],
    test: Table,
    schema: Schema,
    requirement: Requirement | None,
    *,
    suppression: float = 0.0,
    seed: int = 0,
) -> list[Compared]:
    """`learnt` is a fitted global model of that kind; `owners` are their names and local trees, `tables` their rows."""
    X = {name: np.concatenate([columns[name] for columns, _ in tables]) for name in schema.names}
    y = np.concatenate([labels for _, labels in tables])
    by_rows = replace(schema, person=None, rows_per_person=None)  # what stands beside the shared trees learns from every row
    rows, truth = test[0], np.asarray(test[1]).astype(str)

    def learn(declared: Schema, columns: Any, target: Any) -> Any:
        return global_model(kind, declared, random_state=seed).fit(columns, target)

    basis = learn(by_rows, X, y)
    expected, paths = _predicted(basis, rows), _paths(basis)

    def line(what: str, model: Any) -> Compared:
        predicted, own = _predicted(model, rows), _paths(model)
        match = path_match(own, paths) if own is not None and paths is not None else None
        return Compared(what, float(np.mean(predicted == truth)), class_match(predicted, expected), match)

    found = [line("global model, from pseudo-data", learnt), line("basis: all tables pooled", basis)]
    found += [line(f"{name} alone", local) for name, local in owners]
    if requirement is not None:
        predict = generalised_model(learn, X, y, by_rows, requirement, suppression)
        what = "LD: pooled and generalised" + ("" if schema.person is None else ", each row counted as a person")
        if predict is None:
            found.append(Compared(f"{what}: no table satisfies it", None))
        else:
            predicted = np.asarray(predict(rows)).astype(str)
            found.append(Compared(what, float(np.mean(predicted == truth)), class_match(predicted, expected)))
    return found


def _predicted(model: Any, rows: Any) -> Any:
    return np.asarray(model.predict(rows)).astype(str)


def _paths(model: Any) -> Any:
    """Of one tree; None of any other model."""
    release = model if isinstance(model, Release) else getattr(getattr(model, "named_steps", {}).get("model"), "release_", None)
    if release is None or len(release.forest.trees) != 1:
        return None
    return paths_of(release.forest)
