"""`hedgerow ledger`: show, verify, export and back up a curator's ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow import formatting
from hedgerow.cli.console import gauge, say, table, warn
from hedgerow.cli.console import note as beside
from hedgerow.cli.outputs import check_output
from hedgerow.errors import LedgerError

if TYPE_CHECKING:
    from hedgerow.curator.ledger.balances import Balance
    from hedgerow.curator.ledger.database import Database
    from hedgerow.curator.ledger.ledger import Ledger

NOT_SOUND = 1

app = typer.Typer(
    help="The ledger of a data owner's service: who may spend how much ε, and what was spent.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
Address = Annotated[
    str, typer.Argument(metavar="LEDGER", help="The folder of the ledger, or postgresql://user@host/name.", show_default=False)
]


@app.command("show")
def show(address: Address) -> None:
    """Show every dataset: what was spent, by whom and for what, and what is left.

    A reservation that has not settled is listed: its request is under way now, or a crash has ended it. Until it settles all of it counts
    as spent. After a crash the next start of the service gives it back if no row was read, and otherwise it remains spent for good.

    Example:

        hedgerow ledger show curator/
    """
    from hedgerow.curator.ledger.balances import DATASET

    ledger = existing(address)
    balances = ledger.balances()
    if not balances:
        say("no datasets yet")
    for whole in (balance for balance in balances if balance.scope == DATASET):
        lines = [
            (
                "everyone" if balance.scope == DATASET else f"{balance.scope} {balance.name}",
                formatting.amount(balance.spent),
                "no ceiling of its own" if balance.epsilon is None else formatting.amount(balance.epsilon),
                formatting.amount(balance.spent_delta),
                "" if balance.delta is None else formatting.amount(balance.delta),
            )
            for balance in sorted(balances, key=lambda balance: balance.scope != DATASET)
            if balance.dataset == whole.dataset
        ]
        title = f"{whole.dataset}{' (closed)' if whole.closed else ''}{unit_of_account(whole)}"
        table(title, ["who or what for", "spent ε", "ceiling ε", "spent δ", "ceiling δ"], lines, numbers=(1, 2, 3, 4))
        if whole.epsilon:
            say(gauge(whole.spent, whole.epsilon))
    open_ones = ledger.unsettled()
    if open_ones:
        warn(
            "requests that have not settled: under way now, or ended by a crash. Their whole ε counts as spent until they settle. After a "
            "crash, the next `hedgerow serve` gives back those that have read no row; the others remain spent, since nobody knows what "
            "was seen"
        )
        heads = ["when", "dataset", "analyst", "purpose", "what", "ε", "δ", "rows looked at"]
        amounts = [(formatting.amount(r.epsilon), formatting.amount(r.delta)) for r in open_ones]
        rows = [
            (r.when, r.dataset, r.analyst, r.purpose, r.what, *amount, "perhaps" if r.opened else "no")
            for r, amount in zip(open_ones, amounts, strict=True)
        ]
        table("not settled", heads, rows, numbers=(5, 6))
    say(f"head: {ledger.head()}")


@app.command("verify")
def verify(
    address: Address,
    head: Annotated[
        str | None, typer.Option("--head", help="A head that was written down earlier (NUMBER:HASH).", show_default=False)
    ] = None,
    heads: Annotated[
        Path | None,
        typer.Option("--heads", help="A file of heads: a copy, or as sent elsewhere.  [default: beside it]", show_default=False),
    ] = None,
    trust: Annotated[
        Path | None, typer.Option("--trust", help="The service's public key (service.key.pub), from elsewhere.", show_default=False)
    ] = None,
) -> None:
    """Read the whole ledger again: is any entry altered, missing, added or out of order, and was every step possible?

    It is only read: nothing is made or changed (but that a curator's folder notes in status.json when it was verified), and a copy that may
    not be written will do. Compared with the chain are the balances,
    people, tokens, grants, datasets and answers, the copies of releases, and the file of heads. Give heads that were sent elsewhere, and
    the key, to notice also whoever could change all of the folder. Exit code 1 if something is wrong.

    Example:

        hedgerow ledger verify curator/

        hedgerow ledger verify backup.sqlite --heads sent.heads --trust service.key.pub
    """
    from hedgerow.curator.ledger.heads import existing_heads
    from hedgerow.curator.ledger.keeping import named_key
    from hedgerow.curator.ledger.release_copies import copy_findings
    from hedgerow.curator.ledger.verification import Problem
    from hedgerow.release.signing import load_public_key

    ledger = existing(address)
    found = ledger.verify(head)
    copies = list(copy_findings(ledger.database, sound=found.sound))
    problems = [*found.problems, *(Problem(None, copy.why) for copy in copies if not copy.lost)]
    compared = found.heads or 0
    if heads is not None:
        sent = ledger.verify(heads=existing_heads(heads))
        compared += sent.heads or 0
        problems += [problem for problem in sent.problems if problem not in problems]
    if trust is not None and named_key(ledger) != load_public_key(trust).text:
        problems.append(Problem(None, "the key of the service in the ledger is not the one that is trusted: the chain was written anew?"))
    for copy in copies:
        if copy.lost:
            beside(copy.why)
    if problems:
        warn(f"the ledger is not sound: {found.entries} entries, the last that follows is {found.head}")
        table("problems", ["entry", "what is wrong"], [("" if p.seq is None else p.seq, p.why) for p in problems], numbers=(0,))
        raise typer.Exit(NOT_SOUND)
    if found.unguarded:
        warn(f"guards against accidental changes are missing from the database: {', '.join(found.unguarded)}")
    say(f"the ledger is sound: {found.entries} entries, head {found.head}", style="green")
    if compared:
        say(f"it has all heads that were written down: {compared:,} lines were compared")
    elif head is None:
        say("no heads were compared: with --heads or --head, a check finds an end that was cut off")
    if Path(address).is_dir():  # beside a copy nothing is written
        note(ledger.database, "verified", str(found.head))


@app.command("export")
def export(
    address: Address,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .csv or .json file.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Write all entries to a file, for an auditor or a backup. It holds names and amounts, no row and no release.

    Example:

        hedgerow ledger export curator/ -o ledger.csv
    """
    kind = output.suffix.lower().lstrip(".")
    if kind not in ("csv", "json"):
        raise LedgerError(f"--output: got {output.name!r}; expected a name that ends in .csv or .json.")
    ledger = existing(address)
    check_output(output, [], force)
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            for piece in ledger.export(kind):
                file.write(piece)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    say(f"wrote {output}: {ledger.head().seq:,} entries")


@app.command("backup")
def backup(
    address: Address,
    output: Annotated[Path, typer.Option("--output", "-o", help="A new .sqlite file, on another disk.", show_default=False)],
) -> None:
    """Copy the database of a folder as of one moment, while the service runs, and check the copy. (On PostgreSQL use `pg_dump`.)

    An older copy has forgotten what was spent since. So write down heads now and then, elsewhere: before you serve from a copy,
    `hedgerow ledger verify COPY --head …` with the last of them says whether its end is missing.

    Example:

        hedgerow ledger backup curator/ -o backup.sqlite
    """
    packages()
    from hedgerow.curator.ledger.database import ENDINGS, read_database
    from hedgerow.curator.ledger.ledger import Ledger

    if output.suffix not in ENDINGS:
        raise LedgerError(f"--output: got {output.name!r}; expected a name that ends in {' or '.join(ENDINGS)}.")
    ledger = existing(address)
    check_output(output, [], force=False)
    part = output.with_name(f"{output.stem}.part{output.suffix}")
    try:
        part.unlink(missing_ok=True)
        ledger.database.copy_to(part)
        with read_database(part) as copy:
            found = Ledger(copy).verify()
        if not found.sound:
            raise LedgerError(f"the copy is {found}\nNothing was kept. Look with `hedgerow ledger verify {address}`.")
        part.replace(output)
    except OSError as error:
        raise LedgerError(f"--output {str(output)!r} cannot be written ({error.strerror}). Nothing was kept.") from None
    finally:
        for name in (part, part.with_name(f"{part.name}-wal"), part.with_name(f"{part.name}-shm")):
            name.unlink(missing_ok=True)
    note(ledger.database, "backup", f"{output}, head {found.head}")
    say(f"wrote {output}: {found.entries:,} entries, head {found.head}")


def note(database: Database, what: str, text: str) -> None:
    """For `hedgerow curator status`: what was done last, in a file beside the ledger, if it can be written. Nothing depends on it."""
    if database.file is not None:
        from hedgerow.curator.ledger.notes import write_note

        write_note(database.file.parent, what, text)


def unit_of_account(whole: Balance) -> str:
    """What a dataset is counted in, to be put behind something."""
    if whole.unit is not None:
        return f", for {whole.unit.words}"
    return ", unit not stated: see `hedgerow curator unit`" if whole.unknown_unit() else ""


def existing(address: str) -> Ledger:
    """An existing ledger, to read alone: nothing is made or changed."""
    packages()
    from hedgerow.curator.ledger.database import read_database
    from hedgerow.curator.ledger.ledger import Ledger

    return Ledger(read_database(address))


def packages() -> None:
    """Refuses where what a curator needs is not installed."""
    try:
        import sqlalchemy  # noqa: F401
    except ModuleNotFoundError:
        raise LedgerError("the ledger needs packages that are not installed: pip install 'hedgerow[curator]'.") from None
