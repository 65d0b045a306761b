"""`hedgerow curator upgrade`, `accept` and `status`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from curator.ledger.tampering import make_folder, put_back
from curator.ledger.test_migrations import HEAD, written_by

from hedgerow.curator.ledger.database import database_at


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
