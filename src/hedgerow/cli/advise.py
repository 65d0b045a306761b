"""`hedgerow advise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.console import progress_bar, say, table
from hedgerow.cli.options import COUNTED_ROWS, Delta, Force
from hedgerow.cli.outputs import check_output


def advise(
    schema: Annotated[Path, typer.Option("--schema", help="The schema (TOML) of the private table.", show_default=False)],
    rows: Annotated[int, typer.Option("--rows", help=f"About how many rows the private table has. {COUNTED_ROWS}", show_default=False)],
    like: Annotated[
        Path | None,
        typer.Option(
            "--like", help="A PUBLIC table that is alike, with the same columns: its rows are used as they are.", show_default=False
        ),
    ] = None,
    forest: Annotated[
        Path | None,
        typer.Option("--forest", help="An earlier release of the same table: what it tells costs nothing more.", show_default=False),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option("--accuracy", help="The measured accuracy of the earlier release (`hedgerow evaluate`).", show_default=False),
    ] = None,
    delta: Delta = None,
    target_accuracy: Annotated[
        float | None, typer.Option("--target-accuracy", help="The accuracy that is wanted, such as 0.8.", show_default=False)
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option("--algorithm", help="Only these.  [default: hedgerow, snr, rdt, dpdf; with --forest hedgerow]", show_default=False),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="How many fits for each number.")] = 3,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A picture to make (.svg).", show_default=False)] = None,
    force: Force = False,
) -> None:
    """Say what accuracy to expect at ε = 0.1 … 4, and the smallest ε that would do. Reads no private row, costs no ε.

    Forests are trained on rows that are made: from the schema alone, or from a public table that is alike (--like). An earlier release of
    the same table (--forest) knows more, and most with its measured accuracy (--accuracy): the rest is how forests went on from there on
    public tables. It says how far each is to be trusted, as measured on public tables.

    Example:

        hedgerow advise --schema schema.toml --rows 20000 --forest forest.json --delta 1e-6 --target-accuracy 0.8 -o advice.svg
    """
    if output is not None:
        check_output(output, [schema, like, forest], force)
    from hedgerow.cli.errors import in_options
    from hedgerow.planner.advice import advise as advised
    from hedgerow.schema.schema import Schema

    declared = Schema.load(schema)
    more: dict[str, Any] = {"algorithms": algorithm} if algorithm else {}
    with progress_bar("training on made rows") as progress:
        advice = advised(
            declared,
            rows,
            like=like,
            forest=forest,
            accuracy=accuracy,
            delta=delta or 0,
            target_accuracy=target_accuracy,
            repeats=repeats,
            progress=progress,
            **more,
        )
    names = list(dict.fromkeys(each.algorithm for each in advice.expectations))
    by_place = {(each.algorithm, each.epsilon): each for each in advice.expectations}
    lines = []
    for epsilon in dict.fromkeys(each.epsilon for each in advice.expectations):
        cells = [by_place[name, epsilon] for name in names]
        lines.append((epsilon, *map(advice.words, cells)))
    table("accuracy to expect", ["ε", *names], lines, numbers=(0,))
    say(in_options(advice.baseline_sentence()))
    say(advice.sentence())
    say(f"made from: {advice.trust}")
    if output is not None:
        from hedgerow.plots.advice_svg import advice_svg

        output.write_text(advice_svg(advice), encoding="utf-8")
        say(f"wrote {output}")
