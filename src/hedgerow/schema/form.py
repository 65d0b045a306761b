"""A schema as the fields of a form, and back: what a person edits on a page. Text in, text out; every check is the schema's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from hedgerow.errors import SchemaError
from hedgerow.schema.attributes import Categorical, Numeric, text_of
from hedgerow.schema.dates import text_of_day
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import from_plain, to_plain

ON = "on"  # what a browser sends for a box that is ticked


def fields_of(schema: Schema) -> dict[str, str]:
    """The form of a schema: `0.low`, `0.public`, … for the first attribute, `target.classes`, `rows`, `person`."""
    fields = {"rows": _text(schema.rows), "person": schema.person or "", "rows_per_person": _text(schema.rows_per_person)}
    fields |= {"target.classes": _lines(schema.target.classes)} | _box("target.public", not schema.target.unreviewed)
    fields |= _box("rows.public", not schema.unreviewed_rows)
    for place, each in enumerate(schema.attributes):
        fields |= {f"{place}.missing": each.missing or ""} | _box(f"{place}.public", not each.unreviewed)
        if isinstance(each, Categorical):
            fields |= {f"{place}.values": _lines(each.values), f"{place}.other": each.other or ""}
        else:
            fields |= {f"{place}.{name}": _bound(each, getattr(each, name)) for name in ("low", "high")}
            fields[f"{place}.edges"] = ", ".join(_bound(each, edge) for edge in each.edges or ())
    return fields


def schema_of(fields: Mapping[str, str], before: Schema, source: str) -> Schema:
    """The schema that a form says, made of the one that it was made from: names, kinds, dates and taxonomies stay."""
    plain = to_plain(before)
    for name in ("rows", "person", "rows_per_person"):
        plain.pop(name, None)
        if text := fields.get(name, "").strip():
            plain[name] = text if name == "person" else _whole(text, name)
    plain.pop("unreviewed_rows", None)
    plain |= {"unreviewed_rows": True} if "rows" in plain and fields.get("rows.public") != ON else {}
    plain["target"] = {"name": before.target.name, "classes": _values(fields, "target.classes", before.target.classes)}
    plain["target"] |= _mark(fields, "target")
    plain["attributes"] = {
        each.name: _entry(fields, str(place), each, plain["attributes"][each.name])
        for place, each in enumerate(before.attributes)
        if fields.get(f"{place}.leave_out") != ON
    }
    return replace(from_plain(plain, source), csv=before.csv)


def _entry(fields: Mapping[str, str], place: str, each: Categorical | Numeric, plain: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {name: plain[name] for name in ("kind", "date", "integer", "taxonomy") if name in plain}
    entry |= {name: text for name in ("other", "missing") if (text := fields.get(f"{place}.{name}", "").strip())} | _mark(fields, place)
    if isinstance(each, Categorical):
        return entry | {"values": _values(fields, f"{place}.values", each.values)}
    edges = [part.strip() for part in fields.get(f"{place}.edges", "").split(",") if part.strip()]
    if edges:  # their ends are the bounds
        return entry | {"edges": [_number(each, part, "edges") for part in edges]}
    return entry | {name: _number(each, fields.get(f"{place}.{name}", ""), name) for name in ("low", "high")}


def _mark(fields: Mapping[str, str], entry: str) -> dict[str, bool]:
    return {} if fields.get(f"{entry}.public") == ON else {"unreviewed": True}


def _box(name: str, ticked: bool) -> dict[str, str]:
    return {name: ON} if ticked else {}


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _lines(values: Sequence[Any]) -> str:
    """One value in a line; what would not come back from a line as it is stands in quotes, as in JSON."""
    return "\n".join(_line(text_of(value)) for value in values)


def _line(text: str) -> str:
    as_it_is = text.splitlines() == [text] and text.strip() == text and not text.startswith('"')
    return text if as_it_is else json.dumps(text)


def _values(fields: Mapping[str, str], name: str, before: Sequence[Any]) -> list[Any]:
    """Values that were there keep their types: 1 stays a number."""
    known, found = {text_of(value): value for value in before}, []
    for line in fields.get(name, "").splitlines():
        text = line.strip()
        if text.startswith('"'):
            try:
                text = str(json.loads(text))
            except ValueError:
                raise SchemaError(f"{name}: got {text!r}; expected a value in quotes as in JSON, or one without quotes.") from None
        if text:
            found.append(known.get(text_of(text), text))
    return found


def _bound(each: Numeric, value: float) -> str:
    if each.date is not None and float(value).is_integer():
        return text_of_day(value)
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _number(each: Numeric, text: str, what: str) -> float | date:
    text = text.strip()
    try:
        return date.fromisoformat(text) if each.date is not None and "-" in text.lstrip("-") else float(text)
    except ValueError:
        kind = "a date such as 2015-01-31" if each.date is not None else "a number"
        raise SchemaError(f"{each.name!r}, {what}: got {text!r}; expected {kind}.") from None


def _whole(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SchemaError(f"{what}: got {text!r}; expected a whole number, or nothing.") from None
