"""Parameters of which a few are enough to see that a check works: the others are marked slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(quick: Any, values: Iterable[Any]) -> list[Any]:
    """All values; those that are not `quick` are slow. quick: how many of the first, or a list of values or of their names."""
    values = list(values)
    kept = values[:quick] if isinstance(quick, int) else [v for v in values if v in quick or getattr(v, "name", None) in quick]
    assert kept
    return [value if value in kept else pytest.param(value, marks=pytest.mark.slow) for value in values]
