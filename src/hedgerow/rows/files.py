"""CSV and Parquet files through DuckDB, read by the declared columns and types: no guess depends on what the rows hold.

Only the header is looked at before a request is paid for. An error about a damaged file never repeats a value from it.
"""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hedgerow.coders import CategoricalCoder
from hedgerow.encoding import Codebook
from hedgerow.errors import TableError
from hedgerow.rows.memory import MemoryRows, Progress

CSV_ENDINGS = (".csv", ".tsv", ".txt")
DELIMITERS = (",", ";", "\t", "|")
MAX_HEADER = 1 << 20


class FileRows(MemoryRows):
    """The rows of one file. Nothing but the header is read before the first question."""

    def __init__(
        self, path: str | os.PathLike[str], codebook: Codebook, n_jobs: int = 1, progress: Progress | None = None
    ) -> None:
        super().__init__(None, None, codebook, n_jobs, progress)
        self.file = TableFile(path, [*codebook.schema.names, codebook.schema.target.name], leave_out_unreadable=True)

    def _load(self) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        schema = self.codebook.schema
        return self.file.read(self.codebook, [*schema.names, schema.target.name])


class TableFile:
    """A CSV (plain, .gz or .zst) or Parquet file that has at least the `needed` columns.

    optional: needed columns may be missing, all but one; a row has no branch for them. `absent` lists them
    leave_out_unreadable: a line of a CSV that is no row (bytes that are no text, too many cells) is left out, each by itself, instead
    of an error that would tell of it. Where every row needs an answer, an error is better.
    """

    def __init__(
        self, path: str | os.PathLike[str], needed: list[str], leave_out_unreadable: bool = False, optional: bool = False
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise TableError(f"table {str(path)!r}: no such file. Give the path of a CSV or Parquet file.")
        self.path = self.path.resolve()
        if set(str(self.path)) & set("*?["):
            raise TableError(f"table {str(path)!r}: a path with *, ? or [ could mean other files, too. Rename the file or folder.")
        endings = [ending for ending in self.path.suffixes if ending not in (".gz", ".zst")]
        ending = endings[-1].lower() if endings else ""
        if ending in (".parquet", ".pq"):
            self._source = f"read_parquet({_quote(str(self.path))}, hive_partitioning = false)"
            columns = self._parquet_columns()
            self._internal = {name: name for name in columns}
        elif ending in CSV_ENDINGS:
            columns, delimiter = self._csv_header(needed)
            # By place, since DuckDB takes names that differ only in case for the same.
            types = ", ".join(f"'column{i}': 'VARCHAR'" for i in range(len(columns)))
            self._source = (
                f"read_csv({_quote(str(self.path))}, auto_detect = false, header = true, delim = {_quote(delimiter)}, "
                f"quote = '\"', escape = '\"', strict_mode = false, null_padding = true, parallel = false, hive_partitioning = false, "
                f"ignore_errors = {str(leave_out_unreadable).lower()}, "
                f"columns = {{{types}}})"
            )
            self._internal = {name: f"column{i}" for i, name in enumerate(columns)}
        else:
            raise TableError(f"table {str(path)!r}: expected a name that ends in .csv, .tsv (also with .gz, .zst) or .parquet.")
        self.columns = columns
        absent = [column for column in needed if column not in columns]
        self.absent = frozenset(absent)
        if absent and not (optional and len(absent) < len(needed)):
            # The header is not repeated: in a file without one it is a private row. Only its own spelling of a needed name is.
            near = [have for have in columns for name in absent if have.strip().casefold() == name.strip().casefold()]
            hint = f" It has {', '.join(map(repr, near))}: spelling and case matter." if near else ""
            raise TableError(
                f"table {str(path)!r}: the column(s) {', '.join(absent)} are missing from its header; needed are "
                f"{', '.join(needed)}.{hint}"
            )

    def codes(self, codebook: Codebook) -> NDArray[Any]:
        """The codes of all rows, as `Codebook.encode` would give for the same values."""
        return self.read(codebook, list(codebook.schema.names))[0]

    def read(self, codebook: Codebook, names: list[str]) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """Codes of the attributes, and class codes if the target is among the names: one look at the file for both."""
        parts, decode = [], {}
        for i, (name, coder) in enumerate(zip(names, codebook.coders, strict=False)):
            if name in self.absent:
                continue
            text = f"CAST({self._name(name)} AS VARCHAR)"
            if isinstance(coder, CategoricalCoder):
                known = f"enum_code(TRY_CAST({text} AS ENUM({', '.join(map(_quote, coder.code_of_spelling))})))"
                place = f"CASE WHEN {text} IS NULL OR {text} = '' THEN 0 ELSE coalesce({known}::INTEGER + 2, 1) END"
                parts.append(f"({place})::INTEGER AS c{i}")
                decode[i] = np.array([coder.missing, coder.other, *coder.code_of_spelling.values()], dtype=np.uint16)
            else:
                number = f"CASE WHEN contains({text}, '_') THEN NULL ELSE TRY_CAST({text} AS DOUBLE) END"
                parts.append(f"coalesce({number}, 'NaN'::DOUBLE) AS c{i}")
        arrays = self._query(", ".join(parts))
        attributes = len(codebook.schema.names)
        codes = np.empty((len(next(iter(arrays.values()))), attributes), dtype=codebook.dtype)
        for i in range(attributes):
            if names[i] in self.absent:
                codes[:, i] = codebook.sizes[i]
                continue
            column = np.asarray(arrays.pop(f"c{i}"))
            codes[:, i] = decode[i][column] if i in decode else codebook.coders[i].encode(column)
        classes = decode[attributes][np.asarray(arrays[f"c{attributes}"])] if len(names) > attributes else np.empty(0, np.uint16)
        return codes, classes

    def text_columns(self, names: list[str]) -> dict[str, NDArray[Any]]:
        """Columns as text, None where missing."""
        parts = [f"CAST({self._name(name)} AS VARCHAR) AS c{i}" for i, name in enumerate(names)]
        arrays = self._query(", ".join(parts))
        return {name: _objects(arrays[f"c{i}"]) for i, name in enumerate(names)}

    def _name(self, column: str) -> str:
        return '"' + self._internal[column].replace('"', '""') + '"'

    def _query(self, parts: str) -> dict[str, NDArray[Any]]:
        # DuckDB's own text quotes the offending line, so only its kind is passed on, and raised outside the `except` so
        # that the new error does not carry the old one.
        try:
            with duckdb.connect(":memory:", config={"threads": 2, "preserve_insertion_order": True}) as connection:
                return connection.execute(f"SELECT {parts} FROM {self._source}").fetchnumpy()
        except duckdb.Error as error:
            kind = type(error).__name__
        except RuntimeError as error:
            if "interrupt" not in str(error).lower():
                raise
            kind = ""  # so DuckDB reports Ctrl-C
        if not kind:
            raise KeyboardInterrupt
        raise TableError(
            f"table {str(self.path)!r} cannot be read as a table ({kind}): it is damaged, or its rows do not have the columns of "
            "its header. Check the file with another program."
        )

    def _parquet_columns(self) -> list[str]:
        try:
            with duckdb.connect(":memory:") as connection:
                found = connection.execute(f"DESCRIBE SELECT * FROM {self._source}").fetchall()
            return [str(row[0]) for row in found]
        except duckdb.Error as error:
            kind = type(error).__name__
        raise TableError(f"table {str(self.path)!r} is not a readable Parquet file ({kind}).")

    def _csv_header(self, needed: list[str]) -> tuple[list[str], str]:
        """The names in the first line, cut by the delimiter that shows most of the needed columns."""
        line = self._first_line()
        try:
            cuts = [(next(csv.reader([line], delimiter=d), []), d) for d in DELIMITERS]
        except csv.Error:
            cuts = []
        if not cuts:
            raise TableError(f"table {str(self.path)!r}: its first line is not a header.")
        header, delimiter = max(cuts, key=lambda cut: (len(set(cut[0]) & set(needed)), len(cut[0])))
        unique = [name if header.index(name) == i and name else f"column {i + 1}" for i, name in enumerate(header)]
        return unique, delimiter

    def _first_line(self) -> str:
        """The header. Only that line is decoded, so that no byte of a row can make this fail."""
        try:
            if self.path.suffix == ".zst":
                with duckdb.connect(":memory:") as connection:
                    options = "auto_detect = false, header = false, delim = '\x01', quote = '', escape = ''"
                    source = f"read_csv({_quote(str(self.path))}, {options}, columns = {{'line': 'VARCHAR'}})"
                    found = connection.execute(f"SELECT line FROM {source} LIMIT 1").fetchone()
                    return str(found[0]) if found else ""
            with gzip.open(self.path, "rb") if self.path.suffix == ".gz" else open(self.path, "rb") as file:
                return file.readline(MAX_HEADER).decode("utf-8-sig").rstrip("\r\n")
        except (OSError, EOFError, UnicodeDecodeError, zlib.error, duckdb.Error) as error:
            kind = type(error).__name__
        raise TableError(f"table {str(self.path)!r} cannot be read ({kind}); expected UTF-8 text with a header.")


def _objects(array: Any) -> NDArray[Any]:
    objects = np.array(array, dtype=object)
    objects[np.ma.getmaskarray(array)] = None  # DuckDB masks what is missing
    return objects


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
