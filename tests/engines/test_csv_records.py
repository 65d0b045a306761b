"""A line of a CSV is a record, and what one record holds changes no other row. PROOF.md, E1.

Neighbouring files are made by adding the bytes of one record, whatever they are, anywhere in a file. Both are read by the engines' own
path; the encoded tables may differ by that record alone.
"""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hedgerow import CSVTable, PrivateRDTClassifier, Release
from hedgerow.engines import csv_reader, csv_split
from hedgerow.engines.encoding_sql import Encoding
from hedgerow.engines.files import SEVERAL_LINES, TableFile
from hedgerow.engines.opening import open_place
from hedgerow.engines.spark_work import split_lines
from hedgerow.errors import SchemaError, TableError
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.csv_dialect import CSVDialect, header_cells
from hedgerow.schema.schema import Schema

SCHEMA = Schema(
    [Categorical("a", ["x", "né", 'q"q', "d,d"], other="other", missing="gone"), Numeric("b", 0, 10, missing="none")],
    Target("y", ["n", "é"]),
)
CODEBOOK = Codebook(SCHEMA)
NEEDED = ["id", "a", "b", "y"]
DIALECTS = (
    CSVDialect(),
    CSVDialect(delimiter=","),
    CSVDialect(delimiter=";"),
    CSVDialect(delimiter="\t", quote=None),
    CSVDialect(delimiter="|", quote="'"),
    CSVDialect(escape="\\"),
    CSVDialect(delimiter=" ", quote='"', escape="^"),
    CSVDialect(quote=None, escape="\\"),
)


def delimiter_of(dialect: CSVDialect) -> str:
    return dialect.delimiter or ","


def written(row: list[str], dialect: CSVDialect) -> bytes:
    """A row as a careful program writes it in this dialect."""
    delimiter, cells = delimiter_of(dialect), []
    for text in row:
        if dialect.escape is not None:
            marks = {delimiter, dialect.quote, dialect.escape, " "} - {None}
            cells.append("".join(f"{dialect.escape}{c}" if c in marks else c for c in text))
        elif dialect.quote is not None and (set(text) & {delimiter, dialect.quote, " "}):
            cells.append(dialect.quote + text.replace(dialect.quote, 2 * dialect.quote) + dialect.quote)
        else:
            cells.append(text)
    return delimiter.join(cells).encode()


def rows_of(path: Path, dialect: CSVDialect) -> Counter[tuple[Any, ...]]:
    """The table as the engines see it: whose row, codes, class."""
    file = TableFile(path, NEEDED, leave_out_unreadable=True, dialect=dialect)
    encoding = Encoding(CODEBOOK, file.columns, file.sql_name)
    with file.open(1) as (connection, relation):
        batch = connection.sql(encoding.select(relation, file.sql_name("id"))).to_arrow_table().combine_chunks()
    codes, classes = encoding.decode(batch.to_batches()[0]) if batch.num_rows else (CODEBOOK.encode({"a": [], "b": []}), np.empty(0))
    ids = batch.column(batch.num_columns - 1).to_numpy()
    return Counter(zip(ids.tolist(), map(tuple, codes.tolist()), classes.tolist(), strict=True))


