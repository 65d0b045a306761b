"""Charges that come at the same moment, or from a forked copy: nobody looks at rows for money that somebody else has spent.

No race here is left to luck. The first thread stops inside its charge, between looking at what is left and taking it, until the second
one has either come as far (then nothing keeps them apart, and both would be paid) or stands waiting before the lock.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hedgerow.accounting import budget_file
from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, Event
from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.errors import BudgetError

PATIENCE = 60  # seconds after which a test fails that would hang: nothing is measured by it


class Meeting:
    """Where the first thread waits inside until the second is inside, too, or waits for the lock."""

    def __init__(self) -> None:
        self.inside = 0
        self.waiting = False
        self.changed = threading.Condition()

    def enter(self) -> None:
        with self.changed:
            self.inside += 1
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.inside > 1 or self.waiting, PATIENCE)

    def wait_for_lock(self) -> None:
        with self.changed:
            self.waiting = True
            self.changed.notify_all()


class WatchedLock:
    """The same lock; it tells when somebody has to wait for it."""

    def __init__(self, lock: Any, meeting: Meeting) -> None:
        self.lock, self.meeting = lock, meeting

    def __enter__(self) -> None:
        if not self.lock.acquire(blocking=False):
            self.meeting.wait_for_lock()
            assert self.lock.acquire(timeout=PATIENCE)

    def __exit__(self, *error: object) -> None:
        self.lock.release()


class Amount(Fraction):
    """An exact fraction that stops at its meeting when it is compared with what is left."""

    meeting: Meeting

    def __new__(cls, value: Any, meeting: Meeting) -> Amount:
        self = super().__new__(cls, value)
        self.meeting = meeting
        return self

    def __le__(self, other: Any) -> bool:
        if other != 0:
            self.meeting.enter()
        return super().__le__(other)

    def __lt__(self, other: Any) -> bool:
        if other == 0:  # `rho_after` looks at what is asked once it was told what is spent
            self.meeting.enter()
        return super().__lt__(other)


def laplace(epsilon: Fraction) -> Event:
    return Event("rows", DISCRETE_LAPLACE, epsilon, 1, Fraction(1), Fraction(1))


def gaussian(rho: Fraction) -> Event:
    return Event("rows", DISCRETE_GAUSSIAN, Fraction(0), 1, Fraction(1), 1 / (2 * rho), rho)


def both(*works: Callable[[], Any]) -> list[Any]:
    """What each returned, or the error that it raised. The first is begun first."""
    found: list[Any] = [None] * len(works)

    def do(i: int) -> None:
        try:
            found[i] = works[i]()
        except BaseException as error:
            found[i] = error

    threads = [threading.Thread(target=do, args=(i,), daemon=True) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return found


def watched(reservation: Reservation, meeting: Meeting) -> Reservation:
    reservation._lock = WatchedLock(reservation._lock, meeting)  # type: ignore[assignment]
    return reservation


def check_one_was_paid(found: list[Any]) -> None:
    refused = [each for each in found if isinstance(each, BudgetError)]
    assert [each for each in found if each is not None] == refused
    assert len(refused) == 1
    assert "short by" in str(refused[0]) or "more than what is left" in str(refused[0])


def test_two_charges_at_once_do_not_share_the_money() -> None:
    meeting = Meeting()
    reservation = watched(Budget(1).reserve(1, "fit"), meeting)
    found = both(*[lambda: reservation.charge(laplace(Amount("3/5", meeting)))] * 2)
    check_one_was_paid(found)
    assert reservation.charged == Fraction(3, 5)
    assert len(reservation.events) == 1


def test_two_charges_at_once_do_not_share_the_rho() -> None:
    meeting = Meeting()
    reservation = watched(Budget(1, 1e-6).reserve(1, "fit", 1e-6), meeting)
    most = reservation.rho * Fraction(3, 5)
    found = both(*[lambda: reservation.charge(gaussian(Amount(most, meeting)))] * 2)
    check_one_was_paid(found)
    assert reservation.rho_charged == most
    assert len(reservation.events) == 1


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_charge_is_not_lost_by_settling_meanwhile(kind: str, tmp_path: Path) -> None:
    """Settled while a charge is under way, the look would have cost nothing."""
    budget = Budget(1) if kind == "memory" else BudgetFile.create(tmp_path / "budget.json", 1)
    meeting = Meeting()
    reservation = watched(budget.reserve(1, "fit"), meeting)
    begun = threading.Event()

    class Begun(Amount):
        def __le__(self, other: Any) -> bool:
            begun.set()
            return super().__le__(other)

    def settle() -> None:
        assert begun.wait(PATIENCE)
        reservation.settle()
        with meeting.changed:  # without a lock it comes this far at once
            meeting.inside += 1
            meeting.changed.notify_all()

    assert both(lambda: reservation.charge(laplace(Begun("3/5", meeting))), settle) == [None, None]
    assert budget.spent == Fraction(3, 5)


class SlowBudget(Budget):
    """A budget in memory that stops between looking at its entries and adding one."""

    meeting: Meeting

    def _with_room_for(self, entries: Any, new: Any) -> Any:
        self.meeting.enter()
        return super()._with_room_for(entries, new)


class SlowFile(BudgetFile):
    meeting: Meeting

    def _with_room_for(self, entries: Any, new: Any) -> Any:
        self.meeting.enter()
        return super()._with_room_for(entries, new)


def test_two_requests_at_once_do_not_share_the_budget() -> None:
    budget = SlowBudget(1)
    budget.meeting = Meeting()
    budget._lock = WatchedLock(budget._lock, budget.meeting)  # type: ignore[assignment]
    found = both(*[lambda: budget.reserve("0.6", "fit") and None] * 2)
    check_one_was_paid(found)
    assert budget.spent == Fraction(3, 5)


@pytest.mark.parametrize("one_object", [True, False], ids=["one object", "two of one file"])
def test_two_requests_at_once_do_not_share_the_file(one_object: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BudgetFile.create(tmp_path / "budget.json", 1)
    meeting = Meeting()
    budgets = [SlowFile(tmp_path / "budget.json") for _ in range(2)]
    if one_object:
        budgets = [budgets[0]] * 2
    for budget in budgets:
        budget.meeting = meeting
    if one_object:
        budgets[0]._lock = WatchedLock(budgets[0]._lock, meeting)  # type: ignore[assignment]
    flock = fcntl.flock

    def told(file: Any, how: int) -> None:
        try:
            flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            meeting.wait_for_lock()
            flock(file, how)

    monkeypatch.setattr(budget_file.fcntl, "flock", told)
    found = both(*[lambda budget=budget: budget.reserve("0.6", "fit") and None for budget in budgets])
    check_one_was_paid(found)
    assert BudgetFile(tmp_path / "budget.json").spent == Fraction(3, 5)


# ---------------------------------------------------------------- a fork


def _charges(reservation: Reservation, results: Any) -> None:
    try:
        reservation.charge(laplace(Fraction(1)))
        results.put("paid")
    except BudgetError as error:
        results.put(str(error))


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_forked_copy_of_a_reservation_pays_for_nothing(kind: str, tmp_path: Path) -> None:
    """Parent and child would each pay a look with the same ε."""
    budget = Budget(1) if kind == "memory" else BudgetFile.create(tmp_path / "budget.json", 1)
    reservation = budget.reserve(1, "fit")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_charges, args=(reservation, results))
    child.start()
    assert "in the process that reserved it" in results.get(timeout=PATIENCE)
    child.join()
    reservation.charge(laplace(Fraction(1)))
    assert reservation.charged == 1
