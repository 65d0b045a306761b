"""The file of heads: what it has after each change, what is refused without it, and how an owner goes on."""

from __future__ import annotations

import shutil
import stat
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from curator.ledger.forging import forge
from curator.ledger.tampering import BACKUP, make_folder, put_back

from hedgerow.curator.http.head_sender import HeadSender, target_of
from hedgerow.curator.ledger.chain import Head
from hedgerow.curator.ledger.database import FILE, open_database
from hedgerow.curator.ledger.heads import BEGUN, ENDING, KEPT, KEY_FILE, Heads, existing_heads
from hedgerow.curator.ledger.keeping import accept, keep_heads, named_key
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import LedgerError


@pytest.fixture
def kept(tmp_path: Path) -> Ledger:
    ledger = Ledger.open(tmp_path / "curator")
    ledger.ceiling("patients", 1)
    keep_heads(ledger)
    return ledger


def heads_of(ledger: Ledger) -> Heads:
    assert ledger.database.heads is not None
    return ledger.database.heads


def test_every_change_is_begun_and_kept(kept: Ledger) -> None:
    heads = heads_of(kept)
    assert stat.S_IMODE(heads.path.stat().st_mode) == stat.S_IMODE(heads.key_path.stat().st_mode) == 0o600
    first = kept.head()
    reserved = kept.reserve("patients", "ada", "research", "0.1")
    with pytest.raises(LedgerError, match="at most"):
        kept.ceiling("patients", 1, what="x" * 2001)
    second = kept.head()
    kept.opened(reserved.key)
    told = [(line.word, line.head) for line in heads.good_lines()]
    assert told == [(KEPT, first), (BEGUN, second), (KEPT, second), (BEGUN, kept.head()), (KEPT, kept.head())]
    key = named_key(kept)
    assert key is not None
    assert all(line.signed_by(key) for line in heads.good_lines())
    found = kept.verify()
    assert (found.sound, found.heads) == (True, 5)


def test_another_process_keeps_them_too(kept: Ledger) -> None:
    with open_database(kept.database.file or "") as other:
        Ledger(other).reserve("patients", "ada", "research", "0.1")
        kept.reserve("patients", "ada", "research", "0.1")
        assert Ledger(other).verify().sound
    assert [line.head.seq for line in heads_of(kept).good_lines()] == [2, 3, 3, 4, 4]


def test_threads_and_connections(kept: Ledger) -> None:
    with open_database(kept.database.file or "") as other:
        work = [
            threading.Thread(target=lambda ledger=ledger: [ledger.reserve("patients", "ada", "research", "0.01") for _ in range(10)])
            for ledger in (kept, Ledger(other)) * 2
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert (kept.balance("patients").spent, kept.verify().sound) == (Fraction(2, 5), True)


def test_a_crash_between_the_two_is_no_fault(kept: Ledger) -> None:
    """Begun and never written, and written and never noted as kept."""
    heads = heads_of(kept)
    heads.begun(Head(kept.head().seq + 1, "a" * 64))
    assert kept.verify().sound
    kept.reserve("patients", "ada", "research", "0.1")
    assert kept.verify().sound
    heads.path.write_text("".join(heads.path.read_text().splitlines(keepends=True)[:-1]))  # without the last "kept"
    assert kept.verify().sound
    with heads.path.open("a") as file:
        file.write("begun 12:ab")  # half a line
    assert kept.verify().sound
    kept.reserve("patients", "ada", "research", "0.1")
    assert kept.verify().sound


def test_nothing_is_written_whose_head_cannot_be_kept(kept: Ledger) -> None:
    heads = heads_of(kept)
    aside = heads.path.rename(heads.path.with_name("aside"))
    with pytest.raises(LedgerError, match="cannot be written"):
        kept.reserve("patients", "ada", "research", "0.1")
    assert kept.balance("patients").spent == 0
    aside.rename(heads.path)
    kept.reserve("patients", "ada", "research", "0.1")
    assert kept.verify().sound


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk(kept: Ledger) -> None:
    heads = heads_of(kept)
    real = heads.begun
    heads.begun = lambda head, _: _onto_a_full_disk(heads, real, head)  # type: ignore[method-assign]
    with pytest.raises(LedgerError, match="No space left"):
        kept.reserve("patients", "ada", "research", "0.1")
    heads.begun = real  # type: ignore[method-assign]
    assert (kept.balance("patients").spent, kept.verify().sound) == (0, True)


def _onto_a_full_disk(heads: Heads, real: object, head: Head) -> None:
    path, heads.path = heads.path, Path("/dev/full")
    try:
        assert callable(real)
        real(head)
    finally:
        heads.path = path


def test_who_has_no_key_writes_nothing(kept: Ledger, tmp_path: Path) -> None:
    kept.reserve("patients", "ada", "research", "0.1")
    kept.reserve("patients", "ada", "research", "0.1")
    copy = tmp_path / "copy.sqlite"
    kept.database.copy_to(copy)
    with open_database(copy) as database:
        assert Ledger(database).verify().sound
        with pytest.raises(LedgerError, match="HEDGEROW_CURATOR"):
            Ledger(database).ceiling("patients", 9)


def test_an_entry_of_somebody_else_stops_the_service(kept: Ledger, tmp_path: Path) -> None:
    kept.reserve("patients", "ada", "research", "0.1")
    heads, kept.database.heads = kept.database.heads, None
    forge(kept, "UPDATE ledger_head SET noted = NULL")
    kept.ceiling("patients", 9)
    kept.database.heads = heads
    with pytest.raises(LedgerError, match="somebody without the key"):
        kept.reserve("patients", "ada", "research", "5")
    assert "not written with the key" in str(kept.verify())


def test_a_link_says_where_the_file_is(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "curator")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "curator" / (FILE + ENDING)).symlink_to(tmp_path / "elsewhere" / "heads")
    keep_heads(ledger)
    ledger.ceiling("patients", 1)
    assert len((tmp_path / "elsewhere" / "heads").read_text().splitlines()) == 4
    assert ledger.verify().sound


