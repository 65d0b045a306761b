"""`hedgerow plan`."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.console import one_line, pairs, say, warn
from hedgerow.cli.options import (
    COUNTED_ROWS,
    FIRST,
    NOT_PROVEN,
    AlgorithmName,
    AsPublished,
    Bins,
    Confidence,
    Criterion,
    Delta,
    Depth,
    Epsilon,
    ForestOptions,
    MaxLeaves,
    MaxPasses,
    MinLeaf,
    MinRows,
    NoiseRuleName,
    OwnSchema,
    Seed,
    Sensitivity,
    StoppingRuleName,
    Thresholds,
    Trees,
    Unpruned,
    Vote,
    confidence_of,
)
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import PurposeOption
from hedgerow.cli.schema import hint_at_single_values
from hedgerow.cli.tables import SignKey, say_what_else
from hedgerow.errors import PlanError
from hedgerow.formatting import number
from hedgerow.training.algorithms import UPDATES

if TYPE_CHECKING:
    from hedgerow.schema.schema import Schema
    from hedgerow.training.recipe import Recipe


def plan(
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="A dataset at an owner's service, https://host/datasets/NAME: the service says what it would cost, and what is left.",
            show_default=False,
        ),
    ] = None,
    schema: OwnSchema = None,
    algorithm: AlgorithmName = FIRST,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", help=f"Assumed number of rows, if the schema declares none. {COUNTED_ROWS}", show_default=False),
    ] = None,
    trees: Trees = None,
    depth: Depth = None,
    bins: Bins = None,
    thresholds: Thresholds = False,
    noise_rule: NoiseRuleName = None,
    stopping_rule: StoppingRuleName = None,
    min_rows: MinRows = None,
    vote: Vote = None,
    criterion: Criterion = None,
    sensitivity: Sensitivity = None,
    as_published: AsPublished = False,
    max_leaves: MaxLeaves = None,
    max_passes: MaxPasses = None,
    min_leaf: MinLeaf = None,
    confidence: Confidence = None,
    unpruned: Unpruned = False,
    seed: Seed = None,
    owners: Annotated[
        int,
        typer.Option("--owners", min=1, help="hedgerow, rdt, snr: how many owners or batches will be added up, each with its own noise."),
    ] = 1,
    save: Annotated[
        Path | None, typer.Option("--save", help="Save the plan for several owners to count (hedgerow, rdt, snr).", show_default=False)
    ] = None,
    sign: SignKey = None,
    purpose: PurposeOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan file.")] = False,
) -> None:
    """Show what `fit` would build and what it would cost. Touches no data, costs nothing.

    Compare "rows in a leaf", of forests other than hedgerow's, with "noise on a count": where the noise is larger, the counts say little.
    Fewer trees, a smaller depth, coarser domains or a larger ε help. A hedgerow forest decides by itself, from the number of rows, which
    of its steps are worth their share: the plan says which and why. The trees of dpdf, diffpid3 and private-id3 follow from their charged
    queries of the rows: their plan lists those charges, and what a tree that ends early does not use is given back.

    With --save the plan becomes a file that several owners count, each on its own rows (`hedgerow count`). It fixes the schema, the
    trees and the ε of each owner. Its --rows is a public number: roughly how many rows all owners have together (hedgerow needs none).
    Say with --owners how many there are: the noise of each adds up, and the plan shows whether the trees are small enough for it.

    Example:

        hedgerow plan --schema schema.toml --epsilon 1 --delta 1e-6 --rows 10000

        hedgerow plan --schema schema.toml --algorithm rdt --epsilon 1 --rows 10000 --trees 5

        hedgerow plan --schema schema.toml --epsilon 0.5 --rows 30000 --owners 3 --save plan.json

        hedgerow plan https://curator.example/datasets/patients --epsilon 0.5
    """
    if place is not None and (schema is not None or save is not None or owners > 1):
        raise PlanError("--schema, --save, --owners: the service plans with the schema of its dataset. Leave them out, or the address.")
    if place is None and purpose is not None:
        raise PlanError("--purpose: it belongs to a service, https://host/datasets/NAME. Leave it out.")
    if place is None and schema is None:
        raise PlanError("--schema: missing; expected the reviewed schema (TOML), or the address of a dataset at an owner's service.")
    if save is not None:
        check_output(save, [schema, sign], force)
    elif sign is not None:
        raise PlanError("--sign: only a plan that is saved can be signed. Add --save plan.json.")
    from hedgerow.schema.schema import Schema

    options = ForestOptions(
        algorithm,
        epsilon,
        bins,
        delta=delta,
        n_estimators=trees,
        max_depth=depth,
        numeric_splits="thresholds" if thresholds else None,
        noise_rule=noise_rule,
        stopping_rule=stopping_rule,
        min_rows=min_rows,
        vote=vote,
        criterion=criterion,
        sensitivity=sensitivity,
        as_published=as_published or None,
        max_leaves=max_leaves,
        max_passes=max_passes,
        min_leaf=min_leaf,
        confidence=confidence_of(confidence, unpruned),
        random_state=seed,
    )
    counted = save is not None and options.known.updates and not options.known.delta
    chosen_delta = options.settings.pop("delta", 0) if counted else 0  # of rdt and snr the counts of several owners alone have a δ
    recipe, known = options.recipe(), options.known
    recipe = recipe.changed(delta=chosen_delta) if counted else recipe
    if place is not None:
        _quote(place, options, rows, purpose)
        return
    assert schema is not None
    declared = Schema.load(schema)
    hint_at_single_values(declared)
    drawn = known.seeded or not known.updates
    shared = not drawn and (save is not None or owners > 1)  # the tables of all attributes, for any number of rows
    if rows is None and declared.rows is None and options.depends_on_rows and not shared:
        raise PlanError(
            "--rows: what would be built depends on the number of rows, and the schema declares none. Give an assumed "
            "size, --rows 10000" + (", or fix the height with --depth." if "max_depth" in known.defaults else ".")
        )
    if save is not None:
        _save(recipe, declared, rows, owners, save, sign)
        return
    if owners > 1 and not known.updates:
        raise PlanError(f"--owners: {algorithm} cannot be added up over several owners; {_those_that_add_up('and')} can.")
    from hedgerow.training.planning import plan as plan_of

    pairs("plan", plan_of(recipe.changed(tables=owners), declared, rows).lines())
    if owners > 1:
        say_what_else(known.title)
    if declared.unreviewed and options.private:
        warn(f"unreviewed in {schema}: {', '.join(declared.unreviewed)}. Until they are reviewed, no ε can be claimed.")
    if options.unproven is not None:
        warn(f"{NOT_PROVEN[options.unproven]}.")


def _quote(url: str, options: ForestOptions, rows: int | None, purpose: str | None) -> None:
    """What the service says: nothing is spent."""
    from hedgerow.accounting.loss import text_of_loss
    from hedgerow.remote.connection import connect
    from hedgerow.remote.places import place_of, token_for

    place = place_of(url)
    settings = options.plain
    if "epsilon" not in settings:
        raise PlanError("--epsilon: missing; expected what a request may cost, such as 0.5.")
    with connect(place.service, token_for(place, os.environ)) as connection:
        found = connection.quote(place.dataset, str(options.algorithm), purpose=purpose, rows=rows, **settings)
    pairs("plan", [(one_line(what), one_line(text)) for what, text in found.plan])
    if rows is None and found.assumed_rows is not None:
        say(
            f"the service has assumed {one_line(found.assumed_rows)} rows, since the true number is private: with --rows N, roughly as "
            "many as you expect, what it says of noise and of what to expect is of use. The cost does not depend on it."
        )
    left = text_of_loss(found.remaining.epsilon, found.remaining.delta)
    say(f"it would cost {text_of_loss(found.cost.epsilon, found.cost.delta)}; left for you before it: {left}. Nothing was spent.")
    if found.cost.epsilon > found.remaining.epsilon or found.cost.delta > found.remaining.delta:
        warn("more than what is left: the service would refuse it")


def _those_that_add_up(joined: str) -> str:
    *others, last = sorted(UPDATES)
    return f"{', '.join(others)} {joined} {last}"


def _save(recipe: Recipe, schema: Schema, rows: int | None, owners: int, path: Path, sign: Path | None) -> None:
    """A plan for several owners: its number of rows is declared public, so that nothing needs to be asked of anyone's rows."""
    from hedgerow.cli.count import private_key
    from hedgerow.training.shared_plans import public_plan, shown_plan

    known = recipe.algorithm
    if not known.updates:
        why = "chooses its trees by looking at the rows, so that each owner would get other trees"
        why = why if known.private else "keeps no privacy"
        raise PlanError(f"--save: {known.name} {why}. A plan that owners share needs --algorithm {_those_that_add_up('or')}.")
    key = private_key(sign)
    plan = public_plan(recipe, schema, rows, owners)
    if key is not None:
        plan = plan.signed(key)
    pairs("plan", [(what.replace("in all", "for each owner"), text) for what, text in shown_plan(plan).lines()])
    plan.save(path)
    pure = replace(plan, delta=Fraction(0))
    if plan.delta and shown_plan(pure).noise_sd <= shown_plan(plan).noise_sd:
        warn(f"without δ there would be less noise on a count: {number(shown_plan(pure).noise_sd, 3)}. Leave --delta out")
    drawn = "nothing in it is drawn" if plan.seed is None else f"seed {plan.seed}"
    say(f"saved {path}: a public plan, {plan.content_hash[:16]}…, {drawn}")
    say(f"it holds no data: `hedgerow verify {path}` checks that")
    say(f"each owner now runs: hedgerow count {path} own-rows.csv -o owner-name.json")
    say_what_else(plan.algorithm)
