"""Descriptions of algorithms and schemas for the pages."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.inference.text import plain
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.schema import Schema
from hedgerow.training.algorithms import PRIVATE

MANY = 12
ALGORITHMS = tuple((name, each.words) for name, each in PRIVATE.items())


def schema_lines(schema: Schema) -> list[tuple[str, str, str]]:
    """Column, what it is, and what it may hold: the one that is predicted comes first."""
    lines = [(schema.target.name, "predicted", listed(schema.target.classes))]
    for attribute in schema.attributes:
        if isinstance(attribute, Numeric):
            inside = f"from {attribute.bounds_text}"
            cells = "" if attribute.edges is None else f", in {len(attribute.edges) - 1} cells"
            lines.append((attribute.name, "a number" if attribute.date is None else "a date", inside + cells + _branch(attribute.missing)))
        else:
            rest = f"; anything else counts as “{plain(attribute.other)}”" if attribute.other else ""
            lines.append((attribute.name, "one of a list", listed(attribute.values) + rest + _branch(attribute.missing)))
    return lines


def _branch(missing: str | None) -> str:
    return f"; where it is missing: “{plain(missing)}”" if missing else ""


def listed(values: Sequence[object]) -> str:
    shown = ", ".join(plain(value) for value in values[:MANY])
    return shown if len(values) <= MANY else f"{shown} and {len(values) - MANY:,} more"
