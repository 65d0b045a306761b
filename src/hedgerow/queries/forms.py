"""JSON of what a query holds: trees, nodes, masks, candidates, models, predictors, prices; each checked when it is read.

Whatever is read may have been written by a stranger: every number has a bound, and what is not sound is a PlanError before anything is
charged. Code never travels: a predictor is a release document or an additive model.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price, Rho
from hedgerow.errors import PlanError, ReleaseError
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.oblivious import ObliviousTree, runs_of, tree_of_runs
from hedgerow.trees.splits import Candidates, Split
from hedgerow.trees.tree import Tree, tree_of_lists

MOST_BITS = 256  # of the numerator and of the denominator of a price
MOST_CHOICES = 1000  # predictors or scales of one choice
_FRACTION = re.compile(r"([0-9]{1,80})(?:/([0-9]{1,80})|\.([0-9]{1,20}))?")


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that travels."""


class TreeForm(Form, frozen=True):
    """As in trees/tree.py."""

    attribute: list[int]
    branch: list[int]


class ObliviousForm(Form, frozen=True):
    """As in trees/oblivious.py; answers: for each level how many codes in a row have which answer, such as [20, 0, 13, 1]."""

    asks: list[int]
    answers: list[list[int]]


class RhoForm(Form, frozen=True):
    rho: str


class ModelForm(Form, frozen=True, omit_defaults=True):
    """scores: for each tree, those of `boosted` after the others, one for each node (or leaf) and class, node by node."""

    base: list[float]
    trees: list[TreeForm]
    scores: list[list[float]]
    boosted: tuple[ObliviousForm, ...] = ()


class PredictorForm(Form, frozen=True):
    """A release document, or an additive model whose largest margin decides."""

    release: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    model: ModelForm | msgspec.UnsetType = msgspec.UNSET


class SplitForm(Form, frozen=True):
    attribute: int
    groups: list[int]


PriceForm = str | RhoForm


class QueryForm(Form, frozen=True, kw_only=True):
    """A query; its name is in the address, and `number` counts the queries of a session: 1, 2, 3, …"""

    number: int


class Encoder(Protocol):
    """What only the client can write: predictors, whose releases are documents."""

    def predictor(self, predict: Any, probable: bool = False) -> PredictorForm: ...


class Decoder(Protocol):
    """What a query is read by: the public codebook of its session, and what a service takes on."""

    @property
    def codebook(self) -> Codebook: ...

    def bound(self, numbers: int, most: int | None = None) -> None:
        """Refuse an answer of more numbers than the service gives, or more than `most`."""
        ...

    def bound_counted(self, numbers: int) -> None:
        """Refuse more numbers than the service counts for one answer, where few of them leave."""
        ...

    def trees(self, forms: list[TreeForm]) -> list[Tree]: ...

    def predictor(self, form: PredictorForm) -> Predictor: ...

    def probabilities(self, form: PredictorForm) -> Probabilities: ...


# ------------------------------------------------------------ prices


def short_form(value: Price) -> str:
    """A price that `fraction_of` takes. What is no fraction at all is refused by the query."""
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise PlanError(f"price: it has more than {MOST_BITS} bits above or below the line; expected a shorter fraction. Nothing was sent.")
    return str(value)


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


# ------------------------------------------------------------ trees, nodes, masks


def tree_form(tree: Tree) -> TreeForm:
    return TreeForm(tree.attribute.tolist(), tree.branch.tolist())


def read_tree(form: TreeForm, codebook: Codebook) -> Tree:
    try:
        return tree_of_lists(codebook.sizes, form.attribute, form.branch)
    except ReleaseError as error:
        raise PlanError(f"tree: {error}") from None


def oblivious_form(tree: ObliviousTree) -> ObliviousForm:
    return ObliviousForm(list(tree.attributes), [runs_of(answers) for answers in tree.answers])


def read_one_oblivious(form: ObliviousForm, codebook: Codebook) -> ObliviousTree:
    try:
        return tree_of_runs(codebook.sizes, form.asks, form.answers)
    except ReleaseError as error:
        raise PlanError(f"tree: {error}") from None


def read_oblivious(forms: list[ObliviousForm], decode: Decoder) -> list[ObliviousTree]:
    decode.bound(len(forms), MOST_CHOICES)
    return [read_one_oblivious(form, decode.codebook) for form in forms]


def nodes_form(nodes: Any) -> list[int]:
    return [int(node) for node in np.asarray(nodes, dtype=np.int64)]


def read_nodes(form: list[int], tree: Tree) -> NDArray[np.int64]:
    return _numbers_below(form, tree.n_nodes, "nodes")


def mask_form(mask: NDArray[np.bool_]) -> list[list[int]]:
    """For each row the columns that are true."""
    return [np.flatnonzero(row).tolist() for row in np.atleast_2d(mask)]


def read_mask(form: list[list[int]], rows: int, columns: int, what: str) -> NDArray[np.bool_]:
    if len(form) != rows:
        raise PlanError(f"{what}: expected one list for each node.")
    mask = np.zeros((rows, columns), dtype=bool)
    for row, given in zip(mask, form, strict=True):
        row[_numbers_below(given, columns, what)] = True
    return mask


def _numbers_below(given: list[int], most: int, what: str) -> NDArray[np.int64]:
    if given and not 0 <= min(given) <= max(given) < most:
        raise PlanError(f"{what}: expected whole numbers from 0 to {most - 1}.")
    return np.array(given, dtype=np.int64)


# ------------------------------------------------------------ candidates and models


def candidates_form(candidates: Candidates) -> list[SplitForm]:
    return [SplitForm(split.attribute, list(split.groups)) for split in candidates.splits]


def read_candidates(form: list[SplitForm], codebook: Codebook) -> Candidates:
    if any(not split.groups for split in form):
        raise PlanError("candidates: a split does not say where each value goes.")
    return Candidates(codebook, tuple(Split(split.attribute, tuple(split.groups)) for split in form))


def model_form(model: AdditiveModel) -> ModelForm:
    """Floats travel exactly: the shortest text that reads back as the same number."""
    plain = [tree_form(tree) for tree in model.trees if isinstance(tree, Tree)]
    boosted = tuple(oblivious_form(tree) for tree in model.trees[len(plain) :] if isinstance(tree, ObliviousTree))
    if len(plain) + len(boosted) != len(model.trees):
        raise PlanError("model: boosted trees come after all others, since sums are taken in their order. Nothing was sent.")
    return ModelForm(model.base.tolist(), plain, [s.ravel().tolist() for s in model.scores], boosted)


def read_model(form: ModelForm, codebook: Codebook) -> AdditiveModel:
    plain = tuple(read_tree(tree, codebook) for tree in form.trees)
    trees: tuple[Tree | ObliviousTree, ...] = (*plain, *(read_one_oblivious(tree, codebook) for tree in form.boosted))
    classes = len(form.base)
    if [len(scores) for scores in form.scores] != [tree.n_nodes * classes for tree in trees] or classes != codebook.n_classes:
        raise PlanError("model: expected one score for each class, in the base and in every node of every tree.")
    return AdditiveModel(np.array(form.base), trees, tuple(np.array(s, dtype=float).reshape(-1, classes) for s in form.scores))
