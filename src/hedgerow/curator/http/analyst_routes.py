"""Routes for analysts: datasets and remaining budgets, quotes, trials on dummy rows; forests, scores and counts as jobs."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
from hedgerow.curator.http.jobs import Job, job_status
from hedgerow.curator.http.predictions import predicted
from hedgerow.curator.http.request_context import TOKEN, Context, RawBody, RequestContext, hash_of_request, remaining_of, unit_text
from hedgerow.curator.http.requests import Counts, Forest, Name, Quote, Rows, Score, counts_of
from hedgerow.curator.http.reservations import ReservationRequest
from hedgerow.curator.http.work import RELEASE, Task
from hedgerow.curator.ledger.answers import Answer
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.errors import PlanError

router = APIRouter(prefix="/v1", dependencies=[TOKEN], tags=["analysts"])
JOB: dict[str, Any] = {"response_model": responses.Job, "response_model_exclude_unset": True}
COUNTS = {"requestBody": {"required": True, "content": {"application/json": {"schema": Counts.model_json_schema()}}}}
FEW_ROWS = 10  # that are predicted at once, a millisecond or two
Key = Annotated[Name, Header(alias="Idempotency-Key", description="New for each request; sent again, the answer is the same.")]


@router.get("/datasets", response_model=responses.Datasets)
async def datasets(context: Context) -> dict[str, Any]:
    """The datasets that are granted to you, and what is left of each."""
    return await context.in_snapshot(datasets_of)


def datasets_of(context: RequestContext) -> dict[str, Any]:
    return {"datasets": [_summary(context, name) for name in context.curator.accounts.visible(context.person)]}


@router.get("/datasets/{name}", response_model=responses.Dataset)
async def dataset(context: Context, name: str) -> dict[str, Any]:
    """One dataset: its schema, what is left for each purpose, and whose rows a release with counts will say that it holds."""
    return await context.in_snapshot(lambda snapshot: dataset_of(snapshot, name))


def dataset_of(context: RequestContext, name: str) -> dict[str, Any]:
    party = context.service.party
    public = {
        "owner": context.service.name or name, "schema": context.schema_text(name), "signed_with": context.curator.signed_with,
        "together": None if party is None else party.parties.digest,
        "together_least": 0 if party is None else party.parties.least_present,
        "together_name": None if party is None else party.parties.party(party.number).name,
    }  # fmt: skip
    return {**_summary(context, name), **public}


def _summary(context: RequestContext, name: str) -> dict[str, Any]:
    purposes = context.purposes(name)
    whole, *others = context.accounts(name, *purposes)
    remaining = {purpose: remaining_of(whole, *others[:1], own) for purpose, own in zip(purposes, others[1:], strict=True)}
    granted = {purpose: {"remaining": amounts} for purpose, amounts in remaining.items()}
    return {"name": name, "closed": whole.closed, "unit": unit_text(whole), "purposes": granted}


@router.post("/datasets/{name}/quote", response_model=responses.Quoted)
async def quote(context: Context, name: str, body: Quote) -> dict[str, Any]:
    """What a forest would cost: nothing is charged, no row is read."""
    return await context.with_timeout(lambda: quote_of(context, name, body))


def quote_of(context: RequestContext, name: str, body: Quote) -> dict[str, Any]:
    schema = context.open_dataset(name, body.purpose).schema
    recipe = recipe_of(body, context.service.limits)
    least = checked_plan(recipe, schema)
    plan = checked_plan(recipe, schema, body.rows or (None if schema.rows is not None else ASSUMED_ROWS))
    cost = {"epsilon": body.epsilon, "delta": text_of_fraction(least.delta)}
    return {"cost": cost, "remaining": context.remaining(name, body.purpose), **plan_as_json(plan)}


@router.post("/datasets/{name}/dummy", response_model=responses.Dummy)
async def dummy(context: Context, name: str, body: Forest) -> dict[str, Any]:
    """The same request on rows that are made from the schema alone: free, and worth nothing but to see that it works."""
    return await context.with_timeout(lambda: dummy_of(context, name, body))


def dummy_of(context: RequestContext, name: str, body: Forest) -> dict[str, Any]:
    limits = context.service.limits
    schema = context.open_dataset(name, body.purpose).schema
    recipe = recipe_of(body, limits)
    plan = checked_plan(recipe, schema)
    with _one_of(context.service.dummies, "Other trials on dummy rows are under way."):
        budget = Budget(body.epsilon, plan.delta)
        release = as_dummy(trained(recipe, dummy_rows(schema, limits.dummy_rows), schema, budget, n_jobs=limits.threads))
    return {"dummy": True, "rows": limits.dummy_rows, "release": json.loads(release.to_json())}


@router.post("/datasets/{name}/forests", status_code=202, **JOB)
def forests(context: Context, name: str, body: Forest, key: Key, response: Response) -> dict[str, Any]:
    """Pay for a forest and have it grown: a job, and its release when it is done."""
    context.purposes(name)
    request = IdempotencyKey(key, hash_of_request("forest", name, body.model_dump()))
    found = context.service.jobs.find(context.person.name, request)
    if found is None:
        schema = context.open_dataset(name, body.purpose).schema
        plan = checked_plan(recipe_of(body, context.service.limits), schema)
        wanted = ReservationRequest(name, body.purpose, body.epsilon, plan.delta, f"fit {body.algorithm}", Unit.of(schema))
        found = _submitted(context, request, Task(name, body), wanted)
    return _accepted(context, found, response)


@router.post("/datasets/{name}/scores", status_code=202, **JOB)
def score(context: Context, name: str, body: Score, key: Key, response: Response) -> dict[str, Any]:
    """Pay for a private score of one of your releases on the rows of a dataset: a job, and its score when it is done."""
    context.purposes(name)
    release = _answer(context, body.release, RELEASE)
    request = IdempotencyKey(key, hash_of_request("score", name, body.model_dump()))
    found = context.service.jobs.find(context.person.name, request)
    if found is None:
        unit = Unit.of(scores.scored(release, context.open_dataset(name, body.purpose), body.epsilon).schema)
        wanted = ReservationRequest(name, body.purpose, body.epsilon, 0, "evaluate", unit)
        found = _submitted(context, request, Task(name, body, release), wanted)
    return _accepted(context, found, response)


@router.post("/datasets/{name}/counts", status_code=202, openapi_extra=COUNTS, **JOB)
def counts(context: Context, name: str, content: RawBody, key: Key, response: Response) -> dict[str, Any]:
    """Pay for noisy counts in the trees of a plan that several owners share: a job, and a release to be merged when it is done.

    With `together` the owners' services add up their counts, and the release of each is that of all.
    """
    context.purposes(name)
    with _one_of(context.service.plans, "Another plan is being checked."):
        body, document = counts_of(content)
        party = None if body.together is None else context.service.party
        task = Task(name, body, document, context.service.name, party)
        what, run = ("count", []) if body.together is None else ("together", [body.together])
        request = IdempotencyKey(key, hash_of_request(what, name, [body.purpose, body.epsilon, hashlib.sha256(document).hexdigest(), *run]))
        found = context.service.jobs.find(context.person.name, request)
        if found is None:
            dataset, _ = context.open_dataset(name, body.purpose), task.table  # a name that no release could hold is refused
            if body.together is not None and party is None:
                raise PlanError("together: this service counts with no others: its owner would start it with --party. Nothing was spent.")
            plan = checked_count(document, dataset, body.epsilon, context.service.limits)
            wanted = ReservationRequest(name, body.purpose, plan.epsilon, plan.delta, f"{what} {plan.algorithm}", Unit.of(plan.schema))
            found = _submitted(context, request, task, wanted)
        return _accepted(context, found, response)


@contextmanager
def _one_of(places: threading.Semaphore, taken: str) -> Iterator[None]:
    """What takes a while is not done by many requests at once."""
    if not places.acquire(blocking=False):
        raise Refusal(429, "busy", f"{taken} Nothing was spent. Try again soon.", {"Retry-After": "1"})
    try:
        yield
    finally:
        places.release()


def _submitted(context: RequestContext, key: IdempotencyKey, task: Task, wanted: ReservationRequest) -> Job | Answer | Reserved:
    return context.service.jobs.submit(context.person.name, key, task, wanted, context.reserve)


def _accepted(context: RequestContext, found: Job | Answer | Reserved, response: Response) -> dict[str, Any]:
    id = found.reservation if isinstance(found, Answer) else found.reserved.key if isinstance(found, Job) else found.key
    response.headers["Location"] = f"/v1/jobs/{id}"
    return job_of(context, id)


@router.get("/jobs/{id}", **JOB)
async def job(context: Context, id: str) -> dict[str, Any]:
    """The status of a job. `share` is of the pass over the rows that it is in."""
    return await context.in_snapshot(lambda snapshot: job_of(snapshot, id))


def job_of(context: RequestContext, id: str) -> dict[str, Any]:
    live, session = context.service.jobs.live(id), context.service.sessions.live(id)  # first: what ends in between is reported as running
    reserved = context.reservation(id)
    return job_status(reserved, live, session is not None, context.curator.answers.content_types([id]).get(id))


@router.get("/datasets/{name}/jobs", response_model=responses.Jobs, response_model_exclude_unset=True)
async def jobs(
    context: Context, name: str, before: Annotated[int, Query(ge=1, lt=2**62)] = 2**62 - 1, most: Annotated[int, Query(ge=1, le=100)] = 20
) -> dict[str, Any]:
    """Your requests to a dataset, newest first; the next page is `before` the number in the answer. An owner sees everybody's."""
    return await context.in_snapshot(lambda snapshot: jobs_of(snapshot, name, before, most))


