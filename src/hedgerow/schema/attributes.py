"""Attributes, their domains and taxonomies, and the target, each checked when it is made. What they mean: `schema.py`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from hedgerow import formatting
from hedgerow.errors import SchemaError
from hedgerow.schema.dates import checked_format, number_of, text_of_day

Value: TypeAlias = str | int | float | bool

_WHOLE = re.compile(r"^-?\d+$")
MAX_LEVELS = 100  # of one taxonomy, above the values themselves
MAX_ROWS_PER_PERSON = 1_000_000
WIDE = 100  # cells of so many whole numbers are told by round numbers, as those of other numbers are
FROM_EDGES = math.nan  # a bound that is not given: the first or the last of the edges


def spellings(text: str) -> tuple[str, ...]:
    """Every text that is taken as the value `text` (itself a result of `text_of`)."""
    if text in ("true", "false"):
        return (text, text.capitalize(), text.upper())
    if text == "0":
        return ("0", "0.0", "-0", "-0.0")
    return (text, text + ".0") if _WHOLE.match(text) else (text,)


def text_of(value: object) -> str:
    """The text by which values are compared: 1.0 and "1.0" are "1", True is "true"."""
    if not isinstance(value, str) and hasattr(value, "item"):  # a NumPy scalar
        return text_of(value.item())
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    if text in ("True", "TRUE", "False", "FALSE"):
        return text.lower()
    if text.endswith(".0") and _WHOLE.match(text[:-2]):
        text = text[:-2]
    return "0" if text == "-0" else text


def is_missing(value: object) -> bool:
    """Null, NaN, pandas' NA and NaT, and empty text are missing."""
    if value is None or (isinstance(value, str) and value == ""):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA refuses to be a truth value
        return True


def _plain(value: Any, where: str) -> Value:
    """A declared value as a plain Python str, int, float or bool."""
    if hasattr(value, "item") and not isinstance(value, (str, bool, int, float)):
        value = value.item()
    if isinstance(value, str):
        value = str(value)  # numpy.str_ is a str too, but not a plain one
    if not isinstance(value, (str, int, float, bool)) or is_missing(value):
        raise SchemaError(
            f"{where}: got {value!r}; expected text, a number or a boolean. "
            "A missing value is not declared as a value: name its branch with missing=."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"{where}: got {value!r}; expected a finite value.")
    return value


def _distinct(values: Iterable[Any], where: str, at_least: int) -> tuple[Value, ...]:
    if isinstance(values, (str, bytes)):
        raise SchemaError(f"{where}: got the text {values!r}; expected a list of values.")
    plain = tuple(_plain(value, where) for value in values)
    seen: dict[str, Value] = {}
    for value in plain:
        text = text_of(value)
        if text in seen:
            raise SchemaError(f"{where}: {seen[text]!r} and {value!r} are the same value; declare it once.")
        seen[text] = value
    if len(plain) < at_least:
        raise SchemaError(f"{where}: got {len(plain)} value(s); expected at least {at_least}.")
    return plain


def column_name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{what}: the name must be non-empty text, got {name!r}.")
    return str(name)


def _branch_name(name: Any, where: str) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise SchemaError(f'{where}: got {name!r}; expected the name of a branch, such as "other", or nothing.')
    return str(name)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _parents(taxonomy: Any, attribute: Categorical) -> tuple[tuple[str, str], ...]:
    """A taxonomy of values as (child, parent) in one fixed order: the values as declared, then groups as they are met."""
    where = f"taxonomy of {attribute.name!r}"
    try:
        pairs = [(text_of(child), parent) for child, parent in (taxonomy.items() if isinstance(taxonomy, Mapping) else taxonomy)]
    except (TypeError, ValueError):
        raise SchemaError(f"{where}: got {taxonomy!r:.80}; expected the parent of each value, as {{child: parent}}.") from None
    parent_of = dict(pairs)
    if len(parent_of) < len(pairs):
        twice = sorted(child for child, times in Counter(child for child, _ in pairs).items() if times > 1)
        raise SchemaError(f"{where}: {', '.join(map(repr, twice))} has more than one parent; expected one.")
    domain = dict.fromkeys(text_of(value) for value in attribute.domain)
    for child, parent in pairs:
        if not isinstance(parent, str) or not parent:
            raise SchemaError(f"{where}: got {parent!r} as the parent of {child!r}; expected the name of a group, as text.")
        parent_of[child] = text_of(parent)
        if parent_of[child] in domain:
            raise SchemaError(f"{where}: {parent!r} is a value and the parent of {child!r}; a group needs a name of its own.")
    orphans = [text for text in map(text_of, attribute.values) if text not in parent_of]
    if orphans:
        raise SchemaError(f"{where}: the declared value(s) {', '.join(map(repr, orphans))} have no parent; every value needs one.")
    groups = set(parent_of.values())
    unknown = sorted(parent_of.keys() - groups - domain.keys())
    if unknown:
        raise SchemaError(f"{where}: {', '.join(map(repr, unknown))} is neither a value nor the parent of one.")
    return _one_top({child: parent_of[child] for child in domain if child in parent_of}, parent_of, where)


