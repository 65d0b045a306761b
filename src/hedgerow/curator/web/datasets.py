"""Pages of datasets for analysts: budget gauges, and the form that requests a forest: first a quote, then the job."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import RedirectResponse, Response

from hedgerow import formatting
from hedgerow.accounting.meaning import SUGGESTED_DELTA, large_delta
from hedgerow.curator.http import analyst_routes as analysts
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.forests import ASSUMED_ROWS
from hedgerow.curator.http.request_context import Context, RequestContext
from hedgerow.curator.http.requests import Forest, Quote
from hedgerow.curator.web.descriptions import ALGORITHMS, schema_lines
from hedgerow.curator.web.forms import FORM_ERRORS, FormFields, SubmittedForm, form_error, new_key, number, parse_form
from hedgerow.curator.web.gauges import gauge_for, gauge_of
from hedgerow.curator.web.templating import render, report_of
from hedgerow.schema.schema import Schema

router = APIRouter(include_in_schema=False)
SHOWN, NEWEST = 20, 2**62 - 1  # requests on a page
SETTINGS = ("n_estimators", "max_depth", "bins")
FIELDS = ("purpose", "algorithm", "epsilon", "delta", *SETTINGS, "rows", "key")


@router.get("/")
def home(context: Context) -> Response:
    found = [_with_gauges(context, dataset) for dataset in analysts.datasets_of(context)["datasets"]]
    return render("home.html", context.person, datasets=found)


@router.get("/datasets/{name:path}")
def dataset(context: Context, name: str, before: Annotated[int, Query(ge=1, lt=2**62)] = NEWEST) -> Response:
    return _dataset(context, name, {}, before=before)


def _dataset(context: RequestContext, name: str, form: FormFields, problem: Refusal | None = None, before: int = NEWEST) -> Response:
    about = _with_gauges(context, analysts.dataset_of(context, name))
    schema = context.dataset(name).schema
    delta = _suggested_delta(context, about, schema, form.get("purpose", ""))
    filled = {**dict.fromkeys(FIELDS, ""), "algorithm": "hedgerow", "epsilon": "", "delta": delta, "key": new_key(), **form}
    if problem is not None and problem.code == "key_used":
        filled["key"] = new_key()
    return render(
        "dataset.html", context.person, 200 if problem is None else problem.status, dataset=about, schema=schema,
        lines=schema_lines(schema), requests=analysts.jobs_of(context, name, before, SHOWN), newest=before == NEWEST,
        form=filled, problem=problem, algorithms=ALGORITHMS,
        assumed=ASSUMED_ROWS,
    )  # fmt: skip


def _suggested_delta(context: RequestContext, about: dict[str, Any], schema: Schema, purpose: str) -> str:
    """What the field of δ holds at first: a small one where so much is left for the purpose that is chosen, else none."""
    left = context.curator.ledger.balance(about["name"]).remaining_delta or Fraction(0)
    if not context.person.owns:
        granted = list(about["purposes"])
        chosen = purpose if purpose in granted else granted[0]
        left = Fraction(about["purposes"][chosen]["remaining"]["delta"])
    usual = Fraction(SUGGESTED_DELTA)
    return SUGGESTED_DELTA if left >= usual and not large_delta(usual, schema.rows) else "0"


def _with_gauges(context: RequestContext, about: dict[str, Any]) -> dict[str, Any]:
    """An owner sees what everybody may spend; an analyst, for each purpose, the ceiling that leaves the least."""
    name = about["name"]
    if context.person.owns:
        return {**about, "gauges": [("", gauge_of(context.curator.ledger.balance(name), context.person.name))]}
    return {**about, "gauges": [(purpose, gauge_for(context, name, purpose)) for purpose in about["purposes"]]}


@router.post("/datasets/{name:path}/quote")
async def quote(context: Context, name: str, form: SubmittedForm) -> Response:
    """What it would cost and build. Nothing is charged, no row is read."""
    return await context.with_timeout(lambda: _quote(context, name, form))


def _quote(context: RequestContext, name: str, form: FormFields) -> Response:
    try:
        body = _requested(form)
        quoted = analysts.quote_of(context, name, body)
    except FORM_ERRORS as error:
        return _dataset(context, name, form, form_error(error, context))
    cost, left = (_amounts(quoted[which]) for which in ("cost", "remaining"))
    return render(
        "quote.html", context.person, name=name, quote=quoted, form=form, body=body, fields=FIELDS,
        level=gauge_for(context, name, body.purpose, cost[0]), enough=cost[0] <= left[0] and cost[1] <= left[1],
        after=[formatting.amount(max(have - pays, Fraction(0))) for have, pays in zip(left, cost, strict=True)],
    )  # fmt: skip


@router.post("/datasets/{name:path}/dummy")
async def dummy(context: Context, name: str, form: SubmittedForm) -> Response:
    """The same on rows that are made from the schema alone."""
    return await context.with_timeout(lambda: _dummy(context, name, form))


def _dummy(context: RequestContext, name: str, form: FormFields) -> Response:
    try:
        tried = analysts.dummy_of(context, name, _forest(_requested(form)))
    except FORM_ERRORS as error:
        return _dataset(context, name, form, form_error(error, context))
    report = report_of(json.dumps(tried["release"]).encode())
    return render("dummy.html", context.person, name=name, form=form, fields=FIELDS, rows=tried["rows"], **report)


@router.post("/datasets/{name:path}/forests")
def forests(context: Context, name: str, form: SubmittedForm) -> Response:
    """Pay. Sent again, the form leads to the same job."""
    try:
        job = analysts.forests(context, name, _forest(_requested(form)), form.get("key", ""), Response())
    except FORM_ERRORS as error:
        return _dataset(context, name, form, form_error(error, context))
    return RedirectResponse(f"/jobs/{job['id']}", 303)


@router.post("/datasets/{name:path}/change")
def change(context: Context, name: str, form: SubmittedForm) -> Response:
    """The form again, as it was filled in: what it becomes is a new request, with a key of its own."""
    return _dataset(context, name, {**form, "key": new_key()})


def _requested(form: FormFields) -> Quote:
    own = {name: form.get(name, "").strip() for name in FIELDS if name != "key"}
    settings = {name: number(own.pop(name)) for name in SETTINGS if own[name]}
    content: dict[str, Any] = {name: value for name, value in own.items() if name not in SETTINGS}
    return parse_form(Quote, {**content, "rows": number(own["rows"]), "settings": settings})


def _forest(body: Quote) -> Forest:
    return Forest.model_validate(body.model_dump(exclude={"rows"}))


def _amounts(found: dict[str, str]) -> tuple[Fraction, Fraction]:
    return Fraction(found["epsilon"]), Fraction(found["delta"])
