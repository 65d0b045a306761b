"""`BoostRound`: trees by private choice, and the sums of gradients and Hessians in their leaves. One look, several events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import Event
from hedgerow.accounting.prices import Price, Rho
from hedgerow.accounting.zcdp import choice_epsilon
from hedgerow.errors import PlanError
from hedgerow.queries.attacks import RIGHT, WRONG, Attack, contrary, halves_of
from hedgerow.queries.boosting import GradientQuery, bound, mechanism, tree_score
from hedgerow.queries.choose_tree import ChooseTree
from hedgerow.queries.forms import ModelForm, ObliviousForm, model_form, oblivious_form, read_model, read_oblivious
from hedgerow.queries.query import CountingQuery, Decoder, Encoder, PriceForm, QueryForm, Shapes, Sums, price_form
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import gradient_width

CHOICE_SHARE = {True: Fraction(1, 5), False: Fraction(3, 10)}  # of the price, by `concentrated`; nothing where there is one tree alone


class BoostRoundForm(QueryForm, frozen=True, kw_only=True):
    trees: list[ObliviousForm]
    model: ModelForm
    concentrated: bool
    chosen: int
    price: PriceForm


@dataclass(frozen=True, eq=False)
class BoostRound(GradientQuery, CountingQuery[tuple[list[int], NDArray[np.int64]]]):
    """The trees stand in `chosen` groups of equal size. Of each group the place of one tree among all, chosen as by `ChooseTree`, and of it
    Σ R and Σ w·H in each leaf: (chosen, leaves, 2 · gradient_width).

    A share of the price pays for the choices. Where trees differ in size, the numbers of leaves that a chosen one does not have are noise.
    """

    chosen: int = 1

    name = "boost_round"
    label = "V15"
    Form = BoostRoundForm

    def check(self, codebook: Codebook) -> None:
        super().check(codebook)
        if type(self.chosen) is not int or not 1 <= self.chosen <= len(self.trees) or len(self.trees) % self.chosen:
            raise PlanError(f"boost_round: got {len(self.trees)} trees and chosen={self.chosen!r}; expected groups of equal size.")

    @property
    def queries(self) -> int:
        return self.chosen

    @property
    def group(self) -> int:
        """Trees of one group."""
        return len(self.trees) // self.chosen

    def choice(self, group: int) -> ChooseTree:
        """Which tree of a group."""
        return ChooseTree(self.trees[group * self.group : (group + 1) * self.group], self.model, self.concentrated)

    @classmethod
    def norms(cls, n_classes: int) -> tuple[int, int]:
        """Of vectors that are clipped for a pure price, and for one in ρ.  [V14]"""
        return bound(n_classes, False), bound(n_classes, True) ** 2

    @classmethod
    @lru_cache(maxsize=64, typed=True)  # a fit asks for the same ones in every round
    def costs(cls, price: Price, k: int, group: int, chosen: int, n_classes: int) -> tuple[Event, ...]:
        """Of a round: a choice in each group, if it has more than one tree, and the sums of all chosen trees."""
        if not isinstance(price, (Fraction, Rho)):
            raise PlanError(f"{cls.name}: ε must be an exact fraction, got {type(price).__name__}.")
        concentrated = isinstance(price, Rho)
        if group == 1:
            return (cls.cost(price, k, chosen, n_classes),)
        share = CHOICE_SHARE[concentrated]
        each = price * (share / chosen)
        epsilon = choice_epsilon(each.value) if isinstance(each, Rho) else each
        choice = ChooseTree.cost(epsilon, k, tree_score(n_classes, concentrated), mechanism(concentrated))
        return *[choice] * chosen, cls.cost(price * (1 - share), k, chosen, n_classes)

    def event(self, price: Price, k: int) -> Event:
        return self.events(price, k)[-1]

    def events(self, price: Price, k: int) -> tuple[Event, ...]:
        if isinstance(price, Rho) != self.concentrated:
            raise PlanError("boost_round: vectors are clipped for ρ (concentrated) or for pure ε; the price is of the other kind.")
        return self.costs(price, k, self.group, self.chosen, self.model.n_classes)

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(self.chosen,), (self.chosen, self.leaves, 2 * gradient_width(codebook.n_classes))]

    def answer(self, arrays: Sums) -> tuple[list[int], NDArray[np.int64]]:
        return arrays[0].tolist(), arrays[1]

    def valid(self, arrays: Sums) -> bool:
        return bool((arrays[0] // self.group == np.arange(self.chosen)).all())

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        return BoostRoundForm(
            number=0, trees=list(map(oblivious_form, self.trees)), model=model_form(self.model), concentrated=self.concentrated,
            chosen=self.chosen, price=price_form(price),
        )  # fmt: skip

    @classmethod
    def decode(cls, form: Any, decode: Decoder) -> BoostRound:
        query = cls(read_oblivious(form.trees, decode), read_model(form.model, decode.codebook), form.concentrated, form.chosen)
        decode.bound(query.zeros_size // max(1, len(query.trees)) * max(1, query.chosen))
        decode.bound_counted(query.zeros_size)
        return query

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        why = "one row that pulls against all others: it moves the choice and the sums"
        return [Attack(cls.name, why, RIGHT, WRONG, lambda codebook: cls(halves_of(codebook), contrary(), False), read=_line)]


def _line(answer: tuple[list[int], NDArray[np.int64]]) -> NDArray[Any]:
    return np.concatenate([answer[0], answer[1].ravel()])
