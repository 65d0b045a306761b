"""`hedgerow anonymity generalise`: a table that is published itself, its values made coarser until every group is anonymous enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.console import guarantee, pairs, say, table, warn
from hedgerow.cli.options import SchemaFile
from hedgerow.cli.outputs import check_output
from hedgerow.cli.requirement import Alpha, C, K, L, requirement_of
from hedgerow.errors import TableError

if TYPE_CHECKING:
    from hedgerow.anonymity.requirement import Requirement
    from hedgerow.schema.schema import Schema
    from hedgerow.sharing.generalise import Generalised


def generalise(
    data: Annotated[Path, typer.Argument(metavar="TABLE", help="The owner's table: CSV or Parquet.", show_default=False)],
    schema: SchemaFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .csv, .csv.gz or .parquet file to make.", show_default=False)],
    k: K = None,
    c: C = None,
    l: L = None,  # noqa: E741
    alpha: Alpha = None,
    suppression: Annotated[
        float, typer.Option("--suppression", help="The largest share of the rows that may be left out, such as 0.05.")
    ] = 0.0,
    quasi: Annotated[
        list[str] | None,
        typer.Option(
            "--quasi",
            help="An attribute by which others may know a person; give it again for each. The rest is published in its finest cells, and "
            "makes no groups.  [default: all attributes]",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing output files.")] = False,
) -> None:
    """Make the values of a table coarser until every group of rows that read alike satisfies a requirement, and save what may be shared.

    Each attribute is taken to one level of its taxonomy, the same for all rows: of all choices that satisfy the requirement, the one
    with the smallest groups. Numbers start from the finest level of their taxonomy in the schema; without one, from their declared edges or
    32 cells of equal width, two of which are merged at each level. The class is what is sensitive, and is published as it is.

    Beside the table, NAME.schema.toml reads it (`hedgerow fit NAME --schema NAME.schema.toml`), and NAME.certificate.json says what was
    measured on the file before it was saved. Rows stand sorted. If no table satisfies the requirement, nothing is saved, and the command
    leaves with 1.

    Anonymity is NOT differential privacy: it protects against somebody who knows nothing else. For a guarantee that holds whatever others
    know, publish a forest with an exact ε (`hedgerow fit`).

    Example:

        hedgerow anonymity generalise table.csv --schema schema.toml -c 20 -l 2 --suppression 0.05 -o generalised.csv
    """
    from hedgerow.schema.schema import Schema
    from hedgerow.sharing.anonymous_release import check_schema
    from hedgerow.sharing.disclosure import disclosure
    from hedgerow.sharing.generalised_table import beside, save_generalised
    from hedgerow.sharing.pseudo.files import kind_of

    kind_of(output)
    for path in (output, *beside(output)):
        check_output(path, [data, schema], force)
    declared, requirement = Schema.load(schema), requirement_of(k, c, l, alpha)
    check_schema(declared, "a table", "group")
    requirement.check_classes(len(declared.target.classes))
    result, unlabelled = _generalised(data, declared, requirement, suppression, quasi)
    if unlabelled:
        warn(f"{unlabelled:,} rows have no declared class: they are no part of the table.")
    if result.impossible:
        say(f"{result.words()} Nothing was saved.", style="bold yellow")
        say("Ask for less (a smaller k or l, a larger c or alpha), or let rows be left out with --suppression.")
        raise typer.Exit(1)
    saved = save_generalised(result, output)
    heads = ["attribute", "level", "of", "values", ""]
    rows = [
        (name, each.level, each.of, each.values, "" if each.quasi else "makes no groups") for name, each in saved.certificate.levels.items()
    ]
    table("how far each attribute was generalised", heads, rows, numbers=(1, 2, 3))
    left_out = f"; {result.left_out:,} rows ({result.suppressed:.1%}) are left out" if result.left_out else ""
    say(f"saved {output}: {len(result.codes):,} rows in {result.groups:,} groups{left_out}")
    say(f"saved {' and '.join(map(str, beside(output)))}")
    if not result.complete:
        warn("the search stopped at its limit: the table satisfies the requirement, but a finer one may have been missed.")
    guarantee(saved.certificate.sentence(), holds=False)
    pairs("what it tells", disclosure(saved.groups, requirement, "group"))


def _generalised(
    data: Path, declared: Schema, requirement: Requirement, suppression: float, quasi: list[str] | None
) -> tuple[Generalised, int]:
    """The result, and how many rows have no declared class."""
    from hedgerow.engines.files import TableFile
    from hedgerow.schema.codebook import Codebook
    from hedgerow.sharing.generalise import checked_quasi, checked_share
    from hedgerow.sharing.generalise import generalise as generalise_rows
    from hedgerow.sharing.taxonomy import with_numeric_taxonomies

    share, codebook = checked_share(suppression), Codebook(with_numeric_taxonomies(declared))
    checked_quasi(codebook, quasi)
    persons = [] if declared.person is None else [declared.person]
    file = TableFile(data, [*declared.names, declared.target.name, *persons], dialect=declared.csv)
    for person in persons:
        ids = file.text_columns([person])[person].tolist()
        if len(set(ids)) < len(ids):
            raise TableError(
                f"table {str(data)!r}: the column {person!r} names some persons more than once; expected one row of each, since a group's "
                "rows are counted as its persons. Keep one row of each person."
            )
    codes, labels = file.read(codebook)
    unlabelled = int((labels >= codebook.n_classes).sum())
    if unlabelled == len(labels):
        raise TableError(f"table {str(data)!r}: no row has a declared class; expected {', '.join(map(repr, declared.target.classes))}.")
    return generalise_rows(codes, labels, codebook, requirement, share, quasi), unlabelled
