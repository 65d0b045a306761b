"""PrivateTable: the verbs, and nothing else, through which a grower sees rows.

Every verb makes its event, charges it, and only then looks. Each has its theorem in PROOF.md under the label in its code.
A price is a fraction, pure ε with Laplace noise, or `Rho`, concentrated privacy with Gaussian noise; choices are paid in pure ε.
It is what one person pays: where the schema names persons, noise and rates are those for all of a person's counted rows (U1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import EXPONENTIAL, LOCAL_SENSITIVITY, PERMUTE_AND_FLIP, Event
from hedgerow.accounting.meter import Reservation
from hedgerow.accounting.prices import Price
from hedgerow.accounting.units import Unit
from hedgerow.engines.engine import Engine
from hedgerow.errors import BudgetError, PlanError
from hedgerow.mechanisms.choices import exponential_mechanism
from hedgerow.mechanisms.coins import SYSTEM, Coins
from hedgerow.mechanisms.noise import add_noise, check_noise_source, choice_event, choose_columns, counting_event, sampler_named
from hedgerow.mechanisms.scores import BRIER, MAX, NORMAL_GINI, Score, score_named, scores_of
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import whole
from hedgerow.trees.additive_model import AdditiveModel, gradient_norms
from hedgerow.trees.splits import Candidates
from hedgerow.trees.tree import Tree

Nodes = Sequence[int] | NDArray[Any]
MOST_BINS = 1000


def _listed(score: Score) -> Score:
    """A score is data access: only the members of the closed list have a proven sensitivity."""
    if not isinstance(score, Score):
        raise PlanError(f"choose: got {type(score).__name__}; expected a score of the closed list.")
    known = score_named(score.name)
    if known is None or (score.unit, score.sensitivity, score.monotone) != (known.unit, known.sensitivity, known.monotone):
        raise PlanError(f"choose: the score {score.name!r} is not in the list of proven scores.")
    return known


def _check_unit(own: Unit, meter: Reservation) -> None:
    """A budget adds up what it was told: no table may be looked at for money of another unit.  [U3]"""
    if meter.unit != own:
        raise BudgetError(
            f"{meter.what}: the table is counted in {own.words}, and what was reserved is for {meter.unit.words}. No row was looked at. "
            "Reserve with unit=Unit.of(schema)."
        )


def checked_bins(bins: int) -> int:
    bins = whole("bins", bins)
    if bins > MOST_BINS:
        raise PlanError(f"bins: got {bins}; expected at most {MOST_BINS}.")
    return bins


class PrivateTable:
    """Rows behind a reservation: an answer is noisy, and paid for before the rows are looked at."""

    __slots__ = ("_coins", "_engine", "_k", "_meter", "_sampler", "codebook", "sampler")

    def __init__(
        self, engine: Engine, meter: Reservation, coins: Coins = SYSTEM, sampler: str = "hedgerow"
    ) -> None:
        self._sampler = sampler_named(sampler, coins)
        self._engine = engine
        self._meter = meter
        self._coins = coins
        self.codebook: Codebook = engine.codebook
        self._k = engine.codebook.schema.k  # rows of one person that the engine counts at most
        _check_unit(Unit.of(engine.codebook.schema), meter)
        self.sampler = f"{sampler}, {coins.name}"

    def rows(self, price: Price) -> int:
        """Noisy number of rows."""
        event = counting_event("rows", price, rows_per_person=self._k)
        self._pay(event)
        exact = np.array([self._engine.count_rows()], dtype=np.int64)  # [V1]
        return int(add_noise(exact, event, self._coins, self._sampler)[0])

    def leaf_counts(self, trees: Sequence[Tree], price: Price) -> list[NDArray[np.int64]]:
        """Noisy class counts in every leaf of every tree. The trees share the price; the leaves of one tree are disjoint."""
        trees = list(trees)
        if not trees:
            raise PlanError("leaf_counts: got no trees; expected at least one.")
        for tree in trees:
            if tree.sizes != self.codebook.sizes or not tree.is_antichain(tree.leaves):
                raise PlanError("leaf_counts: a tree was made for another schema, or its leaves are not disjoint.")
        event = counting_event("leaf_counts", price, queries=len(trees), rows_per_person=self._k)
        self._pay(event)
        exact = self._engine.leaf_counts(trees)  # [V2]
        return [add_noise(counts, event, self._coins, self._sampler) for counts in exact]

    def confusion(self, predict: Predictor, price: Price) -> NDArray[np.int64]:
        """Noisy counts of (true class, predicted class); the last row is for rows that have no declared class.

        predict: `predict_codes` of a release, or a `MostProbable`. Of any other function you vouch that it is fixed, that its answer for a
        row follows from that row's codes alone, to the last bit, whatever stands beside it, and that it never raises.
        """
        event = counting_event("confusion", price, rows_per_person=self._k)
        self._pay(event)
        exact = self._engine.confusion(predict)  # [V3]
        return add_noise(exact, event, self._coins, self._sampler)

    def reliability(self, probabilities: Probabilities, bins: int, price: Price) -> NDArray[np.int64]:
        """Noisy counts of (bin of the largest class probability; wrong, right): (bins, 2), equal-width bins from 1/classes to 1.

        probabilities: `predict_codes_proba` of a release. Of any other function you vouch as in `confusion`.
        """
        bins = checked_bins(bins)
        event = counting_event("reliability", price, rows_per_person=self._k)
        self._pay(event)
        exact = self._engine.reliability(probabilities, bins)  # [V11]
        return add_noise(exact, event, self._coins, self._sampler)

    def sizes(self, tree: Tree, nodes: Nodes, price: Price) -> NDArray[np.int64]:
        """Noisy number of rows in each node; no node may lie above another."""
        places = self._disjoint(tree, nodes)
        event = counting_event("sizes", price, rows_per_person=self._k)
        self._pay(event)
        exact = self._engine.class_counts(tree, places).sum(axis=1)  # [V4]
        return add_noise(exact, event, self._coins, self._sampler)

    def class_counts(self, tree: Tree, nodes: Nodes, price: Price) -> NDArray[np.int64]:
        """Noisy class counts of each node (Q1); no node may lie above another."""
        places = self._disjoint(tree, nodes)
        event = counting_event("class_counts", price, rows_per_person=self._k)
        self._pay(event)
        exact = self._engine.class_counts(tree, places)[:, :-1]  # [V5]
        return add_noise(exact, event, self._coins, self._sampler)

    def tables(self, tree: Tree, nodes: Nodes, asked: NDArray[np.bool_], price: Price) -> NDArray[np.int64]:
        """Noisy (cell, class) counts of the asked attributes of each node, 0 elsewhere: (nodes, cells, classes).

        asked[i, a]: whether attribute a is asked at node i. The price is for all of them: each gets it / (most asked at one node).
        """
        places = self._disjoint(tree, nodes)
        if asked.dtype != np.bool_ or asked.shape != (len(places), len(self.codebook.sizes)) or not asked.any():
            raise PlanError("tables: expected for each node which attributes are asked, and at least one.")
        event = counting_event("tables", price, queries=int(asked.sum(axis=1).max()), rows_per_person=self._k)
        self._pay(event)
        wanted = np.repeat(asked, self.codebook.sizes, axis=1)[:, :, None]
        exact = np.where(wanted, self._engine.split_counts(tree, places), 0)  # [V6]
        noisy = add_noise(exact, event, self._coins, self._sampler)
        return np.where(wanted, noisy, 0)

    def gradient_sums(self, asked: Sequence[Tree], model: AdditiveModel, price: Price) -> list[NDArray[np.int64]]:
        """Noisy sums, over the rows of every leaf of every asked tree, of the gradient of an additive model's log-likelihood.

        A row of class y adds trunc(GRID · (1[y = c] − softmax(F)_c)) for each class c; of two classes, for the second alone. Divide by
        `additive_model.GRID` to get the gradient. One array (leaves, classes or 1) for each tree asked.
        """
        asked = list(asked)
        n_classes = self.codebook.n_classes
        if not asked or type(model) is not AdditiveModel or not model.fits(self.codebook.sizes, n_classes):
            raise PlanError("gradient_sums: expected at least one tree, and an AdditiveModel over this schema.")
        for tree in asked:
            if tree.sizes != self.codebook.sizes or not tree.is_antichain(tree.leaves):
                raise PlanError("gradient_sums: a tree was made for another schema, or its leaves are not disjoint.")
        l1, l2_squared = gradient_norms(n_classes)
        event = counting_event("gradient_sums", price, len(asked), l1, l2_squared, self._k)
        self._pay(event)
        exact = self._engine.gradient_sums(asked, model)  # [V10]
        return [add_noise(sums, event, self._coins, self._sampler) for sums in exact]

    def choose(
        self,
        tree: Tree,
        nodes: Nodes,
        candidates: Candidates,
        allowed: NDArray[np.bool_],
        score: Score,
        epsilon: Fraction,
        mechanism: str = PERMUTE_AND_FLIP,
    ) -> NDArray[np.int64]:
        """For each node one of the splits that it is allowed, by private choice (Q2); no node may lie above another."""
        places = self._disjoint(tree, nodes)
        score = _listed(score)
        if mechanism not in (PERMUTE_AND_FLIP, EXPONENTIAL):
            raise PlanError(f"choose: got the mechanism {mechanism!r}; expected {PERMUTE_AND_FLIP!r} or {EXPONENTIAL!r}.")
        event = choice_event("choose", epsilon, score, mechanism, self._k)
        self._check_allowed(candidates, allowed, len(places))
        self._meter.charge(event)
        exact = scores_of(score, self._engine.split_counts(tree, places), candidates)  # [V7]
        return choose_columns(exact, allowed, event, score.unit, self._coins)

    def choose_locally(
        self,
        tree: Tree,
        nodes: Nodes,
        candidates: Candidates,
        allowed: NDArray[np.bool_],
        sizes: NDArray[np.int64],
        epsilon: Fraction,
    ) -> NDArray[np.int64]:
        """NOT PROVEN, for reproduction only: the Gini index with its local sensitivity at the noisy sizes of the nodes."""
        places = self._disjoint(tree, nodes)
        event = replace(choice_event("choose", epsilon, NORMAL_GINI, EXPONENTIAL, self._k), mechanism=LOCAL_SENSITIVITY)
        self._check_allowed(candidates, allowed, len(places))
        if len(sizes) != len(places):
            raise PlanError("choose_locally: expected one noisy size for each node.")
        self._meter.charge(event)
        exact = scores_of(NORMAL_GINI, self._engine.split_counts(tree, places), candidates)  # [V8]
        n = [max(1, int(size)) for size in sizes]
        rates = [epsilon * (m + 1) ** 2 / (4 * m) / NORMAL_GINI.unit / self._k for m in n]
        rows = [
            exponential_mechanism(exact[i : i + 1], allowed[i : i + 1], rate, self._coins)[0] for i, rate in enumerate(rates)
        ]
        return np.array(rows, dtype=np.int64)

    def best(self, predictors: Sequence[Predictor], epsilon: Fraction) -> int:
        """Which of some fixed predictors, such as `confusion` takes, gets the most rows right, by private choice."""
        event = choice_event("best", epsilon, MAX, PERMUTE_AND_FLIP, self._k)
        if not predictors:
            raise PlanError("best: got no predictors; expected at least one.")
        self._meter.charge(event)
        right = [np.trace(table) for table in self._engine.confusions(predictors)]  # [V9]
        allowed = np.ones((1, len(right)), dtype=bool)
        return int(choose_columns(np.array([right], dtype=np.int64), allowed, event, 1, self._coins)[0])

    def best_scale(self, model: AdditiveModel, scales: Sequence[float], epsilon: Fraction) -> int:
        """By which of some fixed numbers a model's margins should be multiplied, so that its probabilities fit best; by private choice."""
        event = choice_event("best_scale", epsilon, BRIER, PERMUTE_AND_FLIP, self._k)
        numbers = np.array(scales, dtype=np.float64)
        fits = type(model) is AdditiveModel and model.fits(self.codebook.sizes, self.codebook.n_classes)
        if not fits or numbers.ndim != 1 or not len(numbers) or not ((numbers > 0) & (numbers <= 1)).all():
            raise PlanError("best_scale: expected an AdditiveModel over this schema, and scales above 0 and at most 1.")
        self._meter.charge(event)
        exact = -self._engine.brier_sums(model, numbers)  # [V12]
        return int(choose_columns(exact[None], np.ones((1, len(numbers)), dtype=bool), event, BRIER.unit, self._coins)[0])

    @property
    def _secret(self) -> bool:
        """Whether nobody could predict the noise."""
        return self._coins.secret

    def _pay(self, event: Event) -> None:
        check_noise_source(event, self._sampler)
        self._meter.charge(event)

    def _disjoint(self, tree: Tree, nodes: Nodes) -> NDArray[np.int64]:
        """The nodes, if a row can be in only one of them. Public: depends on the tree alone."""
        places = np.asarray(nodes, dtype=np.int64)
        if tree.sizes != self.codebook.sizes or not len(places) or not tree.is_antichain(places):
            raise PlanError("the nodes must be of a tree over this schema, at least one, and none above another.")
        return places

    def _check_allowed(self, candidates: Candidates, allowed: NDArray[np.bool_], nodes: int) -> None:
        shaped = allowed.dtype == np.bool_ and allowed.shape == (nodes, len(candidates))
        if candidates.codebook != self.codebook or not shaped or not allowed.any(axis=1).all():
            raise PlanError("choose: expected candidates of this schema, and for each node at least one that is allowed.")

    def __repr__(self) -> str:
        return f"PrivateTable({', '.join(self.codebook.schema.names)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivateTable cannot be pickled or copied: its rows stay where they are.")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()
