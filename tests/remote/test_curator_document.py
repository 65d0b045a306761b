"""What docs/CURATOR.md and the pages beside it say, done as written: commands, the service, the Python of an analyst, the backup."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from curator.http.serving import PATIENCE, Served

import hedgerow
from hedgerow import Categorical, Schema, Target
from hedgerow.curator.http.forests import recipe_of
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.requests import Forest
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import PlanError
from hedgerow.growers.sizes import MOST_DEPTH, MOST_TREES
from hedgerow.training.planning import plan as plan_of

SOURCES = str(Path(hedgerow.__file__).parents[1])
DOCS = Path(__file__).parents[2] / "docs"
FIRST = (DOCS / "CURATOR.md").read_text(encoding="utf-8").split("## Ten minutes")[1].split("\n## ")[0]
BACKUP = (DOCS / "CURATOR_SERVER.md").read_text(encoding="utf-8").split("## Backup")[1].split("\n## ")[0]


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("    hedgerow ")]


def run(words: list[str], folder: Path, **more: str) -> str:
    environment = {**os.environ, "PYTHONPATH": SOURCES, **more}
    command = [sys.executable, "-m", "hedgerow", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


@pytest.mark.slow
def test_ten_minutes(tmp_path: Path) -> None:
    demo, *owner, serve, left, plan, fit = commands(FIRST)
    assert [demo[0], *(words[1] for words in owner), serve[0], left[0], plan[0], fit[0]] == [
        "demo",
        "register",
        "register",
        "analyst",
        "analyst",
        "ceiling",
        "serve",
        "budget",
        "plan",
        "fit",
    ]
    run([*demo, "--rows", "4000"], tmp_path)
    folder = tmp_path / "clinic"
    said = "".join(run(words, folder) for words in owner)
    (token,) = re.findall(r"hrw_[\w-]{43}", said)
    served = Served(folder / serve[1]).ready()
    try:
        assert served.token != token  # the owner's
        assert "open that address in a browser" in served.said.read_text()
        assert served.address is not None
        (code,) = re.findall(r"```python\n(.*?)```", FIRST, flags=re.S)
        (folder / "analyst.py").write_text(code.replace("http://127.0.0.1:8300", served.address))
        environment = {**os.environ, "PYTHONPATH": SOURCES, "HEDGEROW_TOKEN": token}
        done = subprocess.run([sys.executable, "analyst.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("(ε = 0.5, δ = 1e-06) differential privacy") == 1
        assert done.stdout.count("ε = 0.5 differential privacy") == 1
        for words in (left, plan, fit):
            run([word.replace("http://127.0.0.1:8300", served.address) for word in words], folder, HEDGEROW_TOKEN=token)
        for words in commands(BACKUP):
            run(words, folder)
    finally:
        served.process.terminate()
        served.process.wait(PATIENCE)
    ledger = Ledger.open(folder / "curator")
    assert ledger.verify().sound
    assert not ledger.unsettled()
    assert ledger.balance("patients").spent <= 2
    assert 0 < ledger.balance("test-patients").spent <= 1  # the score was of rows that were kept apart
    assert (folder / "dpdf.json").stat().st_size > 1000


def test_which_trees_a_limit_bounds() -> None:
    """Those of a request. A Hedgerow forest chooses the number of its own, and the page says how many it may be."""
    limits, amounts = Limits(trees=10), {"purpose": "research", "epsilon": "1"}
    with pytest.raises(PlanError, match="n_estimators: got 20; this service takes at most 10"):
        recipe_of(Forest(**amounts, algorithm="rdt", settings={"n_estimators": 20}), limits)
    recipe = recipe_of(Forest(**amounts, delta="1e-6", algorithm="hedgerow"), limits)
    schema = Schema([Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))
    most, depth = plan_of(recipe, schema, 10**9).boosted
    assert most > limits.trees
    page = " ".join((DOCS / "CURATOR_LIMITS.md").read_text(encoding="utf-8").split())
    assert f"about {MOST_TREES[True]} boosted trees at most, {MOST_TREES[False]} without a δ, of depth {MOST_DEPTH} at most" in page
    assert (most, depth) == (MOST_TREES[True], MOST_DEPTH)


def test_every_limit_is_there_with_its_default() -> None:
    table = (DOCS / "CURATOR_LIMITS.md").read_text(encoding="utf-8")
    named = [name for line in table.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    known = {field.name: field.default for field in fields(Limits)}
    assert sorted(named) == sorted(known)
    for line in table.splitlines():
        if line.startswith("| `"):
            _, names, values, *_ = line.split("|")
            numbers = [float(value) * (2**20 if "MiB" in values else 1) for value in re.findall(r"\d+(?:\.\d+)?", values)]
            assert [known[name] for name in re.findall(r"`(\w+)`", names)] == numbers
