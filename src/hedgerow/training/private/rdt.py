"""Private random decision trees: Jagannathan et al. 2012."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.growers import rdt
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.training.checks import rdt_settings
from hedgerow.training.method import MergeableMethod
from hedgerow.training.recipe import Recipe, generator
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan


class PrivateRDT(MergeableMethod):
    vote = SUMMED_COUNTS

    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        return rdt.plan(codebook, rdt_settings(recipe.settings), epsilon, rows, public, generator(recipe.random_state))

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        return rdt.grow(table, plan, generator(recipe.random_state))

    def shape(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        settings, k = rdt_settings(recipe.settings), len(codebook.sizes)
        if settings.max_depth is not None:
            return settings.n_estimators, min(settings.max_depth, k)
        return settings.n_estimators, None if rows is None else rdt.height_rule(rdt.branches(codebook, settings), rows)


METHOD = PrivateRDT()
