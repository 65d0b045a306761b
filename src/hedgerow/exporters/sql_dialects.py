"""How DuckDB, PostgreSQL and Spark write the same thing. Names and texts from a release are quoted here, and nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Value

GREEK = "εδρσ"  # of a guarantee: a comment shows them as they are
_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"


class Dialect:
    """DuckDB, and what all have in common."""

    name = "duckdb"
    double = "DOUBLE"
    where_from = " (DuckDB makes them of yes and no when it reads a CSV, unless it is told all_varchar = true)"  # of booleans
    fence = ""  # what keeps a step of the statement from being copied into every place that uses its columns

    def identifier(self, name: str) -> str:
        if "\0" in name:
            raise PlanError(f"column {name!r}: a name with the character 0 cannot be written in SQL. Rename the column.")
        return '"' + name.replace('"', '""') + '"'

    def text(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def can_hold(self, text: str) -> bool:
        """Whether a column of text can hold it at all; what cannot is in no row."""
        return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)

    def value(self, value: Value) -> str:
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.text(value)
        return str(value) if isinstance(value, int) else self.number(value)

    def number(self, number: float) -> str:
        """A double to its last bit: without an exponent it would be taken for a decimal."""
        text = repr(float(number))
        return text if "e" in text else f"{text}e0"

    def whole(self, number: int) -> str:
        return str(number)

    def array(self, numbers: Sequence[float]) -> str:
        return f"[{', '.join(map(self.number, numbers))}]"

    def entry(self, array: str, place: str) -> str:
        """place: from 0 on"""
        return f"({array})[{place} + 1]"

    def as_text(self, column: str) -> str:
        return f"CAST({column} AS VARCHAR)"

    def as_text_of_no_booleans(self, column: str, message: str) -> str:
        """An error with this message where the column holds booleans: no declared value is one, and all would be taken for undeclared."""
        return f"CASE WHEN typeof({column}) = 'BOOLEAN' THEN error({self.text(message)}) ELSE {self.as_text(column)} END"

    def as_number(self, column: str) -> str:
        """What is no number is NULL."""
        return f"TRY_CAST({column} AS {self.double})"

    def is_a_date(self, column: str) -> str:
        return f"(typeof({column}) = 'DATE' OR typeof({column}) LIKE 'TIMESTAMP%')"

    def matches(self, text: str, pattern: str) -> str:
        return f"regexp_matches({text}, {self.text(f'^{pattern}$')})"

    def part(self, text: str, pattern: str, group: int) -> str:
        return f"TRY_CAST(regexp_extract({text}, {self.text(f'^{pattern}$')}, {group}) AS INTEGER)"

    def comment(self, facts: dict[str, Any]) -> str:
        """Lines that no text in them can end: JSON in ASCII and ε, δ, ρ, σ, without what some programs look for in comments."""
        lines = []
        for name, value in facts.items():
            text = json.dumps(value, separators=(", ", ": "), ensure_ascii=False)
            lines.append(f"-- {name}: {''.join(map(_in_a_comment, text))}")
        return "\n".join(lines) + "\n"


def _in_a_comment(character: str) -> str:
    """A character of a JSON text, escaped unless it is plain."""
    if character in ";$*?%":
        return f"\\u{ord(character):04x}"
    return character if character in GREEK else json.dumps(character)[1:-1] if not character.isascii() else character


class PostgreSQL(Dialect):
    name = "postgresql"
    double = "FLOAT8"
    where_from = ""
    fence = " OFFSET 0"

    def text(self, text: str) -> str:
        if "\\" in text:  # whatever standard_conforming_strings says
            return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
        return super().text(text)

    def array(self, numbers: Sequence[float]) -> str:
        return f"CAST(ARRAY[{', '.join(map(self.number, numbers))}] AS FLOAT8[])"

    def as_text(self, column: str) -> str:
        return f"CAST({column} AS TEXT)"

    def as_text_of_no_booleans(self, column: str, message: str) -> str:
        """It has no function for errors: a text that is no number is one. It holds the value, so that it is made where it is met."""
        text = self.as_text(column)
        error = f"CAST(CAST({self.text(message)} || ': ' || coalesce({text}, '') AS INTEGER) AS TEXT)"
        return f"CASE WHEN CAST(pg_typeof({column}) AS TEXT) = 'boolean' THEN {error} ELSE {text} END"

    def as_number(self, column: str) -> str:
        text = self.as_text(column)
        special = f"lower({text}) IN ('nan', 'infinity', '-infinity', 'inf', '-inf')"
        truth = f"WHEN lower({text}) IN ('true', 'false') THEN CASE WHEN lower({text}) = 'true' THEN 1 ELSE 0 END"
        return f"CASE {truth} WHEN {text} ~ {self.text(_NUMBER)} OR {special} THEN CAST({text} AS FLOAT8) END"

    def is_a_date(self, column: str) -> str:
        return f"(CAST(pg_typeof({column}) AS TEXT) = 'date' OR CAST(pg_typeof({column}) AS TEXT) LIKE 'timestamp%')"

    def matches(self, text: str, pattern: str) -> str:
        return f"{text} ~ {self.text(f'^{pattern}$')}"

    def part(self, text: str, pattern: str, group: int) -> str:
        return f"CAST((regexp_match({text}, {self.text(f'^{pattern}$')}))[{group}] AS INTEGER)"


class Spark(Dialect):
    name = "spark"
    where_from = ""

    def identifier(self, name: str) -> str:
        if "${" in name:
            raise PlanError(f"column {name!r}: Spark would put a setting in the place of '${{'. Rename the column.")
        return "`" + super().identifier(name)[1:-1].replace('""', '"').replace("`", "``") + "`"

    def text(self, text: str) -> str:
        """With every character that Spark might read in another way as its number."""
        plain = re.compile(r"[ -#%&(-\[\]-~]")
        return "'" + "".join(c if plain.match(c) or not c.isascii() else f"\\u{ord(c):04x}" for c in text) + "'"

    def number(self, number: float) -> str:
        return super().number(number).upper()

    def array(self, numbers: Sequence[float]) -> str:
        return f"array({', '.join(map(self.number, numbers))})"

    def entry(self, array: str, place: str) -> str:
        return f"element_at({array}, {place} + 1)"

    def as_text(self, column: str) -> str:
        return f"CAST({column} AS STRING)"

    def as_text_of_no_booleans(self, column: str, message: str) -> str:
        return f"CASE WHEN typeof({column}) = 'boolean' THEN raise_error({self.text(message)}) ELSE {self.as_text(column)} END"

    def as_number(self, column: str) -> str:
        """Through text, since Spark takes a number of an ending d or f, and a truth value for none."""
        text = self.as_text(column)
        return f"CASE {text} WHEN 'true' THEN 1.0E0 WHEN 'false' THEN 0.0E0 ELSE try_cast({column} AS DOUBLE) END"

    def is_a_date(self, column: str) -> str:
        return f"(typeof({column}) = 'date' OR typeof({column}) LIKE 'timestamp%')"

    def matches(self, text: str, pattern: str) -> str:
        return f"rlike({text}, {self.text(f'^{pattern}$')})"

    def part(self, text: str, pattern: str, group: int) -> str:
        return f"try_cast(regexp_extract({text}, {self.text(f'^{pattern}$')}, {group}) AS INT)"


DIALECTS = {each.name: each for each in (Dialect(), PostgreSQL(), Spark())}


def dialect_named(name: str) -> Dialect:
    if name not in DIALECTS:
        raise PlanError(f"dialect: got {name!r}; expected one of {', '.join(DIALECTS)}.")
    return DIALECTS[name]


def table_name(table: str, dialect: Dialect) -> str:
    """`table` or `schema.table`, quoted; a part with a dot in it is written in double quotes."""
    parts = re.fullmatch(r'(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)', table)
    if parts is None:
        raise PlanError(f"table {table!r}: expected table or schema.table; in double quotes where a name has dots or quotes in it.")
    names = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts.groups() if part]
    return ".".join(map(dialect.identifier, names))