def jobs_of(context: RequestContext, name: str, before: int, most: int) -> dict[str, Any]:
    context.purposes(name)
    owner = context.person.owns
    found = context.curator.ledger.last_reservations(name, None if owner else context.person.name, most, before)
    content_types = context.curator.answers.content_types([reserved.key for reserved in found])
    live, sessions = context.service.jobs.live, context.service.sessions.live
    listed = [
        {**job_status(each, live(each.key), sessions(each.key) is not None, content_types.get(each.key)), "analyst": each.analyst}
        for each in found
    ]
    return {"jobs": listed, "before": found[-1].seq if len(found) == most else None}


@router.get("/releases/{id}", response_class=Response, responses={200: {"content": {RELEASE: {}}}})
def release(context: Context, id: str) -> Response:
    """The release, byte for byte as it was stored."""
    return Response(_answer(context, id, RELEASE), media_type=RELEASE)


@router.post("/releases/{id}/predict", response_model=responses.Predictions)
async def predict(context: Context, id: str, body: Rows) -> dict[str, Any]:
    """Classes of rows that are sent, by a release: nothing is charged, no row is kept. What is not declared takes the fallback."""
    await context.in_snapshot(lambda snapshot: snapshot.reservation(id))  # whose it is, before the cache is read
    releases, most = context.service.releases, context.service.limits.predict_rows
    cached = releases.cached(id)
    if cached is not None and len(body.rows) <= FEW_ROWS:
        return predicted(cached, body.rows, most)  # sooner than another thread would begin
    return await run_in_threadpool(lambda: predicted(releases.get(id, lambda: _answer(context, id, RELEASE)), body.rows, most))


@router.get("/scores/{id}", response_class=Response, responses={200: {"content": {scores.CONTENT_TYPE: {}}}})
def stored_score(context: Context, id: str) -> Response:
    """The score, byte for byte as it was stored."""
    return Response(_answer(context, id, scores.CONTENT_TYPE), media_type=scores.CONTENT_TYPE)


def _answer(context: RequestContext, id: str, content_type: str) -> bytes:
    found = context.curator.answers.paid_by(context.reservation(id).analyst, id)
    if found is None or found.content_type != content_type:
        raise not_found()
    return found.content
