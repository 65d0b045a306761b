r"""How the cells of a CSV file are written: which delimiter, which quote, which escape. Declared by the owner, never guessed from rows.

In a schema                                 On the command line
    [csv]
    delimiter = ";"                             --csv 'delimiter=; escape=\ multiline'
    quote = '"'         # "" for none
    escape = '\'        # without it a quote inside a quoted cell is written twice
    multiline = true    # cells may hold line breaks

A line is a record: it ends with LF or CRLF, and what cannot be a record is left out alone. With `multiline` a quoted cell may go on
over several lines; then one quote that is left open takes the lines after it along, and a certificate says that the owner excludes it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from hedgerow.errors import SchemaError

DELIMITERS = (",", ";", "\t", "|")
WORDS = {"tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "none": ""}
EXPECTED = "delimiter=C quote=C escape=C multiline, each once, with C one character or tab, space, comma, semicolon, none"


@dataclass(frozen=True)
class CSVDialect:
    """delimiter: None for the one of , ; tab | that shows most of the declared columns in the header
    quote:     around cells that hold a delimiter; None: there are no quotes
    escape:    before a character that is meant as it stands; None: only quotes are escaped, by writing them twice
    multiline: whether a quoted cell may hold line breaks
    """

    delimiter: str | None = None
    quote: str | None = '"'
    escape: str | None = None
    multiline: bool = False

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote", "escape"):
            value = getattr(self, name)
            if value == "":
                object.__setattr__(self, name, None)
            elif value is not None and not (isinstance(value, str) and len(value) == 1 and value.isascii() and value not in "\r\n\0"):
                raise SchemaError(f"csv {name}: got {value!r:.40}; expected one ASCII character, and no line break.")
        given = [value for value in (self.delimiter, self.quote, self.escape) if value is not None]
        if len(set(given)) < len(given):
            raise SchemaError("csv: delimiter, quote and escape must differ. Leave escape out where a quote is written twice.")
        if self.quote == " " or not isinstance(self.multiline, bool) or (self.multiline and self.quote is None):
            raise SchemaError("csv: expected a quote that is no space, and multiline (true or false) only where there is a quote.")

    @classmethod
    def of_plain(cls, plain: Any, where: str = "[csv]") -> CSVDialect:
        """From a table of a schema file."""
        known = [field.name for field in fields(cls)]
        if not isinstance(plain, dict) or not set(plain) <= set(known):
            raise SchemaError(f"{where}: expected a table with {', '.join(known)} alone.")
        return cls(**plain)

    def to_plain(self) -> dict[str, Any]:
        """What differs from the default; `of_plain` reads it."""
        default = CSVDialect()
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: "" if value is None else value for name, value in plain.items() if value != getattr(default, name)}

    @classmethod
    def of_text(cls, text: str) -> CSVDialect:
        r"""From an option such as 'delimiter=; escape=\ multiline'."""
        given: dict[str, Any] = {}
        for item in text.split():
            name, equals, value = item.partition("=")
            if name in given or name not in ("delimiter", "quote", "escape", "multiline") or bool(equals) == (name == "multiline"):
                raise SchemaError(f"--csv: got {item!r:.40}; expected {EXPECTED}.")
            given[name] = WORDS.get(value, value) if equals else True
        return cls(**given)


def header_cells(line: str, dialect: CSVDialect, delimiter: str) -> list[str] | None:
    """The cells of one line, None if it does not follow the dialect. The rules of `engines/csv_split.py`, which reads the other lines."""
    cells, place = list[str](), 0
    while True:
        cell, place = _cell(line, place, dialect, delimiter)
        if cell is None:
            return None
        cells.append(cell)
        if place >= len(line):
            return cells
        place += 1


def _cell(line: str, place: int, dialect: CSVDialect, delimiter: str) -> tuple[str | None, int]:
    """A cell, or None, and the place of the delimiter behind it."""
    inner = place
    while delimiter != " " and line[inner : inner + 1] == " ":
        inner += 1
    is_quoted = dialect.quote is not None and line[inner : inner + 1] == dialect.quote
    place, text = (inner + 1 if is_quoted else place), list[str]()
    while place < len(line):
        here = line[place]
        if here == dialect.escape:
            if place + 1 == len(line):
                return None, place
            text.append(line[place + 1])
            place += 2
        elif is_quoted and here == dialect.quote:
            if dialect.escape is None and line[place + 1 : place + 2] == here:
                text.append(here)
                place += 2
                continue
            place += 1
            while delimiter != " " and line[place : place + 1] == " ":
                place += 1
            return ("".join(text), place) if line[place : place + 1] in ("", delimiter) else (None, place)
        elif not is_quoted and here == delimiter:
            return "".join(text), place
        else:
            text.append(here)
            place += 1
    return (None if is_quoted else "".join(text)), place
