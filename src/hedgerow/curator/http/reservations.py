"""Reservations of the service: what a request reserves, the budget that hands a reservation to an estimator, and giving one back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.meter import Entry, Reservation
from hedgerow.accounting.units import ROW, Unit
from hedgerow.accounting.zcdp import rho_for
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.logs import error_fields, log
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger.budget import LedgerBudget, LedgerReservation
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.database import patiently
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.errors import BudgetError, HedgerowError
from hedgerow.remote.codec import rounded_up


@dataclass(frozen=True)
class ReservationRequest:
    """What a request will reserve, known once everything that public facts can refuse is checked. what: a note for the ledger."""

    dataset: str
    purpose: str
    epsilon: Any
    delta: Any
    what: str
    unit: Unit


Reserve = Callable[[ReservationRequest, IdempotencyKey], Reserved]


class PrepaidBudget(LedgerBudget):
    """A budget of one reservation, made when the request came, for the estimator that runs later.

    Pays once, and exactly what was reserved, in its unit. `settled_at` is what it has cost, when the last query is done; the ledger
    settles it in one transaction with the answer (storing.py).
    """

    def __init__(self, ledger: Ledger, reserved: Reserved) -> None:
        super().__init__(ledger, reserved.dataset, reserved.analyst, reserved.purpose)
        self._reserved: Reserved | None = reserved
        self._most = reserved.epsilon
        self.settled_at: Fraction | None = None

    def reserve(self, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> Reservation:
        amount, amount_delta = exact_epsilon(epsilon), exact_delta(delta)
        rho = rho_for(amount, amount_delta) if amount_delta else Fraction(0)
        with self._lock:
            self.check_room(amount, what, amount_delta, unit)
            reserved, self._reserved = self._reserved, None
            assert reserved is not None
        return LedgerReservation(self, Entry(reserved.key, reserved.when, what, amount, delta=amount_delta, unit=unit), rho)

    def check_room(self, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> None:
        """It is reserved already: there is room for that, and for nothing else."""
        wanted = exact_epsilon(epsilon), exact_delta(delta), unit
        with self._lock:
            reserved = self._reserved
            if reserved is None or (reserved.epsilon, reserved.delta, reserved.unit) != wanted:
                raise BudgetError(f"{what}: this is not what was reserved for the request, or it was used already. No row was looked at.")

    def _settle(self, key: str, spent: Fraction) -> None:
        self.settled_at = min(self._most, rounded_up(spent))


def release_unopened(ledger: Ledger, reserved: Reserved, seconds: float = 0) -> bool:
    """Give back a reservation whose rows were never looked at; any other stays spent. seconds: for a database that is away.

    Where it cannot be given back now, the next start does so, or the same request goes on with it.
    """
    try:
        return patiently(lambda: ledger.release_if_unopened(reserved.key), seconds) is not None
    except HedgerowError as error:
        log("reservation not given back", logging.ERROR, reservation=reserved.key, **error_fields(error))
        return False


def unopened_for(curator: Curator, person: str, key: IdempotencyKey, wanted: ReservationRequest) -> Reserved | None:
    """A reservation that was made for this very request and never opened: it is paid, and the request goes on with it."""
    paid = curator.requests.newest(person, key.key)
    if paid is None or paid.key != key:
        return None
    found = curator.ledger.reservation(paid.reservation)
    same = (found.dataset, found.purpose, found.unit) == (wanted.dataset, wanted.purpose, wanted.unit)
    return found if same and not found.opened and not found.ended else None


def stopping() -> Refusal:
    return Refusal(503, "stopping", "The service is stopping. Nothing was spent.", {"Retry-After": "30"})
