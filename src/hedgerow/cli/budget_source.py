"""The budget that pays for a command: a budget file, one of this request only, or an owner's ledger.

Also what is printed when a query fails after the charge.
"""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from hedgerow import formatting
from hedgerow.accounting.advice import payable
from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.loss import MOST_DELTA, exact_delta, exact_epsilon, text_of_delta, text_of_fraction
from hedgerow.accounting.meaning import INIT
from hedgerow.accounting.meter import Budget, Entry, Reservation
from hedgerow.accounting.noted_counts import note, paid_within, rows_at
from hedgerow.accounting.units import ROW, Unit
from hedgerow.cli.console import complain, gauge, say, warn
from hedgerow.cli.errors import INTERRUPTED
from hedgerow.errors import BudgetError, NoBudgetWarning, PlanError
from hedgerow.release.parts import Part
from hedgerow.release.release import Release

NOTHING = "Nothing was charged, no row was read."  # not told where an error says so: of what is refused


class _ChargeTracking:
    """Mixin that knows this process's own charge: another process may charge the same file at the same time.

    The key of the charge is noted before it is written, and whether it was written is read when needed: Ctrl-C may come in between.
    sent: of a request to a service that goes on with it: how to fetch its answer
    request_key: of a request to a service that an earlier run may have charged
    own_key:     of a fit or a score of rows that are here
    """

    _key = ""
    request_key = ""
    own_key = ""
    sent = ""
    given_back = False
    free = False

    def _with_room_for(self, entries: tuple[Entry, ...], new: Entry) -> tuple[Entry, ...]:
        base: Any = super()
        changed: tuple[Entry, ...] = base._with_room_for(entries, new)
        self._key = new.key
        return changed

    def give_back(self, reservation: Reservation | None) -> None:
        """A service has given back what it was paid, since no row was looked at: so does a file, but for a request with a δ."""
        self.given_back = True
        if reservation is not None and not reservation.delta:
            with suppress(BudgetError):  # then it stays charged, which is said
                reservation.settle()  # at what was charged: nothing

    def cost_nothing(self) -> None:
        """The service was asked nothing, or has charged nothing. What a file has charged stays there."""
        self.free = True

    @property
    def charge(self) -> Entry | None:
        """None where nothing is charged."""
        budget: Any = self
        return next((entry for entry in budget.entries if entry.key == self._key), None)

    def reserve(self, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> Reservation:
        """A request that an earlier run has charged is not charged again: its service alone looks at rows, and charges them itself."""
        base: Any = super()
        if self.own_key:
            once: Reservation = base.reserve_under(self.own_key, epsilon, what, delta, unit)
            return once
        if not self.request_key:
            reservation: Reservation = base.reserve(epsilon, what, delta, unit)
            return reservation
        return self.reserve_once(self.request_key, epsilon, what, delta, unit) or Budget(epsilon, delta).reserve(epsilon, what, delta, unit)

    def reserve_once(self, key: str, *given: Any) -> Reservation | None:
        """As `reserve`, for a request to a service. None where an earlier run of the same command has paid: that pays for no look here."""
        budget: Any = self
        if any(entry.key == key for entry in budget.entries):
            self._key = key
            return None
        reservation: Reservation = budget.reserve_under(key, *given)
        return reservation


class TrackedBudget(_ChargeTracking, Budget):
    pass


class TrackedBudgetFile(_ChargeTracking, BudgetFile):
    """update_key: of rows that are added to a forest: which update it is"""

    update_key = ""

    def reserve_under(self, key: str, epsilon: Any, what: str, delta: Any = 0, unit: Unit = ROW) -> Reservation:
        """Counts that are an update are charged under the names of the counts, and those of the update."""
        key = "-".join([*key.split("-")[:2], self.update_key]) if self.update_key else key
        return super().reserve_under(key, epsilon, what, delta, unit)

    def pay_once(self, score: Sequence[Any], again: bool) -> None:
        """Charge a score under a key that follows from what is requested. Refused where one of this file's charges was for the same.

        score: all that makes it the same request
        again: then it is charged under another key
        """
        key = _key_of(score)
        before = [entry for entry in self.entries if entry.key.split("-")[0] == key]
        paid = next((entry for entry in before if entry.cost or entry.delta), None)
        if paid is not None and not again:
            raise PlanError(
                f"{self.name} has paid for this score already (this forest, DATA and ε: {formatting.loss(paid.cost, paid.delta)} at "
                f"{paid.when}). Nothing was spent. Take the score that was printed then, or written by -o: it is kept nowhere else. "
                "If it is lost, if the rows are others now, or to pay for one with other noise, add --again. (Thresholds for other "
                "recalls, and for another class, need that, too: name every --recall in the command that pays.)"
            )
        self.own_key = f"{key}-{len(before)}" if before else key

    def pay_for_fit(self, rows: Sequence[Any], fit: Sequence[Any], again: bool) -> None:
        """Charge a fit under a key that says which rows it is of (where they are, nothing in them), and what is fitted. Refused where
        one of this file's charges was for the same.

        again: then it is charged all the same
        """
        key = f"{_key_of(['fit', *rows])}-{_key_of(fit)}"
        before = [entry for entry in self.entries if entry.key.startswith(key)]
        paid = next((entry for entry in before if entry.cost or entry.delta), None)
        if paid is not None and not again:
            raise PlanError(
                f"{self.name} has paid for this very fit already (DATA, schema, ε and settings: {formatting.loss(paid.cost, paid.delta)} "
                f"at {paid.when}). Nothing was spent. Use the forest that was saved then. If it was not saved or is lost, if the rows are "
                "others now, or to pay for one with other noise, add --again."
            )
        self.own_key = f"{key}-{uuid.uuid4().hex if again else len(before)}"  # of two at the same time the second is refused

    def pay_for_update(self, rows: Sequence[Any], update: Sequence[Any], forest: Release, again: bool) -> None:
        """Charge rows that are added to a forest under a key that says which update it is. Refused where one of this file's charges was for
        the same, or for these very rows in the forest as it is.

        again: then it is charged all the same
        """
        key = _key_of(["update", forest.content_hash, *rows, *update])
        before = [entry for entry in self.entries if entry.key.split("-")[3:] == [key]]
        paid = next((entry for entry in before if entry.cost or entry.delta), None)
        if paid is not None and not again:
            raise PlanError(
                f"{self.name} has paid for this very update already (forest, DATA, ε, owner and batch: {_price(paid)}). Nothing was "
                "spent. Use the forest that was saved then. If it was not saved or is lost, if the rows are others now, or to pay for one "
                "with other noise, add --again."
            )
        if not again:
            self.check_not_within(rows, forest)
        self.update_key = f"{uuid.uuid4().hex if again else len(before)}-{key}"

    def check_not_within(self, rows: Sequence[Any], forest: Release) -> None:
        """Refuse to add rows to a forest in which this file has paid for their counts."""
        within = paid_within(self.entries, rows, forest, [part for part in forest.certificate.parts if part.counted])
        if within is not None:
            raise PlanError(
                f"{self.name} has paid for DATA in this forest already ({_told(within)}): added again, the same rows would be paid and "
                "counted twice. Nothing was spent. Use the forest as it is. If the rows are others now, or to add them all the same, add "
                "--again."
            )

    def note_counts(self, rows: Sequence[Any], release: Release, part: Part, before: Release | None = None) -> None:
        """Note with the charge of counts that are saved of which rows they are, and the names by which they are found again in a forest.

        part: of the rows; before: the forest that they were added to
        """
        with suppress(BudgetError):  # what they are for is paid for and saved
            noted = note(rows, release, part, before)
            self._change(lambda entries: tuple(replace(e, what=f"{e.what}{noted}") if e.key == self._key else e for e in entries))

    def check_not_seen(self, rows: Sequence[Any], release: Release) -> None:
        """Refuse a score on rows of which this file has paid for the forest's fit, or for their counts in it: they flatter it."""
        seen = paid_within(self.entries, rows, release, release.certificate.parts)
        if seen is not None:
            fit = seen.key.startswith(rows_at(rows))
            what = f"this forest's fit on DATA itself ({_price(seen)})" if fit else f"counts of DATA itself in this forest ({_told(seen)})"
            raise PlanError(
                f"{self.name} has paid for {what}: the rows that a forest was trained on flatter it. Nothing was spent. Give rows that "
                "were kept apart; or, if these are others by now, or to pay for this score all the same, add --training-rows."
            )


def _price(entry: Entry) -> str:
    return f"{formatting.loss(entry.cost, entry.delta)} at {entry.when}"


def _told(entry: Entry) -> str:
    return f"{entry.shown}: {_price(entry)}"


def _key_of(request: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(request).encode()).hexdigest()[:32]


class RemoteBudget(TrackedBudget):
    """The budget of one request to a service, whose ledger keeps the total."""

    def give_back(self, reservation: Reservation | None) -> None:
        self._key = ""

    def cost_nothing(self) -> None:
        self.free, self._key = True, ""


RequestBudget = TrackedBudget | TrackedBudgetFile


def open_budget(path: Path | None, epsilon: Any, delta: Any = 0, owners: bool = False) -> RequestBudget:
    """The budget in the file; or one for this request alone, with a warning that nothing keeps the total, unless an owner's ledger does."""
    amount, amount_delta = exact_epsilon(epsilon), exact_delta(delta)
    if path is not None:
        budget = TrackedBudgetFile(path)
        if amount_delta and not budget.delta:
            total, requested = text_of_fraction(budget.epsilon), text_of_delta(amount_delta)  # to be typed
            ten = text_of_delta(min(10 * amount_delta, MOST_DELTA))
            unit = "" if budget.unit in (None, ROW) else f" {budget.unit.options}"
            raise BudgetError(
                f"{path}: this budget pays for pure ε alone, and δ = {requested} was requested. Nothing was spent. "
                f"{payable(budget.remaining, Fraction(0), amount_delta, Fraction(0))} For a table that nothing was spent on yet, make a "
                f"budget that has one: `hedgerow budget init FILE --epsilon {total} --delta {ten}{unit}`, for ten such requests."
            )
        return budget
    if owners:
        return RemoteBudget(amount, amount_delta)
    warnings.warn(
        f"no --budget: nothing adds up the {formatting.loss(amount, amount_delta)} of this request and what others to the same "
        f"table spend. `{INIT}` makes a file that does.",
        NoBudgetWarning,
        stacklevel=2,
    )
    return TrackedBudget(amount, amount_delta)


@contextmanager
def paid_query(budget: RequestBudget, unfinished: str) -> Iterator[None]:
    """Run a paid query. After Ctrl-C or an error, say what stays charged; `unfinished` says what there is not."""
    with _interrupts_noted() as interrupted:
        try:
            yield
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or interrupted:
                complain(f"interrupted. {unfinished} {_charge_that_stays(budget)}")
                raise typer.Exit(INTERRUPTED) from error
            stays, refused = _charge_that_stays(budget), isinstance(error, BudgetError | PlanError)
            charged = (charge := budget.charge) is not None and (charge.cost or charge.delta)
            if budget.sent or charged or (budget.free and not (refused and stays == NOTHING)):
                warn(stays)
            raise


def _charge_that_stays(budget: RequestBudget) -> str:
    charge = budget.charge
    nothing = charge is None or not (charge.cost or charge.delta)
    if isinstance(budget, RemoteBudget) and not nothing and not budget.sent:
        return "What was looked at stays charged in the owner's ledger. The same command with --again looks at it, and is charged, anew."
    if charge is None or nothing or isinstance(budget, RemoteBudget):
        return budget.sent or NOTHING
    where = f" in {budget.name}" if isinstance(budget, BudgetFile) else " (there is no budget file: keep account of it)"
    spent = formatting.loss(charge.cost, charge.delta)
    if budget.given_back:
        why = "a file gives back no δ" if charge.delta else "an earlier run has charged it"
        return f"The charge of {spent} stays{where}, although the service has given it back: {why}."
    if budget.free:
        return f"The charge of {spent} stays{where}, although the service has charged nothing."
    stays = f"The charge of {spent} stays{where}: the rows may have been looked at, so it is not given back."
    return f"{stays} {budget.sent}".rstrip()


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


def print_remaining(budget: RequestBudget) -> None:
    ended = budget.charge
    if ended is not None and ended.cost < ended.reserved:
        unused, reserved = formatting.amount(ended.reserved - ended.cost), formatting.amount(ended.reserved)
        back = ": it is given back to the budget" if isinstance(budget, BudgetFile) else ""
        say(f"ended early: of the reserved ε = {reserved}, {unused} was not used{back}")
    if isinstance(budget, BudgetFile):
        left, total = budget.remaining, budget.epsilon
        delta = f", δ = {formatting.amount(budget.remaining_delta)} of {formatting.amount(budget.delta)}" if budget.delta else ""
        unit = "" if budget.unit is None else f" for {budget.unit.words}"
        say(f"budget {budget.name}: ε = {formatting.amount(left)} of {formatting.amount(total)}{delta} left{unit}")
        say(f"  {gauge(total - left, total)}")
