"""Rows that are read again for each query: encoded and counted on all threads as they come, and forgotten.

Memory does not grow with the rows. A table whose codes are small is kept after the first pass, since counting it again is then cheaper than
reading it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.connection import DAMAGED, Result, changed, told_by_kind
from hedgerow.engines.encoding_sql import BATCH, Encoding
from hedgerow.engines.engine import CountingEngine, Progress
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import TableError
from hedgerow.queries.query import Block, Query, Sums
from hedgerow.queries.rows import Rows
from hedgerow.schema.codebook import Codebook

KEPT_BYTES = 1 << 28  # of codes: a table with more is read again for each query
MOST_COUNTS = 1 << 25  # numbers of one query, those of all threads together: larger ones are counted on one thread
SORTING = (
    "it is damaged or was taken away, or the folder for temporary files, where rows are sorted by person, is full. Check the table with "
    "another program, or name another folder with the variable TMPDIR."
)
Decode = Callable[[Any], tuple[NDArray[Any], NDArray[np.uint16]]]


class Source(Protocol):
    """Where batches come from. Making one reads no row: headers, metadata and catalogues only."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def columns(self) -> Mapping[str, str]:
        """Name and DuckDB type of each column."""
        ...

    def sql_name(self, column: str) -> str:
        """How the relation calls a column, quoted."""
        ...

    def open(self, threads: int) -> AbstractContextManager[tuple[Any, str]]:
        """A DuckDB connection and the relation in it that holds the rows, for one pass."""
        ...

    def stamp(self) -> Any:
        """Something that changes when the rows do, where they are not a snapshot."""
        ...

    @property
    def opened(self) -> Any:
        """What it was before headers were read."""
        ...


class StreamedRows(CountingEngine):
    """The rows of a source. Nothing of them is read before the first query."""

    def __init__(self, source: Source, codebook: Codebook, n_jobs: int = 1, progress: Progress | None = None, key: bytes = b"") -> None:
        super().__init__(codebook)
        self.source = source
        self.n_jobs = max(1, n_jobs)
        self.passes = 0
        self._encoding = Encoding(codebook, source.columns, source.sql_name)
        self._progress = progress
        self._memory: MemoryRows | None = None
        self._persons: Any = None
        if codebook.schema.person is not None:
            from hedgerow.engines.person_store import PersonStore

            self._persons = PersonStore(codebook, source.columns, source.sql_name, key)
        self._rows: int | None = None

    def close(self) -> None:
        """Never raises: what was counted is paid for, and must not be lost by this."""
        if self._persons is not None:
            self._persons.close()
        end = getattr(self.source, "close", None)  # of one that holds a connection between passes
        if end is not None:
            end()

    def _pass(self, query: Query[Any]) -> Sums:
        if self._memory is not None:
            return self._memory._pass(query)
        if isinstance(query, Rows) and self._rows is not None:
            return [np.array([self._rows], dtype=np.int64)]
        if self._persons is not None and not self._persons.filled:
            self._told(self._choose_rows, SORTING)
        counting = self._told(lambda: self._count(query))
        if self._rows is not None and counting.rows != self._rows:
            raise changed(self.source.name)
        self._rows = counting.rows
        if counting.kept is not None:
            nothing = (np.empty((0, len(self.codebook.sizes)), self.codebook.dtype), np.empty(0, np.uint16))
            codes, classes = map(np.concatenate, zip(*(counting.kept or [nothing]), strict=True))
            self._memory = MemoryRows.of_codes(codes, classes, self.codebook, self.n_jobs, self._progress)
        return counting.sums

    def _told(self, read: Callable[[], Result], advice: str = DAMAGED) -> Result:
        """What `read` gives. Where the user has ended the pass, that goes on."""
        try:
            return told_by_kind(self.source.name, read, advice)
        except TableError:
            ended: BaseException | None = getattr(self.source, "ended", None)
            if ended is None:
                raise
        raise type(ended)(*ended.args)

    def _choose_rows(self) -> None:
        with self._reading(self._persons.expression) as (_, reader):
            self._persons.fill(reader, self._encoding, self.n_jobs)

    def _count(self, query: Query[Any]) -> _Pass:
        decode = self._encoding.decode if self._persons is None else self._persons.decode
        with self._reading() as (connection, reader):
            counting = _Pass(query, self.codebook, decode, self.n_jobs, lambda rows: self._tell(connection, rows))
            counting.over(reader, connection)
        return counting

    @contextmanager
    def _reading(self, *more: str) -> Iterator[tuple[Any, Any]]:
        """One pass over all rows, which must be the same as in the pass before."""
        self.passes += 1
        if self.source.stamp() != self.source.opened:
            raise changed(self.source.name)
        if self._persons is not None and self._persons.filled:
            connection, relation = self._persons.kept()
            yield connection, connection.sql(relation).to_arrow_reader(BATCH)
        else:
            with self.source.open(self.n_jobs) as (connection, relation):
                yield connection, connection.sql(self._encoding.select(relation, *more)).to_arrow_reader(self._encoding.batch_rows)
        if self.source.stamp() != self.source.opened:
            raise changed(self.source.name)

    def _tell(self, connection: Any, rows: int) -> None:
        if self._progress is None:
            return
        seen = getattr(self._progress, "rows_seen", None)
        if seen is not None:
            seen(rows)
        chosen = self._persons is not None and self._persons.filled
        reported = None if chosen else getattr(self.source, "share", None)  # of a source that DuckDB sees as a stream
        share = connection.query_progress() / 100 if reported is None else reported
        if 0 <= share <= 1:
            self._progress(share)


class _Pass:
    """One query over all batches of a reader, on several threads: each takes the next batch, encodes it and counts it.

    `sums` is the answer, `rows` how many rows there were, `kept` their codes, or None if there were too many.
    """

    def __init__(self, query: Query[Any], codebook: Codebook, decode: Decode, threads: int, tell: Callable[[int], None]) -> None:
        self.query, self.codebook = query, codebook
        self.rows = 0
        self.kept: list[tuple[NDArray[Any], NDArray[np.uint16]]] | None = []
        self._decode = decode
        self._tell = tell
        self._kept_bytes = 0
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._stop = False
        self.sums = query.zeros(codebook)
        many = threads * sum(array.size for array in self.sums) > MOST_COUNTS
        self._threads = 1 if many else threads

    def over(self, reader: Any, connection: Any) -> None:
        each = [self.sums, *(self.query.zeros(self.codebook) for _ in range(self._threads - 1))]
        with ThreadPoolExecutor(self._threads) as pool:
            workers = [pool.submit(self._work, reader, sums) for sums in each]
            try:
                for worker in workers:
                    worker.result()
            except BaseException:
                self._stop = True
                connection.interrupt()
                raise
        for sums in each[1:]:
            for total, more in zip(self.sums, sums, strict=True):
                total += more

    def _work(self, reader: Any, sums: Sums) -> None:
        try:
            self._work_on(reader, sums)
        except BaseException:
            self._stop = True  # the others need not go on
            raise

    def _work_on(self, reader: Any, sums: Sums) -> None:
        while not self._stop:
            with self._reading:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
            codes, classes = self._decode(batch)
            self.query.add(Block(codes, classes, self.codebook.n_classes), sums)
            with self._lock:
                self.rows += len(codes)
                self._keep(codes, classes)
                self._tell(self.rows)

    def _keep(self, codes: NDArray[Any], classes: NDArray[np.uint16]) -> None:
        if self.kept is not None:
            self.kept.append((codes, classes))
            self._kept_bytes += codes.nbytes + classes.nbytes
            if self._kept_bytes > KEPT_BYTES:
                self.kept = None
