"""CSV and Parquet files, read by the declared columns and types: no guess depends on what the rows hold.

A table may be one file, all files that a pattern matches, or all files in a folder. Only headers are looked at before a request is paid
for. An error about a damaged file never repeats a value from it. Records of a CSV are found by `csv_reader.py`, Parquet is read by DuckDB.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow
from numpy.typing import NDArray

from hedgerow.engines.connection import Result, connected, told_by_kind
from hedgerow.engines.csv_reader import PACKED, CSVReader, first_line, is_few
from hedgerow.engines.encoding_sql import BATCH, Encoding, identifier, quoted, spelled
from hedgerow.errors import TableError
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.csv_dialect import DELIMITERS, CSVDialect, header_cells

CSV_ENDINGS = (".csv", ".tsv", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
OTHER_DELIMITERS = ":^~!/#&*"  # that nobody looks for, but in the header of a file that has needed columns so
RELATION = "hedgerow_csv"
SEVERAL_LINES = "cells of the CSV may hold line breaks, and no quote is left open: one of one person would take the lines of others along"
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a path of one letter and a colon is a drive; an address may hold a password


@dataclass(frozen=True)
class CSVTable:
    """A CSV file, pattern or folder with its dialect (`CSVDialect`), given to `fit`, `predict`, `count` or `private_score` like a path."""

    path: str | os.PathLike[str]
    delimiter: str | None = None
    quote: str | None = '"'
    escape: str | None = None
    multiline: bool = False

    @property
    def dialect(self) -> CSVDialect:
        return CSVDialect(self.delimiter, self.quote, self.escape, self.multiline)

    def __post_init__(self) -> None:
        _ = self.dialect  # refuses what it cannot be


class TableFile:
    """A CSV (plain, .gz or .zst) or Parquet file, or many with the same columns, that has at least the `needed` columns.

    needed:   all columns, if none is named
    dialect:  of a path to CSV files; a `CSVTable` has its own
    optional: needed columns may be missing, all but one; a row has no branch for them. `absent` lists them
    leave_out_unreadable: a line of a CSV that is no row is left out, each by itself, instead of an error that would tell of it. Where
    every row needs an answer, an error is better.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | CSVTable,
        needed: list[str],
        leave_out_unreadable: bool = False,
        optional: bool = False,
        dialect: CSVDialect | None = None,
    ) -> None:
        if isinstance(path, CSVTable):
            dialect, path = path.dialect, path.path
        self.name = str(path)
        self.paths = files_of(path)
        self.opened = self.stamp()  # before a header is read: what is counted must be what the header speaks of
        self._leave_out, self._dialect = leave_out_unreadable, dialect or CSVDialect()
        self._reader: CSVReader | None = None
        if len({ending_of(each) in PARQUET_ENDINGS for each in self.paths}) > 1:
            raise TableError(f"table {self.name!r}: it has CSV and Parquet files; expected one kind. Give a pattern, such as '*.parquet'.")
        self._is_csv = ending_of(self.paths[0]) not in PARQUET_ENDINGS
        if self._is_csv:
            header, self._delimiter = self._csv_header(needed)
            self.columns = dict.fromkeys(header, "VARCHAR")
            # By place, since DuckDB takes names that differ only in case for the same.
            self._internal = {name: f"column{i}" for i, name in enumerate(header)}
        else:
            self.columns = self._parquet_columns(needed)
            self._internal = {name: name for name in self.columns}
        absent = [column for column in needed if column not in self.columns]
        self.absent = frozenset(absent)
        asked = set(needed or self.columns)
        self._wanted = [name for name in self.columns if name in asked]
        if absent and not (optional and len(absent) < len(needed)):
            # The header is not repeated: in a file without one it is a private row. Only its own spelling of a needed name is.
            raise TableError(
                f"table {self.name!r}: the column(s) {', '.join(absent)} are missing from its header; needed are "
                f"{', '.join(needed)}.{spelled(self.columns, needed)}{self._other_delimiter(needed)}"
            )

    @property
    def few(self) -> bool:
        """Whether the rows are so few that the compiled loops are not worth being loaded for them."""
        return self._is_csv and is_few(self.paths)

    @property
    def by_line(self) -> bool:
        """Whether a line is a row."""
        return self._is_csv and not self._dialect.multiline

    @property
    def assumed(self) -> str:
        """What a certificate says about the file."""
        return SEVERAL_LINES if self._is_csv and self._dialect.multiline else ""

    @property
    def share(self) -> float | None:
        """How much of a CSV was read in this pass; DuckDB tells it of others."""
        return None if self._reader is None else self._reader.share

    @property
    def ended(self) -> BaseException | None:
        """What ended the pass, where that was the user."""
        return None if self._reader is None else self._reader.ended

    def sql_name(self, column: str) -> str:
        return identifier(self._internal[column])

    @contextmanager
    def open(self, threads: int, in_order: bool = False, columns: list[str] | None = None) -> Iterator[tuple[Any, str]]:
        """One pass. Of a CSV only those columns can be read, by default the needed ones."""
        with connected(threads, in_order) as connection:
            if not self._is_csv:
                yield connection, f"read_parquet({_list(self.paths)}, hive_partitioning = false)"
                return
            needed = columns or self._wanted
            few = in_order and self.few  # in order: rows to predict, or to draft a schema from
            self._reader = CSVReader(self.paths, list(self.columns), needed, self._dialect, self._delimiter, self._leave_out, few)
            connection.register(RELATION, self._reader.stream(threads))
            yield connection, RELATION

    def _told(self, read: Callable[[], Result]) -> Result:
        """What `read` gives; a line that is no row is told by its number."""
        problem = ""
        try:
            return told_by_kind(self.name, read)
        except TableError:
            problem = "" if self._reader is None else self._reader.problem
            if not problem and self.ended is None:
                raise
        raise TableError(f"table {self.name!r}: {problem}.") if self.ended is None else type(self.ended)(*self.ended.args)

    def stamp(self) -> Any:
        """Sizes and times of the files, None for one that is gone."""
        return tuple(_stamp(path) for path in self.paths)

    def codes(self, codebook: Codebook) -> NDArray[Any]:
        """The codes of all rows in the order of the file, as `Codebook.encode` would give for the same values."""
        return self.read(codebook, labels=False)[0]

    def read(self, codebook: Codebook, labels: bool = True) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """All rows at once: codes, and class codes if `labels`."""
        nothing = (np.empty((0, len(codebook.sizes)), dtype=codebook.dtype), np.empty(0, dtype=np.uint16))
        codes, classes = zip(*([*self.blocks(codebook, labels)] or [nothing]), strict=True)
        return np.concatenate(codes), np.concatenate(classes)

    def blocks(self, codebook: Codebook, labels: bool) -> Iterator[tuple[NDArray[Any], NDArray[np.uint16]]]:
        """Codes, and class codes if `labels`, of the rows in their order, some at a time."""
        encoding = Encoding(codebook, self.columns, self.sql_name, labels, self.absent, few=self.few)
        names = [*codebook.schema.names, *([codebook.schema.target.name] if labels else [])]
        wanted = [name for name in names if name not in self.absent]

        def batches() -> Iterator[Any]:
            with self.open(2, in_order=True, columns=wanted) as (connection, relation):
                yield from connection.sql(encoding.select(relation)).to_arrow_reader(encoding.batch_rows)

        incoming = batches()
        while (batch := self._told(lambda: next(incoming, None))) is not None:
            yield encoding.decode(batch)

    def text_columns(self, names: list[str]) -> dict[str, NDArray[Any]]:
        """Columns as text, None where missing."""
        blocks = [*self.text_blocks(names)]
        rows = np.concatenate(blocks) if blocks else np.empty((0, len(names)), dtype=object)
        return {name: rows[:, i] for i, name in enumerate(names)}

    def text_blocks(self, names: list[str]) -> Iterator[NDArray[Any]]:
        """The same as (rows, columns), in their order, some at a time."""
        parts = [f"CAST({self.sql_name(name)} AS VARCHAR) AS c{i}" for i, name in enumerate(names)]

        def batches() -> Iterator[Any]:
            with self.open(2, in_order=True, columns=names) as (connection, relation):
                yield from connection.sql(f"SELECT {', '.join(parts)} FROM {relation}").to_arrow_reader(BATCH)

        incoming = batches()
        while (batch := self._told(lambda: next(incoming, None))) is not None:
            block = np.empty((batch.num_rows, len(names)), dtype=object)
            for i, column in enumerate(batch.columns):
                block[:, i] = column.to_pylist()
            yield block

    def count_missing(self, names: list[str]) -> list[int]:
        """How many cells of each of these columns are empty, null or NaN. Exact: for rows that are the user's own."""

        def empty(name: str) -> str:
            nan = f" OR isnan({self.sql_name(name)})" if self.columns[name] in ("FLOAT", "DOUBLE") else ""
            return f"count(*) FILTER (coalesce(CAST({self.sql_name(name)} AS VARCHAR), '') = ''{nan})"

        def read() -> list[int]:
            with self.open(2, in_order=True, columns=names) as (connection, relation):
                return list(connection.execute(f"SELECT {', '.join(map(empty, names))} FROM {relation}").fetchone())

        return self._told(read)

    def _parquet_columns(self, needed: list[str]) -> dict[str, str]:
        """Names and types from the footers; the needed columns must have the same type in every file."""
        first: dict[str, str] = {}
        with duckdb.connect(":memory:") as connection:
            for path in self.paths:
                found = _described(connection, path)
                first = first or found
                for name in needed:
                    if found.get(name) != first.get(name):
                        raise TableError(
                            f"table {self.name!r}: the column {name!r} has the type {found.get(name, 'none: it is missing')[:60]} in "
                            f"{path.name!r}, and {first.get(name, 'none: it is missing')[:60]} in {self.paths[0].name!r}; expected the "
                            "same columns in all files."
                        )
        return first

    def _other_delimiter(self, needed: list[str]) -> str:
        """How to read a CSV whose header is one column as it was cut, where another sign shows needed names."""
        if not self._is_csv or len(self.columns) > 1:
            return ""
        line = next(iter(self.columns))
        known = {sign: len({cell.strip() for cell in line.split(sign)} & set(needed)) for sign in OTHER_DELIMITERS}
        sign = max(known, key=lambda each: known[each])
        return f" As it was read, the header is one column. {delimiter_named(sign)}" if known[sign] else ""

    def _csv_header(self, needed: list[str]) -> tuple[list[str], str]:
        """The names in the first line, cut by the delimiter that is declared, or else shows most of the needed columns. All files must
        have the same."""
        first = _first_line(self.paths[0])
        for path in self.paths[1:]:
            if _first_line(path) != first:
                raise TableError(f"table {self.name!r}: {path.name!r} has not the header of {self.paths[0].name!r}; expected the same.")
        delimiters = DELIMITERS if self._dialect.delimiter is None else (self._dialect.delimiter,)
        cuts = [(cells, d) for d in delimiters if (cells := header_cells(first, self._dialect, d)) is not None]
        quote = self._dialect.quote
        if not cuts or "\r" in first or (quote is not None and self._dialect.escape is None and first.count(quote) % 2):
            raise TableError(
                f"table {self.name!r}: its first line is not a header; expected names, quotes that end in that line, and lines that end "
                "with LF or CRLF."
            )
        header, delimiter = max(cuts, key=lambda cut: (len(set(cut[0]) & set(needed)), len(cut[0])))
        first_place = {name: i for i, name in reversed(list(enumerate(header)))}
        unique = [name if first_place[name] == i and name else f"column {i + 1} without a name" for i, name in enumerate(header)]
        return unique, delimiter


