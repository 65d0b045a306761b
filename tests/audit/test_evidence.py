"""Evidence: saved and read back, refused where it contradicts itself, and told in words and in a picture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from hedgerow import __version__
from hedgerow.audit.attack import Audit, finding_of
from hedgerow.audit.bounds import FALSE_ALARM
from hedgerow.audit.evidence import heads, load, row_of, save, sentence, text_lines
from hedgerow.audit.picture import audit_svg, finding_svg
from hedgerow.errors import ReleaseError


@pytest.fixture
def found() -> Audit:
    """One pair that leaks nothing, one where the row shows in most runs; seeded, so no test can fail by chance."""
    draw, level = np.random.default_rng(0), FALSE_ALARM / 4
    quiet = finding_of("quiet", "nothing", {"n": draw.normal(size=2000)}, {"n": draw.normal(size=2000)}, 1.0, 0.0, level)
    loud = finding_of("<loud>", "a row", {"n": draw.normal(size=2000)}, {"n": draw.normal(size=2000) + 4}, 1.0, 0.0, level)
    return Audit("a & b", 1.0, 0.0, 2000, 2, (quiet, loud))


@pytest.fixture
def honest(found: Audit) -> Audit:
    return replace(found, findings=found.findings[:1])


def test_round_trip(found: Audit, tmp_path: Path) -> None:
    save(found, tmp_path / "evidence.json")
    read = load(tmp_path / "evidence.json")
    assert read.audit == found
    assert read.violated
    assert read.versions["hedgerow"] == __version__
    assert len(read.date) == len("2026-01-31")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(violated=False), "conclusion does not follow from the findings"),
        (lambda d: d["findings"][1].update(violated=False), "conclusion does not follow from its bound"),
        (lambda d: d["findings"][1].update(hits=[10, 5]), "do not follow from its counts"),
        (lambda d: d["findings"][1].update(hits=[5000, 5]), "more often than there were runs"),
        (lambda d: d["findings"][0].update(verdict=0.7), "do not follow from its counts"),
        (lambda d: d["findings"][0]["bounds"].update({"95 %": 0.9}), "do not follow from its counts"),
        (lambda d: d.update(findings=[]), "no findings"),
        (lambda d: d.update(format="hedgerow-audit-9"), "expected hedgerow-audit-1"),
        (lambda d: d.update(more=1), "not the evidence of an audit"),
        (lambda d: d.pop("runs"), "not the evidence of an audit"),
    ],
)
def test_a_changed_file_is_refused(found: Audit, tmp_path: Path, change: object, said: str) -> None:
    path = tmp_path / "evidence.json"
    save(found, path)
    document = json.loads(path.read_text())
    assert callable(change)
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ReleaseError, match=said):
        load(path)


def test_a_file_that_is_missing_or_no_json(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="cannot be read"):
        load(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("no")
    with pytest.raises(ReleaseError, match="not the evidence"):
        load(tmp_path / "text.json")


def test_consistent_in_words(honest: Audit) -> None:
    nothing = "consistent with ε = 1: no event was found whose lower bound exceeds it"
    assert sentence(honest, "PROOF.md") == f"{nothing} (which proves nothing by itself; the proof is PROOF.md)"
    assert "PROOF" not in sentence(honest)  # of somebody else's function nothing is proven
    assert sentence(replace(honest, delta=1e-6)).startswith("consistent with ε = 1 with δ = 1e-06:")


def test_violated_in_words(found: Audit) -> None:
    text, loud = sentence(found), found.findings[1]
    assert text.startswith("VIOLATED: <loud>: n ")
    assert f"{loud.hits[0]:,} of 1,000 runs {loud.likelier} the row" in text
    assert f"ε is at least {loud.verdict:.3f}" in text


def test_the_table(found: Audit) -> None:
    assert len(heads()) == len(row_of(found.findings[0], 1.0))
    row = row_of(found.findings[1], 1.0)
    without, with_row = (float(cell.rstrip(" %")) for cell in row[2:4])
    assert (with_row > without) == (found.findings[1].likelier == "with")
    assert row[6].endswith("VIOLATED")
    lines = text_lines(found)
    assert lines[0].startswith("a & b: 2,000 runs")
    assert lines[-1] == sentence(found)


def test_pictures_are_sound_and_tell_the_numbers(found: Audit, honest: Audit) -> None:
    for picture in (audit_svg(found), audit_svg(honest), finding_svg(found.findings[1], 1.0)):
        ElementTree.fromstring(picture)
        assert "1,000 runs" in picture
        assert "is claimed" in picture
    assert "&lt;loud&gt;" in audit_svg(found)
    assert " violated" in audit_svg(found)
    assert " violated" not in audit_svg(honest)


def test_the_picture_of_nothing() -> None:
    nothing = finding_of("none", "", {}, {}, 1.0, 0.0, 1e-6)
    ElementTree.fromstring(finding_svg(nothing, 1.0))
