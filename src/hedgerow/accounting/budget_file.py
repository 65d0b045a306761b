"""A budget that survives between commands: a small JSON file, locked while it changes, on disk before rows are read."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from hedgerow.accounting.loss import exact_epsilon, text_of_fraction
from hedgerow.accounting.meter import Budget, Entry
from hedgerow.errors import BudgetError, PlanError

FORMAT = "hedgerow-budget"


class FileEntry(Entry):
    def __init__(self, what: str, reserved: Fraction, spent: Fraction | None, key: str, when: str) -> None:
        super().__init__(what, reserved, spent)
        self.key = key
        self.when = when


class BudgetFile(Budget):
    """The budget in an existing file. All processes that open the same file share one budget."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        epsilon, _ = self._read()
        super().__init__(epsilon)

    @classmethod
    def create(cls, path: str | Path, epsilon: Any) -> BudgetFile:
        amount = exact_epsilon(epsilon)
        path = Path(path)
        text = json.dumps({"format": FORMAT, "version": 1, "epsilon": text_of_fraction(amount), "entries": []}, indent=1)
        try:
            # "x": a budget that exists is never replaced, since that would forget what was spent.
            with open(path, "x", encoding="utf-8") as file:
                file.write(text + "\n")
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
        return tuple(self._read()[1])

    def reserve(self, epsilon: Any, what: str) -> Any:
        with self._locked():
            return super().reserve(epsilon, what)

    def _append(self, entry: Entry) -> Entry:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        new = FileEntry(entry.what, entry.reserved, None, uuid.uuid4().hex, when)
        total, entries = self._read()
        self._write(total, [*entries, new])
        return new

    def _settle(self, entry: Entry, spent: Fraction) -> None:
        assert isinstance(entry, FileEntry)
        with self._locked():
            total, entries = self._read()
            for stored in entries:
                if stored.key == entry.key:
                    stored.spent = spent
            self._write(total, entries)
        entry.spent = spent

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, among threads and among processes. The lock file beside it is never removed."""
        import fcntl

        with self._lock, open(f"{self.path}.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self) -> tuple[Fraction, list[FileEntry]]:
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT or document["version"] != 1:
                raise ValueError("format")
            total = exact_epsilon(document["epsilon"])
            entries = []
            for item in document["entries"]:
                reserved = exact_epsilon(item["reserved"])
                spent = None if item["spent"] is None else Fraction(str(item["spent"]))
                if spent is not None and not 0 <= spent <= reserved:
                    raise ValueError("spent")
                entries.append(FileEntry(str(item["what"]), reserved, spent, str(item["key"]), str(item["when"])))
            return total, entries
        except FileNotFoundError as error:
            raise BudgetError(
                f"budget file {str(self.path)!r} does not exist. "
                f"`hedgerow budget init {self.path} --epsilon 1` makes one."
            ) from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, PlanError) as error:
            raise BudgetError(
                f"budget file {str(self.path)!r} is damaged or not a budget ({type(error).__name__}); expected the JSON that "
                "`hedgerow budget init` writes. Restore it from a copy: nothing is spent until it can be read."
            ) from error

    def _write(self, total: Fraction, entries: list[FileEntry]) -> None:
        """Replace the file whole: after a crash it is the old one or the new one, never half of one."""
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
        path = self.path.resolve()
        new = path.with_name(f".{path.name}.new")  # one name is enough: the caller holds the lock
        try:
            with open(new, "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), path.stat().st_mode)
                file.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path)
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise BudgetError(
                f"budget file {str(self.path)!r} cannot be written: {error.strerror}. Nothing was spent, no row was read."
            ) from error

    def __reduce__(self) -> Any:
        return (BudgetFile, (self.path,))
