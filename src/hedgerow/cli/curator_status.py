"""`hedgerow curator status`: what an owner should know today, in ten lines."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.console import say
from hedgerow.cli.ledger import Address, existing

if TYPE_CHECKING:
    from hedgerow.curator.ledger.ledger import Ledger

SHOWN = 3  # datasets
SOON = timedelta(days=14)


def status(
    address: Address,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="The curator's folder, where the ledger is elsewhere.", show_default=False)
    ] = None,
) -> None:
    """Say in ten lines how things are: what is spent, what waits or has failed, the last backup, the last verified head.

    It only reads, and may be run while the service does. What was verified and copied is what the commands and the starts have noted;
    `hedgerow ledger verify` looks itself.

    Example:

        hedgerow curator status curator/
    """
    ledger = existing(address)
    file = ledger.database.file
    for name, text in _lines(ledger, folder if folder is not None else None if file is None else file.parent):
        say(f"{name:<10} {text}")


def _lines(ledger: Ledger, folder: Path | None) -> Iterator[tuple[str, str]]:
    from hedgerow.accounting.loss import text_of_fraction as exact
    from hedgerow.curator.http.single_instance import is_served
    from hedgerow.curator.ledger.accounts import Accounts
    from hedgerow.curator.ledger.answers import Answers
    from hedgerow.curator.ledger.balances import DATASET
    from hedgerow.curator.ledger.notes import notes_in

    served = is_served(ledger.database)
    yield "service", {True: "running", False: "stopped", None: "not known: the ledger is on a server"}[served]
    wholes = [balance for balance in ledger.balances() if balance.scope == DATASET]
    wholes.sort(key=lambda balance: (balance.closed, balance.remaining or Fraction(0)))
    for whole in wholes[:SHOWN]:
        limit = "no ceiling" if whole.epsilon is None else f"of {exact(whole.epsilon)}"
        yield "spent", f"{whole.dataset}: ε = {exact(whole.spent)} {limit}{' (closed)' if whole.closed else ''}"
    if len(wholes) > SHOWN:
        yield "spent", f"and {len(wholes) - SHOWN} more: hedgerow ledger show"
    elif not wholes:
        yield "spent", "no datasets yet"
    left = ledger.unsettled()
    amount = exact(sum((reserved.epsilon for reserved in left), Fraction(0)))
    words = "under way or left by a crash" if served is not False else "left by a crash"
    yield "waiting", f"{len(left)} reservation(s), ε = {amount}: {words}" if left else "nothing"
    lost = Answers(ledger.database).unanswered()
    yield "failed", f"{len(lost)} paid without an answer, the last on {lost[-1].when}: hedgerow curator lost" if lost else "nothing"
    accounts = Accounts(ledger.database)
    valid = [token for token in accounts.tokens() if accounts.state(token) == "valid"]
    soon = (datetime.now(UTC) + SOON).strftime("%Y-%m-%dT%H:%M:%SZ")
    ending = sum(token.expires < soon for token in valid)
    yield "people", f"{len(accounts.people())}, with {len(valid)} valid token(s), of which {ending} end within {SOON.days} days"
    notes = {} if folder is None else notes_in(folder)
    yield "backup", notes.get("backup", "none by `hedgerow ledger backup`")
    yield "verified", notes.get("verified", "never")
    yield "head", f"{ledger.head()}; {_heads(ledger)}"
    if folder is not None:
        yield "disk", f"{shutil.disk_usage(folder).free / 1e9:,.1f} GB are free"


def _heads(ledger: Ledger) -> str:
    heads = ledger.database.heads
    if heads is None or not heads.exists:
        return "no file of heads"
    lines = heads.good_lines()
    return f"kept in {heads.path.name}" if ledger.head() in {line.head for line in lines[-100:]} else "NOT in the file of heads: verify it"
