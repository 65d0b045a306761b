"""How a request stands: its job or session is under way, has given an answer, has ended, or has failed."""

from __future__ import annotations

from typing import Any

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http.jobs import DONE, FAILED, RUNNING, Job
from hedgerow.curator.http.work import RELEASE
from hedgerow.curator.ledger.chain import Reserved

SESSION = "session"
ENDED = "ended"
FAILURE = {"code": "failed", "message": "The job could not be ended. Its owner can see why. What it has cost is said here."}


def session_called(note: str) -> str:
    """What the ledger calls a session."""
    return f"{SESSION}: {note}" if note else SESSION


def standing(reserved: Reserved, live: Job | None, in_session: bool, kind: str | None) -> dict[str, Any]:
    """live: its job, if one is under way; in_session: whether it is a session that can be asked; kind: of its stored answer."""
    delta = 0 * reserved.delta if reserved.state == "released" else reserved.delta
    about = {
        "id": reserved.key, "when": reserved.when, "dataset": reserved.dataset, "purpose": reserved.purpose, "what": reserved.what,
        "cost": {"epsilon": text_of_fraction(reserved.cost), "delta": text_of_fraction(delta)},
    }  # fmt: skip
    if live is not None:
        return {**about, "state": live.state, "share": live.share}
    if kind is not None:
        return {**about, "state": DONE, "share": 1.0, "result": f"/v1/{'releases' if kind == RELEASE else 'scores'}/{reserved.key}"}
    if reserved.what.partition(":")[0] == SESSION and (in_session or reserved.ended):
        return {**about, "state": RUNNING if in_session else ENDED}
    return {**about, "state": FAILED, "error": FAILURE}
