"""What an owner decides about people: who there is, their tokens, and what each may use for which purpose."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http import owner_routes as owners
from hedgerow.curator.http.errors import Refusal, not_found
from hedgerow.curator.http.request_context import Asking
from hedgerow.curator.http.requests import Grant, NewPerson, NewToken
from hedgerow.curator.ledger.accounts import Person
from hedgerow.curator.ledger.balances import ANALYST
from hedgerow.curator.ledger.transactions import written
from hedgerow.curator.web.forms import Troubles, Typed, TypedNow, checked, number, told
from hedgerow.curator.web.owner_asking import OwnerNow
from hedgerow.curator.web.templating import drawn
from hedgerow.curator.web.words import address_of
from hedgerow.errors import LedgerError

router = APIRouter(prefix="/owner/people", include_in_schema=False)


@router.get("")
def people(asking: OwnerNow) -> Response:
    return _people(asking, {})


@router.post("")
def add(asking: OwnerNow, typed: TypedNow) -> Response:
    try:
        found = owners.add_person(asking, checked(NewPerson, {name: typed.get(name, "").strip() for name in ("name", "role")}))
    except Troubles as error:
        return _people(asking, typed, told(error, asking))
    return RedirectResponse(f"/owner/people/{address_of(found['name'])}", 303)


def _people(asking: Asking, typed: Typed, problem: Refusal | None = None) -> Response:
    found = [(person, _spent(asking, person), asking.curator.accounts.visible(person)) for person in asking.curator.accounts.people()]
    filled, status = {"name": "", "role": "analyst", **typed}, 200 if problem is None else problem.status
    return drawn("owner_people.html", asking.person, status, people=found, typed=filled, problem=problem)


@router.get("/{name:path}")
def person(asking: OwnerNow, name: str) -> Response:
    return _person(asking, name)


@router.post("/{name:path}/tokens")
def issue(asking: OwnerNow, name: str, typed: TypedNow) -> Response:
    """The token is on this page and never on another."""
    _known(asking, name)
    try:
        given = owners.issue_token(asking, checked(NewToken, {"person": name, "days": number(typed.get("days", "").strip())}))
    except Troubles as error:
        return _person(asking, name, typed, told(error, asking))
    return _person(asking, name, token=given["token"])


@router.post("/{name:path}/tokens/{id}/revoke")
def revoke(asking: OwnerNow, name: str, id: str) -> Response:
    if id not in {record.id for record in asking.curator.accounts.tokens(_known(asking, name).name)}:
        raise not_found()
    owners.revoke_token(asking, id)
    return RedirectResponse(f"/owner/people/{address_of(name)}", 303)


@router.post("/{name:path}/grants")
def grant(asking: OwnerNow, name: str, typed: TypedNow) -> Response:
    return _granted(asking, name, typed, withdraw=False)


@router.post("/{name:path}/withdraw")
def withdraw(asking: OwnerNow, name: str, typed: TypedNow) -> Response:
    return _granted(asking, name, typed, withdraw=True)


def _granted(asking: Asking, name: str, typed: Typed, withdraw: bool) -> Response:
    _known(asking, name)
    try:
        purpose = typed.get("purpose", "").strip()
        if not purpose:
            raise Refusal(422, "invalid", "Purpose: it is empty; expected a word such as research.")
        content: dict[str, Any] = {"analyst": name, "dataset": typed.get("dataset", ""), "purposes": [purpose], "withdraw": withdraw}
        owners.grant(asking, checked(Grant, content))
    except Troubles as error:
        return _person(asking, name, typed, told(error, asking))
    return RedirectResponse(f"/owner/people/{address_of(name)}", 303)


def _person(asking: Asking, name: str, typed: Typed | None = None, problem: Refusal | None = None, token: str | None = None) -> Response:
    found, accounts = _known(asking, name), asking.curator.accounts
    granted = [] if found.owns else [(dataset, accounts.purposes(found, dataset)) for dataset in accounts.visible(found)]
    return drawn(
        "owner_person.html", asking.person, 200 if problem is None else problem.status, about=found, spent=_spent(asking, found),
        granted=granted, tokens=accounts.tokens(name)[::-1], datasets=asking.curator.registry.names(), now=written(datetime.now(UTC)),
        typed={"purpose": "", "dataset": "", "days": "90", **(typed or {})}, problem=problem, token=token,
    )  # fmt: skip


def _spent(asking: Asking, person: Person) -> list[tuple[str, str]]:
    """Dataset and ε, for those that this person has paid for."""
    return [
        (balance.dataset, text_of_fraction(balance.spent))
        for balance in asking.curator.ledger.balances()
        if balance.scope == ANALYST and balance.name == person.name and balance.spent
    ]


def _known(asking: Asking, name: str) -> Person:
    try:
        found = asking.curator.accounts.person(name)
    except LedgerError as error:
        if error.__context__ is not None:  # the database, and not the name
            raise
        found = None
    if found is None:
        raise not_found()
    return found
