"""The table and the figure of owners who count together, in docs/OWNERS_FIGURES.md, are what the stored accuracies say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from pathlib import Path
from benchmarks.together import figure_lines
print("\\n".join(figure_lines(Path(sys.argv[1]))))
"""


def test_the_table_and_the_figure_are_what_is_stored(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "together.svg")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    assert done.stdout in (ROOT / "docs" / "OWNERS_FIGURES.md").read_text(encoding="utf-8")
    drawn, stored = (path.read_text(encoding="utf-8") for path in (tmp_path / "together.svg", ROOT / "docs" / "together.svg"))
    if f"Matplotlib v{matplotlib.__version__}," in stored:  # another version draws other bytes
        assert drawn == stored
