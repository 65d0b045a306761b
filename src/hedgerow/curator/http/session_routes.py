"""Sessions over HTTP: a session reserves once, and its queries are numbered."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_fraction
from hedgerow.accounting.units import Unit
from hedgerow.accounting.zcdp import rho_for
from hedgerow.curator.http import responses
from hedgerow.curator.http.analyst_routes import Key
from hedgerow.curator.http.errors import Refusal, not_found
from hedgerow.curator.http.jobs import session_note
from hedgerow.curator.http.request_context import TOKEN, Context, RawBody, RequestContext, hash_of_request
from hedgerow.curator.http.requests import NewSession
from hedgerow.curator.http.reservations import ReservationRequest
from hedgerow.curator.http.session_worker import QueryResult, SessionEnd, SessionWorker, digest_of
from hedgerow.curator.http.sessions import Session, SessionQuery, ended
from hedgerow.curator.http.storing import SESSION_END
from hedgerow.curator.ledger.chain import Reserved
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.errors import PlanError, SchemaError
from hedgerow.queries import BY_NAME, ChooseLocally
from hedgerow.remote.codec import RUNNING, number_of
from hedgerow.schema.codebook import Codebook

router = APIRouter(prefix="/v1", dependencies=[TOKEN], tags=["verbs"])
UNSETTLED = "The session was lost when the service stopped before it could be ended. All that was reserved for it stays spent."
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "required": ["number"], "properties": {"number": {"type": "integer", "minimum": 1}}}
            }
        },
    }
}


@router.post("/datasets/{name}/sessions", status_code=201, response_model=responses.Session)
def begin(context: Context, name: str, body: NewSession, key: Key) -> dict[str, Any]:
    """Pay for queries of the rows, which are asked afterwards; `end` gives back what they did not cost."""
    context.purposes(name)
    sessions, request = context.service.sessions, IdempotencyKey(key, hash_of_request("session", name, body.model_dump()))
    session = sessions.find(context.person.name, request)
    if session is None:
        schema = context.open_dataset(name, body.purpose).schema
        _check_bins(context, schema, body.bins)
        if body.delta != "0":
            rho_for(exact_epsilon(body.epsilon), exact_delta(body.delta))  # refuses what has no ρ
        wanted = ReservationRequest(name, body.purpose, body.epsilon, body.delta, session_note(body.what), Unit.of(schema))
        session = sessions.open(context.person.name, request, body.bins, wanted, context.reserve_for_session)
    reserved = session.reserved
    return {
        "id": session.id, "dataset": reserved.dataset, "purpose": reserved.purpose, "epsilon": text_of_fraction(reserved.epsilon),
        "delta": text_of_fraction(reserved.delta), "bins": session.bins, "coins": SessionWorker.coins.name,
        "secret": SessionWorker.coins.secret,
    }  # fmt: skip


def _check_bins(context: RequestContext, schema: Any, bins: int) -> None:
    if bins > context.service.limits.bins:
        raise PlanError(f"bins: got {bins}; this service takes at most {context.service.limits.bins}. Nothing was spent.")
    try:
        _ = Codebook(schema, bins).coders
    except SchemaError as error:
        raise PlanError(f"bins: {error}") from None


@router.post("/sessions/{id}/end", response_model=responses.Ended)
async def end(context: Context, id: str) -> dict[str, Any]:
    """Settle: what the queries have cost is kept, the rest given back. Said again, the answer is the same."""
    session = _live(context, id)
    if session is not None and not await context.service.sessions.end_soon(session):
        raise Refusal(409, "busy", "A query of the session is still being answered. Wait for it, then end it.", {"Retry-After": "1"})
    reserved = await run_in_threadpool(_own, context, id)
    delta = 0 * reserved.delta if reserved.state == "released" else reserved.delta
    return {"id": id, "state": reserved.state, "spent": {"epsilon": text_of_fraction(reserved.cost), "delta": text_of_fraction(delta)}}


NUMBERS = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}
ANSWER = {"type": "object", "required": ["number", "arrays"], "properties": {"number": {"type": "integer"}, "arrays": NUMBERS}}
LOOK: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {"schema": ANSWER}}}}


@router.post("/sessions/{id}/{verb}", response_class=Response, responses=LOOK, openapi_extra=BODY)
async def query(context: Context, id: str, verb: str, content: RawBody) -> Response:
    """One query. The same number with the same body gets the same bytes; 202 says that it is still being counted."""
    queried = await run_in_threadpool(_queried, context, id, verb, content)
    await queried.done.within(context.service.limits.look_wait_seconds)  # no thread waits
    if queried.result is None:
        return Response(RUNNING, 202, {"Retry-After": "1"}, "application/json")
    if queried.result.refused is not None:
        raise Refusal(*queried.result.refused)
    return Response(queried.result.content, media_type="application/json")


def _queried(context: RequestContext, id: str, verb: str, content: bytes) -> SessionQuery:
    session = _live(context, id)
    if session is None:
        return _stored(context, _own(context, id), verb, content)
    granted = context.curator.accounts.may(context.person, session.reserved.dataset, session.reserved.purpose)  # it may be withdrawn by now
    if not granted or (verb not in BY_NAME and verb != ChooseLocally.name):
        raise not_found()
    return context.service.sessions.query(session, verb, number_of(content), content)


def _live(context: RequestContext, id: str) -> Session | None:
    """The person's own. Somebody else's is looked up in the ledger as one that is not there, and not found."""
    session = context.service.sessions.live(id)
    return session if session is not None and session.reserved.analyst == context.person.name else None


def _own(context: RequestContext, id: str) -> Reserved:
    found = context.reservation(id)
    if found.analyst != context.person.name:
        raise not_found()
    return found


def _stored(context: RequestContext, reserved: Reserved, verb: str, content: bytes) -> SessionQuery:
    """The last query of a session that has ended, sent again: its answer was stored when the session was settled."""
    found = context.curator.answers.paid_by(reserved.analyst, reserved.key)
    if found is not None and found.content_type == SESSION_END:
        last = msgspec.json.decode(found.content, type=SessionEnd)
        if last.number and (last.number, last.digest) == (number_of(content), digest_of(verb, content)):
            return SessionQuery.answered(last.number, last.digest, QueryResult(last.content, None, True))
    raise ended() if reserved.ended else Refusal(410, "lost", UNSETTLED)
