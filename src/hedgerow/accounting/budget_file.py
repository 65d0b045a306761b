"""A budget that survives between commands: a small JSON file, locked while it changes, on disk before rows are read."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_fraction
from hedgerow.accounting.meaning import TOTAL_DELTA
from hedgerow.accounting.meter import Budget, Entry
from hedgerow.accounting.units import Unit, checked_unit
from hedgerow.errors import BudgetError, PlanError

FORMAT = "hedgerow-budget"
VERSIONS = (1, 2, 3)  # 2 has a δ, 3 a unit


@dataclass(frozen=True)
class Held:
    """What a file holds. unit: None until the first request, and where it was spent from before budgets had one."""

    epsilon: Fraction
    delta: Fraction
    unit: Unit | None
    entries: tuple[Entry, ...]

    @property
    def before_units(self) -> tuple[Entry, ...]:
        """Requests of which nothing says what they were counted in."""
        return tuple(entry for entry in self.entries if entry.unit is None and entry.cost)


class BudgetFile(Budget):
    """The budget in an existing file. All processes that open the same file share one budget."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved once: two names of one file must share one lock, and a change of folder must not change the budget.
        self.path = Path(path).resolve()
        self.name = os.fspath(path)
        held = self.read()
        super().__init__(held.epsilon, held.delta)

    @classmethod
    def create(cls, path: str | os.PathLike[str], epsilon: Any, delta: Any = 0, unit: Unit | None = None) -> BudgetFile:
        """unit: what it is counted in; without one, that of its first request."""
        new = Held(exact_epsilon(epsilon), exact_delta(delta), None if unit is None else checked_unit(unit), ())
        try:
            # "x": a budget that exists is never replaced, since that would forget what was spent.
            with open(path, "x", encoding="utf-8") as file:
                file.write(_text(new))
                file.flush()
                os.fsync(file.fileno())
            _sync_folder(Path(path).resolve().parent)
        except FileExistsError as error:
            raise BudgetError(
                f"budget file {str(path)!r} exists already; its spending is kept. `hedgerow budget show {path}` shows it; "
                "choose another name for a new budget."
            ) from error
        except OSError as error:
            raise BudgetError(f"budget file {str(path)!r} cannot be written: {error.strerror}.") from error
        return cls(path)

    @property
    def epsilon(self) -> Fraction:
        """The total ε, as the file says."""
        return self.read().epsilon

    @property
    def delta(self) -> Fraction:
        """The total δ, as the file says."""
        return self.read().delta

    @property
    def unit(self) -> Unit | None:
        """What its ε is counted in: rows or persons; None before the first request."""
        return self.read().unit

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every request that was reserved, by whatever process."""
        return self.read().entries

    def state_unit(self, unit: Unit) -> None:
        """Its owner says what it is counted in, all that was spent from it so far included. Said once, it stays."""
        stated = checked_unit(unit)

        def state(held: Held) -> Held:
            if held.unit is not None and held.unit != stated:
                raise BudgetError(
                    f"budget file {self.name!r} is for {held.unit.words}; got {stated.words}. A unit that is known stays. Nothing was "
                    f"changed. Make another budget: `hedgerow budget init FILE --epsilon TOTAL {stated.options}`."
                )
            return replace(held, unit=stated)

        self._exchange(state)

    def _with_room_for(self, entries: tuple[Entry, ...], new: Entry) -> tuple[Entry, ...]:
        held = self.read()
        if held.unit is None and held.before_units:
            raise BudgetError(
                f"budget file {self.name!r} cannot pay for {new.what}: it was spent from before budgets had a unit, and does not say "
                f"whether on rows or on persons. Nothing was spent. State it, once: `hedgerow budget unit {shlex.quote(self.name)} --row`, "
                "or `--person COLUMN --rows-per-person K` as the schemas said. If it paid for both, leave it, and make a budget for each."
            )
        return super()._with_room_for(entries, new)

    def _change(self, change: Callable[[tuple[Entry, ...]], tuple[Entry, ...]]) -> None:
        def changed(held: Held) -> Held:
            entries = change(held.entries)
            first = next((entry.unit for entry in entries if entry.unit is not None), None)
            return replace(held, entries=entries, unit=first if held.unit is None else held.unit)

        self._exchange(changed)

    def _exchange(self, change: Callable[[Held], Held]) -> None:
        """One writer at a time, among threads and among processes. The lock file beside it is never removed."""
        try:
            lock = open(f"{self.path}.lock", "a")  # noqa: SIM115  closed below
        except OSError as error:
            raise BudgetError(f"budget file {self.name!r}: its lock cannot be opened ({error.strerror}).") from error
        with self._lock, lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._write(_text(change(self.read())))

    def read(self) -> Held:
        """All of it at once: another process may charge between two reads."""
        try:
            if self.path.stat().st_nlink > 1:
                raise BudgetError(
                    f"budget file {self.name!r} has a second name (a hard link): a charge would reach only one of them. Keep one name."
                )
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT and str(document["format"]).startswith("hedgerow-"):
                raise BudgetError(
                    f"{self.name!r} is no budget: it says that it is a {document['format']!r}; expected the file that `hedgerow budget "
                    "init` has made. Nothing was spent."
                )
            if document["format"] != FORMAT or document["version"] not in VERSIONS:
                raise ValueError("format")
            return _held(document)
        except FileNotFoundError as error:
            raise BudgetError(
                f"budget file {self.name!r} does not exist. `hedgerow budget init {self.name} --epsilon 2 --delta {TOTAL_DELTA}` makes one."
            ) from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, PlanError) as error:
            if isinstance(error, BudgetError):
                raise
            raise BudgetError(
                f"budget file {self.name!r} is damaged or not a budget ({type(error).__name__}); expected the JSON that "
                "`hedgerow budget init` writes. Restore it from a copy: nothing is spent until it can be read."
            ) from error

    def _write(self, text: str) -> None:
        """Replace the file whole: after a crash it is the old one or the new one, never half of one."""
        new = self.path.with_name(f".{self.path.name}.new")  # one name is enough: the caller holds the lock
        try:
            with open(new, "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), self.path.stat().st_mode)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise BudgetError(
                f"budget file {self.name!r} cannot be written ({error.strerror}): see `hedgerow budget show {self.name}` for what it holds."
            ) from error

    def __reduce__(self) -> Any:
        return (BudgetFile, (self.path,))


def _sync_folder(path: Path) -> None:
    """A name is on disk when its folder is: until then a crash may bring back the file that had it before, or none."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _held(document: dict[str, Any]) -> Held:
    version = document["version"]
    total, chance = exact_epsilon(document["epsilon"]), exact_delta(document["delta"] if version > 1 else 0)
    unit = _unit(document["unit"]) if version > 2 else None
    entries = tuple(_entry(item, version) for item in document["entries"])
    if any(entry.unit not in (None, unit) for entry in entries):
        raise ValueError("unit")
    return Held(total, chance, unit, entries)


