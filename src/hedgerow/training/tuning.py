"""A private search among settings: which combinations there are, and what may be searched at all."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.errors import PlanError
from hedgerow.training.recipe import Recipe


def checked_search(recipe: Recipe, grid: Mapping[str, Sequence[Any]], share: Any, who: str) -> tuple[list[dict[str, Any]], Fraction]:
    """All combinations of a grid, and the share of ε that pays for the search; refused before anything is spent."""
    part = exact_epsilon(share, "share")
    if exact_delta(recipe.delta):
        raise PlanError("tune: a search is paid in pure ε. Set delta=0, or choose the settings yourself and call fit.")
    if not part < 1:
        raise PlanError(f"share: got {share!r}; expected a number between 0 and 1.")
    known = sorted(recipe.algorithm.defaults)
    strange = sorted(set(grid) - set(known))
    if strange:
        next_step = f"expected settings of the algorithm: {', '.join(known)}." if known else f"{who} has nothing to tune: use fit."
        raise PlanError(f"grid: {', '.join(strange)} cannot be tuned; {next_step}")
    search = combinations(grid)
    if len(search) < 2:
        raise PlanError("grid: got fewer than two combinations; expected a choice, such as {'max_depth': [3, 5]}.")
    return search, part


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """In the order of scikit-learn's ParameterGrid: names sorted, the last one changing fastest."""
    names = sorted(grid)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(list(grid[name]) for name in names))]
