"""`hedgerow curator upgrade`, `accept` and `status`: the books of a curator as a whole."""

from __future__ import annotations

import shlex
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow import formatting
from hedgerow.accounting.loss import text_of_fraction as exact
from hedgerow.cli.console import note, say, warn
from hedgerow.cli.ledger import Address, packages
from hedgerow.errors import LedgerError, PlanError

if TYPE_CHECKING:
    from hedgerow.curator.ledger.balances import Balance
    from hedgerow.curator.ledger.keeping import AfterEnd
    from hedgerow.curator.ledger.release_copies import CopyFinding

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def upgrade(
    address: Address,
    backup: Annotated[
        Path | None, typer.Option("--backup", help="Where the copy goes.  [default: beside the ledger]", show_default=False)
    ] = None,
    backed_up: Annotated[bool, typer.Option("--backed-up", help="Of PostgreSQL: a dump was made (`pg_dump`).")] = False,
) -> None:
    """Bring a ledger that an older hedgerow wrote to this version: a copy is made first, all is done or nothing.

    Stop the service before. Entries keep their hashes, so that heads which were written down stay right.

    Example:

        hedgerow curator upgrade curator/
    """
    packages()
    from hedgerow.curator.http.single_instance import single_instance
    from hedgerow.curator.ledger.database import VERSION, database_at
    from hedgerow.curator.ledger.migrations import upgrade as run_steps

    with closing(database_at(address, make=False)) as database, tempfile.TemporaryDirectory() as nowhere:
        version = database.version()
        if version == VERSION:
            say(f"it has version {VERSION} already; nothing was changed")
            return
        if database.file is None and not backed_up:
            raise LedgerError("a ledger on a server is copied with `pg_dump`: do so, and say --backed-up. Nothing was changed.")
        with single_instance(Path(nowhere) if database.file is None else database.file.parent, database):
            if database.file is not None:
                made = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
                copy = backup or database.file.with_name(f"{database.file.stem}-version-{version}-{made}.sqlite")
                if copy.exists():
                    raise LedgerError(f"--backup {str(copy)!r} exists already; expected a new name. Nothing was changed.")
                database.copy_to(copy)
                say(f"wrote {copy}: the ledger as it was")
            before, found = run_steps(database)
    say(f"the ledger has version {VERSION} now (before: {before}), and is sound: {found.entries} entries, head {found.head}")


