"""At most k rows of a person: which are kept, whoever else is in the table and in whatever order it comes; and who is one person."""

from __future__ import annotations

import datetime
import uuid
from collections import Counter, defaultdict
from decimal import Decimal
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow import slow_but

from hedgerow.engines import persons as persons_module
from hedgerow.engines.person_ids import person_changes, person_column, person_numbers, person_sql
from hedgerow.engines.persons import PersonLimit, _is_above, _is_after, _sort_each, keyed_hash, limited
from hedgerow.errors import PlanError, TableError

KEY = bytes(range(16))


def siphash(key: bytes, message: bytes) -> int:
    """SipHash-2-4 as its authors write it, in whole numbers of Python."""
    mask = 2**64 - 1
    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turned(x: int, b: int) -> int:
        return ((x << b) | (x >> (64 - b))) & mask

    def rounds(times: int) -> None:
        for _ in range(times):
            v[0] = (v[0] + v[1]) & mask
            v[1] = turned(v[1], 13) ^ v[0]
            v[0] = turned(v[0], 32)
            v[2] = (v[2] + v[3]) & mask
            v[3] = turned(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & mask
            v[3] = turned(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & mask
            v[1] = turned(v[1], 17) ^ v[2]
            v[2] = turned(v[2], 32)

    whole = len(message) // 8 * 8
    words = [int.from_bytes(message[i : i + 8], "little") for i in range(0, whole, 8)]
    words.append(int.from_bytes(message[whole:], "little") | (len(message) % 256) << 56)
    for word in words:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def rank(key: bytes, codes: Any, label: int, occurrence: int) -> int:
    numbers = [*map(int, codes), int(label)]
    return siphash(key, b"".join(n.to_bytes(2, "little") for n in numbers) + occurrence.to_bytes(8, "little"))


def by_hand(persons: Any, codes: np.ndarray, classes: np.ndarray, k: int, key: bytes) -> Counter[Any]:
    """What is kept, as it is written in words: (person, codes, class), each as often as it is kept."""
    rows = defaultdict(list)
    for person, row, label in zip(persons, codes.tolist(), classes.tolist(), strict=True):
        rows[person].append((tuple(row), label))
    kept: Counter[Any] = Counter()
    for person, own in rows.items():
        seen: Counter[Any] = Counter()
        ranked = []
        for place, (row, label) in enumerate(sorted(own)):
            seen[row, label] += 1
            ranked.append((rank(key, row, label, seen[row, label]), place, row, label))
        kept.update((person, row, label) for _, _, row, label in sorted(ranked)[:k])
    return kept


def as_counts(rows: tuple[np.ndarray, np.ndarray]) -> Counter[Any]:
    codes, classes = rows
    return Counter((tuple(row), label) for row, label in zip(codes.tolist(), classes.tolist(), strict=True))


def streamed(persons: np.ndarray, codes: np.ndarray, classes: np.ndarray, k: int, key: bytes, cuts: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same rows in order, in batches that end at `cuts`."""
    order = np.lexsort((classes, *codes.T[::-1], persons))
    persons, codes, classes = persons[order], codes[order], classes[order]
    new = np.concatenate([[True], persons[1:] != persons[:-1]]) if len(persons) else np.zeros(0, dtype=bool)
    limit = PersonLimit(k, key)
    ends = [0, *sorted(min(cut, len(persons)) for cut in cuts), len(persons)]
    parts = [limit.keep(new[a:b], codes[a:b], classes[a:b]) for a, b in pairwise(ends)]
    parts.append(limit.finish())
    return np.concatenate([c for c, _ in parts if c.shape[1] == codes.shape[1]]), np.concatenate([y for _, y in parts])


def rows_of(seed: int, n: int, persons: int, dtype: Any = np.uint8, values: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, values, (n, 3)).astype(dtype)
    return rng.integers(0, persons, n) ** 2 - 5, codes, rng.integers(0, 3, n).astype(np.uint16)


# ---------------------------------------------------------------- the rank


@pytest.mark.parametrize("length", list(range(10, 64, 2)))
def test_the_rank_is_siphash(length: int) -> None:
    """Of the message 00 01 02 …: the last eight bytes are the occurrence, the two before them the class."""
    message = bytes(range(length))
    numbers = [int.from_bytes(message[i : i + 2], "little") for i in range(0, length - 8, 2)]
    codes = np.array(numbers[:-1], dtype=np.uint16)
    found = keyed_hash(KEY, codes, numbers[-1], int.from_bytes(message[-8:], "little"))
    assert found == siphash(KEY, message)


def test_the_reference_is_siphash_too() -> None:
    """Outputs that its authors have published (of an empty message, of one byte, and of 15 bytes, the example of their paper)."""
    assert siphash(KEY, b"") == 0x726FDB47DD0E0E31
    assert siphash(KEY, bytes(1)) == 0x74F839C593DC67FD
    assert siphash(KEY, bytes(range(15))) == 0xA129CA6149BE45E5
    assert keyed_hash(KEY, np.array([0x0100], np.uint16), 0x0302, 0x0B0A090807060504) == 0x751E8FBC860EE5FB  # 12 bytes


def test_the_rank_does_not_depend_on_how_codes_are_stored() -> None:
    codes = [0, 3, 254]
    assert keyed_hash(KEY, np.array(codes, np.uint8), 1, 1) == keyed_hash(KEY, np.array(codes, np.uint16), 1, 1)


@pytest.mark.parametrize("key", [b"", bytes(15), bytes(17), "0123456789abcdef"])
def test_a_key_has_sixteen_bytes(key: Any) -> None:
    with pytest.raises(PlanError, match="16 random bytes"):
        PersonLimit(1, key)


# ---------------------------------------------------------------- which rows are kept


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("k", slow_but([2, 1000], [1, 2, 3, 7, 1000]))
def test_kept_as_by_hand(k: int, dtype: Any) -> None:
    for seed in range(4):
        persons, codes, classes = rows_of(seed, 300, 20, dtype, values=2 + 200 * (seed % 2))
        expected = by_hand(persons, codes, classes, k, KEY)
        assert as_counts(limited(persons, codes, classes, k, KEY)) == sum_over_persons(expected)
        assert as_counts(streamed(persons, codes, classes, k, KEY, [10, 11, 200])) == sum_over_persons(expected)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_few_rows_are_kept_as_by_hand(k: int) -> None:
    """Person after person and row after row in other batches: nothing of one person may be left for the next."""
    for seed in range(3):
        persons, codes, classes = rows_of(seed, 36, 5, values=2)
        expected = sum_over_persons(by_hand(persons, codes, classes, k, KEY))
        assert as_counts(limited(persons, codes, classes, k, KEY)) == expected
        for cuts in ([], [0, 1, 2, 3], [9, 10, 30], range(36)):
            assert as_counts(streamed(persons, codes, classes, k, KEY, cuts)) == expected


def test_rows_of_each_person_are_put_in_order() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 1, 2, 3, 21])
    stops = np.cumsum(sizes)
    for values in (1, 2, 50):
        codes = rng.integers(0, values, (stops[-1], 2)).astype(np.uint8)
        classes = rng.integers(0, 2, stops[-1]).astype(np.uint16)
        order = rng.permutation(stops[-1])
        before = order.copy()
        _sort_each(order, stops - sizes, stops, codes, classes)
        for start, stop in zip(stops - sizes, stops, strict=True):
            assert sorted(order[start:stop]) == sorted(before[start:stop])
            rows = [(*codes[i], classes[i]) for i in order[start:stop]]
            assert rows == sorted(rows)


def test_of_rows_of_one_rank_the_earlier_are_kept() -> None:
    """A slot goes before another if its rank is larger, or the same and its place is later; never before itself."""
    ranks, places = np.array([5, 5, 7], dtype=np.uint64), np.array([1, 2, 0])
    above = [[bool(_is_above(ranks, places, a, b)) for b in range(3)] for a in range(3)]
    assert above == [[False, False, False], [True, False, False], [True, True, False]]
    codes, classes = np.array([[1, 2], [1, 2], [1, 3], [0, 9]], dtype=np.uint8), np.array([0, 1, 0, 0], dtype=np.uint16)
    after = [[bool(_is_after(codes, classes, a, b)) for b in range(4)] for a in range(4)]
    assert after == [[a > b for b in ((1, 2, 0), (1, 2, 1), (1, 3, 0), (0, 9, 0))] for a in ((1, 2, 0), (1, 2, 1), (1, 3, 0), (0, 9, 0))]


def test_a_later_row_of_the_same_rank_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks of 64 bits are hardly ever the same: here all are, where nothing is compiled."""
    monkeypatch.setattr(persons_module, "_rank", lambda *given: np.uint64(7))
    monkeypatch.setattr(persons_module, "_keep", getattr(persons_module._keep, "py_func", persons_module._keep))
    limit = PersonLimit(2, KEY)
    limit.keep(np.zeros(5, dtype=bool), np.arange(5, dtype=np.uint8)[:, None], np.arange(5, dtype=np.uint16))
    codes, classes = limit.finish()
    assert sorted(codes[:, 0].tolist()) == sorted(classes.tolist()) == [0, 1]


@pytest.mark.parametrize("wrong", [0, 1, 2, 3])
def test_rows_that_do_not_fit_together_are_refused(wrong: int) -> None:
    flags, codes, classes = np.zeros(4, dtype=bool), np.zeros((4, 2), dtype=np.uint8), np.zeros(4, dtype=np.uint16)
    given = [(flags[:3], codes, classes), (flags, codes[:3], classes), (flags, codes, classes[:3]), (flags, codes[:, 0], classes)][wrong]
    with pytest.raises(PlanError, match="a flag, codes and a class"):
        PersonLimit(2, KEY).keep(*given)


def test_room_grows_with_the_rows_and_never_beyond_k() -> None:
    limit = PersonLimit(10, KEY)
    sizes = []
    for n in (0, 1, 1, 1, 2, 20):
        limit.keep(np.zeros(n, dtype=bool), np.arange(2 * n).reshape(n, 2).astype(np.uint8), np.zeros(n, dtype=np.uint16))
        sizes.append({len(each) for each in limit._slots[1:]})
    assert sizes == [{1}, {1}, {2}, {4}, {6}, {10}]


def sum_over_persons(kept: Counter[Any]) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for (_, row, label), times in kept.items():
        total[row, label] += times
    return total


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order_and_any_batches_keep_the_same(data: Any) -> None:
    n = data.draw(st.integers(0, 60))
    persons, codes, classes = rows_of(data.draw(st.integers(0, 2**32)), n, data.draw(st.integers(1, 12)), values=2)
    k = data.draw(st.integers(1, 5))
    key = data.draw(st.binary(min_size=16, max_size=16))
    expected = sum_over_persons(by_hand(persons, codes, classes, k, key))
    order = np.array(data.draw(st.permutations(range(n))), dtype=np.int64)
    assert as_counts(limited(persons[order], codes[order], classes[order], k, key)) == expected
    cuts = data.draw(st.lists(st.integers(0, n), max_size=6))
    if n:
        assert as_counts(streamed(persons, codes, classes, k, key, cuts)) == expected


def test_a_person_s_rows_do_not_depend_on_others() -> None:
    """One person leaves: everybody else keeps the same rows, and at most k are missing. In memory and streamed."""
    persons, codes, classes = rows_of(1, 400, 15)
    for k in (1, 3):
        with_all = as_counts(limited(persons, codes, classes, k, KEY))
        for person in np.unique(persons):
            stays = persons != person
            without = as_counts(limited(persons[stays], codes[stays], classes[stays], k, KEY))
            assert without == as_counts(streamed(persons[stays], codes[stays], classes[stays], k, KEY, [7, 100]))
            assert not without - with_all
            gone = with_all - without
            own = as_counts((codes[~stays], classes[~stays]))
            assert gone.total() == min(k, own.total())
            assert not gone - own


def test_equal_rows_of_a_person_count_each_for_themselves() -> None:
    codes, classes = np.ones((50, 2), dtype=np.uint8), np.zeros(50, dtype=np.uint16)
    for k in (1, 4, 50, 60):
        assert len(limited(np.zeros(50, np.int64), codes, classes, k, KEY)[1]) == min(k, 50)


@pytest.mark.slow
def test_a_person_with_very_many_rows_needs_no_more_memory() -> None:
    limit = PersonLimit(3, KEY)
    rng = np.random.default_rng(0)
    everything = []
    for batch in range(40):
        codes = np.column_stack([np.full(1000, batch), rng.integers(0, 250, 1000)]).astype(np.uint8)
        codes = codes[np.lexsort(codes.T[::-1])]
        everything.append(codes)
        decided = limit.keep(np.zeros(1000, bool), codes, np.zeros(1000, np.uint16))
        assert len(decided[1]) == 0
        assert limit._slots is not None
        assert sum(part.nbytes for part in limit._slots) < 200
    codes = np.concatenate(everything)
    kept = by_hand(np.zeros(len(codes), int).tolist(), codes, np.zeros(len(codes), np.uint16), 3, KEY)
    assert as_counts(limit.finish()) == sum_over_persons(kept)
    assert len(limit.finish()[1]) == 0


def test_many_rows_of_a_person_may_be_kept() -> None:
    """Slots grow while a person's rows come in."""
    limit, kept = PersonLimit(100, KEY), 0
    for batch in range(30):
        codes = np.full((7, 1), batch, dtype=np.uint8)
        kept += len(limit.keep(np.zeros(7, bool), codes, np.zeros(7, np.uint16))[1])
    assert kept == 0
    rows = limit.finish()
    codes = np.repeat(np.arange(30, dtype=np.uint8), 7)[:, None]
    assert as_counts(rows) == sum_over_persons(by_hand([0] * 210, codes, np.zeros(210, np.uint16), 100, KEY))


def test_nothing_is_kept_of_nothing() -> None:
    codes, classes = PersonLimit(3, KEY).finish()
    assert (codes.shape, classes.shape) == ((0, 0), (0,))


def test_no_rows() -> None:
    codes, classes = np.zeros((0, 3), np.uint8), np.zeros(0, np.uint16)
    assert len(limited(np.zeros(0, np.int64), codes, classes, 2, KEY)[1]) == 0
    limit = PersonLimit(2, KEY)
    assert len(limit.finish()[1]) == 0
    assert limit.keep(np.zeros(0, bool), codes, classes)[0].shape == (0, 3)
    assert limit.finish()[0].shape == (0, 3)


def test_another_key_keeps_other_rows() -> None:
    persons, codes, classes = rows_of(3, 500, 10, values=200)
    kept = [limited(persons, codes, classes, 2, bytes([i]) * 16) for i in range(5)]
    assert len({tuple(sorted(as_counts(rows).items())) for rows in kept}) == 5


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("equal", [False, True])
def test_every_row_of_a_person_is_kept_alike_often(equal: bool) -> None:
    """3 of 12 rows by 4,000 keys: how often each is kept has mean 1,000 and sd 27.4; none is off by 6 sd. False alarm: below 1e-7.

    Also where 6 of the rows are equal: those are counted together.
    """
    codes = np.array([[0 if equal and i < 6 else i] for i in range(12)], dtype=np.uint8)
    classes, persons = np.zeros(12, np.uint16), np.zeros(12, np.int64)
    times: Counter[int] = Counter()
    for i in range(4_000):
        key = np.random.default_rng(i).bytes(16)
        times.update(limited(persons, codes, classes, 3, key)[0][:, 0].tolist())
    for value, rows in Counter(codes[:, 0].tolist()).items():
        sd = np.sqrt(4_000 * 3 * rows / 12 * (1 - rows / 12) * 9 / 11)
        assert abs(times[value] - 1_000 * rows) < 6 * sd


# ---------------------------------------------------------------- who is one person

NONE = None
DAY = datetime.date(2024, 2, 29)
IDS = uuid.UUID(int=5)
# name: (column, which rows are one person)
COLUMNS: dict[str, tuple[Any, list[int]]] = {
    "integers": (np.array([5, 7, 5, -(2**63), 2**63 - 1]), [0, 1, 0, 2, 3]),
    "unsigned": (np.array([2**64 - 1, 0, 2**64 - 1, 2**63], dtype=np.uint64), [0, 1, 0, 2]),
    "small and swapped": (np.array([5, 7, 5], dtype=">i2"), [0, 1, 0]),
    "floats": (np.array([1.0, 2.5, np.nan, -0.0, 0.0, -np.nan, np.inf, 1.0]), [0, 1, 2, 3, 3, 2, 4, 0]),
    "half floats": (np.array([1.0, np.nan, 1.0, np.nan], dtype=np.float16), [0, 1, 0, 1]),
    "booleans": (np.array([True, False, True]), [0, 1, 0]),
    "text": (np.array(["a", "b", "", "a", "", "ä"]), [0, 1, 2, 0, 2, 3]),
    "text that is not Unicode": (np.array(["a", "\udc80", "a", ""]), [0, 1, 0, 2]),
    "bytes": (np.array([b"a", b"", b"a"]), [0, 1, 0]),
    "dates": (np.array(["2024-01-01", "NaT", "2024-01-02", "NaT", "2024-01-01"], dtype="M8[D]"), [0, 1, 2, 1, 0]),
    "objects": (
        np.array([1, "1", 1.0, np.float32(1), Decimal("1.00"), True, None, "", np.nan, pd.NA, pd.NaT, "1.5", 1.5], dtype=object),
        [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3],
    ),
    "infinite objects": ([float("inf"), "inf", Decimal("Infinity"), 10**30, "1" + 30 * "0"], [0, 0, 1, 2, 2]),
    "a list": (["a", None, "a", 3], [0, 1, 0, 2]),
    "a tuple": ((IDS, str(IDS), None), [0, 0, 1]),
    "masked": (np.ma.MaskedArray([1, 2, 1, 4, 5], mask=[0, 0, 0, 1, 1]), [0, 1, 0, 2, 2]),
    "pandas text": (pd.Series(["a", None, "", "a"], dtype="string"), [0, 1, 1, 0]),
    "pandas objects": (pd.Series(["a", None, 1, "1", float("nan"), b"x"]), [0, 1, 2, 2, 1, 3]),
    "pandas numbers": (pd.Series([1, None, 1, 2.0]), [0, 1, 0, 2]),
    "pandas nullable": (pd.Series([1, None, 1, -1, None], dtype="Int64"), [0, 1, 0, 2, 1]),
    "pandas nullable floats": (pd.Series([1, None, 1, 2.5], dtype="Float64"), [0, 1, 0, 2]),
    "pandas categories": (pd.Series([1, "1", None, "", "b"], dtype="category"), [0, 0, 1, 1, 2]),
    "pandas dates": (pd.Series(pd.to_datetime(["2024-01-01 00:00:00", None, "2024-01-01 00:00:01", None])), [0, 1, 2, 1]),
    "pandas categories of many types": (pd.Series(pd.Categorical([1.0, "1", "1.0", None])), [0, 0, 1, 2]),
    "pandas objects that are not Unicode": (pd.Series(["a", "\udc80", "a"], dtype=object), [0, 1, 0]),
    "pandas text that is not Unicode": (pd.Series(["a", "\udc80", "a"], dtype="string[python]"), [0, 1, 0]),
    "pandas arrow": (pd.Series(["a", "", None, "a"], dtype=pd.ArrowDtype(pa.string())), [0, 1, 1, 0]),
    "polars text": (pl.Series(["a", "", None, "a"]), [0, 1, 1, 0]),
    "polars numbers": (pl.Series([1, None, 1, None, -1]), [0, 1, 0, 1, 2]),
    "polars large numbers": (pl.Series([2**53, 2**53 + 1, None]), [0, 1, 2]),
    "polars large numbers and more missing": (pl.Series([2**53, None, 2**53 + 1, None]), [0, 1, 2, 1]),
    "polars times": (pl.Series([1, 2, None, 1]).cast(pl.Datetime("ns")), [0, 1, 2, 0]),
    "polars bytes": (pl.Series([b"\xff", None, b"\xff", b"a"]), [0, 1, 0, 2]),
    "polars floats": (pl.Series([1.0, None, float("nan"), -0.0, 0.0]), [0, 1, 1, 2, 2]),
    "polars categories": (pl.Series(["a", "", None, "a"], dtype=pl.Categorical), [0, 1, 1, 0]),
    "polars enum": (pl.Series(["a", "b", None, "a"], dtype=pl.Enum(["a", "b"])), [0, 1, 2, 0]),
    "polars dates": (pl.Series([DAY, None, DAY, datetime.date(1, 1, 1)]), [0, 1, 0, 2]),
    "polars booleans": (pl.Series([True, None, False, True]), [0, 1, 2, 0]),
    "polars objects": (pl.Series([1, "1", None], dtype=pl.Object), [0, 0, 1]),
    "polars binary": (pl.Series([b"a", None, b"a"]), [0, 1, 0]),
    "polars decimal": (pl.Series([Decimal("1.5"), None, Decimal("1.5"), Decimal("2")]), [0, 1, 0, 2]),
    "arrow text in chunks": (pa.chunked_array([["a", "", None], ["a", "b", ""], ["b"]]), [0, 1, 1, 0, 2, 1, 2]),
    "arrow dictionary": (pa.chunked_array([pa.array(["a", "", None]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()]),
                         [0, 1, 1, 2, 0]),
    "arrow dictionary of numbers": (pa.array([7, 8, None, 7]).dictionary_encode(), [0, 1, 2, 0]),
    "arrow dictionary of floats": (pa.array([1.5, float("nan"), None, -0.0, 0.0]).dictionary_encode(), [0, 1, 1, 2, 2]),
    "arrow uuid": (pa.array([IDS.bytes, None, IDS.bytes], type=pa.binary(16)), [0, 1, 0]),
    "arrow uuid type": (pa.array([IDS.bytes, None, IDS.bytes], type=pa.uuid()) if hasattr(pa, "uuid") else pa.nulls(3),
                        [0, 1, 0] if hasattr(pa, "uuid") else [0, 0, 0]),
    "arrow nothing": (pa.nulls(3), [0, 0, 0]),
    "arrow times": (pa.array([1, None, 1], type=pa.time64("us")), [0, 1, 0]),
    "no rows": (pa.chunked_array([], type=pa.string()), []),
}  # fmt: skip


def partition(numbers: Any) -> list[int]:
    known: dict[Any, int] = {}
    return [known.setdefault(number, len(known)) for number in numbers]


@pytest.mark.parametrize("name", list(COLUMNS))
def test_who_is_one_person(name: str) -> None:
    column, expected = COLUMNS[name]
    numbers = person_numbers(column)
    assert numbers.dtype == np.int64
    assert partition(numbers.tolist()) == expected


@pytest.mark.parametrize("name", [name for name, (_, expected) in COLUMNS.items() if expected])
def test_one_id_less_changes_nobody_else(name: str) -> None:
    """Each row is left out in turn: the others are divided as before, whatever types a library would guess."""
    column, expected = COLUMNS[name]
    for i in range(len(expected)):
        if isinstance(column, (pa.Array, pa.ChunkedArray)):
            rest = column.take(pa.array([j for j in range(len(expected)) if j != i]))
        elif isinstance(column, pl.Series):
            rest = column.gather([j for j in range(len(expected)) if j != i])
        elif isinstance(column, pd.Series):
            rest = column.drop(column.index[i])
        elif isinstance(column, (list, tuple)):
            rest = type(column)(value for j, value in enumerate(column) if j != i)
        else:
            rest = column[np.arange(len(column)) != i]
        assert partition(person_numbers(rest).tolist()) == partition(expected[:i] + expected[i + 1 :])


class Strange:
    def __str__(self) -> str:
        raise RuntimeError("patient 17")


class StrangeEquality(str):
    def __ne__(self, other: object) -> bool:
        raise RuntimeError("patient 17")


def test_no_value_raises_an_error() -> None:
    numbers = person_numbers(["a", Strange(), None, "a", Decimal("sNaN"), StrangeEquality("a")])
    assert numbers[0] == numbers[3]
    assert numbers[1] == numbers[2] != numbers[0]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[1], [2]]),
        pl.Series([{"a": 1}]),
        pa.array([[1], None]),
        pa.array([{"a": 1}]),
        np.array([1j, 2]),
        np.zeros(3, dtype=[("a", int)]),
    ],
    ids=["list", "struct", "arrow list", "arrow struct", "complex", "record"],
)
def test_other_types_are_refused(column: Any) -> None:
    with pytest.raises(TableError, match=r"column 'who': its type, .*(List|Struct|complex128|i8).*Convert it to text first"):
        person_numbers(column, "who")


