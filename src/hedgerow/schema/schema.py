"""The public facts about a table: attributes and their domains, the target and its classes, perhaps the number of rows.

Nothing here is read from private rows (that is `hedgerow.engines.draft`, and it marks what it reads as unreviewed).

One behaviour for values that are not declared, at fit and at predict alike:

- categorical: an undeclared value takes the branch named by `other`; a missing one (null, NaN, an empty cell) the branch
  named by `missing`, or else by `other`. Without such a branch the row stops at the node that asks: at fit that tree does
  not count it, at predict it is answered from the released counts below that node.
- numeric: a value outside the bounds counts as the nearest bound; a missing or unreadable one takes the branch named by
  `missing`, or stops as above.
- target: a row without a declared class is not counted.

Values are compared by their text, so that 1, 1.0, "1" and "1.0" are one value whatever the file format made of them, and
True, "True" and "TRUE" are "true". `spellings` lists the texts that are taken as one value.

A table may hold several rows of one person. `person` names the column with their ids, which is never learnt from, and at most
`rows_per_person` rows of a person are counted: what is released then protects persons, not rows.

An attribute may have a taxonomy: which values belong together, level by level up to all of them. Only what generalises
reads it (`hedgerow.anonymity`); codes and trees do not depend on it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from hedgerow.errors import SchemaError
from hedgerow.schema.csv_dialect import CSVDialect

Value: TypeAlias = str | int | float | bool

_WHOLE = re.compile(r"^-?\d+$")
MAX_LEVELS = 100  # of one taxonomy, above the values themselves
MAX_ROWS_PER_PERSON = 1_000_000
MOST_SHOWN = 12  # names of columns in a repr


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


def _name(name: Any, what: str) -> str:
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
        name = _name(self.name, "categorical attribute")
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
    """An attribute with public bounds; `edges` (ascending, first = low, last = high) fix its cells.

    Without edges an estimator cuts [low, high] into its own number of equal-width cells.
    taxonomy: the edges of level 1, of level 2, … up to [low, high] alone, each among those of the level below
    """

    name: str
    low: float
    high: float
    edges: Sequence[float] | None = None  # kept as a tuple
    missing: str | None = None
    unreviewed: bool = False
    taxonomy: Sequence[Sequence[float]] | None = None  # kept as a tuple of tuples

    def __post_init__(self) -> None:
        name = _name(self.name, "numeric attribute")
        object.__setattr__(self, "name", name)
        low, high = self._finite(self.low, "low"), self._finite(self.high, "high")
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


Attribute: TypeAlias = Categorical | Numeric


@dataclass(frozen=True)
class Target:
    """What is predicted, and its public classes. Predictions are the declared objects."""

    name: str
    classes: Sequence[Value]  # kept as a tuple
    unreviewed: bool = False

    def __post_init__(self) -> None:
        name = _name(self.name, "target")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "classes", _distinct(self.classes, f"classes of {name!r}", 1))


@dataclass(frozen=True, repr=False)
class Schema:
    """All public facts about one table. `rows` is a declared public size, never compared with the true one.

    person:          the column that says whose row it is, where a person may have several; a missing id is one person. Not an attribute
    rows_per_person: how many rows of a person are counted at most; noise grows with it. 1 where only `person` is given
    csv:             how the owner's CSV files are written, where that is not as usual. It is about files: schemas that differ in it alone
                     are equal, and a release does not hold it
    """

    attributes: tuple[Attribute, ...]
    target: Target
    rows: int | None = None
    unreviewed_rows: bool = field(default=False, kw_only=True)
    person: str | None = field(default=None, kw_only=True)
    rows_per_person: int | None = field(default=None, kw_only=True)
    csv: CSVDialect | None = field(default=None, kw_only=True, compare=False)

    def __init__(
        self,
        attributes: Sequence[Attribute],
        target: Target,
        rows: int | None = None,
        *,
        unreviewed_rows: bool = False,
        person: str | None = None,
        rows_per_person: int | None = None,
        csv: CSVDialect | None = None,
    ) -> None:
        object.__setattr__(self, "attributes", tuple(attributes))
        object.__setattr__(self, "csv", csv)
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "unreviewed_rows", bool(unreviewed_rows) and rows is not None)
        if not self.attributes:
            raise SchemaError("schema: got no attributes; expected at least one Categorical or Numeric.")
        for attribute in self.attributes:
            if not isinstance(attribute, (Categorical, Numeric)):
                raise SchemaError(f"schema: got attribute {attribute!r}; expected Categorical(...) or Numeric(...).")
        if not isinstance(target, Target):
            raise SchemaError(f"schema: got target {target!r}; expected Target(name, classes).")
        names = [*self.names, target.name]
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise SchemaError(f"schema: the column name(s) {', '.join(map(repr, twice))} are declared more than once.")
        if rows is not None and (isinstance(rows, bool) or not hasattr(rows, "__index__") or int(rows) < 1):
            raise SchemaError(f"schema rows: got {rows!r}; expected a whole number of at least 1, or nothing.")
        if rows is not None:
            object.__setattr__(self, "rows", int(rows))
        object.__setattr__(self, "person", None if person is None else _name(person, "schema person"))
        object.__setattr__(self, "rows_per_person", self._limit(rows_per_person))

    def _limit(self, rows_per_person: Any) -> int | None:
        """How many rows of a person are counted, if there is a column that tells persons apart."""
        if self.person is None:
            if rows_per_person is not None:
                raise SchemaError(
                    "schema rows_per_person: it needs `person`, the column that says whose row it is. Name it, or leave both out."
                )
            return None
        if self.person in (*self.names, self.target.name):
            raise SchemaError(
                f"schema person: {self.person!r} is an attribute or the target, too; expected a column that only says whose row it is. "
                "Leave it out of the attributes."
            )
        number = 1 if rows_per_person is None else rows_per_person
        if isinstance(number, bool) or not hasattr(number, "__index__") or not 1 <= int(number) <= MAX_ROWS_PER_PERSON:
            raise SchemaError(
                f"schema rows_per_person: got {number!r}; expected a whole number from 1 to {MAX_ROWS_PER_PERSON}: how many rows of a "
                "person are counted at most."
            )
        return int(number)

    def __repr__(self) -> str:
        """The columns, but not their values: scikit-learn prints the parameters of an estimator, and there may be hundreds."""
        target = f"target {self.target.name!r} with {len(self.target.classes)} classes"
        rows = "" if self.rows is None else f", {self.rows} rows"
        persons = "" if self.person is None else f", at most {self.k} of each {self.person!r}"
        more = len(self.names) - MOST_SHOWN
        names = ", ".join(map(repr, self.names[:MOST_SHOWN])) + (f" and {more} more" if more > 0 else "")
        return f"Schema({len(self.attributes)} attributes: {names}; {target}{rows}{persons})"

    @property
    def k(self) -> int:
        """How many rows of one person count at most: what sensitivities are multiplied by."""
        return self.rows_per_person or 1

    @property
    def names(self) -> tuple[str, ...]:
        """The attribute names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def unreviewed(self) -> tuple[str, ...]:
        """Names of the entries that were read from data and that nobody has reviewed yet."""
        found = [attribute.name for attribute in self.attributes if attribute.unreviewed]
        if self.target.unreviewed:
            found.append(self.target.name)
        if self.unreviewed_rows:
            found.append("rows")
        return tuple(found)

    def to_toml(self) -> str:
        from hedgerow.schema.toml import write

        return write(self)

    @classmethod
    def from_toml(cls, text: str, source: str = "schema") -> Schema:
        from hedgerow.schema.toml import read

        return read(text, source)

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(
                f"schema file {str(path)!r} cannot be read ({type(error).__name__}); expected a UTF-8 TOML file. "
                "`hedgerow schema draft data.csv --target NAME -o schema.toml` writes a first one."
            ) from error
        return cls.from_toml(text, source=str(path))
