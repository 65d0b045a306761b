"""Datasets that somebody may use, each with its gauge and the form that asks for a forest: first what it would cost, then the forest."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import RedirectResponse, Response

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http import analyst_routes as analysts
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.forests import ASSUMED_ROWS
from hedgerow.curator.http.request_context import Asking, AskingNow
from hedgerow.curator.http.requests import Forest, Quote
from hedgerow.curator.web.forms import Troubles, Typed, TypedNow, checked, new_key, number, told
from hedgerow.curator.web.gauges import gauge_for, gauge_of
from hedgerow.curator.web.templating import drawn, report_of
from hedgerow.curator.web.words import ALGORITHMS, schema_lines

router = APIRouter(include_in_schema=False)
SHOWN, NEWEST = 20, 2**62 - 1  # requests on a page
SETTINGS = ("n_estimators", "max_depth", "bins")
FIELDS = ("purpose", "algorithm", "epsilon", "delta", *SETTINGS, "rows", "key")


@router.get("/")
def home(asking: AskingNow) -> Response:
    found = [_with_gauges(asking, dataset) for dataset in analysts.datasets_of(asking)["datasets"]]
    return drawn("home.html", asking.person, datasets=found)


@router.get("/datasets/{name:path}")
def dataset(asking: AskingNow, name: str, before: Annotated[int, Query(ge=1, lt=2**62)] = NEWEST) -> Response:
    return _dataset(asking, name, {}, before=before)


def _dataset(asking: Asking, name: str, typed: Typed, problem: Refusal | None = None, before: int = NEWEST) -> Response:
    about = _with_gauges(asking, analysts.dataset_of(asking, name))
    schema = asking.dataset(name).schema
    filled = {**dict.fromkeys(FIELDS, ""), "algorithm": "hedgerow", "epsilon": "", "delta": "0", "key": new_key(), **typed}
    if problem is not None and problem.code == "key_used":
        filled["key"] = new_key()
    return drawn(
        "dataset.html", asking.person, 200 if problem is None else problem.status, dataset=about, schema=schema,
        lines=schema_lines(schema), asked=analysts.jobs_of(asking, name, before, SHOWN), newest=before == NEWEST,
        typed=filled, problem=problem, algorithms=ALGORITHMS,
        assumed=ASSUMED_ROWS,
    )  # fmt: skip


def _with_gauges(asking: Asking, about: dict[str, Any]) -> dict[str, Any]:
    """An owner sees what everybody may spend; an analyst, for each purpose, the ceiling that leaves the least."""
    name = about["name"]
    if asking.person.owns:
        return {**about, "gauges": [("", gauge_of(asking.curator.ledger.balance(name), asking.person.name))]}
    return {**about, "gauges": [(purpose, gauge_for(asking, name, purpose)) for purpose in about["purposes"]]}


@router.post("/datasets/{name:path}/quote")
async def quote(asking: AskingNow, name: str, typed: TypedNow) -> Response:
    """What it would cost and build. Nothing is charged, no row is read."""
    return await asking.in_time(lambda: _quote(asking, name, typed))


def _quote(asking: Asking, name: str, typed: Typed) -> Response:
    try:
        body = _asked(typed)
        quoted = analysts.quote_of(asking, name, body)
    except Troubles as error:
        return _dataset(asking, name, typed, told(error, asking))
    cost, left = (_amounts(quoted[which]) for which in ("cost", "remaining"))
    return drawn(
        "quote.html", asking.person, name=name, quote=quoted, typed=typed, body=body, fields=FIELDS,
        level=gauge_for(asking, name, body.purpose, cost[0]), enough=cost[0] <= left[0] and cost[1] <= left[1],
        after=[text_of_fraction(max(have - pays, Fraction(0))) for have, pays in zip(left, cost, strict=True)],
    )  # fmt: skip


@router.post("/datasets/{name:path}/dummy")
async def dummy(asking: AskingNow, name: str, typed: TypedNow) -> Response:
    """The same on rows that are made from the schema alone."""
    return await asking.in_time(lambda: _dummy(asking, name, typed))


def _dummy(asking: Asking, name: str, typed: Typed) -> Response:
    try:
        tried = analysts.dummy_of(asking, name, _forest(_asked(typed)))
    except Troubles as error:
        return _dataset(asking, name, typed, told(error, asking))
    report = report_of(json.dumps(tried["release"]).encode())
    return drawn("dummy.html", asking.person, name=name, typed=typed, fields=FIELDS, rows=tried["rows"], **report)


@router.post("/datasets/{name:path}/forests")
def forests(asking: AskingNow, name: str, typed: TypedNow) -> Response:
    """Pay. Sent again, the form leads to the same job."""
    try:
        job = analysts.forests(asking, name, _forest(_asked(typed)), typed.get("key", ""), Response())
    except Troubles as error:
        return _dataset(asking, name, typed, told(error, asking))
    return RedirectResponse(f"/jobs/{job['id']}", 303)


@router.post("/datasets/{name:path}/change")
def change(asking: AskingNow, name: str, typed: TypedNow) -> Response:
    """The form again, as it was filled in: what it becomes is a new request, with a key of its own."""
    return _dataset(asking, name, {**typed, "key": new_key()})


def _asked(typed: Typed) -> Quote:
    own = {name: typed.get(name, "").strip() for name in FIELDS if name != "key"}
    settings = {name: number(own.pop(name)) for name in SETTINGS if own[name]}
    content: dict[str, Any] = {name: value for name, value in own.items() if name not in SETTINGS}
    return checked(Quote, {**content, "rows": number(own["rows"]), "settings": settings})


def _forest(body: Quote) -> Forest:
    return Forest.model_validate(body.model_dump(exclude={"rows"}))


def _amounts(found: dict[str, str]) -> tuple[Fraction, Fraction]:
    return Fraction(found["epsilon"]), Fraction(found["delta"])
