"""Which estimator an algorithm is, by the name that users type: found here, and imported only when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

PRIVATE = {  # those that keep ε
    "hedgerow": ("hedgerow", "HedgerowClassifier"),
    "snr": ("snr", "SNRForestClassifier"),
    "rdt": ("private_rdt", "PrivateRDTClassifier"),
    "dpdf": ("dpdf", "DPDFClassifier"),
    "diffpid3": ("diffpid3", "DiffPID3Classifier"),
    "private-id3": ("private_id3", "PrivateID3Classifier"),
}
ESTIMATORS = {
    **PRIVATE,
    "plain-rdt": ("plain_rdt", "RandomDecisionTreesClassifier"),
    "id3": ("id3", "ID3Classifier"),
    "local-tree": ("local_tree", "LocalTreeClassifier"),
}


def estimator_named(algorithm: str) -> Any:
    """The class."""
    module, name = ESTIMATORS[algorithm]
    return getattr(import_module(f"hedgerow.estimators.{module}"), name)
