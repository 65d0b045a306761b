"""The signal-to-noise forest: Fletcher & Islam 2015 (DP-RF)."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.growers import snr
from hedgerow.inference.vote import MOST_CONFIDENT
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import one_of, whole
from hedgerow.training.method import MergeableMethod
from hedgerow.training.recipe import Recipe, generator
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan


class SNRForest(MergeableMethod):
    vote = MOST_CONFIDENT

    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        return snr.plan(codebook, _settings(recipe), epsilon, rows, public, generator(recipe.random_state))

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        return snr.grow(table, plan, generator(recipe.random_state))

    def shape(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        return 0 if rows is None else snr.number_of_trees(codebook, rows, epsilon, _settings(recipe)), None


def _settings(recipe: Recipe) -> snr.Settings:
    noise_rule = one_of("noise_rule", recipe.settings["noise_rule"], ("paper", "tight"))
    stopping_rule = one_of("stopping_rule", recipe.settings["stopping_rule"], ("ours", "literal"))
    return snr.Settings(noise_rule, whole("max_leaves", recipe.settings["max_leaves"]), recipe.tables, stopping_rule)


METHOD = SNRForest()
