"""The medical classification data that scikit-learn ships."""

from __future__ import annotations

import numpy as np

from hedgerow.datasets.dataset import Dataset, declared_schema


def breast_cancer() -> Dataset:
    """Breast cancer Wisconsin (diagnostic): 569 tumours, 30 measurements, malignant or benign.

    The declared bounds are round numbers around the table of ranges in the set's published description.
    """
    from sklearn.datasets import load_breast_cancer

    stored = load_breast_cancer()
    schema = declared_schema("breast-cancer")
    position = {str(name): index for index, name in enumerate(stored.feature_names)}
    return Dataset(
        name="breast-cancer",
        columns={name: stored.data[:, position[name]].astype(np.float64) for name in schema.names},
        target=np.array([str(name) for name in stored.target_names])[stored.target],
        schema=schema,
        note="Breast cancer Wisconsin (diagnostic), the copy that scikit-learn ships.",
    )
