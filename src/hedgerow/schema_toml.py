"""The schema as a TOML file that a person reads, reviews and edits.

    rows = 12960                       # optional: a PUBLIC number of rows

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
    edges = [0, 18, 40, 65, 120]       # optional: fixed cells

`unreviewed = true` marks an entry that was read from the data; its owner deletes the line after review.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from hedgerow.errors import SchemaError
from hedgerow.schema import Attribute, Categorical, Numeric, Schema, Target

_BARE_KEY = re.compile(r"^[A-Za-z0-9_-]+$")
_MARK = "unreviewed = true   # read from the data: check against public knowledge, then delete this line"
_FIELDS = {
    "categorical": ({"values"}, {"other", "missing"}),
    "numeric": ({"low", "high"}, {"edges", "missing"}),
}


def write(schema: Schema) -> str:
    """The schema as TOML text; `read(write(schema)) == schema`."""
    lines = ["# Public facts about a table: nothing in this file may be known only from its private rows.", ""]
    if schema.unreviewed:
        lines[1:1] = [
            "# DRAFT: entries marked `unreviewed` were read from the data. Until they are reviewed, no",
            "# differential privacy can be claimed for what is trained with this schema.",
            "#",
            "# You may add, at the top:      rows = 12960            a PUBLIC number of rows",
            "# to a categorical attribute:   other = \"other\"         a branch for values that are not listed",
            "# to any attribute:             missing = \"unknown\"     a branch for missing values",
            "# to a numeric attribute:       edges = [0, 18, 65, 120]  cells of your own, for skewed numbers",
        ]
    if schema.rows is not None:
        lines += [f"rows = {schema.rows}"]
        lines += ["unreviewed_rows = true   # read from the data"] if schema.unreviewed_rows else []
        lines += [""]
    lines += ["[target]", f"name = {_value(schema.target.name)}", f"classes = {_value(list(schema.target.classes))}"]
    lines += [_MARK] if schema.target.unreviewed else []
    for attribute in schema.attributes:
        key = attribute.name if _BARE_KEY.match(attribute.name) else _value(attribute.name)
        lines += ["", f"[attributes.{key}]", *_attribute_lines(attribute)]
        lines += [_MARK] if attribute.unreviewed else []
    return "\n".join(lines) + "\n"


def _attribute_lines(attribute: Attribute) -> list[str]:
    if isinstance(attribute, Categorical):
        lines = ['kind = "categorical"', f"values = {_value(list(attribute.values))}"]
        lines += [f"other = {_value(attribute.other)}"] if attribute.other is not None else []
    else:
        lines = ['kind = "numeric"', f"low = {_number(attribute.low)}", f"high = {_number(attribute.high)}"]
        lines += [f"edges = [{', '.join(map(_number, attribute.edges))}]"] if attribute.edges is not None else []
    lines += [f"missing = {_value(attribute.missing)}"] if attribute.missing is not None else []
    return lines


def _value(value: Any) -> str:
    """One TOML value. A JSON string is a TOML basic string once DEL is escaped too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)


def _number(value: float) -> str:
    """A bound as a person writes it: 120, not 120.0."""
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def read(text: str, source: str = "schema") -> Schema:
    """Parse TOML text; errors name the file, the entry and what was expected there."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{source} is not valid TOML: {error}.") from error
    _check_keys(document, {"target", "attributes"}, {"rows", "unreviewed_rows"}, source)
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
        )
    except (SchemaError, TypeError) as error:
        raise SchemaError(f"{source}: {error}") from error


def _attribute(name: str, entry: Any, source: str) -> Attribute:
    where = f"[attributes.{name}]"
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise SchemaError(f'{where} kind: got {kind!r}; expected "categorical" or "numeric".')
    required, optional = _FIELDS[kind]
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
