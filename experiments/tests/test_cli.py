"""`hedgerow experiments` from end to end: run, stop, go on, report; its help, and the commands of its report."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hedgerow.cli import app
from hedgerow_experiments.cli import main
from hedgerow_experiments.report import INTRODUCTION

needs_data = pytest.mark.skipif(not os.environ.get("HEDGEROW_DATA"), reason="HEDGEROW_DATA does not name the folder of public data sets")
run = CliRunner().invoke


@pytest.mark.slow
@needs_data
def test_a_small_experiment_runs_and_is_reported(tmp_path: Path) -> None:
    where = ["--folder", str(tmp_path)]
    first = run(app, ["experiments", "run", "dpdf-figure-7", "--quick", "--workers", "1", *where])
    assert first.exit_code == 0, first.output
    again = run(app, ["experiments", "run", "dpdf-figure-7", "--quick", "--workers", "1", *where])
    assert "0 jobs without a result" in again.output
    assert run(app, ["experiments", "report", *where]).exit_code == 0
    text = " ".join((tmp_path / "REPRODUCTION_DPDF.md").read_text(encoding="utf-8").split())
    assert "NOT THE FULL PROTOCOL, quick" in text
    text = (tmp_path / "REPRODUCTION.md").read_text(encoding="utf-8")
    assert "nothing" in text  # the other experiments are named as not run
    assert (tmp_path / "figures" / "dpdf-figure-7.svg").exists()
    assert list((tmp_path / "tables").glob("dpdf-figure-7*.csv"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    run(app, ["experiments", "report", *where])
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["list", "run", "report", "peers"])
def test_each_help_has_an_explanation_and_an_example(command: str) -> None:
    result = run(app, ["experiments", command, "--help"])
    assert result.exit_code == 0
    assert f"hedgerow experiments {command} " in result.stdout.split("Example:")[1]


def test_the_commands_of_the_introduction_are_there() -> None:
    asked = [shlex.split(words) for words in re.findall(r"`hedgerow (experiments [^`]*)`", INTRODUCTION)]
    assert [words[:2] for words in asked] == [["experiments", name] for name in ("report", "run", "list", "run")]
    known = run(app, ["experiments", "run", "--help"]).output
    assert all(option in known for words in asked for option in words if option.startswith("--"))
    assert asked[3][2] in run(app, asked[2]).output


def test_the_script_is_the_same_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["hedgerow-experiments", "list", "nonsense"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "expected one of" in capsys.readouterr().err
