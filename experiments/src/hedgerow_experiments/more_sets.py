"""Twelve further public sets, from the folder `more` of HEDGEROW_DATA: for judging rules that were chosen on others.

No schema of these ships with the package. A column with more than eight different numbers is a number between its least and its greatest,
any other holds the values that occur: read from the public file, once.
"""

from __future__ import annotations

import csv
import gzip
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.datasets import load
from hedgerow.datasets.public import FOLDER_VARIABLE
from hedgerow.schema.attributes import Attribute, Categorical, Numeric, Target
from hedgerow.schema.schema import Schema
from hedgerow_experiments.peers.held_out import Loaded

MORE = (
    "banknote", "breast-cancer", "credit-approval", "credit-default", "dry-bean", "heart-disease", "letter", "magic-gamma", "pendigits",
    "skin-segmentation", "spambase", "wall-following",
)  # fmt: skip
NUMBERS_FROM = 8  # a column with more different values than this, nearly all of them numbers, is a number


@lru_cache(maxsize=2)
def loaded(name: str) -> Loaded:
    """Columns, labels and schema; `more/banknote` is the file of that name."""
    if not name.startswith("more/"):
        data = load(name)
        return data.columns, data.y, data.schema
    with gzip.open(Path(os.environ[FOLDER_VARIABLE]) / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    columns, attributes = {}, []
    for title, texts in zip(head, zip(*rows, strict=True), strict=True):
        if title != "class":
            attribute, columns[title] = _column(title, np.array(texts, dtype=object))
            attributes.append(attribute)
    labels = np.array([row[head.index("class")] for row in rows], dtype=object)
    return columns, labels, Schema(tuple(attributes), Target("class", sorted(set(labels))))


def _column(name: str, texts: NDArray[Any]) -> tuple[Attribute, NDArray[Any]]:
    numbers = np.array([_number(text) for text in texts])
    known = numbers[~np.isnan(numbers)]
    if len(known) > 0.9 * len(texts) and len(set(texts)) > NUMBERS_FROM:
        missing = "unknown" if len(known) < len(texts) else None
        return Numeric(name, float(known.min()), float(known.max()), missing=missing), numbers
    return Categorical(name, sorted(set(texts))), texts


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
