"""`hedgerow budget init` and `hedgerow budget show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.console import gauge, say, table

app = typer.Typer(
    help="The total ε of a table, in a file that every request is charged to.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
BudgetArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The budget file.", show_default=False)]


@app.command("init")
def init(
    path: BudgetArgument,
    epsilon: Annotated[str, typer.Option("--epsilon", help="The total, such as 2 or 1/3.", show_default=False)],
) -> None:
    """Make a budget file for one table.

    Use one file for everything that reads the same people's rows, for as long as they exist: the ε of all requests add
    up. An existing file is never replaced, since that would forget what was spent.

    Example:

        hedgerow budget init budget.json --epsilon 2
    """
    from hedgerow.accounting.budget_file import BudgetFile
    from hedgerow.accounting.loss import text_of_fraction

    made = BudgetFile.create(path, epsilon)
    say(f"made {path}: ε = {text_of_fraction(made.epsilon)} in all, nothing spent")


@app.command("show")
def show(path: BudgetArgument) -> None:
    """Show what was asked, what it cost and what is left.

    A request that crashed or was interrupted never settled: its rows may have been looked at, so all that it reserved
    stays spent.

    Example:

        hedgerow budget show budget.json
    """
    from hedgerow.accounting.budget_file import BudgetFile
    from hedgerow.accounting.loss import text_of_fraction as exact

    budget = BudgetFile(path)
    total, entries = budget._read()  # once: another process may charge between two reads
    spent = sum((entry.cost for entry in entries), start=total * 0)
    rows = [
        (
            entry.when,
            entry.what,
            exact(entry.reserved),
            "not settled: stays spent" if entry.spent is None else exact(entry.spent),
        )
        for entry in entries
    ]
    if rows:
        table("requests", ["when", "what", "reserved ε", "spent ε"], rows, numbers=(2, 3))
    else:
        say("no requests yet")
    say(f"total ε {exact(total)}, spent {exact(spent)}, remaining {exact(total - spent)}")
    say(gauge(spent, total))
