"""JSON between an analyst's machine and a service: sessions, numbered queries, answers, predictors; each checked when it is read.

A query has a number that counts 1, 2, 3, … in its session; its answer is lists of whole numbers, with the event that was charged. What a
query holds is written and read by its own class (`queries/`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MethodType
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import Event
from hedgerow.errors import PlanError, ReleaseError
from hedgerow.queries.forms import Form, ModelForm, PredictorForm, model_form, read_model
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.toml import write
from hedgerow.trees.additive_model import AdditiveModel, MostProbable

MILLION = 10**6
MOST_DENOMINATOR = 100  # of amounts in a ledger: lcm(1…100) has 136 bits, so that no choice of amounts can fill its exact sums

RUNNING = b'{"state":"running"}'  # sent in the place of an answer: the query is still being counted, ask again


class SessionForm(msgspec.Struct, frozen=True):
    """A session that has begun. coins, secret: where its noise comes from, and whether nobody can predict it."""

    id: str
    epsilon: str
    delta: str
    coins: str
    secret: bool


class EventForm(Form, frozen=True):
    """What was charged, with exact amounts as text."""

    query: str = msgspec.field(name="verb")
    mechanism: str
    epsilon: str
    queries: int
    sensitivity: str
    scale: str
    rho: str


class AnswerForm(Form, frozen=True, omit_defaults=True):
    """arrays: each flat, in the shape that follows from what was asked; assumed: what is to be said about where the rows came from.

    also: what was charged with the event, where a query chooses and then counts
    """

    number: int
    arrays: list[list[int]]
    event: EventForm
    assumed: str
    also: tuple[EventForm, ...] = ()

    @property
    def events(self) -> list[EventForm]:
        return [self.event, *self.also]


class _Numbered(msgspec.Struct, frozen=True):
    number: int


FormType = TypeVar("FormType")


def read_form(content: bytes, kind: type[FormType]) -> FormType:
    """One of the forms above from JSON, or a PlanError that says where it is wrong and repeats nothing."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        where = re.sub(r"[^ -~]", "?", str(error))[:200] if isinstance(error, msgspec.ValidationError) else "expected JSON."
        raise PlanError(f"body: it cannot be read: {where}") from None


def number_of(content: bytes) -> int:
    """Which query of its session it is."""
    return read_form(content, _Numbered).number


# ------------------------------------------------------------ amounts


def payable(epsilon: Fraction) -> Fraction:
    """What a ledger of short amounts reserves for ε: the same where it is short, else rounded up to a millionth."""
    return epsilon if epsilon.denominator <= MOST_DENOMINATOR else rounded_up(epsilon)


def rounded_up(amount: Fraction) -> Fraction:
    """To a millionth: what a request has cost in the end may be any sum of fractions, and the ledger's sums stay short."""
    return Fraction(math.ceil(amount * MILLION), MILLION)


# ------------------------------------------------------------ predictors


@dataclass(frozen=True)
class PredictorEncoder:
    """What a query needs to be written as JSON by its client."""

    codebook: Codebook

    def predictor(self, predict: Any, probable: bool = False) -> PredictorForm:
        return predictor_form(predict, self.codebook, probable)


def predictor_form(predictor: Any, codebook: Codebook, probable: bool = False) -> PredictorForm:
    """A predictor that can travel: a release's own, or an additive model's. Code never travels."""
    if isinstance(predictor, MostProbable) and not probable:
        return PredictorForm(model=model_form(predictor.model))
    release = predictor.__self__ if isinstance(predictor, MethodType) else None
    if probable and isinstance(release, AdditiveModel) and predictor.__func__ is AdditiveModel.probabilities:
        return PredictorForm(model=model_form(release))
    wanted = Release.predict_codes_proba if probable else Release.predict_codes
    if not isinstance(release, Release) or predictor.__func__ is not wanted:
        raise PlanError(
            f"{'reliability, best_model' if probable else 'confusion, best'}: got a function, which cannot be sent to the owner of the "
            f"rows; expected release.{wanted.__name__} of a Release. Nothing was sent."
        )
    _check_same(release, codebook)
    return PredictorForm(release=msgspec.Raw(release.to_json()))


def read_predictor(form: PredictorForm, codebook: Codebook) -> Release | AdditiveModel:
    if (form.release is msgspec.UNSET) == (form.model is msgspec.UNSET):
        raise PlanError("predictor: expected a release, or a model.")
    if isinstance(form.model, ModelForm):
        return read_model(form.model, codebook)
    assert isinstance(form.release, msgspec.Raw)
    try:
        release = Release.from_json(bytes(form.release))
    except ReleaseError as error:
        raise PlanError(f"predictor: {error}") from None
    _check_same(release, codebook)
    return release


def _check_same(release: Release, codebook: Codebook) -> None:
    """The same attributes, cells and classes: its codes are then the table's codes."""
    texts = [write(type(s)(s.attributes, s.target)) for s in (release.schema, codebook.schema)]
    if texts[0] != texts[1] or release.codebook.sizes != codebook.sizes:
        raise PlanError("predictor: its schema or its number of bins is not that of the table.")


# ------------------------------------------------------------ answers


def event_form(event: Event) -> EventForm:
    exact = [str(value) for value in (event.epsilon, event.sensitivity, event.scale, event.rho)]
    return EventForm(event.query, event.mechanism, exact[0], event.queries, exact[1], exact[2], exact[3])


def answer_bytes(number: int, arrays: Sequence[NDArray[np.int64]], events: Sequence[Event], assumed: str) -> bytes:
    first, *also = map(event_form, events)
    return msgspec.json.encode(AnswerForm(number, [array.ravel().tolist() for array in arrays], first, assumed, tuple(also)))


def read_arrays(form: AnswerForm, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.int64]]:
    """The answer in the shapes that it must have."""
    if [len(array) for array in form.arrays] != [math.prod(shape) for shape in shapes]:
        raise ValueError("not as many numbers as were asked for")
    return [np.array(array, dtype=np.int64).reshape(shape) for array, shape in zip(form.arrays, shapes, strict=True)]
