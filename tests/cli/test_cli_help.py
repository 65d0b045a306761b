"""Help teaches, the version is there, and neither waits for heavy packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hedgerow

COMMANDS = [
    ["schema", "draft"],
    ["schema", "check"],
    ["advise"],
    ["plan"],
    ["fit"],
    ["update"],
    ["count"],
    ["merge"],
    ["together"],
    ["together", "init"],
    ["predict"],
    ["explain"],
    ["export"],
    ["rules"],
    ["show"],
    ["evaluate"],
    ["ledger", "show"],
    ["ledger", "verify"],
    ["ledger", "export"],
    ["ledger", "backup"],
    ["serve"],
    ["curator", "register"],
    ["curator", "ceiling"],
    ["curator", "unit"],
    ["curator", "close"],
    ["curator", "analyst"],
    ["curator", "withdraw"],
    ["curator", "token"],
    ["curator", "revoke"],
    ["curator", "show"],
    ["curator", "lost"],
    ["federate"],
    ["budget", "init"],
    ["budget", "show"],
    ["budget", "unit"],
    ["key", "new"],
    ["sign"],
    ["verify"],
    ["audit"],
    ["demo"],
]


def test_version(run: Callable[..., Any]) -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"hedgerow {hedgerow.__version__}\n")


def test_the_top_help_shows_the_sequence_and_every_command(run: Callable[..., Any]) -> None:
    text = run("--help").stdout
    steps = ["schema draft", "budget init", "hedgerow plan", "hedgerow fit", "hedgerow evaluate", "hedgerow predict"]
    steps += ["--save plan.json", "hedgerow count", "hedgerow merge"]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    for command in [*COMMANDS, ["experiments"]]:
        assert f"│ {command[0]} " in text


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_help_has_an_explanation_and_an_example(command: list[str], run: Callable[..., Any]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Example:" in result.stdout
    assert f"hedgerow {' '.join(command)} " in result.stdout.split("Example:")[1]


def test_experiments_say_how_they_are_installed(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are a package of their own; where it is installed, its own tests run its commands."""
    monkeypatch.setattr("hedgerow.cli.experiments.PACKAGE", "hedgerow_experiments_that_nobody_installed")
    for words in (["--help"], ["run", "dpdf", "--quick"], []):
        result = run("experiments", *words)
        assert result.exit_code == 2, words
        assert result.stderr.count("\n") == 1
        assert "pip install ./experiments" in result.stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom hedgerow.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'duckdb', 'scipy', 'msgspec', 'joblib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(hedgerow.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
