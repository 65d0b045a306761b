"""Our own forest: how its stages are planned, with and without a δ, and what several owners count of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import exact_delta
from hedgerow.accounting.noise import noise_of
from hedgerow.accounting.shared_gaussian import counts_price
from hedgerow.errors import PlanError
from hedgerow.growers import hedgerow
from hedgerow.growers.sizes import Settings
from hedgerow.inference.additive import COUNTED_RULES, FLAT, LACKING_RULES, WHOLE_RULES, strength_of_counts
from hedgerow.inference.cells import fewer
from hedgerow.inference.layout import cells_of, grouped_layout
from hedgerow.inference.vote import ADDITIVE
from hedgerow.private_table import PrivateTable
from hedgerow.queries import LeafCounts
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import whole
from hedgerow.training.method import MergeableMethod
from hedgerow.training.recipe import Recipe, generator
from hedgerow.trees.forest import CountedForest, Grown
from hedgerow.trees.plan import ADDED_UP, Plan

COUNTED = 32  # cells of a number where tables are added up


class HedgerowForest(MergeableMethod):
    vote = ADDITIVE
    chosen_before = tuple({"reading": FLAT, "strength": 1.0, "rules": rules} for rules in (WHOLE_RULES, LACKING_RULES))

    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        if recipe.tables > 1:
            return self.shared_plan(recipe, codebook, epsilon, rows)
        return hedgerow.plan(codebook, _settings(recipe), epsilon, exact_delta(recipe.delta), rows, public)

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        if recipe.tables > 1:  # the first of several batches: what a boosted tree holds could not be added up
            assert plan.epsilon is not None
            counts, noise = table.ask(LeafCounts(plan.trees), plan.epsilon), noise_of(plan.events[0])
            return Grown(CountedForest(table.codebook, plan.trees, tuple(counts), (noise,)), {}, self.chosen(plan))
        return hedgerow.grow(table, plan, generator(recipe.random_state))

    # ------------------------------------------------------------ several tables

    def shape(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        return len(codebook.sizes), 1

    def shared_plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None) -> Plan:
        """The one-way tables of all attributes, which add up: nothing in it is chosen or drawn, and it needs no number of rows."""
        sizes = codebook.sizes
        cells = cells_of(codebook)
        flat = grouped_layout(codebook, {j: _counted(size, cells[j]) for j, size in enumerate(sizes)})
        delta = exact_delta(recipe.delta)
        event = LeafCounts.cost(counts_price(epsilon, delta), codebook.schema.k, len(sizes))
        source = "a public number: nothing depends on it"
        words = {"measured": f"all {len(sizes)} attributes", "reading": ADDED_UP}
        return Plan(
            hedgerow.ALGORITHM, epsilon, rows, source, codebook.n_classes, (event,), flat.trees, True, Settings(), recipe.tables,
            words, delta, shared=True,
        )  # fmt: skip

    def chosen(self, plan: Plan) -> dict[str, Any]:
        return {"reading": FLAT, "strength": strength_of_counts(len(plan.trees)), "rules": COUNTED_RULES}

    def first_batch(self, recipe: Recipe) -> Recipe:
        return recipe.changed(tables=2)

    def check_shared(self, recipe: Recipe, what: str) -> None:
        if exact_delta(recipe.delta):
            raise PlanError(
                f"{what}: delta is {recipe.delta!r}, and batches that are added later are paid in pure ε: the boosted trees that δ pays "
                "for belong to the rows that they were measured on. Nothing was spent. Set delta=0 (leave --delta out), fit all rows "
                "at once, or count in a plan (`hedgerow plan --delta … --save`)."
            )


def _counted(size: int, cells: int) -> NDArray[np.int64]:
    """The branch of every code where tables are added up: neighbouring cells of a number together, and no more than COUNTED of them."""
    own = fewer(np.arange(cells), COUNTED) if cells else np.empty(0, dtype=np.int64)
    return np.concatenate([own, (own[-1] + 1 if cells else 0) + np.arange(size - cells)]).astype(np.int64)


def _settings(recipe: Recipe) -> Settings:
    most = recipe.settings.get("max_passes")
    if most is not None and whole("max_passes", most) < 5:
        raise PlanError(f"max_passes: got {most!r}; expected a whole number of at least 5, or None.")
    return Settings(most)


METHOD = HedgerowForest()
