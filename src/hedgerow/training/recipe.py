"""What is to be trained: an algorithm with its settings and its price. Public facts; no rows, no budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.errors import PlanError, SchemaError
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.schema.value_edges import VALUES
from hedgerow.settings import whole
from hedgerow.training.algorithms import ALGORITHMS, Algorithm


@dataclass(frozen=True)
class Recipe:
    """settings: the algorithm's own, as they were given; they are checked when something is planned.

    bins:         equal-width cells of a numeric attribute without declared edges, or VALUES

    random_state: seeds the public structure only. Noise never comes from it.
    tables:       how many tables will be counted and added up, each with noise of its own
    """

    algorithm: Algorithm
    settings: Mapping[str, Any]
    bins: Any
    epsilon: Any = None
    delta: Any = 0
    random_state: Any = None
    tables: int = 1

    @classmethod
    def of(cls, name: str, epsilon: Any = None, *, delta: Any = 0, bins: Any = None, random_state: Any = None, **settings: Any) -> Recipe:
        """By the algorithm's name; what is not given is its default."""
        if name not in ALGORITHMS:
            raise PlanError(f"algorithm: got {name!r}; expected one of {', '.join(ALGORITHMS)}.")
        algorithm = ALGORITHMS[name]
        strange = [setting for setting in settings if setting not in algorithm.defaults]
        if strange:
            raise PlanError(f"{', '.join(strange)}: the algorithm {name} has no such setting. Leave it out.")
        own = {**algorithm.defaults, **settings}
        return cls(algorithm, own, algorithm.bins if bins is None else bins, epsilon, delta, random_state)

    @property
    def at_values(self) -> bool:
        return isinstance(self.bins, str) and self.bins == VALUES

    def codebook(self, schema: Schema) -> Codebook:
        """From public facts alone. With cells between values, those are not known yet, and a number without edges has one cell."""
        if self.at_values and not self.algorithm.at_values:
            known = ", ".join(name for name, each in ALGORITHMS.items() if each.at_values)
            raise PlanError(
                f"bins: got {VALUES!r}; cells that follow the rows are for {known} alone, which has no privacy. Expected a whole number."
            )
        if self.algorithm.at_values and isinstance(self.bins, str) and not self.at_values:
            raise PlanError(f"bins: got {self.bins!r}; expected a whole number of at least 1, or {VALUES!r}.")
        if self.algorithm.private and len(schema.target.classes) < 2:
            raise SchemaError(
                f"schema: the target {schema.target.name!r} has one class alone, {schema.target.classes[0]!r}, so there is nothing to "
                "learn. Nothing was spent. Declare the classes that rows may have, whether or not this table holds them."
            )
        return Codebook(schema, 1 if self.at_values else whole("bins", self.bins))

    def changed(self, **changes: Any) -> Recipe:
        return replace(self, **changes)

    def with_settings(self, settings: Mapping[str, Any]) -> Recipe:
        return replace(self, settings={**self.settings, **settings})


def check_random_state(random_state: Any) -> None:
    if isinstance(random_state, (np.random.RandomState, np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)):
        return
    try:
        np.random.SeedSequence(random_state)
    except (TypeError, ValueError):
        raise PlanError(
            f"random_state: got {random_state!r:.60}; expected None, or a whole number of at least 0. Nothing was spent."
        ) from None


def generator(random_state: Any) -> np.random.Generator:
    """Public randomness for the structure. Noise never comes from here."""
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    return np.random.default_rng(random_state)
