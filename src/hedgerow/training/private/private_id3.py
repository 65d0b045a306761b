"""ID3 from noisy attribute-by-class tables: Jagannathan et al. 2012, section 4."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.growers import id3
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.training.checks import depth_or_none
from hedgerow.training.method import PrivateMethod
from hedgerow.training.recipe import Recipe, generator
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan


class PrivateID3(PrivateMethod):
    vote = SUMMED_COUNTS

    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        return id3.plan(codebook, id3.Settings(depth_or_none(recipe.settings)), epsilon)

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        return id3.grow(table, plan, generator(recipe.random_state))


METHOD = PrivateID3()
