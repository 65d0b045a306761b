"""Weights of classes, applied to released probabilities: p_c becomes w_c·p_c. Post-processing, so it costs no ε.

Weights of rows would change how much one row adds to the counts, and so the noise that hides it: nothing here takes any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.schema.attributes import text_of

IN_FIT = (
    "class_weight: weights in training would change what one row adds to the counts, and so the noise that hides it. Weigh the answers "
    'instead, at no ε: predict(X, class_weight="balanced"), or with a dict; or a threshold, '
    'private_score(model, X, y, epsilon=…, metrics=["auc"]).threshold_for(recall=0.8).'
)


def class_weights(given: Any, classes: Sequence[Any], totals: NDArray[Any]) -> NDArray[np.float64]:
    """One for each class, in their order. given: a dict of labels and weights, 1 where it has none; or "balanced", one over the share that
    a class has in the released counts, `totals`"""
    if isinstance(given, str) and given == "balanced":
        return np.asarray(1.0 / np.maximum(np.asarray(totals, dtype=np.float64), 1.0))
    known = [text_of(value) for value in classes]
    texts = {text_of(label): weight for label, weight in given.items()} if isinstance(given, dict) else {}
    numbers = all(isinstance(weight, (int, float, np.number)) and 0 < weight < float("inf") for weight in texts.values())
    if not texts or not set(texts) <= set(known) or not numbers:
        raise PlanError(
            f'class_weight: got {given!r}; expected "balanced", or a dict of weights above 0 for some of the classes '
            f"{', '.join(map(repr, classes))}."
        )
    return np.array([float(texts.get(text, 1)) for text in known])