# What a record may hold: pieces that have broken parsers, and any bytes at all but LF, which would make it two.
MARKS = [b'"', b"'", b"\\", b"^", b",", b";", b"\t", b"|", b" ", b"\r", b"\0", b'\\"', b'""']
STRANGE = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf"]
PIECES = st.one_of(st.sampled_from([*MARKS, *STRANGE, b"x", b"1", "né".encode(), b"7", b"long" * 500]), st.binary(max_size=4))
RECORDS = st.lists(PIECES, max_size=12).map(lambda pieces: b"".join(pieces).replace(b"\n", b""))
SOUND = st.lists(st.tuples(*map(st.sampled_from, (["p1", "p2", ""], ["x", "né", "strange"], ["1", "9", ""], ["n", "é"]))), max_size=8)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(DIALECTS), SOUND, RECORDS, st.integers(0, 8), st.booleans(), st.booleans(), st.sampled_from([7, 64, 1 << 20]))
@example(CSVDialect(), [("p1", "x", "1", "n")] * 3, b'p9,"x\\"",1,n', 1, False, True, 1 << 20)  # escaped by a backslash
@example(CSVDialect(), [("p1", "x", "1", "n")] * 3, b"p9,x,1,n\r", 1, False, True, 1 << 20)
@example(CSVDialect(), [("p1", "x", "1", "n")] * 3, b"p9,x,1\r,n", 1, False, True, 1 << 20)
@example(CSVDialect(), [("p1", "x", "1", "n")] * 3, b"\r" * 1000, 1, False, True, 1 << 20)
@example(CSVDialect(), [("p1", "x", "1", "n")] * 3, b'p9,x,1,n,"', 3, True, False, 1 << 20)
def test_the_bytes_of_one_record_change_no_other_row(
    tmp_path_factory: pytest.TempPathFactory,
    dialect: CSVDialect,
    sound: list[tuple[str, ...]],
    record: bytes,
    place: int,
    crlf: bool,
    end: bool,
    block: int,
) -> None:
    lines = [written(list(row), dialect) for row in sound]
    place = min(place, len(lines))
    newline = b"\r\n" if crlf else b"\n"
    folder = tmp_path_factory.mktemp("files")
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_reader, "BLOCK", block)  # where blocks are cut must not matter
        for name, records in (("with", [*lines[:place], record, *lines[place:]]), ("without", lines)):
            path = folder / f"{name}.csv"
            more = b"u" + delimiter_of(dialect).encode()  # a cell of a column that is not declared
            path.write_bytes(newline.join([written(["more", *NEEDED], dialect), *(more + each for each in records)]))
            if end:
                path.write_bytes(path.read_bytes() + newline)
            found.append(rows_of(path, dialect))
    with_record, without = found
    assert without - with_record == Counter()  # nobody else's row is gone, moved or changed
    assert (with_record - without).total() <= 1
    assert without.total() == len(sound)


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_a_cell_that_is_escaped_otherwise_takes_no_other_row_along(tmp_path: Path, packed: str) -> None:
    lines = ["id,note,a,b,y", *(f'p{i},"plain",x,{i % 10},n' for i in range(20_000))]
    at = {}
    for name, more in (("without", []), ("with", ['p,"ends with \\"",x,1,n'])):
        data = "\n".join([*lines[:3_000], *more, *lines[3_000:], ""]).encode()
        path = tmp_path / f"{name}.csv{packed}"
        path.write_bytes(gzip.compress(data) if packed == ".gz" else pa.compress(data, "zstd", asbytes=True) if packed else data)
        at[name] = len(TableFile(path, NEEDED, leave_out_unreadable=True).read(CODEBOOK)[0])
    assert at == {"without": 20_000, "with": 20_000}


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.sampled_from(DIALECTS), RECORDS)
def test_the_compiled_splitter_follows_the_rules_that_read_the_header(dialect: CSVDialect, record: bytes) -> None:
    columns, delimiter = ["c0", "c1", "c2"], delimiter_of(dialect)
    data = np.frombuffer(b"before\n" + record + b"\n" + b'"after', dtype=np.uint8)
    batch, _ = csv_split.Splitter(columns, columns, dialect, delimiter).batch(data, np.array([7]), np.array([7 + len(record)]))
    line = record.removesuffix(b"\r").decode("utf-8", "surrogateescape")
    cells = header_cells(line, dialect, delimiter) if line else None
    expected = []
    if cells is not None and not any(cells[3:]):
        first = (cells + [""] * 3)[:3]
        if all(cell.isprintable() or _is_text(cell) for cell in first):
            expected = [tuple(cell or None for cell in first)]
    assert list(zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)) == expected


