"""The order of classes at the border to scikit-learn.

A release keeps the classes as its schema declares them. scikit-learn's metrics and scorers take for granted that `classes_`, and so the
columns of `predict_proba`, are sorted as `np.unique` sorts: with another order roc_auc_score and log_loss are wrong and do not say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.release.release import class_array
from hedgerow.schema.attributes import text_of
from hedgerow.schema.schema import Schema


def class_order(schema: Schema) -> NDArray[np.intp]:
    """The places of the declared classes in sorted order; as declared where they cannot be compared (texts beside numbers)."""
    classes = class_array(schema)
    try:
        return np.argsort(classes, kind="stable")
    except TypeError:
        return np.arange(len(classes))


def sorted_classes(schema: Schema) -> NDArray[Any]:
    """`classes_` of an estimator."""
    return np.asarray(class_array(schema)[class_order(schema)])


def in_columns(numbers: NDArray[np.float64], schema: Schema, classes: NDArray[Any], none: float) -> NDArray[np.float64]:
    """Numbers of the declared classes in the columns of these, which scikit-learn has found in labels; none: of one that is not declared"""
    place = {text_of(value): c for c, value in enumerate(schema.target.classes)}
    found = [place.get(text_of(value), -1) for value in classes.tolist()]
    return np.hstack([numbers, np.full((len(numbers), 1), none)])[:, found]
