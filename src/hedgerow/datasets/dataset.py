"""One public table: typed columns, a target, and the schema that describes both."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from hedgerow.errors import TableError
from hedgerow.schema.schema import Schema

if TYPE_CHECKING:
    import pandas


@cache
def declared_schema(name: str) -> Schema:
    """The schema that ships with the package for the set `name`, without reading any of its rows."""
    folder = files("hedgerow.datasets") / "schemas"
    source = folder / f"{name}.toml"
    if not source.is_file():
        entries = [entry.name for entry in folder.iterdir()]
        known = sorted(entry.removesuffix(".toml") for entry in entries if entry.endswith(".toml"))
        raise TableError(f"declared schema: got the name {name!r}; expected one of {', '.join(known)}.")
    return Schema.from_toml(source.read_text(encoding="utf-8"), source=f"schema of {name!r}")


@dataclass(frozen=True, eq=False)  # arrays have no single truth value, so a generated == could only fail
class Dataset:
    """A public table. Numeric columns are float64, categorical ones and the target are text arrays.

    note: where the rows come from, in one or two sentences.
    """

    name: str
    columns: dict[str, np.ndarray]
    target: np.ndarray
    schema: Schema
    note: str

    def __post_init__(self) -> None:
        if tuple(self.columns) != self.schema.names:
            raise TableError(
                f"data set {self.name!r}: got the columns {list(self.columns)}; "
                f"expected those of its schema, in order: {list(self.schema.names)}."
            )
        for column, values in self.columns.items():
            if values.shape != self.target.shape or values.ndim != 1:
                raise TableError(
                    f"data set {self.name!r}, column {column!r}: got shape {values.shape}; "
                    f"expected one value for each of the {len(self.target)} target values."
                )

    def __len__(self) -> int:
        return len(self.target)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The attributes, in the order of the columns of `X`."""
        return self.schema.names

    @property
    def X(self) -> np.ndarray:
        """All attributes as one 2-D object array of Python floats and strings, columns in schema order."""
        table = np.empty((len(self), len(self.columns)), dtype=object)
        for position, values in enumerate(self.columns.values()):
            table[:, position] = values
        return table

    @property
    def y(self) -> np.ndarray:
        """The classes, one for each row."""
        return self.target

    def without(self, names: Sequence[str]) -> Dataset:
        """The same table without the attributes in `names`."""
        dropped = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in dropped if name not in self.columns]
        if unknown:
            raise TableError(f"data set {self.name!r}, attributes to drop: got {unknown}; expected names among {list(self.feature_names)}.")
        if not dropped:
            return self
        kept = [attribute for attribute in self.schema.attributes if attribute.name not in dropped]
        return replace(
            self,
            columns={attribute.name: self.columns[attribute.name] for attribute in kept},
            schema=Schema(kept, self.schema.target, self.schema.rows),
        )

    def frame(self) -> pandas.DataFrame:
        """A pandas DataFrame of the attributes and, last, the target."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "Dataset.frame: pandas is not installed, and hedgerow does not require it. "
                "Install it with `pip install 'hedgerow[pandas]'`, or use .columns, .X and .y, which need only NumPy."
            ) from error
        return pandas.DataFrame({**self.columns, self.schema.target.name: self.target})

    def to_csv(self, path: str | Path) -> None:
        """Write a header and all rows, the target last; gzip-compressed if the name ends in .gz."""
        cells = [_cells(values) for values in (*self.columns.values(), self.target)]
        with _text_file(Path(path)) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*self.columns, self.schema.target.name])
            writer.writerows(zip(*cells, strict=True))


def _cells(values: np.ndarray) -> list[Any]:
    """The values as csv should write them: 39, not 39.0, in a column of whole numbers."""
    if values.dtype.kind == "f" and np.all(np.isfinite(values)) and np.all(values == np.trunc(values)):
        values = values.astype(np.int64)
    cells: list[Any] = values.tolist()
    return cells


@contextmanager
def _text_file(path: Path) -> Iterator[TextIO]:
    if not path.name.endswith(".gz"):
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    # No file name and no time in the gzip header: the same rows give the same bytes.
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
    ):
        yield file
