"""`hedgerow curator upgrade`, `accept` and `status`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from curator.ledger.tampering import SCHEMA, make_folder, put_back, run_sql
from curator.ledger.test_migrations import HEAD, written_by

from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.single_instance import single_instance
from hedgerow.curator.ledger.database import FILE, database_at, open_database
from hedgerow.curator.ledger.heads import KEY_FILE, Heads, signed_line
from hedgerow.curator.ledger.keeping import after_end
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.notes import STARTED, STOPPED, write_note
from hedgerow.curator.ledger.paid_requests import IdempotencyKey, PaidRequests
from hedgerow.errors import BudgetError
from hedgerow.release.signing import load_private_key
from hedgerow.training.fit import fit
from hedgerow.training.recipe import Recipe


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
    assert "note: ε = 0.5 was spent on 'patients' after the copy was taken, as the file of heads says" in unfolded(result.stderr)
    assert "less all that was spent after the copy" in unfolded(result.stdout)
    for line in ("--epsilon 1.5 --delta 0", "--epsilon 1.2 --delta 0 --analyst ada"):  # 2 and 1.5, less what is lost
        assert f"  hedgerow curator ceiling {folder} patients {line}\n" in result.stdout
    assert run("ledger", "verify", folder).exit_code == 0
    run("ledger", "export", folder, "-o", tmp_path / "ledger.json")
    assert "a disk failure (the last head that was written down was 30:" in (tmp_path / "ledger.json").read_text()


def unfolded(text: str) -> str:
    return " ".join(text.split())


def release_of(folder: Path, epsilon: str = "0.1", signed: bool = True) -> bytes:
    """A release of the rows of `make_folder`, as the service in that folder would have made it."""
    rows = {"smoker": ["no", "yes"] * 20, "class": ["a", "b"] * 20}
    release = fit(Recipe.of("rdt", epsilon, n_estimators=2), rows, schema=SCHEMA)
    with closing(Curator.open(folder)) as curator:
        return (curator.signed(release) if signed else release).to_json()


def written_before(folder: Path) -> None:
    """The file of heads as an older version has written it, which did not say what was spent."""
    heads, key = Heads.beside(folder / FILE), load_private_key(folder / KEY_FILE)
    lines = [str(signed_line(line.head, key, line.word)) for line in heads.good_lines()]
    first = heads.path.read_text().partition("\n")[0]
    heads.path.write_text("\n".join([first, *lines]) + "\n")


def test_heads_of_an_older_version_are_gone_on_with(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    written_before(folder)
    with closing(Curator.open(folder)) as curator:
        curator.ledger.reserve("patients", "ada", "research", "0.1")
    assert run("ledger", "verify", folder).exit_code == 0
    begun = [line for line in (folder / "curator.sqlite.heads").read_text().splitlines() if line.startswith("begun")]
    assert [len(line.split(" ")) for line in begun[-2:]] == [4, 5]
    put_back(folder)
    with open_database(folder) as database:
        after = after_end(Ledger(database))
    assert (after.spent["patients", "analyst", "ada"], after.all_spent) == ((Fraction(2, 5), 0), False)


def test_heads_that_say_no_more_what_was_spent(tmp_path: Path, run: Callable[..., Any]) -> None:
    """Lines of an older version in between, or lines that somebody without the key has changed: then it is the least."""
    folder = make_folder(tmp_path)
    assert run("ledger", "verify", folder).exit_code == 0
    put_back(folder)
    file = folder / "curator.sqlite.heads"
    lines = file.read_text().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if "patients/dataset/=0.7,0;2,0&" in line)
    lines[last] = lines[last].replace("=0.7,0;", "=0.2,0;")
    file.write_text("".join(lines))
    with open_database(folder) as database:
        after = after_end(Ledger(database))
    assert (after.spent["patients", "dataset", ""], after.all_spent) == ((Fraction(3, 5), 0), False)  # as the line before says
    result = run("curator", "accept", folder, "--why", "a disk failure", "--yes")
    assert "note: at least ε = 0.6 was spent on 'patients'" in unfolded(result.stderr)
    assert "take off what else was spent" in unfolded(result.stdout)


def test_a_change_of_more_accounts_than_a_line_holds_is_not_all_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow.curator.ledger.heads.MOST_SAID", 20)
    folder = make_folder(tmp_path)
    put_back(folder)
    with open_database(folder) as database:
        after = after_end(Ledger(database))
    assert (after.spent, after.all_spent, after.all_ceilings) == ({}, False, False)


def test_a_release_from_after_the_copy_is_a_note_once_it_is_accepted(tmp_path: Path, run: Callable[..., Any]) -> None:
    """It was paid for, in the part of the ledger that is lost. What the service has not signed stays a problem."""
    folder = make_folder(tmp_path)
    after, known = folder / "releases" / "job2.json", folder / "releases" / "job0.json"
    after.write_bytes(release_of(folder) + b"\n")
    (folder / "releases" / "job1.json").unlink()
    written_before(folder)
    put_back(folder)
    found = run("ledger", "verify", folder)
    assert (found.exit_code, "it was paid for after this copy of the ledger was taken" in unfolded(found.stdout)) == (1, True), found.output
    done = run("curator", "accept", folder, "--why", "a disk failure", "--yes")
    said = "note: the release 'job2.json' in releases/ was made after the copy was taken that was accepted (ε = 0.1 on 'patients')"
    assert said in done.stderr
    assert "patients --epsilon 1.9 --delta 0\n" in done.stdout  # 2, less the release
    (command,) = [line.split() for line in done.stdout.splitlines() if line.endswith("--epsilon 1.4 --delta 0 --analyst ada")]
    assert "analyst ada: ε = 1.4 (before: ε = 0.2)" in run(*command[1:]).stdout
    found = run("ledger", "verify", folder)
    assert (found.exit_code, f"{said}: count it as spent" in found.stderr) == (0, True), found.output

    wrong = folder / "releases" / "mine.json"
    for content, why in (
        (after.read_bytes(), "a second name"),
        (release_of(folder, "0.2", signed=False), "nobody has paid for it"),
        (release_of(folder, "0.2").replace(b'"0.2"', b'"0.1"'), "nobody has paid for it"),
        (known.read_bytes(), "nobody has paid for it"),
    ):
        wrong.write_bytes(content)
        found = run("ledger", "verify", folder)
        assert (found.exit_code, why in unfolded(found.stdout)) == (1, True), found.output
    wrong.unlink()
    (folder / "curator.sqlite.heads").unlink()  # what is not accepted yet is none
    found = run("ledger", "verify", folder)
    assert (found.exit_code, "has the signature of this service" in unfolded(found.stdout)) == (1, True), found.output


def accepted(run: Callable[..., Any], folder: Path) -> tuple[str, list[list[str]]]:
    """What `accept` says of ceilings, and the commands that it prints for them."""
    result = run("curator", "accept", folder, "--why", "a disk failure", "--yes")
    assert result.exit_code == 0, result.output
    commands = [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("  hedgerow curator ceiling")]
    return unfolded(result.output), commands


def test_who_was_shut_out_after_the_copy_is_let_in_by_it_and_accept_says_so(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    with closing(Curator.open(folder)) as curator:
        token, record = curator.accounts.issue("ada")
        curator.database.copy_to(tmp_path / "newer.sqlite")
        curator.accounts.revoke(record.id)
    put_back(folder)
    shutil.copy(tmp_path / "newer.sqlite", folder / FILE)
    said, _ = accepted(run, folder)
    assert "what was revoked or withdrawn after a copy was taken is valid again" in said
    assert f"hedgerow curator revoke {folder} --all" in said
    with closing(Curator.open(folder)) as curator:
        assert curator.accounts.authenticate(token) is not None
    assert run("curator", "revoke", folder, "--all", input="n\n").exit_code == 2
    assert run("curator", "revoke", folder).exit_code == 2
    assert run("curator", "revoke", folder, record.id, "--all").exit_code == 2
    with closing(Curator.open(folder)) as curator:
        assert curator.accounts.authenticate(token) is not None
    done = run("curator", "revoke", folder, "--all", "--yes")
    assert "revoked every token that was valid: of ada, owner" in done.stdout
    assert f"hedgerow curator token {folder} owner" in done.stdout
    with closing(Curator.open(folder)) as curator:
        assert {curator.accounts.state(each) for each in curator.accounts.tokens()} == {"revoked"}
    assert "of nobody" in run("curator", "revoke", folder, "--all", "--yes").stdout
    assert run("ledger", "verify", folder).exit_code == 0


def test_ceilings_that_were_lowered_after_the_copy_stay_low(tmp_path: Path, run: Callable[..., Any]) -> None:
    """The commands that `accept` prints undid them: who was cut off was let in again."""
    folder = make_folder(tmp_path)
    with closing(Curator.open(folder)) as curator:
        curator.ledger.ceiling("patients", "0.1", analyst="ada")  # 1.5 in the copy; she has spent 0.5, of which 0.3 after it
        curator.ledger.ceiling("patients", "0", analyst="bob")  # none in the copy
        curator.ledger.ceiling("patients", "0.9", purpose="research")  # none in the copy; 0.7 is spent, 0.5 of it after it
        curator.ledger.ceiling("patients", "9")  # raised after the copy, which has 2
    put_back(folder)
    for copy in ("job1", "job2"):
        (folder / "releases" / f"{copy}.json").unlink()
    said, commands = accepted(run, folder)
    assert "nothing more is paid from analyst 'bob' on dataset 'patients': ε = 0 before" in said
    assert "as they were last (where the copy has a lower one, that), less all that was spent after the copy" in said
    assert "lower them again" not in said
    ends = [" ".join(words[4:]) for words in commands]
    assert ends == [
        "--epsilon 0.1 --delta 0 --analyst ada",  # the copy says that she has spent 0.2: nothing more
        "--epsilon 0 --delta 0 --analyst bob",
        "--epsilon 1.5 --delta 0",
        "--epsilon 0.4 --delta 0 --purpose research",
    ]
    for words in commands:
        assert run(*words).exit_code == 0
    with closing(Curator.open(folder)) as curator:
        for who in ("ada", "bob"):
            with pytest.raises(BudgetError, match=f"the ceiling of analyst '{who}'"):
                curator.ledger.reserve("patients", who, "research", "0.01")
    assert run("ledger", "verify", folder).exit_code == 0


def test_without_the_ceilings_in_the_heads_the_owner_is_told_to_lower_them(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    written_before(folder)
    put_back(folder)
    said, commands = accepted(run, folder)
    assert "as the copy has them" in said
    assert "Ceilings that were lowered after it are not known here: lower them again" in said
    assert len(commands) == 2


def test_heads_with_what_was_spent_and_no_ceilings(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    heads, key = Heads.beside(folder / FILE), load_private_key(folder / KEY_FILE)
    lines = [signed_line(line.head, key, line.word, re.sub(r";[^&]*", "", line.spent)) for line in heads.good_lines()]
    first = heads.path.read_text().partition("\n")[0]
    heads.path.write_text("\n".join([first, *map(str, lines)]) + "\n")
    put_back(folder)
    said, commands = accepted(run, folder)
    assert "as the copy has them, less all that was spent after the copy. Ceilings that were lowered after it are not known here" in said
    assert " ".join(commands[0][4:]) == "--epsilon 1.2 --delta 0 --analyst ada"


def test_a_dataset_that_was_closed_after_the_copy_is_named(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    with closing(Curator.open(folder)) as curator:
        curator.ledger.close("patients")
    put_back(folder)
    said, commands = accepted(run, folder)
    assert f"'patients' was closed after the copy was taken. Close it again: hedgerow curator close {folder} patients" in said
    assert commands == []


def test_what_the_ceilings_count_already_is_not_to_be_counted_again(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    (folder / "releases" / "job2.json").write_bytes(release_of(folder) + b"\n")
    put_back(folder)
    done = run("curator", "accept", folder, "--why", "a disk failure", "--yes")
    assert "less all that was spent after the copy" in unfolded(done.stdout)
    assert "'job2.json' in releases/ was made after the copy was taken that was accepted (ε = 0.1 on 'patients')" in unfolded(done.stderr)
    assert "count it as spent" not in unfolded(done.stderr)


def test_the_status_in_ten_lines(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    before = sorted(path.name for path in folder.iterdir())
    lines = status(run, folder)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert lines["service"] == "stopped"
    assert lines["spent"] == "patients: ε = 0.7 of 2"
    assert lines["waiting"] == "nothing"
    assert lines["failed"].startswith("1 paid without an answer, ε = 0.1, the last on 2")
    assert lines["people"] == "3, with 2 valid token(s), of which 0 end within 14 days"
    assert (lines["backup"], lines["verified"]) == ("none by `hedgerow ledger backup`", "never")
    assert lines["head"].endswith("kept in curator.sqlite.heads")
    run("ledger", "backup", folder, "-o", tmp_path / "copy.sqlite")
    run("ledger", "verify", folder)
    with open_database(folder) as database, single_instance(folder, database):
        ledger = Ledger(database)
        ledger.settle("open")
        lines = status(run, folder)
    assert lines["service"] == "running"
    assert lines["waiting"] == "nothing"
    assert "1 paid without an answer" in lines["failed"]
    assert str(tmp_path / "copy.sqlite") in lines["backup"]
    assert ": 30:" in lines["verified"]
    assert lines["head"].startswith("31:")
    assert "spent      no datasets yet" in run("curator", "status", empty(tmp_path)).stdout


def test_the_status_has_the_delta(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    with closing(Curator.open(folder)) as curator:
        curator.ledger.ceiling("patients", 2, "0.00001")
    assert status(run, folder)["spent"] == "patients: ε = 0.7 of 2, δ = 0 of 1e-05"


def test_the_status_has_the_fullest_datasets_first_and_ceilings_that_are_used_up(tmp_path: Path, run: Callable[..., Any]) -> None:
    """Small ceilings came first, and hid one that was nearly full."""
    folder = make_folder(tmp_path)
    with closing(Curator.open(folder)) as curator:
        for name, epsilon, spent in (
            ("a", "0.1", "0.01"),
            ("b", "0.1", "0.01"),
            ("c", "0.1", "0.01"),
            ("full", "20", "19"),
            ("half", "1", "0.5"),
        ):
            curator.ledger.ceiling(name, epsilon)
            curator.ledger.reserve(name, "ada", "research", spent)
        curator.ledger.ceiling("half", "0.5", analyst="ada")
    lines = run("curator", "status", folder).stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("spent")] == ["full:", "half:", "patients:", "and"]
    assert "used up    the ceiling of analyst 'ada' on dataset 'half'" in lines


def status(run: Callable[..., Any], folder: Path) -> dict[str, str]:
    lines = run("curator", "status", folder).stdout.splitlines()
    assert len(lines) <= 10
    return dict(line.split(maxsplit=1) for line in lines)


def test_the_status_warns_of_a_ledger_that_is_not_served(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = make_folder(tmp_path)
    put_back(folder)
    assert "WARNING: the file of heads has 30, so that the end of the ledger is missing" in status(run, folder)["head"]
    run("curator", "accept", folder, "--why", "a test", "--yes")
    assert "WARNING" not in status(run, folder)["head"]
    run_sql(folder, f"UPDATE ledger_head SET hash = '{'a' * 64}'")
    assert "WARNING: it is NOT in the file of heads" in status(run, folder)["head"]
    (folder / "curator.sqlite.heads").unlink()
    assert "WARNING: the file of heads is missing" in status(run, folder)["head"]


def test_the_status_tells_what_is_under_way_from_what_is_lost(tmp_path: Path, run: Callable[..., Any]) -> None:
    """What was opened before the last start is lost; what was reserved after it is under way, unless a reason is noted."""
    folder = make_folder(tmp_path)
    with open_database(folder) as database:
        ledger, requests = Ledger(database), PaidRequests(database)
        with single_instance(folder, database):
            write_note(folder, STARTED, str(ledger.head()))
            assert (status(run, folder)["waiting"], "1 paid" in status(run, folder)["failed"]) == ("nothing", True)
            for name in ("runs", "fails"):
                request = IdempotencyKey(f"mine {name}", "a" * 64)
                ledger.opened(ledger.reserve("patients", "ada", "research", "0.1", what=name, key=name, request=request).key)
            ledger.reserve("patients", "ada", "research", "0.05", what="waits", key="waits")
            requests.note_failure("fails", "the file was cut off")
            lines = status(run, folder)
            assert lines["service"].startswith("running since 2")
            assert lines["waiting"] == "2 reservation(s), ε = 0.15: under way"
            assert lines["failed"].startswith("2 paid without an answer, ε = 0.2, ")
        lines = status(run, folder)
        assert lines["service"].startswith("stopped without saying so: killed")
        assert lines["waiting"] == "1 reservation(s), ε = 0.05: 1 never begun, which the next start gives back"
        assert lines["failed"].startswith("3 paid without an answer, ε = 0.3, ")
        (folder / "unstored").mkdir()
        (folder / "unstored" / "runs.json").touch()
        write_note(folder, STOPPED, "")
        lines = status(run, folder)
    assert lines["service"].startswith("stopped at 2")
    assert "ε = 0.15: 1 with an answer that the next start stores, 1 never begun" in lines["waiting"]
    assert lines["failed"].startswith("2 paid without an answer, ε = 0.2, ")


def empty(tmp_path: Path) -> Path:
    open_database(tmp_path / "empty").close()
    return tmp_path / "empty"
