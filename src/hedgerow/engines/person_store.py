"""At most k rows of each person, of a table that is larger than memory: grouped by a sort that can spill to a folder of its own.

Rows are encoded first, so that what is sorted is small, and what is kept depends on codes alone: the same rows as in memory or on Spark.
The folder is readable by its owner only and is taken away with the engine; it holds encoded rows and ids, as a database's own spill would.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.engines.connection import connect, private_folder
from hedgerow.engines.encoding_sql import BATCH, Encoding
from hedgerow.engines.person_ids import person_changes, person_sql
from hedgerow.engines.persons import PersonLimit
from hedgerow.schema.codebook import Codebook

MEMORY = "512MB"  # that the sort may use before it spills


class PersonStore:
    """The rows that are kept, in a database of their own."""

    def __init__(self, codebook: Codebook, columns: Any, sql_name: Any, key: bytes) -> None:
        person = codebook.schema.person
        assert person is not None
        self.filled = False
        self.expression = f"{person_sql(sql_name(person), columns[person], person)} AS person"
        self._codebook = codebook
        self._limit = PersonLimit(codebook.schema.k, key)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._connection: Any = None

    def fill(self, reader: Any, encoding: Encoding, threads: int) -> None:
        """From batches of encoded columns with the person last."""
        self._folder = private_folder()
        folder = Path(self._folder.name)
        connection = self._connection = connect(str(folder / "rows.duckdb"), folder, threads, memory=MEMORY)
        self._ended: BaseException | None = None
        width = row_width(self._codebook)
        shape = pa.schema([("person", pa.string()), ("row", pa.binary(width))])

        def encoded() -> Iterator[Any]:
            for batch in reader:
                rows = bytes_of(*encoding.decode(batch))
                yield pa.record_batch([batch.column(batch.num_columns - 1).cast(pa.string()), rows], schema=shape)

        failed = self._sorted(connection, self._noted(encoded()), shape, width)
        if self._ended is not None:
            raise self._ended
        if failed is not None:
            raise failed
        self.filled = True

    def _noted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The same batches. If the program is told to end meanwhile, that is noted: DuckDB would tell it as an error of the rows."""
        try:
            yield from batches
        except (KeyboardInterrupt, SystemExit) as error:
            self._ended = type(error)(*error.args)
            raise

    def _sorted(self, connection: Any, encoded: Iterator[Any], shape: Any, width: int) -> duckdb.Error | None:
        try:
            self._sort(connection, encoded, shape, width)
        except duckdb.Error as error:
            return error
        return None

    def _sort(self, connection: Any, encoded: Iterator[Any], shape: Any, width: int) -> None:
        connection.register("incoming", pa.RecordBatchReader.from_batches(shape, encoded))
        connection.execute("CREATE TABLE encoded AS SELECT person, row FROM incoming")
        with connection.cursor() as reading:
            ordered = reading.sql("SELECT person, row FROM encoded ORDER BY person, row").to_arrow_reader(BATCH)
            kept = self._noted(self._kept_of(ordered))
            connection.register("chosen", pa.RecordBatchReader.from_batches(pa.schema([("row", pa.binary(width))]), kept))
            connection.execute("CREATE TABLE kept AS SELECT row FROM chosen")
        for view in ("incoming", "chosen"):
            connection.unregister(view)
        connection.execute("DROP TABLE encoded")

    def _kept_of(self, ordered: Any) -> Iterator[Any]:
        last: str | None = None
        for batch in ordered:
            new, last = person_changes(batch.column(0), last)
            yield from _rows_batch(self._limit.keep(new, *rows_of(batch.column(1), self._codebook)))
        yield from _rows_batch(self._limit.finish())

    def close(self) -> None:
        self.filled = False
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def kept(self) -> tuple[Any, str]:
        return self._connection, "SELECT row FROM kept"

    def decode(self, batch: Any) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        return rows_of(batch.column(0), self._codebook)


def _rows_batch(rows: tuple[NDArray[Any], NDArray[np.uint16]]) -> Iterator[Any]:
    if len(rows[0]):
        yield pa.record_batch([bytes_of(*rows)], names=["row"])


def row_width(codebook: Codebook) -> int:
    return len(codebook.sizes) * np.dtype(codebook.dtype).itemsize + 2


def bytes_of(codes: NDArray[Any], classes: NDArray[np.uint16]) -> Any:
    """Each row as bytes that sort as (codes, class) do: high bytes first."""
    high_first = codes.astype(codes.dtype.newbyteorder(">"), copy=False).view(np.uint8).reshape(len(codes), -1)
    together = np.concatenate([high_first, classes.astype(">u2").view(np.uint8).reshape(len(classes), 2)], axis=1)
    width = together.shape[1]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(codes), [None, pa.py_buffer(np.ascontiguousarray(together))])


def rows_of(array: Any, codebook: Codebook) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """The codes and class codes again."""
    if not pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary(row_width(codebook)))
    width = row_width(codebook)
    together = np.frombuffer(array.buffers()[1], dtype=np.uint8)[array.offset * width :][: len(array) * width].reshape(len(array), width)
    size = np.dtype(codebook.dtype).itemsize
    high_first = np.ascontiguousarray(together[:, :-2]).view(np.dtype(codebook.dtype).newbyteorder(">"))
    classes = np.ascontiguousarray(together[:, -2:]).view(">u2").reshape(len(array))
    assert high_first.shape[1] * size == width - 2
    return high_first.astype(codebook.dtype), classes.astype(np.uint16)
