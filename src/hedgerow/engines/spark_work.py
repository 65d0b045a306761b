"""What runs on Spark's executors: a partition's rows become codes by the same path as everywhere, are counted, and only the counts leave.

An answer is the arrays of a query cut into slices of whole numbers, compressed, those of zeros left out; then the number of rows and
of partitions. Which slice is which follows from the shapes of the arrays, so that nothing but numbers travels.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import hedgerow
from hedgerow.engines.connection import connected
from hedgerow.engines.csv_reader import BOM
from hedgerow.engines.csv_split import Splitter
from hedgerow.engines.encoding_sql import BATCH, Encoding
from hedgerow.engines.person_ids import person_changes, person_sql
from hedgerow.engines.person_store import bytes_of, rows_of
from hedgerow.engines.persons import PersonLimit
from hedgerow.queries.query import Block, Query, Sums
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.csv_dialect import CSVDialect

SLICE = 1 << 13  # numbers: few enough that several tasks share the adding up
SLICES_AT_ONCE = 256
ANSWER = "slice int, numbers binary"
ENCODED = "person binary, row binary"  # bytes: how a session compares texts must not matter
OTHER_VERSION = "hedgerow: this executor has another version"
_ANSWER = pa.schema([("slice", pa.int32()), ("numbers", pa.binary())])
_ENCODED = pa.schema([("person", pa.binary()), ("row", pa.binary())])

Blocks = Iterator[tuple[NDArray[Any], NDArray[np.uint16]]]


@dataclass(frozen=True)
class Task:
    """What every executor is told: all of it is public but the key, which only decides whose rows are left out.

    columns: name of each declared column, how Spark calls it here, and the type that DuckDB sees
    """

    codebook: Codebook
    columns: dict[str, tuple[str, str]]
    query: Query[Any] | None
    key: bytes = b""

    def encoding(self) -> Encoding:
        types = {name: kind for name, (_, kind) in self.columns.items()}
        return Encoding(self.codebook, types, lambda name: self.columns[name][0])

    def person_sql(self) -> str:
        return str(person_sql(*self.columns[self.codebook.schema.person or ""]))


def ready(version: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Nothing, if an executor has what it needs. It is asked before anything is charged, and about no rows."""
    for _ in batches:
        pass
    yield from _safely(version, lambda: iter(()))


