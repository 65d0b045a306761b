"""Dates in SQL: as `schema/dates.py` reads them, a date that no calendar has being none, without an error because of one."""

from __future__ import annotations

import re

from hedgerow.exporters.sql_dialects import Dialect

_ISO = "([0-9]{4})-([0-9]{2})-([0-9]{2}).*"  # how every program writes a date, or a time, of a type of its own
_PARTS = {
    "%Y": "([0-9]{4})",
    "%m": "([0-9]{1,2})",
    "%d": "([0-9]{1,2})",
    "%H": "[0-9]{1,2}",
    "%M": "[0-9]{2}",
    "%S": r"[0-9]{2}(?:\.[0-9]+)?",
}


def date_parts(sql: Dialect, column: str, written: str, j: int) -> list[str]:
    """Year, month and day as y{j}, m{j}, d{j}: NULL where the value is not written as declared."""
    pattern = _pattern(written)
    order = [piece for piece in re.findall(r"%.", written) if piece in ("%Y", "%m", "%d")]
    text = f"trim({sql.as_text(column)})"
    found = []
    for place, (letter, part) in enumerate((("y", "%Y"), ("m", "%m"), ("d", "%d")), 1):
        own_type = f"WHEN {sql.is_a_date(column)} THEN {sql.part(text, _ISO, place)}"
        as_declared = f"WHEN {sql.matches(text, pattern)} THEN {sql.part(text, pattern, order.index(part) + 1)}"
        found.append(f"CASE {own_type} {as_declared} END AS {letter}{j}")
    return found


def _pattern(written: str) -> str:
    parts = dict(_PARTS)
    if written in ("%Y%m%d", "%d%m%Y", "%m%d%Y"):
        parts |= {"%m": "([0-9]{2})", "%d": "([0-9]{2})"}
    pieces = re.split(r"(%.)", written)
    return "".join(parts.get(piece, re.escape(piece)) for piece in pieces)


def day_number(j: int) -> str:
    """Days since 1970-01-01 of y, m, d, if a calendar has them; else the number v{j}."""
    y, m, d = f"y{j}", f"m{j}", f"d{j}"
    leap = f"({y} % 4 = 0 AND ({y} % 100 <> 0 OR {y} % 400 = 0))"
    last = f"CASE WHEN {m} IN (4, 6, 9, 11) THEN 30 WHEN {m} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    known = f"{y} >= 1 AND {m} BETWEEN 1 AND 12 AND {d} BETWEEN 1 AND {last}"
    year = f"({y} - CASE WHEN {m} <= 2 THEN 1 ELSE 0 END)"  # of a year that begins in March, so that a leap day is its last
    leaps = f"floor({year} / 4e0) - floor({year} / 100e0) + floor({year} / 400e0)"
    of_year = f"floor((153e0 * ({m} + CASE WHEN {m} > 2 THEN -3 ELSE 9 END) + 2) / 5)"
    return f"(CASE WHEN {known} THEN 365e0 * {year} + {leaps} + {of_year} + {d} - 719469 ELSE v{j} END)"
