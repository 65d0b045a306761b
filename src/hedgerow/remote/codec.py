"""What travels between an analyst's machine and a curator, as JSON: trees, candidates, models, prices; each checked when it is read.

A look is one verb with a number that counts 1, 2, 3, …; its answer is lists of whole numbers, with the event that was charged. Whatever
is read may have been written by a stranger: every number has a bound, and what is not sound is a PlanError before anything is charged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from types import MethodType
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import Event
from hedgerow.accounting.prices import Price, Rho
from hedgerow.errors import PlanError, ReleaseError
from hedgerow.release.document import TreeRecord, tree_of
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.toml import write
from hedgerow.trees.additive_model import AdditiveModel, MostProbable
from hedgerow.trees.splits import Candidates, Split
from hedgerow.trees.tree import Tree

MOST_BITS = 256  # of the numerator and of the denominator of a price
MILLION = 10**6
MOST_DENOMINATOR = 100  # of amounts in a ledger: lcm(1…100) has 136 bits, so that no choice of amounts can fill its exact sums
_FRACTION = re.compile(r"([0-9]{1,80})(?:/([0-9]{1,80})|\.([0-9]{1,20}))?")


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that travels."""


class TreeForm(Form, frozen=True):
    """As in tree.py."""

    attribute: list[int]
    branch: list[int]


class RhoForm(Form, frozen=True):
    rho: str


class ModelForm(Form, frozen=True):
    """scores: for each tree one for each node and class, node by node."""

    base: list[float]
    trees: list[TreeForm]
    scores: list[list[float]]


class PredictorForm(Form, frozen=True):
    """A release document, or an additive model whose largest margin decides."""

    release: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    model: ModelForm | msgspec.UnsetType = msgspec.UNSET


class SplitForm(Form, frozen=True):
    attribute: int
    groups: list[int]


PriceForm = str | RhoForm


class LookForm(Form, frozen=True, kw_only=True):
    """A verb that is asked; its name is in the address."""

    number: int


class RowsForm(LookForm, frozen=True, kw_only=True):
    price: PriceForm


class LeafCountsForm(LookForm, frozen=True, kw_only=True):
    trees: list[TreeForm]
    price: PriceForm


class NodesForm(LookForm, frozen=True, kw_only=True):
    """sizes and class_counts"""

    tree: TreeForm
    nodes: list[int]
    price: PriceForm


class TablesForm(NodesForm, frozen=True, kw_only=True):
    """asked: for each node the attributes."""

    asked: list[list[int]]


class GradientSumsForm(LookForm, frozen=True, kw_only=True):
    asked: list[TreeForm]
    model: ModelForm
    price: PriceForm


class ChooseForm(LookForm, frozen=True, kw_only=True):
    """allowed: for each node the candidates that it may get."""

    tree: TreeForm
    nodes: list[int]
    candidates: list[SplitForm]
    allowed: list[list[int]]
    score: str
    epsilon: str
    mechanism: str


class ConfusionForm(LookForm, frozen=True, kw_only=True):
    predictor: PredictorForm
    price: PriceForm


class ReliabilityForm(ConfusionForm, frozen=True, kw_only=True):
    bins: int


class BestForm(LookForm, frozen=True, kw_only=True):
    predictors: list[PredictorForm]
    epsilon: str


class BestScaleForm(LookForm, frozen=True, kw_only=True):
    model: ModelForm
    scales: list[float]
    epsilon: str


LOOKS: dict[str, type[LookForm]] = {
    "rows": RowsForm, "leaf_counts": LeafCountsForm, "sizes": NodesForm, "class_counts": NodesForm, "tables": TablesForm,
    "gradient_sums": GradientSumsForm, "choose": ChooseForm, "confusion": ConfusionForm, "reliability": ReliabilityForm,
    "best": BestForm, "best_scale": BestScaleForm,
}  # fmt: skip
"""The verbs that may be asked from afar. `choose_locally` is none of them: its ε is not proven."""


RUNNING = b'{"state":"running"}'  # said in the place of an answer: the look is still being made, ask again


class SessionForm(msgspec.Struct, frozen=True):
    """A session that has begun. coins, secret: where its noise comes from, and whether nobody can predict it."""

    id: str
    epsilon: str
    delta: str
    coins: str
    secret: bool


class EventForm(Form, frozen=True):
    """What was charged, with exact amounts as text."""

    verb: str
    mechanism: str
    epsilon: str
    queries: int
    sensitivity: str
    scale: str
    rho: str


class AnswerForm(Form, frozen=True):
    """arrays: each flat, in the shape that follows from what was asked; assumed: what is to be said about where the rows came from."""

    number: int
    arrays: list[list[int]]
    event: EventForm
    assumed: str


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
    """Which look of its session it is."""
    return read_form(content, _Numbered).number


# ------------------------------------------------------------ prices


def fraction_form(value: Fraction) -> str:
    return str(value)


def short_form(value: Fraction) -> str:
    """A price that `fraction_of` takes. What is no fraction at all is refused by the verb."""
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise PlanError(f"price: it has more than {MOST_BITS} bits above or below the line; expected a shorter fraction. Nothing was sent.")
    return fraction_form(value)