def split_lines(version: str, header: bytes, columns: int, dialect: CSVDialect, delimiter: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Lines of CSV files to their cells. Lines that are the header are no rows."""
    return _safely(version, lambda: _cells(header, columns, dialect, delimiter, batches))


def counted(version: str, task: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """The answer of a partition of rows."""
    return _safely(version, lambda: _answer(_told(task), _blocks_of(_told(task), batches)))


def encoded(version: str, task: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Whose rows, and the rows as bytes that sort as their codes do: what is sorted by person before it is counted."""
    return _safely(version, lambda: _encoded(_told(task), batches))


def counted_by_person(version: str, task: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """The answer of a partition of encoded rows, in which all rows of a person are together and in order."""
    return _safely(version, lambda: _by_person(_told(task), batches))


def added(version: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Answers added up where they are, so that one copy of the arrays comes back however many partitions there are."""
    return _safely(version, lambda: _added(batches))


def slices_of(arrays: Iterable[NDArray[np.int64]]) -> list[list[NDArray[np.int64]]]:
    """Views of the arrays, one after the other, put together until they hold a slice's numbers."""
    slices: list[list[NDArray[np.int64]]] = []
    free = 0
    for flat in (array.reshape(-1) for array in arrays):
        start = 0
        while start < len(flat):
            if not free:
                slices.append([])
                free = SLICE
            view = flat[start : start + free]
            slices[-1].append(view)
            start, free = start + len(view), free - len(view)
    return slices


def add_to(views: list[NDArray[np.int64]], numbers: Any) -> None:
    """Add the packed numbers of a slice to the arrays that it is cut from."""
    more, start = _unpacked(numbers), 0
    for view in views:
        view += more[start : start + len(view)]
        start += len(view)


def _cells(header: bytes, columns: int, dialect: CSVDialect, delimiter: str, batches: Iterable[Any]) -> Iterator[Any]:
    names = [f"column {i}" for i in range(columns)]
    splitter = Splitter(names, names, dialect, delimiter)
    for batch in batches:
        text = batch.column(0).cast(pa.binary())
        plain = [line for line in (header, BOM + header) for line in (line, line + b"\r")]
        text = text.filter(pc.invert(pc.is_in(text, pa.array(plain, type=pa.binary()))))
        offsets = np.frombuffer(text.buffers()[1], dtype=np.int32)[text.offset : text.offset + len(text) + 1]
        data = np.frombuffer(text.buffers()[2] or b"", dtype=np.uint8)
        for starts, ends in splitter.parts(offsets[:-1], offsets[1:]):
            yield splitter.batch(data, starts, ends)[0]


def _unpacked(numbers: Any) -> NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(numbers), dtype="<i8")


def _safely(version: str, work: Any) -> Iterator[Any]:
    """A library's text may quote a row and Spark logs what it is told: only the kind of an error goes on."""
    if version != hedgerow.__version__:
        raise RuntimeError(OTHER_VERSION)
    try:
        yield from work()
        return
    except Exception as error:
        kind = type(error).__name__
    raise RuntimeError(f"hedgerow: a partition could not be counted ({kind})")


@lru_cache(maxsize=2)
def _told(task: bytes) -> Task:
    """Kept for the next partition: a release takes a while to be checked. The bytes come from the driver, as this code does."""
    job: Task = pickle.loads(zlib.decompress(task))  # noqa: S301
    return job


def _reader(batches: Iterable[Any]) -> Any:
    """The batches as one stream; nothing for a partition without any."""
    coming = iter(batches)
    first = next(coming, None)
    return None if first is None else pa.RecordBatchReader.from_batches(first.schema, chain([first], coming))


def _blocks_of(task: Task, batches: Iterable[Any]) -> Blocks:
    reader = _reader(batches)
    if reader is not None:
        with connected(1) as connection:
            connection.register("rows_here", reader)
            yield from task.encoding().blocks(connection, "rows_here")


def _encoded(task: Task, batches: Iterable[Any]) -> Iterator[Any]:
    reader = _reader(batches)
    if reader is None:
        return
    encoding = task.encoding()
    with connected(1) as connection:
        connection.register("rows_here", reader)
        with connection.sql(encoding.select("rows_here", f"{task.person_sql()} AS person")).to_arrow_reader(BATCH) as rows:
            for batch in rows:
                persons = batch.column(batch.num_columns - 1).cast(pa.string()).cast(pa.binary())
                yield pa.record_batch([persons, bytes_of(*encoding.decode(batch)).cast(pa.binary())], schema=_ENCODED)


def _by_person(task: Task, batches: Iterable[Any]) -> Iterator[Any]:
    limit = PersonLimit(task.codebook.schema.k, task.key)
    read = 0

    def kept() -> Blocks:
        nonlocal read
        last: Any = None
        for batch in batches:
            new_person, last = person_changes(batch.column(0), last)
            read += len(new_person)
            yield limit.keep(new_person, *rows_of(batch.column(1), task.codebook))
        yield limit.finish()

    yield from _answer(task, kept(), lambda: read)


def _answer(task: Task, blocks: Blocks, read: Any = None) -> Iterator[Any]:
    assert task.query is not None
    sums: Sums = task.query.zeros(task.codebook)
    rows = 0
    for codes, classes in blocks:
        if len(codes):
            task.query.add(Block(codes, classes, task.codebook.n_classes), sums)
            rows += len(codes)
    rows = rows if read is None else read()
    if rows:
        cut = slices_of([*sums, np.array([rows, 1], dtype=np.int64)])
        yield from _packed((place, np.concatenate(views)) for place, views in enumerate(cut))


def _added(batches: Iterable[Any]) -> Iterator[Any]:
    totals: dict[int, NDArray[np.int64]] = {}
    for batch in batches:
        for place, numbers in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            more = _unpacked(numbers.as_buffer())
            totals[place] = totals[place] + more if place in totals else more
    yield from _packed(sorted(totals.items()))


def _packed(slices: Iterable[tuple[int, NDArray[np.int64]]]) -> Iterator[Any]:
    places: list[int] = []
    packed: list[bytes] = []
    for place, numbers in slices:
        if numbers.any():
            places.append(place)
            packed.append(zlib.compress(numbers.astype("<i8", copy=False).data, 1))
            if len(places) == SLICES_AT_ONCE:
                yield pa.record_batch([places, packed], schema=_ANSWER)
                places, packed = [], []
    if places:
        yield pa.record_batch([places, packed], schema=_ANSWER)
