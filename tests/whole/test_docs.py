"""Documents that cannot drift: proof labels, the map of the house, links between files."""

from __future__ import annotations

import re
from pathlib import Path

import hedgerow
from hedgerow.queries import QUERIES, ChooseLocally

PACKAGE = Path(hedgerow.__file__).parent
ROOT = Path(__file__).parents[2]


def test_every_label_in_the_code_has_its_theorem_and_the_other_way_round() -> None:
    sources = [path for room in ("mechanisms", "queries", "accounting") for path in (PACKAGE / room).glob("*.py")]
    sources += [PACKAGE / "private_table.py", PACKAGE / "engines" / "persons.py"]
    sources += [PACKAGE / "curator" / "http" / name for name in ("session_worker.py", "sessions.py")]
    used = {query.label for query in (*QUERIES, ChooseLocally)} | {
        label for path in sources for label in re.findall(r"\[([SVMCZUR]\d+)\]", path.read_text())
    }
    proved = set(re.findall(r"^### ([SVMCZUR]\d+)\.", (PACKAGE / "mechanisms" / "PROOF.md").read_text(), re.MULTILINE))
    assert used == proved


def test_every_query_has_a_theorem() -> None:
    proof = (PACKAGE / "mechanisms" / "PROOF.md").read_text()
    for query in (*QUERIES, ChooseLocally):
        assert re.search(rf"^### {query.label}\. `{query.name}\(", proof, re.MULTILINE), query.name


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text()):
            if not link.startswith(("http://", "https://")):
                assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_nothing_speaks_of_one_machine() -> None:
    pattern = re.compile(r"/(?:work|root|home|farm)/")
    written = [p for folder in ("src", "tests", "benchmarks", "docs", "experiments") for p in (ROOT / folder).rglob("*") if p.is_file()]
    for path in [*written, *ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "Makefile"]:
        mine = path.suffix in (".py", ".md", ".toml", ".sh", ".json", "") and ".venv" not in path.relative_to(ROOT).as_posix()
        if mine and path.name != "test_docs.py":
            assert not pattern.search(path.read_text(encoding="utf-8")), path
