"""PrivateTable: the verbs, and nothing else, through which a grower sees rows.

Every verb makes its event, charges it, and only then looks. Each has its theorem in PROOF.md under the label in its code.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.meter import Reservation
from hedgerow.encoding import Codebook
from hedgerow.errors import PlanError
from hedgerow.private.coins import SYSTEM, Coins
from hedgerow.private.mechanisms import add_noise, counting_event, sampler_named
from hedgerow.rows.engine import Engine, Predictor
from hedgerow.tree import Tree


class PrivateTable:
    """Rows behind a reservation: an answer is noisy, and paid for before the rows are looked at."""

    __slots__ = ("_coins", "_engine", "_meter", "_sampler", "codebook", "sampler")

    def __init__(
        self, engine: Engine, meter: Reservation, coins: Coins = SYSTEM, sampler: str = "hedgerow"
    ) -> None:
        self._sampler = sampler_named(sampler, coins)
        self._engine = engine
        self._meter = meter
        self._coins = coins
        self.codebook: Codebook = engine.codebook
        self.sampler = f"{sampler}, {coins.name}"

    def rows(self, epsilon: Fraction) -> int:
        """Noisy number of rows."""
        event = counting_event("rows", epsilon)
        self._meter.charge(event)
        exact = np.array([self._engine.count_rows()], dtype=np.int64)  # [V1]
        return int(add_noise(exact, event, self._coins, self._sampler)[0])

    def leaf_counts(self, trees: Sequence[Tree], epsilon: Fraction) -> list[NDArray[np.int64]]:
        """Noisy class counts in every leaf of every tree. The trees share ε; the leaves of one tree are disjoint."""
        trees = list(trees)
        if not trees:
            raise PlanError("leaf_counts: got no trees; expected at least one.")
        for tree in trees:
            if tree.sizes != self.codebook.sizes or not tree.is_antichain(tree.leaves):
                raise PlanError("leaf_counts: a tree was made for another schema, or its leaves are not disjoint.")
        event = counting_event("leaf_counts", epsilon, queries=len(trees))
        self._meter.charge(event)
        exact = self._engine.leaf_counts(trees)  # [V2]
        return [add_noise(counts, event, self._coins, self._sampler) for counts in exact]

    def confusion(self, predict: Predictor, epsilon: Fraction) -> NDArray[np.int64]:
        """Noisy counts of (true class, predicted class); the last row is for rows that have no declared class."""
        event = counting_event("confusion", epsilon)
        self._meter.charge(event)
        exact = self._engine.confusion(predict)  # [V3]
        return add_noise(exact, event, self._coins, self._sampler)

    def __repr__(self) -> str:
        return f"PrivateTable({', '.join(self.codebook.schema.names)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivateTable cannot be pickled or copied: its rows stay where they are.")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()
