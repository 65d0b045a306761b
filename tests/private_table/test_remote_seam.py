"""Rows elsewhere: their holder reserves first, both charge the same events, and the holder's answer is the answer."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from strategies import small_schema, small_table

from hedgerow.accounting.events import Event
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Price
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.remote import RemoteEngine
from hedgerow.errors import BudgetError, PlanError
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.private_table import PrivateTable, private_table, reserved
from hedgerow.queries import Query, Rows, Sizes
from hedgerow.queries.query import Sums
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.tree import TreeBuilder

CODEBOOK = Codebook(small_schema())
ROOT = TreeBuilder(CODEBOOK.sizes).build()


class Holder(RemoteEngine):
    """In the same process: a budget, rows and coins of its own."""

    def __init__(self, epsilon: int) -> None:
        self.codebook, self.coins = CODEBOOK, SeededCoins(5)
        self.budget = Budget(epsilon)
        self.table: PrivateTable | None = None
        self.asked: list[tuple[Event, ...]] = []

    def reserve(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        self.meter = self.budget.reserve(epsilon, what, delta)
        self.table = PrivateTable(MemoryRows(*small_table(30), CODEBOOK), self.meter, self.coins)

    def released(self, query: Query[Any], price: Price, charge: Callable[[], tuple[Event, ...]]) -> Sums:
        self.asked.append(charge())
        assert self.table is not None
        return self.table.released(query, price)

    def close(self) -> None: ...


def test_the_holder_s_answer_is_paid_for_on_both_sides() -> None:
    holder, budget = Holder(1), Budget(1)
    reservation = reserved(holder, budget, Fraction(1), "a count")
    assert holder.budget.entries[0].what == "a count"
    table = private_table(holder, reservation)
    assert type(table) is PrivateTable
    assert table.sampler == f"hedgerow, {holder.coins.name}"
    found = [table.ask(query, Fraction(1, 4)) for query in (Rows(), Sizes(ROOT, [0]))]
    local = PrivateTable(MemoryRows(*small_table(30), CODEBOOK), Budget(1).reserve(1, "a count"), SeededCoins(5))
    assert [np.asarray(each).tolist() for each in found] == [
        np.asarray(local.ask(query, Fraction(1, 4))).tolist() for query in (Rows(), Sizes(ROOT, [0]))
    ]
    assert sum(holder.asked, ()) == holder.meter.events == reservation.events
    assert [event.query for event in reservation.events] == ["rows", "sizes"]


def test_what_the_holder_refuses_costs_nothing_here() -> None:
    holder, budget = Holder(1), Budget(5)
    with pytest.raises(BudgetError, match="requested ε = 2"):
        reserved(holder, budget, Fraction(2), "a count")
    assert budget.entries == ()
    table = private_table(holder, reserved(holder, budget, Fraction(1), "a count"))
    with pytest.raises(BudgetError, match="short by"):
        table.ask(Rows(), Fraction(2))
    with pytest.raises(PlanError, match="at least one"):
        table.ask(Sizes(ROOT, []), Fraction(1))
    assert holder.asked == []
    assert holder.meter.events == ()
