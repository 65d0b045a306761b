"""Plain ID3 (Jagannathan et al. 2012, Algorithm 1), without privacy."""

from __future__ import annotations

from hedgerow.engines.engine import Engine
from hedgerow.engines.exact import ExactTable
from hedgerow.growers import id3
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import stated
from hedgerow.training.checks import id3_settings
from hedgerow.training.method import ExactMethod
from hedgerow.training.recipe import Recipe
from hedgerow.trees.plan import Plan


class ID3(ExactMethod):
    def plan(self, recipe: Recipe, codebook: Codebook, rows: int | None) -> Plan:
        """A tree that depends on the rows, so only its limits are known."""
        levels = id3.levels(codebook, id3_settings(recipe.settings))
        return Plan("ID3, not private", None, rows, "given", codebook.n_classes, (), (), chosen={"levels": f"at most {levels}"})

    def train(self, recipe: Recipe, engine: Engine) -> Release:
        settings = id3_settings(recipe.settings)
        forest = id3.grow_plain(ExactTable(engine), engine.codebook, settings)
        return Release(
            forest,
            no_certificate("a non-private baseline: its counts are exact"),
            algorithm="ID3",
            vote=SUMMED_COUNTS,
            parameters={**stated(settings), "bins": engine.codebook.bins},
            chosen={"nodes": forest.trees[0].n_nodes, "height": forest.trees[0].height},
        )


METHOD = ID3()
