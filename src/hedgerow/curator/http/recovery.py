"""Recovery at the start of a service: what an earlier one has left is stored, given back, or listed as lost with the reason.

Only for a service that holds the lock of the ledger: nobody else has work under way.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http.jobs import is_session
from hedgerow.curator.http.logs import log
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.storing import Storage
from hedgerow.curator.ledger.chain import Reserved

KILLED = "its service or its worker ended after the rows were opened and before the answer was stored"
SETTLED = "it was settled by an older version, which lost the answer, or by a program that uses the ledger without the service"


@dataclass(frozen=True)
class Lost:
    """A request that was paid for and has no answer, or that failed and was given back."""

    reserved: Reserved
    reason: str


@dataclass(frozen=True)
class Recovery:
    """stored: answers that an earlier service had kept on file; released: what was never opened; lost: what has no answer."""

    stored: tuple[str, ...]
    released: tuple[Reserved, ...]
    lost: tuple[Lost, ...]


def recover(curator: Curator) -> Recovery:
    """Put right what can be put right, and log the rest."""
    curator.ledger.take_over()
    stored = Storage(curator).store_files()
    released = curator.ledger.release_unopened()
    lost = lost_requests(curator)
    for id in stored:
        log("answer stored", job=id, message="an earlier service had kept it on file")
    for reserved in released:
        log("given back", **_about(reserved), message="it was reserved and never opened")
    for each in lost:
        event = "settled without an answer" if each.reserved.ended else "never settled"
        log(event, logging.WARNING, **_about(each.reserved), opened=each.reserved.opened, reason=each.reason)
    return Recovery(tuple(stored), tuple(released), tuple(lost))


def lost_requests(curator: Curator, under_way: frozenset[str] = frozenset()) -> list[Lost]:
    """What was opened or settled and has no answer, in the order in which it was reserved. Sessions that were settled have had theirs."""
    reasons = curator.requests.reasons()
    open_ones = [reserved for reserved in curator.ledger.unsettled() if reserved.opened and reserved.key not in under_way]
    settled = [reserved for reserved in curator.answers.unanswered() if not is_session(reserved.what)]
    found = [Lost(reserved, reasons.get(reserved.key, SETTLED if reserved.ended else KILLED)) for reserved in (*open_ones, *settled)]
    return sorted(found, key=lambda each: each.reserved.seq)


def failed_requests(curator: Curator) -> list[Lost]:
    """Jobs that failed before a row was looked at, and were given back; the reason of each."""
    reasons = curator.requests.reasons()
    return [Lost(reserved, reasons[reserved.key]) for reserved in curator.answers.given_back_of(list(reasons))]


def _about(reserved: Reserved) -> dict[str, Any]:
    amount = text_of_fraction(reserved.cost if reserved.opened else reserved.epsilon)
    return {"job": reserved.key, "dataset": reserved.dataset, "person": reserved.analyst, "what": reserved.what, "epsilon": amount}