def _is_text(cell: str) -> bool:
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_program_writes_in_a_dialect_is_read_in_it(tmp_path: Path, dialect: CSVDialect) -> None:
    rows = [["p1", 'q"q', "1", "é"], ["p2", "d,d", "9.5", "n"], ["p 3", "x", "", "é"]]
    if dialect.quote is None and dialect.escape is None:
        rows = [[cell.replace("\t", " ") for cell in row] for row in rows]
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([written(NEEDED, dialect), *(written(row, dialect) for row in rows)]))
    found = TableFile(path, NEEDED, dialect=dialect).text_columns(NEEDED)
    assert [list(row) for row in zip(*(found[name] for name in NEEDED), strict=True)] == [[cell or None for cell in row] for row in rows]


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (b'"x" ,1,n', [("x", "1", "n")]),
        (b' "x, y",1,n', [("x, y", "1", "n")]),
        (b'5" pipe,1,n', [('5" pipe', "1", "n")]),
        (b"x,1", [("x", "1", None)]),
        (b"x,1,n,,", [("x", "1", "n")]),
        (b"x,1,n,more", []),
        (b'"x"y,1,n', []),
        (b'"x,1,n', []),
        (b"", []),
        (b"\r", []),
        (b"x\0,1,n", [("x\0", "1", "n")]),
        (b"x\r,1,n", [("x\r", "1", "n")]),
        (b"\xff,1,n", []),
        ("\ufeffx,1,n".encode(), [("\ufeffx", "1", "n")]),
        (b"\xf4\x90\x80\x80,1,n", []),
        (b"\xf4\x8f\xbf\xbf,1,n", [("\U0010ffff", "1", "n")]),
        (b"x" * (csv_split.MOST_LINE - 4) + b",1,n", [("x" * (csv_split.MOST_LINE - 4), "1", "n")]),
        (b"x" * (csv_split.MOST_LINE - 3) + b",1,n", []),
        (b"x" * (3 * csv_split.MOST_LINE), []),
    ],
)
def test_what_a_line_is(tmp_path: Path, line: bytes, cells: list[tuple[str | None, ...]]) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b,y\nx,0,n\n" + line + b"\nx,9,n\n")
    names = ["a", "b", "y"]
    found = TableFile(path, names, leave_out_unreadable=True).text_columns(names)
    assert list(zip(*(found[name] for name in names), strict=True)) == [("x", "0", "n"), *cells, ("x", "9", "n")]
    if not cells and line.strip(b"\r"):
        with pytest.raises(TableError, match=r"line 3 of 'rows\.csv' is no row"):  # where every row needs an answer
            TableFile(path, names).text_columns(names)


def test_the_first_line_that_is_no_row_is_told_whichever_block_is_split_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n" + b"x,1\n" * 3 + b"x,1,2,3\n" + b"x,1\n" * 2000 + b'"\n' * 5000)
    batch, later = csv_reader.CSVReader._batch, threading.Event()

    def slow_at_first(reader: Any, path: Path, line: int, *records: Any) -> Any:
        if line == 2:
            later.wait(180)  # until another block has found its own
        try:
            return batch(reader, path, line, *records)
        finally:
            if line > 2:
                later.set()

    monkeypatch.setattr(csv_reader.CSVReader, "_batch", slow_at_first)
    with pytest.raises(TableError, match=r"line 5 of 'rows\.csv' is no row"):
        TableFile(path, ["a", "b"]).text_columns(["a", "b"])
    assert later.is_set()


def test_an_empty_line_is_a_missing_value_where_there_is_one_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a\r\nx\r\n\r\nx\r\n")
    assert TableFile(path, ["a"]).text_columns(["a"])["a"].tolist() == ["x", None, "x"]


MULTILINE = b'a,b,y\n"line\nend, ""quoted""\n",1,n\nx,2,n\nx,"open\nx,3,n\nx,4,n\n'


