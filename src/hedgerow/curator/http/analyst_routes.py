"""What an analyst may ask: which datasets, what is left, what it would cost, dummy rows, forests, scores."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from starlette.concurrency import run_in_threadpool

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.units import Unit
from hedgerow.curator.http import responses, scores
from hedgerow.curator.http.counts import checked_count
from hedgerow.curator.http.errors import Refusal, not_found
from hedgerow.curator.http.forests import ASSUMED_ROWS, as_dummy, checked_plan, dummy_rows, plan_as_json, recipe_of, trained
from hedgerow.curator.http.job_status import standing
from hedgerow.curator.http.jobs import Job
from hedgerow.curator.http.paying import Prepare
from hedgerow.curator.http.predictions import predicted
from hedgerow.curator.http.request_context import TOKEN, Asking, AskingNow, ContentNow, hash_of_request, left_of, unit_text
from hedgerow.curator.http.requests import Counts, Forest, Name, Quote, Rows, Score, counts_of
from hedgerow.curator.http.work import RELEASE, Task
from hedgerow.curator.ledger.answers import Answer
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.errors import LedgerError

router = APIRouter(prefix="/v1", dependencies=[TOKEN], tags=["analysts"])
JOB: dict[str, Any] = {"response_model": responses.Job, "response_model_exclude_unset": True}
COUNTS = {"requestBody": {"required": True, "content": {"application/json": {"schema": Counts.model_json_schema()}}}}
FEW_ROWS = 10  # that are predicted at once, a millisecond or two
Key = Annotated[Name, Header(alias="Idempotency-Key", description="New for each request; sent again, the answer is the same.")]


@router.get("/datasets", response_model=responses.Datasets)
async def datasets(asking: AskingNow) -> dict[str, Any]:
    """The datasets that are granted to you, and what is left of each."""
    return await asking.at_once(datasets_of)


def datasets_of(asking: Asking) -> dict[str, Any]:
    return {"datasets": [_summary(asking, name) for name in asking.curator.accounts.visible(asking.person)]}


@router.get("/datasets/{name}", response_model=responses.Dataset)
async def dataset(asking: AskingNow, name: str) -> dict[str, Any]:
    """One dataset: its schema, what is left for each purpose, and whose rows a release with counts will say that it holds."""
    return await asking.at_once(lambda now: dataset_of(now, name))


def dataset_of(asking: Asking, name: str) -> dict[str, Any]:
    return {**_summary(asking, name), "owner": asking.service.name or name, "schema": asking.schema_text(name)}


def _summary(asking: Asking, name: str) -> dict[str, Any]:
    purposes = asking.purposes(name)
    whole, *others = asking.curator.ledger.accounts(name, asking.person.name, *purposes)
    left = {purpose: left_of(whole, *others[:1], own) for purpose, own in zip(purposes, others[1:], strict=True)}
    purposes_left = {purpose: {"remaining": amounts} for purpose, amounts in left.items()}
    return {"name": name, "closed": whole.closed, "unit": unit_text(whole), "purposes": purposes_left}


@router.post("/datasets/{name}/quote", response_model=responses.Quoted)
async def quote(asking: AskingNow, name: str, body: Quote) -> dict[str, Any]:
    """What a forest would cost: nothing is charged, no row is read."""
    return await asking.in_time(lambda: quote_of(asking, name, body))


def quote_of(asking: Asking, name: str, body: Quote) -> dict[str, Any]:
    schema = asking.open_dataset(name, body.purpose).schema
    recipe = recipe_of(body, asking.service.limits)
    least = checked_plan(recipe, schema)
    plan = checked_plan(recipe, schema, body.rows or (None if schema.rows is not None else ASSUMED_ROWS))
    cost = {"epsilon": body.epsilon, "delta": text_of_fraction(least.delta)}
    return {"cost": cost, "remaining": asking.left(name, body.purpose), **plan_as_json(plan)}


@router.post("/datasets/{name}/dummy", response_model=responses.Dummy)
async def dummy(asking: AskingNow, name: str, body: Forest) -> dict[str, Any]:
    """The same request on rows that are made from the schema alone: free, and worth nothing but to see that it works."""
    return await asking.in_time(lambda: dummy_of(asking, name, body))


def dummy_of(asking: Asking, name: str, body: Forest) -> dict[str, Any]:
    limits = asking.service.limits
    schema = asking.open_dataset(name, body.purpose).schema
    recipe = recipe_of(body, limits)
    plan = checked_plan(recipe, schema)
    with _one_of(asking.service.dummies, "Other trials on dummy rows are under way."):
        budget = Budget(body.epsilon, plan.delta)
        release = as_dummy(trained(recipe, dummy_rows(schema, limits.dummy_rows), schema, budget, n_jobs=limits.threads))
    return {"dummy": True, "rows": limits.dummy_rows, "release": json.loads(release.to_json())}


@router.post("/datasets/{name}/forests", status_code=202, **JOB)
def forests(asking: AskingNow, name: str, body: Forest, key: Key, response: Response) -> dict[str, Any]:
    """Pay for a forest and have it grown: a job, and its release when it is done."""
    limits = asking.service.limits
    asking.purposes(name)

    def prepare() -> Callable[[], Reserved]:
        schema = asking.open_dataset(name, body.purpose).schema
        plan = checked_plan(recipe_of(body, limits), schema)
        return partial(reserved_for, asking, name, body.purpose, body.epsilon, plan.delta, f"fit {body.algorithm}", Unit.of(schema))

    return _begun(asking, key, hash_of_request("forest", name, body.model_dump()), prepare, Task(name, body), response)


@router.post("/datasets/{name}/scores", status_code=202, **JOB)
def score(asking: AskingNow, name: str, body: Score, key: Key, response: Response) -> dict[str, Any]:
    """Pay for a private score of one of your releases on the rows of a dataset: a job, and its score when it is done."""
    asking.purposes(name)
    release = _answer(asking, body.release, RELEASE)

    def prepare() -> Callable[[], Reserved]:
        unit = Unit.of(scores.scored(release, asking.open_dataset(name, body.purpose), body.epsilon).schema)
        return partial(reserved_for, asking, name, body.purpose, body.epsilon, 0, "evaluate", unit)

    return _begun(asking, key, hash_of_request("score", name, body.model_dump()), prepare, Task(name, body, release), response)


@router.post("/datasets/{name}/counts", status_code=202, openapi_extra=COUNTS, **JOB)
def counts(asking: AskingNow, name: str, content: ContentNow, key: Key, response: Response) -> dict[str, Any]:
    """Pay for noisy counts in the trees of a plan that several owners share: a job, and a release to be merged when it is done."""
    asking.purposes(name)
    with _one_of(asking.service.plans, "Another plan is being checked."):
        body, document = counts_of(content)
        task = Task(name, body, document, asking.service.name)

        def prepare() -> Callable[[], Reserved]:
            dataset, _ = asking.open_dataset(name, body.purpose), task.table  # a name that no release could hold is refused
            plan = checked_count(document, dataset, body.epsilon, asking.service.limits)
            return partial(reserved_for, asking, name, body.purpose, plan.epsilon, 0, f"count {plan.algorithm}", Unit.of(plan.schema))

        request = hash_of_request("count", name, [body.purpose, body.epsilon, hashlib.sha256(document).hexdigest()])
        return _begun(asking, key, request, prepare, task, response)


@contextmanager
def _one_of(places: threading.Semaphore, taken: str) -> Iterator[None]:
    """What takes a while is not done by many requests at once."""
    if not places.acquire(blocking=False):
        raise Refusal(429, "busy", f"{taken} Nothing was spent. Try again soon.", {"Retry-After": "1"})
    try:
        yield
    finally:
        places.release()


def reserved_for(asking: Asking, name: str, purpose: str, epsilon: Any, delta: Any, what: str, unit: Unit) -> Reserved:
    """A refusal that comes from a closing in between is told as one."""
    try:
        with asking.service.pace.one_more(asking.person.name):
            return asking.curator.ledger.reserve(name, asking.person.name, purpose, epsilon, delta, what, unit=unit)
    except LedgerError:
        asking.open_dataset(name, purpose)
        if asking.curator.ledger.balance(name).epsilon is None:
            raise Refusal(402, "budget", "The owner has set no ceiling for the dataset yet, so nothing can be paid.") from None
        raise


def _begun(asking: Asking, key: str, request: str, prepare: Prepare, task: Task, response: Response) -> dict[str, Any]:
    found: Job | Answer = asking.service.jobs.ask(asking.person.name, key, request, prepare, task)
    id = found.reserved.key if isinstance(found, Job) else found.reservation
    response.headers["Location"] = f"/v1/jobs/{id}"
    return job_of(asking, id)


@router.get("/jobs/{id}", **JOB)
async def job(asking: AskingNow, id: str) -> dict[str, Any]:
    """How a job stands. `share` is of the pass over the rows that it is in."""
    return await asking.at_once(lambda now: job_of(now, id))


def job_of(asking: Asking, id: str) -> dict[str, Any]:
    live, session = asking.service.jobs.live(id), asking.service.sessions.live(id)  # first: what ends in between is told as running
    reserved = asking.reservation(id)
    return standing(reserved, live, session is not None, asking.curator.answers.kinds([id]).get(id))


@router.get("/datasets/{name}/jobs", response_model=responses.Jobs, response_model_exclude_unset=True)
async def jobs(
    asking: AskingNow, name: str, before: Annotated[int, Query(ge=1, lt=2**62)] = 2**62 - 1, most: Annotated[int, Query(ge=1, le=100)] = 20
) -> dict[str, Any]:
    """What you have asked of a dataset, newest first; the next page is `before` the number that is told. An owner sees everybody's."""
    return await asking.at_once(lambda now: jobs_of(now, name, before, most))


