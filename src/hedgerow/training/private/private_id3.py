"""ID3 from noisy attribute-by-class tables: Jagannathan et al. 2012, section 4."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.errors import PlanError
from hedgerow.growers import id3, id3_published
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.training.checks import id3_settings
from hedgerow.training.method import PrivateMethod
from hedgerow.training.recipe import Recipe, generator
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan


class PrivateID3(PrivateMethod):
    vote = SUMMED_COUNTS

    def check_elsewhere(self, recipe: Recipe) -> None:
        if id3_settings(recipe.settings).as_published:
            raise PlanError("as_published: its ε is not proven, and it costs more than that: it is not answered from afar. Leave it out.")

    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        settings = id3_settings(recipe.settings)
        plan = id3_published.plan if settings.as_published else id3.plan
        return plan(codebook, settings, epsilon)

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        grow = id3_published.grow if plan.settings.as_published else id3.grow
        return grow(table, plan, generator(recipe.random_state))


METHOD = PrivateID3()
