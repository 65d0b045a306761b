"""A dataset at a curator as a private table: the verbs, and every private estimator, run here; the rows stay where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import PERMUTE_AND_FLIP
from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Price
from hedgerow.accounting.units import Unit
from hedgerow.accounting.zcdp import rho_for
from hedgerow.errors import PlanError
from hedgerow.mechanisms.scores import Score
from hedgerow.private_table import Nodes
from hedgerow.queries.predictors import Predictor, Probabilities
from hedgerow.remote import codec
from hedgerow.remote.session import UNKNOWN, PaidTable, RemoteRows
from hedgerow.remote.transport import Transport
from hedgerow.remote_stub import TableElsewhere
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.splits import Candidates
from hedgerow.trees.tree import Tree


class RemoteTable(TableElsewhere):
    """Rows at a service, for one purpose. A verb costs its price; `session` pays once for several; an estimator takes it as X.

    table.rows(Fraction(1, 10))        with table.session(1) as paid: paid.rows(…)        HedgerowClassifier(epsilon=1).fit(table)
    """

    __slots__ = ("_dataset", "_purpose", "_transport")

    def __init__(self, transport: Transport, dataset: str, purpose: str, codebook: Codebook) -> None:
        rows = RemoteRows(transport, dataset, purpose, codebook)
        super().__init__(rows, Budget(1).reserve(1, "nothing", unit=Unit.of(codebook.schema)), UNKNOWN)
        self._transport, self._dataset, self._purpose = transport, dataset, purpose

    @property
    def unit(self) -> Unit:
        """What its ε is counted in: rows, or the persons of the owner's schema."""
        return Unit.of(self.codebook.schema)

    @classmethod
    def of(
        cls, transport: Transport, dataset: str, schema: Schema, purposes: tuple[str, ...], purpose: str | None = None, bins: int = 5
    ) -> RemoteTable:
        """purpose: what the looks are for; where one alone is granted, it need not be named."""
        if purpose is None and len(purposes) != 1:
            raise PlanError(f"purpose: {dataset!r} is granted for {_listed(purposes)}; expected one of them to be named.")
        if purpose is not None and purpose not in purposes:
            raise PlanError(f"purpose: got {purpose!r}; {dataset!r} is granted for {_listed(purposes)}.")
        return cls(transport, dataset, purposes[0] if purpose is None else purpose, Codebook(schema, bins))

    @contextmanager
    def session(self, epsilon: Any, delta: Any = 0, what: str = "") -> Iterator[PaidTable]:
        """One reservation for several looks; what they did not cost is given back at the end. With a δ the whole is kept."""
        amount, chance = exact_epsilon(epsilon), exact_delta(delta)
        if chance:
            rho_for(amount, chance)  # refuses what has no ρ
        with closing(self._rows_for(self.codebook)) as rows:
            rows.reserve(amount, chance, what)
            yield rows.table(Budget(amount, chance).reserve(amount, what or "session", chance, self.unit))

    def _rows_for(self, codebook: Codebook) -> RemoteRows:
        return RemoteRows(self._transport, self._dataset, self._purpose, codebook)

    @contextmanager
    def _once(self, verb: str, price: Any) -> Iterator[PaidTable]:
        """A session for one look, begun when the look has been checked and is sent."""
        if not isinstance(price, Fraction):
            raise PlanError(f"{verb}: got {type(price).__name__}; expected an exact fraction of ε. For Rho begin a session with a delta.")
        with closing(self._rows_for(self.codebook)) as rows:
            amount = exact_epsilon(codec.payable(price))
            rows.want(amount, Fraction(0), verb)
            yield rows.table(Budget(amount).reserve(amount, verb, unit=self.unit))

    def rows(self, price: Price) -> int:
        with self._once("rows", price) as paid:
            return paid.rows(price)

    def leaf_counts(self, trees: Sequence[Tree], price: Price) -> list[NDArray[np.int64]]:
        with self._once("leaf_counts", price) as paid:
            return paid.leaf_counts(trees, price)

    def confusion(self, predict: Predictor, price: Price) -> NDArray[np.int64]:
        with self._once("confusion", price) as paid:
            return paid.confusion(predict, price)

    def reliability(self, probabilities: Probabilities, bins: int, price: Price) -> NDArray[np.int64]:
        with self._once("reliability", price) as paid:
            return paid.reliability(probabilities, bins, price)

    def sizes(self, tree: Tree, nodes: Nodes, price: Price) -> NDArray[np.int64]:
        with self._once("sizes", price) as paid:
            return paid.sizes(tree, nodes, price)

    def class_counts(self, tree: Tree, nodes: Nodes, price: Price) -> NDArray[np.int64]:
        with self._once("class_counts", price) as paid:
            return paid.class_counts(tree, nodes, price)

    def tables(self, tree: Tree, nodes: Nodes, asked: NDArray[np.bool_], price: Price) -> NDArray[np.int64]:
        with self._once("tables", price) as paid:
            return paid.tables(tree, nodes, asked, price)

    def gradient_sums(self, asked: Sequence[Tree], model: AdditiveModel, price: Price) -> list[NDArray[np.int64]]:
        with self._once("gradient_sums", price) as paid:
            return paid.gradient_sums(asked, model, price)

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
        with self._once("choose", epsilon) as paid:
            return paid.choose(tree, nodes, candidates, allowed, score, epsilon, mechanism)

    def choose_locally(self, *given: Any, **more: Any) -> NoReturn:
        raise PlanError("choose_locally: its ε is not proven, so it is not answered from afar. Use choose.")

    def best(self, predictors: Sequence[Predictor], epsilon: Fraction) -> int:
        with self._once("best", epsilon) as paid:
            return paid.best(predictors, epsilon)

    def best_scale(self, model: AdditiveModel, scales: Sequence[float], epsilon: Fraction) -> int:
        with self._once("best_scale", epsilon) as paid:
            return paid.best_scale(model, scales, epsilon)

    def __repr__(self) -> str:
        where = f"{self._dataset!r} at {self._transport.url}, for {self._purpose!r}, ε for {self.unit.words}"
        return f"RemoteTable({where}: {', '.join(self.codebook.schema.names)})"


def _listed(purposes: Sequence[str]) -> str:
    return ", ".join(map(repr, purposes)) or "no purpose"
