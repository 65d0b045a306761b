"""`hedgerow schema draft`, `edit`, `review` and `check`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.console import say, table
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import CSVOfRows, csv_rows
from hedgerow.errors import PlanError, SchemaError

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
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            help="A column that stays in though it looks like an identifier, or has one value alone. May be repeated.",
            show_default=False,
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop", help="A column to leave out, such as one that is not known beforehand. May be repeated.", show_default=False
        ),
    ] = None,
    csv: CSVOfRows = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a first schema from a table, for you to review.

    The draft is read from the private rows: its values and bounds are as private as they are, and every entry is marked
    `unreviewed`. Compare each with what is publicly known, widen bounds, add values that could occur, then accept it with
    `hedgerow schema review`. Until then nothing can be claimed for a forest trained with it.

    Columns that look like identifiers are left out, and those in which every row has the same value. Columns that tell the class
    nearly alone are named: they may say what became of it; so are those that nearly follow from others. '?', 'NA' and empty cells are taken
    for missing, codes such as 0042 stay text, dates count as days, bounds are rounded outward.
    In Python: `hedgerow.Schema.draft(df, "class")`.

    With --person, what is trained protects persons and not rows: at most --rows-per-person rows of each are counted, and the noise
    grows with that number. The column is not learnt from.

    Example:

        hedgerow schema draft data.csv --target class -o schema.toml

        hedgerow schema draft visits.csv --target outcome --person patient_id --rows-per-person 5
    """
    if rows_per_person is not None and person is None:
        raise PlanError("--rows-per-person: it needs --person, the column that says whose row it is.")
    check_output(output, [data], force)
    from hedgerow.cli.errors import in_options
    from hedgerow.engines.draft import draft_from_file

    schema = draft_from_file(csv_rows(data, csv), target, person, rows_per_person, keep or (), drop or ())
    schema.save(output)
    say(f"wrote {output}: {len(schema.attributes)} attributes, target {schema.target.name}. It is as private as {data}.")
    for hint in schema.hints:
        say(f"hint: {in_options(hint)}.", style="yellow")
    for note in schema.notes:
        say(in_options(note))
    say("next:")
    say(f"  1. hedgerow schema review {output}            # a table of what was read; edit the file where only the data tells it")
    say(f"  2. hedgerow schema review {output} --accept   # once every entry is a public fact")
    say(f"  3. hedgerow schema check {output} {data}   # what of the table does not fit, before you pay: for your eyes alone")


@app.command("edit")
def edit(
    schema_file: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema (TOML).", show_default=False)],
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser, or only print its address.")] = True,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
) -> None:
    """Edit a schema on a page in your browser: bounds, values, and what is public.

    The page is served on this machine alone, at an address that nobody can guess, until you press "Save and finish" (or Ctrl-C here). It
    needs no network and no script. Each save replaces the file whole; what was there before stays beside it, as SCHEMA.bak.

    Exit code 0: every entry is reviewed. 1: some still wait.

    Example:

        hedgerow schema edit schema.toml
    """
    import webbrowser

    from hedgerow.cli.schema_edit import Editor
    from hedgerow.schema.schema import Schema

    Schema.load(schema_file)
    check_output(schema_file, [])
    try:
        editor = Editor(schema_file, port)
    except OSError as error:
        raise PlanError(f"--port: {port} cannot be listened on ({error.strerror}). Choose another, or leave it out.") from None
    with editor:
        print(f"edit {schema_file} at {editor.url}", flush=True)  # whole, to be copied: an address must not be wrapped
        say('until "Save and finish" on the page, or Ctrl-C here')
        if browser:
            webbrowser.open(editor.url)
        with contextlib.suppress(KeyboardInterrupt):
            editor.serve_forever(poll_interval=0.1)
    left = Schema.load(schema_file).unreviewed
    say(f"{'saved' if editor.file.saved else 'not changed'}: {schema_file}")
    if left:
        say(f"still unreviewed: {', '.join(left)}", style="yellow")
        raise typer.Exit(TO_DO)
    say("valid and reviewed", style="green")


@app.command("review")
def review(
    schema_file: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema (TOML).", show_default=False)],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="Entries to accept; all if only --accept is given.", show_default=False)
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Accept the named entries, or all: you state that they are public facts.")
    ] = False,
) -> None:
    """Look at what a draft read from the data, and accept it.

    Without more it prints the entries that wait for review and changes nothing. With names it accepts those, with --accept all: their
    `unreviewed` marks go, and the rest of the file stays as it is. You state with it that they are known without the table:
    what only the rows tell (the largest income, a rare diagnosis) would be published with every forest.

    Example:

        hedgerow schema review schema.toml

        hedgerow schema review schema.toml age sex

        hedgerow schema review schema.toml --accept
    """
    from hedgerow.schema.review import accepted_text
    from hedgerow.schema.schema import Schema

    schema = Schema.load(schema_file)
    waiting = schema.unreviewed
    if not names and not accept:
        show(schema, only=waiting)
        if not waiting:
            say("nothing waits for review", style="green")
            return
        say(
            "Would somebody who has never seen the table know these values and bounds? If not, put public ones in their place:",
            style="yellow",
        )
        say(f'  widen bounds, add values that could occur, or give other = "other", in {schema_file}')
        say(f"then: hedgerow schema review {schema_file} --accept   (or the names of those that are done)")
        raise typer.Exit(TO_DO)
    text = accepted_text(schema_file.read_text(encoding="utf-8"), names or waiting, str(schema_file))
    schema_file.write_text(text, encoding="utf-8")
    left = Schema.load(schema_file).unreviewed
    done = [name for name in waiting if name not in left]
    say(f"accepted as public facts: {', '.join(done) or 'nothing that waited'}")
    if left:
        say(f"still unreviewed: {', '.join(left)}", style="yellow")
        raise typer.Exit(TO_DO)
    say("valid and reviewed", style="green")


