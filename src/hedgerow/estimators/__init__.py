"""scikit-learn estimators. Each is thin: check, plan, charge, grow, keep `release_`."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module


def all_estimators() -> dict[str, type]:
    """Every public estimator of this package, found by looking, so that none can escape the common checks."""
    from sklearn.base import BaseEstimator

    found: dict[str, type] = {}
    for module in pkgutil.iter_modules(__path__):
        for name, thing in vars(import_module(f"{__name__}.{module.name}")).items():
            mine = inspect.isclass(thing) and thing.__module__.startswith(__name__) and issubclass(thing, BaseEstimator)
            if mine and not name.startswith("_") and not inspect.isabstract(thing):
                found[name] = thing
    return found
