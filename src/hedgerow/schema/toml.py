"""The schema as a TOML file that a person reads, reviews and edits.

    rows = 12960                       # optional: a PUBLIC number of rows
    person = "patient_id"              # optional: the column that says whose row it is, where a person may have several
    rows_per_person = 5                # optional: how many rows of a person are counted at most (1 if not given)

    [target]
    name = "class"
    classes = ["no", "yes"]

    [attributes.smoker]
    kind = "categorical"
    values = ["never", "former", "current"]
    other = "other"                    # optional: branch for undeclared values
    missing = "unknown"                # optional: branch for missing values

    [attributes.age]
    kind = "numeric"
    low = 0
    high = 120
    edges = [0, 18, 40, 65, 120]       # optional: fixed cells; with them low and high may be left out
    taxonomy = [[0, 18, 65, 120], [0, 120]]  # optional: the edges of coarser and coarser levels

    [attributes.admitted]
    kind = "numeric"
    date = "%d.%m.%Y"                  # its cells hold dates, written so; they count as days
    low = 2015-01-01
    high = 2024-12-31

    [attributes.smoker.taxonomy]       # optional: which values belong together, up to all of them
    never = "never smoked"
    former = "has smoked"
    current = "has smoked"
    "never smoked" = "anybody"
    "has smoked" = "anybody"

    [csv]                              # optional: how CSV files are written, see csv_dialect.py; no release holds it
    escape = '\\'                      # a quote in a cell is written \\" (if not given: "")

`unreviewed = true` marks an entry that was read from the data; `hedgerow schema review` takes the mark away, or its owner deletes the line.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from datetime import date
from typing import Any

from hedgerow.errors import SchemaError
from hedgerow.schema.attributes import Attribute, Categorical, Numeric, Target
from hedgerow.schema.csv_dialect import CSVDialect
from hedgerow.schema.dates import LEAST, MOST, text_of_day
from hedgerow.schema.schema import Schema

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DRAFT = [
    "# DRAFT: entries marked `unreviewed` were read from the data. Until they are reviewed, no",
    "# differential privacy can be claimed for what is trained with this schema.",
    "#",
    "# You may add, at the top:      rows = 12960            a PUBLIC number of rows",
    '# to a categorical attribute:   other = "other"         a branch for values that are not listed',
    '# to any attribute:             missing = "unknown"     a branch for missing values',
    "# to a numeric attribute:       edges = [0, 18, 65, 120]  cells of your own, for skewed numbers",
]
_MARK = "unreviewed = true   # read from the data: check against public knowledge, then `hedgerow schema review`"
_TOP = ("rows", "unreviewed_rows", "person", "rows_per_person")  # what may stand at the top
_FIELDS = {
    "categorical": ({"values"}, {"other", "missing", "taxonomy"}),
    "numeric": ({"low", "high"}, {"edges", "missing", "taxonomy", "date", "integer"}),
}


def to_plain(schema: Schema) -> dict[str, Any]:
    """The schema as dictionaries, lists, text and numbers; `from_plain(to_plain(schema)) == schema`."""
    plain: dict[str, Any] = {}
    if schema.rows is not None:
        plain["rows"] = schema.rows
        plain |= {"unreviewed_rows": True} if schema.unreviewed_rows else {}
    if schema.person is not None:
        plain |= {"person": schema.person, "rows_per_person": schema.k}
    plain["target"] = {"name": schema.target.name, "classes": list(schema.target.classes)}
    plain["target"] |= {"unreviewed": True} if schema.target.unreviewed else {}
    plain["attributes"] = {attribute.name: _plain_attribute(attribute) for attribute in schema.attributes}
    return plain


def _plain_attribute(attribute: Attribute) -> dict[str, Any]:
    entry: dict[str, Any]
    if isinstance(attribute, Categorical):
        entry = {"kind": "categorical", "values": list(attribute.values), "other": attribute.other}
    else:
        entry = {"kind": "numeric", "date": attribute.date, "low": attribute.low, "high": attribute.high}
        entry["edges"] = None if attribute.edges is None else list(attribute.edges)
        entry["integer"] = attribute.integer or None
    entry |= {"missing": attribute.missing, "unreviewed": attribute.unreviewed or None}
    if isinstance(attribute, Categorical) and attribute.taxonomy is not None:
        entry["taxonomy"] = dict(attribute.taxonomy)
    elif isinstance(attribute, Numeric) and attribute.taxonomy is not None:
        entry["taxonomy"] = [list(level) for level in attribute.taxonomy]
    return {key: value for key, value in entry.items() if value is not None}


def write(schema: Schema) -> str:
    """The schema as TOML text; `read(write(schema)) == schema`."""
    lines = ["# Public facts about a table: nothing in this file may be known only from its private rows."]
    lines += _DRAFT if schema.unreviewed else []
    plain = to_plain(schema)
    lines += ["", *(_line(key, plain[key]) for key in _TOP if key in plain)]
    lines += ["", "[target]", *(_line(key, value) for key, value in plain["target"].items())]
    for name, entry in plain["attributes"].items():
        entry = _with_dates(entry)
        tree = entry.pop("taxonomy") if isinstance(entry.get("taxonomy"), dict) else None  # a table of its own, so after the rest
        lines += ["", f"[attributes.{_key(name)}]", *(_line(key, value) for key, value in entry.items())]
        if tree is not None:
            lines += [f"[attributes.{_key(name)}.taxonomy]", *(f"{_key(child)} = {_value(parent)}" for child, parent in tree.items())]
    if schema.csv is not None and schema.csv.to_plain():
        lines += ["", "[csv]", *(_line(key, value) for key, value in schema.csv.to_plain().items())]
    lines += ["", *(f"# {_one_line(note)}" for note in schema.notes)] if schema.notes else []
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _one_line(note: str) -> str:
    return "".join(character if character.isprintable() else " " for character in note)


def _with_dates(entry: dict[str, Any]) -> dict[str, Any]:
    """Bounds and edges of dates as dates, where they are whole days."""
    if "date" not in entry:
        return entry
    return {key: _dated(value) if key in ("low", "high", "edges", "taxonomy") else value for key, value in entry.items()}


def _dated(value: Any) -> Any:
    if isinstance(value, list):
        return [_dated(each) for each in value]
    return date.fromisoformat(text_of_day(value)) if value.is_integer() and LEAST <= value <= MOST else value


def same_columns(one: Schema, other: Schema) -> bool:
    """Whether they declare the same but for the number of rows and how files are written, which each says of a table of its own."""
    return write(replace(one, rows=None, csv=None, notes=())) == write(replace(other, rows=None, csv=None, notes=()))


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _value(name)


def _line(key: str, value: Any) -> str:
    if key == "unreviewed":
        return _MARK
    if key == "edges":
        return f"edges = {_numbers(value)}"
    if key == "taxonomy":
        return f"taxonomy = [{', '.join(map(_numbers, value))}]"
    return f"{key} = {_number(value) if key in ('low', 'high') else _value(value)}"


def _value(value: Any) -> str:
    """One TOML value. A JSON string is a TOML basic string once DEL is escaped too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)