def _one_top(values: dict[str, str], parent_of: dict[str, str], where: str) -> tuple[tuple[str, str], ...]:
    """All links, level after level from the values up; refuses circles and more than one top."""
    ordered, level, levels = dict(values), values, 1
    tops: set[str] = set()
    while level:
        found = dict.fromkeys(level.values())
        tops |= found.keys() - parent_of.keys()
        level = {group: parent_of[group] for group in found if group in parent_of}
        levels += bool(level)
        if levels > len(parent_of) + 1:
            raise SchemaError(f"{where}: {min(level)!r} is above itself; expected no circle of parents.")
        if levels > MAX_LEVELS:
            raise SchemaError(f"{where}: more than {MAX_LEVELS} levels, or a circle of parents.")
        for group, parent in level.items():
            ordered.setdefault(group, parent)
    if len(ordered) < len(parent_of):
        apart = min(parent_of.keys() - ordered.keys())
        raise SchemaError(f"{where}: no value leads to {apart!r}; expected groups of values only, and no circle of parents.")
    if len(tops) != 1:
        raise SchemaError(f"{where}: got the tops {', '.join(map(repr, sorted(tops)))}; expected one group above all values.")
    return tuple(ordered.items())


@dataclass(frozen=True)
class Categorical:
    """An attribute with a public list of values.

    other:    name of the branch for undeclared values (a declared value, or a new one such as "other")
    missing:  name of the branch for missing values; without it, `other` takes them
    taxonomy: {child: parent}, parents may have parents, all values under one top. The branches `other` and `missing`
              may be in it; where they are not, they are directly under the top
    """

    name: str
    values: Sequence[Value]  # kept as a tuple
    other: str | None = None
    missing: str | None = None
    unreviewed: bool = False
    taxonomy: Mapping[Any, str] | Sequence[tuple[Any, str]] | None = None  # kept as a tuple of pairs

    def __post_init__(self) -> None:
        name = column_name(self.name, "categorical attribute")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "values", _distinct(self.values, f"values of {name!r}", 1))
        object.__setattr__(self, "other", _branch_name(self.other, f"other of {name!r}"))
        object.__setattr__(self, "missing", _branch_name(self.missing, f"missing of {name!r}"))
        object.__setattr__(self, "taxonomy", None if self.taxonomy is None else _parents(self.taxonomy, self))

    @property
    def domain(self) -> tuple[Value, ...]:
        """The branches: the declared values, then `other` and `missing` where those are new names."""
        domain = list(self.values)
        for extra in (self.other, self.missing):
            if extra is not None and text_of(extra) not in {text_of(value) for value in domain}:
                domain.append(extra)
        return tuple(domain)


