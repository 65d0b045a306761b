"""Settings that a user gives, checked: one message for each kind of mistake."""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any

from hedgerow.errors import PlanError

DEFAULT_MAX_LEAVES = 2_000_000  # of a forest: with more it is refused before anything is spent


def whole(name: str, value: Any, least: int = 1) -> int:
    if type(value).__name__ in ("bool", "bool_") or not hasattr(value, "__index__") or int(value) < least:
        raise PlanError(f"{name}: got {value!r}; expected a whole number of at least {least}.")
    return int(value)


def one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise PlanError(f"{name}: got {value!r}; expected one of {', '.join(map(repr, known))}.")
    return str(value)


def yes_or_no(name: str, value: Any) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):
        raise PlanError(f"{name}: got {value!r}; expected True or False.")
    return bool(value)


def later(default: Any) -> Any:
    """A field of settings that came after releases were published: one that does not use it says nothing of it, and keeps its bytes."""
    return field(default=default, metadata={"later": True})


def stated(settings: Any) -> dict[str, Any]:
    """Settings as a release states them."""

    def unused(each: Field[Any], value: Any) -> bool:
        return "later" in each.metadata and value == each.default

    values = [(each, getattr(settings, each.name)) for each in fields(settings)]
    return {each.name: value for each, value in values if not unused(each, value)}
