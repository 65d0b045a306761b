"""A Budget that is paid from a ledger: every estimator, count and private score runs on it unchanged."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.meter import Budget, Entry, Reservation
from hedgerow.accounting.units import ROW, Unit
from hedgerow.accounting.zcdp import rho_for
from hedgerow.curator.ledger.balances import Balance, tightest
from hedgerow.curator.ledger.database import patiently
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import LedgerError


class LedgerBudget(Budget):
    """What one analyst may spend on a dataset for a purpose. ε, spent and remaining are those of the ceiling that leaves the least.

    `entries` are the requests of this analyst for this purpose; others may have spent from the same ceiling.
    """

    def __init__(self, ledger: Ledger, dataset: str, analyst: str, purpose: str) -> None:
        self.ledger, self.dataset, self.analyst, self.purpose = ledger, dataset, analyst, purpose
        self._lock = threading.RLock()
        self._tightest()  # a dataset without a ceiling is refused now

    def _tightest(self) -> tuple[Balance, Balance]:
        found = self.ledger.accounts(self.dataset, self.analyst, self.purpose)
        if found[0].epsilon is None:
            raise LedgerError(f"dataset {self.dataset!r} has no ceiling in this ledger; expected its owner to set one first.")
        return tightest(found)

    @property
    def epsilon(self) -> Fraction:
        return self._tightest()[0].epsilon or Fraction(0)

    @property
    def delta(self) -> Fraction:
        return self._tightest()[1].delta or Fraction(0)

    @property
    def spent(self) -> Fraction:
        return self._tightest()[0].spent

    @property
    def remaining(self) -> Fraction:
        return self._tightest()[0].remaining or Fraction(0)

    @property
    def spent_delta(self) -> Fraction:
        return self._tightest()[1].spent_delta

    @property
    def remaining_delta(self) -> Fraction:
        return self._tightest()[1].remaining_delta or Fraction(0)

    @property
    def unit(self) -> Unit | None:
        return self.ledger.balance(self.dataset).unit

    @property
    def entries(self) -> tuple[Entry, ...]:
        found = self.ledger.reservations(self.dataset, self.analyst, self.purpose)
        given_back = Fraction(0)
        return tuple(
            Entry(r.key, r.when, r.what, r.epsilon, r.spent, given_back if r.state == "released" else r.delta, r.unit) for r in found
        )

    def reserve(self, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> Reservation:
        """Take (ε, δ) for one request, or refuse with an error that names the ceiling and says by how much it falls short."""
        amount, amount_delta = exact_epsilon(epsilon), exact_delta(delta)
        rho = rho_for(amount, amount_delta) if amount_delta else Fraction(0)  # refuses what has no ρ, before anything is taken
        reserved = self.ledger.reserve(self.dataset, self.analyst, self.purpose, amount, amount_delta, what, unit=unit)
        return LedgerReservation(self, Entry(reserved.key, reserved.when, what, amount, delta=amount_delta, unit=unit), rho)

    def reserve_under(self, key: str, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> Reservation:
        """As `reserve`: the ledger gives keys of its own."""
        return self.reserve(epsilon, what, delta, unit)

    def _settle(self, key: str, spent: Fraction) -> None:
        self.ledger.settle(key, spent)

    def __reduce__(self) -> Any:
        raise LedgerError("a budget of a ledger cannot be sent to another process: open the ledger there, by its address.")


class LedgerReservation(Reservation):
    """Before the first query it is on disk that the rows will be read; before each further query the dataset must not be closed."""

    _budget: LedgerBudget

    def __init__(self, budget: LedgerBudget, entry: Entry, rho: Fraction) -> None:
        super().__init__(budget, entry, rho)
        self._opened = False

    def _confirm(self) -> None:
        """A database that is away is waited for: what was looked at before is paid, and would be lost."""
        ledger, dataset = self._budget.ledger, self._budget.dataset
        if not self._opened:
            patiently(lambda: ledger.opened(self.entry.key))
            self._opened = True
        elif patiently(lambda: ledger.balance(dataset).closed):
            raise LedgerError(f"dataset {dataset!r} is closed: its owner has ended the connection. No row was looked at.")
