"""Whether a model is scored on the very table that it was fitted on in this process: the same object, or the same path. Nothing is read."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from hedgerow.errors import PlanError, SeenRowsWarning

Seen = Callable[[], Any]
_fitted: weakref.WeakKeyDictionary[Any, list[Seen]] = weakref.WeakKeyDictionary()  # not in the model, which may be pickled


def note_rows(model: Any, X: Any, more: bool = False) -> None:
    """A table that a model is fitted on, more: beside others; what cannot be remembered without being kept alive is not."""
    before = _fitted.get(model, []) if more else []
    if isinstance(X, (str, os.PathLike)):
        path = os.path.realpath(X)
        _fitted[model] = [*before, lambda: path]
        return
    try:
        _fitted[model] = [*before, weakref.ref(X)]
    except TypeError:  # a list, a dict
        _fitted[model] = before


def is_seen(model: Any, X: Any) -> bool:
    try:
        seen = [found for each in _fitted.get(model, []) if (found := each()) is not None]
    except TypeError:  # no key of a dictionary
        return False
    path = os.path.realpath(X) if isinstance(X, (str, os.PathLike)) else None
    return any(each is X or (path is not None and isinstance(each, str) and each == path) for each in seen)


def check_unseen(model: Any, X: Any, disjoint: bool) -> None:
    """Before more rows are charged that are counted in the same trees. disjoint: it is stated that nobody in them was counted before"""
    if not is_seen(model, X):
        return
    where = "its file" if isinstance(X, (str, os.PathLike)) else "its table in memory"
    if disjoint:
        raise PlanError(
            f"partial_fit: X is a table that this model has counted already ({where}), so that disjoint=True is not so: these people would "
            "lose more than the ε that is certified. Nothing was spent. A model takes each row once. If other rows are in it by now, and "
            "only those, state it: other_rows=True."
        )
    warnings.warn(
        f"partial_fit: X is a table that this model has counted already ({where}). Its rows are paid for and counted once more: a larger "
        "epsilon in one fit tells more for the same total.",
        SeenRowsWarning,
        stacklevel=3,
    )


def say_seen(model: Any, X: Any) -> None:
    """Before a score is charged. model: an estimator, a search or a Pipeline by scikit-learn, or a release, of which nothing is known"""
    model = getattr(model, "best_estimator_", model)
    while hasattr(model, "steps") and hasattr(model, "named_steps"):
        model = model.steps[-1][1]
    if is_seen(model, X) and not _on_purpose():
        warnings.warn(
            "these are the rows that the model was fitted on, which flatter it, and the score costs its ε all the same. For a "
            "fair one keep rows apart: train_test_split before the fit.",
            SeenRowsWarning,
            stacklevel=3,
        )


def _on_purpose() -> bool:
    """Whether scikit-learn's curves and searches ask for it, as with return_train_score=True."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "sklearn.model_selection._validation":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None
