"""A reservation that was made when the request came, handed to the estimator that asks for one when its turn has come."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.meter import Entry, Reservation
from hedgerow.accounting.units import ROW, Unit
from hedgerow.accounting.zcdp import rho_for
from hedgerow.curator.ledger.budget import LedgerBudget, LedgerReservation
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import BudgetError
from hedgerow.remote.codec import rounded_up


class PrepaidBudget(LedgerBudget):
    """Pays once, and exactly what was reserved, in its unit. before_settle: called when all looks are made, before the ledger tells so."""

    def __init__(self, ledger: Ledger, reserved: Reserved, before_settle: Callable[[], None] = lambda: None) -> None:
        super().__init__(ledger, reserved.dataset, reserved.analyst, reserved.purpose)
        self._reserved: Reserved | None = reserved
        self._most = reserved.epsilon
        self._before_settle = before_settle

    def reserve(self, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> Reservation:
        amount, chance = exact_epsilon(epsilon), exact_delta(delta)
        rho = rho_for(amount, chance) if chance else Fraction(0)
        with self._lock:
            reserved = self._reserved
            if reserved is None or (reserved.epsilon, reserved.delta, reserved.unit) != (amount, chance, unit):
                raise BudgetError(f"{what}: this is not what was reserved for the request, or it was used already. No row was looked at.")
            self._reserved = None
        return LedgerReservation(self, Entry(reserved.key, reserved.when, what, amount, delta=chance, unit=unit), rho)

    def _settle(self, key: str, spent: Fraction) -> None:
        self._before_settle()
        self.ledger.settle(key, min(self._most, rounded_up(spent)))
