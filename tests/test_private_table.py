"""The verbs: charge before look, the stated noise, and no other way to the rows."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from strategies import small_schema, small_table

from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.encoding import Codebook
from hedgerow.errors import BudgetError, PlanError
from hedgerow.growers import rdt
from hedgerow.private.coins import SeededCoins
from hedgerow.private.table import PrivateTable
from hedgerow.rows.memory import MemoryRows
from hedgerow.tree import Tree

CODEBOOK = Codebook(small_schema())
TREES = [rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(i)) for i in range(3)]


def private(rows: int, epsilon: Any = 10, coins: Any = None) -> tuple[PrivateTable, Reservation, MemoryRows]:
    engine = MemoryRows(*small_table(rows), CODEBOOK)
    reservation = Budget(epsilon).reserve(epsilon, "test")
    table = PrivateTable(engine, reservation, coins) if coins else PrivateTable(engine, reservation)
    return table, reservation, engine


VERBS = {
    "rows": lambda table, epsilon: table.rows(epsilon),
    "leaf_counts": lambda table, epsilon: table.leaf_counts(TREES, epsilon),
    "confusion": lambda table, epsilon: table.confusion(lambda codes: np.zeros(len(codes), dtype=np.int64), epsilon),
}


def test_the_verbs_are_the_whole_public_surface() -> None:
    public = {name for name in dir(PrivateTable) if not name.startswith("_")}
    assert public == {*VERBS, "codebook", "sampler"}
    assert not hasattr(PrivateTable, "__len__")
    assert not hasattr(private(1)[0], "__dict__")


@pytest.mark.parametrize("verb", list(VERBS))
def test_charged_before_the_rows_are_opened(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = private(50)
    seen = []
    monkeypatch.setattr(type(engine), "_open", lambda self: seen.append(reservation.charged) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        VERBS[verb](table, Fraction(1, 3))
    assert seen == [Fraction(1, 3)]
    assert reservation.charged == Fraction(1, 3)  # a crash leaves it charged


@pytest.mark.parametrize("verb", list(VERBS))
def test_refused_without_opening(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, reservation, engine = private(50, epsilon=1)
    monkeypatch.setattr(type(engine), "_open", lambda self: pytest.fail("the rows were opened"))
    with pytest.raises(BudgetError):
        VERBS[verb](table, Fraction(2))
    assert reservation.charged == 0


@pytest.mark.parametrize("verb", list(VERBS))
def test_almost_no_noise_gives_the_truth(verb: str) -> None:
    """ε = 1000: a wrong count would show; the chance that a single number is off is below e^(−300)."""
    table, _, engine = private(300, epsilon=3000)
    answer = VERBS[verb](table, Fraction(1000))
    exact = {
        "rows": lambda: 300,
        "leaf_counts": lambda: engine.leaf_counts(TREES),
        "confusion": lambda: engine.confusion(lambda codes: np.zeros(len(codes), dtype=np.int64)),
    }[verb]()
    for noisy, true in zip(answer, exact, strict=True) if verb == "leaf_counts" else [(answer, exact)]:
        assert np.array_equal(noisy, true)


def test_noise_has_the_stated_scale_and_trees_share_epsilon() -> None:
    table, reservation, engine = private(200, epsilon=4000)
    exact = engine.leaf_counts(TREES)
    noise = np.concatenate(
        [
            (noisy - true).ravel()
            for _ in range(300)
            for noisy, true in zip(table.leaf_counts(TREES, Fraction(1, 2)), exact, strict=True)
        ]
    )
    event = reservation.events[0]
    assert (event.queries, event.sensitivity, event.scale) == (3, 1, 6)
    # Scale 6: standard deviation 8.47. A scale 30 % wrong is far outside; false alarm below 1e-9 at more than 15,000 draws.
    assert len(noise) > 15_000
    assert abs(noise.std() / 8.47 - 1) < 0.1
    assert abs(noise.mean()) < 0.5


def test_empty_and_tiny_tables_answer_like_any_other() -> None:
    for rows in (0, 1):
        table, _, _ = private(rows)
        assert isinstance(table.rows(Fraction(1)), int)
        assert len(table.leaf_counts(TREES, Fraction(1))) == 3


def test_one_row_changes_one_cell_of_each_tree() -> None:
    """Sensitivity: over many tables, adding any row moves each tree's exact counts by at most one, in one cell."""
    columns, labels = small_table(40, seed=3)
    labels = labels.astype(object)
    labels[::7] = "undeclared"
    for gone in range(40):
        keep = np.arange(40) != gone
        with_row = MemoryRows(columns, labels, CODEBOOK).leaf_counts(TREES)
        without = MemoryRows({n: c[keep] for n, c in columns.items()}, labels[keep], CODEBOOK).leaf_counts(TREES)
        for a, b in zip(with_row, without, strict=True):
            assert 0 <= (a - b).sum() <= 1
            assert np.abs(a - b).sum() <= 1


def test_trees_of_another_schema_are_refused_before_the_charge() -> None:
    table, reservation, _ = private(10)
    with pytest.raises(PlanError, match="another schema"):
        table.leaf_counts([Tree((2,), np.array([-1], dtype=np.int32), np.empty(0, np.int32))], Fraction(1))
    with pytest.raises(PlanError, match="no trees"):
        table.leaf_counts([], Fraction(1))
    assert reservation.charged == 0


def test_it_cannot_be_copied_or_pickled() -> None:
    table, _, _ = private(5)
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="rows stay"):
            act(table)
    assert "5" not in repr(table)


def test_seeded_coins_repeat_and_system_coins_do_not() -> None:
    first = [private(100, coins=SeededCoins(7))[0].rows(Fraction(1, 100)) for _ in range(2)]
    assert first[0] == first[1]
    drawn = {private(100)[0].rows(Fraction(1, 10_000)) for _ in range(8)}
    assert len(drawn) > 1


def test_opendp_as_sampler() -> None:
    pytest.importorskip("opendp")
    engine = MemoryRows(*small_table(100), CODEBOOK)
    table = PrivateTable(engine, Budget(10).reserve(10, "test"), sampler="opendp")
    assert abs(table.rows(Fraction(1)) - 100) < 60
    assert len(table.leaf_counts(TREES, Fraction(1))) == 3
    with pytest.raises(PlanError, match="sampler"):
        PrivateTable(engine, Budget(1).reserve(1, "test"), sampler="numpy")
    with pytest.raises(PlanError, match="test coins"):
        PrivateTable(engine, Budget(1).reserve(1, "test"), SeededCoins(1), sampler="opendp")
