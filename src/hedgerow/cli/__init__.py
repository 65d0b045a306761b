"""The command `hedgerow`. One file for each command, imported when it is called (`commands.py`); heavy packages are imported inside them.

Exit codes: 0 done, 1 `schema check`, `verify` or `ledger verify` found something to do or `audit` a violation, 2 refused (the message
says why), 3 refused by the budget, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from typing import Annotated

import typer

from hedgerow import __version__
from hedgerow.cli.errors import CommandGroup

app = typer.Typer(
    name="hedgerow",
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # an unexpected error keeps Python's own traceback, which shows no values
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"hedgerow {__version__}")
        raise typer.Exit()


@app.callback()
def hedgerow(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Private decision forests: learn from a sensitive table, publish the result with an exact ε.

    ε is the privacy loss: the smaller, the more noise and the better each row is hidden. You write down the public
    facts about a table, set a total ε, and every query of the rows is charged before it runs. A typical sequence:

        hedgerow schema draft data.csv --target class -o schema.toml
        hedgerow schema review schema.toml     (it may hold public facts only; --accept once it does)
        hedgerow budget init budget.json --epsilon 2 --delta 1e-5
        hedgerow plan --schema schema.toml --epsilon 1 --delta 1e-6 --rows 10000
        hedgerow fit data.csv --schema schema.toml --epsilon 1 --delta 1e-6 --budget budget.json -o forest.json
        hedgerow evaluate forest.json test.csv --epsilon 0.1 --budget budget.json
        hedgerow show forest.json
        hedgerow predict forest.json new-rows.csv -o predictions.csv

    Only forest.json and the printed score may leave the room. `hedgerow demo` shows all of this on data that comes with
    the package. Rows that come later are added with `hedgerow update`. Several owners who may not pool their rows share a plan:

        hedgerow plan --schema schema.toml --epsilon 0.5 --rows 30000 --owners 3 --save plan.json
        hedgerow count plan.json office-a.csv -o office-a.json --disjoint     (each owner, on its own rows)
        hedgerow merge office-*.json -o forest.json
    """


def main() -> None:
    """The entry point of the command `hedgerow`."""
    gc.set_threshold(50_000)  # what packages make when they are imported stays: looking through it for garbage takes a tenth of a start
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError):
            # A terminal that cannot show ε gets "?" instead of an error.
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    with contextlib.suppress(ValueError, OSError):  # not the main thread, or no such signal here
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # files in between are taken away, as after Ctrl-C
    app(prog_name="hedgerow")