def test_a_column_that_is_not_there() -> None:
    for column in (None, np.zeros((3, 2))):
        with pytest.raises(TableError):
            person_numbers(column, "who")
    for nameless in (np.zeros((3, 2)), [["a", "b"]], 7):
        with pytest.raises(TableError, match="the column 'who' of persons, and an array has no names"):
            person_column(nameless, "who")
    with pytest.raises(TableError, match="who"):
        person_column(pd.DataFrame({"a": [1]}), "who")
    frame = pl.DataFrame({"who": [DAY, None, DAY], "a": [1, 2, 3]})
    for table in (frame, frame.to_arrow(), frame.to_pandas(), {"who": [DAY, None, DAY]}):
        assert partition(person_numbers(person_column(table, "who")).tolist()) == [0, 1, 0]


def test_ids_that_are_nearly_the_same_are_two_persons() -> None:
    assert len(set(person_numbers(np.array([1e-20, 2e-20, 0.0, -0.0, 1e16, 1e16 + 2])).tolist())) == 5
    truth, text, other, lie = person_numbers(np.array([True, "true", "True", False], dtype=object)).tolist()
    assert truth == text
    assert len({truth, other, lie}) == 3
    assert person_numbers(np.array([False, "false"], dtype=object)).tolist() == [0, 0]
    with pytest.raises(TableError, match="give their ids with the rows"):
        person_numbers(None)


