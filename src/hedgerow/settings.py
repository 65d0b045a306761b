"""Settings that a user gives, checked: one message for each kind of mistake."""

from __future__ import annotations

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
