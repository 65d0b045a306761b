"""From an error to one clear message and an exit code; from a warning to one line."""

from __future__ import annotations

import re
import sys
import warnings
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from hedgerow.cli.commands import COMMANDS, loaded
from hedgerow.cli.console import complain, warn
from hedgerow.errors import BudgetError, HedgerowError, HedgerowWarning, LedgerError

LIST_OF = re.compile(r"(?P<name>drop)=(?P<names>\[[^]]*])")  # a setting with names in it
REFUSED = 2
REFUSED_BY_BUDGET = 3
INTERRUPTED = 130
OPTION_OF = {  # what Python calls a setting, and what the command line does
    "max_depth": "--depth",
    "n_estimators": "--trees",
    "max_leaves": "--max-leaves",
    "max_passes": "--max-passes",
    "min_rows": "--min-rows",
    "min_leaf": "--min-leaf",
    "confidence: got": "--confidence: got",
    "at most 0.5, or None to prune nothing": "at most 0.5, or 1 (--unpruned) to prune nothing",
    "noise_rule": "--noise-rule",
    "stopping_rule": "--stopping-rule",
    "random_state": "--seed",
    "bins: got": "--bins: got",
    "sampler: got": "--sampler: got",
    "label: got": "--class: got",
    "epsilon=1": "--epsilon 1",
    "public_plan(rows=10000)": "--rows 10000",
    "plan(rows=10000)": "--rows 10000",
    "--batches (batches=True)": "--batches",
    "--disjoint (disjoint=True)": "--disjoint",
    "--other-rows (other_rows=True)": "--other-rows",
    "batch: this dataset": "--batch: this dataset",
    "epsilon: the ": "--epsilon: the ",
    "batch: '": "--batch: '",
    "schema.accept() or `hedgerow schema review FILE --accept`; or say fit(..., accept_draft=True), which claims no ε": (
        "`hedgerow schema review FILE --accept`"
    ),
    "person='COLUMN'": "--person COLUMN",
    "keep=['COLUMN']": "--keep COLUMN",
    "batch='NAME'": "--batch NAME",
    "owner='NAME'": "--owner NAME",
    "again=True": "--again",
    "person: the table has": "--person: the table has",
    "keep: the table has": "--keep: the table has",
    "drop: the table has": "--drop: the table has",
    "schema.rows": "rows in the schema",
    "alike (like) or an earlier release (forest)": "alike (--like) or an earlier release (--forest)",
    "Set delta=0 (leave --delta out)": "Leave --delta out",
    "`hedgerow fit --batch`, `partial_fit`": "`hedgerow fit --batch`",
    "`hedgerow update` (`partial_fit`)": "`hedgerow update`",
}


def in_options(message: str) -> str:
    """An error text in the words of the command line."""
    for name, option in OPTION_OF.items():
        message = message.replace(name, option)
    return LIST_OF.sub(_options, message)


def _options(found: re.Match[str]) -> str:
    """ "--drop a --drop 'b c'" of "drop=['a', 'b c']", to be pasted."""
    try:
        return " ".join(f"--{found['name']} {quote(each)}" for each in literal_eval(found["names"]))
    except (SyntaxError, ValueError):
        return found[0]


class CommandGroup(TyperGroup):
    """All commands of hedgerow: errors made on purpose are messages, anything else keeps its traceback.

    Until one is called, it is known by its line in the help alone.
    """

    _listing = False

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: TyperCommand(name, help=each.help, rich_markup_mode="markdown") for name, each in COMMANDS.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return loaded(cmd_name) if cmd_name in COMMANDS and not self._listing else self.commands.get(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings_as_lines():
                result = super().invoke(ctx)
                sys.stdout.flush()  # here, so that a broken pipe is noticed while it can still be handled
                return result
        except LedgerError as error:  # a BudgetError, too, but not for lack of money
            complain(in_options(str(error)))
            raise typer.Exit(REFUSED) from error
        except BudgetError as error:
            complain(str(error))
            raise typer.Exit(REFUSED_BY_BUDGET) from error
        except HedgerowError as error:
            complain(in_options(str(error)))
            raise typer.Exit(REFUSED) from error
        except BrokenPipeError:
            raise  # typer ends quietly
        except OSError as error:
            if error.filename is None:
                raise
            complain(f"{str(error.filename)!r}: {error.strerror}.")
            raise typer.Exit(REFUSED) from error


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show the package's own warnings as a line each, without the source line that Python adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", HedgerowWarning)
        as_before = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, HedgerowWarning):
                warn(str(message))
            else:
                as_before(message, category, *rest, **more)

        warnings.showwarning = show
        yield
