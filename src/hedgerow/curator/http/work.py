"""What a job does, as plain data that can be sent to another process, and the doing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http import scores
from hedgerow.curator.http.counts import counted, counted_together
from hedgerow.curator.http.forests import recipe_of, trained
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.padding import Padding
from hedgerow.curator.http.party import ServiceParty
from hedgerow.curator.http.requests import Counts, Forest, Score
from hedgerow.curator.http.reservations import PrepaidBudget
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.storing import FinishedWork, store_or_return
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.errors import LedgerError
from hedgerow.release.parts import TableName, source_at

RELEASE = "application/vnd.hedgerow.release+json"
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Task:
    """A forest; a score of the release that is given; or counts in the trees of the plan that is, for the owner of this name.

    party: who the service is among owners who count together, where they are to
    """

    dataset: str
    body: Forest | Score | Counts
    document: bytes = b""
    owner: str = ""
    party: ServiceParty | None = None

    @property
    def table(self) -> TableName:
        """How a release names the counted table."""
        return TableName(self.dataset, self.owner or self.dataset)


def perform(
    curator: Curator, limits: Limits, task: Task, reserved: Reserved, key: IdempotencyKey, progress: Progress
) -> FinishedWork | None:
    """From a reservation to a stored answer: it is opened before the first query, and settled when the answer is stored. Where it cannot
    be stored now, it is returned.

    With padding neither the ledger nor anybody else is told before the time, and no progress.
    """
    padding, budget = Padding(limits.pad_seconds), PrepaidBudget(curator.ledger, reserved)
    try:
        content, content_type = _performed(curator, limits, task, budget, _untold if limits.pad_seconds else progress)
    finally:
        padding.wait()
    spent = reserved.epsilon if budget.settled_at is None else budget.settled_at
    return store_or_return(curator, FinishedWork.of(reserved, key, text_of_fraction(spent), content, content_type))


def _untold(_: float) -> None:
    """How fast shares follow each other would tell what padding hides."""


def _performed(curator: Curator, limits: Limits, task: Task, budget: PrepaidBudget, progress: Progress) -> tuple[bytes, str]:
    found = curator.registry.get(task.dataset)
    if found is None or found.closed:
        raise LedgerError(f"dataset {task.dataset!r} is closed: its owner has ended the connection. No row was looked at.")
    if isinstance(task.body, Score):
        release = scores.scored(task.document, found, task.body.epsilon)
        return scores.scored_as_json(release, found.rows, task.body.epsilon, budget, limits.threads), scores.CONTENT_TYPE
    if isinstance(task.body, Counts):
        how: dict[str, Any] = {"budget": budget, "n_jobs": limits.threads, "progress": progress}
        if task.party is not None and task.body.together is not None:
            who = (task.party, task.body.together, limits.party_seconds)
            return curator.signed(counted_together(task.document, found.rows, task.body.epsilon, *who, **how)).to_json(), RELEASE
        return curator.signed(counted(task.document, found.rows, task.body.epsilon, task.table, **how)).to_json(), RELEASE
    recipe = recipe_of(task.body, limits)
    source = "" if curator.signed_with is None else source_at(curator.signed_with, task.dataset)
    release = trained(recipe, found.place, found.schema, budget, n_jobs=limits.threads, progress=progress, source=source)
    return curator.signed(release).to_json(), RELEASE
