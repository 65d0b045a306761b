"""`hedgerow serve`: the data owner's service."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.accounting.loss import text_of_fraction as exact
from hedgerow.cli.console import note, say, warn
from hedgerow.cli.lost import show_lost
from hedgerow.cli.tables import checked_owner
from hedgerow.errors import LedgerError

if TYPE_CHECKING:
    from hedgerow.curator.http.service_context import Curator

TOKEN_FILE = "owner.token"  # in the curator's folder, where the first start has no terminal
SIGNATURES = 1000  # of heads that are checked at a start; `hedgerow ledger verify` checks all
LOCAL = ("127.0.0.1", "::1", "localhost")


def serve(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The curator's folder, with the ledger; made if it is new.", show_default=False)
    ],
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", help="postgresql://user@host/name for the ledger.  [default: in the folder]", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="Whose rows these are, as counts for a shared plan will say.  [default: the dataset's name]", show_default=False
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen at; before any other, put a TLS proxy.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8300,
    limits: Annotated[
        Path | None,
        typer.Option("--limits", help="A TOML file with bounds, such as: body_bytes = 1000000, waiting = 32.", show_default=False),
    ] = None,
    pad: Annotated[
        float | None,
        typer.Option(
            "--pad",
            min=0.1,
            help="Seconds: jobs and queries end at a multiple of them, so that time hides the number of rows.",
            show_default=False,
        ),
    ] = None,
    party: Annotated[
        int | None,
        typer.Option(
            "--party",
            min=1,
            help="Count together with other owners' services, as this number in their file (`together init`).",
            show_default=False,
        ),
    ] = None,
    parties: Annotated[Path, typer.Option("--parties", help="--party: the file with all owners, the same for each.")] = Path(
        "parties.toml"
    ),
    party_key: Annotated[
        Path | None,
        typer.Option("--party-key", help="--party: the private key.  [default: NAME.key beside the parties' file]", show_default=False),
    ] = None,
    disjoint: Annotated[
        bool,
        typer.Option(
            "--disjoint",
            help="--party: you state that a person with rows here has none at another of these owners, and that which table a row is in "
            "depends on that row alone. It is needed.",
        ),
    ] = False,
    trust_owners: Annotated[
        bool,
        typer.Option(
            "--trust-owners",
            help="--party, with tolerated = 0 in the file: you state that no owner keeps its own share of the noise. One who did would see "
            "your rows at a larger ε, which the release says (docs/TOGETHER.md).",
        ),
    ] = False,
    behind_tls: Annotated[bool, typer.Option("--behind-tls", help="A TLS proxy is before it: cookies go over https only.")] = False,
    send_heads: Annotated[
        list[str] | None,
        typer.Option(
            "--send-heads",
            help="Send the signed head of the ledger there too, whenever it has moved: a file, a URL, or log; may be given again.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve forests from tables that stay here, until their budgets are spent.

    The first start shows a token for the owner, once: on a terminal, or else in the file owner.token. Each start reads the whole ledger
    again and refuses to serve from one that was changed or put back; it tells what a crash has left. Ctrl-C or SIGTERM stops it: jobs
    that wait are given back, jobs that run may end within stop_seconds of the limits. A second signal ends them: what they cost is lost.

    Example:

        hedgerow serve curator/

        hedgerow serve curator/ --ledger postgresql://curator@localhost/curator --port 8300

        hedgerow serve curator/ --party 2 --parties parties.toml --disjoint
    """
    try:
        from hedgerow.curator.application import application
        from hedgerow.curator.http import server
        from hedgerow.curator.http.head_sender import HeadSender, target_of
        from hedgerow.curator.http.limits import Limits
        from hedgerow.curator.http.logs import write_to_stderr
        from hedgerow.curator.http.party import ServiceParty
        from hedgerow.curator.http.service_context import Curator
        from hedgerow.curator.http.single_instance import single_instance
        from hedgerow.curator.http.workers import remove_stale_spills
        from hedgerow.curator.ledger.heads import KEY_FILE
        from hedgerow.curator.ledger.notes import STOPPED, write_note
    except ModuleNotFoundError:
        raise LedgerError("the service needs packages that are not installed: pip install 'hedgerow[curator]'.") from None
    from hedgerow.release.parts import TableName

    TableName(owner=checked_owner(name, "", "--name"))  # refuses a name that no release could hold
    bounds = Limits() if limits is None else Limits.read(limits)
    if pad is not None:
        bounds = replace(bounds, pad_seconds=pad)
    if (party is not None) != disjoint:
        raise LedgerError(
            "--party and --disjoint go together: who counts with others states that a person with rows here has none at another owner. "
            "Give both, or neither."
        )
    own = None if party is None else ServiceParty.load(parties, party, party_key, trust_owners)
    targets = [target_of(text) for text in send_heads or []]
    with (
        closing(server.listening_socket(host, port)) as listener,
        closing(Curator.open(folder, ledger)) as curator,
        single_instance(folder, curator.database),
    ):
        write_to_stderr()
        remove_stale_spills(folder)
        _look_back(curator)
        token = curator.accounts.first_owner()
        if token is not None:
            _hand_over(token, folder)
        address = server.address_of(host, listener)

        if not behind_tls and host not in LOCAL:
            warn(f"at {host} tokens can be read on their way: put a TLS proxy before it, and say --behind-tls")

        def started() -> None:
            if not curator.registry.names():
                say("no datasets yet: hedgerow curator register, or on the pages")
            say(f"serving at {address}  (Ctrl-C stops it)")
            say("open that address in a browser for the pages, and sign in there with a token")

        before = {reserved.key for reserved in curator.ledger.unsettled()}
        with HeadSender(curator.ledger, folder / KEY_FILE, targets).running():
            server.run(application(curator, bounds, name or "", behind_tls, own), listener, bounds, started)
        write_note(folder, STOPPED, "")
        _say_stopped(curator, before)