def jobs_of(asking: Asking, name: str, before: int, most: int) -> dict[str, Any]:
    asking.purposes(name)
    owner = asking.person.owns
    found = asking.curator.ledger.last_reservations(name, None if owner else asking.person.name, most, before)
    kinds = asking.curator.answers.kinds([reserved.key for reserved in found])
    live, sessions = asking.service.jobs.live, asking.service.sessions.live
    told = [
        {**standing(each, live(each.key), sessions(each.key) is not None, kinds.get(each.key)), "analyst": each.analyst} for each in found
    ]
    return {"jobs": told, "before": found[-1].seq if len(found) == most else None}



@router.get("/releases/{id}", response_class=Response, responses={200: {"content": {RELEASE: {}}}})
def release(asking: AskingNow, id: str) -> Response:
    """The release, byte for byte as it was stored."""
    return Response(_answer(asking, id, RELEASE), media_type=RELEASE)


@router.post("/releases/{id}/predict", response_model=responses.Predictions)
async def predict(asking: AskingNow, id: str, body: Rows) -> dict[str, Any]:
    """Classes of rows that are sent, by a release: nothing is charged, no row is kept. What is not declared takes the fallback."""
    await asking.at_once(lambda now: now.reservation(id))  # whose it is, before what is kept is looked at
    releases, most = asking.service.releases, asking.service.limits.predict_rows
    kept = releases.kept(id)
    if kept is not None and len(body.rows) <= FEW_ROWS:
        return predicted(kept, body.rows, most)  # sooner than another thread would begin
    return await run_in_threadpool(lambda: predicted(releases.get(id, lambda: _answer(asking, id, RELEASE)), body.rows, most))


@router.get("/scores/{id}", response_class=Response, responses={200: {"content": {scores.CONTENT_TYPE: {}}}})
def stored_score(asking: AskingNow, id: str) -> Response:
    """The score, byte for byte as it was stored."""
    return Response(_answer(asking, id, scores.CONTENT_TYPE), media_type=scores.CONTENT_TYPE)


def _answer(asking: Asking, id: str, content_type: str) -> bytes:
    found = asking.curator.answers.paid_by(asking.reservation(id).analyst, id)
    if found is None or found.content_type != content_type:
        raise not_found()
    return found.content