def delimiter_named(sign: str) -> str:
    return f"Say which sign stands between columns: --csv 'delimiter={sign}' (in Python CSVTable(path, delimiter={sign!r}))."


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """The files that a path, a pattern or a folder means, in one order."""
    place = Path(path)
    if ADDRESS.match(str(path)):
        raise TableError(
            "table: got the address of a database or a store; expected the path of a CSV or Parquet file. Databases are read with "
            "hedgerow.SQLTable(address, table=…), or on the command line with --table or --query, where rows are counted."
        )
    if place.is_dir():
        inside = [each for each in sorted(place.rglob("*")) if each.is_file() and not _hidden(each.relative_to(place))]
        found = [each for each in inside if ending_of(each) in (*PARQUET_ENDINGS, *CSV_ENDINGS)]
        if not found:
            raise TableError(f"table {str(path)!r}: the folder has no file whose name ends in .parquet or .csv.")
    elif place.is_file():
        found = [place]
    elif set(str(path)) & set("*?["):
        found = [Path(each) for each in sorted(glob.glob(str(path), recursive=True)) if Path(each).is_file()]
        if not found:
            raise TableError(f"table {str(path)!r}: no file matches. Give the path of a CSV or Parquet file, or a pattern in quotes.")
    else:
        raise TableError(f"table {str(path)!r}: no such file. Give the path of a CSV or Parquet file.")
    found = list(dict.fromkeys(each.resolve() for each in found))  # a row is read once, whatever leads to it
    stems = [_unpacked(each) for each in found]
    twice = next((each for each in found if stems.count(_unpacked(each)) > 1), None) if len(set(stems)) < len(stems) else None
    if twice is not None:
        raise TableError(f"table {str(path)!r}: {twice.name!r} is there more than once, packed and plain; expected each row in one file.")
    strange = next((each for each in found if set(str(each)) & set("*?[")), None)
    if strange is not None:
        raise TableError(f"table {str(strange)!r}: a path with *, ? or [ could mean other files, too. Rename the file or folder.")
    if any(ending_of(each) not in (*PARQUET_ENDINGS, *CSV_ENDINGS) for each in found):
        raise TableError(f"table {str(path)!r}: expected a name that ends in .csv, .tsv (also with .gz, .zst) or .parquet.")
    return found


