"""What an algorithm must be able to do to be trained: one object of these kinds for each, found in the table of algorithms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hedgerow.private_table import PrivateTable
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.training.recipe import Recipe
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan

if TYPE_CHECKING:
    from hedgerow.engines.engine import Engine


class PrivateMethod(ABC):
    """Plans from public facts, and grows through a private table, which charges every look."""

    vote = ""

    def vote_of(self, recipe: Recipe) -> str:
        """How the trees decide together."""
        return self.vote

    def check_elsewhere(self, recipe: Recipe) -> None:  # noqa: B027 (most have nothing to refuse)
        """Refuse what the holder of the rows does not answer."""

    @abstractmethod
    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        """What `grow` would build for a table of that many rows (`public`: a declared number), for this much ε."""

    @abstractmethod
    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown: ...


class MergeableMethod(PrivateMethod):
    """Of forests whose counts may be added up over tables: they can be updated, shared and merged."""

    @abstractmethod
    def shape(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        """How many trees a plan would have, and of which height where that is known beforehand: cheap to compute."""

    def first_batch(self, recipe: Recipe) -> Recipe:
        """What is trained on the first of several batches: by default what a fit would be."""
        return recipe

    def check_shared(self, recipe: Recipe, what: str) -> None:
        """Refuse what could not be added up later."""

    def shared_plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None) -> Plan:
        """What owners count: by default what a fit would, for that public number of rows."""
        return self.plan(recipe, codebook, epsilon, rows, rows is not None)

    chosen_before: tuple[dict[str, Any], ...] = ()  # what those of earlier versions say

    def chosen(self, plan: Plan) -> dict[str, Any]:
        """What the releases of a shared plan say that was chosen."""
        return plan.chosen or {"height": plan.height}


class ExactMethod(ABC):
    """Plans, and trains from exact counts: no privacy at all, and its release says so."""

    @abstractmethod
    def plan(self, recipe: Recipe, codebook: Codebook, rows: int | None) -> Plan: ...

    @abstractmethod
    def train(self, recipe: Recipe, engine: Engine) -> Release: ...
