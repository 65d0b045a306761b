"""Budgets: money is taken before the rows are looked at.

    budget.reserve(ε, what)  →  Reservation  →  charge(event) before each look  →  settle() at the end

A reservation takes the whole ε of a request at once, so that a request which cannot be paid in full is refused before it
looks at anything. `settle` gives back what the request did not use; that amount follows from what it released. A request
that crashed or was interrupted never settles, and its whole reservation stays spent.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hedgerow.accounting.events import Event
from hedgerow.accounting.loss import exact_epsilon, text_of_fraction
from hedgerow.errors import BudgetError


@dataclass(frozen=True)
class Entry:
    """One request in a budget: what was reserved, and what it spent in the end (None: it never settled)."""

    key: str
    when: str
    what: str
    reserved: Fraction
    spent: Fraction | None = None

    @property
    def cost(self) -> Fraction:
        return self.reserved if self.spent is None else self.spent


class Budget:
    """A total ε for one table, shared by everything that reads it.

    >>> budget = Budget("0.3")
    >>> for amount in (0.1, 0.2):
    ...     reservation = budget.reserve(amount, "a look")
    >>> budget.remaining
    Fraction(0, 1)
    """

    def __init__(self, epsilon: Any) -> None:
        self._epsilon = exact_epsilon(epsilon)
        self._entries: tuple[Entry, ...] = ()
        self._lock = threading.RLock()
        self._process = os.getpid()

    @property
    def epsilon(self) -> Fraction:
        return self._epsilon

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    @property
    def spent(self) -> Fraction:
        return sum((entry.cost for entry in self.entries), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        return self.epsilon - self.spent

    def reserve(self, epsilon: Any, what: str) -> Reservation:
        """Take ε for one request, or refuse with an error that says by how much the budget falls short."""
        amount = exact_epsilon(epsilon)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        entry = Entry(uuid.uuid4().hex, when, what, amount)
        self._change(lambda entries: self._with_room_for(entries, entry))
        return Reservation(self, entry)

    def _with_room_for(self, entries: tuple[Entry, ...], new: Entry) -> tuple[Entry, ...]:
        remaining = self.epsilon - sum((entry.cost for entry in entries), Fraction(0))
        if not 0 < new.reserved <= remaining:
            raise BudgetError(
                f"budget cannot pay for {new.what}: requested ε = {text_of_fraction(new.reserved)}, remaining "
                f"{text_of_fraction(remaining)} of {text_of_fraction(self.epsilon)}, short by "
                f"{text_of_fraction(new.reserved - remaining)}. Nothing was spent. "
                + ("Ask for at most what remains." if remaining > 0 else "The budget is used up.")
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
        return (
            f"{type(self).__name__}(ε = {text_of_fraction(self.epsilon)}, spent {text_of_fraction(self.spent)}, "
            f"remaining {text_of_fraction(self.remaining)})"
        )

    # scikit-learn clones an estimator by copying its parameters. A copied budget would pay twice with the same money, so a
    # copy is the budget itself, and it cannot travel to another process.
    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self

    def __reduce__(self) -> Any:
        raise BudgetError(
            "a Budget in memory cannot be sent to another process: each copy would spend the same money again. "
            "Use threads, or hedgerow.BudgetFile(path), which all processes share."
        )


class Reservation:
    """The ε of one request. `charge` is called before each look at the rows and refuses what was not reserved."""

    def __init__(self, budget: Budget, entry: Entry) -> None:
        self._budget = budget
        self._entry = entry
        self._events: list[Event] = []
        self._charged = Fraction(0)
        self._settled = False
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def epsilon(self) -> Fraction:
        return self._entry.reserved

    @property
    def entry(self) -> Entry:
        return self._entry

    @property
    def what(self) -> str:
        return self._entry.what

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def charged(self) -> Fraction:
        return self._charged

    def charge(self, event: Event) -> None:
        """Take the event's ε from the reservation, or refuse: the look must come after this call returns."""
        if not isinstance(event.epsilon, Fraction) or os.getpid() != self._process:
            raise BudgetError(f"{self.what}: a charge must be an exact fraction, made in the process that reserved it.")
        with self._lock:
            left = self.epsilon - self.charged
            if self._settled or not 0 < event.epsilon <= left:
                short = max(event.epsilon - left, Fraction(0))
                raise BudgetError(
                    f"{self.what}: {event.verb} requested ε = {text_of_fraction(event.epsilon)}, remaining of its "
                    f"reservation {text_of_fraction(left)}, short by {text_of_fraction(short)}"
                    + ("; the reservation is settled already." if self._settled else ".")
                )
            self._charged += event.epsilon
            self._events.append(event)

    def settle(self) -> None:
        """The request has ended well: keep what its events cost, give the rest back."""
        with self._lock:
            if not self._settled and os.getpid() == self._process:  # a forked copy does not know what the original charged
                self._settled = True
                self._budget._settle(self._entry.key, self.charged)
