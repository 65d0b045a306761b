"""The store of at most k rows of each person, larger than memory: what it keeps, what it leaves behind, and how it fails."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from hedgerow.engines.encoding_sql import Encoding
from hedgerow.engines.person_ids import person_numbers
from hedgerow.engines.person_store import PersonStore, _rows_batch, bytes_of, row_width, rows_of
from hedgerow.engines.persons import limited
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema

KEY = bytes(range(16))
BOOK = Codebook(Schema([Categorical("a", ("x", "y", "z"))], Target("c", ("0", "1")), person="who", rows_per_person=2))
COLUMNS = {"a": "VARCHAR", "c": "VARCHAR", "who": "VARCHAR"}
N = 60
RNG = np.random.default_rng(4)
TABLE = pa.table({
    "a": RNG.choice(["x", "y", "z", "other"], N), "c": RNG.choice(["0", "1"], N), "who": RNG.choice(["p", "q", "r", "s", ""], N),
})  # fmt: skip


def quoted(name: str) -> str:
    return f'"{name}"'


def store_and_reader(rows_at_once: int = 7) -> tuple[PersonStore, Encoding, Any]:
    encoding, store = Encoding(BOOK, COLUMNS, quoted), PersonStore(BOOK, COLUMNS, quoted, KEY)
    connection = duckdb.connect()
    connection.register("t", TABLE)
    reader = connection.sql(f"SELECT {', '.join([*encoding.expressions, store.expression])} FROM t").to_arrow_reader(rows_at_once)
    return store, encoding, reader


def tally(codes: np.ndarray, classes: np.ndarray) -> Counter[Any]:
    return Counter(zip(map(tuple, codes.tolist()), classes.tolist(), strict=True))


def names_in(connection: Any) -> set[str]:
    return {name for (name,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}


def test_what_is_kept_is_what_is_kept_in_memory_and_nothing_else_is_left() -> None:
    store, encoding, reader = store_and_reader()
    assert not store.filled
    store.fill(reader, encoding, 1)
    assert store.filled
    connection, question = store.kept()
    found: Counter[Any] = Counter()
    for batch in connection.sql(question).to_arrow_reader(5):
        found += tally(*store.decode(batch))
    codes = BOOK.encode({"a": np.array(TABLE["a"].to_pylist())})
    classes = BOOK.encode_classes(np.array(TABLE["c"].to_pylist()))
    persons = person_numbers(TABLE["who"])
    assert found == tally(*limited(persons, codes, classes, 2, KEY))
    assert sum(found.values()) == 10  # two of each of five
    assert names_in(connection) == {"kept"}
    taken = store._folder  # held here: nothing but `close` takes it away
    assert taken is not None
    folder = Path(taken.name)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "rows.duckdb").exists()
    store.close()
    assert not store.filled
    assert not folder.exists()
    with pytest.raises(duckdb.ConnectionException):
        connection.execute("SELECT 1")
    store.close()  # a second time is no fault


def test_a_database_that_cannot_be_closed_does_not_keep_the_folder() -> None:
    class Broken:
        def close(self) -> None:
            raise RuntimeError

    store, encoding, reader = store_and_reader()
    store.fill(reader, encoding, 1)
    assert store._folder is not None
    folder, connection = Path(store._folder.name), store._connection
    store._connection = Broken()
    store.close()
    connection.close()
    assert not folder.exists()


def breaking(reader: Any, error: BaseException) -> Iterator[Any]:
    yield next(iter(reader))
    raise error


@pytest.mark.parametrize(
    ("error", "told"), [(ValueError("a value"), duckdb.Error), (KeyboardInterrupt(), KeyboardInterrupt), (SystemExit(3), SystemExit)]
)
def test_rows_that_cannot_be_read_to_their_end_are_not_kept(error: BaseException, told: type[BaseException]) -> None:
    """Half of a table would be another table. An end of the program is told as that."""
    store, encoding, reader = store_and_reader()
    with pytest.raises(told) as raised:
        store.fill(breaking(reader, error), encoding, 1)
    assert not isinstance(raised.value, SystemExit) or raised.value.code == 3
    assert not store.filled
    assert "kept" not in names_in(store._connection)
    store.close()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_rows_as_bytes_sort_as_their_codes_do(dtype: Any) -> None:
    sizes = (200, 90) if dtype == np.uint8 else (400, 90)
    book = Codebook(Schema([Categorical(f"a{j}", tuple(range(size))) for j, size in enumerate(sizes)], Target("c", tuple(range(300)))))
    assert book.dtype == dtype
    assert row_width(book) == 2 * np.dtype(dtype).itemsize + 2
    codes = np.stack([RNG.integers(0, size + 1, 50) for size in sizes], axis=1).astype(dtype)
    classes = RNG.integers(0, 301, 50).astype(np.uint16)
    stored = bytes_of(codes, classes)
    again = rows_of(stored.slice(7, 20), book)
    assert np.array_equal(again[0], codes[7:27])
    assert np.array_equal(again[1], classes[7:27])
    by_bytes = sorted(range(50), key=lambda i: stored[i].as_py())
    assert by_bytes == sorted(range(50), key=lambda i: (*codes[i].tolist(), int(classes[i])))
    assert list(_rows_batch((codes[:0], classes[:0]))) == []
    assert [batch.num_rows for batch in _rows_batch((codes, classes))] == [50]
