"""Training with a guarantee: everything that can be refused is refused, then the charge, then the looks, then the release."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_loss
from hedgerow.accounting.meaning import large_delta
from hedgerow.accounting.meter import Budget, checked_budget
from hedgerow.accounting.zcdp import rho_for
from hedgerow.engines.engine import Engine, Progress
from hedgerow.errors import LargeDeltaWarning, PlanError, UnreviewedSchemaWarning
from hedgerow.mechanisms.coins import SYSTEM, Coins, random_name
from hedgerow.mechanisms.noise import sampler_named
from hedgerow.private_table import private_table, reserved
from hedgerow.queries import BestModel
from hedgerow.release.certificate import certificate_of, declared_rows, no_certificate, part_of
from hedgerow.release.parts import TableName
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.training.planning import parameters_of
from hedgerow.training.recipe import Recipe, check_random_state
from hedgerow.training.rows import open_rows
from hedgerow.training.settling import settled
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan

Keep = Callable[[Release, Mapping[str, Any]], None]  # what was paid for, and which settings a search has chosen


def fit(
    recipe: Recipe,
    X: Any,
    y: Any = None,
    *,
    schema: Schema | None,
    budget: Budget | None = None,
    sampler: str = "hedgerow",
    n_jobs: int = 1,
    progress: Progress | None = None,
    accept_draft: bool = False,
    name: TableName | None = None,
    source: str = "",
    keep: Keep | None = None,
) -> Release:
    """The release of a forest that was trained on these rows: from the places that `open_rows` knows, with or without privacy.

    source: by which the table is known again, where a service makes the forest
    """
    how: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress, "accept_draft": accept_draft, "sampler": sampler}
    with closing(open_rows(recipe, X, y, schema=schema, **how)) as engine:
        if not recipe.algorithm.private:
            return recipe.algorithm.exact_method.train(recipe, engine)
        return train(recipe, engine, budget=budget, sampler=sampler, name=name, source=source, keep=keep)


def train(
    recipe: Recipe,
    engine: Engine,
    *,
    budget: Budget | None = None,
    sampler: str = "hedgerow",
    coins: Coins = SYSTEM,
    search: Sequence[Mapping[str, Any]] = (),
    share: Fraction = Fraction(0),
    name: TableName | None = None,
    source: str = "",
    keep: Keep | None = None,
    no_guarantee: str | None = None,
) -> Release:
    """Plan, charge, grow. With a `search` among settings, `share` of ε pays for trying them first.

    name, source: of the rows, where others may be added to them later, or where they are at the service that makes the forest
    keep: is given the release as soon as it is paid for, before a warning, which may have been made an error
    no_guarantee: why it can claim none, if something was done to the rows before
    """
    method, codebook, schema = recipe.algorithm.method, engine.codebook, engine.codebook.schema
    epsilon, delta = exact_epsilon(recipe.epsilon), exact_delta(recipe.delta)
    sampler_named(sampler, coins)
    check_delta(epsilon, delta, sampler, schema.rows)
    tried = [recipe.with_settings(each).changed(random_state=copy.deepcopy(recipe.random_state)) for each in search]
    trial = epsilon * share * Fraction(4, 5) / max(1, len(tried))
    plans = [(each, _plan_of(each, codebook, trial)) for each in tried]
    finals = [_plan_of(each, codebook, epsilon * (1 - share)) for each in tried or [recipe]]
    _ = codebook.coders  # whatever could fail about the schema fails here
    # What is charged at most: ε, but for a published algorithm that counts fewer queries than it asks.
    whole = sum((_charged(plan) for _, plan in plans), max(map(_charged, finals)) + (epsilon * share / 5 if tried else 0))
    paying = checked_budget(budget, whole, delta)
    if schema.unreviewed:
        charged = f" The budget is charged {text_of_loss(whole, delta)} all the same: the rows are looked at." if budget is not None else ""
        warnings.warn(
            "domains were read from private data (" + ", ".join(schema.unreviewed) + "): the release claims no "
            f"differential privacy.{charged} Declare and review a schema to get a guarantee: Schema.draft, or `hedgerow schema draft`, "
            "makes a first one, without columns that look like identifiers.",
            UnreviewedSchemaWarning,
            stacklevel=4,
        )
    what = f"{'tune and ' if tried else ''}fit {recipe.algorithm.title}"
    reservation = reserved(engine, paying, whole, what, delta)  # charge, then look
    table = private_table(engine, reservation, coins, sampler)
    best, chosen = 0, recipe
    if tried:
        forests = [release_of(each, method.grow(each, table, plan), plan, codebook) for each, plan in plans]
        best = table.ask(BestModel([forest.predict_codes_proba for forest in forests]), epsilon * share / 5)
        chosen = recipe.with_settings(search[best])
    grown = method.grow(chosen, table, finals[best])
    release = release_of(chosen, grown, finals[best], codebook)
    not_proven = next((plan.not_proven for plan in (finals[best], *(plan for _, plan in plans)) if plan.not_proven), None)
    if tried:
        release.chosen["tuned"] = f"the best of {len(tried)} settings, by private choice"
    part = part_of(
        reservation.events,
        requested=whole,
        delta=delta,
        sampler=table.sampler,
        secret=table._secret,
        unreviewed=schema.unreviewed,
        public_rows=declared_rows(schema.rows),
        no_guarantee=no_guarantee or not_proven,
        person=schema.person,
        rows_per_person=schema.k,
        assumed=engine.assumed,
        source=source if name is None else engine.origin,  # only a forest that takes more batches may meet the same rows again
        id=random_name(coins),
        name=name,
        released=grown.released,
    )
    release.certificate = certificate_of([part])
    if engine.origin:
        release.origin = engine.origin
    if keep is not None:
        keep(release, dict(search[best]) if tried else {})
    settled(release, reservation, whole=name is None)
    return release


def check_settings(recipe: Recipe, schema: Schema, sampler: str, coins: Coins = SYSTEM) -> None:
    """Refuse the settings and the price that `train` would refuse. Needs no rows: for who pays for several fits, before the first."""
    epsilon, delta = exact_epsilon(recipe.epsilon), exact_delta(recipe.delta)
    sampler_named(sampler, coins)
    _refuse_delta(epsilon, delta, sampler)
    _plan_of(recipe, recipe.codebook(schema), epsilon)


def _plan_of(recipe: Recipe, codebook: Codebook, epsilon: Fraction) -> Plan:
    """With a private n the smallest table stands in: what is too large for it is too large for any."""
    rows = codebook.schema.rows
    check_random_state(recipe.random_state)
    return recipe.algorithm.method.plan(recipe, codebook, epsilon, rows or 1, rows is not None)


def _charged(plan: Plan) -> Fraction:
    assert plan.epsilon is not None
    return plan.epsilon


def release_of(recipe: Recipe, grown: Grown, plan: Plan, codebook: Codebook) -> Release:
    """The forest as a release that claims nothing yet."""
    return Release(
        grown.forest,
        no_certificate("not certified"),
        algorithm=recipe.algorithm.title,
        vote=recipe.algorithm.method.vote_of(recipe),
        parameters=parameters_of(plan, codebook),
        chosen=grown.chosen,
        correction=grown.correction,
    )


def check_delta(epsilon: Fraction, delta: Fraction, sampler: str, rows: int | None) -> None:
    """rows: a public number of them, if there is one"""
    _refuse_delta(epsilon, delta, sampler)
    if large := large_delta(delta, rows):
        warnings.warn(large, LargeDeltaWarning, stacklevel=5)


def _refuse_delta(epsilon: Fraction, delta: Fraction, sampler: str) -> None:
    if not delta:
        return
    rho_for(epsilon, delta)  # refuses what has no ρ
    if sampler != "hedgerow":
        raise PlanError(
            f'sampler: got {sampler!r}; Gaussian noise (delta above 0) is drawn by sampler="hedgerow" alone. Nothing was '
            "spent. Use that one, or set delta=0."
        )