def fraction_of(text: str) -> Fraction:
    """A positive fraction of bounded length, so that exact sums stay cheap."""
    found = _FRACTION.fullmatch(text) if len(text) <= 161 else None
    digits = (found[3] or "") if found else ""
    above, below = (int(found[1] + digits), int(found[2] or 10 ** len(digits))) if found else (0, 0)
    if not above or not below or max(above.bit_length(), below.bit_length()) > MOST_BITS:
        raise PlanError(f"price: expected an exact fraction above 0, such as 1/10 or 0.1, of at most {MOST_BITS} bits above and below.")
    return Fraction(above, below)


def price_form(price: Price) -> PriceForm:
    return RhoForm(short_form(price.value)) if isinstance(price, Rho) else short_form(price)


def price_of(form: PriceForm) -> Price:
    return Rho(fraction_of(form.rho)) if isinstance(form, RhoForm) else fraction_of(form)


def payable(epsilon: Fraction) -> Fraction:
    """What a ledger of short amounts reserves for ε: the same where it is short, else rounded up to a millionth."""
    return epsilon if epsilon.denominator <= MOST_DENOMINATOR else rounded_up(epsilon)


def rounded_up(amount: Fraction) -> Fraction:
    """To a millionth: what a request has cost in the end may be any sum of fractions, and the ledger's sums stay short."""
    return Fraction(math.ceil(amount * MILLION), MILLION)


# ------------------------------------------------------------ trees, nodes, masks


def tree_form(tree: Tree) -> TreeForm:
    return TreeForm(tree.attribute.tolist(), tree.branch.tolist())


def read_tree(form: TreeForm, codebook: Codebook) -> Tree:
    try:
        return tree_of(TreeRecord(form.attribute, form.branch), codebook)
    except ReleaseError as error:
        raise PlanError(f"tree: {error}") from None


def nodes_form(nodes: Any) -> list[int]:
    return [int(node) for node in np.asarray(nodes, dtype=np.int64)]


def read_nodes(form: list[int], tree: Tree) -> NDArray[np.int64]:
    return _numbers_below(form, tree.n_nodes, "nodes")


def mask_form(mask: NDArray[np.bool_]) -> list[list[int]]:
    """For each row the columns that are true."""
    return [np.flatnonzero(row).tolist() for row in np.atleast_2d(mask)]


def read_mask(form: list[list[int]], columns: int, what: str) -> NDArray[np.bool_]:
    mask = np.zeros((len(form), columns), dtype=bool)
    for row, given in zip(mask, form, strict=True):
        row[_numbers_below(given, columns, what)] = True
    return mask


def _numbers_below(given: list[int], most: int, what: str) -> NDArray[np.int64]:
    if given and not 0 <= min(given) <= max(given) < most:
        raise PlanError(f"{what}: expected whole numbers from 0 to {most - 1}.")
    return np.array(given, dtype=np.int64)


# ------------------------------------------------------------ candidates, models, predictors


def candidates_form(candidates: Candidates) -> list[SplitForm]:
    return [SplitForm(split.attribute, list(split.groups)) for split in candidates.splits]


def read_candidates(form: list[SplitForm], codebook: Codebook) -> Candidates:
    if any(not split.groups for split in form):
        raise PlanError("candidates: a split does not say where each value goes.")
    return Candidates(codebook, tuple(Split(split.attribute, tuple(split.groups)) for split in form))


def model_form(model: AdditiveModel) -> ModelForm:
    """Floats travel exactly: the shortest text that reads back as the same number."""
    return ModelForm(model.base.tolist(), [tree_form(tree) for tree in model.trees], [s.ravel().tolist() for s in model.scores])


def read_model(form: ModelForm, codebook: Codebook) -> AdditiveModel:
    trees = tuple(read_tree(tree, codebook) for tree in form.trees)
    classes = len(form.base)
    if [len(scores) for scores in form.scores] != [tree.n_nodes * classes for tree in trees] or classes != codebook.n_classes:
        raise PlanError("model: expected one score for each class, in the base and in every node of every tree.")
    return AdditiveModel(np.array(form.base), trees, tuple(np.array(s, dtype=float).reshape(-1, classes) for s in form.scores))


def predictor_form(predictor: Any, codebook: Codebook, probable: bool = False) -> PredictorForm:
    """A predictor that can travel: a release's own, or an additive model's. Code never travels."""
    if isinstance(predictor, MostProbable) and not probable:
        return PredictorForm(model=model_form(predictor.model))
    release = predictor.__self__ if isinstance(predictor, MethodType) else None
    wanted = Release.predict_codes_proba if probable else Release.predict_codes
    if not isinstance(release, Release) or predictor.__func__ is not wanted:
        raise PlanError(
            f"{'reliability' if probable else 'confusion, best'}: got a function, which cannot be sent to the owner of the rows; expected "
            f"release.{wanted.__name__} of a Release. Nothing was sent."
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
    exact = [fraction_form(value) for value in (event.epsilon, event.sensitivity, event.scale, event.rho)]
    return EventForm(event.verb, event.mechanism, exact[0], event.queries, exact[1], exact[2], exact[3])


def answer_bytes(number: int, arrays: Sequence[NDArray[np.int64]], event: Event, assumed: str) -> bytes:
    return msgspec.json.encode(AnswerForm(number, [array.ravel().tolist() for array in arrays], event_form(event), assumed))


def read_arrays(form: AnswerForm, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.int64]]:
    """The answer in the shapes that it must have."""
    if [len(array) for array in form.arrays] != [math.prod(shape) for shape in shapes]:
        raise ValueError("not as many numbers as were asked for")
    return [np.array(array, dtype=np.int64).reshape(shape) for array, shape in zip(form.arrays, shapes, strict=True)]
