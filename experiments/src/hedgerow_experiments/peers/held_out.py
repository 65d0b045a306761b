"""Sets beside the ten: small ones that come with scikit-learn, and the package's own synthetic patients.

Bounds are those of the published description of each set, a little wider, so that they are not read from the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.attributes import Numeric, Target
from hedgerow.schema.schema import Schema

Loaded = tuple[dict[str, NDArray[Any]], NDArray[Any], Schema]


def _described(bunch: Any) -> list[tuple[float, float]]:
    """The least and the greatest value of each attribute as its description prints them, the range widened by a tenth at both ends."""
    lines = re.findall(r"^[A-Za-z].*?:\s+(-?\d+\.?\d*)\s+(-?\d+\.?\d*)(?:\s|$)", bunch.DESCR, flags=re.MULTILINE)
    bounds = [(float(low), float(high)) for low, high in lines][: len(bunch.feature_names)]
    assert len(bounds) == len(bunch.feature_names)
    return [(low - (high - low) / 10, high + (high - low) / 10) for low, high in bounds]


def _table(bunch: Any, bounds: list[tuple[float, float]]) -> Loaded:
    names = [str(name) for name in bunch.feature_names]
    columns = {name: np.asarray(bunch.data[:, j], dtype=np.float64) for j, name in enumerate(names)}
    classes = [str(name) for name in bunch.target_names]
    attributes = tuple(Numeric(name, low, high) for name, (low, high) in zip(names, bounds, strict=True))
    return columns, np.array(classes)[bunch.target], Schema(attributes, Target("class", classes))


def breast_cancer() -> Loaded:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return _table(bunch, _described(bunch))


def wine() -> Loaded:
    from sklearn.datasets import load_wine

    bunch = load_wine()
    return _table(bunch, _described(bunch))


def digits() -> Loaded:
    """Pixels are whole numbers from 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return _table(bunch, [(0, 16)] * len(bunch.feature_names))


def iris() -> Loaded:
    from sklearn.datasets import load_iris

    bunch = load_iris()
    return _table(bunch, _described(bunch))


def patients() -> Loaded:
    from hedgerow.datasets import patients as made

    data = made(10_000, seed=5)
    return data.columns, data.y, data.schema


HELD_OUT: dict[str, Callable[[], Loaded]] = {
    "breast-cancer": breast_cancer,
    "wine": wine,
    "digits": digits,
    "iris": iris,
    "patients": patients,
}
CLASSES = {"breast-cancer": 2, "wine": 3, "digits": 10, "iris": 3, "patients": 3}
