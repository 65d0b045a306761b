"""The unit of an ε: what two neighbouring tables differ in. Losses of one unit add up, losses of different units do not (PROOF.md, U3).

row                                    one row
person: patient_id, at most 40 rows    one person, that is one value of that column, of whom so many rows are counted
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from hedgerow.errors import BudgetError, PlanError
from hedgerow.schema.attributes import MAX_ROWS_PER_PERSON
from hedgerow.schema.schema import Schema

_PERSON = re.compile(r"person: (.+), at most ([1-9][0-9]{0,6}) rows?", re.DOTALL)  # the last number is k, whatever the name holds


@dataclass(frozen=True)
class Unit:
    """One row; or one person, with the column of their ids and the most rows of theirs that are counted.

    >>> str(Unit()), str(Unit("patient_id", 40))
    ('row', 'person: patient_id, at most 40 rows')
    >>> Unit.read("person: patient_id, at most 40 rows") == Unit("patient_id", 40)
    True
    """

    person: str | None = None
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        if self.person is None:
            if self.rows_per_person is not None:
                raise PlanError("unit: rows_per_person needs `person`, the column that says whose row it is. Name it, or leave both out.")
            return
        if not isinstance(self.person, str) or not self.person or any("\ud800" <= sign <= "\udfff" for sign in self.person):
            raise PlanError(f"unit: got the column {self.person!r:.100}; expected its name, as text that UTF-8 can write.")
        number = 1 if self.rows_per_person is None else self.rows_per_person
        if isinstance(number, bool) or not hasattr(number, "__index__") or not 1 <= int(number) <= MAX_ROWS_PER_PERSON:
            raise PlanError(f"unit: got rows_per_person = {number!r}; expected a whole number from 1 to {MAX_ROWS_PER_PERSON}.")
        object.__setattr__(self, "rows_per_person", int(number))

    @classmethod
    def of(cls, schema: Schema) -> Unit:
        """What a request that reads a table by this schema is counted in."""
        return cls(schema.person, schema.rows_per_person)

    @classmethod
    def read(cls, text: str) -> Unit:
        """From its text, exactly; PlanError for every other text."""
        found = _PERSON.fullmatch(text) if isinstance(text, str) else None
        unit = ROW if found is None else cls(found[1], int(found[2]))
        if str(unit) != text:
            raise PlanError(f'unit: got {text!r:.100}; expected "row", or such as "person: patient_id, at most 40 rows".')
        return unit

    def __str__(self) -> str:
        return "row" if self.person is None else f"person: {self.person}, at most {self._rows}"

    @property
    def words(self) -> str:
        """ "rows", or "persons" with how many rows of each count."""
        return "rows" if self.person is None else f"persons ({self.person}, at most {self._rows} each)"

    @property
    def options(self) -> str:
        """How a command is told."""
        return "--row" if self.person is None else f"--person {shlex.quote(self.person)} --rows-per-person {self.rows_per_person}"

    @property
    def _rows(self) -> str:
        return "1 row" if self.rows_per_person == 1 else f"{self.rows_per_person} rows"


ROW = Unit()


def checked_unit(unit: Unit) -> Unit:
    if not isinstance(unit, Unit):
        raise PlanError(f"unit: got {unit!r:.100}; expected a hedgerow.Unit, such as Unit() for rows or Unit.of(schema).")
    return unit


def check_unit(own: Unit, requested: Unit, who: str, what: str, next: str) -> None:
    """Refuse a request of another unit; `next` says what to do.  [U3]"""
    if own != requested:
        raise BudgetError(
            f"{who} cannot pay for {what}: it is for {own.words}, and this request is for {requested.words}. What was spent on both could "
            f"not be added up. Nothing was spent. {next}"
        )
