"""`hedgerow serve`: the data owner's service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.console import say, table, warn
from hedgerow.cli.tables import checked_owner
from hedgerow.errors import LedgerError


def serve(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the books are kept; made if it is new.", show_default=False)],
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", help="postgresql://user@host/name for the books.  [default: in the folder]", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="Whose rows these are, as counts for a shared plan will say.  [default: the dataset's name]", show_default=False
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen at; before any other, put a TLS proxy.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port.")] = 8300,
) -> None:
    """Serve forests from tables that stay here, until their budgets are spent.

    The first start prints a token for the owner, once. Each start reads the whole ledger again and refuses to serve from one that was
    changed; it tells what a crash has left. Ctrl-C stops it: jobs that run may end, jobs that wait are given back.

    Example:

        hedgerow serve curator/

        hedgerow serve curator/ --ledger postgresql://curator@localhost/curator --port 8300
    """
    try:
        import uvicorn

        from hedgerow.curator.service.application import application
        from hedgerow.curator.service.bundle import Curator
        from hedgerow.curator.service.limits import Limits
        from hedgerow.curator.service.logs import write_to_stderr
    except ModuleNotFoundError:
        raise LedgerError("the service needs packages that are not installed: pip install 'hedgerow[curator]'.") from None
    from hedgerow.accounting.loss import text_of_fraction as exact
    from hedgerow.certificate import TableName

    TableName(owner=checked_owner(name, "", "--name"))  # refuses a name that no release could hold
    curator, limits = Curator.open(folder, ledger), Limits()
    with closing(curator), _alone(folder):
        found = curator.ledger.verify()
        if not found.sound:
            raise LedgerError(f"the ledger is {found}\nNothing is served from it. Look with `hedgerow ledger verify`.")
        left = curator.ledger.unsettled()
        if left:
            warn("reservations that never settled, left by a crash or a stop; they stay spent")
            rows = [(r.when, r.dataset, r.analyst, r.purpose, r.what, exact(r.epsilon), "perhaps" if r.opened else "no") for r in left]
            table("not settled", ["when", "dataset", "analyst", "purpose", "what", "ε", "rows looked at"], rows, numbers=(5,))
        say(f"the ledger is sound: {found.entries} entries, head {found.head}")
        token = curator.accounts.first_owner()
        if token is not None:
            say(f"the owner's token, shown this once: {token}")
        say(f"serving at http://{f'[{host}]' if ':' in host else host}:{port}  (Ctrl-C stops it)")
        write_to_stderr()
        config = uvicorn.Config(
            application(curator, limits, name or ""), host=host, port=port, log_config=None, access_log=False, server_header=False,
            date_header=True, timeout_keep_alive=10, timeout_graceful_shutdown=10, h11_max_incomplete_event_size=64 * 1024,
        )  # fmt: skip
        uvicorn.Server(config).run()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One service for a folder: two would not know of each other's jobs, and could be paid twice for one key."""
    with (folder / "serve.lock").open("a") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ModuleNotFoundError:  # no such locks here
            pass
        except OSError:
            raise LedgerError(f"folder {str(folder)!r} is served already by another process; expected to be the only one.") from None
        yield
