"""The commands of the site's first page, as they stand, on a table that is made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole.test_readme import commands, run

from hedgerow.datasets import patients

START = (Path(__file__).parents[2] / "docs" / "START.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_from_a_table_to_a_forest_that_is_scored_and_explained(tmp_path: Path) -> None:
    for name, rows, seed in (("patients.csv", 4000, 1), ("test.csv", 1000, 2), ("new.csv", 5, 3)):
        patients(rows, seed=seed).to_csv(tmp_path / name)
    asked = [words[1:] for words in commands(START)]
    assert [words[0] for words in asked[3:]] == ["schema", "budget", "plan", "fit", "evaluate", "show", "explain", "predict"]
    assert asked[1] == ["schema", "review", "schema.toml"]  # it says what waits, and ends with 1
    said = "".join(run(words, tmp_path) for words in asked if words != asked[1])
    assert "always answering" in said
    assert "what adds to the score" in said
    assert "Guarantee" in (tmp_path / "report.html").read_text()
