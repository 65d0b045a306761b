"""`hedgerow synth`: pseudo-data from shared forests."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.anonymity import RulesBins, RulesSchema
from hedgerow.cli.console import guarantee, progress_bar, say, table
from hedgerow.cli.options import Force, Jobs, threads
from hedgerow.cli.outputs import check_output
from hedgerow.cli.tables import SHOWN


class Method(StrEnum):
    auto = "auto"
    pgen = "pgen"
    basegen = "basegen"
    forest = "forest"


class NumericValue(StrEnum):
    uniform = "uniform"
    middle = "middle"
    low = "low"
    high = "high"
    normal = "normal"


class ClassesFrom(StrEnum):
    counts = "counts"
    hits = "hits"


def synth(
    releases: Annotated[
        list[Path], typer.Argument(help="Saved forests, trees or rule sets, of one owner or of several.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="A .csv, .csv.gz or .parquet file to make.", show_default=False)],
    rows: Annotated[
        int | None,
        typer.Option("--rows", min=0, help="How many.  [default: as many as the releases, noisily, speak of]", show_default=False),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="pgen: path by path, with the path's own classes. basegen: rows from anywhere in the declared domain, the class "
            "predicted. forest: rows from the paths, the class predicted by the whole forest. auto: pgen for single trees with exact "
            "counts and rule sets, forest for all others.",
        ),
    ] = Method.auto,
    numeric: Annotated[
        NumericValue, typer.Option("--numeric", help="A number that a path asks about: where in its interval.")
    ] = NumericValue.uniform,
    classes: Annotated[
        ClassesFrom,
        typer.Option("--classes", help="pgen: by the released class counts, or by hits, the misses spread evenly over other classes."),
    ] = ClassesFrom.counts,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Fixes the rows. Without it one is drawn and noted.", show_default=False)
    ] = None,
    schema: RulesSchema = None,
    bins: RulesBins = None,
    jobs: Jobs = None,
    force: Force = False,
) -> None:
    """Make a table of pseudo-rows from shared forests. Reads no rows, costs no ε.

    Whoever wants to learn a model of its own kind from what several owners know makes rows from their trees instead of asking for
    their data: each path gives as many rows as it has persons, with values that fit it. The rows of several owners are added; they need the
    same columns, values and classes, not the same trees.

    A row is nobody's. What the rows keep is what the trees say: values that no path asks about, and ties between columns that no path
    has both of, are chance. Beside the table, NAME.certificate.json says what it was made from, with which seed, and what may be
    claimed: made from a forest with differential privacy it keeps its ε, from several the sum; made from an anonymous tree it need not be
    anonymous itself.

    Example:

        hedgerow synth forest.json -o pseudo.csv

        hedgerow synth office-a.json office-b.json -o pseudo.parquet --rows 100000 --method pgen --seed 7
    """
    from hedgerow.sharing.pseudo.files import certificate_path, kind_of

    kind_of(output)
    beside = certificate_path(output)
    for path in (output, beside):
        check_output(path, [*releases, schema], force)
    from hedgerow.schema.schema import Schema
    from hedgerow.sharing.pseudo.tables import pseudo_data
    from hedgerow.sharing.rules.files import load_shared

    n_jobs = threads(jobs)
    declared = None if schema is None else Schema.load(schema)
    loaded = [load_shared(file, declared, bins) for file in releases]
    data = pseudo_data(loaded, rows, method=str(method), numeric=str(numeric), classes=str(classes), seed=seed)
    with progress_bar("making rows") as progress:
        certificate = data.save(output, n_jobs, progress)
    if len(loaded) > 1:
        heads = ["release", "rows", "guarantee", "ε"]
        made = [(file, f"{s.rows:,}", s.guarantee, s.loss) for file, s in zip(releases, certificate.sources, strict=True)]
        table("made from", heads, made[:SHOWN], numbers=(1, 3))
        if len(made) > SHOWN:
            say(f"  and {len(made) - SHOWN} more")
    say(f"wrote {output}: {len(data):,} pseudo-rows, method {data.method}, seed {data.seed}")
    say(f"wrote {beside}")
    if certificate.diversity is not None:
        say(f"diversity of the rows themselves: {_in_words(certificate.diversity)}")
    guarantee(certificate.sentence(), holds=certificate.epsilon is not None)


def _in_words(diversity: dict[str, object]) -> str:
    if not diversity["measured"]:
        return f"not measured ({diversity['why']})"
    return (
        f"{diversity['groups']:,} different rows, the smallest group has {diversity['smallest_group']}, the least diverse "
        f"{diversity['fewest_classes_in_a_group']} class(es)"
    )
