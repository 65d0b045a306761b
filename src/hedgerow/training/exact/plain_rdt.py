"""Random decision trees without privacy, the baseline and upper bound."""

from __future__ import annotations

from dataclasses import asdict

from hedgerow.engines.engine import Engine
from hedgerow.engines.exact import ExactTable
from hedgerow.errors import PlanError
from hedgerow.growers import rdt
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.training.checks import rdt_settings
from hedgerow.training.method import ExactMethod
from hedgerow.training.recipe import Recipe, generator
from hedgerow.trees.plan import Plan


class PlainRDT(ExactMethod):
    def plan(self, recipe: Recipe, codebook: Codebook, rows: int | None) -> Plan:
        rows = rows if rows is not None else codebook.schema.rows
        if rows is None and recipe.settings["max_depth"] is None:
            raise PlanError("plan: give a size, plan(rows=10000), or fix the height with max_depth.")
        trees = rdt.structures(codebook, rows, rdt_settings(recipe.settings), generator(recipe.random_state))
        return Plan("RDT, not private", None, rows, "given", codebook.n_classes, (), trees)

    def train(self, recipe: Recipe, engine: Engine) -> Release:
        settings, prune = rdt_settings(recipe.settings), recipe.settings["prune"]
        forest = rdt.grow_plain(ExactTable(engine), engine.codebook, settings, prune, generator(recipe.random_state))
        return Release(
            forest,
            no_certificate("a non-private baseline: its counts are exact"),
            algorithm="RDT",
            vote=SUMMED_COUNTS,
            parameters={**asdict(settings), "prune": bool(prune), "bins": engine.codebook.bins},
            chosen={"height": max(tree.height for tree in forest.trees)},
        )


METHOD = PlainRDT()