def accept(
    address: Address,
    why: Annotated[str, typer.Option("--why", help="The reason, which the ledger keeps for ever.", show_default=False)],
    folder: Annotated[
        Path | None, typer.Option("--folder", help="The curator's folder, where the ledger is elsewhere.", show_default=False)
    ] = None,
    keep_ceilings: Annotated[
        bool, typer.Option("--keep-ceilings", help="Leave the ceilings: you know that nothing was spent since.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Go on with a ledger that was put back or has lost its heads, and record so in it.

    What was spent after a copy was made is not in it, so every ceiling is set to what the copy says was spent. The file of heads has what
    was spent since and which ceilings were set, as far as it is there: the commands that are printed raise each ceiling again, less what
    was spent. The old file of heads is kept under another name. Stop the service before.

    Example:

        hedgerow curator accept curator/ --why "restored the backup of Monday after a disk failure"
    """
    packages()
    from hedgerow.curator.http.service_context import Curator
    from hedgerow.curator.http.single_instance import single_instance
    from hedgerow.curator.ledger.balances import DATASET
    from hedgerow.curator.ledger.database import open_database
    from hedgerow.curator.ledger.keeping import accept as go_on
    from hedgerow.curator.ledger.keeping import after_end
    from hedgerow.curator.ledger.ledger import Ledger
    from hedgerow.curator.ledger.release_copies import COUNT_IT, RELEASES, copy_findings

    opened = open_database(address, make=False) if folder is None else Curator.open(folder, address).database
    with closing(opened) as database, tempfile.TemporaryDirectory() as nowhere:
        ledger, place = Ledger(database), folder or (Path(nowhere) if database.file is None else database.file.parent)
        with single_instance(place, database):
            for problem in ledger.verify().problems:
                warn(str(problem))
            if not yes and not typer.confirm("Go on with this ledger all the same?"):
                raise PlanError("nothing was accepted.")
            after = after_end(ledger)
            lowered, aside = go_on(ledger, why, keep_ceilings)
            open_now = {balance.dataset for balance in ledger.balances() if balance.scope == DATASET and not balance.closed}
            head, copies = ledger.head(), list(copy_findings(database, None if folder is None else folder / RELEASES))
    if aside is not None:
        say(f"the old file of heads is {aside}")
    for each in lowered:
        was = formatting.loss(each.epsilon or Fraction(0), each.delta or Fraction(0))
        say(f"nothing more is paid from {each.words}: {was} before")
    taken_off = after.all_spent and bool(lowered)  # in the ceilings that are printed
    for copy in copies:
        (note if copy.lost else warn)(copy.why.removesuffix(COUNT_IT) if taken_off else copy.why)
    for account, spent in after.spent.items():
        if account[1] == DATASET and any(spent):
            least = "" if after.all_spent else "at least "
            note(f"{least}{formatting.loss(*spent)} was spent on {account[0]!r} after the copy was taken, as the file of heads says")
    closed = [name for name in after.closed if name in open_now]
    for name in closed:
        warn(f"{name!r} was closed after the copy was taken. Close it again: {shlex.join(['hedgerow', 'curator', 'close', address, name])}")
    again = [each for each in lowered if each.dataset not in closed]
    if again:
        lost = [copy for copy in copies if copy.lost]
        say(_raise_again(after, bool(lost)))
        for each in again:
            spent = after.spent.get(each.account, (Fraction(0), Fraction(0)))
            say(f"  {_ceiling_command(address, each, [] if after.all_spent else lost, *spent)}")
    if not keep_ceilings:
        where = shlex.quote(address)
        warn(
            "people, tokens and grants are those of this ledger: what was revoked or withdrawn after a copy was taken is valid again, and "
            f"cannot be told from it. To be safe, end every token (`hedgerow curator revoke {where} --all`) and make new ones for those "
            f"who may have them (`hedgerow curator token {where} NAME`); withdraw grants again (`hedgerow curator show {where}` lists "
            f"them, `hedgerow curator withdraw {where} NAME --dataset DATASET` takes one back)"
        )
    say(f"accepted; head {head}")


def _raise_again(after: AfterEnd, lost: bool) -> str:
    """What the commands do that raise the ceilings, and what is left to the owner. lost: whether releases from after the copy are known"""
    which = "as they were last (where the copy has a lower one, that)" if after.all_ceilings else "as the copy has them"
    lower = "" if after.all_ceilings else ". Ceilings that were lowered after it are not known here: lower them again"
    if after.all_spent:
        return f"raise those that are to be used again. These are the ceilings {which}, less all that was spent after the copy{lower}"
    less, also = (", less what the notes say", "what else") if lost or after.spent else ("", "what")
    return (
        f"raise those of which you know what is left, and not before. These are the ceilings {which}{less}: take off {also} was spent "
        f"after the copy was taken (lost and failed requests, scores), in ε and in δ{lower}"
    )


def _ceiling_command(address: str, balance: Balance, lost: list[CopyFinding], epsilon: Fraction, delta: Fraction) -> str:
    """What sets a ceiling again as it was, less what is known to be lost: (ε, δ) by the file of heads, or releases on its dataset, by
    whomever.
    """
    known = [copy for copy in lost if balance.dataset in copy.datasets]
    less = max(epsilon, sum((copy.epsilon for copy in known), Fraction(0)))
    less_delta = max(delta, sum((copy.delta for copy in known), Fraction(0)))
    left = _left(balance.epsilon or Fraction(0), balance.spent, less)
    left_delta = _left(balance.delta or Fraction(0), balance.spent_delta, less_delta)
    who = [f"--{balance.scope}", balance.name] if balance.name else []
    words = ["hedgerow", "curator", "ceiling", address, balance.dataset, "--epsilon", exact(left), "--delta", exact(left_delta), *who]
    return shlex.join(words)


def _left(ceiling: Fraction, spent: Fraction, less: Fraction) -> Fraction:
    """A ceiling, less what is lost; not below what the copy has spent, unless it was there before: nothing more is paid from either."""
    return max(min(ceiling, spent), ceiling - less)
