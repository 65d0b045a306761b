"""The differentially private decision forest: Fletcher & Islam 2015 (DPDF)."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.errors import PlanError
from hedgerow.growers import dpdf
from hedgerow.inference.vote import MAJORITY, PRUNED_SUM, WEIGHTED
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import one_of, whole
from hedgerow.training.method import PrivateMethod
from hedgerow.training.recipe import Recipe, generator
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan

VOTES = {"confidence": WEIGHTED, "majority": MAJORITY, "sum": PRUNED_SUM}


class DPDF(PrivateMethod):
    def vote_of(self, recipe: Recipe) -> str:
        return VOTES[one_of("vote", recipe.settings["vote"], tuple(VOTES))]

    def check_elsewhere(self, recipe: Recipe) -> None:
        if recipe.settings["sensitivity"] == "local":
            raise PlanError('sensitivity: got "local", whose ε is not proven: its choices are not answered from afar. Use "global".')

    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        given = recipe.settings
        settings = dpdf.Settings(
            whole("n_estimators", given["n_estimators"]),
            whole("max_depth", given["max_depth"]),
            whole("min_rows", given["min_rows"]),
            one_of("sensitivity", given["sensitivity"], ("global", "local")),
        )
        self.vote_of(recipe)
        return dpdf.plan(codebook, settings, epsilon)

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        return dpdf.grow(table, plan, generator(recipe.random_state))


METHOD = DPDF()
