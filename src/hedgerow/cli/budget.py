"""`hedgerow budget init`, `hedgerow budget show` and `hedgerow budget unit`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow import formatting
from hedgerow.accounting.advice import delta_left
from hedgerow.accounting.meaning import SUGGESTED_DELTA, TOTAL_DELTA, large_delta, sentence, short
from hedgerow.cli.console import gauge, one_line, say, table, warn
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.accounting.budget_file import Held
    from hedgerow.accounting.units import Unit

app = typer.Typer(
    help="The total ε of a table, in a file that every request is charged to.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
BudgetArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The budget file.", show_default=False)]
Row = Annotated[bool, typer.Option("--row", help="ε is counted for one row: the schemas name no column of persons.")]
Person = Annotated[
    str | None,
    typer.Option("--person", help="ε is counted for one person: the schemas' column of persons.", show_default=False),
]
RowsPerPerson = Annotated[
    int | None,
    typer.Option("--rows-per-person", min=1, help="With --person: as the schemas say.  [default: 1]", show_default=False),
]


@app.command("init")
def init(
    path: BudgetArgument,
    epsilon: Annotated[str, typer.Option("--epsilon", help=f"The total, such as 2 or 1/3. Protection: {short()}.", show_default=False)],
    delta: Annotated[
        str,
        typer.Option(
            "--delta",
            help="The total δ, such as 1e-5: it pays for ten fits at --delta 1e-6.  [default: 0, pure ε alone]",
            show_default=False,
        ),
    ] = "0",
    row: Row = False,
    person: Person = None,
    rows_per_person: RowsPerPerson = None,
) -> None:
    """Make a budget file for one table.

    Use one file for everything that reads the same people's rows, for as long as they exist: the ε of all requests add
    up, and so do their δ. An existing file is never replaced, since that would forget what was spent.

    Give it a --delta, even if you are not sure that you need one: a budget without one pays for pure ε alone, which is less accurate, and
    it cannot be added later. What is not requested is not spent. Each fit with a δ takes its whole δ from the total, so that --delta 1e-5
    pays for ten fits at --delta 1e-6. Keep the total well below one over the number of people: for a million of them rather 1e-7, with
    fits at 1e-8.

    A budget has a unit: ε for one row, or for one person with at most so many rows, as the schema says. Those do not add up, so that
    requests of another unit are refused. Without --row or --person it takes the unit of its first request.

    Example:

        hedgerow budget init budget.json --epsilon 2 --delta 1e-5

        hedgerow budget init budget.json --epsilon 2 --delta 1e-5 --person patient_id --rows-per-person 5
    """
    from hedgerow.accounting.budget_file import BudgetFile

    unit = _unit_given(row, person, rows_per_person)
    made = BudgetFile.create(path, epsilon, delta, unit)
    say(f"made {path}: {formatting.loss(made.epsilon, made.delta)} in all{'' if unit is None else f' for {unit.words}'}, nothing spent")
    say(f"spent in full: {sentence(made.epsilon, made.delta)}")
    if large := large_delta(made.delta):
        warn(large)
    if not made.delta:
        say(
            f"it pays for pure ε alone; for a δ, which buys accuracy on most tables, make it with --delta {TOTAL_DELTA} instead",
            style="yellow",
        )
        return
    say(f"{delta_left(made.delta)} (the ε and the δ of fits add up; a score takes no δ)")
    if made.delta < 2 * Fraction(SUGGESTED_DELTA):
        say(f"for more fits with a δ, make it with --delta {TOTAL_DELTA} instead, before anything is spent", style="yellow")


@app.command("unit")
def unit(path: BudgetArgument, row: Row = False, person: Person = None, rows_per_person: RowsPerPerson = None) -> None:
    """State what a budget is counted in: for a file that was spent from before budgets had a unit.

    You state it of everything that the file has paid for. If it has paid for rows and for persons, no unit is right: leave it, and make a
    budget for each, with what was spent on each taken off its total. A unit that is known stays as it is.

    Example:

        hedgerow budget unit budget.json --person patient_id --rows-per-person 5
    """
    from hedgerow.accounting.budget_file import BudgetFile

    stated = _unit_given(row, person, rows_per_person)
    if stated is None:
        raise PlanError("--row, --person: got neither; expected --row, or --person COLUMN --rows-per-person K, as the schemas said.")
    BudgetFile(path).state_unit(stated)
    say(f"{path} is for {stated.words}")


def _unit_given(row: bool, person: str | None, rows_per_person: int | None) -> Unit | None:
    from hedgerow.accounting.units import ROW, Unit

    if row and (person is not None or rows_per_person is not None):
        raise PlanError("--row: it says that rows are counted, and --person that persons are; expected one of them.")
    if rows_per_person is not None and person is None:
        raise PlanError("--rows-per-person: it needs --person, the column that says whose row it is.")
    return ROW if row else None if person is None else Unit(person, rows_per_person)


@app.command("show")
def show(
    file: Annotated[str, typer.Argument(metavar="FILE|URL", help="The budget file; or a dataset's page at a service.", show_default=False)],
) -> None:
    """Show the requests, what they cost and what is left. Of a dataset at a service: what is left for you, for each purpose.

    A request that crashed or was interrupted never settled: its rows may have been looked at, so all that it reserved
    stays spent.

    Example:

        hedgerow budget show budget.json

        hedgerow budget show https://curator.example/datasets/patients
    """
    from hedgerow.accounting.budget_file import BudgetFile

    if file.startswith(("https://", "http://")):
        _show_service(file)
        return
    path = Path(file)
    held = BudgetFile(path).read()  # once: another process may charge between two reads
    total, total_delta, entries = held.epsilon, held.delta, held.entries
    spent = sum((entry.cost for entry in entries), start=total * 0)
    rows = [
        (
            entry.when,
            entry.shown,
            formatting.amount(entry.reserved),
            "not settled: stays spent" if entry.spent is None else formatting.amount(entry.spent),
            *([formatting.amount(entry.delta)] if total_delta else []),
        )
        for entry in entries
    ]
    if rows:
        heads = ["when", "what", "reserved ε", "spent ε", *(["δ"] if total_delta else [])]
        table("requests", heads, rows, numbers=(2, 3, 4)[: len(heads) - 2])
    else:
        say("no requests yet")
    say(f"unit: {_unit_shown(held)}")
    say(f"total ε {formatting.amount(total)}, spent {formatting.amount(spent)}, remaining {formatting.amount(total - spent)}")
    say(gauge(spent, total))
    if total_delta:
        gone = sum((entry.delta for entry in entries), start=total * 0)
        say(f"total δ {formatting.amount(total_delta)}, spent {formatting.amount(gone)}, remaining {formatting.amount(total_delta - gone)}")
        if spent < total:
            say(delta_left(total_delta - gone))


def _show_service(url: str) -> None:
    """Asks the service, which keeps the total: nothing is spent."""
    from hedgerow.cli.service import ServiceDataset

    found = ServiceDataset.at(url, None).public
    if found.closed:
        warn("the dataset is closed: nothing more is answered")
    rows = [(purpose, formatting.amount(left.epsilon), formatting.amount(left.delta)) for purpose, left in found.purposes.items()]
    table(f"left for you of {one_line(found.name)}", ["purpose", "ε", "δ"], rows, numbers=(1, 2))
    say(f"unit: {'not stated' if found.unit is None else found.unit.words}")


def _unit_shown(held: Held) -> str:
    older = len(held.before_units)
    if held.unit is None:
        return "not stated: see `hedgerow budget unit`" if older else "that of the first request"
    stated = f"; of {older} older {'request' if older == 1 else 'requests'} its owner has stated it" if older else ""
    return f"{held.unit.words}{stated}"