@pytest.mark.parametrize("block", [5, 1 << 20])
def test_cells_over_several_lines_only_where_they_are_declared(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK", block)
    path = tmp_path / "rows.csv"
    path.write_bytes(MULTILINE)
    names = ["a", "b"]

    def found(dialect: CSVDialect) -> list[Any]:
        columns = TableFile(path, names, leave_out_unreadable=True, dialect=dialect).text_columns(names)
        return list(zip(*columns.values(), strict=True))

    assert found(CSVDialect()) == [("x", "2"), ("x", "3"), ("x", "4")]
    # What is never closed is left out with its line alone.
    assert found(CSVDialect(multiline=True)) == [('line\nend, "quoted"\n', "1"), ("x", "2"), ("x", "3"), ("x", "4")]


def test_of_a_long_line_after_an_open_quote_no_part_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quote is open for longer than a record may be, so that its line is left out; so is the long line, whose end comes later."""
    monkeypatch.setattr(csv_reader, "BLOCK", 1 << 16)
    path = tmp_path / "rows.csv"
    before = b'a,b\n"open\n'
    before += b"x" * (33 * csv_reader.BLOCK - len(before))  # a line longer than MOST_LINE, and the next block begins with its end
    path.write_bytes(before + b",7\nx,1\n")
    dialect = CSVDialect(multiline=True)
    found = TableFile(path, ["a", "b"], leave_out_unreadable=True, dialect=dialect).text_columns(["b"])["b"]
    assert found.tolist() == ["1"]


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"", b"x"])
def test_short_lines_of_a_wide_table_are_split_some_at_a_time(tmp_path: Path, line: bytes) -> None:
    columns = [f"c{i}" for i in range(3000)]
    path = tmp_path / "rows.csv"
    path.write_bytes(",".join(columns).encode() + b"\n" + (line + b"\n") * 4000)
    reader = csv_reader.CSVReader([path], columns, columns, CSVDialect(), ",", leave_out=True)
    batches = list(reader.stream(2))
    assert sum(batch.num_rows for batch in batches) == (4000 if line else 0)
    assert max(batch.num_rows for batch in batches) * len(columns) <= csv_split.MOST_CELLS
    assert len(batches) > 1


@pytest.mark.parametrize(
    "content",
    [
        b"a,b,more\rx,1,2\rx,2,3\r",  # no LF at all: all rows would stand in the header
        b"a,b,more\r\r\nx,1,2\r\r\n",
        b"a,b," + b"more," * (1 << 18) + b"more\nx,1\n",  # the rest of the header would be a row
    ],
)
def test_what_is_no_header_is_refused_before_anything_is_paid(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match="header"):
        TableFile(path, ["a", "b"], leave_out_unreadable=True)


def test_ctrl_c_while_records_are_read_is_no_error_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id,a,b,y\n" + b"p,x,1,n\n" * 50)
    pieces = csv_reader.CSVReader._pieces

    def told_to_end(reader: Any, path: Path) -> Any:
        yield from pieces(reader, path)
        raise KeyboardInterrupt  # as Ctrl-C does it here; where tests run in the background, the signal would be ignored

    monkeypatch.setattr(csv_reader.CSVReader, "_pieces", told_to_end)
    with pytest.raises(KeyboardInterrupt):
        PrivateRDTClassifier(Schema(SCHEMA.attributes, SCHEMA.target, person="id"), 1, n_estimators=1, n_jobs=1).fit(path)
    with pytest.raises(KeyboardInterrupt):
        TableFile(path, NEEDED).text_columns(NEEDED)


def test_a_certificate_says_that_cells_go_over_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b,y\n" + b"x,1,n\n" * 50 + "x,1,é\n".encode() * 50)
    schema = Schema([Categorical("a", ["x", "z"]), Numeric("b", 0, 10)], Target("y", ["n", "é"]))

    def trained(table: Any, declared: Schema = schema) -> Release:
        return PrivateRDTClassifier(declared, 1, n_estimators=1).fit(table).release_

    usual = trained(path)
    declared = Schema(schema.attributes, schema.target, csv=CSVDialect(multiline=True))
    for release in (trained(CSVTable(path, multiline=True)), trained(path, declared)):
        assert SEVERAL_LINES in " ".join(release.certificate.assumptions)
        assert SEVERAL_LINES not in " ".join(usual.certificate.assumptions)
        assert release.schema == usual.schema  # how a file is written is no public fact about its rows
    assert trained(CSVTable(path)).certificate.assumptions == usual.certificate.assumptions


def test_declared_values_that_no_line_can_hold_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,y\n")
    schema = Schema([Categorical("a", ["x", "two\nlines"])], Target("y", ["n", "é"]))
    with pytest.raises(TableError, match="multiline"):
        open_place(path, Codebook(schema))
    open_place(CSVTable(path, multiline=True), Codebook(schema)).close()


def test_a_dialect_is_declared_in_the_schema(tmp_path: Path) -> None:
    dialect = CSVDialect(delimiter=";", quote="'", escape="\\", multiline=True)
    schema = Schema(SCHEMA.attributes, SCHEMA.target, csv=dialect)
    assert Schema.from_toml(schema.to_toml()).csv == dialect
    assert Schema.from_toml(SCHEMA.to_toml()).csv is None
    assert "[csv]" in schema.to_toml()
    for text in ("delimiter = 5", 'quote = "ab"', 'newline = "x"', "multiline = 1", 'delimiter = "\\n"'):
        with pytest.raises(SchemaError, match="csv"):
            Schema.from_toml(f"{SCHEMA.to_toml()}\n[csv]\n{text}")
    with pytest.raises(SchemaError, match="csv"):
        Schema.from_toml(f"csv = 3\n{SCHEMA.to_toml()}")


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("delimiter=; escape=\\ multiline", CSVDialect(";", '"', "\\", True)),
        ("quote=none delimiter=tab", CSVDialect("\t", None)),
        ("delimiter=space quote='", CSVDialect(" ", "'")),
        ("", CSVDialect()),
    ],
)
def test_a_dialect_in_an_option(text: str, dialect: CSVDialect) -> None:
    assert CSVDialect.of_text(text) == dialect
    assert asdict(CSVDialect.of_plain(dialect.to_plain())) == asdict(dialect)


@pytest.mark.parametrize(
    "text",
    ["delimiter", "multiline=yes", "quote=ab", "delimiter=; delimiter=,", "newline=x", "quote=, delimiter=,", "quote=none multiline"],
)
def test_an_option_that_is_no_dialect(text: str) -> None:
    with pytest.raises(SchemaError, match="csv"):
        CSVDialect.of_text(text)


@pytest.mark.slow
def test_executors_of_spark_split_lines_in_the_same_way() -> None:
    header = "né,b".encode()
    lines = [b"\xef\xbb\xbf" + header, b"x,1\r", b'"x,2', b'"x, y",3', header + b"\r", b"\xff,4", b"", b"z\rz,5"]
    array = pa.Array.from_buffers(pa.string(), len(lines), pa.array(lines, type=pa.binary()).buffers())
    batches = [pa.record_batch({"value": array}), pa.record_batch({"value": array[3:]}), pa.record_batch({"value": array[:0]})]
    split: Callable[..., Any] = split_lines
    import hedgerow

    found = [batch.to_pydict() for batch in split(hedgerow.__version__, header, 2, CSVDialect(), ",", batches)]
    assert found[0] == {"column0": ["x", "x, y", "z\rz"], "column1": ["1", "3", "5"]}
    assert found[1] == {"column0": ["x, y", "z\rz"], "column1": ["3", "5"]}
    assert found[2] == {"column0": [], "column1": []}
