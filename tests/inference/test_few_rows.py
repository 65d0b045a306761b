"""What is shown of a few rows is computed without the compiled loops, and is the same to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import small_schema, small_table

from hedgerow.engines import csv_compiled, csv_loops
from hedgerow.engines.csv_split import Splitter, lines
from hedgerow.estimators.names import PRIVATE, estimator_named
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.coders import NumericCoder, look_up_few
from hedgerow.schema.coding_loops import look_up
from hedgerow.schema.csv_dialect import CSVDialect
from hedgerow.trees.additive_loops import exp_minus
from hedgerow.trees.few_rows import exp_minus as few_exp_minus
from hedgerow.trees.few_rows import few_margins, margins_to_show, route_few
from hedgerow.trees.routing import route


@pytest.mark.parametrize("name", PRIVATE)
def test_votes_are_the_same_to_the_last_bit(name: str) -> None:
    X, y = small_table(3000)
    release = estimator_named(name)(small_schema(), 3).fit(X, y).release_
    codes = release.codebook.encode(small_table(500, seed=1)[0])
    codes[::7, 0] = release.codebook.sizes[0]  # a value that has no branch
    assert np.array_equal(release.predict_few(codes), release.predict_codes_proba(codes))
    if name == "hedgerow":
        model = release.additive.model
        assert np.array_equal(few_margins(model, codes), model.margins(codes))
        assert np.array_equal(margins_to_show(model, codes[:3]), model.margins(codes)[:3])
    for tree in release.forest.trees:
        assert np.array_equal(route_few(tree, codes), route(tree, codes))


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(st.floats(0, 800), min_size=1, max_size=50))
def test_exponentials(values: list[float]) -> None:
    assert few_exp_minus(np.array(values)).tolist() == [exp_minus(value) for value in values]


@settings(max_examples=100)
@given(
    st.lists(st.one_of(st.floats(), st.integers(-200, 200).map(float)), min_size=1, max_size=50),
    st.integers(-100, 100), st.integers(1, 100), st.integers(1, 40),
)  # fmt: skip
def test_cells(values: list[float], low: int, width: int, bins: int) -> None:
    coder = NumericCoder(Numeric("x", low, low + width), bins)
    found = np.empty((2, len(values)), dtype=np.int32)
    coder.encode_into(np.array(values), found[0])
    coder.encode_few(np.array(values), found[1])
    assert np.array_equal(*found)


@settings(max_examples=100)
@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-9, 9), max_size=50), st.integers(-5, 5), st.integers(1, 9))
def test_looked_up(values: list[int], low: int, size: int) -> None:
    block, table = np.array(values, dtype=np.int64), np.arange(10, 10 + size, dtype=np.int32)
    found = np.empty((2, len(values)), dtype=np.uint8)
    look_up(block, low, table, found[0])
    look_up_few(block, low, table, found[1])
    assert np.array_equal(*found)


SOUP = st.lists(st.sampled_from([b"a", b"\xc3\xa9", b"\xff", b'"', b",", b"\n", b"\r\n", b" ", b"\\", b"0.5", b'""']), max_size=60)


@pytest.mark.slow
@settings(max_examples=300)
@given(SOUP, st.sampled_from([CSVDialect(), CSVDialect(quote=None), CSVDialect(escape="\\")]))
def test_csv_records(soup: list[bytes], dialect: CSVDialect) -> None:
    data = np.frombuffer(b"".join(soup), dtype=np.uint8)
    columns = ["one", "two", "three"]
    plain, compiled = (Splitter(columns, ["three", "one"], dialect, ",", few) for few in (True, False))
    starts, ends = lines(data)
    (mine, bad), (theirs, also_bad) = (splitter.batch(data, starts, ends) for splitter in (plain, compiled))
    assert (mine.to_pydict(), bad) == (theirs.to_pydict(), also_bad)
    most = len(soup) + 2
    found: list[Any] = []
    for splitter in (plain, compiled):
        begin, end = np.zeros((2, most), dtype=np.int64)
        found.append((splitter.joined(data, True, begin, end), begin.tolist(), end.tolist()))
    assert found[0] == found[1]


def test_the_compiled_loops_are_the_plain_ones() -> None:
    for name in ("split", "gather", "joined"):
        assert getattr(csv_compiled, name).py_func is getattr(csv_loops, name)
