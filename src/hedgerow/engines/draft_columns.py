"""What a draft declares of one column, and what it says about it. The rules are the same for files and for data frames.

'?', 'NA', 'N/A', 'NaN', 'null' and empty cells   are missing
whole numbers that are all different              look like an identifier: left out
texts of more than 100 different values           look like one, too
one value in every row                            tells nothing: left out
numbers that begin with zeros                     are codes, and stay text
dates                                             count as days, in the format that all of them have
two different whole numbers                       are categories, and so are up to 12 that are far apart, which look like codes
other numbers                                     have bounds, rounded outward; so have small counts, which have an order
a few numbers far larger than the others          have edges that grow (`growing_edges.py`)
numbers but for a few words such as '-'           are numbers, and the words are missing
numbers such as 65,447.20, 74,3 and 12.5%         have bounds, too, but cannot be read until they are written as plain numbers
categories with an order of their own (pandas)    keep it, and all their values
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.growing_edges import growing_edges
from hedgerow.schema.attributes import Attribute, Categorical, Numeric, Value, is_missing, text_of
from hedgerow.schema.dates import EPOCH, day_of, day_of_object

MAX_WHOLE_CATEGORIES = 12  # of whole numbers that are far apart: with more distinct values than this they are numeric
MAX_TEXT_CATEGORIES = 100  # a text column with more is left out of a draft: it looks like an identifier
FEWEST_IDENTIFIERS = 20  # rows from which on different whole numbers in each of them look like identifiers
MISSING = "missing"  # the branch of missing values in a draft
MARKS = frozenset({"?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "<NA>"})  # texts that are taken for missing
PLACEHOLDERS = frozenset(
    {"-", "--", "---", ".", "..", "...", "*", "na", "n.a.", "#n/a", "none", "nil", "missing", "unknown", "not available"}
)
STEPS = 10  # readable steps between two bounds, at least: how far they are rounded outward
DAYS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y")
WITH_TIME = "%Y-%m-%d %H:%M:%S"  # as pandas writes what has a type of times
FORMATS = (
    *DAYS, "%Y%m%d", *(day + time for day in DAYS for time in (" %H:%M:%S", " %H:%M")),
    *(f"%Y-%m-%d{clock}" for clock in ("T%H:%M:%S", "T%H:%M", "T%H:%M:%SZ", " %H:%M:%SZ", "T%H:%M:%S+00:00", " %H:%M:%S+00:00", "T%H:%MZ")),
)  # fmt: skip
PLAUSIBLE = ((date(1880, 1, 1) - EPOCH).days, (date(2120, 1, 1) - EPOCH).days)  # of digits alone that are taken for dates
NAMED_SO = re.compile(r"(?i:(^|[\W_])(id|nr|uuid|guid|ssn)$)|[a-z](Id|ID|Nr|NR)$")
FEW_WORDS = 5  # beside numbers: with more, and with more than one of ten different values, a column is text
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*", re.ASCII)
_DECIMAL = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+\s*", re.ASCII)
_BEGINS_WITH_ZERO = re.compile(r"\s*[+-]?0", re.ASCII)
_PERCENT = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*%\s*", re.ASCII)
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_PLAIN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


@dataclass(frozen=True)
class Drafted:
    """attribute: None where the column is left out, and then `why` says it; `said`: (what was done, the column and perhaps how)"""

    attribute: Attribute | None
    why: str = ""
    said: tuple[tuple[str, str], ...] = field(default=())


MANY, EMPTY, SINGLE = "many", "empty", "single"
AS_MISSING, AS_CODES, AS_DATES, EITHER = "taken for missing", "kept as text for the zeros they begin with", "read as dates", "either"
AS_COUNTS = "few whole numbers, taken for amounts with an order (if they are codes, declare them as categories)"
GROWING = "a few values are far larger than the others, so the edges grow: cells of equal width would hold nearly all rows in a few of them"
FAR_APART = "few whole numbers far apart, taken for codes without an order (if they are amounts, declare them as numeric)"
WITH_COMMAS = (
    "numbers with commas between thousands cannot be read and would count as missing: write them without, as 65447.2 (in pandas: "
    'read_csv(…, thousands=","), then to_csv)'
)
WITH_PERCENT = (
    "numbers with a percent sign cannot be read and would count as missing: write them without, as 12.5 (in pandas: "
    'df[name].str.rstrip("%").astype(float))'
)
DECIMAL_COMMAS = 'decimal commas cannot be read: write them as 2.5 (in pandas: read_csv(…, decimal=","), then to_csv)'
KEPT_MANY = (
    "kept as text with very many different values, of which little is learnt where each has few rows (dates or numbers: declare them as "
    'numeric with low and high, and for dates how they are written, such as date = "%Y-%m-%d %H:%M")'
)
AS_OTHER = "whatever is not listed counts as missing (other)"


@dataclass(frozen=True)
class Values:
    """The different values of a column that are not missing.

    marks: texts that are taken for missing
    gaps:  whether something is missing, marks included
    cells: how many cells hold a value
    """

    values: list[Any]
    marks: list[str]
    gaps: bool
    cells: int

    @classmethod
    def of(cls, column: NDArray[Any]) -> Values:
        if column.dtype.kind in "biufM":
            there = np.asarray(column == column)  # neither not-a-number nor not-a-time
            found = np.unique(column[there])
            finite = found[np.isfinite(found)] if found.dtype.kind == "f" else found
            if found.dtype.kind == "M":
                days = finite.astype("datetime64[D]")
                finite = days if (days == finite).all() else finite.astype("datetime64[us]")
            values = finite.tolist()
            return cls(values, [], not bool(there.all()), int(there.sum()))
        distinct: dict[str, Any] = {}
        marks: dict[str, None] = {}
        cells = gaps = 0
        for value in column.tolist():
            if is_missing(value):
                gaps += 1
            elif _is_mark(value):
                marks[value.strip() or "blanks"] = None
            else:
                distinct.setdefault(text_of(value), value)
                cells += 1
        return cls(list(distinct.values()), list(marks), bool(gaps or marks), cells)


def drafted(name: str, column: NDArray[Any], keep: bool = False, order: Sequence[Any] | None = None, decimal: bool = False) -> Drafted:
    """The entry for one column. keep: also where it looks like an identifier, or has one value alone; order: all values, where it has an
    order of its own; decimal: other columns have decimal commas, so that 2,500 is 2.5
    """
    found = Values.of(column)
    if order is not None:
        said = [(AS_OTHER, name)] if found.marks else []
        return Drafted(_categories(name, [value for value in order if not _is_mark(value)], found, ordered=True), said=tuple(said))
    numbers_but, words, unread = _numbers_but_for(found.values, decimal)
    marks = [*map(repr, found.marks), *_named(words)]
    said = [(AS_MISSING, f"{', '.join(marks)} in {name}")] if marks else []
    said += [(why, name) for why in unread]
    if not found.values:
        return Drafted(None, EMPTY)
    if len(found.values) == 1 and not found.gaps and not keep:
        return Drafted(None, SINGLE)
    kind = column.dtype.kind
    written, other = _dates(found.values)
    if written is not None:
        said.append((AS_DATES, f"{name} ({written})"))
        said += [(EITHER, f"{name} ({written} or {other})")] if other is not None else []
        low, high = _dates_outward(*_ends([_day(value, written) for value in found.values]))
        return Drafted(Numeric(name, low, high, missing=MISSING if found.gaps else None, unreviewed=True, date=written), said=tuple(said))
    codes = _codes(found.values)
    numbers = None if kind == "b" or codes else numbers_of(found.values) or numbers_but
    if codes:
        said.append((AS_CODES, name))
    if numbers is None:
        if len(found.values) > MAX_TEXT_CATEGORIES and not keep:
            return Drafted(None, MANY, tuple(each for each in said if each[0] != AS_CODES))
        said += [(KEPT_MANY, f"{name} ({len(found.values):,} values)")] if len(found.values) > MAX_TEXT_CATEGORIES else []
        said += [(AS_OTHER, name)] if found.marks else []
        return Drafted(_categories(name, found.values if codes else typed(found.values), found), said=tuple(said))
    whole = all(number.is_integer() for number in numbers)
    cells = found.cells - sum(isinstance(value, str) and value in words for value in (column.tolist() if words else ()))
    different = cells == len(numbers) >= FEWEST_IDENTIFIERS and not unread
    different = different or (whole and len(numbers) > MAX_TEXT_CATEGORIES and _equally_often(column))
    if whole and not keep and (different or (NAMED_SO.search(name) and len(numbers) > MAX_TEXT_CATEGORIES)):
        return Drafted(None, MANY, tuple(said))
    few = whole and len(numbers) <= MAX_WHOLE_CATEGORIES
    if few and (len(numbers) <= 2 or max(numbers) - min(numbers) >= 2 * len(numbers)):
        said += [(AS_OTHER, name)] if found.marks else []
        said += [(FAR_APART, name)] if len(numbers) > 2 else []
        return Drafted(_categories(name, _without_gaps([int(number) for number in numbers]), found), said=tuple(said))
    said += [(AS_COUNTS, name)] if few else []
    low, high = _ends(numbers) if few else outward(*_ends(numbers))
    missing = MISSING if found.gaps or words or unread else None
    entry = Numeric(name, low, high, missing=missing, unreviewed=True, integer=whole)
    each = np.array(numbers) if words or unread else _numbers_of_rows(column)
    edges = growing_edges(low, high, each, whole)
    said += [(GROWING, name)] if edges else []
    entry = replace(entry, edges=edges)
    return Drafted(entry, said=tuple(said))


def _numbers_of_rows(column: NDArray[Any]) -> NDArray[np.float64]:
    """Of a column of numbers, or of texts that are, those that are finite."""
    if column.dtype.kind not in "biuf":
        column = np.array([math.nan if is_missing(value) or _is_mark(value) else float(value) for value in column.tolist()])
    numbers = column.astype(np.float64)
    return numbers[np.isfinite(numbers)]


def _equally_often(column: NDArray[Any]) -> bool:
    """Whether each value stands in as many rows, as the number of a person does who was asked several times."""
    counts = Counter(column.tolist())
    return len(set(counts.values())) == 1


def _categories(name: str, values: Sequence[Any], found: Values, ordered: bool = False) -> Categorical:
    """Where texts stand for missing, whatever is not listed counts as missing: so do they."""
    other = MISSING if found.marks else None
    listed = plain_values(values) if ordered else in_order(values)
    return Categorical(name, listed, other=other, missing=MISSING if found.gaps else None, unreviewed=True)


def _is_mark(value: Any) -> bool:
    return isinstance(value, str) and (value.strip() in MARKS or not value.strip())


def _without_gaps(numbers: list[int]) -> list[int]:
    """With the few between them that no row happens to have: 0 to 9 though nobody has 8."""
    span = range(min(numbers), max(numbers) + 1)
    return list(span) if len(span) <= 2 * len(numbers) else numbers


def _codes(values: Sequence[Any]) -> bool:
    """Whether all are texts of digits, some of which begin with a zero that a number would lose."""
    if not all(isinstance(value, str) and value.isascii() and value.isdecimal() for value in values):
        return False
    return any(len(value) > 1 and value[0] == "0" for value in values)


def typed(values: Sequence[Any]) -> list[Any]:
    """Texts that are whole numbers or booleans throughout, as these: a file has no types of its own, and data frames read them so."""
    texts = [text_of(value) if isinstance(value, str) else "" for value in values]
    if all(_WHOLE.fullmatch(text) for text in texts):
        return [int(text) for text in texts]
    if set(texts) <= {"true", "false"}:
        return [text == "true" for text in texts]
    return list(values)


def numbers_of(values: Sequence[Any]) -> list[float] | None:
    """Values as finite numbers, None if one of them is none."""
    try:
        numbers = [float(value) for value in values if not isinstance(value, str) or _PLAIN.fullmatch(value)]
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if len(numbers) == len(values) > 0 and all(map(math.isfinite, numbers)) else None


def decimal_commas(texts: Collection[str], elsewhere: bool = False) -> bool:
    """Whether commas in them stand before decimals: 74,3 or 0,710; or 2,500 where those do `elsewhere`. One that can only stand between
    thousands tells otherwise.
    """
    found = [text for text in texts if _DECIMAL.fullmatch(text)]
    told = any(elsewhere or not _THOUSANDS.fullmatch(text) or _BEGINS_WITH_ZERO.match(text) for text in found)
    return told and not any(_THOUSANDS.fullmatch(text) and not _DECIMAL.fullmatch(text) for text in texts)


def _numbers_but_for(values: Sequence[Any], decimal: bool) -> tuple[list[float] | None, set[str], list[str]]:
    """Where most are numbers: these, the few words among them, and why some cannot be read as they are. None where they are not."""
    texts = [value for value in values if isinstance(value, str)]
    decimal = decimal_commas(texts, decimal)
    forms = {DECIMAL_COMMAS: _DECIMAL} if decimal else {WITH_COMMAS: _THOUSANDS}
    written = {why: {text for text in texts if form.fullmatch(text)} for why, form in (forms | {WITH_PERCENT: _PERCENT}).items()}
    unread = [why for why, found in written.items() if found]
    words = {text for text in texts if not _PLAIN.fullmatch(text)}.difference(*written.values())
    left = [value for value in values if not isinstance(value, str) or value not in words]
    if not (unread or words) or len(words) > min(FEW_WORDS, len(values) / 10) or _codes(left):
        return None, set(), []
    plainly = str.maketrans(",", ".", ".%") if decimal else str.maketrans("", "", ",%")
    again = {text: text.translate(plainly) for text in set().union(*written.values())}
    numbers = numbers_of([again.get(value, value) if isinstance(value, str) else value for value in left])
    if numbers is None or (len(set(numbers)) <= MAX_WHOLE_CATEGORIES and not decimal):
        return None, set(), []
    return sorted(set(numbers)), words, unread


def _named(words: Collection[str]) -> list[str]:
    """Usual words for what is missing by name. Others may be anything, and notes stay in the file: it is said that there are some."""
    usual = [repr(word) for word in sorted(words) if word.strip().casefold() in PLACEHOLDERS]
    return usual + (["texts that are no numbers (`hedgerow schema check` with the table names them)"] if len(usual) < len(words) else [])


def _ends(numbers: Sequence[float]) -> tuple[float, float]:
    return min(numbers), max(numbers)


# ---------------------------------------------------------------- dates


def _day(value: Any, written: str) -> float:
    day = day_of(text_of(value), written) if isinstance(value, (str, int)) else day_of_object(value)
    return math.nan if day is None else float(day)


def _dates(values: Sequence[Any]) -> tuple[str | None, str | None]:
    """The format that all values follow, if one is followed, and another that they follow as well."""
    if all(day_of_object(value) is not None for value in values):
        timed = any(isinstance(value, datetime) and value.time() != time() for value in values)
        return WITH_TIME if timed else DAYS[0], None
    if not all(isinstance(value, (str, int)) and not isinstance(value, bool) for value in values):
        return None, None
    fits = [written for written in FORMATS if all(_plausible(text_of(value), written) for value in values)]
    return (fits[0] if fits else None), (fits[1] if len(fits) > 1 else None)


def _plausible(text: str, written: str) -> bool:
    day = day_of(text, written)
    return day is not None and (written != "%Y%m%d" or PLAUSIBLE[0] <= day <= PLAUSIBLE[1])


def _dates_outward(low: float, high: float) -> tuple[float, float]:
    """Whole years around two days; whole months where they are less than a year apart."""
    first, last = EPOCH + timedelta(days=low), EPOCH + timedelta(days=high)
    if high - low >= 365:
        begin, end = date(first.year, 1, 1), date(last.year, 12, 31)
    else:
        begin = first.replace(day=1)
        end = (last.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1) if last < date(9999, 12, 1) else date.max
    return float((begin - EPOCH).days), float((end - EPOCH).days)


# ---------------------------------------------------------------- bounds


def outward(low: float, high: float) -> tuple[float, float]:
    """Readable bounds around two numbers: multiples of 1, 2 or 5 times a power of ten, at least STEPS of them apart."""
    if not low < high:
        return low, low + max(1.0, abs(low) * 1e-6)
    if not 1e-280 < high - low < 1e280 or abs(low) + abs(high) > 1e12 * (high - low):
        return low, high
    power = Decimal(1).scaleb(math.floor(math.log10((high - low) / STEPS)))
    step = next(power * times for times in (5, 2, 1) if power * times <= Decimal((high - low) / STEPS) or times == 1)
    a = (Decimal(repr(low)) / step).to_integral_value(ROUND_FLOOR) * step
    b = (Decimal(repr(high)) / step).to_integral_value(ROUND_CEILING) * step
    return float(a), float(b)


def in_order(values: Sequence[Any]) -> tuple[Value, ...]:
    """Distinct values, numbers by size and the rest by text."""
    return tuple(sorted(plain_values(values), key=lambda v: (isinstance(v, str), text_of(v) if isinstance(v, str) else v)))


def plain_values(values: Sequence[Any]) -> list[Value]:
    """Values as a schema holds them."""
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    return [value if isinstance(value, (str, int, float)) else str(value) for value in plain]
