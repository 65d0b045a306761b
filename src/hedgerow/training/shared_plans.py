"""Plans that several owners count: made from public facts, built again from them to see that they hold no data, and shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.shared_gaussian import shared_rho
from hedgerow.errors import PlanError, SchemaError
from hedgerow.release.public_plan import PublicPlan
from hedgerow.schema.schema import Schema
from hedgerow.settings import whole
from hedgerow.training.algorithms import UPDATES, titled
from hedgerow.training.method import MergeableMethod
from hedgerow.training.planning import parameters_of
from hedgerow.training.recipe import Recipe
from hedgerow.trees.plan import ADDED_UP, Plan

MAX_REBUILD = 200_000_000  # nodes times attributes


def mergeable(recipe: Recipe) -> MergeableMethod:
    method = recipe.algorithm.method
    if not isinstance(method, MergeableMethod):
        raise PlanError(f"{recipe.algorithm.name}: its counts cannot be added up over tables.")
    return method


def public_plan(recipe: Recipe, schema: Schema, rows: int | None = None, tables: int = 1) -> PublicPlan:
    """The plan that several owners count, each on its own rows: schema, tree structures and ε, all public.

    rows:   the public number of rows to plan for (of all owners together), where the schema declares none
    tables: how many owners there will be, roughly; more of them have more noise, so that an SNR forest has smaller trees
    """
    method = mergeable(recipe)
    if schema.unreviewed:
        raise SchemaError(
            f"schema: the entries {', '.join(schema.unreviewed)} were read from data and are not reviewed. A plan that is shared holds "
            "public facts only: check them, then schema.accept() or `hedgerow schema review FILE --accept`."
        )
    if rows is not None:
        schema = replace(schema, rows=whole("rows", rows))
    seeded = recipe.algorithm.seeded
    if seeded and schema.rows is None and recipe.settings.get("max_depth") is None:
        height = ", or fix the height with max_depth" if "max_depth" in recipe.algorithm.defaults else ""
        raise PlanError(
            "public_plan: its trees depend on the number of rows, which owners do not tell, and schema.rows declares none. Give a public "
            f"number, roughly how many rows all owners have together: public_plan(rows=10000){height}."
        )
    seed = named_seed(recipe.random_state) if seeded else None
    codebook, epsilon, delta = recipe.codebook(schema), exact_epsilon(recipe.epsilon), exact_delta(recipe.delta)
    if delta:
        shared_rho(epsilon, delta)  # refuses what has no ρ
    recipe = recipe.changed(random_state=seed, tables=whole("tables", tables))
    plan = method.shared_plan(recipe, codebook, epsilon, schema.rows)
    return PublicPlan(
        codebook,
        plan.trees,
        epsilon,
        recipe.algorithm.title,
        method.vote_of(recipe),
        parameters_of(plan, codebook),
        method.chosen(plan),
        seed,
        f"numpy {np.__version__}" if seeded else "",
        recipe.tables,
        delta=delta,
    )


def named_seed(random_state: Any) -> int:
    """A seed that can be named: what was given, or a new one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, bool) or not hasattr(random_state, "__index__"):
        raise PlanError("random_state: a plan that is shared names its seed; expected a whole number or None.")
    return int(random_state)


def recipe_for(plan: PublicPlan) -> Recipe:
    """The recipe with the settings of the plan. It comes from somebody else: nothing but the algorithm's own settings is taken from it."""
    algorithm = titled(plan.algorithm)
    if algorithm is None or not algorithm.updates:
        known = sorted(each.title for each in UPDATES.values())
        raise PlanError(f"plan: its algorithm {plan.algorithm[:40]!r} is not known here; expected one of {', '.join(known)}.")
    own = {**algorithm.defaults, **{name: value for name, value in plan.parameters.items() if name in algorithm.defaults}}
    return Recipe(algorithm, own, plan.codebook.bins, plan.epsilon, plan.delta, plan.seed)


def rebuild(plan: PublicPlan) -> bool:
    """Whether the trees follow from the schema, the settings and the seed, if they need one, alone: then the plan holds no data."""
    if sum(tree.n_nodes for tree in plan.trees) * len(plan.codebook.sizes) > MAX_REBUILD:
        raise PlanError("plan: it is too large to be built again here.")
    recipe = recipe_for(plan)
    if (plan.seed is None or plan.seed < 0) if recipe.algorithm.seeded else plan.seed is not None:
        return False
    settings = dict(recipe.settings)
    if settings.get("n_estimators", len(plan.trees)) != len(plan.trees):
        return False
    # No more work than the plan itself holds. (A question with one answer adds no leaf, so those are counted apart.)
    most = max(len(plan.codebook.sizes), sum(len(tree.leaves) for tree in plan.trees))
    single = plan.codebook.sizes.count(1)
    if single * len(plan.codebook.sizes) * len(plan.trees) > MAX_REBUILD // 100:
        raise PlanError("plan: it is too large to be built again here.")
    bounds = {"max_leaves"} & settings.keys()
    try:
        recipe = recipe.with_settings({name: min(whole(name, settings[name]), most) for name in bounds}).changed(tables=plan.tables)
        trees, height = mergeable(recipe).shape(recipe, plan.codebook, plan.epsilon, plan.schema.rows)
        if trees != len(plan.trees) or height not in (None, max(tree.height for tree in plan.trees)):
            return False
        again = public_plan(recipe, plan.schema, tables=plan.tables)
    except (PlanError, SchemaError, TypeError):
        return False
    if plan.chosen in mergeable(recipe).chosen_before:
        again = replace(again, chosen=plan.chosen)
    same = [(each.trees, each.vote, each.chosen, each.epsilon, each.delta, each.codebook, each.seed, each.tables) for each in (plan, again)]
    parameters = {**again.parameters, **{name: plan.parameters.get(name) for name in bounds}}
    return same[0] == same[1] and parameters == plan.parameters


def shown_plan(plan: PublicPlan) -> Plan:
    """What a shared plan would build and what it costs each owner, for people."""
    return Plan(
        plan.algorithm,
        plan.epsilon,
        plan.schema.rows,
        "declared public",
        plan.codebook.n_classes,
        (plan.event,),
        plan.trees,
        tables=plan.tables,
        chosen=plan.chosen if plan.seed is not None else {"measured": f"all {len(plan.trees)} attributes", "reading": ADDED_UP},
        delta=plan.delta,
        shared=True,
    )
