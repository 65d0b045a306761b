"""A budget that survives between commands: a small JSON file, locked while it changes, on disk before rows are read."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_fraction
from hedgerow.accounting.meter import Budget, Entry
from hedgerow.errors import BudgetError, PlanError

FORMAT = "hedgerow-budget"


class BudgetFile(Budget):
    """The budget in an existing file. All processes that open the same file share one budget."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved once: two names of one file must share one lock, and a change of folder must not change the purse.
        self.path = Path(path).resolve()
        self.name = os.fspath(path)
        super().__init__(*self._read()[:2])

    @classmethod
    def create(cls, path: str | os.PathLike[str], epsilon: Any, delta: Any = 0) -> BudgetFile:
        amount, chance = exact_epsilon(epsilon), exact_delta(delta)
        try:
            # "x": a budget that exists is never replaced, since that would forget what was spent.
            with open(path, "x", encoding="utf-8") as file:
                file.write(_text(amount, chance, ()))
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
        return self._read()[0]

    @property
    def delta(self) -> Fraction:
        return self._read()[1]

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self._read()[2]

    def _change(self, change: Callable[[tuple[Entry, ...]], tuple[Entry, ...]]) -> None:
        """One writer at a time, among threads and among processes. The lock file beside it is never removed."""
        try:
            lock = open(f"{self.path}.lock", "a")  # noqa: SIM115  closed below
        except OSError as error:
            raise BudgetError(f"budget file {self.name!r}: its lock cannot be opened ({error.strerror}).") from error
        with self._lock, lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            total, chance, entries = self._read()
            self._write(_text(total, chance, change(entries)))

    def _read(self) -> tuple[Fraction, Fraction, tuple[Entry, ...]]:
        """The total ε, the total δ, the requests."""
        try:
            if self.path.stat().st_nlink > 1:
                raise BudgetError(
                    f"budget file {self.name!r} has a second name (a hard link): a charge would reach only one of them. "
                    "Keep one name."
                )
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT or document["version"] not in (1, 2):
                raise ValueError("format")
            with_delta = document["version"] == 2
            total, chance = exact_epsilon(document["epsilon"]), exact_delta(document["delta"] if with_delta else 0)
            return total, chance, tuple(_entry(item, with_delta) for item in document["entries"])
        except FileNotFoundError as error:
            raise BudgetError(
                f"budget file {self.name!r} does not exist. `hedgerow budget init {self.name} --epsilon 1` makes one."
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
                f"budget file {self.name!r} cannot be written ({error.strerror}): see `hedgerow budget show {self.name}` for what "
                "it holds."
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


def _entry(item: dict[str, Any], with_delta: bool) -> Entry:
    reserved, delta = exact_epsilon(item["reserved"]), exact_delta(item["delta"] if with_delta else 0)
    spent = None if item["spent"] is None else Fraction(str(item["spent"]))
    if spent is not None and (not 0 <= spent <= reserved or (delta and spent != reserved)):
        raise ValueError("spent")
    return Entry(str(item["key"]), str(item["when"]), str(item["what"]), reserved, spent, delta)


def _text(total: Fraction, chance: Fraction, entries: tuple[Entry, ...]) -> str:
    """Version 1 where there is no δ, as ever; version 2 has a total δ and that of each request."""
    items = [
        {
            "key": entry.key,
            "when": entry.when,
            "what": entry.what,
            "reserved": text_of_fraction(entry.reserved),
            "spent": None if entry.spent is None else text_of_fraction(entry.spent),
        }
        | ({"delta": text_of_fraction(entry.delta)} if chance else {})
        for entry in entries
    ]
    totals = {"epsilon": text_of_fraction(total)} | ({"delta": text_of_fraction(chance)} if chance else {})
    document = {"format": FORMAT, "version": 2 if chance else 1, **totals, "entries": items}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