def test_missing_ids_are_one_person() -> None:
    persons = person_numbers(["a", None, "", float("nan"), "a", None])
    codes = np.arange(6, dtype=np.uint8)[:, None]
    kept, _ = limited(persons, codes, np.zeros(6, np.uint16), 1, KEY)
    assert len(kept) == 2
    assert len({*kept.ravel().tolist()} & {1, 2, 3, 5}) == 1


# ---------------------------------------------------------------- DuckDB

SQL: dict[str, tuple[str, list[str]]] = {
    "BIGINT": ("(7), (NULL), (-7), (7)", ["7", "", "-7", "7"]),
    "UTINYINT": ("(7), (NULL)", ["7", ""]),
    "HUGEINT": ("(170141183460469231731687303715884105727), (NULL)", [str(2**127 - 1), ""]),
    "DOUBLE": (
        "(7), (7.5), (NULL), ('nan'::DOUBLE), ('-0.0'::DOUBLE), (0), ('inf'::DOUBLE), ('-inf'::DOUBLE), (1e22), (1e300), (-3)",
        ["7", "7.5", "", "", "0", "0", "inf", "-inf", "1" + "0" * 22, "1e+300", "-3"],
    ),
    "FLOAT": ("(7), (0.1), (NULL), ('nan'::FLOAT)", ["7", "0.1", "", ""]),
    "DECIMAL(9,2)": ("(7), (7.5), (NULL)", ["7", "7.50", ""]),
    "BOOLEAN": ("(true), (false), (NULL)", ["true", "false", ""]),
    "VARCHAR": ("('a'), (''), (NULL), ('7.0')", ["a", "", "", "7.0"]),
    "UUID": (f"('{IDS}'), (NULL)", [str(IDS), ""]),
    "DATE": ("('2024-02-29'), (NULL), ('infinity')", ["2024-02-29", "", "infinity"]),
    "TIMESTAMP": ("('2024-02-29 01:02:03'), (NULL), ('infinity')", ["2024-02-29 01:02:03", "", "infinity"]),
    "TIMESTAMP WITH TIME ZONE": ("(NULL), ('infinity')", ["", "infinity"]),
    "TIMESTAMP_NS": ("('2024-02-29 01:02:03')", ["2024-02-29 01:02:03"]),
    "TIME": ("('01:02:03'), (NULL)", ["01:02:03", ""]),
    "BLOB": ("('ab'), (NULL)", ["ab", ""]),
    "ENUM('a', 'b')": ("('a'), (NULL), ('b')", ["a", "", "b"]),
}


