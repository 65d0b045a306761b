"""What a request has led to: its job while it runs, its release with picture, rules and certificate, and a private score of that."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup

from hedgerow.accounting.loss import noise_variance, text_of_fraction
from hedgerow.curator.http import analyst_routes as analysts
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.request_context import Asking, AskingNow
from hedgerow.curator.http.requests import Score
from hedgerow.curator.web.forms import Troubles, Typed, TypedNow, checked, new_key, told
from hedgerow.curator.web.gauges import gauge_for
from hedgerow.curator.web.templating import drawn, report_of
from hedgerow.inference.text import count_with_error, share_text, share_with_error
from hedgerow.plots.draw import confusion_svg
from hedgerow.queries import Confusion
from hedgerow.release.release import Release

router = APIRouter(include_in_schema=False)
FIELDS = ("purpose", "epsilon", "key")


@router.get("/jobs/{id}")
def job(asking: AskingNow, id: str) -> Response:
    found = {"share": 0.0, **analysts.job_of(asking, id)}
    result = found.get("result", "").removeprefix("/v1")
    return drawn("job.html", asking.person, job=found, result=result, going=found["state"] in ("waiting", "running"))


@router.get("/releases/{id}.json")
def release_file(asking: AskingNow, id: str) -> Response:
    """Byte for byte as it was stored."""
    answer = analysts.release(asking, id)
    answer.headers["Content-Disposition"] = f'attachment; filename="release-{asking.reservation(id).key}.json"'
    return answer


@router.get("/releases/{id}")
def release(asking: AskingNow, id: str) -> Response:
    return _release(asking, id, {})


def _release(asking: Asking, id: str, typed: Typed, problem: Refusal | None = None) -> Response:
    """With the form for a score, where the dataset may still be asked something."""
    content, reserved = bytes(analysts.release(asking, id).body), asking.reservation(id)
    filled = {"purpose": reserved.purpose, "epsilon": "", "key": new_key(), **typed}
    if problem is not None and problem.code == "key_used":
        filled["key"] = new_key()
    name = reserved.dataset
    try:
        purposes = asking.purposes(name)
    except Refusal:  # not granted any more: what was released stays
        purposes = ()
    may = bool(purposes) or asking.person.owns
    return drawn(
        "release.html", asking.person, 200 if problem is None else problem.status, id=id, reserved=reserved, typed=filled, problem=problem,
        purposes=purposes, may=may and not asking.curator.ledger.balance(name).closed, **report_of(content),
    )  # fmt: skip


@router.post("/releases/{id}/quote")
def quote_score(asking: AskingNow, id: str, typed: TypedNow) -> Response:
    """What a score would cost. Nothing is charged, no row is read."""
    name, schema = asking.reservation(id).dataset, Release.from_json(bytes(analysts.release(asking, id).body)).schema
    try:
        body = _asked(id, typed)
        asking.open_dataset(name, body.purpose)
        event = Confusion.cost(Fraction(body.epsilon), schema.k)
    except Troubles as error:
        return _release(asking, id, typed, told(error, asking))
    cost, left = Fraction(body.epsilon), Fraction(asking.left(name, body.purpose)["epsilon"])
    return drawn(
        "quote_score.html", asking.person, id=id, name=name, body=body, typed=typed, fields=FIELDS, enough=cost <= left,
        left=text_of_fraction(left), after=text_of_fraction(max(left - cost, Fraction(0))),
        noise=f"{math.sqrt(noise_variance(event.scale)):.3g}", level=gauge_for(asking, name, body.purpose, cost),
    )  # fmt: skip


@router.post("/releases/{id}/scores")
def ask_score(asking: AskingNow, id: str, typed: TypedNow) -> Response:
    name = asking.reservation(id).dataset
    try:
        found = analysts.score(asking, name, _asked(id, typed), typed.get("key", ""), Response())
    except Troubles as error:
        return _release(asking, id, typed, told(error, asking))
    return RedirectResponse(f"/jobs/{found['id']}", 303)


def _asked(id: str, typed: Typed) -> Score:
    return checked(Score, {**{name: typed.get(name, "").strip() for name in ("purpose", "epsilon")}, "release": id})


@router.get("/scores/{id}.json")
def score_file(asking: AskingNow, id: str) -> Response:
    answer = analysts.stored_score(asking, id)
    answer.headers["Content-Disposition"] = f'attachment; filename="score-{asking.reservation(id).key}.json"'
    return answer


@router.get("/scores/{id}")
def score(asking: AskingNow, id: str) -> Response:
    found: dict[str, Any] = json.loads(bytes(analysts.stored_score(asking, id).body))
    confusion, classes = np.array(found["confusion"]), found["classes"]
    noise = math.sqrt(noise_variance(Fraction(found["noise_scale"])))
    totals = np.maximum(confusion.sum(axis=1), 0)
    always = (classes[int(totals.argmax())], share_text(float(totals.max() / max(1, totals.sum()))))
    return drawn(
        "score.html", asking.person, always=always, score=found, reserved=asking.reservation(id),
        accuracy=share_with_error(found["accuracy"], found["accuracy_error"]),
        rows=count_with_error(float(confusion.sum()), noise * len(classes)),
        picture=Markup(confusion_svg(confusion, classes, noise, "True against predicted class")),
    )  # fmt: skip
