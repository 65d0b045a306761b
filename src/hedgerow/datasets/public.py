"""The UCI sets, from stored files `<name>.csv.gz` or from OpenML.

The folder is named by the environment variable HEDGEROW_DATA. A file has one header row, the attributes in
the order of the shipped schema, and the class last. `?` is kept as a value: where a set has it, its schema
declares it.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hedgerow.datasets.dataset import Dataset, declared_schema
from hedgerow.errors import TableError
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.schema import Schema

FOLDER_VARIABLE = "HEDGEROW_DATA"


def load_public(name: str, *, drop: Sequence[str] = (), fetch: bool | None = None) -> Dataset:
    """The UCI set `name`, without the attributes in `drop`.

    fetch: True asks OpenML (the rows may come in another order than UCI's), False reads only the folder named
    by HEDGEROW_DATA, None takes the folder where the variable is set and OpenML where it is not.
    """
    schema = declared_schema(name)
    folder = os.environ.get(FOLDER_VARIABLE)
    if fetch or (fetch is None and not folder):
        from hedgerow.datasets.openml import fetch_texts

        texts, source = fetch_texts(name, schema), "OpenML's copy"
    elif folder:
        texts, source = _read_texts(Path(folder) / f"{name}.csv.gz", schema), "read from a stored copy"
    else:
        raise TableError(
            f"data set {name!r}: {FOLDER_VARIABLE} is not set; expected the folder that holds {name}.csv.gz. "
            f"Set {FOLDER_VARIABLE}, or use fetch=True to ask OpenML over the network."
        )
    target = texts.pop()
    columns = {
        attribute.name: _typed(name, attribute.name, text, numeric=isinstance(attribute, Numeric))
        for attribute, text in zip(schema.attributes, texts, strict=True)
    }
    dataset = Dataset(name, columns, np.array(target), schema, f"UCI Machine Learning Repository, {source}.")
    check_domains(dataset)
    return dataset.without(drop)


def check_domains(dataset: Dataset) -> None:
    """Refuse a copy with values that the schema does not declare: it is not the set that UCI documents."""
    declared = {attribute.name: attribute for attribute in dataset.schema.attributes}
    for column, values in {**dataset.columns, dataset.schema.target.name: dataset.target}.items():
        attribute = declared.get(column)
        if isinstance(attribute, Numeric):
            strange = values[~((attribute.low <= values) & (values <= attribute.high))]
            expected = f"numbers from {attribute.low:g} to {attribute.high:g}"
        else:
            declared_values = attribute.values if attribute else dataset.schema.target.classes
            domain = [str(value) for value in declared_values]
            strange = values[~np.isin(values, domain)]
            expected = f"one of {', '.join(domain)}"
        if len(strange):
            raise TableError(
                f"data set {dataset.name!r}, column {column!r}: got {strange[0].item()!r}; "
                f"expected {expected}. This copy differs from the documented set: take another one, and name "
                f"its folder in {FOLDER_VARIABLE}."
            )


def _read_texts(path: Path, schema: Schema) -> list[list[str]]:
    """The columns of the file as text, the target last."""
    expected = [*schema.names, schema.target.name]
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows = list(reader)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(
            f"data file {path.name!r} in the folder {FOLDER_VARIABLE}: got {type(error).__name__}; expected "
            f"a gzip-compressed UTF-8 csv file. Check {FOLDER_VARIABLE}, or use fetch=True to ask OpenML "
            "over the network."
        ) from error
    if header != expected:
        raise TableError(f"data file {path.name!r}, first line: got {header}; expected {expected}.")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(expected):
            got = f"got {len(row)} cells; expected {len(expected)}"
            raise TableError(f"data file {path.name!r}, line {line}: {got}.")
    if not rows:
        raise TableError(f"data file {path.name!r}: got a header and no rows; expected the rows of the set.")
    return [list(column) for column in zip(*rows, strict=True)]


def _typed(name: str, column: str, texts: list[str], *, numeric: bool) -> np.ndarray:
    if not numeric:
        return np.array(texts)
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError as error:
        raise TableError(f"data set {name!r}, column {column!r}: {error}; expected only numbers.") from error
