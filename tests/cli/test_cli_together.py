"""`hedgerow together`: the commands of docs/TOGETHER.md as real processes, and what is refused."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from multiparty.owners import free_ports, make_parties, small_plan

import hedgerow
from hedgerow import Budget, BudgetFile, Release
from hedgerow.cli.together_local import failures
from hedgerow.multiparty.parties import Parties, add_party

SOURCES = str(Path(hedgerow.__file__).parents[1])
TEXT = (Path(__file__).parents[2] / "docs" / "TOGETHER.md").read_text(encoding="utf-8")
TERMINALS, SERVICES = TEXT.split("## By the owners' services")
LINES = [line.strip() for line in TERMINALS.splitlines() if line.startswith("    ")]
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCES, "COLUMNS": "160"}


def start(words: list[str], folder: Path) -> subprocess.Popen[str]:
    how: dict[str, Any] = {"cwd": folder, "env": ENVIRONMENT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "hedgerow", *words], **how)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
def test_the_commands_of_the_document(tmp_path: Path) -> None:
    """At other ports; the three owners at once, all others one after the other."""
    ports = dict(zip(("7701", "7702", "7703"), map(str, free_ports(3)), strict=True))
    folder, waiting = tmp_path, []
    for line in LINES:
        words = shlex.split(re.sub(r"770[123]", lambda found: ports[found[0]], line))
        if words[0] == "cd":
            folder = folder / words[1]
            continue
        assert words[0] == "hedgerow"
        if waiting and len(waiting) == 3:
            for process in waiting:
                assert "guarantee: ε = 0.5 differential privacy" in finish(process)
            waiting = []
            forests = [(folder / f"forest-{office}.json").read_bytes() for office in "abc"]
            assert forests[0] == forests[1] == forests[2]
            assert {str(BudgetFile(folder / f"budget-{office}.json").spent) for office in "abc"} == {"1/2"}
        if "--party" in words:
            waiting.append(start(words[1:], folder))
        else:
            finish(start(words[1:], folder))
    together = Release.load(folder / "forest-a.json").certificate.parts[0].together
    assert getattr(together, "owners", None) == ["office-a", "office-b", "office-c"]
    assert Release.load(folder / "forest.json").certificate.epsilon == "0.5"


def test_the_table_of_noise_in_the_document() -> None:
    """k, t: the standard deviation against one draw, and against k draws."""
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| .*? \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 5
    for k, t, absent, one, all_ in rows:
        whole = (int(k) / (int(k) - int(t))) ** 0.5
        assert (int(absent), one, all_) == (int(t) - 1, f"{whole:.2f}", f"{whole / int(k) ** 0.5:.2f}")


PROGRAM = """
import os, sys
from hedgerow.engines.streamed import StreamedRows
StreamedRows.sums = lambda *given: os.kill(os.getpid(), 9)
from hedgerow.cli import main
main()
"""


@pytest.mark.slow
def test_a_party_that_is_killed_in_mid_round_ends_the_others(tmp_path: Path) -> None:
    """The others end by themselves, with its name; what was charged stays, and no forest is written."""
    parties, file = make_parties(tmp_path, 3), tmp_path / "parties.toml"
    for party in parties.owners:
        add_party(file, party)
    small_plan().save(tmp_path / "plan.json")
    (tmp_path / "rows.csv").write_text("colour,flag,age,shape,class\nred,1,20,round,yes\n")
    processes = []
    for number in (1, 2, 3):
        BudgetFile.create(tmp_path / f"budget-{number}.json", 2)
        own = ["--party", str(number), "--budget", f"budget-{number}.json", "-o", f"{number}.json"]
        words = ["together", "plan.json", "rows.csv", "--disjoint", *own]
        program = ["-c", PROGRAM] if number == 2 else ["-m", "hedgerow"]
        how: dict[str, Any] = {"cwd": tmp_path, "env": ENVIRONMENT, "stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
        processes.append(subprocess.Popen([sys.executable, *program, *words], **how))
    told = [process.communicate(timeout=200)[1] for process in processes]
    assert [process.returncode for process in processes] == [2, -9, 2]
    for text in (told[0], told[2]):
        assert "owner-2 (party 2) left while adding up" in text  # or "… has stopped: owner-2 (party 2) left …"
        assert "The charge of ε = 1 stays in budget-" in text
    assert all(str(BudgetFile(tmp_path / f"budget-{number}.json").spent) == "1" for number in (1, 2, 3))
    assert not list(tmp_path.glob("[123].json"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small_plan().save("plan.json")
    Path("rows.csv").write_text("colour,flag,age,shape,class\nred,1,20,round,yes\n")
    Path("more.csv").write_text(Path("rows.csv").read_text())
    return tmp_path


def test_init_makes_keys_and_one_file(folder: Path, run: Callable[..., Any]) -> None:
    for number, name in enumerate(("a", "b", "c"), start=1):
        result = run("together", "init", name, "--address", f"localhost:770{number}")
        assert result.exit_code == 0
        assert f"{name} is party {number}" in result.stdout
        assert (folder / f"{name}.key").stat().st_mode & 0o777 == 0o600
    parties = Parties.load("parties.toml")
    assert [each.name for each in parties.owners] == ["a", "b", "c"]
    assert parties.owners[2].fingerprint in result.stdout
    (folder / "d.key").write_text("mine")
    taken = run("together", "init", "d", "--address", "localhost:9999")
    assert (taken.exit_code, "Give another file for the new key: --key" in " ".join(taken.stderr.split())) == (2, True)
    again = run("together", "init", "a", "--address", "localhost:9999")
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan.json", "rows.csv", "--disjoint"], "expected --party NUMBER"),
        (["plan.json", "rows.csv", "--party", "1", "--disjoint"], "`hedgerow together init` writes it"),
        (["plan.json", "rows.csv", "rows.csv", "--local", "3", "--disjoint"], "--local 3: got 2 tables"),
        (["plan.json", "rows.csv", "./rows.csv", "more.csv", "--local", "3", "--disjoint"], "--local: './rows.csv' is given twice"),
        (["plan.json", "rows.csv", "*.csv", "more.csv", "--local", "3", "--disjoint"], "its rows would count twice. Nothing was spent"),
        (["plan.json", "rows.csv", "--local", "1", "--party", "1"], "Leave --party and --key out"),
        (["plan.json", "https://host/datasets/a", "--party", "1", "--disjoint"], "federate --together"),
        (["forest.json", "rows.csv", "--party", "1", "--disjoint"], "is no plan; expected one whose trees and ε are public"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(folder: Path, run: Callable[..., Any], words: list[str], said: str) -> None:
    from hedgerow.training.counting import count

    if words[0] == "forest.json":
        count(small_plan(), "rows.csv", budget=Budget(1)).save("forest.json")
    result = run("together", *words, "-o", "out.json")
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")
    assert not Path("out.json").exists()


def test_what_all_owners_would_say_is_said_once(folder: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpyc.thresha", None)  # as where it is not installed
    for name in ("b.csv", "c.csv"):
        Path(name).write_text(Path("rows.csv").read_text())
    result = run("together", "plan.json", "rows.csv", "b.csv", "c.csv", "--local", "3", "--disjoint", "-o", "out.json")
    assert result.exit_code == 2
    assert result.stderr.count("needs the package mpyc") == 1
    assert failures([(2, "error: a"), (0, ""), (2, "error: a"), (2, "error: b")]) == "owner-1, owner-3: error: a; owner-4: error: b"


def test_counts_that_may_hold_no_row_are_told(folder: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The totals of all owners: of one alone nobody could tell. With --party the count itself says it."""
    from hedgerow.cli import together_local
    from hedgerow.training.counting import count

    release = count(small_plan(), "rows.csv", budget=Budget(1))
    monkeypatch.setattr(together_local, "run_local", lambda *_: release)
    monkeypatch.setattr("hedgerow.cli.together._say_assumption", lambda _: None)  # it has none
    for name in ("b.csv", "c.csv"):
        Path(name).write_text(Path("rows.csv").read_text())
    result = run("together", "plan.json", "rows.csv", "b.csv", "c.csv", "--local", "3", "--disjoint", "-o", "out.json")
    assert (result.exit_code, Path("out.json").exists()) == (0, True)
    assert "noise alone may make as many" in " ".join(result.stderr.split())


