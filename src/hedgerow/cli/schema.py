"""`hedgerow schema draft` and `hedgerow schema check`."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.console import say, table
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import CSVOfRows, csv_rows
from hedgerow.errors import PlanError, TableError

if TYPE_CHECKING:
    from hedgerow.schema.attributes import Attribute
    from hedgerow.schema.schema import Schema

TO_DO = 1  # the exit code of `check` where entries wait for review
_SHOWN_VALUES = 60  # characters of a list of values

app = typer.Typer(
    help="Write and check the schema: the public facts about a table (columns, domains, classes).",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command("draft")
def draft(
    data: Annotated[Path, typer.Argument(help="CSV (also .gz, .zst) or Parquet file.", show_default=False)],
    target: Annotated[str, typer.Option("--target", help="The column to predict.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the schema.")] = Path("schema.toml"),
    person: Annotated[
        str | None,
        typer.Option("--person", help="The column that says whose row it is, where a person may have several.", show_default=False),
    ] = None,
    rows_per_person: Annotated[
        int | None,
        typer.Option("--rows-per-person", min=1, help="How many rows of a person count at most.  [default: 1]", show_default=False),
    ] = None,
    csv: CSVOfRows = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a first schema from a table, for you to review.

    The draft is read from the private rows: its values and bounds are as private as they are, and every entry is marked
    `unreviewed`. Compare each with what is publicly known, widen bounds, add values that could occur, then delete its
    mark. Until then nothing can be claimed for a forest trained with it.

    With --person, what is trained protects persons and not rows: at most --rows-per-person rows of each are counted, and the noise
    grows with that number. The column is not learnt from.

    Example:

        hedgerow schema draft data.csv --target class -o schema.toml

        hedgerow schema draft visits.csv --target outcome --person patient_id --rows-per-person 5
    """
    if rows_per_person is not None and person is None:
        raise PlanError("--rows-per-person: it needs --person, the column that says whose row it is.")
    check_output(output, [data], force)
    from hedgerow.engines.draft import draft_from_file

    schema, left_out = draft_from_file(csv_rows(data, csv), target)
    if person is not None:
        schema = _of_persons(schema, left_out, person, rows_per_person)
        left_out = [name for name in left_out if name != person]
    schema.save(output)
    say(f"wrote {output}: {len(schema.attributes)} attributes, target {schema.target.name}. It is as private as {data}.")
    if left_out:
        say(f"left out, since they have very many different values and may identify people: {', '.join(left_out)}")
        with output.open("a", encoding="utf-8") as file:
            file.write(f"\n# left out, since they have very many different values: {', '.join(left_out)!a}\n")
    say("next:")
    say(f"  1. in {output}, replace what was read from the data by public knowledge, delete the `unreviewed` lines")
    say(f"  2. hedgerow schema check {output}")


def _of_persons(schema: Schema, left_out: list[str], person: str, rows_per_person: int | None) -> Schema:
    """The draft with one column as that of persons instead of an attribute."""
    columns = [*schema.names, schema.target.name, *left_out]
    if person not in columns:
        near = difflib.get_close_matches(person, columns, n=1, cutoff=0.5)
        raise TableError(
            f"--person: the table has no column {person!r}; its columns are {', '.join(columns[:40])}."
            + (f" Did you mean {near[0]!r}?" if near else "")
        )
    attributes = tuple(attribute for attribute in schema.attributes if attribute.name != person)
    return replace(schema, attributes=attributes, person=person, rows_per_person=rows_per_person)


@app.command("check")
def check(
    schema_file: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema (TOML).", show_default=False)],
) -> None:
    """Check a schema and list what still waits for review.

    Exit code 0: valid and reviewed. 1: valid, but entries are unreviewed. 2: not valid.

    Example:

        hedgerow schema check schema.toml
    """
    from hedgerow.schema.schema import Schema

    schema = Schema.load(schema_file)
    show(schema)
    if schema.unreviewed:
        say(f"unreviewed: {', '.join(schema.unreviewed)}", style="yellow")
        say("They were read from the data. Replace them by public knowledge, then delete their `unreviewed` lines.")
        raise typer.Exit(TO_DO)
    say("valid and reviewed", style="green")


def show(schema: Schema) -> None:
    """The public facts as a table."""
    rows = [(attribute.name, *_facts(attribute), "no" if attribute.unreviewed else "yes") for attribute in schema.attributes]
    table("attributes", ["name", "kind", "domain", "undeclared value", "missing value", "reviewed"], rows)
    classes = ", ".join(map(str, schema.target.classes))
    say(f"target: {schema.target.name} with {len(schema.target.classes)} classes: {_short(classes)}")
    rows_text = "private (a noisy number is paid for where it is needed)" if schema.rows is None else f"{schema.rows:,}, public"
    say(f"rows:   {rows_text}")
    if schema.person is not None:
        say(f"person: one value of {schema.person}; at most {schema.k:,} {'row' if schema.k == 1 else 'rows'} of each count")
    if schema.csv is not None:
        say(f"csv:    {', '.join(f'{name} {value!r}' for name, value in schema.csv.to_plain().items()) or 'as usual'}")


def _facts(attribute: Attribute) -> tuple[str, str, str, str]:
    from hedgerow.schema.attributes import Categorical

    stops = "not counted"
    if isinstance(attribute, Categorical):
        values = _short(", ".join(map(str, attribute.domain)))
        other = attribute.other or stops
        return "categorical", f"{len(attribute.domain)}: {values}", other, attribute.missing or other
    cells = f", {len(attribute.edges) - 1} declared cells" if attribute.edges else ""
    return "numeric", f"{attribute.low:.9g} to {attribute.high:.9g}{cells}", "nearest bound", attribute.missing or stops


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_VALUES else text[: _SHOWN_VALUES - 1] + "…"
