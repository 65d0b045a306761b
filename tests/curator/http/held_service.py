"""`hedgerow serve` that waits at a chosen point, so that a test can kill it there or take its disk away.

held_service.py FOLDER-OF-THE-TEST serve …      as `hedgerow serve …`

The package has no such points: this program puts them around its functions, in the service and in its workers, which import it again.
In the test's folder, `point` names a request and the point to wait at ("k3 query 2"), `reached` is made there, and whoever is there goes
on when `go` is. While `read-only` is there the database takes no change; `failed` is made by the first error of a database.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from hedgerow.curator.http import storing
from hedgerow.curator.ledger import database
from hedgerow.curator.ledger.answers import Answers
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.private_table import PrivateTable

FOLDER = Path(os.environ.setdefault("HELD_SERVICE", sys.argv[1] if len(sys.argv) > 1 else ""))
times: Counter[tuple[str, str]] = Counter()


def arrive(point: str) -> None:
    try:
        request, _, wanted = (FOLDER / "point").read_text().partition(" ")
    except OSError:
        return
    times[request, point] += 1
    if wanted not in (point, f"{point} {times[request, point]}"):
        return
    try:
        (FOLDER / "reached").touch(exist_ok=False)
    except FileExistsError:
        return
    while not (FOLDER / "go").exists():
        time.sleep(0.01)


def held_after(owner: Any, name: str, point: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(real)
    def held(*given: Any, **how: Any) -> Any:
        result = real(*given, **how)
        arrive(point)
        return result

    setattr(owner, name, held)


def new_engine(*given: Any) -> sql.Engine:
    engine = real_engine(*given)
    sql.event.listen(engine, "checkout", checkout)
    sql.event.listen(engine, "handle_error", lambda _: (FOLDER / "failed").touch())
    return engine


def checkout(connection: Any, *_: Any) -> None:
    read_only = "ON" if (FOLDER / "read-only").exists() else "OFF"
    if hasattr(connection, "autocommit"):
        connection.execute(f"SET default_transaction_read_only = {read_only}")
        connection.commit()
    else:
        connection.execute(f"PRAGMA query_only = {read_only}")


real_engine = database._engine_of
database._engine_of = new_engine
held_after(Ledger, "reserve", "reserve")
held_after(Ledger, "opened", "open")
held_after(PrivateTable, "released", "query")
held_after(Ledger, "settle", "settle")
held_after(Answers, "store", "store")
held_after(storing, "store", "answer")

if __name__ == "__main__":
    from hedgerow.cli import main

    sys.argv = ["hedgerow", *sys.argv[2:]]
    sys.exit(main())
