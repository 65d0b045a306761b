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
    delta: Annotated[
        str,
        typer.Option(
            "--delta", help="The total δ, such as 1e-6, for (ε, δ)-private requests.  [default: 0, pure ε alone]", show_default=False
        ),
    ] = "0",
) -> None:
    """Make a budget file for one table.

    Use one file for everything that reads the same people's rows, for as long as they exist: the ε of all requests add
    up, and so do their δ. An existing file is never replaced, since that would forget what was spent.

    Example:

        hedgerow budget init budget.json --epsilon 2

        hedgerow budget init budget.json --epsilon 2 --delta 1e-6
    """
    from hedgerow.accounting.budget_file import BudgetFile
    from hedgerow.accounting.loss import text_of_loss

    made = BudgetFile.create(path, epsilon, delta)
    say(f"made {path}: {text_of_loss(made.epsilon, made.delta)} in all, nothing spent")


@app.command("show")
def show(path: BudgetArgument) -> None:
    """Show what was asked, what it cost and what is left.

    A request that crashed or was interrupted never settled: its rows may have been looked at, so all that it reserved
    stays spent.

    Example:

        hedgerow budget show budget.json
    """
    from hedgerow.accounting.budget_file import BudgetFile
    from hedgerow.accounting.loss import text_of_delta
    from hedgerow.accounting.loss import text_of_fraction as exact

    budget = BudgetFile(path)
    total, chance, entries = budget._read()  # once: another process may charge between two reads
    spent = sum((entry.cost for entry in entries), start=total * 0)
    rows = [
        (
            entry.when,
            entry.what,
            exact(entry.reserved),
            "not settled: stays spent" if entry.spent is None else exact(entry.spent),
            *([text_of_delta(entry.delta)] if chance else []),
        )
        for entry in entries
    ]
    if rows:
        heads = ["when", "what", "reserved ε", "spent ε", *(["δ"] if chance else [])]
        table("requests", heads, rows, numbers=(2, 3, 4)[: len(heads) - 2])
    else:
        say("no requests yet")
    say(f"total ε {exact(total)}, spent {exact(spent)}, remaining {exact(total - spent)}")
    say(gauge(spent, total))
    if chance:
        gone = sum((entry.delta for entry in entries), start=total * 0)
        say(f"total δ {text_of_delta(chance)}, spent {text_of_delta(gone)}, remaining {text_of_delta(chance - gone)}")
