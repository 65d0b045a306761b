"""Pages of results: the job while it runs, its release with picture, rules and certificate, and private scores."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup

from hedgerow import formatting
from hedgerow.accounting.loss import noise_variance
from hedgerow.curator.http import analyst_routes as analysts
from hedgerow.curator.http import scores
from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.request_context import Context, RequestContext
from hedgerow.curator.http.requests import Score
from hedgerow.curator.web.forms import FORM_ERRORS, FormFields, SubmittedForm, form_error, new_key, parse_form
from hedgerow.curator.web.gauges import gauge_for
from hedgerow.curator.web.templating import render, report_of
from hedgerow.inference.text import count_with_error, is_lost, share_text, share_with_error
from hedgerow.plots.draw import confusion_svg
from hedgerow.queries import Confusion
from hedgerow.release.release import Release
from hedgerow.remote.responses import RemoteScore
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import read, same_columns

router = APIRouter(include_in_schema=False)
FIELDS = ("dataset", "purpose", "epsilon", "key")


@router.get("/jobs/{id}")
def job(context: Context, id: str) -> Response:
    found = {"share": 0.0, **analysts.job_of(context, id)}
    result = found.get("result", "").removeprefix("/v1")
    return render("job.html", context.person, job=found, result=result, going=found["state"] in ("waiting", "running"))


@router.get("/releases/{id}.json")
def release_file(context: Context, id: str) -> Response:
    """Byte for byte as it was stored."""
    answer = analysts.release(context, id)
    answer.headers["Content-Disposition"] = f'attachment; filename="release-{context.reservation(id).key}.json"'
    return answer


@router.get("/releases/{id}")
def release(context: Context, id: str) -> Response:
    return _release(context, id, {})


def _release(context: RequestContext, id: str, form: FormFields, problem: Refusal | None = None) -> Response:
    """With the form for a score, where some dataset takes requests for one."""
    content, reserved = bytes(analysts.release(context, id).body), context.reservation(id)
    may_score = _may_score(context, Release.from_json(content).schema, reserved.dataset)
    purposes = tuple(dict.fromkeys(purpose for name in may_score for purpose in context.purposes(name)))
    first = context.purposes(may_score[0]) if may_score else ()
    purpose = first[0] if first and reserved.purpose not in first and not context.person.owns else reserved.purpose
    filled = {"dataset": "", "purpose": purpose, "epsilon": "", "key": new_key(), **form}
    if problem is not None and problem.code == "key_used":
        filled["key"] = new_key()
    return render(
        "release.html", context.person, 200 if problem is None else problem.status, id=id, reserved=reserved, form=filled, problem=problem,
        purposes=purposes, datasets=may_score, **report_of(content),
    )  # fmt: skip


def _may_score(context: RequestContext, schema: Schema, trained_on: str) -> list[str]:
    """The datasets that the person may use now and that have the columns of a release: those with other rows than it was trained on first.

    Of these, what is called a test comes before the others.
    """
    visible = context.curator.accounts.visible(context.person)
    alike = [name for name in visible if same_columns(read(context.schema_text(name)), schema)]
    fit = [name for name in alike if not context.curator.ledger.balance(name).closed]
    return sorted(fit, key=lambda name: (name == trained_on, "test" not in name.lower(), name))


@router.post("/releases/{id}/quote")
def quote_score(context: Context, id: str, form: SubmittedForm) -> Response:
    """What a score would cost. Nothing is charged, no row is read."""
    trained_on, content = context.reservation(id).dataset, bytes(analysts.release(context, id).body)
    name = form.get("dataset") or trained_on
    try:
        body = _requested(id, form)
        schema = scores.scored(content, context.open_dataset(name, body.purpose), body.epsilon).schema
        event = Confusion.cost(Fraction(body.epsilon), schema.k)
    except FORM_ERRORS as error:
        return _release(context, id, form, form_error(error, context))
    cost, left = Fraction(body.epsilon), Fraction(context.remaining(name, body.purpose)["epsilon"])
    return render(
        "quote_score.html", context.person, id=id, name=name, body=body, form=form, fields=FIELDS, enough=cost <= left,
        left=formatting.amount(left), exact_left=left, after=formatting.amount(max(left - cost, Fraction(0))),
        noise=formatting.number(math.sqrt(noise_variance(event.scale)), 3), level=gauge_for(context, name, body.purpose, cost),
        flattered=name == trained_on,
    )  # fmt: skip


@router.post("/releases/{id}/scores")
def request_score(context: Context, id: str, form: SubmittedForm) -> Response:
    name = form.get("dataset") or context.reservation(id).dataset
    try:
        found = analysts.score(context, name, _requested(id, form), form.get("key", ""), Response())
    except FORM_ERRORS as error:
        return _release(context, id, form, form_error(error, context))
    return RedirectResponse(f"/jobs/{found['id']}", 303)


def _requested(id: str, form: FormFields) -> Score:
    return parse_form(Score, {**{name: form.get(name, "").strip() for name in ("purpose", "epsilon")}, "release": id})


@router.get("/scores/{id}.json")
def score_file(context: Context, id: str) -> Response:
    answer = analysts.stored_score(context, id)
    answer.headers["Content-Disposition"] = f'attachment; filename="score-{context.reservation(id).key}.json"'
    return answer


@router.get("/scores/{id}")
def score(context: Context, id: str) -> Response:
    found: dict[str, Any] = json.loads(bytes(analysts.stored_score(context, id).body))
    confusion, classes = np.array(found["confusion"]), found["classes"]
    noise = math.sqrt(noise_variance(Fraction(found["noise_scale"])))
    totals, lost = np.maximum(confusion.sum(axis=1), 0), is_lost(found["accuracy"], found["accuracy_error"])
    always = (classes[int(totals.argmax())], share_text(float(totals.max() / max(1, totals.sum()))))
    return render(
        "score.html", context.person, always=always, score=found, reserved=context.reservation(id),
        accuracy="lost in the noise" if lost else share_with_error(found["accuracy"], found["accuracy_error"]),
        rows=count_with_error(float(confusion.sum()), noise * len(classes)), mismatch=RemoteScore.read(found).mismatch,
        picture=Markup(confusion_svg(confusion, classes, noise, "True against predicted class")),
    )  # fmt: skip
