"""Rules as CSV: a line for each rule, a column for each attribute that some rule asks about, then the persons.

    smoker,age,ill=no,ill=yes             smoker,age,ill,hit,miss
    never|former,,120,14                  never|former,,no,120,14
    current,0 to 40|unknown,80,9          current,0 to 40|unknown,no,80,9

Values are divided by |, an interval is "low to high", an empty cell asks nothing. For names that could be taken for something else
there is the JSON form.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Categorical, Numeric, text_of
from hedgerow.schema.schema import Schema
from hedgerow.sharing.rules.conditions import named
from hedgerow.sharing.rules.reading import CLASS, COUNTS, HIT, IF, MISS

BETWEEN, TO = "|", " to "


def rules_of_csv(data: bytes, schema: Schema) -> list[dict[str, Any]]:
    """The same rules as the JSON form has them, for the same checks."""
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise PlanError(f"rule set: it is no sound CSV in UTF-8: {str(error)[:200]}") from error
    if not lines:
        raise PlanError("rule set: the file is empty; expected a header and a line for each rule.")
    heads, *rows = lines
    by_hits = _check_heads(heads, schema)
    found = []
    for number, row in enumerate((row for row in rows if row), 1):
        if len(row) != len(heads):
            raise PlanError(f"rule {number}: got {len(row)} cells; the header has {len(heads)}.")
        cells = dict(zip(heads, row, strict=True))
        rule: dict[str, Any] = {IF: {a.name: _entries(a, cells[a.name]) for a in schema.attributes if cells.get(a.name)}}
        if by_hits:
            persons = {what: _whole(cells[what], f"rule {number}: {what}") for what in (HIT, MISS)}
            found.append(rule | {CLASS: cells[schema.target.name], **persons})
        else:
            counts = {each: _whole(cells[column], f"rule {number}: {column}") for column, each in _counted(schema).items()}
            found.append(rule | {COUNTS: counts})
    return found


def _counted(schema: Schema) -> dict[str, str]:
    """Column → class."""
    return {f"{schema.target.name}={text_of(value)}": text_of(value) for value in schema.target.classes}


def _check_heads(heads: list[str], schema: Schema) -> bool:
    """Whether the columns are those of hit and miss."""
    counts, hits = set(_counted(schema)), {schema.target.name, HIT, MISS}
    clash = set(schema.names) & (counts | hits)
    if clash:
        raise PlanError(f"rule set: the attribute {min(clash)!r} has the name of a column of persons. Expected the JSON form there.")
    if len(set(heads)) < len(heads):
        raise PlanError(f"rule set: the column {next(name for name in heads if heads.count(name) > 1)!r:.80} is there twice.")
    persons = set(heads) - set(schema.names)
    if persons in (counts, hits):
        return persons == hits
    strange = sorted(persons - counts - hits)
    if strange:
        raise PlanError(f"rule set: the column {strange[0]!r:.80} is no attribute of the schema; expected {named(schema.names)}.")
    raise PlanError(
        f"rule set: got the columns of persons {', '.join(sorted(persons)) or 'none'}; expected {', '.join(_counted(schema))}; or "
        f"{schema.target.name}, {HIT}, {MISS}."
    )


def _entries(attribute: Categorical | Numeric, cell: str) -> list[Any]:
    if isinstance(attribute, Categorical) and text_of(cell) in {text_of(value) for value in attribute.domain}:
        return [cell]  # though it may hold a |
    parts = [part.strip() for part in cell.split(BETWEEN)]
    return parts if isinstance(attribute, Categorical) else [_interval(attribute, part) for part in parts]


def _interval(attribute: Numeric, part: str) -> Any:
    """What is no interval stays text: the missing numbers' name, or something to be refused."""
    ends = part.split(TO)
    if part == attribute.missing or len(ends) != 2:
        return part
    try:
        return {"low": float(ends[0]), "high": float(ends[1])}
    except ValueError:
        return part


def _whole(cell: str, what: str) -> int:
    text = cell.strip()
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise PlanError(f"{what}: got {cell!r:.80}; expected a whole number of at least 0.")
    return int(text)