@app.command("check")
def check(
    schema_file: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema (TOML).", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", help="CSV (also .gz, .zst) or Parquet file, to count what does not fit.", show_default=False),
    ] = None,
    csv: CSVOfRows = None,
) -> None:
    """Check a schema, list what still waits for review, and count what of a table does not fit it.

    With a table: how many values of each column are missing, undeclared or not readable (numbers such as 65,447.20), or beyond the
    bounds, and how many rows have no declared class; what is missing where the schema declares `missing` fits, and stands on a line of
    its own. Where the schema names persons: how many they are, and how many rows are beyond rows_per_person, which are not counted.
    Look at it before you pay: a fit never raises an error because of a value. These are exact counts, for the owner of the rows alone:
    do not publish them. No ε is spent, because nothing is released; and what you change in the schema must still be a public fact.

    Exit code 0: valid and reviewed. 1: valid, but entries are unreviewed. 2: not valid, or no row of the table would be counted, or of a
    column no value can be read.

    Example:

        hedgerow schema check schema.toml

        hedgerow schema check schema.toml patients.csv
    """
    from hedgerow.schema.schema import Schema

    schema, misfits = Schema.load(schema_file), False
    if data is None:
        show(schema)
    else:
        misfits = _show_misfits(schema, data, csv)
        hint_at_single_values(schema)
    if schema.unreviewed:
        say(f"unreviewed: {', '.join(schema.unreviewed)}", style="yellow")
        say(f"They were read from the data. `hedgerow schema review {schema_file}` shows them; add --accept once they are public facts.")
        raise typer.Exit(TO_DO)
    if misfits:
        say("the schema is valid and reviewed; look at the values above that do not fit before you pay", style="yellow")
        return
    say("valid and reviewed", style="green")


def _show_misfits(schema: Schema, data: Path, csv: str | None) -> bool:
    """Whether there are any."""
    from hedgerow.cli.errors import in_options
    from hedgerow.engines.table_check import EYES_ALONE, check_table

    found = check_table(csv_rows(data, csv), schema)
    rows, misfits = found.rows, found.misfits
    if misfits:
        heads = ["column", "missing, no branch", "undeclared or not readable", "below the bounds", "above", "which are undeclared"]
        table(f"values of {data} that do not fit, of {rows:,} rows", heads, misfits, numbers=range(1, 5))
    elif rows:
        say(f"every value of {data} fits: {rows:,} rows")
    for each in filter(None, (found.expected, found.persons)):
        say(each)
    for hint in found.hints:
        say(f"hint: {in_options(hint)}.", style="yellow")
    say(EYES_ALONE)
    if found.unreadable:
        raise SchemaError(f"{data}: {found.unreadable}")
    return bool(misfits)


def show(schema: Schema, only: tuple[str, ...] = ()) -> None:
    """The public facts as a table, of all attributes or of some."""
    shown = [attribute for attribute in schema.attributes if not only or attribute.name in only]
    rows = [(attribute.name, *_facts(attribute), "no" if attribute.unreviewed else "yes") for attribute in shown]
    table("attributes", ["name", "kind", "domain", "undeclared value", "missing value", "reviewed"], rows)
    classes = ", ".join(map(str, schema.target.classes))
    say(f"target: {schema.target.name} with {len(schema.target.classes)} classes: {_short(classes)}")
    rows_text = "private (a noisy number is paid for where it is needed)" if schema.rows is None else f"{schema.rows:,}, public"
    say(f"rows:   {rows_text}")
    if schema.person is not None:
        say(f"person: one value of {schema.person}; at most {schema.k:,} {'row' if schema.k == 1 else 'rows'} of each count")
    hint_at_single_values(schema)
    if schema.csv is not None:
        say(f"csv:    {', '.join(f'{name} {value!r}' for name, value in schema.csv.to_plain().items()) or 'as usual'}")


def hint_at_single_values(schema: Schema) -> None:
    if schema.single_valued:
        say(
            f"hint: with one declared value alone, {', '.join(schema.single_valued)} tells nothing about {schema.target.name} and may take "
            "its part of the ε: leave it out of the schema, or declare the other values that could occur.",
            style="yellow",
        )


def _facts(attribute: Attribute) -> tuple[str, str, str, str]:
    from hedgerow.schema.attributes import Categorical

    stops = "not counted"
    if isinstance(attribute, Categorical):
        values = _short(", ".join(map(str, attribute.domain)))
        other = attribute.other or stops
        return "categorical", f"{len(attribute.domain)}: {values}", other, attribute.missing or other
    cells = f", {len(attribute.edges) - 1} declared cells" if attribute.edges else ""
    return (
        f"date, {attribute.date}" if attribute.date is not None else "numeric, whole" if attribute.integer else "numeric",
        attribute.bounds_text + cells,
        "nearest bound",
        attribute.missing or stops,
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_VALUES else text[: _SHOWN_VALUES - 1] + "…"
