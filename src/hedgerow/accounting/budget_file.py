"""A budget that survives between commands: a small JSON file, locked while it changes, on disk before rows are read."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from hedgerow.accounting.loss import exact_epsilon, text_of_fraction
from hedgerow.accounting.meter import Budget, Entry
from hedgerow.errors import BudgetError, PlanError

FORMAT = "hedgerow-budget"


class BudgetFile(Budget):
    """The budget in an existing file. All processes that open the same file share one budget."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved once: two names of one file must share one lock, and a change of folder must not change the purse.
        self.path = Path(path).resolve()
        self.name = os.fspath(path)
        super().__init__(self._read()[0])

    @classmethod
    def create(cls, path: str | os.PathLike[str], epsilon: Any) -> BudgetFile:
        amount = exact_epsilon(epsilon)
        try:
            # "x": a budget that exists is never replaced, since that would forget what was spent.
            with open(path, "x", encoding="utf-8") as file:
                file.write(_text(amount, ()))
                file.flush()
                os.fsync(file.fileno())
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
    def entries(self) -> tuple[Entry, ...]:
        return self._read()[1]

    def _change(self, change: Callable[[tuple[Entry, ...]], tuple[Entry, ...]]) -> None:
        """One writer at a time, among threads and among processes. The lock file beside it is never removed."""
        try:
            lock = open(f"{self.path}.lock", "a")  # noqa: SIM115  closed below
        except OSError as error:
            raise BudgetError(f"budget file {self.name!r}: its lock cannot be opened ({error.strerror}).") from error
        with self._lock, lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            total, entries = self._read()
            self._write(_text(total, change(entries)))

    def _read(self) -> tuple[Fraction, tuple[Entry, ...]]:
        try:
            if self.path.stat().st_nlink > 1:
                raise BudgetError(
                    f"budget file {self.name!r} has a second name (a hard link): a charge would reach only one of them. "
                    "Keep one name."
                )
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT or document["version"] != 1:
                raise ValueError("format")
            total = exact_epsilon(document["epsilon"])
            return total, tuple(_entry(item) for item in document["entries"])
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
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise BudgetError(
                f"budget file {self.name!r} cannot be written ({error.strerror}): see `hedgerow budget show {self.name}` for what "
                "it holds."
            ) from error

    def __reduce__(self) -> Any:
        return (BudgetFile, (self.path,))


def _entry(item: dict[str, Any]) -> Entry:
    reserved = exact_epsilon(item["reserved"])
    spent = None if item["spent"] is None else Fraction(str(item["spent"]))
    if spent is not None and not 0 <= spent <= reserved:
        raise ValueError("spent")
    return Entry(str(item["key"]), str(item["when"]), str(item["what"]), reserved, spent)


def _text(total: Fraction, entries: tuple[Entry, ...]) -> str:
    items = [
        {
            "key": entry.key,
            "when": entry.when,
            "what": entry.what,
            "reserved": text_of_fraction(entry.reserved),
            "spent": None if entry.spent is None else text_of_fraction(entry.spent),
        }
        for entry in entries
    ]
    document = {"format": FORMAT, "version": 1, "epsilon": text_of_fraction(total), "entries": items}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
