"""Routes for owners: datasets and their ceilings, people, tokens and grants; and the ledger."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http import responses
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.recovery import lost_requests
from hedgerow.curator.http.request_context import TOKEN, Context, unit_text
from hedgerow.curator.http.requests import Ceiling, Close, Grant, NewDataset, NewPerson, NewToken
from hedgerow.curator.ledger.accounts import Person, TokenRecord
from hedgerow.curator.ledger.balances import DATASET, Balance
from hedgerow.curator.ledger.checks import checked_name
from hedgerow.curator.ledger.registry import Dataset
from hedgerow.engines.sql import SQLTable
from hedgerow.errors import LedgerError
from hedgerow.schema.toml import read

router = APIRouter(prefix="/v1/owner", dependencies=[TOKEN], tags=["owners"])
MEDIA = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
EXPORTED = ("text/csv", "application/json")


@router.get("/datasets", response_model=responses.OwnedDatasets)
def datasets(context: Context) -> dict[str, Any]:
    """All datasets, where their rows are, and what was spent by whom."""
    found = [context.curator.registry.get(name) for name in context.curator.registry.names()]
    return {"datasets": [_as_json(context, dataset) for dataset in found if dataset is not None]}


@router.post("/datasets", status_code=201, response_model=responses.OwnedDataset)
def register(context: Context, body: NewDataset) -> dict[str, Any]:
    """The place is opened to see that it has the declared columns; no row is read. Nothing can be spent before it has a ceiling."""
    place: str | SQLTable
    if body.path is not None and body.database is None and body.table is None and body.query is None:
        place = body.path
    elif body.path is None and body.database is not None:
        place = SQLTable(body.database, body.table, body.query)
    else:
        raise Refusal(422, "invalid", "expected a path; or a database with a table or a query.")
    return _as_json(context, context.curator.registry.register(body.name, place, read(body.toml)))


@router.post("/datasets/{name}/ceilings", status_code=201, response_model=responses.Balances)
def ceiling(context: Context, name: str, body: Ceiling) -> dict[str, Any]:
    """How much may be spent, over everyone, by one analyst or for one purpose. It may be raised and lowered later."""
    _check_known(context, name)
    if body.analyst is not None and body.purpose is not None:
        raise Refusal(422, "invalid", "expected an analyst or a purpose, or none for the whole dataset.")
    ledger = context.curator.ledger
    ledger.ceiling(name, body.epsilon, body.delta, analyst=body.analyst, purpose=body.purpose, what=body.what)
    return _balances(context, name)


@router.post("/datasets/{name}/close", response_model=responses.OwnedDataset)
def close(context: Context, name: str, body: Close) -> dict[str, Any]:
    """For ever: everything later is refused."""
    _check_known(context, name)
    return _as_json(context, context.curator.registry.close(name, body.what))


@router.get("/people", response_model=responses.People)
def people(context: Context) -> dict[str, Any]:
    """Everybody who was ever added."""
    return {"people": [asdict(person) for person in context.curator.accounts.people()]}


@router.post("/people", status_code=201, response_model=Person)
def add_person(context: Context, body: NewPerson) -> dict[str, Any]:
    """A new analyst or owner. A name is of one person for ever."""
    return asdict(context.curator.accounts.add(body.name, body.role))


@router.get("/tokens", response_model=responses.Tokens)
def tokens(context: Context, person: Annotated[str | None, Query(max_length=200)] = None) -> dict[str, Any]:
    """All tokens that were ever made, without their secrets; or those of a person."""
    return {"tokens": [asdict(record) for record in context.curator.accounts.tokens(person)]}


@router.post("/tokens", status_code=201, response_model=responses.NewToken)
def issue_token(context: Context, body: NewToken) -> dict[str, Any]:
    """The token is in this answer and never in another."""
    text, record = context.curator.accounts.issue(body.person, timedelta(days=body.days))
    return {"token": text, **asdict(record)}


@router.delete("/tokens/{id}", response_model=TokenRecord)
def revoke_token(context: Context, id: str) -> dict[str, Any]:
    """End a token at once."""
    return asdict(context.curator.accounts.revoke(id))


@router.post("/grants", response_model=responses.Granted)
def grant(context: Context, body: Grant) -> dict[str, Any]:
    """Let an analyst use a dataset for some purposes, or take them back; the answer says what is granted now."""
    accounts = context.curator.accounts
    if body.withdraw:
        accounts.withdraw(body.analyst, body.dataset, body.purposes or None)
    elif body.purposes:
        accounts.grant(body.analyst, body.dataset, body.purposes)
    else:
        raise Refusal(422, "invalid", "purposes: expected at least one.")
    found = accounts.person(body.analyst)
    return {"analyst": body.analyst, "dataset": body.dataset, "purposes": list(accounts.purposes(found, body.dataset)) if found else []}


@router.get("/ledger", response_model=responses.Entries)
def entries(
    context: Context, after: Annotated[int, Query(ge=0, lt=2**62)] = 0, most: Annotated[int, Query(ge=1, le=1000)] = 100
) -> dict[str, Any]:
    """Entries in order, a page at a time: the next begins after the last one of this."""
    page = []
    for entry in context.curator.ledger.entries(after):
        page.append(asdict(entry))
        if len(page) >= min(most, context.service.limits.page):
            break
    return {"entries": page, "head": str(context.curator.ledger.head())}


@router.get("/ledger/export", response_class=StreamingResponse, responses={200: {"content": {kind: {} for kind in EXPORTED}}})
def export(context: Context, format: Literal["csv", "json"] = "csv") -> StreamingResponse:
    """All entries, as CSV or JSON."""
    name = f'attachment; filename="ledger.{format}"'
    return StreamingResponse(context.curator.ledger.export(format), media_type=MEDIA[format], headers={"Content-Disposition": name})


@router.get("/ledger/unsettled", response_model=responses.Unsettled)
def unsettled(context: Context) -> dict[str, Any]:
    """What neither settled nor was given back: under way now, or left by a crash and spent."""
    live = context.service.under_way()
    return {
        "unsettled": [
            {
                "id": r.key, "when": r.when, "dataset": r.dataset, "analyst": r.analyst, "purpose": r.purpose, "what": r.what,
                "epsilon": text_of_fraction(r.epsilon), "delta": text_of_fraction(r.delta), "opened": r.opened,
                "under_way": r.key in live,
            }
            for r in context.curator.ledger.unsettled()
        ]
    }  # fmt: skip


@router.get("/ledger/lost", response_model=responses.LostRequests)
def lost(context: Context) -> dict[str, Any]:
    """What was paid for and has no answer, with the reason: left by a crash, or lost by an older version."""
    live = context.service.under_way()  # first: what ends in between is then settled
    return {
        "lost": [
            {
                "id": r.key, "when": r.when, "dataset": r.dataset, "analyst": r.analyst, "purpose": r.purpose, "what": r.what,
                "epsilon": text_of_fraction(r.cost), "delta": text_of_fraction(r.delta), "settled": r.ended, "reason": each.reason,
            }
            for each in lost_requests(context.curator, live)
            for r in (each.reserved,)
        ]
    }  # fmt: skip


@router.get("/ledger/verification", response_model=responses.Verification)
def verification(context: Context) -> dict[str, Any]:
    """Everything computed again from the entries: whether one was altered, is missing or was impossible."""
    found = context.curator.ledger.verify()
    return {"sound": found.sound, "entries": found.entries, "head": str(found.head), "problems": [str(p) for p in found.problems]}


def _check_known(context: Context, name: str) -> None:
    """The ledger would take a ceiling for any name."""
    if context.curator.registry.get(checked_name(name, "dataset")) is None:
        raise LedgerError(f"dataset {name!r} is not known; expected one that was registered. Nothing was changed.")


def _as_json(context: Context, dataset: Dataset) -> dict[str, Any]:
    place = {"path": dataset.place} if isinstance(dataset.place, str) else asdict(dataset.place)
    return {"name": dataset.name, "place": place, "closed": dataset.closed, **_balances(context, dataset.name)}


def _balances(context: Context, dataset: str) -> dict[str, Any]:
    kept = context.curator.ledger.balances(dataset)
    unit = next((unit_text(balance) for balance in kept if balance.scope == DATASET), None)
    return {"balances": [balance_as_json(balance) for balance in kept], "unit": unit}


def balance_as_json(balance: Balance) -> dict[str, Any]:
    """Amounts as exact text; None where there is no ceiling of its own."""
    amounts = {
        "epsilon": balance.epsilon, "delta": balance.delta, "spent": balance.spent, "spent_delta": balance.spent_delta,
        "remaining": balance.remaining, "remaining_delta": balance.remaining_delta,
    }  # fmt: skip
    exact = {name: None if amount is None else text_of_fraction(amount) for name, amount in amounts.items()}
    return {"scope": balance.scope, "name": balance.name, **exact}
