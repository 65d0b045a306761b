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

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import SchemaError
from hedgerow.formatting import pairs_html
from hedgerow.schema.attributes import MAX_ROWS_PER_PERSON, Attribute, Categorical, Numeric, Target, column_name
from hedgerow.schema.csv_dialect import CSVDialect

if TYPE_CHECKING:
    from hedgerow.engines.table_check import TableCheck

MOST_SHOWN = 12  # names of columns in a repr


def _tells_nothing(attribute: Attribute) -> bool:
    if isinstance(attribute, Categorical):
        return len(attribute.domain) == 1
    return attribute.missing is None and attribute.edges is not None and len(attribute.edges) == 2


def _shown(attribute: Attribute) -> str:
    if isinstance(attribute, Numeric):
        return attribute.bounds_text
    return ", ".join(map(str, attribute.domain[:MOST_SHOWN])) + (" …" if len(attribute.domain) > MOST_SHOWN else "")


@dataclass(frozen=True, repr=False)
class Schema:
    """All public facts about one table. `rows` is a declared public size, never compared with the true one.

    person:          the column that says whose row it is, where a person may have several; a missing id is one person. Not an attribute
    rows_per_person: how many rows of a person are counted at most; noise grows with it. 1 where only `person` is given
    csv:             how the owner's CSV files are written, where that is not as usual. It is about files: schemas that differ in it alone
                     are equal, and a release does not hold it
    notes:           what a draft did and left out, for whoever reviews it; comments in the file, and in no release either
    hints:           what a draft has seen and its owner should know; in no file, since it would stay there when entries are accepted
    """

    attributes: tuple[Attribute, ...]
    target: Target
    rows: int | None = None
    unreviewed_rows: bool = field(default=False, kw_only=True)
    person: str | None = field(default=None, kw_only=True)
    rows_per_person: int | None = field(default=None, kw_only=True)
    csv: CSVDialect | None = field(default=None, kw_only=True, compare=False)
    notes: tuple[str, ...] = field(default=(), kw_only=True, compare=False)
    hints: tuple[str, ...] = field(default=(), kw_only=True, compare=False)

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
        notes: Sequence[str] = (),
        hints: Sequence[str] = (),
    ) -> None:
        object.__setattr__(self, "attributes", tuple(attributes))
        object.__setattr__(self, "csv", csv)
        object.__setattr__(self, "notes", tuple(notes))
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
        object.__setattr__(self, "person", None if person is None else column_name(person, "schema person"))
        object.__setattr__(self, "rows_per_person", self._limit(rows_per_person))
        object.__setattr__(self, "hints", tuple(hints) if self.unreviewed else ())  # what is reviewed may be published

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
        waiting = f"; {len(self.unreviewed)} entries not reviewed" if self.unreviewed else ""
        return f"Schema({len(self.attributes)} attributes: {names}; {target}{rows}{persons}{waiting})"

    def _repr_html_(self) -> str:
        """How a notebook shows it: each entry, and whether it waits for review."""
        lines = [(each.name, _shown(each)) for each in self.attributes]
        lines.append((self.target.name, f"predicted: {', '.join(map(str, self.target.classes[:MOST_SHOWN]))}"))
        waiting = set(self.unreviewed)
        return pairs_html([(name, text + ("; not reviewed" if name in waiting else "")) for name, text in lines], "Schema")

    @property
    def k(self) -> int:
        """How many rows of one person count at most: what sensitivities are multiplied by."""
        return self.rows_per_person or 1

    @property
    def names(self) -> tuple[str, ...]:
        """The attribute names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def dates(self) -> tuple[str, ...]:
        """The attributes that hold dates."""
        return tuple(each.name for each in self.attributes if isinstance(each, Numeric) and each.date is not None)

    @property
    def single_valued(self) -> tuple[str, ...]:
        """The attributes with one value alone, which no branch for others or for missing ones stands beside: they tell nothing."""
        return tuple(each.name for each in self.attributes if _tells_nothing(each))

    @property
    def unreviewed(self) -> tuple[str, ...]:
        """Names of the entries that were read from data and that nobody has reviewed yet."""
        found = [attribute.name for attribute in self.attributes if attribute.unreviewed]
        if self.target.unreviewed:
            found.append(self.target.name)
        if self.unreviewed_rows:
            found.append("rows")
        return tuple(found)

    @classmethod
    def draft(
        cls,
        table: Any,
        target: Any,
        *,
        person: str | None = None,
        rows_per_person: int | None = None,
        keep: Collection[str] = (),
        drop: Collection[str] = (),
    ) -> Schema:
        """A first schema, read from private rows: every entry is marked as unreviewed, and no ε is claimed until they are accepted.

        table:  a data frame (pandas, polars, pyarrow, …), a mapping of columns, or the path of a CSV or Parquet file
        target: the name of the column to predict, or the labels themselves
        keep:   columns that stay in though they look like identifiers, or have one value alone
        drop:   columns that are left out: what is not known when a prediction is needed, or what you do not want to learn from

        Compare it with what is publicly known (`print(schema.to_toml())`), replace what only the rows tell, then `schema.accept()`.
        """
        from hedgerow.engines.draft import draft_of  # the one way from here to rows: see pyproject.toml

        return draft_of(table, target, person, rows_per_person, keep, drop)

    def check(self, table: Any, y: Any = None) -> TableCheck:
        """What of a table does not fit, counted exactly before anything is paid: missing, undeclared, beyond bounds. For the owner alone.

        table: a data frame, a mapping of columns, an array, or the path of a CSV or Parquet file
        y:     the labels, where they are no column of the table

        `print(schema.check(df))` names the columns; `.fits` says whether all values are declared. Nothing of it may be published.
        """
        from hedgerow.engines.table_check import check_rows  # for the owner's eyes, as a draft: see pyproject.toml

        return check_rows(table, self, y)

    def accept(self, *names: str) -> Schema:
        """The same schema with these entries taken as reviewed, or all of them: you state that they are public facts."""
        unknown = [name for name in names if name not in (*self.names, self.target.name, "rows")]
        if unknown:
            waiting = f"those that wait for review are {', '.join(self.unreviewed)}" if self.unreviewed else "none waits for review"
            entries = ", ".join((*self.names, self.target.name))
            raise SchemaError(f"schema: it has no entry {', '.join(map(repr, unknown))}; its entries are {entries}, and {waiting}.")
        done = set(names or self.unreviewed)
        return replace(
            self,
            attributes=tuple(replace(each, unreviewed=each.unreviewed and each.name not in done) for each in self.attributes),
            target=replace(self.target, unreviewed=self.target.unreviewed and self.target.name not in done),
            unreviewed_rows=self.unreviewed_rows and "rows" not in done,
        )

    def to_toml(self) -> str:
        """The schema as TOML text, as `save` writes it."""
        from hedgerow.schema.toml import write

        return write(self)

    @classmethod
    def from_toml(cls, text: str, source: str = "schema") -> Schema:
        """The schema that TOML text describes; errors name `source`."""
        from hedgerow.schema.toml import read

        return read(text, source)

    def save(self, path: str | Path) -> None:
        """Write it as a TOML file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML file; errors name the entry and what was expected there."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(
                f"schema file {str(path)!r} cannot be read ({type(error).__name__}); expected a UTF-8 TOML file. "
                "`hedgerow schema draft data.csv --target NAME -o schema.toml` writes a first one."
            ) from error
        return cls.from_toml(text, source=str(path))