def _say_stopped(curator: Curator, before: Collection[str]) -> None:
    """What this run has left: requests that are paid for and lost, one by one. before: what an earlier one had left."""
    from hedgerow.curator.http.recovery import lost_requests
    from hedgerow.curator.http.storing import UNSTORED

    on_file = frozenset(path.stem for path in (curator.releases.parent / UNSTORED).glob("*.json"))  # the next start stores them
    try:
        new = [reserved.key for reserved in curator.ledger.unsettled() if reserved.key not in before]
        show_lost([each for each in lost_requests(curator, on_file) if each.reserved.key in new])
        say(f"stopped; {len(new)} reservation(s) of this run did not settle; head {curator.ledger.head()}")
    except LedgerError as error:
        warn(f"stopped; {error}")


def _hand_over(token: str, folder: Path) -> None:
    """The first owner's token: to a terminal, and to nothing that keeps what is printed; else to a file for its owner alone."""
    if sys.stdout.isatty():
        say(f"the owner's token, shown this once and valid for a year: {token}")
        return
    path = folder / TOKEN_FILE
    while True:
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{token}\n")
            break
        except FileExistsError:
            path = path.with_name(f"{path.name}.new")
    say(f"the owner's token, valid for a year, is in {path}: read it, and remove the file")


def _look_back(curator: Curator) -> None:
    """Read the ledger again, put right what the last service has left, and tell what was lost: to people as a table, to programs in the
    log.
    """
    from hedgerow.curator.http.recovery import recover
    from hedgerow.curator.ledger.balances import DATASET
    from hedgerow.curator.ledger.keeping import keep_heads, named_key
    from hedgerow.curator.ledger.notes import STARTED, write_note
    from hedgerow.curator.ledger.release_copies import copy_findings
    from hedgerow.release.signing import fingerprint

    found = curator.ledger.verify(newest=SIGNATURES)
    if not found.sound:
        raise LedgerError(f"the ledger is {found}\nNothing is served from it. Look with `hedgerow ledger verify`.")
    for copy in copy_findings(curator.database, curator.releases):
        (note if copy.lost else warn)(copy.why)
    heads = keep_heads(curator.ledger)
    write_note(curator.releases.parent, "verified", str(found.head))
    for balance in curator.ledger.balances():
        if balance.scope == DATASET and balance.unknown_unit() and not balance.closed:
            warn(f"{balance.dataset} was spent from before the ledger had units, so nothing more is paid: hedgerow curator unit states it")
    done = recover(curator)
    if done.stored:
        say(f"{len(done.stored)} answer(s) that the last service could not store are stored now")
    if done.released:
        amount = exact(sum((r.epsilon for r in done.released), Fraction(0)))
        say(f"{len(done.released)} reservation(s) that were never opened are given back: ε = {amount}")
    write_note(curator.releases.parent, STARTED, str(curator.ledger.head()))
    show_lost(done.lost)
    say(f"the ledger is sound: {found.entries} entries, head {found.head}")
    say(f"releases and heads are signed with {fingerprint(named_key(curator.ledger) or '')} ({heads.key_path.name}.pub)")
