"""Dates as numbers: days since 1970-01-01, read by a format that the schema declares and never guessed from rows.

A format is written as in Python, of %Y, %m and %d, perhaps with a time of day (%H, %M, %S), which is not looked at. What does not
follow it is taken for a number of days, and what is no number is missing: each value by itself, never an error because of one.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import SchemaError

EPOCH = date(1970, 1, 1)
LEAST, MOST = (date.min - EPOCH).days, (date.max - EPOCH).days
_PARTS = {
    "%Y": r"(?P<Y>\d{4})",
    "%m": r"(?P<m>\d{1,2})",
    "%d": r"(?P<d>\d{1,2})",
    "%H": r"\d{1,2}",
    "%M": r"\d{2}",
    "%S": r"\d{2}(?:\.\d+)?",
}


def checked_format(given: Any, where: str) -> str:
    """A format with each of %Y, %m and %d once."""
    parts = re.findall(r"%.?", given) if isinstance(given, str) and len(given) <= 40 else []
    if sorted(part for part in parts if part in ("%Y", "%m", "%d")) != ["%Y", "%d", "%m"] or not set(parts) <= set(_PARTS):
        raise SchemaError(
            f'{where}: got {given!r:.60}; expected how its dates are written, such as "%Y-%m-%d" or "%d.%m.%Y": %Y, %m and %d once '
            "each, and %H, %M, %S where there is a time."
        )
    return str(given)


@lru_cache(maxsize=64)
def date_pattern(written: str) -> re.Pattern[str]:
    digits = written in ("%Y%m%d", "%d%m%Y", "%m%d%Y")  # without anything between them each has all of its places
    parts = {part: text.replace("{1,2}", "{2}") if digits else text for part, text in _PARTS.items()}
    pieces = re.split(r"(%.)", written)
    return re.compile("".join(parts.get(piece, re.escape(piece)) for piece in pieces), re.ASCII)


def has_separators(written: str) -> bool:
    """Whether a date written so could never be read as one number."""
    return re.sub(r"%.", "", written) != ""


def day_of(text: str, written: str) -> int | None:
    """The day that a text names, None where it names none."""
    found = date_pattern(written).fullmatch(text.strip(" "))
    if found is None:
        return None
    try:
        return (date(int(found["Y"]), int(found["m"]), int(found["d"])) - EPOCH).days
    except ValueError:
        return None


def day_of_object(value: Any) -> float | None:
    """The day of a date of Python or of a date library; None for anything else."""
    if isinstance(value, datetime):
        value = value.date()
    return float((value - EPOCH).days) if isinstance(value, date) else None


def days_of_datetimes(values: NDArray[Any]) -> NDArray[np.float64]:
    """Of NumPy's dates and times; not-a-time is missing."""
    days = values.astype("datetime64[D]")
    numbers = days.astype(np.int64).astype(np.float64)
    numbers[np.isnat(days)] = np.nan
    return numbers


def text_of_day(number: float) -> str:
    """The date on which a day lies, as 2024-02-29; a number that no calendar has, as it is."""
    if not LEAST <= number < MOST + 1:
        return f"{number:g}"
    return (EPOCH + timedelta(days=int(np.floor(number)))).isoformat()


def number_of(value: Any) -> Any:
    """A bound that may be given as a date, or as ISO text, as its number of days; anything else as it is."""
    if isinstance(value, str):
        day = day_of(value, "%Y-%m-%d")
        return value if day is None else day
    day_number = day_of_object(value)
    return value if day_number is None else day_number
