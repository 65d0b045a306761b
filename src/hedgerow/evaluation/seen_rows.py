"""Whether a model is scored on the very table that it was fitted on in this process: the same object, or the same path. Nothing is read."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from hedgerow.errors import SeenRowsWarning

_fitted: weakref.WeakKeyDictionary[Any, Callable[[], Any]] = weakref.WeakKeyDictionary()  # not in the model, which may be pickled


def note_rows(model: Any, X: Any) -> None:
    """The table that a model is fitted on; what cannot be remembered without being kept alive is not."""
    if isinstance(X, (str, os.PathLike)):
        path = os.path.realpath(X)
        _fitted[model] = lambda: path
        return
    try:
        _fitted[model] = weakref.ref(X)
    except TypeError:  # a list, a dict
        _fitted.pop(model, None)


def say_seen(model: Any, X: Any) -> None:
    """Before a score is charged. model: an estimator, a search by scikit-learn, or a release, of which nothing is known"""
    model = getattr(model, "best_estimator_", model)
    try:
        before = _fitted.get(model, lambda: None)()
    except TypeError:  # no key of a dictionary
        return
    path = os.path.realpath(X) if isinstance(X, (str, os.PathLike)) else None
    if before is not None and (before is X or (path is not None and isinstance(before, str) and before == path)):
        warnings.warn(
            "these are the rows that the model was fitted on, which flatter it. The look is charged all the same; for a "
            "fair one keep rows apart: train_test_split before the fit.",
            SeenRowsWarning,
            stacklevel=3,
        )
