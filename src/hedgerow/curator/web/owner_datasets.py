"""Owner pages of datasets: registration, ceilings, closing."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http import owner_routes as owners
from hedgerow.curator.http.errors import Refusal, not_found
from hedgerow.curator.http.request_context import RequestContext
from hedgerow.curator.http.requests import Ceiling, Close, NewDataset
from hedgerow.curator.ledger.balances import DATASET
from hedgerow.curator.web.authentication import OwnerContext
from hedgerow.curator.web.forms import FORM_ERRORS, FormFields, SubmittedForm, form_error, parse_form
from hedgerow.curator.web.gauges import gauge_of
from hedgerow.curator.web.templating import render
from hedgerow.remote.transport import path_segment

router = APIRouter(prefix="/owner/datasets", include_in_schema=False)
FIELDS = ("name", "path", "database", "table", "schema")
CEILING = ("of", "who", "epsilon", "delta", "what")


@router.get("")
def datasets(context: OwnerContext) -> Response:
    return _datasets(context, {})


@router.post("")
def register(context: OwnerContext, form: SubmittedForm) -> Response:
    try:
        given = {name: form.get(name, "").strip() for name in FIELDS}
        found = owners.register(context, parse_form(NewDataset, given))
    except FORM_ERRORS as error:
        return _datasets(context, form, form_error(error, context))
    return RedirectResponse(f"/owner/datasets/{path_segment(found['name'])}", 303)


def _datasets(context: RequestContext, form: FormFields, problem: Refusal | None = None) -> Response:
    found = owners.datasets(context)["datasets"]
    gauges = {dataset["name"]: gauge_of(context.curator.ledger.balance(dataset["name"]), "") for dataset in found}
    filled = {**dict.fromkeys(FIELDS, ""), **form}
    status = 200 if problem is None else problem.status
    return render("owner_datasets.html", context.person, status, datasets=found, gauges=gauges, form=filled, problem=problem)


@router.get("/{name:path}")
def dataset(context: OwnerContext, name: str) -> Response:
    return _dataset(context, name, {})


@router.post("/{name:path}/ceilings")
def ceiling(context: OwnerContext, name: str, form: SubmittedForm) -> Response:
    _known(context, name)
    try:
        of, who = form.get("of", ""), form.get("who", "").strip()
        if (of in ("analyst", "purpose")) != bool(who):
            raise Refusal(422, "invalid", "Give a name where the ceiling is of an analyst or a purpose, and none for the whole dataset.")
        given = {name: form.get(name, "").strip() for name in ("epsilon", "delta", "what")}
        owners.ceiling(context, name, parse_form(Ceiling, {**given, **({of: who} if who else {})}))
    except FORM_ERRORS as error:
        return _dataset(context, name, form, form_error(error, context))
    return RedirectResponse(f"/owner/datasets/{path_segment(name)}", 303)


@router.post("/{name:path}/close")
def close(context: OwnerContext, name: str, form: SubmittedForm) -> Response:
    """For ever, so the name has to be typed."""
    _known(context, name)
    try:
        if form.get("typed_name", "").strip() != name:
            raise Refusal(422, "invalid", "The name that was typed is not the name of the dataset. Nothing was closed.")
        owners.close(context, name, Close())
    except FORM_ERRORS as error:
        return _dataset(context, name, form, form_error(error, context))
    return RedirectResponse(f"/owner/datasets/{path_segment(name)}", 303)


def _dataset(context: RequestContext, name: str, form: FormFields, problem: Refusal | None = None) -> Response:
    found, ledger = _known(context, name), context.curator.ledger
    kept = sorted(ledger.balances(name), key=lambda balance: (balance.scope != DATASET, balance.scope, balance.name))
    gauges = [gauge for balance in kept if (gauge := gauge_of(balance, "")) is not None]
    found["balances"] = [owners.balance_as_json(balance) for balance in kept]
    present = next((balance.delta for balance in kept if balance.scope == DATASET and balance.delta), None)
    filled = {**dict.fromkeys(CEILING, ""), "of": "dataset", "delta": "0" if present is None else text_of_fraction(present), **form}
    status = 200 if problem is None else problem.status
    granted = [grant for grant in context.curator.accounts.grants() if grant.dataset == name]
    names = sorted({grant.analyst for grant in granted} | {grant.purpose for grant in granted})
    return render("owner_dataset.html", context.person, status, dataset=found, gauges=gauges, form=filled, problem=problem, names=names)


def _known(context: RequestContext, name: str) -> dict[str, Any]:
    context.purposes(name)
    found: dict[str, Any] | None = next((each for each in owners.datasets(context)["datasets"] if each["name"] == name), None)
    if found is None:
        raise not_found()
    return found
