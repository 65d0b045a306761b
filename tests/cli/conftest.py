"""What all tests of the command line share: a small private table, its schema, and three ways to run a command."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import hedgerow
from hedgerow.cli import app

SOURCES = str(Path(hedgerow.__file__).parents[1])
WIDE = {"COLUMNS": "160"}  # whatever the width where the tests run, no table is folded


@pytest.fixture
def run() -> Callable[..., Any]:
    """run("fit", path, …) in this process; input: what is typed."""

    def call(*words: object, input: str | None = None) -> Any:
        return CliRunner().invoke(app, [str(word) for word in words], env=WIDE, input=input)

    return call


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """start("fit", path, …): a real process in the test's folder."""

    def call(*words: object, encoding_there: str = "utf-8", **more: Any) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONIOENCODING": encoding_there, **WIDE}
        command = [sys.executable, "-m", "hedgerow", *map(str, words)]
        # Where the tests themselves run in the background, Ctrl-C is ignored, and a child would inherit that.
        heard: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **heard, **more}
        return subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, encoding="utf-8", **pipes)

    return call


SCHEMA = """
[target]
name = "ill"
classes = ["no", "yes"]

[attributes.smoker]
kind = "categorical"
values = ["never", "former", "current"]

[attributes.age]
kind = "numeric"
low = 0
high = 100
missing = "unknown"

[attributes.sex]
kind = "categorical"
values = ["f", "m"]
"""


def table_text(rows: int, seed: int = 0) -> str:
    """Current smokers above 50 are ill; the rest is chance. Some ages are missing."""
    draw = random.Random(seed)
    lines = ["smoker,age,sex,ill"]
    for _ in range(rows):
        smoker, age, sex = draw.choice(["never", "former", "current"]), draw.randrange(100), draw.choice("fm")
        ill = "yes" if (smoker == "current" and age > 50) != (draw.random() < 0.05) else "no"
        lines.append(f"{smoker},{'' if draw.random() < 0.02 else age},{sex},{ill}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def place(tmp_path: Path) -> SimpleNamespace:
    """A folder with data, test rows, a reviewed schema and a budget of ε = 2."""
    from hedgerow import BudgetFile

    here = SimpleNamespace(
        folder=tmp_path,
        data=tmp_path / "data.csv",
        test=tmp_path / "test.csv",
        schema=tmp_path / "schema.toml",
        budget=tmp_path / "budget.json",
        forest=tmp_path / "forest.json",
    )
    here.data.write_text(table_text(2000))
    here.test.write_text(table_text(500, seed=1))
    here.schema.write_text(SCHEMA)
    BudgetFile.create(here.budget, 2)
    return here


@pytest.fixture
def fitted(place: SimpleNamespace, run: Callable[..., Any]) -> SimpleNamespace:
    """`place` with a forest that cost ε = 1."""
    result = run(
        "fit", place.data, "--schema", place.schema, "--algorithm", "rdt", "--epsilon", "1", "--budget", place.budget,
        "--trees", 3, "--depth", 2, "--seed", 0, "-o", place.forest,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    place.said = result.stdout
    return place
