"""The records of CSV files as Arrow batches of text: read in blocks of whole lines, split on several threads, given out in their order.

Memory is that of a few blocks, however large the files are. Only needed columns are made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from hedgerow.engines.csv_loops import LF, MOST_LINE
from hedgerow.engines.csv_split import Splitter, lines
from hedgerow.schema.csv_dialect import CSVDialect

BLOCK = 1 << 20  # bytes that are read at a time
FEW_BYTES = 1 << 18
BOM = b"\xef\xbb\xbf"
MAX_HEADER, HEADER_PIECE = 1 << 20, 1 << 12  # little more is read than the header: where a file is damaged further on is not seen
PACKED = {".gz": "gzip", ".zst": "zstd"}
NO_ROW = (
    "is no row: a quote is open at its end, text follows a closing quote, it has more cells than the header, or bytes that are no UTF-8. "
    "Correct it, or declare how the file is written: [csv] in the schema, or --csv"
)

Records = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]  # bytes, and where each record begins and ends


def is_few(paths: list[Path]) -> bool:
    """Whether the files are so small that loading the compiled loops would take longer than all that they are for."""
    try:
        return all(path.suffix not in PACKED for path in paths) and sum(path.stat().st_size for path in paths) <= FEW_BYTES
    except OSError:
        return False


class _NoRow(OSError):
    """Tells a line by its number, and nothing of what it holds."""


class CSVReader:
    """One pass over files that have the same header.

    columns:   all columns of the header; needed: those that are read
    leave_out: whether a record that is no row is left out; else it ends the pass, and `problem` says which line it was
    few:       whether the loops run without being compiled; never for a private query, whose loops do not depend on how many rows there are
    """

    def __init__(
        self,
        paths: list[Path],
        columns: list[str],
        needed: list[str],
        dialect: CSVDialect,
        delimiter: str,
        leave_out: bool,
        few: bool = False,
    ) -> None:
        self._paths, self._leave_out, self._multiline = paths, leave_out, dialect.multiline
        self._total = max(1, sum(path.stat().st_size for path in paths))
        self._splitter = Splitter(columns, needed, dialect, delimiter, few)
        self._read = 0
        self.problem = ""
        self.ended: BaseException | None = None  # Ctrl-C while records were waited for: DuckDB would tell it as an error of the file

    @property
    def share(self) -> float:
        """How much of the files was read, from 0 to 1."""
        return min(1.0, self._read / self._total)

    def stream(self, threads: int) -> Any:
        """For DuckDB: all batches, once."""
        return pyarrow.RecordBatchReader.from_batches(self._splitter.schema, self._batches(threads))

    def _batches(self, threads: int) -> Iterator[Any]:
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for path in self._paths:
                    line = 2
                    for data, starts, ends in self._records(path):
                        for records in self._splitter.parts(starts, ends):
                            waiting.append(pool.submit(self._batch, path, line, data, *records))
                            line += len(records[0])
                            if len(waiting) > 2 * threads:
                                yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            except _NoRow as error:  # of the first block that has one, since their results are taken in order
                self.problem = str(error)
                raise
            except (KeyboardInterrupt, SystemExit) as error:
                self.ended = error
                raise
            finally:
                for each in waiting:
                    each.cancel()

    def _records(self, path: Path) -> Iterator[Records]:
        """Whole records, some at a time. Of a line that is longer than a record may be, so much is kept that it is left out: with
        `multiline`, what may go on stands before it, and is no longer than a record."""
        rest = b""
        for piece in self._pieces(path):
            cut = piece.rfind(b"\n") + 1
            data, rest = (rest + piece[:cut], piece[cut:]) if cut else (b"", (rest + piece)[: 2 * (MOST_LINE + 2)])
            if data:
                records, left = self._found(data, at_end=False)
                rest = left + rest
                yield records
        if rest:
            yield self._found(rest, at_end=True)[0]

    def _found(self, data: bytes, at_end: bool) -> tuple[Records, bytes]:
        """The records in the data, and what may go on after it."""
        array = np.frombuffer(data, dtype=np.uint8)
        if not self._multiline:
            return (array, *lines(array)), b""
        most = np.count_nonzero(array == LF) + 1
        starts, ends = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
        found, taken = self._splitter.joined(array, at_end, starts, ends)
        return (array, starts[:found], ends[:found]), data[taken:]

    def _pieces(self, path: Path) -> Iterator[bytes]:
        """The bytes after the header."""
        with pyarrow.OSFile(str(path)) as file:
            before = self._read
            unpacked = file if path.suffix not in PACKED else pyarrow.CompressedInputStream(file, PACKED[path.suffix])
            piece = first_line(unpacked)[1] or unpacked.read(BLOCK)
            while piece:
                self._read = before + file.tell()
                yield piece
                piece = unpacked.read(BLOCK)
            self._read = before + file.tell()

    def _batch(self, path: Path, line: int, *records: Any) -> Any:
        batch, bad = self._splitter.batch(*records)
        if bad >= 0 and not self._leave_out:
            raise _NoRow(f"line {line + bad:,} of {path.name!r} {NO_ROW}")
        return batch


def first_line(file: Any) -> tuple[bytes, bytes]:
    """The header, without a BOM and without its end; and what was read after it."""
    read = b""
    while b"\n" not in read and len(read) < MAX_HEADER and (more := file.read(HEADER_PIECE)):
        read += more
    if b"\n" not in read and len(read) >= MAX_HEADER:
        raise OSError("the first line is longer than a header may be")
    header, _, after = read.partition(b"\n")
    return header.removeprefix(BOM).removesuffix(b"\r"), after
