"""What an owner decides about datasets: which there are, how much may be spent, and when one is closed."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http import owner_routes as owners
from hedgerow.curator.http.errors import Refusal, not_found
from hedgerow.curator.http.request_context import Asking
from hedgerow.curator.http.requests import Ceiling, Close, NewDataset
from hedgerow.curator.ledger.balances import DATASET
from hedgerow.curator.web.forms import Troubles, Typed, TypedNow, checked, told
from hedgerow.curator.web.gauges import gauge_of
from hedgerow.curator.web.owner_asking import OwnerNow
from hedgerow.curator.web.templating import drawn
from hedgerow.curator.web.words import address_of

router = APIRouter(prefix="/owner/datasets", include_in_schema=False)
FIELDS = ("name", "path", "database", "table", "schema")
CEILING = ("of", "who", "epsilon", "delta", "what")


@router.get("")
def datasets(asking: OwnerNow) -> Response:
    return _datasets(asking, {})


@router.post("")
def register(asking: OwnerNow, typed: TypedNow) -> Response:
    try:
        given = {name: typed.get(name, "").strip() for name in FIELDS}
        found = owners.register(asking, checked(NewDataset, given))
    except Troubles as error:
        return _datasets(asking, typed, told(error, asking))
    return RedirectResponse(f"/owner/datasets/{address_of(found['name'])}", 303)


def _datasets(asking: Asking, typed: Typed, problem: Refusal | None = None) -> Response:
    found = owners.datasets(asking)["datasets"]
    gauges = {dataset["name"]: gauge_of(asking.curator.ledger.balance(dataset["name"]), "") for dataset in found}
    filled = {**dict.fromkeys(FIELDS, ""), **typed}
    status = 200 if problem is None else problem.status
    return drawn("owner_datasets.html", asking.person, status, datasets=found, gauges=gauges, typed=filled, problem=problem)


@router.get("/{name:path}")
def dataset(asking: OwnerNow, name: str) -> Response:
    return _dataset(asking, name, {})


@router.post("/{name:path}/ceilings")
def ceiling(asking: OwnerNow, name: str, typed: TypedNow) -> Response:
    _known(asking, name)
    try:
        of, who = typed.get("of", ""), typed.get("who", "").strip()
        if (of in ("analyst", "purpose")) != bool(who):
            raise Refusal(422, "invalid", "Give a name where the ceiling is of an analyst or a purpose, and none for the whole dataset.")
        given = {name: typed.get(name, "").strip() for name in ("epsilon", "delta", "what")}
        owners.ceiling(asking, name, checked(Ceiling, {**given, **({of: who} if who else {})}))
    except Troubles as error:
        return _dataset(asking, name, typed, told(error, asking))
    return RedirectResponse(f"/owner/datasets/{address_of(name)}", 303)


@router.post("/{name:path}/close")
def close(asking: OwnerNow, name: str, typed: TypedNow) -> Response:
    """For ever, so the name has to be typed."""
    _known(asking, name)
    try:
        if typed.get("typed_name", "").strip() != name:
            raise Refusal(422, "invalid", "The name that was typed is not the name of the dataset. Nothing was closed.")
        owners.close(asking, name, Close())
    except Troubles as error:
        return _dataset(asking, name, typed, told(error, asking))
    return RedirectResponse(f"/owner/datasets/{address_of(name)}", 303)


def _dataset(asking: Asking, name: str, typed: Typed, problem: Refusal | None = None) -> Response:
    found, ledger = _known(asking, name), asking.curator.ledger
    kept = sorted(ledger.balances(name), key=lambda balance: (balance.scope != DATASET, balance.scope, balance.name))
    gauges = [gauge for balance in kept if (gauge := gauge_of(balance, "")) is not None]
    found["balances"] = [owners.balance_as_json(balance) for balance in kept]
    present = next((balance.delta for balance in kept if balance.scope == DATASET and balance.delta), None)
    filled = {**dict.fromkeys(CEILING, ""), "of": "dataset", "delta": "0" if present is None else text_of_fraction(present), **typed}
    status = 200 if problem is None else problem.status
    granted = [grant for grant in asking.curator.accounts.grants() if grant.dataset == name]
    names = sorted({grant.analyst for grant in granted} | {grant.purpose for grant in granted})
    return drawn("owner_dataset.html", asking.person, status, dataset=found, gauges=gauges, typed=filled, problem=problem, names=names)


def _known(asking: Asking, name: str) -> dict[str, Any]:
    asking.purposes(name)
    found: dict[str, Any] | None = next((each for each in owners.datasets(asking)["datasets"] if each["name"] == name), None)
    if found is None:
        raise not_found()
    return found
