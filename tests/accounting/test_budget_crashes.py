"""The power fails: what a budget file has promised is still there.

A disk keeps what was synced, and of all else what it likes. `Disk` notes what each fsync puts there; a crash then leaves of every file
what was synced last, under the names that the folder had when it was synced last, or under the names it has now: a disk may be ahead.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.events import DISCRETE_LAPLACE, Event
from hedgerow.errors import BudgetError

NAME = "budget.json"


class Disk:
    """A folder, and what of it would survive."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.contents: dict[int, bytes] = {}
        self.names: dict[str, int] = {}
        self._held: list[int] = []  # open files: so that no number of a file is given to another
        self._fsync, self._replace = os.fsync, os.replace
        self._crashes = itertools.count()
        self.steps: list[list[Path]] = []
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "replace", self.replace)

    def fsync(self, file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        self._fsync(number)
        found = os.fstat(number)
        if stat.S_ISDIR(found.st_mode):
            assert found.st_ino == self.folder.stat().st_ino
            self.names = self._names_now()
        else:
            self._held.append(os.dup(number))
            (path,) = [each for each in self.folder.iterdir() if each.stat().st_ino == found.st_ino]
            self.contents[found.st_ino] = path.read_bytes()
        self.steps.append(self.after_a_crash())

    def replace(self, old: Any, new: Any) -> None:
        self._replace(old, new)
        self.steps.append(self.after_a_crash())

    def _names_now(self) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in self.folder.iterdir()}

    def after_a_crash(self) -> list[Path]:
        """The folders that might be found."""
        found = []
        for names in (self.names, self._names_now()):
            left = self.folder.parent / f"crash-{next(self._crashes)}"
            left.mkdir()
            for name, number in names.items():
                (left / name).write_bytes(self.contents.get(number, b""))
            found.append(left)
        return found

    def close(self) -> None:
        for number in self._held:
            os.close(number)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    (tmp_path / "folder").mkdir()
    made = Disk(tmp_path / "folder", monkeypatch)
    yield made
    made.close()


def look(epsilon: str) -> Event:
    return Event("rows", DISCRETE_LAPLACE, Fraction(epsilon), 1, Fraction(1), Fraction(1))


def spent_in(folders: list[Path]) -> set[Fraction]:
    return {BudgetFile(folder / NAME).spent for folder in folders}


def test_a_new_budget_is_on_disk_when_it_is_handed_out(disk: Disk) -> None:
    """Lost, it could be made again, and what was spent of it would be spent twice."""
    BudgetFile.create(disk.folder / NAME, 3)
    assert {BudgetFile(folder / NAME).epsilon for folder in disk.after_a_crash()} == {3}


def test_a_new_budget_by_a_relative_name_is_on_disk_too(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(disk.folder)
    BudgetFile.create(NAME, 3)
    assert {BudgetFile(folder / NAME).epsilon for folder in disk.after_a_crash()} == {3}


def test_what_was_reserved_is_on_disk_before_rows_are_looked_at(disk: Disk) -> None:
    budget = BudgetFile.create(disk.folder / NAME, 1)
    first = budget.reserve("0.3", "first")
    assert spent_in(disk.after_a_crash()) == {Fraction(3, 10)}
    second = budget.reserve("0.5", "second")
    assert spent_in(disk.after_a_crash()) == {Fraction(4, 5)}
    first.charge(look("0.1"))
    first.settle()
    assert spent_in(disk.after_a_crash()) == {Fraction(3, 5)}
    second.settle()
    assert spent_in(disk.after_a_crash()) == {Fraction(1, 10)}


def test_a_crash_in_the_middle_leaves_the_old_file_or_the_new_one(disk: Disk) -> None:
    budget = BudgetFile.create(disk.folder / NAME, 1)
    disk.steps.clear()
    before = Fraction(0)
    for amount in ("0.3", "0.5"):
        budget.reserve(amount, "a look")
        found = [spent_in(step) for step in disk.steps]
        assert len(found) >= 3  # the file, its name, its folder
        assert set().union(*found) == {before, before + Fraction(amount)}
        before += Fraction(amount)
        disk.steps.clear()


def test_a_disk_that_fails_is_told(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not on disk is not reserved, and no look follows."""
    budget = BudgetFile.create(disk.folder / NAME, 1)

    def fails(file: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(BudgetError, match="cannot be written"):
        budget.reserve("0.3", "a look")
    with pytest.raises(BudgetError, match="cannot be written"):
        BudgetFile.create(disk.folder / "other.json", 1)
