"""What is to be trained: an algorithm with its settings and its price. Public facts; no rows, no budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.settings import whole
from hedgerow.training.algorithms import ALGORITHMS, Algorithm


@dataclass(frozen=True)
class Recipe:
    """settings: the algorithm's own, as they were given; they are checked when something is planned.

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

    def codebook(self, schema: Schema) -> Codebook:
        return Codebook(schema, whole("bins", self.bins))

    def changed(self, **changes: Any) -> Recipe:
        return replace(self, **changes)

    def with_settings(self, settings: Mapping[str, Any]) -> Recipe:
        return replace(self, settings={**self.settings, **settings})


def generator(random_state: Any) -> np.random.Generator:
    """Public randomness for the structure. Noise never comes from here."""
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    return np.random.default_rng(random_state)
