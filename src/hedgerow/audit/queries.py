"""Every query under attack: asked a great many times about two neighbouring tables, by the code that training uses."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.accounting.prices import Price, Rho
from hedgerow.accounting.zcdp import rho_for
from hedgerow.audit.attack import Finding, finding_of
from hedgerow.audit.outputs import Columns
from hedgerow.engines.memory import MemoryRows
from hedgerow.private_table import PrivateTable
from hedgerow.queries import QUERIES, ChooseLocally
from hedgerow.queries.attacks import COPIES, DIGIT, Attack, codebook_of

ASKS = 100  # of a query with one reservation


def attacks() -> dict[str, Attack]:
    """The attacks on every proven query, by name."""
    return {attack.name: attack for query in QUERIES for attack in query.attacks()}


NOT_PROVEN = ChooseLocally.attacks()[0]


@cache
def tables_of(rows: tuple[tuple[int, int, int], ...], copies: bool) -> MemoryRows:
    """The rows, once or in COPIES copies; encoded once and asked many times."""
    codebook, times = codebook_of(copies), COPIES if copies else 1
    a, b, labels = (np.tile(np.array(column, dtype=np.int64), times) for column in zip(*rows, strict=True))
    columns = {"a": a, "b": b}
    if copies:
        copy = np.repeat(np.arange(COPIES), len(rows))
        columns = {"first": copy // DIGIT, "second": copy % DIGIT} | columns
    return MemoryRows(columns, labels, codebook)


def answers(attack: Attack, with_row: bool, price: Price, reserve: Callable[[], Reservation], runs: int) -> Columns:
    """At least that many runs."""
    rows = (*attack.rows, attack.more) if with_row else tuple(attack.rows)
    engine, found, done = tables_of(rows, attack.copies), list[NDArray[Any]](), 0
    query, cost = attack.make(engine.codebook), price if attack.prices == 1 else price * attack.prices
    while done < runs:
        table = PrivateTable(engine, reserve())
        for _ in range(_asks(attack)):
            found.append(attack.lines(table.ask(query, cost)))
            done += attack.runs
    lines = np.concatenate(found)
    return {f"number {j + 1}": lines[:, j].astype(np.float64) for j in range(lines.shape[1])}


def _asks(attack: Attack) -> int:
    """How often one reservation is asked."""
    return ASKS if attack.runs == 1 else 1


def attack_query(attack: Attack, epsilon: str, runs: int, level: float, delta: str = "0") -> Finding:
    """level: chance of error of each bound of the verdict. With δ the query is paid for in ρ, and its noise is Gaussian."""
    pure, share = Fraction(epsilon), Fraction(delta)
    price: Price = Rho(rho_for(pure, share)) if share else pure

    def reserve() -> Reservation:
        amount = pure if share else pure * attack.prices * _asks(attack)
        return Budget(amount, share).reserve(amount, "audit", share)

    without, with_row = (answers(attack, side, price, reserve, runs) for side in (False, True))
    name = f"{attack.name}, ε = {epsilon}" + (f", δ = {delta}" if share else "")
    return finding_of(name, attack.why, without, with_row, float(pure), float(share), level, classifier=False)
