"""Paid looks from the command line: which budget pays, and what is said when the look ends badly after the charge."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_delta, text_of_fraction, text_of_loss
from hedgerow.accounting.meter import Budget, Entry
from hedgerow.cli.console import complain, gauge, say, warn
from hedgerow.cli.errors import INTERRUPTED
from hedgerow.errors import BudgetError, NoBudgetWarning


class _Watched:
    """Knows this process's own charge: another process may charge the same file at the same moment.

    Which charge it is, is noted before it is written, and whether it was written is read when somebody asks: Ctrl-C may come in between.
    """

    _key = ""

    def _with_room_for(self, entries: tuple[Entry, ...], new: Entry) -> tuple[Entry, ...]:
        budget: Any = super()
        changed: tuple[Entry, ...] = budget._with_room_for(entries, new)
        self._key = new.key
        return changed

    @property
    def charge(self) -> Entry | None:
        budget: Any = self
        return next((entry for entry in budget.entries if entry.key == self._key), None)


class WatchedBudget(_Watched, Budget):
    pass


class WatchedBudgetFile(_Watched, BudgetFile):
    pass


class OwnersBudget(WatchedBudget):
    """Of one request to a service, whose ledger keeps the total."""


Purse = WatchedBudget | WatchedBudgetFile


def open_purse(path: Path | None, epsilon: Any, delta: Any = 0, owners: bool = False) -> Purse:
    """The budget in the file; or one for this request alone, with a warning that nothing keeps the total, unless an owner's ledger does."""
    amount, chance = exact_epsilon(epsilon), exact_delta(delta)
    if path is not None:
        purse = WatchedBudgetFile(path)
        if chance and not purse.delta:
            total, asked = text_of_fraction(purse.epsilon), text_of_delta(chance)
            raise BudgetError(
                f"{path}: this budget pays for pure ε alone, and δ = {asked} was requested. Nothing was spent. Leave --delta out; or, for "
                "a table that nothing was spent on yet, make a budget that has one: "
                f"`hedgerow budget init FILE --epsilon {total} --delta {asked}`."
            )
        return purse
    if owners:
        return OwnersBudget(amount, chance)
    warnings.warn(
        f"no --budget: nothing adds up the {text_of_loss(amount, chance)} of this request and what others to the same "
        "table spend. `hedgerow budget init budget.json --epsilon TOTAL` makes a file that does.",
        NoBudgetWarning,
        stacklevel=2,
    )
    return WatchedBudget(amount, chance)


@contextmanager
def paid_look(purse: Purse, unfinished: str) -> Iterator[None]:
    """Run a paid look. After Ctrl-C or an error, say what stays charged; `unfinished` says what there is not."""
    with _interrupts_noted() as interrupted:
        try:
            yield
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or interrupted:
                complain(f"interrupted. {unfinished} {_what_stays(purse)}")
                raise typer.Exit(INTERRUPTED) from error
            if purse.charge is not None:
                warn(_what_stays(purse))
            raise


def _what_stays(purse: Purse) -> str:
    charge = purse.charge
    if charge is None:
        return "Nothing was charged, no row was read."
    if isinstance(purse, OwnersBudget):
        return "What was looked at stays charged in the owner's ledger."
    where = f" in {purse.name}" if isinstance(purse, BudgetFile) else " (there is no budget file: keep account of it)"
    return (
        f"The charge of {text_of_loss(charge.cost, charge.delta)} stays{where}: the rows may have been looked at, so "
        "it is not given back."
    )


@contextmanager
def _interrupts_noted() -> Iterator[list[int]]:
    """Note Ctrl-C apart from the exception that it causes: DuckDB turns that into a RuntimeError."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def say_what_is_left(purse: Purse) -> None:
    ended = purse.charge
    if ended is not None and ended.cost < ended.reserved:
        unused, reserved = text_of_fraction(ended.reserved - ended.cost), text_of_fraction(ended.reserved)
        back = ": it is given back to the budget" if isinstance(purse, BudgetFile) else ""
        say(f"ended early: of the reserved ε = {reserved}, {unused} was not used{back}")
    if isinstance(purse, BudgetFile):
        left, total = purse.remaining, purse.epsilon
        chance = f", δ = {text_of_delta(purse.remaining_delta)} of {text_of_delta(purse.delta)}" if purse.delta else ""
        unit = "" if purse.unit is None else f" for {purse.unit.words}"
        say(f"budget {purse.name}: ε = {text_of_fraction(left)} of {text_of_fraction(total)}{chance} left{unit}")
        say(f"  {gauge(total - left, total)}")
