"""Owners who count together, for tests: a folder with their keys, and each as a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from strategies import small_schema, small_table

from hedgerow import PrivateRDTClassifier, PublicPlan, together
from hedgerow.multiparty.certificates import make_certificate
from hedgerow.multiparty.parties import Parties, Party

WAIT = 60.0  # seconds: nobody waits so long but on a machine that stands still


def free_ports(n: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def make_parties(folder: Path, k: int, tolerated: int = 1) -> Parties:
    """k owners on this machine; the key of owner i is in folder/owner-i.key."""
    owners = []
    for number, port in enumerate(free_ports(k), start=1):
        name = f"owner-{number}"
        owners.append(Party(name, f"localhost:{port}", make_certificate(folder / f"{name}.key", name)))
    return Parties(tuple(owners), tolerated)


def small_plan(epsilon: str = "1", seed: int = 1, trees: int = 2, depth: int = 2) -> PublicPlan:
    return PrivateRDTClassifier(small_schema(), epsilon=epsilon, n_estimators=trees, max_depth=depth, random_state=seed).public_plan()


def at_once(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of them gives, or the error that it ends with."""
    results: list[Any] = [None] * len(works)

    def run(place: int, work: Callable[[], Any]) -> None:
        try:
            results[place] = work()
        except BaseException as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def run_owners(folder: Path, parties: Parties, plan: PublicPlan, present: Sequence[int] | None = None, **changed: Any) -> list[Any]:
    """The release, or error, of each owner present. changed: for one owner, as owner_2={...} of arguments of `together`."""
    works = []
    for number in present or range(1, len(parties.owners) + 1):
        given: dict[str, Any] = {
            "plan": plan, "table": small_table(20 + number), "parties": parties, "party": number, "disjoint": True, "wait": WAIT,
            "timeout": WAIT, "key": folder / f"owner-{number}.key", **changed.get("everybody", {}), **changed.get(f"owner_{number}", {}),
        }  # fmt: skip
        plan_, (X, y) = given.pop("plan"), given.pop("table")
        works.append(lambda plan_=plan_, X=X, y=y, given=given: together(plan_, X, y, **given))
    return at_once(works)


def changed(parties: Parties, number: int, **fields: Any) -> Parties:
    """The same parties with one of them changed."""
    owners = list(parties.owners)
    owners[number - 1] = replace(owners[number - 1], **fields)
    return replace(parties, owners=tuple(owners))
