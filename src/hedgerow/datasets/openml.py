"""The UCI sets from OpenML, through scikit-learn, brought back to the texts that UCI uses."""

from __future__ import annotations

from http.client import HTTPException
from typing import Any

import numpy as np

from hedgerow.errors import TableError
from hedgerow.schema.attributes import is_missing, text_of
from hedgerow.schema.schema import Schema

# OpenML writes UCI's german-credit and connect-4 in other codes: not offered, rather than decoded by a guess.
DATA_ID = {
    "adult": 1590,
    "bank-marketing": 1461,
    "car": 40975,
    "chess-krk": 184,
    "cmc": 23,
    "mushroom": 24,
    "nursery": 26,
    "tic-tac-toe": 50,
    "votes": 56,
}
_CLASS_TEXT = {"bank-marketing": {"1": "no", "2": "yes"}}


def fetch_texts(name: str, schema: Schema) -> list[list[str]]:
    """The columns of the set as text, the target last; matched by position: OpenML renames some."""
    if name not in DATA_ID:
        raise TableError(
            f"data set {name!r}: got no copy at OpenML with UCI's values; "
            f"expected one of {', '.join(DATA_ID)}. Set HEDGEROW_DATA to a folder that holds {name}.csv.gz."
        )
    bunch = _download(name)
    if len(bunch.feature_names) != len(schema.names):
        raise TableError(
            f"data set {name!r} from OpenML: got {len(bunch.feature_names)} attributes; "
            f"expected {len(schema.names)}. Set HEDGEROW_DATA to a folder that holds {name}.csv.gz."
        )
    texts = [_texts(bunch.data[:, position], bunch.categories.get(feature)) for position, feature in enumerate(bunch.feature_names)]
    class_text = _CLASS_TEXT.get(name, {})
    target = [text_of(value) for value in bunch.target]
    return [*texts, [class_text.get(text, text) for text in target]]


def _download(name: str) -> Any:
    from sklearn.datasets import fetch_openml

    try:
        # This parser needs no pandas; it gives category numbers and, apart, the categories.
        return fetch_openml(data_id=DATA_ID[name], as_frame=False, parser="liac-arff", n_retries=1)
    except (OSError, HTTPException, ValueError) as error:
        raise TableError(
            f"data set {name!r} could not be fetched from OpenML: got {type(error).__name__} ({error}); "
            f"expected a network connection to openml.org, data id {DATA_ID[name]}. Connect to the network, "
            f"or set HEDGEROW_DATA to a folder that holds {name}.csv.gz."
        ) from error


def _texts(values: np.ndarray, categories: list[Any] | None) -> list[str]:
    """Numbers or category numbers as UCI's text; what OpenML marks as missing is UCI's `?`."""
    if categories is None:
        return ["?" if is_missing(value) else text_of(value) for value in values.tolist()]
    names = [text_of(category) for category in categories]
    return ["?" if is_missing(value) else names[int(value)] for value in values.tolist()]
