"""HTTP errors: one JSON shape for all, and texts that depend neither on a row nor on a dataset that is not granted."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from hedgerow.curator.http.logs import error_fields, log
from hedgerow.errors import BudgetError, HedgerowError, LedgerError, PlanError, SchemaError, TableError

NOT_KNOWN = "There is no such thing here, or it is not granted to you. The list of datasets has those that you may use."
TABLE = "The owner's table cannot be read now. Its owner can see why."
UNEXPECTED = "Something went wrong in the service. Its owner can see what."
UNAVAILABLE = "The service cannot use its ledger now. Look before you try again."
REFUSED = "The ledger does not allow this now."
_WORDS = {
    400: ("body", "The body cannot be read."),
    404: ("not_found", NOT_KNOWN),
    405: ("method", "This address does not take that method."),
}
CODES = {
    "token": "no valid token", "owner": "for owners alone", "not_found": "not there, or not granted", "method": "another method is needed",
    "body": "the body cannot be read", "invalid": "a field is wrong", "plan": "this cannot be planned", "schema": "the schema is refused",
    "purpose": "not granted for this purpose", "budget": "a ceiling refuses it", "closed": "the owner has ended the connection",
    "table": "the table cannot be read", "refused": "the ledger does not allow it", "key_used": "the key belongs to another request",
    "too_large": "the body is too large", "too_slow": "the body came too slowly", "busy": "too much at once", "stopping": "it stops",
    "not_ready": "the service does not take requests", "unavailable": "the ledger cannot be used", "unexpected": "something went wrong",
    "failed": "a job did not end well", "columns": "a declared column is missing", "number": "not the next query of the session",
    "ended": "the session has ended", "lost": "the session was lost, and stays spent", "form": "a form of a page cannot be read",
    "elsewhere": "a form from another site", "too_long": "the answer took too long",
    "too_often": "too many requests in an hour",
}  # fmt: skip


class Refusal(Exception):
    """A request that is refused: the status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}


def not_found() -> Refusal:
    return Refusal(404, *_WORDS[404])


def error_response(refusal: Refusal) -> Response:
    content = json.dumps({"error": {"code": refusal.code, "message": refusal.message}})  # ASCII: a lone surrogate cannot break it
    return Response(content, refusal.status, refusal.headers, "application/json")


def refusal_of(error: Exception, owns: bool) -> Refusal:
    """The HTTP error of an exception. An owner may read our own messages about the table; an analyst gets a fixed sentence."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, LedgerError) and isinstance(error.__context__, SQLAlchemyError):
        log("ledger", logging.ERROR, **error_fields(error))
        return Refusal(503, "unavailable", UNAVAILABLE)
    if isinstance(error, LedgerError):
        return Refusal(409, "refused", str(error) if owns else REFUSED)
    if isinstance(error, BudgetError):
        return Refusal(402, "budget", str(error))
    if isinstance(error, PlanError):
        return Refusal(422, "plan", str(error))
    log("error", logging.ERROR, **error_fields(error))
    if isinstance(error, TableError):
        return Refusal(422, "table", str(error)) if owns else Refusal(409, "table", TABLE)
    if isinstance(error, SchemaError) and owns:
        return Refusal(422, "schema", str(error))
    return Refusal(500, "unexpected", UNEXPECTED)


def invalid(error: RequestValidationError) -> Refusal:
    """Where the request is wrong and what was expected; what was got is not repeated."""
    words = {"extra_forbidden": "there is no such field; /openapi.json names those that there are"}
    found = [f"{'.'.join(str(part)[:60] for part in e['loc'])}: {words.get(e['type'], e['msg'])}" for e in error.errors()[:5]]
    return Refusal(422, "invalid", "; ".join(found)[:1000])


def install_error_handlers(app: FastAPI, respond: Callable[[Scope, Refusal], Response]) -> None:
    """One handler for each kind of error that a route can raise."""

    async def refused(request: Request, error: Exception) -> Response:
        person: Any = getattr(request.state, "person", None)
        return respond(request.scope, refusal_of(error, person is not None and person.owns))

    async def not_valid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return respond(request.scope, invalid(error))

    async def of_the_framework(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code, message = _WORDS.get(error.status_code, ("refused", "The request is refused."))
        return respond(request.scope, Refusal(error.status_code, code, message, dict(error.headers or {})))

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(HedgerowError, refused)
    app.add_exception_handler(RequestValidationError, not_valid)
    app.add_exception_handler(HTTPException, of_the_framework)
