"""What was asked of a dataset before, newest first, and how each request stands."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.chain import Reserved
from hedgerow.curator.service.asking import Asking
from hedgerow.curator.service.jobs import DONE, FAILED
from hedgerow.curator.service.work import RELEASE

SHOWN = 20


@dataclass(frozen=True)
class Request:
    """One line. result: the address of its release or score, if there is one."""

    reserved: Reserved
    state: str
    epsilon: str
    result: str


def requests_of(asking: Asking, dataset: str) -> list[Request]:
    """The person's own; an owner sees everybody's."""
    person = asking.person
    found = asking.curator.ledger.last_reservations(dataset, None if person.owns else person.name, SHOWN)
    kinds = asking.curator.answers.kinds([reserved.key for reserved in found])
    return [_request(asking, reserved, kinds.get(reserved.key)) for reserved in found]


def _request(asking: Asking, reserved: Reserved, kind: str | None) -> Request:
    epsilon, live = text_of_fraction(reserved.cost), asking.service.jobs.live(reserved.key)
    if live is not None:
        return Request(reserved, live.state, epsilon, "")
    if kind is None:
        return Request(reserved, FAILED, epsilon, "")
    return Request(reserved, DONE, epsilon, f"/{'releases' if kind == RELEASE else 'scores'}/{reserved.key}")
