"""`hedgerow ledger show`, `verify` and `export`."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from hedgerow.curator.ledger.database import FILE
from hedgerow.curator.ledger.ledger import Ledger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ledger in which anna spent 1 of 3 and a second request never ended."""
    ledger = Ledger.open(tmp_path / "curator")
    ledger.ceiling("patients", 3, what="the year")
    ledger.ceiling("patients", 2, analyst="anna")
    done = ledger.reserve("patients", "anna", "research", 1, what="fit DPDF")
    ledger.opened(done.key)
    ledger.settle(done.key)
    ledger.opened(ledger.reserve("patients", "anna", "=research", "1/3", what="a request that crashed").key)
    ledger.database.close()
    return tmp_path / "curator"


def test_the_ledger_is_shown(folder: Path, run: Callable[..., Any]) -> None:
    result = run("ledger", "show", folder)
    assert result.exit_code == 0, result.output
    for words in ("patients", "analyst anna", "purpose research", "4/3", "a request that crashed", "head: 7:"):
        assert words in result.stdout
    assert "counts as spent until they settle" in result.stderr
    assert "gives back those that have read no row; the others remain spent" in result.stderr


def test_a_sound_ledger_is_sound_and_a_changed_one_is_not(folder: Path, run: Callable[..., Any]) -> None:
    result = run("ledger", "verify", folder)
    assert (result.exit_code, "the ledger is sound: 7 entries" in result.stdout) == (0, True)
    head = Ledger.open(folder).head()
    assert run("ledger", "verify", folder, "--head", head).exit_code == 0
    with sqlite3.connect(folder / FILE) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE ledger_entries SET epsilon = '0.5' WHERE kind = 'settle'")
    result = run("ledger", "verify", folder)
    assert result.exit_code == 1
    assert "not sound" in result.stderr
    assert "problems" in result.stdout


def test_a_cut_off_end_is_found_by_its_head(folder: Path, run: Callable[..., Any]) -> None:
    result = run("ledger", "verify", folder, "--head", f"9:{'a' * 64}")
    assert result.exit_code == 1


def test_the_ledger_is_exported(folder: Path, tmp_path: Path, run: Callable[..., Any]) -> None:
    assert run("ledger", "export", folder, "-o", tmp_path / "ledger.csv").exit_code == 0
    rows = list(csv.DictReader((tmp_path / "ledger.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["kind"] for row in rows] == ["ceiling", "ceiling", "reserve", "open", "settle", "reserve", "open"]
    assert rows[-1]["purpose"] == "'=research"  # no formula
    assert run("ledger", "export", folder, "-o", tmp_path / "ledger.json").exit_code == 0
    assert [entry["seq"] for entry in json.loads((tmp_path / "ledger.json").read_text(encoding="utf-8"))] == list(range(1, 8))
    assert run("ledger", "export", folder, "-o", tmp_path / "ledger.json").exit_code == 2  # not replaced
    assert run("ledger", "export", folder, "-o", tmp_path / "ledger.txt").exit_code == 2


def test_looking_makes_no_ledger(tmp_path: Path, run: Callable[..., Any]) -> None:
    for words in (["show"], ["verify"], ["export", "-o", tmp_path / "x.csv"]):
        result = run("ledger", words[0], tmp_path / "nothing", *words[1:])
        assert result.exit_code == 2
        assert "there is none" in result.stderr
    assert not (tmp_path / "nothing").exists()


def test_a_backup_is_a_whole_ledger_of_its_owner_alone(folder: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    ledger = Ledger.open(folder)
    result = run("ledger", "backup", folder, "-o", tmp_path / "copy.sqlite")
    assert result.exit_code == 0, result.output
    assert str(ledger.head()) in result.stdout
    assert (tmp_path / "copy.sqlite").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["copy.sqlite"]
    assert list(Ledger.open(tmp_path / "copy.sqlite").entries()) == list(ledger.entries())
    assert run("ledger", "verify", tmp_path / "copy.sqlite").exit_code == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_file() and path.suffix == ".json"] == []  # it is only read
    ledger.ceiling("patients", 4)
    later = run("ledger", "verify", tmp_path / "copy.sqlite", "--head", ledger.head())
    assert later.exit_code == 1  # the copy has forgotten what came after it


def test_a_backup_replaces_nothing_and_keeps_no_half(folder: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "there.sqlite").write_text("mine")
    assert run("ledger", "backup", folder, "-o", tmp_path / "there.sqlite").exit_code == 2
    assert run("ledger", "backup", folder, "-o", tmp_path / "copy.csv").exit_code == 2
    assert run("ledger", "backup", folder, "-o", tmp_path / "nowhere" / "copy.sqlite").exit_code == 2
    with sqlite3.connect(folder / FILE) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE ledger_entries SET epsilon = '0.5' WHERE kind = 'settle'")
    assert run("ledger", "backup", folder, "-o", tmp_path / "copy.sqlite").exit_code == 2
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["there.sqlite"]
    assert (tmp_path / "there.sqlite").read_text() == "mine"
