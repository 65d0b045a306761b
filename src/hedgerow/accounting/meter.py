"""Budgets: the loss is charged before the rows are read.

    budget.reserve(ε, what)  →  Reservation  →  charge(event) before each query  →  settle() at the end

A reservation takes the whole ε of a request at once, so that a request which cannot be paid in full is refused before it
reads a row. `settle` gives back what the request did not use; that amount follows from what it released. A request
that crashed or was interrupted never settles, and its whole reservation stays spent.

A reservation with δ > 0 is a filter of concentrated privacy: its (ε, δ) is worth a ρ that is set beforehand, the ρ of its events add
up to that at most, and it keeps the whole (ε, δ) in the end: what is certified is the ρ that was set, not what was reached.  [Z1] [Z3]

A budget has a unit, rows or persons, since losses of different units do not add up: a request of another is refused.  [U3]
"""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hedgerow import formatting
from hedgerow.accounting.advice import payable
from hedgerow.accounting.events import DISCRETE_GAUSSIAN, Event
from hedgerow.accounting.loss import MOST_DELTA, exact_delta, exact_epsilon, text_of_delta
from hedgerow.accounting.units import ROW, Unit, check_unit, checked_unit
from hedgerow.accounting.zcdp import rho_after, rho_for, zcdp_cost
from hedgerow.errors import BudgetError, PlanError

NOTE = re.compile(r", counts ([0-9a-f]{12}(?: [0-9a-f]{12})*)(?: of rows ([0-9a-f]{12}))?(?: after ([0-9a-f]{12}))?$")  # noted_counts.py


@dataclass(frozen=True)
class Entry:
    """One request in a budget: what was reserved, and what ε it spent in the end (None: it never settled). Its δ is spent whole.

    unit: what it was counted in; None for a request from before budgets had a unit
    """

    key: str
    when: str
    what: str
    reserved: Fraction
    spent: Fraction | None = None
    delta: Fraction = Fraction(0)
    unit: Unit | None = None

    @property
    def cost(self) -> Fraction:
        return self.reserved if self.spent is None else self.spent

    @property
    def shown(self) -> str:
        """`what`, for people: without the names of counts that are noted there."""
        return NOTE.sub("", self.what)


