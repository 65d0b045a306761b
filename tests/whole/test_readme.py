"""The commands of the README and of the documents in docs/, run as a user would type them. (Python examples run as doctests.)"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from hedgerow import RuleSet
from hedgerow.cli import app
from hedgerow.datasets import patients

ROOT = Path(__file__).parents[2]


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


OWNERS = document("SEVERAL_OWNERS.md")
SHARING = document("SHARING.md")


def commands(text: str) -> list[list[str]]:
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ") and line.strip().startswith(("hedgerow ", "cd "))]
    return [shlex.split(line, comments=True) for line in lines]


def run(words: list[str], folder: Path) -> str:
    """In this process: to start a program takes longer than most commands do. Real processes: tests/cli/test_cli_processes.py."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (words, done.stderr)
    return done.stdout


def start(words: list[str], folder: Path) -> str:
    done = subprocess.run([sys.executable, "-m", "hedgerow", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


@pytest.mark.parametrize("run", [run, pytest.param(start, marks=pytest.mark.slow)])
def test_the_commands_work_in_their_order(run: Callable[[list[str], Path], str], tmp_path: Path) -> None:
    patients(3000, seed=1).to_csv(tmp_path / "patients.csv")
    for name, seed in (("test.csv", 2), ("new.csv", 3)):
        patients(500, seed=seed).to_csv(tmp_path / name)
    asked = [words[1:] for words in commands(document("GUIDE.md"))]
    assert {words[0] for words in asked} == {"schema", "plan", "budget", "fit", "evaluate", "explain", "show", "predict"}
    scores = [words[1:] for words in commands(document("SCORES.md"))]
    for words in [*asked, *(words for words in scores if words not in asked)]:  # the same score is paid for once
        run(words, tmp_path)
    for made in ("forest.json", "roc.html", "effects.svg", "report.html", "predictions.csv"):
        assert (tmp_path / made).stat().st_size > 100
    assert "epsilon-delta-DP" in (tmp_path / "forest.json").read_text()


@pytest.mark.slow
def test_the_commands_for_large_tables_work(tmp_path: Path) -> None:
    """Those that need a server or a cluster have tests of their own (tests/postgres, tests/spark)."""
    run(["demo", "--tables", ".", "--rows", "4000"], tmp_path)
    (tmp_path / "visits").mkdir()
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        kinds = "auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR']"  # else yes and no become booleans, which are not declared
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_csv('{tmp_path}/office-*.csv', {kinds})")
        connection.execute(f"COPY visits TO '{tmp_path}/visits/all.parquet' (FORMAT parquet)")
    made, *asked = [words[1:] for words in commands(document("SCALE.md").split("## On the command line")[1].split("\n##")[0])]
    run(made, tmp_path)
    assert [words[1] for words in asked] == ["visits/*.parquet", "clinic.duckdb", ":memory:", "postgresql://user@host/clinic", "visits"]
    for words in asked[:3]:
        run(words, tmp_path)
    for name in ("forest.json", "forest2.json", "forest3.json"):
        assert "epsilon-DP" in (tmp_path / name).read_text()


@pytest.mark.slow
def test_the_commands_that_attack_work(tmp_path: Path) -> None:
    """With fewer runs and one pair: as they stand they take minutes."""
    attack, *_ = (words[1:] for words in commands(document("AUDIT.md")))
    replay, *_ = (words[1:] for words in commands(document("REPLAY.md")))
    few = [*replay[:-1], "dpdf", "--pairs", "outlier", "--runs", "1"]
    assert "asked alike and lost at most what was charged" in run(few, tmp_path)
    few = ["1000" if word == "20000" else word for word in attack]
    assert "consistent with ε = 1" in run([*few, "--pairs", "outlier", "--workers", "1"], tmp_path)
    assert (tmp_path / "audit.svg").stat().st_size > 1000


def follow(text: str, folder: Path) -> tuple[str, Path]:
    """All commands of a document, in the folder that its `cd` leads to, beside the files that it shows."""
    said = ""
    for words in commands(text):
        if words[0] == "cd":
            folder = folder / words[1]
            write_examples(text, folder)
            continue
        said += run(words[1:], folder)
    return said, folder


def write_examples(text: str, folder: Path) -> list[str]:
    """The files that a document shows: a name in backquotes, a colon, and a block in fences."""
    found = re.findall(r"`([\w-]+\.(?:json|csv))`:\n\n```\w+\n(.*?)```\n", text, re.DOTALL)
    for name, content in found:
        (folder / name).write_text(content, encoding="utf-8")
    return [name for name, _ in found]


@pytest.mark.slow
def test_the_chain_of_the_document_on_sharing(tmp_path: Path) -> None:
    said, folder = follow(SHARING, tmp_path)
    for text in ("yes: 50-anonymity", "NOT differential privacy", "basis: all tables pooled", "LD: pooled and generalised"):
        assert text in said, text
    assert (folder / "pseudo.csv.certificate.json").stat().st_size > 100


def test_the_rules_of_the_document_on_sharing(tmp_path: Path) -> None:
    """Both files that it shows are taken, and say the same; what it makes of them and of a tree satisfies its requirement."""
    page = document("RULE_SETS.md")
    run(["demo", "--tables", ".", "--rows", "3000"], tmp_path)
    assert write_examples(page, tmp_path) == ["hospital.json", "hospital.csv"]
    demo, folder, *asked = commands(page)
    assert (demo[1], folder[0]) == ("demo", "cd")
    assert {words[1] for words in asked} == {"fit", "rules", "anonymity", "synth", "share"}
    said = "".join(run(words[1:], tmp_path) for words in asked)
    for text in ("yes: 50-anonymity: all", "every rule satisfies 50-anonymity", "2 rule sets"):
        assert text in said, text
    by_json, by_csv = (RuleSet.load(tmp_path / f"hospital.{kind}", tmp_path / "schema.toml", 7) for kind in ("json", "csv"))
    assert by_json.rules == by_csv.rules


@pytest.mark.slow
def test_the_three_offices_of_the_document(tmp_path: Path) -> None:
    network = OWNERS.split("## Over the network")[1].split("\n## ")[0]  # tests/remote/test_federate_document.py
    said, folder = follow(OWNERS.replace(network, ""), tmp_path)
    for text in ("holds no data", "Office A", "Office B", "Office C", "counted tables: 4", "rebuilding:"):
        assert text in said, text
    for made in ("predictions.csv", "mean.csv", "united.csv", "registry-only.csv", "forest-without-c.json"):
        assert (folder / made).stat().st_size > 100


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "hedgerow", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("hedgerow ")
