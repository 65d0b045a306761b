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
    from hedgerow.curator.http.service_context import Curator
    from hedgerow.curator.ledger.balances import Balance
    from hedgerow.curator.ledger.chain import Reserved
    from hedgerow.curator.ledger.ledger import Ledger

SHOWN = 3  # datasets, and ceilings of analysts and purposes that are used up
SOON = timedelta(days=14)
REASON = 100  # characters


def status(
    address: Address,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="The curator's folder, where the ledger is elsewhere.", show_default=False)
    ] = None,
) -> None:
    """Say in about ten lines how things are: what is spent, what waits or has failed, the last backup, the last verified head.

    Of the datasets it has the three of whose ceilings most is spent, and names analysts and purposes whose own ceilings are used up;
    `hedgerow ledger show` has all.

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
    from hedgerow.curator.ledger.balances import DATASET
    from hedgerow.curator.ledger.notes import notes_in
    from hedgerow.formatting import amount

    served, notes = is_served(ledger.database), {} if folder is None else notes_in(folder)
    yield "service", _service(served, notes)
    balances = ledger.balances()
    wholes = [balance for balance in balances if balance.scope == DATASET]
    wholes.sort(key=lambda balance: (balance.closed, -_share(balance), balance.dataset))
    for whole in wholes[:SHOWN]:
        limit = "no ceiling" if whole.epsilon is None else f"of {exact(whole.epsilon)}"
        deltas = f", δ = {amount(whole.spent_delta)} of {amount(whole.delta)}" if whole.delta else ""
        yield "spent", f"{whole.dataset}: ε = {exact(whole.spent)} {limit}{deltas}{' (closed)' if whole.closed else ''}"
    if len(wholes) > SHOWN:
        yield "spent", f"and {len(wholes) - SHOWN} more: hedgerow ledger show"
    elif not wholes:
        yield "spent", "no datasets yet"
    closed = {whole.dataset for whole in wholes if whole.closed}
    full = [each.words for each in balances if each.scope != DATASET and each.used_up() and each.dataset not in closed]
    if full:
        more = f", and {len(full) - SHOWN} more: hedgerow ledger show" if len(full) > SHOWN else ""
        yield "used up", f"the ceiling of {', '.join(full[:SHOWN])}{more}"
    yield from _requests(ledger, folder, served, notes)
    accounts = Accounts(ledger.database)
    valid = [token for token in accounts.tokens() if accounts.state(token) == "valid"]
    soon = (datetime.now(UTC) + SOON).strftime("%Y-%m-%dT%H:%M:%SZ")
    ending = sum(token.expires < soon for token in valid)
    yield "people", f"{len(accounts.people())}, with {len(valid)} valid token(s), of which {ending} end within {SOON.days} days"
    yield "backup", notes.get("backup", "none by `hedgerow ledger backup`")
    yield "verified", notes.get("verified", "never")
    yield "head", _head(ledger)
    if folder is not None:
        yield "disk", f"{shutil.disk_usage(folder).free / 1e9:,.1f} GB are free"


def _share(balance: Balance) -> Fraction:
    """How much of its ceiling is spent, in ε or in δ, whichever is more; none has -1."""
    if balance.epsilon is None:
        return Fraction(-1)
    pairs = ((balance.spent, balance.epsilon), (balance.spent_delta, balance.delta))
    return max(spent / limit if limit else Fraction(limit is not None and not balance.remaining) for spent, limit in pairs)


def _service(served: bool | None, notes: dict[str, str]) -> str:
    """A service that was killed has not said that it stopped."""
    from hedgerow.curator.ledger.notes import STARTED, STOPPED, time_of

    if served is None:
        return "not known: the ledger is on a server"
    started, stopped = time_of(notes.get(STARTED, "")), time_of(notes.get(STOPPED, ""))
    if served:
        return f"running since {started}" if started else "running"
    if started and stopped < started:
        return f"stopped without saying so: killed, or the machine went down (it was started at {started})"
    return f"stopped at {stopped}" if stopped else "stopped"


def _requests(ledger: Ledger, folder: Path | None, served: bool | None, notes: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What is under way, and what has failed: lost, where rows may have been looked at, or given back."""
    from hedgerow.accounting.loss import text_of_fraction as exact
    from hedgerow.curator.http.recovery import failed_requests, lost_requests
    from hedgerow.curator.http.service_context import Curator
    from hedgerow.curator.http.storing import UNSTORED

    curator, left = Curator.of(ledger.database, Path()), ledger.unsettled()
    on_file = frozenset() if folder is None else frozenset(path.stem for path in (folder / UNSTORED).glob("*.json"))
    live = _perhaps_under_way(curator, left, served, notes)
    lost = lost_requests(curator, live | on_file)
    gone = {each.reserved.key for each in lost}
    waiting = [reserved for reserved in left if reserved.key not in gone]
    amount = exact(sum((reserved.epsilon for reserved in waiting), Fraction(0)))
    words = "under way" if served else "under way, or left by a crash"
    if served is False:
        stored = sum(reserved.key in on_file for reserved in waiting)
        begun = f"{stored} with an answer that the next start stores" if stored else ""
        unopened = f"{len(waiting) - stored} never begun, which the next start gives back" if len(waiting) > stored else ""
        words = ", ".join(filter(None, (begun, unopened)))
    yield "waiting", f"{len(waiting)} reservation(s), ε = {amount}: {words}" if waiting else "nothing"
    failed, found = failed_requests(curator), []
    if lost:
        amount = exact(sum((each.reserved.cost for each in lost), Fraction(0)))
        found.append(f"{len(lost)} paid without an answer, ε = {amount}, the last on {lost[-1].reserved.when}: hedgerow curator lost")
    if failed:
        why = failed[-1].reason if len(failed[-1].reason) <= REASON else f"{failed[-1].reason[: REASON - 1]}…"
        found.append(f"{len(failed)} failed and given back, the last on {failed[-1].reserved.when}: {why}")
    yield "failed", "; ".join(found) or "nothing"