class Budget:
    """A total ε, and perhaps a total δ, for one table, shared by everything that reads it. Requests add up, each by itself.

    It is in memory alone: what was spent is forgotten when the line that makes it runs again, or Python ends. For a table of your own take
    a `BudgetFile`, which keeps it.

    unit: what it is counted in, such as Unit.of(schema); without one, that of its first request. Requests of another are refused.

    >>> budget = Budget("0.3")
    >>> for amount in (0.1, 0.2):
    ...     reservation = budget.reserve(amount, "a query")
    >>> budget.remaining
    Fraction(0, 1)
    """

    def __init__(self, epsilon: Any, delta: Any = 0, unit: Unit | None = None) -> None:
        self._epsilon = exact_epsilon(epsilon)
        self._delta = exact_delta(delta)
        self._unit = None if unit is None else checked_unit(unit)
        self._entries: tuple[Entry, ...] = ()
        self._lock = threading.RLock()
        self._process = os.getpid()

    @property
    def epsilon(self) -> Fraction:
        """The total ε."""
        return self._epsilon

    @property
    def delta(self) -> Fraction:
        """The total δ."""
        return self._delta

    @property
    def unit(self) -> Unit | None:
        """None until the first request, where none was given."""
        return self._unit if self._unit is not None else next((entry.unit for entry in self.entries if entry.unit is not None), None)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every request that was reserved, in its order, with what it cost."""
        return self._entries

    @property
    def spent(self) -> Fraction:
        """The ε of all requests so far."""
        return sum((entry.cost for entry in self.entries), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """The ε that is left."""
        return self.epsilon - self.spent

    @property
    def spent_delta(self) -> Fraction:
        """The δ of all requests so far."""
        return sum((entry.delta for entry in self.entries), Fraction(0))

    @property
    def remaining_delta(self) -> Fraction:
        """The δ that is left."""
        return self.delta - self.spent_delta

    def reserve(self, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> Reservation:
        """Take (ε, δ) for one request, or refuse with an error that says by how much the budget falls short.

        unit: what the request is counted in. A table that is counted in another does not take the reservation.
        """
        return self._reserve(_entry(epsilon, what, delta, unit))

    def reserve_under(self, key: str, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> Reservation:
        """`reserve` for a request that has a key of its own. One that is in the budget already gets no second reservation."""
        return self._reserve(replace(_entry(epsilon, what, delta, unit), key=key))

    def _reserve(self, entry: Entry) -> Reservation:
        rho = rho_for(entry.reserved, entry.delta) if entry.delta else Fraction(0)  # refuses what has no ρ, before anything is taken
        self._change(lambda entries: self._with_room_for(entries, entry))
        return Reservation(self, entry, rho)

    def check_room(self, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> None:
        """Refuse what `reserve` would refuse now, and take nothing: others may wait for this request."""
        self._with_room_for(self.entries, _entry(epsilon, what, delta, unit))

    def _with_room_for(self, entries: tuple[Entry, ...], new: Entry) -> tuple[Entry, ...]:
        if any(entry.key == new.key for entry in entries):
            raise BudgetError(f"{new.what}: a request was paid for under the same key already. Nothing more was spent.")
        own, requested = self.unit, new.unit or ROW
        if own is not None and own != requested:
            other = (
                f"Set rows_per_person = {own.rows_per_person} in the schema, or give it" if own.person == requested.person else "Give it"
            )
            with_delta = f"--delta {text_of_delta(self.delta or min(10 * new.delta, MOST_DELTA))} " if self.delta or new.delta else ""
            advice = f"{other} a budget of its own: `hedgerow budget init FILE --epsilon TOTAL {with_delta}{requested.options}`."
            check_unit(own, requested, "budget", new.what, advice)
        remaining = self.epsilon - sum((entry.cost for entry in entries), Fraction(0))
        left_delta = self.delta - sum((entry.delta for entry in entries), Fraction(0))
        for symbol, wanted, left, whole, least in (
            ("ε", new.reserved, remaining, self.epsilon, new.reserved > 0),
            ("δ", new.delta, left_delta, self.delta, new.delta >= 0),
        ):
            if not least or wanted > left:
                raise BudgetError(
                    f"budget cannot pay for {new.what}: requested {symbol} = {formatting.amount(wanted)}, remaining "
                    f"{formatting.amount(left)} of {formatting.amount(whole)}, short by {formatting.amount(wanted - left)}. Nothing was "
                    f"spent. {payable(remaining, left_delta, new.delta, self.delta)}"
                )
        return (*entries, new)

    def _settle(self, key: str, spent: Fraction) -> None:
        self._change(lambda entries: tuple(replace(e, spent=spent) if e.key == key else e for e in entries))

    def _change(self, change: Callable[[tuple[Entry, ...]], tuple[Entry, ...]]) -> None:
        """Replace the entries by changed ones, as one step that nobody else can come between."""
        if os.getpid() != self._process:
            raise BudgetError(
                "a Budget in memory was copied to another process by a fork: each copy would spend the same money again. "
                "Use hedgerow.BudgetFile(path), which all processes share."
            )
        with self._lock:
            self._entries = change(self._entries)

    def __repr__(self) -> str:
        delta = f"; δ = {formatting.amount(self.delta)}, remaining {formatting.amount(self.remaining_delta)}" if self.delta else ""
        unit = self.unit
        return (
            f"{type(self).__name__}(ε = {formatting.amount(self.epsilon)}, spent {formatting.amount(self.spent)}, "
            f"remaining {formatting.amount(self.remaining)}{delta}{'' if unit is None else f'; for {unit.words}'})"
        )

    def _repr_html_(self) -> str:
        """How a notebook shows it: a bar of what is spent, and the requests."""
        total, entries = self.epsilon, self.entries
        spent = sum((entry.cost for entry in entries), Fraction(0))
        words = f"{formatting.amount(spent)} of ε = {formatting.amount(total)} spent, {formatting.amount(total - spent)} left"
        lines = [(entry.shown, formatting.loss(entry.cost, entry.delta)) for entry in entries]
        return formatting.gauge_html(float(spent / total), words) + (formatting.pairs_html(lines) if lines else "")

    # scikit-learn clones an estimator by copying its parameters. A copied budget would pay twice with the same money, so a
    # copy is the budget itself, and it cannot travel to another process.
    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self

    def __reduce__(self) -> Any:
        raise BudgetError(
            "a Budget in memory cannot be sent to another process: each copy would spend the same money again. "
            "Use threads, or hedgerow.BudgetFile(path), which all processes share. To keep a fitted model, save what it has released: "
            "model.release_.save(path); of a pipeline, take the budget out of a fitted copy first: model.set_params(budget=None)."
        )


def checked_budget(budget: Any, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Budget:
    """The one that was given; without one the request has a budget of its own."""
    paying = budget if budget is not None else Budget(epsilon, delta)
    if not isinstance(paying, Budget):
        path = isinstance(budget, (str, os.PathLike))
        instead = f"hedgerow.BudgetFile({os.fspath(budget)!r})" if path else "a hedgerow.Budget or BudgetFile"
        raise PlanError(f"budget: got {paying!r}; expected {instead}. Nothing was spent.")
    return paying


def _entry(epsilon: Any, what: str, delta: Any, unit: Unit) -> Entry:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Entry(uuid.uuid4().hex, when, what, exact_epsilon(epsilon), delta=exact_delta(delta), unit=checked_unit(unit))


class Reservation:
    """The (ε, δ) of one request. `charge` is called before each query and refuses what was not reserved."""

    def __init__(self, budget: Budget, entry: Entry, rho: Fraction = Fraction(0)) -> None:
        self._budget = budget
        self._entry = entry
        self._events: list[Event] = []
        self._charged = Fraction(0)
        self._rho = rho
        self._rho_charged = Fraction(0)
        self._all_pure = True
        self._settled = False
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def epsilon(self) -> Fraction:
        return self._entry.reserved

    @property
    def delta(self) -> Fraction:
        return self._entry.delta

    @property
    def rho(self) -> Fraction:
        """What (ε, δ) is worth in concentrated privacy, all events together; 0 where δ is 0.  [Z3]"""
        return self._rho

    @property
    def rho_charged(self) -> Fraction:
        """The ρ of the events so far, where δ is above 0."""
        return self._rho_charged

    @property
    def entry(self) -> Entry:
        return self._entry

    @property
    def unit(self) -> Unit:
        """What its ε is counted in."""
        return self._entry.unit or ROW

    @property
    def what(self) -> str:
        return self._entry.what

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def charged(self) -> Fraction:
        """The ε of the events so far; with δ above 0 that is the whole, from the beginning."""
        return self.epsilon if self.delta else self._charged

    def charge(self, *events: Event) -> None:
        """Take the events' losses from the reservation, all or none, or refuse: the rows may be read only after this call returns."""
        exact = all(isinstance(event.epsilon, Fraction) and isinstance(event.rho, Fraction) for event in events)
        if not exact or os.getpid() != self._process:
            raise BudgetError(f"{self.what}: a charge must be an exact fraction, made in the process that reserved it.")
        with self._lock:
            before = self._charged, self._rho_charged, self._all_pure
            try:
                for event in events:
                    if self.delta:
                        self._charge_rho(event)
                    else:
                        self._charge_epsilon(event)
                self._confirm()
            except BaseException:
                self._charged, self._rho_charged, self._all_pure = before
                raise
            self._events.extend(events)

    def _confirm(self) -> None:
        """The last step of a charge, which nothing follows but the look: what is refused here is not charged."""

    def _charge_epsilon(self, event: Event) -> None:
        left = self.epsilon - self._charged
        if event.rho or event.mechanism == DISCRETE_GAUSSIAN:
            raise BudgetError(
                f"{self.what}: {event.query} asks for Gaussian noise, which is never pure ε-differential privacy. Reserve a delta above 0."
            )
        if self._settled or not 0 < event.epsilon <= left:
            short = max(event.epsilon - left, Fraction(0))
            raise BudgetError(
                f"{self.what}: {event.query} requested ε = {formatting.amount(event.epsilon)}, remaining of its "
                f"reservation {formatting.amount(left)}, short by {formatting.amount(short)}"
                + ("; the reservation is settled already." if self._settled else ".")
            )
        self._charged += event.epsilon

    def _charge_rho(self, event: Event) -> None:
        """Allowed while the ρ of all events fits, or while all of them are pure and their ε fits: either is (ε, δ).  [Z4]"""
        cost = zcdp_cost(event)
        pure = self._charged + event.epsilon if event.mechanism != DISCRETE_GAUSSIAN and self._all_pure else None
        fits = pure is not None and pure <= self.epsilon
        try:
            if self._settled or cost <= 0 or event.epsilon < 0:
                raise PlanError("the reservation is settled already." if self._settled else "a charge must be above 0.")
            self._rho_charged = self._rho_charged + cost if fits else rho_after(self._rho_charged, cost, self._rho)  # [Z1]
        except PlanError as error:
            raise BudgetError(
                f"{self.what}: {event.query} is more than what is left of {formatting.loss(self.epsilon, self.delta)}: {error}"
            ) from error
        self._charged, self._all_pure = (self._charged if pure is None else pure), pure is not None

    def settle(self) -> None:
        """The request has ended well: keep what its events cost, give the rest back. With δ above 0 the whole is kept.  [Z1]"""
        with self._lock:
            if not self._settled and os.getpid() == self._process:  # a forked copy does not know what the original charged
                self._settled = True
                self._budget._settle(self._entry.key, self.charged)
