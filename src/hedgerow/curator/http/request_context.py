"""Who asks, of which service, and what both may see: the same answer for a dataset that is not granted and one that is not there."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http.errors import Refusal, not_found
from hedgerow.curator.http.jobs import Jobs
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.predictions import KeptReleases
from hedgerow.curator.http.rate_limit import Pace
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.sessions import Sessions
from hedgerow.curator.ledger.accounts import Person
from hedgerow.curator.ledger.balances import Balance, tightest
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.checks import checked_name
from hedgerow.curator.ledger.registry import Dataset
from hedgerow.errors import LedgerError
from hedgerow.schema.toml import write

Answered = TypeVar("Answered")


@dataclass
class Service:
    """What all routes share. name: whose rows a release with counts says that it holds; where it is empty, the name of the dataset."""

    curator: Curator
    limits: Limits
    jobs: Jobs
    sessions: Sessions
    name: str = ""
    dummies: threading.Semaphore = field(init=False)
    plans: threading.Semaphore = field(init=False)
    releases: KeptReleases = field(init=False)
    pace: Pace = field(init=False)
    schemas: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dummies = threading.Semaphore(self.limits.dummies)
        self.plans = threading.Semaphore(self.limits.plans)
        self.releases = KeptReleases(self.limits)
        self.pace = Pace(self.limits.reservations_each_hour)


@dataclass(frozen=True)
class Asking:
    """One request of one person."""

    service: Service
    person: Person
    books: Curator | None = None

    @property
    def curator(self) -> Curator:
        return self.books or self.service.curator

    async def at_once(self, question: Callable[[Asking], Answered]) -> Answered:
        """What a question finds in one snapshot: one transaction instead of many.

        It must only read. Books in this process are read faster than another thread would begin to.
        """
        database = self.service.curator.database

        def answer() -> Answered:
            with database.reading() as connection:
                return question(replace(self, books=self.service.curator.within(connection)))

        return answer() if database.embedded else await run_in_threadpool(answer)

    async def in_time(self, work: Callable[[], Answered]) -> Answered:
        """Something free that is computed in a thread: when it takes too long, nobody waits for it any more."""
        try:
            async with asyncio.timeout(self.service.limits.answer_seconds):
                return await to_thread.run_sync(work, abandon_on_cancel=True)
        except TimeoutError:
            raise Refusal(503, "too_long", "This takes too long to compute. Ask for smaller trees. Nothing was spent.") from None

    def purposes(self, name: str) -> tuple[str, ...]:
        """What the person may use a dataset for, asked of the grants before anything else is looked up. An owner: what was paid for."""
        try:
            checked_name(name, "dataset")
        except LedgerError:
            raise not_found() from None
        accounts = self.curator.accounts
        if not self.person.owns:
            found = accounts.purposes(self.person, name)
        elif name in accounts.visible(self.person):
            return tuple(sorted({balance.name for balance in self.curator.ledger.balances(name) if balance.scope == "purpose"}))
        else:
            found = ()
        if not found:
            raise not_found()
        return found

    def dataset(self, name: str) -> Dataset:
        self.purposes(name)
        found = self.curator.registry.get(name)
        if found is None:
            raise not_found()
        return found

    def schema_text(self, name: str) -> str:
        """As TOML, for somebody who may know of the dataset. It never changes, so it is read once."""
        texts = self.service.schemas
        if name not in texts:
            texts[name] = write(self.dataset(name).schema)
        return texts[name]

    def open_dataset(self, name: str, purpose: str) -> Dataset:
        """One that may be asked something now, for this purpose."""
        found = self.dataset(name)
        if not self.curator.accounts.may(self.person, name, purpose):
            raise Refusal(403, "purpose", "The dataset is not granted to you for this purpose.")
        if found.closed:
            raise Refusal(409, "closed", "The dataset is closed: its owner has ended the connection. Nothing was spent.")
        return found

    def left(self, name: str, purpose: str) -> dict[str, str]:
        """What the tightest ceiling leaves; nothing where the owner has set none."""
        return left_of(*self.curator.ledger.accounts(name, self.person.name, purpose))

    def reservation(self, id: str) -> Reserved:
        """One of the person's own; an owner may see all."""
        try:
            found = self.curator.ledger.reservation(id)
        except LedgerError as error:
            if error.__context__ is not None:  # the database, and not the name
                raise
            raise not_found() from None
        if found.analyst != self.person.name and not self.person.owns:
            raise not_found()
        return found


_NOTHING = Balance("", "", "").spent


def left_of(whole: Balance, *others: Balance) -> dict[str, str]:
    by_epsilon, by_delta = tightest((whole, *others)) if whole.epsilon is not None else (None, None)
    return {
        "epsilon": text_of_fraction((by_epsilon and by_epsilon.remaining) or _NOTHING),
        "delta": text_of_fraction((by_delta and by_delta.remaining_delta) or _NOTHING),
    }


def unit_text(whole: Balance) -> str | None:
    """What a dataset is counted in; None until its first ceiling, or while its owner has not stated it."""
    return None if whole.unit is None else str(whole.unit)


async def _asking(request: Request) -> Asking:  # async: a plain function would cost a change of threads
    return Asking(request.app.state.service, request.state.person)


async def _content(request: Request) -> bytes:
    return await request.body()


AskingNow = Annotated[Asking, Depends(_asking)]
ContentNow = Annotated[bytes, Depends(_content)]  # as it came, to be read when it is known that it may be
TOKEN = Depends(HTTPBearer(auto_error=False, description="A token that the owner gave: hrw_…"))  # for the OpenAPI document


def hash_of_request(what: str, dataset: str, body: Any) -> str:
    """The same for requests that mean the same: amounts are in their shortest form by now."""
    text = json.dumps([what, dataset, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