def _perhaps_under_way(curator: Curator, left: list[Reserved], served: bool | None, notes: dict[str, str]) -> frozenset[str]:
    """What was reserved since the last start, and has no reason noted; where no start is noted, all that has none."""
    from hedgerow.curator.ledger.notes import STARTED

    if served is False:
        return frozenset()
    number = notes.get(STARTED, "").partition(": ")[2].partition(":")[0]
    since, reasons = int(number) if number.isdigit() else 0, curator.requests.reasons()
    return frozenset(reserved.key for reserved in left if reserved.seq > since and reserved.key not in reasons)


def _head(ledger: Ledger) -> str:
    """The end of the chain, compared with the file of heads; a service may write meanwhile."""
    from hedgerow.curator.ledger.heads import KEPT
    from hedgerow.curator.ledger.keeping import named_key

    heads, head = ledger.database.heads, ledger.head()
    if heads is None or not heads.exists:
        missed = heads is not None and heads.expected and named_key(ledger) is not None
        return f"{head}; {'WARNING: the file of heads is missing. Put it back' if missed else 'no file of heads'}"
    lines = heads.good_lines()
    end = max((line.head.seq for line in lines if line.word == KEPT), default=0)
    last = ledger.head().seq
    if end > last:
        return (
            f"{head}; WARNING: the file of heads has {end}, so that the end of the ledger is missing: an older copy was put back, or it "
            "was cut off. Nothing is served from it. Look with `hedgerow ledger verify`"
        )
    if head not in {line.head for line in lines}:
        return f"{head}; WARNING: it is NOT in the file of heads. Nothing is served from it. Look with `hedgerow ledger verify`"
    return f"{head}; kept in {heads.path.name}"
