"""Our own forest: how its stages are planned, with and without a δ, and what several owners count of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_delta
from hedgerow.errors import PlanError
from hedgerow.growers import hedgerow
from hedgerow.growers.budget_shares import gaussian_pays
from hedgerow.inference.additive import FLAT, RULES
from hedgerow.inference.layout import Layout
from hedgerow.inference.vote import ADDITIVE
from hedgerow.private_table import PrivateTable
from hedgerow.queries import LeafCounts
from hedgerow.schema.codebook import Codebook
from hedgerow.training.method import MergeableMethod
from hedgerow.training.recipe import Recipe
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan
from hedgerow.trees.tree import TreeBuilder


class HedgerowForest(MergeableMethod):
    vote = ADDITIVE

    def used_delta(self, codebook: Codebook, epsilon: Fraction, delta: Fraction) -> Fraction:
        """δ, or 0 where it would not help: decided by public facts."""
        return delta if gaussian_pays(len(codebook.sizes), epsilon, delta) else Fraction(0)

    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        if recipe.tables > 1:
            self.check_shared(recipe, "plan of several tables")
            return self.shared_plan(recipe, codebook, epsilon, rows)
        asked = exact_delta(recipe.delta)
        delta = self.used_delta(codebook, epsilon, asked)
        plan = hedgerow.plan(codebook, hedgerow.Settings(), epsilon, delta, rows, public)
        if delta or not asked:
            return plan
        return replace(plan, chosen={**plan.chosen, "δ": f"not used: on {len(codebook.sizes)} attributes Laplace noise is the smaller"})

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        return hedgerow.grow(table, plan)

    # ------------------------------------------------------------ several tables

    def shape(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        return len(codebook.sizes), 1

    def shared_plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None) -> Plan:
        """The one-way tables of all attributes, which add up: nothing in it is chosen or drawn, and it needs no number of rows."""
        sizes = codebook.sizes
        flat = Layout(TreeBuilder(sizes).build(), False, tuple(range(len(sizes))))
        event = LeafCounts.cost(epsilon, codebook.schema.k, len(sizes))
        source = "a public number: nothing depends on it"
        words = {"measured": f"all {len(sizes)} attributes", "reading": "the plain one: nothing is chosen where tables are added up"}
        return Plan(
            hedgerow.ALGORITHM, epsilon, rows, source, codebook.n_classes, (event,), flat.trees, True, hedgerow.Settings(), recipe.tables,
            words,
        )  # fmt: skip

    def chosen(self, plan: Plan) -> dict[str, Any]:
        return {"reading": FLAT, "strength": 1.0, "rules": RULES}

    def check_shared(self, recipe: Recipe, what: str) -> None:
        if exact_delta(recipe.delta):
            raise PlanError(
                f"{what}: delta is {recipe.delta!r}, and counts that are added up later are paid in pure ε: the gradient steps that δ pays "
                "for belong to the rows that they were measured on. Nothing was spent. Set delta=0 (leave --delta out), or fit all rows at "
                "once."
            )


METHOD = HedgerowForest()