@pytest.mark.slow
def test_an_owner_who_cannot_take_part_ends_the_others(folder: Path, run: Callable[..., Any]) -> None:
    """They waited ten minutes, and what they said came first."""
    Path("third.csv").write_text(Path("rows.csv").read_text().replace("class", "klass"))
    words = ["together", "plan.json", "rows.csv", "more.csv", "third.csv", "--local", "3", "--disjoint", "-o", "out.json"]
    result = run(*words, "--wait", "3600")
    said = " ".join(result.stderr.split())
    assert result.exit_code == 2
    assert "error: owner-3: error: table 'third.csv': the column(s) class are missing" in said
    assert "did not come" not in said
    assert not Path("out.json").exists()


@pytest.mark.slow
def test_rows_that_were_counted_together_are_known_to_their_budget_file(folder: Path, run: Callable[..., Any]) -> None:
    """They were paid for again by every command, counted twice under half of what was lost, and scored as if they were kept apart."""
    files = [folder / f"rows-{number}.csv" for number in (1, 2, 3)]
    budgets = [BudgetFile.create(folder / f"budget-{number}.json", 5) for number in (1, 2, 3)]
    for file in files:
        file.write_text("colour,flag,age,shape,class\n" + "red,1,20,round,yes\nblue,0,30,round,no\n" * 30)
    paying = [word for budget in budgets for word in ("--budget", budget.path)]
    words = ["together", "plan.json", *files, "--local", "3", "--disjoint", *paying]
    first = run(*words, "-o", "forest.json")
    assert first.exit_code == 0, first.output
    assert [str(each.spent) for each in budgets] == ["1", "1", "1"]
    assert budgets[0].entries[0].shown == "count Private-RDT together (owner-1, owner-2, owner-3)"
    own = ["--budget", budgets[0].path]
    for refused, said in (
        ([*words, "-o", "second.json"], "has paid for these counts already"),
        (["count", "plan.json", files[0], "-o", "counts.json", *own], "has paid for counts in these trees already"),
        (["update", "forest.json", files[0], "--batch", "later", "--disjoint", *own], "has paid for DATA in this forest already"),
        (["evaluate", "forest.json", files[0], "--epsilon", "1", *own], "the rows that a forest was trained on flatter it"),
    ):
        result = run(*refused)
        assert (result.exit_code, said in " ".join(result.stderr.split())) == (2, True), result.output
    assert [str(each.spent) for each in budgets] == ["1", "1", "1"]
    assert run(*words, "--again", "-o", "second.json").exit_code == 0
    assert run("update", "forest.json", "more.csv", "--batch", "later", "--disjoint", *own).exit_code == 0  # other rows
    assert [str(each.spent) for each in budgets] == ["3", "2", "2"]


@pytest.mark.slow
def test_rows_that_were_counted_by_their_owner_are_not_counted_together_unawares(folder: Path, run: Callable[..., Any]) -> None:
    budgets = [BudgetFile.create(folder / f"budget-{number}.json", 5) for number in (1, 2, 3)]
    for name in ("third.csv", "fourth.csv"):
        Path(name).write_text(Path("rows.csv").read_text())
    assert run("count", "plan.json", "rows.csv", "-o", "counts.json", "--disjoint", "--budget", budgets[0].path).exit_code == 0
    paying = [word for budget in budgets for word in ("--budget", budget.path)]
    words = ["together", "plan.json", "rows.csv", "third.csv", "fourth.csv", "--local", "3", "--disjoint", *paying, "--wait", "3"]
    result = run(*words, "-o", "forest.json")
    assert result.exit_code == 2
    assert "If nothing was released then, if these are other rows, or to pay anew, --again" in " ".join(result.stderr.split())
    assert [str(each.spent) for each in budgets] == ["1", "0", "0"]
