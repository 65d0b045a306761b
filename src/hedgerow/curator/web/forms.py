"""Parsing of submitted forms, and their errors in words; what was typed is kept."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError

from hedgerow.curator.http.errors import Refusal, refusal_of
from hedgerow.curator.http.request_context import RequestContext
from hedgerow.errors import HedgerowError

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 100
FormFields = dict[str, str]
FORM_ERRORS = (Refusal, HedgerowError, ValidationError)
AnyModel = TypeVar("AnyModel", bound=BaseModel)
LABELS = {
    "epsilon": "ε", "delta": "δ", "n_estimators": "Trees", "max_depth": "Depth", "bins": "Cells of a number", "rows": "Rows to assume",
    "schema": "Schema", "days": "Days", "name": "Name", "purpose": "Purpose", "path": "Path", "algorithm": "Algorithm",
}  # fmt: skip


async def _submitted_form(request: Request) -> FormFields:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if body and kind != FORM:
        raise Refusal(415, "form", "This address takes the form of its page and nothing else.")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except ValueError:
        raise Refusal(400, "form", "The form cannot be read. Open its page again and send it from there.") from None


SubmittedForm = Annotated[FormFields, Depends(_submitted_form)]


def parse_form(kind: type[AnyModel], content: dict[str, Any]) -> AnyModel:
    """The body of a request, from fields of a form: those that were left empty are not sent."""
    return kind.model_validate({name: value for name, value in content.items() if value != ""})


def number(text: str) -> int | str:
    """A whole number where it is one; other text is refused by its field."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text


def form_error(error: Exception, context: RequestContext) -> Refusal:
    """The error above the form; what no change of the form could mend is raised, and has a page of its own."""
    if isinstance(error, ValidationError):
        lines = [f"{LABELS.get(str(e['loc'][-1]), str(e['loc'][-1])[:60])}: {_message(e)}" for e in error.errors()[:5] if e["loc"]]
        return Refusal(422, "invalid", "; ".join(lines)[:1000] + ".")
    refusal = refusal_of(error, context.person.owns)
    if refusal.status in (404, 500):
        raise refusal
    return refusal


def _message(error: Any) -> str:
    if error["type"] in ("missing", "string_too_short"):
        return "it is empty; expected a value"
    text = str(error["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def new_key() -> str:
    """For one form: however often it is sent, it is paid once."""
    return uuid.uuid4().hex
