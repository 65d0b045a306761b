"""Owner pages of people: accounts, tokens, and grants of datasets for purposes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from hedgerow import formatting
from hedgerow.curator.http import owner_routes as owners
from hedgerow.curator.http.errors import Refusal, not_found
from hedgerow.curator.http.request_context import RequestContext
from hedgerow.curator.http.requests import Grant, NewPerson, NewToken
from hedgerow.curator.ledger.accounts import Person
from hedgerow.curator.ledger.balances import ANALYST
from hedgerow.curator.ledger.transactions import timestamp
from hedgerow.curator.web.authentication import OwnerContext
from hedgerow.curator.web.forms import FORM_ERRORS, FormFields, SubmittedForm, form_error, number, parse_form
from hedgerow.curator.web.templating import render
from hedgerow.errors import LedgerError
from hedgerow.remote.transport import path_segment

router = APIRouter(prefix="/owner/people", include_in_schema=False)


@router.get("")
def people(context: OwnerContext) -> Response:
    return _people(context, {})


@router.post("")
def add(context: OwnerContext, form: SubmittedForm) -> Response:
    try:
        found = owners.add_person(context, parse_form(NewPerson, {name: form.get(name, "").strip() for name in ("name", "role")}))
    except FORM_ERRORS as error:
        return _people(context, form, form_error(error, context))
    return RedirectResponse(f"/owner/people/{path_segment(found['name'])}", 303)


def _people(context: RequestContext, form: FormFields, problem: Refusal | None = None) -> Response:
    found = [(person, _spent(context, person), context.curator.accounts.visible(person)) for person in context.curator.accounts.people()]
    filled, status = {"name": "", "role": "analyst", **form}, 200 if problem is None else problem.status
    return render("owner_people.html", context.person, status, people=found, form=filled, problem=problem)


@router.get("/{name:path}")
def person(context: OwnerContext, name: str) -> Response:
    return _person(context, name)


@router.post("/{name:path}/tokens")
def issue(context: OwnerContext, name: str, form: SubmittedForm) -> Response:
    """The token is on this page and never on another."""
    _known(context, name)
    try:
        given = owners.issue_token(context, parse_form(NewToken, {"person": name, "days": number(form.get("days", "").strip())}))
    except FORM_ERRORS as error:
        return _person(context, name, form, form_error(error, context))
    return _person(context, name, token=given["token"])


@router.post("/{name:path}/tokens/{id}/revoke")
def revoke(context: OwnerContext, name: str, id: str) -> Response:
    if id not in {record.id for record in context.curator.accounts.tokens(_known(context, name).name)}:
        raise not_found()
    owners.revoke_token(context, id)
    return RedirectResponse(f"/owner/people/{path_segment(name)}", 303)


@router.post("/{name:path}/grants")
def grant(context: OwnerContext, name: str, form: SubmittedForm) -> Response:
    return _granted(context, name, form, withdraw=False)


@router.post("/{name:path}/withdraw")
def withdraw(context: OwnerContext, name: str, form: SubmittedForm) -> Response:
    return _granted(context, name, form, withdraw=True)


def _granted(context: RequestContext, name: str, form: FormFields, withdraw: bool) -> Response:
    _known(context, name)
    try:
        purpose = form.get("purpose", "").strip()
        if not purpose:
            raise Refusal(422, "invalid", "Purpose: it is empty; expected a word such as research.")
        content: dict[str, Any] = {"analyst": name, "dataset": form.get("dataset", ""), "purposes": [purpose], "withdraw": withdraw}
        owners.grant(context, parse_form(Grant, content))
    except FORM_ERRORS as error:
        return _person(context, name, form, form_error(error, context))
    return RedirectResponse(f"/owner/people/{path_segment(name)}", 303)


def _person(
    context: RequestContext, name: str, form: FormFields | None = None, problem: Refusal | None = None, token: str | None = None
) -> Response:
    found, accounts = _known(context, name), context.curator.accounts
    granted = [] if found.owns else [(dataset, accounts.purposes(found, dataset)) for dataset in accounts.visible(found)]
    return render(
        "owner_person.html", context.person, 200 if problem is None else problem.status, about=found, spent=_spent(context, found),
        granted=granted, tokens=accounts.tokens(name)[::-1], datasets=context.curator.registry.names(), now=timestamp(datetime.now(UTC)),
        form={"purpose": "", "dataset": "", "days": "90", **(form or {})}, problem=problem, token=token,
    )  # fmt: skip


def _spent(context: RequestContext, person: Person) -> list[tuple[str, str]]:
    """Dataset and ε, for those that this person has paid for."""
    return [
        (balance.dataset, formatting.amount(balance.spent))
        for balance in context.curator.ledger.balances()
        if balance.scope == ANALYST and balance.name == person.name and balance.spent
    ]


def _known(context: RequestContext, name: str) -> Person:
    try:
        found = context.curator.accounts.person(name)
    except LedgerError as error:
        if error.__context__ is not None:  # the database, and not the name
            raise
        found = None
    if found is None:
        raise not_found()
    return found
