"""The evidence of an audit: as a file that can be checked again, and as text for a terminal."""

from __future__ import annotations

import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from hedgerow.audit.attack import Audit, Finding
from hedgerow.audit.bounds import FALSE_ALARM, SHOWN, epsilon_at_least, epsilon_at_level
from hedgerow.errors import ReleaseError
from hedgerow.inference.text import plain
from hedgerow.release.files import read_document, write_document

FORMAT = "hedgerow-audit-1"


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    epsilon: float
    delta: float


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An audit with its date and the versions that it was made with."""

    format: str
    what: str
    claim: Claim
    runs: int
    tests: int
    violated: bool
    date: str
    versions: dict[str, str]
    findings: tuple[Finding, ...]

    @property
    def audit(self) -> Audit:
        return Audit(self.what, self.claim.epsilon, self.claim.delta, self.runs, self.tests, self.findings)


def versions() -> dict[str, str]:
    import numpy
    import scipy
    import sklearn

    from hedgerow import __version__

    found = {"hedgerow": __version__, "numpy": numpy.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
    return found | {"python": platform.python_version()}


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def evidence_of(audit: Audit) -> Evidence:
    claimed = Claim(audit.epsilon, audit.delta)
    return Evidence(FORMAT, audit.what, claimed, audit.runs, audit.tests, audit.violated, today(), versions(), audit.findings)


def save(audit: Audit, path: str | Path) -> None:
    write_document(path, msgspec.json.format(msgspec.json.encode(evidence_of(audit)), indent=1), "evidence")


def load(path: str | Path) -> Evidence:
    """Read evidence, and compute its bounds and verdicts again from its counts: a file that contradicts itself is refused."""
    data = read_document(path, "evidence")
    try:
        found = msgspec.json.decode(data, type=Evidence)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise ReleaseError(f"{path}: it is not the evidence of an audit: {str(error)[:200]}") from error
    if found.format != FORMAT:
        raise ReleaseError(f"{path}: got the format {plain(found.format)[:60]!r}; expected {FORMAT}.")
    if wrong := contradictions(found.audit, found.violated):
        raise ReleaseError(f"{path}: it contradicts itself: {'; '.join(wrong[:3])}. Audit again.")
    return found


def contradictions(audit: Audit, violated: bool) -> list[str]:
    """What does not follow from the counts: bounds, verdicts, the conclusion."""
    if audit.tests < 1 or not audit.findings:
        return ["it has no findings"]
    level, wrong = FALSE_ALARM / (2 * audit.tests), []
    for finding in audit.findings:
        (k, other_k), (n, other_n) = finding.hits, finding.runs
        if not (0 <= k <= n and 0 <= other_k <= other_n):
            wrong.append(f"{plain(finding.pair)}: an event happened more often than there were runs")
            continue
        counted = (k, n, other_k, other_n)
        expected = {f"{100 * c:g} %": float(epsilon_at_least(*counted, c, audit.delta)) for c in SHOWN}
        verdict = float(epsilon_at_level(*counted, level, audit.delta))
        same = finding.bounds.keys() == expected.keys() and all(abs(finding.bounds[c] - expected[c]) < 1e-6 for c in expected)
        if not same or abs(finding.verdict - verdict) > 1e-6:
            wrong.append(f"{plain(finding.pair)}: its bounds do not follow from its counts")
        if finding.violated != (finding.verdict > audit.epsilon):
            wrong.append(f"{plain(finding.pair)}: its conclusion does not follow from its bound")
    return wrong + ([] if violated == audit.violated else ["the conclusion does not follow from the findings"])


# ---------------------------------------------------------------- text


def claim(epsilon: float, delta: float) -> str:
    return f"ε = {epsilon:g}" + (f" with δ = {delta:g}" if delta else "")


NUMBERS = (2, 3, 4, 5, 6, 7)  # the columns of the table that stand flush right


def heads() -> list[str]:
    shown = [f"ε ≥ ({100 * confidence:g} %)" for confidence in SHOWN]
    return ["pair", "event", "without the row", "with it", *shown, "ε ≥ (verdict)", "ε claimed"]


def row_of(finding: Finding, epsilon: float) -> list[str]:
    first, second = (f"{100 * share:.2f} %" for share in finding.shares)
    without, with_row = (second, first) if finding.likelier == "with" else (first, second)
    bounds = [f"{bound:.3f}" for bound in finding.bounds.values()]
    mark = " VIOLATED" if finding.violated else ""
    return [plain(finding.pair), plain(finding.event), without, with_row, *bounds, f"{finding.verdict:.3f}{mark}", f"{epsilon:g}"]


def sentence(audit: Audit, proof: str | None = None) -> str:
    """The conclusion. proof: where the claim is proven, if it is."""
    if not audit.violated:
        by_itself = "which proves nothing by itself" + (f"; the proof is {proof}" if proof else "")
        return f"consistent with {claim(audit.epsilon, audit.delta)}: no event was found whose lower bound exceeds it ({by_itself})"
    worst = max((finding for finding in audit.findings if finding.violated), key=lambda finding: finding.verdict)
    likely, other = ("with", "without") if worst.likelier == "with" else ("without", "with")
    return (
        f"VIOLATED: {plain(worst.pair)}: {plain(worst.event)} in {worst.hits[0]:,} of {worst.runs[0]:,} runs {likely} the row and "
        f"{worst.hits[1]:,} of {worst.runs[1]:,} {other} it. So ε is at least {worst.verdict:.3f}; {claim(audit.epsilon, audit.delta)} was "
        f"claimed. A false alarm has a chance of at most one in a million."
    )


def text_lines(audit: Audit, proof: str | None = None) -> list[str]:
    """The table and the conclusion, as plain lines."""
    table = [heads(), *(row_of(finding, audit.epsilon) for finding in audit.findings)]
    widths = [max(len(row[j]) for row in table) for j in range(len(table[0]))]

    def line(row: list[str]) -> str:
        cells: list[Any] = [cell.rjust(widths[j]) if j in NUMBERS else cell.ljust(widths[j]) for j, cell in enumerate(row)]
        return "  ".join(cells).rstrip()

    head = f"{audit.what}: {audit.runs:,} runs on each table, half to find an event and half to measure it"
    return [head, "", *(line(row) for row in table), "", sentence(audit, proof)]


def as_json(thing: Any, format: str) -> bytes:
    """Another finding as a document: its fields, the date, the versions."""
    return msgspec.json.format(msgspec.json.encode({"format": format, **asdict(thing), "date": today(), "versions": versions()}), indent=1)
