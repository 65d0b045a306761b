"""Request context: the dependency that gives every route its person and service, and checks what the person may see.

A dataset that is not granted and one that does not exist get the same answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http import reading
from hedgerow.curator.http.errors import Refusal, not_found
from hedgerow.curator.http.jobs import Jobs
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.party import ServiceParty
from hedgerow.curator.http.predictions import ReleaseCache
from hedgerow.curator.http.rate_limit import RateLimit
from hedgerow.curator.http.reservations import ReservationRequest, stopping
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.sessions import Sessions
from hedgerow.curator.http.storing import Storage
from hedgerow.curator.ledger.accounts import Person
from hedgerow.curator.ledger.balances import Balance, check_room, tightest
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.checks import checked_name
from hedgerow.curator.ledger.database import is_unavailable
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.curator.ledger.registry import Dataset
from hedgerow.errors import BudgetError, LedgerError
from hedgerow.schema.toml import write

Result = TypeVar("Result")
HELD = "What is left is held by requests that are under way. Nothing was spent. Try again later."
SHARE = (
    "A session holds what it reserves, and others may use the dataset too: one person's sessions may hold at most {share} of what is left "
    "of it. Nothing was spent. Reserve less, or request a job."
)


@dataclass
class Service:
    """What all routes share. name: whose rows a release with counts says that it holds; where it is empty, the name of the dataset.

    party: who the service is among owners who count together
    """

    curator: Curator
    limits: Limits
    storage: Storage
    jobs: Jobs
    sessions: Sessions
    name: str = ""
    party: ServiceParty | None = None
    dummies: threading.Semaphore = field(init=False)
    plans: threading.Semaphore = field(init=False)
    releases: ReleaseCache = field(init=False)
    rate_limit: RateLimit = field(init=False)
    schemas: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dummies = threading.Semaphore(self.limits.dummies)
        self.plans = threading.Semaphore(self.limits.plans)
        self.releases = ReleaseCache(self.limits)
        self.rate_limit = RateLimit(self.limits.reservations_each_hour)

    def hurry(self) -> None:
        """A stop waits no longer for what runs."""
        self.jobs.hurry.set()
        self.sessions.hurry.set()

    def under_way(self) -> frozenset[str]:
        """The reservations of jobs and sessions that are."""
        return frozenset(reserved.key for reserved in self.held())

    def held(self) -> list[Reserved]:
        """What jobs and sessions that are under way have reserved."""
        jobs = [job.reserved for job in self.jobs.all_live().values()]
        return jobs + [session.reserved for session in self.sessions.all_live().values()]


@dataclass(frozen=True)
class RequestContext:
    """One request of one person."""

    service: Service
    person: Person
    snapshot: Curator | None = None

    @property
    def curator(self) -> Curator:
        return self.snapshot or self.service.curator

    async def in_snapshot(self, read: Callable[[RequestContext], Result]) -> Result:
        """Call `read` with a context that sees one snapshot: one transaction instead of many.

        It must only read.
        """
        curator = self.service.curator
        return await reading.read(curator.database, lambda connection: read(replace(self, snapshot=curator.within(connection))))

    async def with_timeout(self, work: Callable[[], Result]) -> Result:
        """Compute something free in a thread, and give up waiting when it takes too long."""
        try:
            async with asyncio.timeout(self.service.limits.answer_seconds):
                return await to_thread.run_sync(work, abandon_on_cancel=True)
        except TimeoutError:
            raise Refusal(503, "too_long", "This takes too long to compute. Ask for smaller trees. Nothing was spent.") from None

    def purposes(self, name: str) -> tuple[str, ...]:
        """What the person may use a dataset for, from the grants, before anything else is read. An owner: what was paid for."""
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
        """A dataset that may be queried now, for this purpose."""
        found = self.dataset(name)
        if not self.curator.accounts.may(self.person, name, purpose):
            raise Refusal(403, "purpose", "The dataset is not granted to you for this purpose.")
        if found.closed:
            raise Refusal(409, "closed", "The dataset is closed: its owner has ended the connection. Nothing was spent.")
        return found

    def remaining(self, name: str, purpose: str) -> dict[str, str]:
        """What the tightest ceiling leaves; nothing where the owner has set none."""
        return remaining_of(*self.accounts(name, purpose))

    def accounts(self, name: str, *purposes: str) -> list[Balance]:
        """The accounts of the dataset, of the person and of these purposes, as the person may see them: what others hold open for purposes
        that are not granted to them does not show.
        """
        whole, *others = self.curator.ledger.accounts(name, self.person.name, *purposes)
        held = self._held_unseen(name)
        epsilon, delta = sum((r.epsilon for r in held), Fraction(0)), sum((r.delta for r in held), Fraction(0))
        return [whole.plus(-epsilon, -delta), *others]

    def _held_unseen(self, name: str) -> list[Reserved]:
        others = [r for r in self.service.held() if r.dataset == name and r.analyst != self.person.name]
        if self.person.owns or not others:
            return []
        granted = self.curator.accounts.purposes(self.person, name)
        now = self.curator.ledger.reservations_of([r.key for r in others if r.purpose not in granted])  # as this snapshot has them
        return [r for r in now if not r.ended]

    def reserve_for_session(self, wanted: ReservationRequest, request: IdempotencyKey) -> Reserved:
        """The same for a session, which holds what it has reserved while it lasts: never all that is left, where others may use it too."""
        name, person = wanted.dataset, self.person.name
        if not self.person.owns and any(g.dataset == name and g.analyst != person for g in self.curator.accounts.grants()):
            own = [
                s.reserved for s in self.service.sessions.all_live().values() if (s.reserved.dataset, s.reserved.analyst) == (name, person)
            ]
            whole, share = self.curator.ledger.balance(name), Fraction(str(self.service.limits.session_share))
            for asked, held, left in (
                (Fraction(wanted.epsilon), sum((r.epsilon for r in own), Fraction(0)), whole.remaining),
                (Fraction(wanted.delta), sum((r.delta for r in own), Fraction(0)), whole.remaining_delta),
            ):
                if asked and held + asked > share * ((left or 0) + held) and asked <= (left or 0):
                    raise Refusal(402, "budget", SHARE.format(share=text_of_fraction(share)))
        return self.reserve(wanted, request)

    def reserve(self, wanted: ReservationRequest, request: IdempotencyKey) -> Reserved:
        """Reserve for the person, within the rate limit. Where the dataset was closed meanwhile, the refusal says so."""
        name, person, ledger = wanted.dataset, self.person.name, self.curator.ledger
        try:
            with self.service.rate_limit.acquire(person):
                amounts = wanted.epsilon, wanted.delta
                return ledger.reserve(name, person, wanted.purpose, *amounts, wanted.what, unit=wanted.unit, request=request)
        except LedgerError as error:
            self.service.storage.note_failure(error)
            if is_unavailable(error):
                raise
            if not ledger.in_charge():
                raise stopping() from None
            self.open_dataset(name, wanted.purpose)
            if self.curator.ledger.balance(name).epsilon is None:
                raise Refusal(402, "budget", "The owner has set no ceiling for the dataset yet, so nothing can be paid.") from None
            raise
        except BudgetError:
            if not self._held_unseen(name):
                raise
            check_room(self.accounts(name, wanted.purpose), Fraction(wanted.epsilon), Fraction(wanted.delta), wanted.what)
            raise Refusal(402, "budget", HELD) from None

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


_ZERO = Balance("", "", "").spent


def remaining_of(whole: Balance, *others: Balance) -> dict[str, str]:
    by_epsilon, by_delta = tightest((whole, *others)) if whole.epsilon is not None else (None, None)
    return {
        "epsilon": text_of_fraction((by_epsilon and by_epsilon.remaining) or _ZERO),
        "delta": text_of_fraction((by_delta and by_delta.remaining_delta) or _ZERO),
    }


def unit_text(whole: Balance) -> str | None:
    """What a dataset is counted in; None until its first ceiling, or while its owner has not stated it."""
    return None if whole.unit is None else str(whole.unit)


async def _context(request: Request) -> RequestContext:  # async: a plain function would cost a change of threads
    return RequestContext(request.app.state.service, request.state.person)


async def _body(request: Request) -> bytes:
    return await request.body()


Context = Annotated[RequestContext, Depends(_context)]
RawBody = Annotated[bytes, Depends(_body)]  # as it came, to be parsed when it is known that it may be
TOKEN = Depends(HTTPBearer(auto_error=False, description="A token that the owner gave: hrw_…"))  # for the OpenAPI document


def hash_of_request(what: str, dataset: str, body: Any) -> str:
    """The same for requests that mean the same: amounts are in their shortest form by now."""
    text = json.dumps([what, dataset, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