# ------------------------------------------------------------ an owner goes on


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


def test_an_older_copy_is_accepted_and_nothing_more_is_paid_until_the_owner_says_so(folder: Path) -> None:
    put_back(folder)
    with open_database(folder) as database:
        ledger = Ledger(database)
        assert "An older copy was put back" in str(ledger.verify())
        with pytest.raises(LedgerError, match="put back"):
            ledger.ceiling("patients", 9)
        for wrong in ("", " ", "x" * 501):
            with pytest.raises(LedgerError, match="why"):
                accept(ledger, wrong)
        lowered, aside = accept(ledger, "the disk was replaced")
        assert ledger.verify().sound
        assert aside is not None
        assert "was written anew" in str(ledger.verify(heads=existing_heads(aside)))  # it still tells
        kinds = [(entry.kind, entry.what) for entry in ledger.entries()]
        ((_, what),) = [each for each in kinds if each[0] == "accept"]
        assert what.startswith("the disk was replaced (the last head that was written down was 30:")
        assert [(each.words, each.epsilon) for each in lowered] == [
            ("analyst 'ada' on dataset 'patients'", Fraction(3, 2)),
            ("dataset 'patients'", 2),
        ]
        assert ledger.balance("patients").remaining == 0
        ledger.ceiling("patients", 1)
        ledger.ceiling("patients", 1, analyst="ada")
        ledger.reserve("patients", "ada", "research", "0.1")
        assert ledger.verify().sound
        with pytest.raises(LedgerError, match="nothing to accept"):
            accept(ledger, "again")


@pytest.mark.parametrize("lost", [FILE + ENDING, KEY_FILE])
def test_what_was_lost_is_made_anew(folder: Path, lost: str) -> None:
    (folder / lost).unlink()
    if lost == KEY_FILE:
        (folder / f"{lost}.pub").unlink()
    with open_database(folder) as database:
        ledger = Ledger(database)
        assert "is missing" in str(ledger.verify())
        accept(ledger, f"{lost} was lost", keep_ceilings=True)
        assert ledger.balance("patients").epsilon == 2
        ledger.reserve("patients", "ada", "research", "0.1")
        assert ledger.verify().sound


def test_what_is_not_sound_by_itself_is_not_accepted(folder: Path) -> None:
    put_back(folder)
    with open_database(folder) as database:
        forge(Ledger(database), "UPDATE curator_people SET role = 'owner'")
        with pytest.raises(LedgerError, match="Restore a backup"):
            accept(Ledger(database), "why not")


# ------------------------------------------------------------ elsewhere


def test_heads_are_sent_to_a_file_when_they_have_moved(kept: Ledger, tmp_path: Path) -> None:
    sent = tmp_path / "sent.heads"
    sender = HeadSender(kept, heads_of(kept).key_path, [target_of(str(sent))], seconds=0.01)
    with sender.running():
        kept.reserve("patients", "ada", "research", "0.1")
    sender.send()
    lines = existing_heads(sent).good_lines()
    assert lines[-1].head == kept.head()
    assert len(lines) <= 2
    assert kept.verify(heads=existing_heads(sent)).sound


def test_where_heads_cannot_be_sent(kept: Ledger, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for wrong in (str(tmp_path), str(tmp_path / "none" / "file"), "ftp://somewhere"):
        with pytest.raises(LedgerError, match="--send-heads"):
            target_of(wrong)
    tries: list[int] = []

    def failing(*_: object) -> None:
        tries.append(1)
        raise OSError("away")

    sender = HeadSender(kept, heads_of(kept).key_path, [failing])
    sender.send()
    sender.send()
    assert len(tries) == 2  # it is tried again


def test_a_backup_beside_the_folder_is_verified_without_heads(folder: Path) -> None:
    shutil.copy(folder.parent / BACKUP, folder / "backup.sqlite")
    with open_database(folder / "backup.sqlite") as database:
        found = Ledger(database).verify()
    assert (found.sound, found.heads) == (True, None)
