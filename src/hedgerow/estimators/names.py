"""Which estimator an algorithm is, by the name that users type: read from the table of algorithms, and imported only when needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hedgerow.training.algorithms import ALGORITHMS

MODULES = {"rdt": "private_rdt"}  # those that are not called as their algorithm
ESTIMATORS = {name: (MODULES.get(name, each.module), each.estimator) for name, each in ALGORITHMS.items()}
PRIVATE = {name: found for name, found in ESTIMATORS.items() if ALGORITHMS[name].private}  # those that keep ε


def estimator_named(algorithm: str) -> Any:
    """The class."""
    module, name = ESTIMATORS[algorithm]
    return getattr(import_module(f"hedgerow.estimators.{module}"), name)
