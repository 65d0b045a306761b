"""Whatever is changed by hand is noticed by `hedgerow ledger verify` with the file of heads; docs/CURATOR_LEDGER.md has the same table."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from curator.ledger.tampering import BACKUP, CHAIN, COPIES, HEADS, ROWS, SENT, TAMPERINGS, make_folder, put_back
from typer.testing import CliRunner

from hedgerow.cli import app
from hedgerow.curator.ledger.database import FILE, read_database
from hedgerow.curator.ledger.heads import ENDING, Heads, existing_heads
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.release_copies import copy_problems

DOCUMENT = Path(__file__).parents[3] / "docs" / "CURATOR_LEDGER.md"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("tampering"))


@pytest.fixture
def folder(untouched: Path, tmp_path: Path) -> Path:
    return shutil.copytree(untouched.parent, tmp_path / "all") / untouched.name


def verify(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["ledger", "verify", *map(str, words)], env={"COLUMNS": "400"})
    return done.exit_code, done.output


def test_what_nobody_has_touched_is_sound(folder: Path) -> None:
    code, said = verify(folder, "--trust", folder / "service.key.pub", "--heads", folder.parent / SENT)
    assert code == 0, said
    assert "it has all heads" in said


@pytest.mark.parametrize("what", list(TAMPERINGS))
def test_it_is_noticed(folder: Path, what: str) -> None:
    noticed_by, change = TAMPERINGS[what]
    change(folder)
    code, said = verify(folder)
    assert code == 1, said
    with read_database(folder) as database:
        found, copies = Ledger(database).verify(), list(copy_problems(database))
    by_itself = " ".join(map(str, found.by_itself))
    outside = [problem for problem in found.problems if problem not in found.by_itself]
    assert bool(by_itself) == (noticed_by in (CHAIN, ROWS)), said
    assert bool(re.search(r"altered: it is not what|was put in by hand|is missing: an entry speaks", by_itself)) == (noticed_by == ROWS), (
        said
    )
    assert noticed_by != HEADS or outside, said
    assert bool(copies) == (noticed_by == COPIES) or noticed_by == ROWS or "database" in what, said


def test_the_document_has_the_same_table() -> None:
    rows = re.findall(r"^\| (.+?) \| (the chain|digests in the chain|the file of heads|the stored answers) \|$", DOCUMENT.read_text(), re.M)
    assert dict(rows) == {what: by for what, (by, _) in TAMPERINGS.items()}


def test_whoever_changes_the_whole_folder_is_noticed_by_heads_elsewhere(folder: Path) -> None:
    """An older copy of everything agrees with itself; heads that were sent elsewhere tell."""
    put_back(folder)
    shutil.copy(folder.parent / "older.heads", folder / (FILE + ENDING))
    for copy in ("job1", "job2"):
        (folder / "releases" / f"{copy}.json").unlink()
    assert verify(folder)[0] == 0
    code, said = verify(folder, "--heads", folder.parent / SENT)
    assert (code, "An older copy was put back" in said) == (1, True), said
    with read_database(folder.parent / BACKUP) as database:
        assert Ledger(database).verify().sound  # a backup has no heads beside it
        assert not Ledger(database).verify(heads=existing_heads(folder.parent / SENT)).sound


def test_a_chain_that_was_written_anew_with_another_key_is_noticed_by_who_has_the_key(folder: Path, tmp_path: Path) -> None:
    public = shutil.copy(folder / "service.key.pub", tmp_path / "trusted.pub")
    _, change = TAMPERINGS["another key named, all hashes computed anew"]
    change(folder)
    other = folder.parent / "other"
    for name in ("service.key", "service.key.pub"):
        shutil.copy(other / name, folder / name)
    (folder / (FILE + ENDING)).unlink()
    heads = Heads.beside(folder / FILE)
    heads.begin()
    with read_database(folder) as database:
        heads.kept(Ledger(database).head())
    assert "trusted" in verify(folder, "--trust", public)[1]
    assert verify(folder, "--trust", public)[0] == 1