def _hidden(path: Path) -> bool:
    """Whether the file, or a folder on the way to it, is a program's own: a job that is not done, a copy in between."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in PACKED else path


def ending_of(path: Path) -> str:
    endings = [ending for ending in path.suffixes if ending not in PACKED]
    return endings[-1].lower() if endings else ""


def _described(connection: Any, path: Path) -> dict[str, str]:
    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({quoted(str(path))}, hive_partitioning = false)").fetchall()
        return {str(row[0]): str(row[1]) for row in found}
    except duckdb.Error as error:
        kind = type(error).__name__
    raise TableError(f"table {str(path)!r} is not a readable Parquet file ({kind}).")


def _first_line(path: Path) -> str:
    """The header. Only that line is decoded, so that no byte of a row can make this fail."""
    try:
        with pyarrow.OSFile(str(path)) as file:
            packed = PACKED.get(path.suffix)
            header, after = first_line(file if packed is None else pyarrow.CompressedInputStream(file, packed))
            text = header.decode()
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        kind = type(error).__name__
    else:
        if not header and not after:
            raise TableError(f"table {str(path)!r} is empty; expected a header and rows.")
        return text
    raise TableError(f"table {str(path)!r} cannot be read ({kind}); expected UTF-8 text, its first line a header of less than 1 MiB.")


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ino)


def _list(paths: list[Path]) -> str:
    return f"[{', '.join(quoted(str(path)) for path in paths)}]"
