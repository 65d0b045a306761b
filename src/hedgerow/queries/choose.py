"""`Choose`: a split for each of some nodes, by private choice (Q2 of the greedy algorithms)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import (
    EXPONENTIAL,
    LEAST_GAIN,
    LOCAL_SENSITIVITY,
    MONOTONE,
    MOST_GAIN,
    NOT_MONOTONE,
    PERMUTE_AND_FLIP,
    Event,
)
from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError
from hedgerow.queries.attacks import COPIES, IMPURE, MORE, PURE, Attack, copies_tree
from hedgerow.queries.forms import (
    SplitForm,
    TreeForm,
    candidates_form,
    mask_form,
    nodes_form,
    read_candidates,
    read_mask,
    read_nodes,
    read_tree,
    tree_form,
)
from hedgerow.queries.nodes import SplitCounts, split_numbers
from hedgerow.queries.query import ChoiceQuery, Counts, Decoder, Encoder, QueryForm, Sums, frozen, short_form
from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI, Score, score_named, scores_of
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.splits import Candidates, by_value

UNPROVEN = "choose_locally: its ε is not proven, so it is not answered from afar. Use choose."


class ChooseForm(QueryForm, frozen=True, kw_only=True):
    """allowed: for each node the candidates that it may get."""

    tree: TreeForm
    nodes: list[int]
    candidates: list[SplitForm]
    allowed: list[list[int]]
    score: str
    epsilon: str
    mechanism: str


@dataclass(frozen=True, eq=False)
class _SplitChoice(SplitCounts, ChoiceQuery[Counts]):
    """For each node one of the splits that it is allowed; no node may lie above another."""

    candidates: Candidates
    allowed: NDArray[np.bool_]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "allowed", frozen(self.allowed))

    @property
    def choices(self) -> NDArray[np.bool_]:
        return self.allowed

    def check(self, codebook: Codebook) -> None:
        super().check(codebook)
        shaped = self.allowed.dtype == np.bool_ and self.allowed.shape == (len(self.nodes), len(self.candidates))
        if self.candidates.codebook != codebook or not shaped or not self.allowed.any(axis=1).all():
            raise PlanError("choose: expected candidates of this schema, and for each node at least one that is allowed.")

    def scores(self, sums: Sums, codebook: Codebook) -> NDArray[np.int64]:
        return scores_of(self.score, self.declared(sums[0]), self.candidates)


@dataclass(frozen=True, eq=False)
class Choose(_SplitChoice):
    """For each node one of the splits that it is allowed, by private choice among the scores; no node may lie above another."""

    score: Score
    mechanism: str = PERMUTE_AND_FLIP

    name = "choose"
    label = "V7"
    Form = ChooseForm

    def check(self, codebook: Codebook) -> None:
        """A score is data access: only the members of the closed list have a proven sensitivity."""
        super().check(codebook)
        if not isinstance(self.score, Score):
            raise PlanError(f"choose: got {type(self.score).__name__}; expected a score of the closed list.")
        known = score_named(self.score.name)
        facts = (self.score.unit, self.score.sensitivity, self.score.monotone)
        if known is None or facts != (known.unit, known.sensitivity, known.monotone):
            raise PlanError(f"choose: the score {self.score.name!r} is not in the list of proven scores.")
        if self.mechanism not in (PERMUTE_AND_FLIP, EXPONENTIAL):
            raise PlanError(f"choose: got the mechanism {self.mechanism!r}; expected {PERMUTE_AND_FLIP!r} or {EXPONENTIAL!r}.")

    def scores(self, sums: Sums, codebook: Codebook) -> NDArray[np.int64]:
        known = score_named(self.score.name)  # the list's own function, whatever the given score holds
        assert known is not None
        return scores_of(known, self.declared(sums[0]), self.candidates)

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        return ChooseForm(
            number=0, tree=tree_form(self.tree), nodes=nodes_form(self.nodes), candidates=candidates_form(self.candidates),
            allowed=mask_form(self.allowed), score=self.score.name, epsilon=short_form(price), mechanism=self.mechanism,
        )  # fmt: skip

    @classmethod
    def decode(cls, form: ChooseForm, decode: Decoder) -> Choose:
        tree = read_tree(form.tree, decode.codebook)
        decode.bound_counted(len(form.nodes) * max(split_numbers(decode.codebook), len(form.candidates)))
        nodes, candidates = read_nodes(form.nodes, tree), read_candidates(form.candidates, decode.codebook)
        allowed = read_mask(form.allowed, len(nodes), len(candidates), "allowed")
        score = score_named(form.score)
        if score is None:
            raise PlanError("score: expected one of the list of proven scores.")
        return cls(tree, nodes, candidates, allowed, score, form.mechanism)

    @classmethod
    def proven(cls, sensitivity: Fraction, halved_rate: bool, n_classes: int) -> bool:
        gain = LEAST_GAIN <= sensitivity <= MOST_GAIN
        return sensitivity in MONOTONE or gain or (halved_rate and sensitivity == NOT_MONOTONE)

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        def case(name: str, why: str, rows: Sequence[tuple[int, int, int]], score: Score, mechanism: str) -> Attack:
            make = _on_copies(lambda tree, nodes, candidates, allowed: cls(tree, nodes, candidates, allowed, score, mechanism))
            return Attack(name, why, rows, MORE, make, runs=COPIES, copies=True)

        return [
            case("choose", IMPURE, PURE, GINI, PERMUTE_AND_FLIP),
            case("choose, exponential mechanism", IMPURE, PURE, GINI, EXPONENTIAL),
            case("choose, max", IMPURE, PURE, MAX, PERMUTE_AND_FLIP),
            case("choose, Gini index", "a second row", [(0, 0, 0)], NORMAL_GINI, EXPONENTIAL),
        ]


@dataclass(frozen=True, eq=False)
class ChooseLocally(_SplitChoice):
    """NOT PROVEN, for reproduction only: the Gini index with its local sensitivity at the noisy sizes of the nodes."""

    sizes: NDArray[np.int64]

    name = "choose_locally"
    label = "V8"
    score = NORMAL_GINI
    mechanism = LOCAL_SENSITIVITY

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sizes", frozen(self.sizes))

    def check(self, codebook: Codebook) -> None:
        super().check(codebook)
        if len(self.sizes) != len(self.nodes):
            raise PlanError("choose_locally: expected one noisy size for each node.")

    def event(self, price: Price, k: int) -> Event:
        """It states the largest of the sensitivities that are used: that of the smallest node."""
        event = Choose.cost(price, k, NORMAL_GINI, EXPONENTIAL)
        used = max(self.sensitivities) * k
        return replace(event, mechanism=LOCAL_SENSITIVITY, sensitivity=used, scale=2 * used / event.epsilon)

    @property
    def sensitivities(self) -> list[Fraction]:
        """Of the Gini index at each node: 2m/(m + 1)² for m rows."""
        return [Fraction(2 * m, (m + 1) ** 2) for m in (max(1, int(size)) for size in self.sizes)]

    def rates(self, epsilon: Fraction, k: int) -> list[Fraction]:
        """The rate of each node: ε/2Δ = ε·(m + 1)²/(4m) for m rows, in the score's steps."""
        return [epsilon / (2 * sensitivity) / NORMAL_GINI.unit / k for sensitivity in self.sensitivities]

    def form(self, price: Price, encode: Encoder) -> NoReturn:
        raise PlanError(UNPROVEN)

    @classmethod
    def decode(cls, form: object, decode: Decoder) -> NoReturn:
        raise PlanError(UNPROVEN)

    @classmethod
    def proven(cls, sensitivity: Fraction, halved_rate: bool, n_classes: int) -> bool:
        return False

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        make = _on_copies(lambda tree, nodes, candidates, allowed: cls(tree, nodes, candidates, allowed, np.full(len(nodes), 100)))
        return [Attack(cls.name, "local sensitivity at a wrong size", [(0, 0, 0)], MORE, make, runs=COPIES, copies=True)]


def _on_copies(choose: Callable[..., ChoiceQuery[Counts]]) -> Callable[[Codebook], ChoiceQuery[Counts]]:
    """A choice between the attributes a and b in every copy of the table."""

    def make(codebook: Codebook) -> ChoiceQuery[Counts]:
        tree, nodes = copies_tree()
        candidates = by_value(codebook)
        allowed = np.zeros((len(nodes), len(candidates)), dtype=bool)
        allowed[:, 2:] = True
        return choose(tree, nodes, candidates, allowed)

    return make
