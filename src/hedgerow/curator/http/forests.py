"""From a request to a recipe, to its plan, to a release; and rows that are made from the schema alone, to try it on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.accounting.meter import Budget
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.requests import Forest
from hedgerow.errors import HedgerowWarning, PlanError
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.schema import Schema
from hedgerow.sharing.pseudo.decoding import values_array
from hedgerow.training.algorithms import PRIVATE
from hedgerow.training.fit import fit
from hedgerow.training.planning import plan
from hedgerow.training.recipe import Recipe
from hedgerow.trees.plan import Plan

ASSUMED_ROWS = 10_000
DUMMY = "it was made of dummy rows, drawn from the schema alone: it says nothing about anybody, and is worth nothing but to try it"


def recipe_of(body: Forest, limits: Limits) -> Recipe:
    """What is to be trained, refused where it cannot work or would be too large: from public facts alone."""
    known = PRIVATE[body.algorithm].settings
    settings = body.settings.given()
    if body.delta != "0":
        settings["delta"] = body.delta
    if "delta" in settings and "delta" not in known:
        raise PlanError(f"delta: got {body.delta}; the algorithm {body.algorithm} is pure ε, so expected 0. Nothing was spent.")
    strange = sorted(settings.keys() - known)
    if strange:
        raise PlanError(f"{', '.join(strange)}: the algorithm {body.algorithm} has no such setting. Leave it out. Nothing was spent.")
    bounds = {"n_estimators": limits.trees, "bins": limits.bins, "max_depth": limits.depth, "max_leaves": limits.leaves}
    for setting, most in bounds.items():
        if settings.get(setting, 0) > most:
            raise PlanError(f"{setting}: got {settings[setting]}; this service takes at most {most}. Nothing was spent.")
    if "max_leaves" in known:
        settings.setdefault("max_leaves", limits.leaves)
    return Recipe.of(body.algorithm, body.epsilon, **settings)


def warm_up() -> None:
    """Import now what the first request or job would wait for."""
    for algorithm in PRIVATE.values():
        _ = algorithm.method


def checked_plan(recipe: Recipe, schema: Schema, rows: int | None = None) -> Plan:
    """What it would build. Where the number of rows is private, the smallest table stands in, as in training."""
    return plan(recipe, schema, rows if rows is not None or schema.rows is not None else 1)


def plan_as_json(made: Plan) -> dict[str, Any]:
    """The charges in order, like ones together, and the plan in words."""
    events = [
        {
            "verb": event.query, "mechanism": event.mechanism, "times": times, "epsilon": text_of_fraction(event.epsilon),
            "rho": text_of_fraction(event.rho), "queries": event.queries, "sensitivity": text_of_fraction(event.sensitivity),
            "scale": text_of_fraction(event.scale),
        }
        for event, times in Counter(made.events).items()
    ]  # fmt: skip
    return {"events": events, "plan": [list(line) for line in made.lines()]}


def trained(recipe: Recipe, rows: Any, schema: Schema, budget: Budget, **how: Any) -> Release:
    """Train, and give the release even where a warning was made an error: by then it is paid for."""
    paid: list[Release] = []
    try:
        return fit(recipe, rows, schema=schema, budget=budget, keep=lambda release, _: paid.append(release), **how)
    except HedgerowWarning:
        if not paid:
            raise
        return paid[0]


def dummy_rows(schema: Schema, rows: int) -> dict[str, Any]:
    """Columns in which every declared value is as likely as any other. No row of anybody was looked at."""
    generator = np.random.default_rng()
    columns: dict[str, Any] = {}
    for attribute in schema.attributes:
        if isinstance(attribute, Numeric):
            columns[attribute.name] = generator.uniform(attribute.low, attribute.high, rows)
        else:
            columns[attribute.name] = values_array(list(attribute.values))[generator.integers(len(attribute.values), size=rows)]
    classes = values_array(list(schema.target.classes))
    columns[schema.target.name] = classes[generator.integers(len(classes), size=rows)]
    if schema.person is not None:
        columns[schema.person] = np.arange(rows)
    return columns


def as_dummy(release: Release) -> Release:
    """Marked inside as made of dummy rows: it claims nothing, and cannot be merged or pass for a real one."""
    return Release(
        release.forest, no_certificate(DUMMY), algorithm=release.algorithm, vote=release.vote, parameters=release.parameters,
        chosen=release.chosen, correction=release.correction,
    )  # fmt: skip
