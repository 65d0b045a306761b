"""The README's commands, run as a user would type them. (Its Python example runs as a doctest.)"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from hedgerow.datasets import patients

README = Path(__file__).parent.parent / "README.md"


def commands() -> list[list[str]]:
    block = README.read_text(encoding="utf-8").split("## On the command line")[1].split("##")[0]
    lines = [line.strip() for line in block.splitlines() if line.strip().startswith("hedgerow ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_the_commands_work_in_their_order(tmp_path: Path) -> None:
    patients(3000, seed=1).to_csv(tmp_path / "patients.csv")
    for name, seed in (("test.csv", 2), ("new.csv", 3)):
        patients(500, seed=seed).to_csv(tmp_path / name)
    asked = commands()
    assert {words[0] for words in asked} == {"schema", "plan", "budget", "fit", "evaluate", "rules", "show", "predict"}
    for words in asked:
        done = subprocess.run(
            [sys.executable, "-m", "hedgerow", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        if words[:2] == ["schema", "draft"]:  # then review it
            schema = tmp_path / "schema.toml"
            reviewed = [line for line in schema.read_text().splitlines() if not line.startswith("unreviewed")]
            schema.write_text("\n".join(reviewed) + "\n")
    for made in ("forest.json", "tree.svg", "report.html", "predictions.csv"):
        assert (tmp_path / made).stat().st_size > 100
    assert "epsilon-DP" in (tmp_path / "forest.json").read_text()


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "hedgerow", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("hedgerow ")
