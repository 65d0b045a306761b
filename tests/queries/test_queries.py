"""A row adds to each question once: a predictor that answers in another shape is refused, and nothing is counted many times.

NumPy would fit the shapes together. One row more would then change as many counts as there are rows, and the noise is for one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from strategies import small_schema, small_table

from hedgerow.accounting.meter import Budget
from hedgerow.engines.engine import Engine
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.opening import open_place
from hedgerow.errors import PlanError, TableError
from hedgerow.private_table import PrivateTable
from hedgerow.queries import Best, Block, Confusion, Query, Reliability, ScoreBins
from hedgerow.schema.codebook import Codebook

ROWS = 7
CODEBOOK = Codebook(small_schema())
COLUMNS, LABELS = small_table(ROWS)
CODES, CLASSES = CODEBOOK.encode(COLUMNS), CODEBOOK.encode_classes(LABELS)

WRONG_CLASSES: dict[str, Callable[[int], np.ndarray]] = {
    "a number": lambda n: np.int64(0),  # type: ignore[dict-item, return-value]
    "one for all": lambda n: np.zeros(1, dtype=np.int64),
    "a column": lambda n: np.zeros((n, 1), dtype=np.int64),
    "a row": lambda n: np.zeros((1, n), dtype=np.int64),
    "one too few": lambda n: np.zeros(n - 1, dtype=np.int64),
    "one too many": lambda n: np.zeros(n + 1, dtype=np.int64),
    "two for each": lambda n: np.zeros((n, 2), dtype=np.int64),
    "a square": lambda n: np.zeros((n, n), dtype=np.int64),
    "none": lambda n: np.zeros(0, dtype=np.int64),
}
WRONG_SHARES: dict[str, Callable[[int], np.ndarray]] = {
    "one for all": lambda n: np.full((1, 2), 0.5),
    "flat": lambda n: np.full(2 * n, 0.5),
    "one number each": lambda n: np.full(n, 0.5),
    "one class too many": lambda n: np.full((n, 3), 1 / 3),
    "one class too few": lambda n: np.full((n, 1), 1.0),
    "turned round": lambda n: np.full((2, n), 0.5),
    "one row too few": lambda n: np.full((n - 1, 2), 0.5),
    "one row too many": lambda n: np.full((n + 1, 2), 0.5),
    "a stack": lambda n: np.full((n, 2, 2), 0.5),
    "none": lambda n: np.zeros((0, 2)),
}


@pytest.mark.parametrize("shape", list(WRONG_CLASSES))
def test_a_prediction_is_one_class_for_each_row(shape: str) -> None:
    question = Best([lambda codes: WRONG_CLASSES[shape](len(codes))])
    with pytest.raises(TableError, match="one class for each row"):
        question.add(Block(CODES, CLASSES, CODEBOOK.n_classes), question.zeros(CODEBOOK))


@pytest.mark.parametrize("shape", list(WRONG_SHARES))
def test_probabilities_are_one_number_for_each_row_and_class(shape: str) -> None:
    question = Reliability(lambda codes: WRONG_SHARES[shape](len(codes)), 4)
    scores = ScoreBins(lambda codes: WRONG_SHARES[shape](len(codes)), 4, (1,))
    for query in (question, scores):
        with pytest.raises(TableError, match="one number for each row and class"):
            query.add(Block(CODES, CLASSES, CODEBOOK.n_classes), query.zeros(CODEBOOK))


def test_score_bins_by_hand() -> None:
    """On an edge is in the bin below; what is no number is in the lowest; a class that is not declared has a row of its own."""
    shares = np.array([0.0, 0.1, 0.11, 0.5, np.nextafter(0.5, 1), 1.0, np.nan, np.inf])
    classes = np.array([0, 1, 1, 0, 1, 2, 1, 0], dtype=np.uint16)
    query = ScoreBins(lambda codes: np.stack([1 - shares, shares], axis=1), 4, (1, 0))
    (found,) = sums = query.zeros(CODEBOOK)
    query.add(Block(np.zeros((8, 4), dtype=np.uint8), classes, 2), sums)
    assert found[0].tolist() == [[2, 1, 0, 0], [2, 1, 1, 0], [0, 0, 0, 1]]
    assert found[1].sum() == 8


@pytest.mark.parametrize("classes", [(), (0, 0), (2,), (-1,)])
def test_scored_classes_are_declared_and_different(classes: tuple[int, ...]) -> None:
    """A class that is scored twice would be paid for twice; nothing is charged for it."""
    reservation = Budget(1).reserve(1, "test")
    with pytest.raises(PlanError, match="each once"):
        PrivateTable(in_memory(Path()), reservation).ask(ScoreBins(lambda codes: np.full((len(codes), 2), 0.5), 4, classes), Fraction(1))
    assert reservation.charged == 0


def test_a_row_adds_one_to_one_cell_of_each_table() -> None:
    """Whatever the predictor says, also where one row is all there is."""
    confusion = Best([lambda codes: np.ones(len(codes), dtype=np.int64), lambda codes: codes[:, 1].astype(np.int64) % 2])
    sure = Reliability(lambda codes: np.full((len(codes), 2), 0.5), 4)
    queries: list[Query[Any]] = [confusion, sure, ScoreBins(lambda codes: np.full((len(codes), 2), 0.5), 4, (0,))]
    for n in (0, 1, ROWS):
        for question in queries:
            sums = question.zeros(CODEBOOK)
            question.add(Block(CODES[:n], CLASSES[:n], CODEBOOK.n_classes), sums)
            assert [table.sum() for table in sums] == [n] * len(sums)


def in_memory(folder: Path) -> Engine:
    return MemoryRows(COLUMNS, LABELS, CODEBOOK)


def in_a_file(folder: Path) -> Engine:
    pd.DataFrame({**COLUMNS, "class": LABELS}).to_parquet(folder / "rows.parquet")
    return open_place(folder / "rows.parquet", CODEBOOK)


@pytest.mark.parametrize("engine", [in_memory, in_a_file])
def test_the_queries_refuse_them_too(engine: Any, tmp_path: Path) -> None:
    """The look is paid for by then, since only rows show what a predictor answers; but no number leaves."""
    one = Fraction(1)
    column, single = WRONG_CLASSES["a column"], WRONG_SHARES["one for all"]
    verbs: list[Callable[[PrivateTable], Any]] = [
        lambda table: table.ask(Confusion(lambda codes: column(len(codes))), one),
        lambda table: table.ask(Best([lambda codes: np.zeros(len(codes), dtype=np.int64), lambda codes: column(len(codes))]), one),
        lambda table: table.ask(Reliability(lambda codes: single(len(codes)), 4), one),
    ]
    for verb in verbs:
        reservation = Budget(1).reserve(1, "test")
        with pytest.raises(TableError, match=r"for each row|column"):
            verb(PrivateTable(engine(tmp_path), reservation))
        assert reservation.charged == 1


def test_rows_of_no_declared_class_are_right_for_no_predictor() -> None:
    """They have a row of their own in the tables: one more of them changes no score, and raises nothing."""
    n_classes = CODEBOOK.n_classes
    classes = np.array([0, n_classes, 1, n_classes, n_classes, 0, 1], dtype=np.uint16)
    guesses = [lambda codes: np.zeros(len(codes), dtype=np.int64), lambda codes: np.full(len(codes), n_classes - 1)]
    best, confusion = Best(guesses), Confusion(guesses[0])
    sums, table = best.zeros(CODEBOOK), confusion.zeros(CODEBOOK)
    block = Block(CODES, classes, n_classes)
    best.add(block, sums)
    confusion.add(block, table)
    assert best.scores(sums, CODEBOOK).tolist() == [[2, 2]]
    assert [each.tolist() for each in sums] == [[[2, 0], [2, 0], [3, 0]], [[0, 2], [0, 2], [0, 3]]]
    assert table[0].tolist() == sums[0].tolist()
    assert confusion.shapes(CODEBOOK) == [(n_classes + 1, n_classes)]
