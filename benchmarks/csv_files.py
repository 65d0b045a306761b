"""CSV files: our line-by-line splitter beside DuckDB's CSV reader, which lets a quote take lines along. The same encoding, the same counts.

Half of the columns are categories, half numbers; plain, quoted throughout, and packed. Each job is one pass that counts random trees.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tests import exact as exact_answers

from benchmarks.measure import Line, at_most, fastest
from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.engines.connection import connected
from hedgerow.engines.encoding_sql import quoted
from hedgerow.engines.files import TableFile
from hedgerow.engines.opening import open_place
from hedgerow.engines.streamed import StreamedRows
from hedgerow.schema.codebook import Codebook

ROWS, QUICK_ROWS = 1_000_000, 100_000
COLOURS = ["red", "green", "blue", "violet"]
SCHEMA = Schema(
    [*(Categorical(f"c{i}", COLOURS) for i in range(8)), *(Numeric(f"x{i}", 0, 100) for i in range(8))], Target("y", ["yes", "no"])
)
NAMES = [*SCHEMA.names, "y"]
MOST = 1 / 0.7  # at least 70 % of that reader's throughput
ROUNDS = 5


class DuckDBFile(TableFile):
    """The same file by DuckDB's reader, on one thread, as it must be where quotes may hold line breaks."""

    @contextmanager
    def open(self, threads: int, in_order: bool = False, columns: list[str] | None = None) -> Iterator[tuple[Any, str]]:
        types = ", ".join(f"'column{i}': 'VARCHAR'" for i in range(len(self.columns)))
        with connected(threads, in_order) as connection:
            yield (
                connection,
                (
                    f"read_csv({quoted(str(self.paths[0]))}, auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
                    f"strict_mode = false, null_padding = true, parallel = false, ignore_errors = true, columns = {{{types}}})"
                ),
            )


def write(path: Path, rows: int, quotes: bool) -> None:
    generator = np.random.default_rng(0)
    columns = [generator.choice(COLOURS, rows) for _ in range(8)]
    columns += [np.round(generator.uniform(0, 100, rows), 3).astype(str) for _ in range(8)]
    columns.append(generator.choice(["yes", "no"], rows))
    cell = '"{}"'.format if quotes else str
    lines = [",".join(NAMES), *(",".join(map(cell, row)) for row in zip(*columns, strict=True)), ""]
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)


def run(quick: bool = False) -> list[Line]:
    rows, codebook = QUICK_ROWS if quick else ROWS, Codebook(SCHEMA)
    lines = []
    with tempfile.TemporaryDirectory(prefix="hedgerow-csv-") as folder:
        for name, threads in (("plain.csv", 1), ("plain.csv", 2), ("quoted.csv", 1), ("packed.csv.gz", 1)):
            path = Path(folder) / name
            if not path.exists():
                write(path, rows, quotes=name == "quoted.csv")

            def ours(path: Path = path, threads: int = threads) -> int:
                return exact_answers.count_rows(open_place(path, codebook, threads))

            def theirs(path: Path = path, threads: int = threads) -> int:
                return exact_answers.count_rows(StreamedRows(DuckDBFile(path, NAMES, leave_out_unreadable=True), codebook, threads))

            assert ours() == theirs() == rows
            times = fastest({"ours": ours, "theirs": theirs}, 1 if quick else ROUNDS)
            best = times.best
            size = path.stat().st_size / 1e6
            what = f"{name} ({size:.0f} MB, {rows:,} rows × {len(NAMES)}), {threads} thread{'s' if threads > 1 else ''}"
            speed = {name: f"{rows / taken:,.0f} rows/s" for name, taken in best.items()}
            line = at_most(what, speed["ours"], f"DuckDB's reader {speed['theirs']}", best["ours"] / best["theirs"], MOST)
            lines.append(line.timed(times.others))
    return lines
