"""Export of the ledger: CSV for a spreadsheet, JSON with all that is needed to check the chain again."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from hedgerow.curator.ledger.chain import FIELDS, LedgerEntry
from hedgerow.curator.ledger.checks import safe_to_show
from hedgerow.errors import LedgerError

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # a spreadsheet would compute a cell that begins so


def exported(entries: Iterable[LedgerEntry], format: str) -> Iterator[str]:
    """Pieces of text, each a line or so."""
    if format not in ("csv", "json"):
        raise LedgerError(f'format: got {format!r}; expected "csv" or "json".')
    return _csv(entries) if format == "csv" else _json(entries)


def _csv(entries: Iterable[LedgerEntry]) -> Iterator[str]:
    yield _line(FIELDS)
    for entry in entries:
        yield _line(cell(value) for value in asdict(entry).values())


def _json(entries: Iterable[LedgerEntry]) -> Iterator[str]:
    before = "[\n"
    for entry in entries:
        yield before + json.dumps(asdict(entry), ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def cell(value: str | int | None) -> str:
    """Without control characters; a text that a spreadsheet would take for a formula gets an apostrophe, which it shows as text."""
    text = "" if value is None else safe_to_show(str(value))
    return "'" + text if text.lstrip().startswith(FORMULA) else text


def _line(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()