def _unit(text: str | None) -> Unit | None:
    return None if text is None else Unit.read(text)


def _entry(item: dict[str, Any], version: int) -> Entry:
    reserved, delta = exact_epsilon(item["reserved"]), exact_delta(item["delta"] if version > 1 else 0)
    spent = None if item["spent"] is None else Fraction(str(item["spent"]))
    if spent is not None and (not 0 <= spent <= reserved or (delta and spent != reserved)):
        raise ValueError("spent")
    unit = _unit(item["unit"]) if version > 2 else None
    return Entry(str(item["key"]), str(item["when"]), str(item["what"]), reserved, spent, delta, unit)


def _text(held: Held) -> str:
    items = [
        {
            "key": entry.key,
            "when": entry.when,
            "what": entry.what,
            "reserved": text_of_fraction(entry.reserved),
            "spent": None if entry.spent is None else text_of_fraction(entry.spent),
            "delta": text_of_fraction(entry.delta),
            "unit": None if entry.unit is None else str(entry.unit),
        }
        for entry in held.entries
    ]
    totals = {"epsilon": text_of_fraction(held.epsilon), "delta": text_of_fraction(held.delta)}
    unit = None if held.unit is None else str(held.unit)
    document = {"format": FORMAT, "version": VERSIONS[-1], **totals, "unit": unit, "entries": items}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
