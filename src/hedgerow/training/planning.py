"""What would be built and what it costs, from public facts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hedgerow.accounting.loss import exact_epsilon
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.settings import stated, whole
from hedgerow.training.recipe import Recipe
from hedgerow.trees.plan import Plan


def plan(recipe: Recipe, schema: Schema, rows: int | None = None) -> Plan:
    """What training would build and what it costs. Needs no data; `rows` is an assumed size where none is declared."""
    codebook = recipe.codebook(schema)
    if not recipe.algorithm.private:
        return recipe.algorithm.exact_method.plan(recipe, codebook, rows)
    public = schema.rows is not None and rows is None
    rows = schema.rows if rows is None else whole("rows", rows)
    found = recipe.algorithm.method.plan(recipe, codebook, exact_epsilon(recipe.epsilon), rows, public)
    return replace(found, tables=recipe.tables) if recipe.algorithm.updates else found


def parameters_of(plan: Plan, codebook: Codebook) -> dict[str, Any]:
    """What the user set, as a release states it; how many tables were planned for stands in a plan alone."""
    settings = {name: value for name, value in stated(plan.settings).items() if name != "tables"}
    return {**settings, "bins": codebook.bins}