def _number(value: float | date) -> str:
    """A bound as a person writes it: 120, not 120.0."""
    if isinstance(value, date):
        return value.isoformat()
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _numbers(values: list[float | date]) -> str:
    return f"[{', '.join(map(_number, values))}]"


def read(text: str, source: str = "schema") -> Schema:
    """Parse TOML text; errors name the file, the entry and what was expected there."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SchemaError(_no_schema(text, source) or f"{source} is not valid TOML: {error}.") from error
    dialect = document.pop("csv", None)
    try:
        csv = None if dialect is None else CSVDialect.of_plain(dialect)
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from error
    return replace(from_plain(document, source), csv=csv)


def _no_schema(text: str, source: str) -> str:
    """Of a file that is something else: what it says that it is. Of a table no value is repeated."""
    expected = "expected a schema, as `hedgerow schema draft data.csv --target NAME -o schema.toml` writes a first one."
    if source.lower().endswith((".csv", ".tsv", ".txt")):
        return f"{source} is no schema: by its name it is a table; {expected}"
    try:
        format_ = json.loads(text)["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f"{source} is no schema: it says that it is a {format_!r}; {expected}" if str(format_).startswith("hedgerow-") else ""


def from_plain(document: Any, source: str = "schema") -> Schema:
    """The schema that dictionaries describe, every part of them checked."""
    _check_keys(document, {"target", "attributes"}, set(_TOP), source)
    target = document["target"]
    _check_keys(target, {"name", "classes"}, {"unreviewed"}, f"{source}, [target]")
    if not isinstance(document["attributes"], dict):
        raise SchemaError(f"{source}: [attributes] must hold one table for each attribute, as [attributes.age].")
    try:
        attributes = [_attribute(name, entry, source) for name, entry in document["attributes"].items()]
        return Schema(
            attributes,
            Target(target["name"], target["classes"], unreviewed=_flag(target, "unreviewed", source)),
            document.get("rows"),
            unreviewed_rows=_flag(document, "unreviewed_rows", source),
            person=document.get("person"),
            rows_per_person=document.get("rows_per_person"),
        )
    except (SchemaError, TypeError, OverflowError) as error:
        raise SchemaError(f"{source}: {error}") from error


def _attribute(name: str, entry: Any, source: str) -> Attribute:
    where = f"[attributes.{name}]"
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise SchemaError(f'{where} kind: got {kind!r}; expected "categorical" or "numeric".')
    required, optional = _FIELDS[kind]
    if "edges" in entry:  # their ends are the bounds
        required, optional = required - {"low", "high"}, optional | {"low", "high"}
    _check_keys(entry, {"kind", *required}, {"unreviewed", *optional}, where)
    fields = {key: value for key, value in entry.items() if key not in ("kind", "unreviewed")}
    unreviewed = _flag(entry, "unreviewed", source)
    if kind == "categorical":
        return Categorical(name, unreviewed=unreviewed, **fields)
    return Numeric(name, unreviewed=unreviewed, **fields)


def _flag(table: dict[str, Any], key: str, source: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise SchemaError(f"{key}: got {value!r}; expected true or false.")
    return value


def _check_keys(table: Any, required: set[str], optional: set[str], where: str) -> None:
    if not isinstance(table, dict):
        raise SchemaError(f"{where}: got {table!r}; expected a table.")
    missing = sorted(required - table.keys())
    if missing:
        raise SchemaError(f"{where}: the key(s) {', '.join(missing)} are missing.")
    unknown = sorted(table.keys() - required - optional)
    if unknown:
        known = ", ".join(sorted(required | optional))
        raise SchemaError(f"{where}: unknown key(s) {', '.join(unknown)}; expected only {known}.")
