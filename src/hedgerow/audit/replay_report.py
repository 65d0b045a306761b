"""Replays as a table, as sentences, as a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.audit.evidence import as_json
from hedgerow.audit.replaying import Compared, Replay
from hedgerow.inference.text import plain
from hedgerow.release.files import write_document

FORMAT = "hedgerow-replay-1"
HEADS = ["request", "pair", "replays", "queries compared", "largest share of a charge", "verdict"]
NUMBERS = (2, 3, 4)


@dataclass(frozen=True)
class Replays:
    """Several requests, replayed."""

    violated: bool
    replays: tuple[Replay, ...]

    @classmethod
    def of(cls, replays: Iterable[Replay]) -> Replays:
        found = tuple(replays)
        return cls(any(each.violated for each in found), found)


def largest_shares(findings: Iterable[Compared]) -> dict[str, float]:
    """By query, over all of them."""
    found: dict[str, float] = {}
    for finding in findings:
        found |= {query: max(share, found.get(query, 0.0)) for query, share in finding.shares.items()}
    return found


def rows_of(replays: Sequence[Replay], short: bool) -> list[list[str]]:
    """A line for each pair, random ones together; short: all pairs of a request together."""
    rows = []
    for replay in replays:
        chance = [finding for finding in replay.findings if finding.pair.startswith("random")]
        named = [finding for finding in replay.findings if finding not in chance]
        if short:
            groups = [(f"{len(replay.findings)} pairs", list(replay.findings))]
        else:
            groups = [(finding.pair, [finding]) for finding in named] + ([(f"{len(chance)} random neighbours", chance)] if chance else [])
        rows += [_row(replay.what, name, findings) for name, findings in groups]
    return rows


def _row(what: str, name: str, findings: Sequence[Compared]) -> list[str]:
    shares = largest_shares(findings)
    query, share = max(shares.items(), key=lambda each: each[1], default=("", 0.0))
    words = f"{100 * share:.4g} %" + (f" ({query})" if query else "")
    verdict = "VIOLATED" if any(finding.wrong for finding in findings) else "the same"
    numbers = [f"{sum(finding.runs for finding in findings):,}", f"{sum(finding.queries for finding in findings):,}"]
    return [plain(what), plain(name), *numbers, words, verdict]


def sentences(found: Replays, most: int = 5) -> list[str]:
    """The conclusion; of a violation what differs, in which query."""
    findings = [finding for replay in found.replays for finding in replay.findings]
    shares = ", ".join(f"{query} {100 * share:.4g} %" for query, share in sorted(largest_shares(findings).items()))
    queries, runs = sum(finding.queries for finding in findings), sum(finding.runs for finding in findings)
    if not found.violated:
        return [
            f"largest share of a charge by query (100 %: the bound is attained): {shares or 'none'}",
            f"the same: in {runs:,} replays {queries:,} queries were asked alike and lost at most what was charged, and the same came out",
        ]
    wrong = [(replay.what, finding) for replay in found.replays for finding in replay.findings if finding.wrong]
    words = [f"VIOLATED: {plain(what)}, {plain(finding.pair)}: {plain(finding.wrong)}" for what, finding in wrong[:most]]
    return words + ([f"and {len(wrong) - most} other pairs"] if len(wrong) > most else [])


def save(found: Replays, path: str | Path) -> None:
    write_document(path, as_json(found, FORMAT), "evidence")
