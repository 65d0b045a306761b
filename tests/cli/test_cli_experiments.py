"""`hedgerow experiments` from end to end: run, stop, go on, report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hedgerow.cli import app

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
    text = (tmp_path / "REPRODUCTION.md").read_text(encoding="utf-8")
    assert "NOT THE FULL PROTOCOL, quick" in text
    assert "nothing" in text  # the other experiments are named as not run
    assert (tmp_path / "figures" / "dpdf-figure-7.svg").exists()
    assert list((tmp_path / "tables").glob("dpdf-figure-7*.csv"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    run(app, ["experiments", "report", *where])
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
