"""Theorem U2 by experiment: taking one person away changes nothing about which rows of the others are counted. And fresh keys.

Persons have few distinct rows here, so that the last row of one is often equal to the first of the next: what a limit remembers of the
person before would then change who is counted.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement, pairwise, product
from pathlib import Path
from pickle import dumps
from typing import Any

import exact as exact_answers
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import small_schema, small_table

import hedgerow
from hedgerow import PrivateRDTClassifier, private_calibration, private_score
from hedgerow.engines import persons as persons_module
from hedgerow.engines import streamed
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.opening import open_place
from hedgerow.engines.persons import PersonLimit, limited
from hedgerow.engines.spark_work import Task, add_to, counted_by_person, encoded, slices_of
from hedgerow.estimators import all_estimators
from hedgerow.evaluation.private import private_evaluation
from hedgerow.queries import LeafCounts
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.tree import Tree, TreeBuilder

KEY = bytes(range(16))
VALUES = 3  # distinct rows, by the first code alone or by code and class
Person = tuple[int, ...]  # a person is what the rows say


def table(people: list[Person]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Persons, codes and classes: value 0 is code 0, class 0; value 1 is code 0, class 1; value 2 is code 1, class 0; and so on."""
    rows = [(who, value) for who, values in enumerate(people) for value in values]
    who, value = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return who, np.stack([value // 2, np.zeros_like(value)], axis=1).astype(np.uint8), (value % 2).astype(np.uint16)


def in_memory(people: list[Person], k: int, key: bytes) -> np.ndarray:
    return tally(*limited(*table(people), k, key))


def in_batches(people: list[Person], k: int, key: bytes, cuts: Any = ()) -> np.ndarray:
    who, codes, classes = table([tuple(sorted(values)) for values in people])
    new = np.concatenate([[True], who[1:] != who[:-1]])
    limit, total = PersonLimit(k, key), np.zeros(2 * VALUES, dtype=np.int64)
    for a, b in pairwise([0, *sorted(min(cut, len(who)) for cut in cuts), len(who)]):
        total += tally(*limit.keep(new[a:b], codes[a:b], classes[a:b]))
    return total + tally(*limit.finish())


def tally(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """How often each value was kept."""
    values = 2 * codes[:, 0].astype(np.int64) + classes if len(classes) else np.zeros(0, dtype=np.int64)
    return np.bincount(values, minlength=2 * VALUES)


WAYS: dict[str, Callable[[list[Person], int, bytes], np.ndarray]] = {
    "limited": in_memory,
    "one batch": in_batches,
    "a batch for each row": lambda people, k, key: in_batches(people, k, key, range(100)),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("k", [1, 2])
def test_what_is_kept_of_two_persons_is_what_is_kept_of_each(way: str, k: int) -> None:
    """All pairs of persons of up to three rows with three values, by several keys."""
    kept = WAYS[way]
    people = [p for size in (1, 2, 3) for p in combinations_with_replacement(range(VALUES), size)]
    for key in (KEY, bytes(16), b"\xff" * 16):
        alone = {person: kept([person], k, key) for person in people}
        assert all(total.sum() == min(k, len(person)) for person, total in alone.items())
        for first, second in product(people, repeat=2):
            assert (kept([first, second], k, key) == alone[first] + alone[second]).all(), (first, second)


few_rows = st.lists(st.integers(0, VALUES - 1), min_size=1, max_size=5).map(lambda rows: tuple(sorted(rows)))
some_persons = st.lists(few_rows, min_size=2, max_size=6)


def check_removal(people: list[Person], k: int, counts: Callable[[list[Person]], np.ndarray]) -> None:
    """Each person leaves in turn: at most k rows are missing, all of them that person's, and nothing is there that was not."""
    whole = counts(people)
    for gone in range(len(people)):
        missing = whole - counts([*people[:gone], *people[gone + 1 :]])
        own = np.bincount(people[gone], minlength=2 * VALUES)
        assert missing.min() >= 0
        assert (missing <= own).all()
        assert missing.sum() == min(k, len(people[gone]))


@pytest.mark.slow
@given(some_persons, st.integers(1, 3), st.binary(min_size=16, max_size=16), st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=150)
def test_one_person_less_changes_nobody_else(people: list[Person], k: int, key: bytes, cuts: list[int]) -> None:
    check_removal(people, k, lambda others: in_memory(others, k, key))
    check_removal(people, k, lambda others: in_batches(others, k, key, cuts))


# ---------------------------------------------------------------- the same through whole engines

CODEBOOK = Codebook(
    Schema([Categorical("a", ["0", "1", "2"]), Categorical("b", ["0"])], Target("c", ["0", "1"]), person="who", rows_per_person=1)
)
NEIGHBOURS: list[Person] = [(1, 1), (1, 1, 2), (2, 2), (2, 2, 2, 3), (3,), (3, 3), (0, 3), (3, 3, 4), (4, 4), (4, 5), (5, 5, 5), (5, 5)]


def leaves_by_value() -> Tree:
    builder = TreeBuilder(CODEBOOK.sizes)
    builder.split(0, 0)
    return builder.build()


TREES = [leaves_by_value()]


def frame(people: list[Person]) -> pd.DataFrame:
    who, codes, classes = table(people)
    names = np.array([f"p{number:03d}" for number in range(len(people))])  # in this order they are sorted
    return pd.DataFrame({"a": codes[:, 0].astype(str), "b": "0", "c": classes.astype(str), "who": names[who]})


def of_memory(people: list[Person], folder: Path) -> np.ndarray:
    rows = frame(people)
    return exact_answers.leaf_counts(MemoryRows(rows[["a", "b"]], rows["c"], CODEBOOK, persons=rows["who"], key=KEY), TREES)[0]


def of_a_file(people: list[Person], folder: Path) -> np.ndarray:
    frame(people).to_parquet(folder / "rows.parquet")
    engine = open_place(folder / "rows.parquet", CODEBOOK, key=KEY)
    try:
        return exact_answers.leaf_counts(engine, TREES)[0]
    finally:
        engine.close()


def on_executors(people: list[Person], folder: Path) -> np.ndarray:
    """The functions that Spark runs, given the batches that it would give: encoded, sorted by person and row, counted."""
    rows = pa.Table.from_pandas(frame(people), preserve_index=False)
    columns = {name: (name, "VARCHAR") for name in rows.column_names}
    question = LeafCounts(TREES)
    task = zlib.compress(dumps(Task(CODEBOOK, columns, question, KEY)), 1)
    together = pa.Table.from_batches(encoded(hedgerow.__version__, task, rows.to_batches(max_chunksize=5)))
    together = together.sort_by([("person", "ascending"), ("row", "ascending")])
    sums = [*question.zeros(CODEBOOK), np.zeros(2, dtype=np.int64)]
    cut = slices_of(sums)
    for batch in counted_by_person(hedgerow.__version__, task, together.to_batches(max_chunksize=4)):
        for place, numbers in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            add_to(cut[place], numbers.as_buffer())
    return sums[0]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [of_memory, of_a_file, on_executors])
def test_one_person_less_changes_nobody_else_in_an_engine(engine: Any, tmp_path: Path) -> None:
    people = NEIGHBOURS if engine is not of_a_file else NEIGHBOURS[:7]
    check_removal(people, 1, lambda others: engine(others, tmp_path).reshape(-1))
    assert (engine(people, tmp_path) == of_memory(people, tmp_path)).all()


def test_a_file_that_is_read_again_for_each_question_keeps_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "KEPT_BYTES", 0)
    assert (of_a_file(NEIGHBOURS, tmp_path) == of_memory(NEIGHBOURS, tmp_path)).all()


# ---------------------------------------------------------------- a fresh key for each request

OF_PERSONS = replace(small_schema(), person="who", rows_per_person=2)
COLUMNS, LABELS = small_table(60)
ROWS = {**COLUMNS, "who": np.arange(60) // 3}
PRIVATE = [estimator for estimator in all_estimators().values() if estimator._algorithm.private]


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every key by which rows are chosen."""
    seen: list[bytes] = []
    words = persons_module._key_words

    def noted(key: bytes) -> Any:
        seen.append(key)
        return words(key)

    monkeypatch.setattr(persons_module, "_key_words", noted)
    return seen


def check_fresh(keys: list[bytes], request: Callable[[], Any]) -> None:
    """Three requests have three keys, each used for the whole of its request, and none of them a plain pattern."""
    found = []
    for _ in range(3):
        keys.clear()
        request()
        assert len(set(keys)) == 1
        found.append(keys[0])
    assert len(set(found)) == 3
    assert all(len(key) == 16 and len(set(key)) > 4 for key in found)  # fewer than five distinct bytes: once in 10^19


@pytest.mark.parametrize("ask", [private_score, private_calibration, private_evaluation])
@pytest.mark.parametrize("place", ["memory", "file"])
def test_each_score_chooses_rows_by_a_key_of_its_own(ask: Any, place: str, keys: list[bytes], tmp_path: Path) -> None:
    model = PrivateRDTClassifier(OF_PERSONS, 1, n_estimators=2, max_depth=2).fit(ROWS, LABELS)
    rows: Any = pd.DataFrame({**ROWS, "class": LABELS})
    if place == "file":
        rows.to_csv(tmp_path / "rows.csv", index=False)
        rows = tmp_path / "rows.csv"
    check_fresh(keys, lambda: ask(model, rows, epsilon=1))


@pytest.mark.parametrize("algorithm", PRIVATE)
def test_each_fit_chooses_rows_by_a_key_of_its_own(algorithm: Any, keys: list[bytes], tmp_path: Path) -> None:
    """Whatever random_state is: that is public."""
    check_fresh(keys, lambda: algorithm(OF_PERSONS, 50, random_state=0).fit(ROWS, LABELS))
    pd.DataFrame({**ROWS, "class": LABELS}).to_csv(tmp_path / "rows.csv", index=False)
    check_fresh(keys, lambda: algorithm(OF_PERSONS, 50, random_state=0).fit(tmp_path / "rows.csv"))


def test_each_count_of_a_shared_plan_has_a_key_of_its_own(keys: list[bytes]) -> None:
    plan = PrivateRDTClassifier(OF_PERSONS, 1, n_estimators=2, max_depth=2, random_state=0).public_plan()
    check_fresh(keys, lambda: hedgerow.count(plan, ROWS, LABELS))
    check_fresh(keys, lambda: PrivateRDTClassifier(OF_PERSONS, 1, n_estimators=2, max_depth=2).partial_fit(ROWS, LABELS))
