"""`hedgerow curator upgrade`, `accept` and `status`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from curator.ledger.tampering import make_folder, put_back
from curator.ledger.test_migrations import HEAD, written_by

from hedgerow.curator.http.single_instance import single_instance
from hedgerow.curator.ledger.database import database_at, open_database
from hedgerow.curator.ledger.ledger import Ledger


def test_the_command_makes_a_copy_first(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = written_by(2, tmp_path / "curator")
    result = run("curator", "upgrade", folder)
    assert result.exit_code == 0, result.stderr
    assert "the ledger has version 3 now (before: 2), and is sound: 24 entries" in result.stdout.replace("\n", " ")
    (copy,) = folder.glob("curator-version-2-*.sqlite")
    with database_at(copy, make=False) as database:
        assert database.version() == 2
    assert "already" in run("curator", "upgrade", folder).stdout
    assert run("ledger", "verify", folder, "--head", HEAD).exit_code == 0


def test_a_copy_that_is_there_is_not_replaced(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder, copy = written_by(2, tmp_path / "curator"), tmp_path / "copy.sqlite"
    copy.write_text("mine")
    result = run("curator", "upgrade", folder, "--backup", copy)
    assert (result.exit_code, "exists already" in result.stderr, copy.read_text()) == (2, True, "mine")
    with database_at(folder, make=False) as database:
        assert database.version() == 2


def test_an_older_copy_is_accepted_with_a_reason(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    assert run("curator", "accept", folder, "--why", "because", "--yes").exit_code == 2  # there is nothing to accept
    put_back(folder)
    for copy in ("job1", "job2"):
        (folder / "releases" / f"{copy}.json").unlink()
    assert run("ledger", "verify", folder).exit_code == 1
    assert run("curator", "accept", folder, "--why", "because", input="n\n").exit_code == 2
    assert run("ledger", "verify", folder).exit_code == 1
    result = run("curator", "accept", folder, "--why", "a disk failure", input="y\n")
    assert result.exit_code == 0, result.output
    assert "An older copy was put back" in result.stderr
    assert "nothing more is paid from dataset 'patients': ε = 2 before" in result.stdout
    assert run("ledger", "verify", folder).exit_code == 0
    run("ledger", "export", folder, "-o", tmp_path / "ledger.json")
    assert "a disk failure (the last head that was written down was 30:" in (tmp_path / "ledger.json").read_text()


def test_the_status_in_ten_lines(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    before = sorted(path.name for path in folder.iterdir())
    said = run("curator", "status", folder).stdout
    assert sorted(path.name for path in folder.iterdir()) == before
    lines = dict(line.split(maxsplit=1) for line in said.splitlines())
    assert len(said.splitlines()) <= 10
    assert lines["service"] == "stopped"
    assert lines["spent"] == "patients: ε = 0.7 of 2"
    assert lines["waiting"] == "1 reservation(s), ε = 0.1: left by a crash"
    assert lines["failed"] == "nothing"
    assert lines["people"] == "3, with 2 valid token(s), of which 0 end within 14 days"
    assert (lines["backup"], lines["verified"]) == ("none by `hedgerow ledger backup`", "never")
    assert lines["head"].endswith("kept in curator.sqlite.heads")
    run("ledger", "backup", folder, "-o", tmp_path / "copy.sqlite")
    run("ledger", "verify", folder)
    with open_database(folder) as database, single_instance(folder, database):
        ledger = Ledger(database)
        ledger.settle("open")
        said = run("curator", "status", folder).stdout
    lines = dict(line.split(maxsplit=1) for line in said.splitlines())
    assert lines["service"] == "running"
    assert lines["waiting"] == "nothing"
    assert "1 paid without an answer" in lines["failed"]
    assert str(tmp_path / "copy.sqlite") in lines["backup"]
    assert ": 30:" in lines["verified"]
    assert lines["head"].startswith("31:")
    assert "spent      no datasets yet" in run("curator", "status", empty(tmp_path)).stdout


def empty(tmp_path: Path) -> Path:
    open_database(tmp_path / "empty").close()
    return tmp_path / "empty"