@pytest.mark.parametrize("kind", list(SQL))
def test_the_text_of_an_id_in_sql(kind: str) -> None:
    rows, expected = SQL[kind]
    connection = duckdb.connect()
    connection.execute(f'CREATE TABLE t ("a ""b" {kind})')
    connection.execute(f"INSERT INTO t VALUES {rows}")
    (described,) = connection.execute("DESCRIBE t").fetchall()
    expression = person_sql('"a ""b"', described[1])
    found = connection.execute(f"SELECT {expression} FROM t").fetchall()
    assert [text for (text,) in found] == expected
    if kind != "TIMESTAMP WITH TIME ZONE" and "infinity" not in rows:  # and in memory they are the same persons
        assert partition(person_numbers(connection.sql("SELECT * FROM t").to_arrow_table().column(0)).tolist()) == partition(expected)


NESTED = ["INTEGER[]", "DECIMAL(4,1)[]", "INTEGER[3]", "STRUCT(a INTEGER)", "MAP(INTEGER, VARCHAR)", "UNION(a INTEGER)"]


@pytest.mark.parametrize("kind", NESTED)
def test_nested_types_are_refused_in_sql(kind: str) -> None:
    with pytest.raises(TableError, match="Convert it to text first"):
        person_sql('"who"', kind)


def test_types_of_floats_and_of_decimals_in_sql() -> None:
    """A decimal is never NaN, and 38 digits of it need no float."""
    assert person_sql('"a"', "REAL") == person_sql('"a"', " double ") == person_sql('"a"', "FLOAT")
    assert "isnan" in person_sql('"a"', "REAL")
    for kind in ("DECIMAL", "DECIMAL(38,2)"):
        assert "isnan" not in person_sql('"a"', kind)
        assert "1e38" not in person_sql('"a"', kind)


def test_where_a_person_begins() -> None:
    ids = ["", "", "a", "b", "b", "b", "c"]
    for cut in range(len(ids) + 1):
        first, last = person_changes(pa.array(ids[:cut], pa.string()))
        second, end = person_changes(pa.chunked_array([ids[cut:]], pa.string()), last)
        assert [*first, *second] == [True, False, True, True, False, False, True]
        assert end == "c"
