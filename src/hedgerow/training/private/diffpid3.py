"""One private tree with private choices of its questions: Friedman & Schuster 2010."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.errors import PlanError
from hedgerow.growers import diffpid3
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.private_table import PrivateTable
from hedgerow.queries.scores import MOST_ROWS
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import one_of, whole
from hedgerow.training.method import PrivateMethod
from hedgerow.training.recipe import Recipe, generator
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan


class DiffPID3(PrivateMethod):
    vote = SUMMED_COUNTS

    def plan(self, recipe: Recipe, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        most_rows = whole("most_rows", recipe.settings["most_rows"])
        if most_rows > MOST_ROWS:
            raise PlanError(f"most_rows: got {most_rows}; expected at most {MOST_ROWS}.")
        criterion = one_of("criterion", recipe.settings["criterion"], diffpid3.SCORES)
        settings = diffpid3.Settings(whole("max_depth", recipe.settings["max_depth"]), criterion, most_rows)
        return diffpid3.plan(codebook, settings, epsilon)

    def grow(self, recipe: Recipe, table: PrivateTable, plan: Plan) -> Grown:
        return diffpid3.grow(table, plan, generator(recipe.random_state))


METHOD = DiffPID3()