@dataclass(frozen=True)
class Numeric:
    """An attribute with public bounds; `edges` (ascending, first = low, last = high) fix its cells, and alone they are enough.

    Without edges an estimator cuts [low, high] into its own number of equal-width cells.
    taxonomy: the edges of level 1, of level 2, … up to [low, high] alone, each among those of the level below
    date:     how its dates are written, such as "%d.%m.%Y": they count as days since 1970-01-01, and bounds may be given as dates
    integer:  whether its values are whole numbers: people are shown "26 to 28" for a cell from 25.7 to 28.3. Its cells stay as they are
    """

    name: str
    low: float = FROM_EDGES
    high: float = FROM_EDGES
    edges: Sequence[float] | None = None  # kept as a tuple
    missing: str | None = None
    unreviewed: bool = False
    taxonomy: Sequence[Sequence[float]] | None = None  # kept as a tuple of tuples
    date: str | None = None
    integer: bool = False

    def __post_init__(self) -> None:
        name = column_name(self.name, "numeric attribute")
        object.__setattr__(self, "name", name)
        if not isinstance(self.integer, bool) or (self.integer and self.date is not None):
            raise SchemaError(f"integer of {name!r}: got {self.integer!r}; expected true or false, and not for a date.")
        if self.date is not None:
            object.__setattr__(self, "date", checked_format(self.date, f"date of {name!r}"))
        first, last = self._ends()
        low, high = self._finite(first, "low"), self._finite(last, "high")
        if not low < high:
            raise SchemaError(f"bounds of {name!r}: got low {low}, high {high}; expected low < high.")
        if not math.isfinite(high - low):
            raise SchemaError(f"bounds of {name!r}: got low {low}, high {high}; the range is too wide for a float.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.edges is not None:
            object.__setattr__(self, "edges", self._ascending(self.edges, "edges"))
        object.__setattr__(self, "missing", _branch_name(self.missing, f"missing of {name!r}"))
        if self.taxonomy is not None:
            object.__setattr__(self, "taxonomy", self._nested(self.taxonomy))

    def _ends(self) -> tuple[Any, Any]:
        """The bounds as given, or else the ends of the edges."""
        given = [None if end is FROM_EDGES or end is None else end for end in (self.low, self.high)]
        ends = list(self.edges) if self.edges is not None and _is_list(self.edges) else []
        if None in given and not ends:
            raise SchemaError(f"bounds of {self.name!r}: expected low and high, or edges, whose first and last are taken for them.")
        return tuple(end if end is not None else edge for end, edge in zip(given, (ends[:1] + ends[-1:]) or (None, None), strict=True))  # type: ignore[return-value]

    def _ascending(self, edges: Sequence[Any], what: str) -> tuple[float, ...]:
        numbers = tuple(self._finite(edge, what) for edge in edges)
        ascending = all(a < b for a, b in pairwise(numbers))
        if len(numbers) < 2 or not ascending or numbers[0] != self.low or numbers[-1] != self.high:
            raise SchemaError(
                f"{what} of {self.name!r}: got {list(numbers)}; expected ascending numbers from low ({self.low}) to high ({self.high})."
            )
        return numbers

    def _nested(self, taxonomy: Any) -> tuple[tuple[float, ...], ...]:
        where = f"taxonomy of {self.name!r}"
        if not _is_list(taxonomy) or not all(map(_is_list, taxonomy)):
            raise SchemaError(f"{where}: got {taxonomy!r:.80}; expected a list of edges for each level.")
        levels = tuple(self._ascending(level, "taxonomy") for level in taxonomy)
        if not 1 <= len(levels) <= MAX_LEVELS or levels[-1] != (self.low, self.high):
            raise SchemaError(f"{where}: expected 1 to {MAX_LEVELS} levels, the last of them [{self.low}, {self.high}].")
        for finer, coarser in pairwise([*([] if self.edges is None else [tuple(self.edges)]), *levels]):
            if not set(coarser) <= set(finer):
                extra = sorted(set(coarser) - set(finer))
                raise SchemaError(f"{where}: {extra} are edges of a level, but not of the finer one below it.")
        return levels

    def _finite(self, number: Any, what: str) -> float:
        number = number if self.date is None else number_of(number)
        if isinstance(number, bool) or not hasattr(number, "__float__"):
            raise SchemaError(f"{what} of {self.name!r}: got {number!r}; expected a number.")
        try:
            result = float(number)
        except OverflowError:
            result = math.inf
        if not math.isfinite(result):
            raise SchemaError(f"{what} of {self.name!r}: got {number!r:.40}; expected a finite number.")
        return result

    def cell_edges(self, bins: int) -> tuple[float, ...]:
        """The declared edges, or the ends of `bins` equal-width cells."""
        if self.edges is not None:
            return tuple(self.edges)
        width = self.high - self.low
        inner = sorted({self.low + width * i / bins for i in range(1, bins)} - {self.low, self.high})
        return (self.low, *inner, self.high)

    def edge_texts(self, bins: int) -> list[str]:
        """The ends of the cells for people: dates, or numbers as round as the cells allow."""
        ends = self.cell_edges(bins)
        if self.date is not None:
            return [text_of_day(end) for end in ends]
        texts = zip(formatting.edges(ends), self.first_whole(bins), strict=True)
        return [text if whole is None else formatting.bound(whole) for text, whole in texts]

    def first_whole(self, bins: int) -> list[int | None]:
        """For each end of a cell the first whole number from there on, where that is to be shown: of whole numbers, in narrow cells."""
        ends = self.cell_edges(bins)
        if not self.integer:
            return [None] * len(ends)
        narrow = [min(b - a, c - b) < WIDE for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)]
        inner = [math.ceil(end) if shown else None for end, shown in zip(ends[1:-1], narrow, strict=True)]
        return [math.ceil(self.low), *inner, math.floor(self.high)]

    @property
    def bounds_text(self) -> str:
        """ "0 to 1,000,000", "2005-01-01 to 2021-12-31" """
        write = formatting.bound if self.date is None else text_of_day
        return f"{write(self.low)} to {write(self.high)}"


Attribute: TypeAlias = Categorical | Numeric


@dataclass(frozen=True)
class Target:
    """What is predicted, and its public classes. Predictions are the declared objects."""

    name: str
    classes: Sequence[Value]  # kept as a tuple
    unreviewed: bool = False

    def __post_init__(self) -> None:
        name = column_name(self.name, "target")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "classes", _distinct(self.classes, f"classes of {name!r}", 1))
