"""`hedgerow plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from hedgerow.cli.console import pairs, warn
from hedgerow.cli.options import (
    NOT_PROVEN,
    Algorithm,
    AlgorithmName,
    Bins,
    Criterion,
    Depth,
    Epsilon,
    ForestOptions,
    MaxLeaves,
    MinRows,
    NoiseRuleName,
    SchemaFile,
    Seed,
    Sensitivity,
    Thresholds,
    Trees,
    Vote,
)
from hedgerow.errors import PlanError


def plan(
    schema: SchemaFile,
    algorithm: AlgorithmName = Algorithm.snr,
    epsilon: Epsilon = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", help="Assumed number of rows, if the schema declares none.", show_default=False),
    ] = None,
    trees: Trees = None,
    depth: Depth = None,
    bins: Bins = 5,
    thresholds: Thresholds = False,
    noise_rule: NoiseRuleName = None,
    min_rows: MinRows = None,
    vote: Vote = None,
    criterion: Criterion = None,
    sensitivity: Sensitivity = None,
    max_leaves: MaxLeaves = None,
    seed: Seed = None,
) -> None:
    """Show what `fit` would build and what it would cost. Touches no data, costs nothing.

    Compare "rows in a leaf" with "noise on a count": where the noise is larger, the counts say little. Fewer trees, a
    smaller depth, coarser domains or a larger ε help. The trees of dpdf, diffpid3 and private-id3 follow from their charged
    looks at the rows: their plan lists those charges, and what a tree that ends early does not use is given back.

    Example:

        hedgerow plan --schema schema.toml --algorithm rdt --epsilon 1 --rows 10000 --trees 5
    """
    from hedgerow.schema import Schema

    declared = Schema.load(schema)
    options = ForestOptions(
        algorithm,
        epsilon,
        bins,
        n_estimators=trees,
        max_depth=depth,
        numeric_splits="thresholds" if thresholds else None,
        noise_rule=noise_rule,
        min_rows=min_rows,
        vote=vote,
        criterion=criterion,
        sensitivity=sensitivity,
        max_leaves=max_leaves,
        random_state=seed,
    )
    estimator = options.estimator(declared)
    if rows is None and declared.rows is None and not options.greedy and (algorithm is Algorithm.snr or depth is None):
        raise PlanError(
            "--rows: what would be built depends on the number of rows, and the schema declares none. Give an assumed "
            "size, --rows 10000" + (", or fix the height with --depth." if algorithm is not Algorithm.snr else ".")
        )
    pairs("plan", estimator.plan(rows).lines())
    if declared.unreviewed and options.private:
        warn(f"unreviewed in {schema}: {', '.join(declared.unreviewed)}. Until they are reviewed, no ε can be claimed.")
    if not options.proven:
        warn(f"{NOT_PROVEN}.")
