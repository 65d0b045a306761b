"""What jobs and sessions share about money: what can be refused comes before the payment, and what never looked is given back."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.logs import log, told
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import HedgerowError

Prepare = Callable[[], Callable[[], Reserved]]
"""All that can be refused from public facts; and then the payment."""


def give_back(ledger: Ledger, reserved: Reserved) -> None:
    """What never looked at a row costs nothing; all else stays spent."""
    try:
        found = ledger.reservation(reserved.key)
        if not found.opened and not found.ended:
            ledger.release(reserved.key)
    except HedgerowError as error:
        log("reservation stays spent", logging.ERROR, reservation=reserved.key, **told(error))


def stopping() -> Refusal:
    return Refusal(503, "stopping", "The service is stopping. Nothing was spent.", {"Retry-After": "30"})
