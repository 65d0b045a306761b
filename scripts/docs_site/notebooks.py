"""Tutorials: each notebook is run from its start, in an empty folder, and becomes a page with what it printed and drew."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

LONGEST = 600  # seconds for one cell, on a machine that is busy; alone, a notebook takes less than 60
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def found(root: Path) -> list[Path]:
    return sorted((root / "docs" / "tutorials").glob("*.ipynb"))


def pages(root: Path) -> dict[str, str]:
    """A page for each; an error in a cell ends the build. `HEDGEROW_NOTEBOOKS=plain` leaves outputs out, while one writes."""
    plain = os.environ.get("HEDGEROW_NOTEBOOKS") == "plain"
    return {f"tutorials/{path.stem}.md": page(nbformat.read(path, 4) if plain else run(path), path.name) for path in found(root)}


def run(path: Path) -> Any:
    """The notebook with its outputs."""
    notebook = nbformat.read(path, 4)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
        environment |= {"IPYTHONDIR": f"{folder}/.ipython", "OMP_NUM_THREADS": "1", "TERM": "dumb", "NO_COLOR": "1"}
        client = NotebookClient(
            notebook,
            timeout=LONGEST,
            startup_timeout=LONGEST,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],  # it listens on this machine alone, and warns of that
            resources={"metadata": {"path": folder}},
        )
        client.execute(env=environment)
    print(f"{path.name}: {time.monotonic() - begun:.1f} s", file=sys.stderr)
    return notebook


def page(notebook: Any, name: str) -> str:
    """A notebook as Markdown: text, code in fences, outputs below."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            shell = cell.source.startswith("%%bash")
            source = cell.source.split("\n", 1)[1] if shell else cell.source
            parts.append(f"```{'bash' if shell else 'python'}\n{source.strip()}\n```")
            parts += _outputs(cell.outputs)
    title, _, rest = "\n\n".join(filter(None, parts)).partition("\n\n")
    return f'{title}\n\n<p class="notebook-download"><a href="{name}" download>Download this notebook</a></p>\n\n{rest}\n'


def _outputs(outputs: list[Any]) -> list[str]:
    """What is printed comes in pieces: those that follow each other are one."""
    parts: list[str] = []
    printed = ""
    for output in outputs:
        if output.output_type == "stream":
            printed += output.text
            continue
        parts += [_text(printed), _output(output)]
        printed = ""
    return [*parts, _text(printed)]


def _output(output: Any) -> str:
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return f'<div class="notebook-output" markdown="0">{_one_block(data[kind])}</div>'
    if "text/markdown" in data:
        return str(data["text/markdown"])
    return _text(data.get("text/plain", ""))


def _text(text: str) -> str:
    text = _ANSI.sub("", text).strip("\n")
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    table = ' class="table"' if "───" in text else ""
    return f'<div class="notebook-output" markdown="0"><pre{table}>{_one_block(escaped)}</pre></div>' if text else ""


def _one_block(html: str) -> str:
    """Markdown ends a block of HTML at an empty line."""
    return re.sub(r"\n[ \t]*(?=\n)", "\n&#8203;", html) if "<svg" not in html else re.sub(r"\n\s*\n", "\n", html)
