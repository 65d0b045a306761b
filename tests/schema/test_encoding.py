"""Encoding: one behaviour for declared, undeclared and missing values, whatever the table is made of; it never raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import schemas, small_schema, small_table, tables

from hedgerow.engines.files import TableFile
from hedgerow.errors import SchemaError, TableError
from hedgerow.schema.attributes import Categorical, Numeric, Target, is_missing, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema


def code_by_definition(attribute: Categorical | Numeric, bins: int, value: Any) -> int:
    """The documented behaviour, written out for one value."""
    if isinstance(attribute, Categorical):
        domain = [text_of(v) for v in attribute.domain]
        stop = len(domain)
        other = domain.index(attribute.other) if attribute.other is not None else stop
        missing = domain.index(attribute.missing) if attribute.missing is not None else other
        declared = [text_of(v) for v in attribute.values]
        if is_missing(value):
            return missing
        return declared.index(text_of(value)) if text_of(value) in declared else other
    edges = attribute.cell_edges(bins)
    try:
        number = float("nan") if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if number != number:
        return len(edges) - 1
    return sum(number >= edge for edge in edges[1:-1])


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_any_value_has_its_documented_code(data: Any) -> None:
    schema = data.draw(schemas())
    codebook = Codebook(schema, data.draw(st.integers(1, 7)))
    columns, labels = data.draw(tables(schema))
    codes = codebook.encode({name: np.array([*column, None], dtype=object)[:-1] for name, column in columns.items()})
    for j, attribute in enumerate(schema.attributes):
        wanted = [code_by_definition(attribute, codebook.bins, value) for value in columns[attribute.name]]
        assert codes[:, j].tolist() == wanted
    assert (codes <= np.array(codebook.sizes)).all()
    declared = [text_of(c) for c in schema.target.classes]
    wanted = [declared.index(text_of(y)) if y is not None and text_of(y) in declared else len(declared) for y in labels]
    assert codebook.encode_classes(np.array([*labels, None], dtype=object)[:-1]).tolist() == wanted


def frames(columns: dict[str, np.ndarray]) -> dict[str, Any]:
    frame = pd.DataFrame(columns)
    return {
        "pandas": frame,
        "pandas nullable": frame.convert_dtypes(),
        "pandas category": frame.assign(colour=frame["colour"].astype("category")),
        "polars": pl.DataFrame(columns),
        "polars category": pl.DataFrame(columns).with_columns(pl.col("colour").cast(pl.Categorical)),
        "pyarrow": pa.table(columns),
        "pyarrow dictionary": pa.table({**columns, "colour": pa.array(columns["colour"]).dictionary_encode()}),
        "array": frame.to_numpy(dtype=object),
        "mapping of lists": {name: column.tolist() for name, column in columns.items()},
    }


@pytest.mark.parametrize("kind", list(frames(small_table(2)[0])))
def test_every_kind_of_table_gives_the_same_codes(kind: str) -> None:
    columns, _ = small_table(500)
    codebook = Codebook(small_schema())
    assert np.array_equal(codebook.encode(frames(columns)[kind]), codebook.encode(columns))


def test_missing_cells_are_the_same_everywhere() -> None:
    codebook = Codebook(small_schema())
    columns = {"colour": ["red", None, ""], "flag": [1.0, None, 0.0], "age": [5.0, None, 99.0], "shape": ["flat", None, ""]}
    wanted = codebook.encode(columns)
    for table in (pd.DataFrame(columns), pd.DataFrame(columns).convert_dtypes(), pl.DataFrame(columns), pa.table(columns)):
        assert np.array_equal(codebook.encode(table), wanted)


def write_csv(path: Path, columns: dict[str, Any]) -> None:
    pd.DataFrame(columns).to_csv(path, index=False)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet", "rows.tsv"])
def test_files_give_the_same_codes(name: str, tmp_path: Path) -> None:
    columns, labels = small_table(400)
    frame = pd.DataFrame({**columns, "class": labels, "note": 'a, "quoted" text'})
    path = tmp_path / name
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if name.endswith(".tsv") else ",")
    codebook = Codebook(small_schema())
    file = TableFile(path, ["colour", "class"])
    assert np.array_equal(file.codes(codebook), codebook.encode(columns))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_csv_and_memory_agree_on_any_text(data: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    schema = data.draw(schemas())
    columns, _ = data.draw(tables(schema))
    text = {name: [None if is_missing(v) else str(v) for v in column] for name, column in columns.items()}
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    frame = pd.DataFrame(text, dtype=object)
    if any("\r" in (v or "") or "\n" in (v or "") for column in text.values() for v in column) or len(frame) == 0:
        return  # line breaks inside cells are left to the CSV reader's own rules
    if any(set(name) & set('",;|\t\r\n') or name != name.strip() for name in text):
        return
    frame.to_csv(path, index=False)
    codebook = Codebook(schema)
    got = TableFile(path, list(schema.names)).codes(codebook)
    wanted = codebook.encode({name: np.array([*column, None], dtype=object)[:-1] for name, column in text.items()})
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float32, np.float64, object, str])
def test_numeric_arrays_of_any_dtype(dtype: Any) -> None:
    codebook = Codebook(Schema([Categorical("a", [0, 1, 2, 100], other="more"), Numeric("b", 0, 100)], Target("y", [0, 1])))
    table = np.array([[0, 0], [2, 50], [100, 100], [7, 99]]).astype(dtype)
    assert codebook.encode(table).tolist() == [[0, 0], [2, 2], [3, 4], [4, 4]]


def test_extreme_integers_do_not_wrap_into_the_domain() -> None:
    codebook = Codebook(Schema([Categorical("a", [-5, 0, 5])], Target("y", [0, 1])))
    extremes = np.array([[np.iinfo(np.int64).min], [np.iinfo(np.int64).max], [-6], [6]])
    assert codebook.encode(extremes).ravel().tolist() == [3, 3, 3, 3]
    assert codebook.encode(np.array([[2**64 - 5]], dtype=np.uint64)).ravel().tolist() == [3]


def test_wide_integer_domains_are_searched() -> None:
    codebook = Codebook(Schema([Categorical("zip", [10, 99_999, 10**12])], Target("y", [0, 1])))
    assert codebook.encode(np.array([[10], [11], [99_999], [10**12]])).ravel().tolist() == [0, 3, 1, 2]


TEXTS = st.text(alphabet="ab\0é\U0001f600 0.-truefalTRUEFAL", max_size=6)


@settings(max_examples=200)
@example(["\0ab"], [""], "<")
@given(st.lists(TEXTS, min_size=1, max_size=9, unique_by=text_of), st.lists(TEXTS, max_size=20), st.sampled_from("<>"))
def test_arrays_of_text_have_the_code_of_each_text_by_itself(declared: list[str], values: list[str], order: str) -> None:
    """Longer and shorter than any that is declared, spelled otherwise, with a zero inside, in either order of bytes."""
    attribute = Categorical("a", [text for text in declared if text] or ["a"], other="another one", missing="none")
    (coder, _) = Codebook(Schema([attribute], Target("c", [0, 1]))).coders
    block = np.array([*values, *declared, ""]).astype(f"{order}U9")
    assert coder.encode(block).tolist() == [code_by_definition(attribute, 1, text) for text in block.tolist()]
    assert coder.encode(block[::-2]).tolist() == [code_by_definition(attribute, 1, text) for text in block[::-2].tolist()]
    assert coder.encode(block[:0]).tolist() == []


def test_many_texts_are_told_apart() -> None:
    names = [f"place {number}" for number in range(3_000)]
    (coder, _) = Codebook(Schema([Categorical("a", names, other="another")], Target("c", [0, 1]))).coders
    assert coder.encode(np.array([*names, "place 3000", "place", "place 12 ", ""])).tolist() == [*range(3_000), *[3_000] * 4]


@pytest.mark.parametrize("many", [10, 20_000])
def test_a_long_text_needs_no_room_for_all(many: int) -> None:
    """A table of all declared texts, each as wide as the longest, would have needed gigabytes."""
    names = [*(f"v{number}" for number in range(many)), "z" * 100_000, "y" * 64, "x" * 65]
    (coder, _) = Codebook(Schema([Categorical("a", names)], Target("c", [0, 1]))).coders
    assert coder.encode(np.array(["v2", "y" * 64, "x" * 65, "v", "z" * 99])).tolist() == [2, many + 1, many + 2, many + 3, many + 3]
    assert sum(array.nbytes for array in coder._declared_texts) < 1 << 22  # type: ignore[attr-defined]


def test_labels_of_any_type() -> None:
    for classes in ([1, 2], [-1, 1], [True, False], ["a", "b"], [0.5, 1.5]):
        codebook = Codebook(Schema([Numeric("a", 0, 1)], Target("y", classes)))
        for labels in (np.array(classes), pd.Series(classes), pl.Series(classes), pa.chunked_array([classes]), list(classes)):
            assert codebook.encode_classes(labels).tolist() == [0, 1]


def test_errors_name_declared_columns_only() -> None:
    codebook = Codebook(small_schema())
    with pytest.raises(TableError, match="flag, age, shape are missing") as raised:
        codebook.encode(pd.DataFrame({"colour": ["red"], "secret-column": ["Ann"]}))
    assert "secret" not in str(raised.value)
    with pytest.raises(TableError, match="one column for each"):
        codebook.encode(np.zeros((3, 2)))
    with pytest.raises(TableError, match="same number of rows"):
        codebook.encode({"colour": ["red"], "flag": [1, 0], "age": [1], "shape": ["flat"]})


def test_a_headerless_file_does_not_show_its_first_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("Ann,1,44,round,yes\nBob,0,50,flat,no\n")
    with pytest.raises(TableError) as raised:
        TableFile(path, ["colour", "flag"])
    assert "Ann" not in str(raised.value)


def test_a_damaged_file_is_reported_without_its_values(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1 Ann Smith PAR1")
    with pytest.raises(TableError, match="Parquet") as raised:
        TableFile(path, ["colour"])
    assert "Ann" not in str(raised.value)
    with pytest.raises(TableError, match="no such file"):
        TableFile(tmp_path / "none.csv", ["colour"])


def test_zstandard_csv(tmp_path: Path) -> None:
    columns, _ = small_table(50)
    write_csv(tmp_path / "rows.csv", columns)
    source, target = str(tmp_path / "rows.csv"), str(tmp_path / "rows.csv.zst")
    duckdb.sql(f"COPY (SELECT * FROM read_csv('{source}', all_varchar = true)) TO '{target}' (HEADER, COMPRESSION zstd)")
    codebook = Codebook(small_schema())
    assert np.array_equal(TableFile(target, ["age"]).codes(codebook), codebook.encode(columns))


@pytest.mark.parametrize("bins", [0, -1, 1.5, True, 10**6, "5"])
def test_bad_bins(bins: Any) -> None:
    with pytest.raises(SchemaError, match="bins"):
        Codebook(small_schema(), bins)
