"""The tree that an owner learns from its own rows, without privacy, before it is pruned for sharing: in the manner of C4.5."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hedgerow.engines.engine import Engine
from hedgerow.engines.exact import ExactTable
from hedgerow.errors import PlanError
from hedgerow.growers import c45
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.value_edges import VALUES
from hedgerow.settings import whole
from hedgerow.training.checks import depth_or_none
from hedgerow.training.method import ExactMethod
from hedgerow.training.recipe import Recipe
from hedgerow.trees.plan import Plan
from hedgerow.trees.used_edges import with_used_edges


class LocalTree(ExactMethod):
    def plan(self, recipe: Recipe, codebook: Codebook, rows: int | None) -> Plan:
        """A tree that depends on the rows, so only its limits are known."""
        settings = _settings(recipe)
        levels = "as the rows need" if settings.max_depth is None else f"at most {settings.max_depth}"
        return Plan("local tree, not private", None, rows, "given", codebook.n_classes, (), (), chosen={"levels": levels})

    def train(self, recipe: Recipe, engine: Engine) -> Release:
        settings = _settings(recipe)
        forest = c45.grow_plain(ExactTable(engine), engine.codebook, settings)
        if recipe.at_values:
            forest = with_used_edges(forest)
        return Release(
            forest,
            no_certificate("a local tree: its counts are exact"),
            algorithm="local tree",
            vote=SUMMED_COUNTS,
            parameters={**asdict(settings), "bins": VALUES if recipe.at_values else engine.codebook.bins},
            chosen={"nodes": forest.trees[0].n_nodes, "height": forest.trees[0].height},
        )


def _settings(recipe: Recipe) -> c45.Settings:
    given, max_depth = recipe.settings, depth_or_none(recipe.settings)
    return c45.Settings(whole("min_leaf", given["min_leaf"]), _confidence(given["confidence"]), max_depth)


def _confidence(value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if number == 1:
        return None
    if not 0 < number <= 0.5:
        raise PlanError(f"confidence: got {value!r}; expected a number above 0 and at most 0.5, or None to prune nothing.")
    return number


METHOD = LocalTree()
