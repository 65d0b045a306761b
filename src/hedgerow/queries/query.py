"""The base of all private queries: what may be asked of a private table, what it costs, and how its answer is counted.

A query is plain data, so that it can travel to where the rows are: another thread, a Spark executor, an owner's service. It maps a block
of encoded rows to arrays of whole numbers, and partial results from blocks, threads and executors are summed; what a row adds depends on
that row alone. Everything about one query stands in its class, and nowhere else:

    check      what is refused before anything is charged        queries, norms  of counts: the sensitivity, stated once; score: of a choice
    zeros, add the sums over rows, block by block                exact, scores   what the mechanism gets: counts, or scores to choose by
    shapes     of the released arrays                            answer          what the caller gets
    Form       its JSON; form and decode write and read it       attacks         neighbouring tables on which the audit tries it
    name       in events, certificates and addresses             label           its theorem in PROOF.md

A query that counts one histogram writes check, zeros, add, shapes, form, decode and attacks, and has defaults for the rest. Its sums may
hold more than it releases, such as a last cell for codes without a branch (`codes == sizes[attribute]`): `exact` takes that away.

A new query is a class in a file of its own here, listed in `QUERIES` (`__init__.py`); a compiled loop in `kernels.py`, if the sums need
one; and a theorem in `mechanisms/PROOF.md`. The private table, the audit, the service and the checks of certificates read `QUERIES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.charges import choice_event, counting_event
from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, PERMUTE_AND_FLIP, Event
from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError
from hedgerow.queries.forms import Decoder, Encoder, PriceForm, QueryForm, fraction_of, price_form, price_of, short_form
from hedgerow.queries.scores import Score
from hedgerow.schema.codebook import Codebook

if TYPE_CHECKING:
    from hedgerow.queries.attacks import Attack
    from hedgerow.trees.additive_model import AdditiveModel

Counts: TypeAlias = NDArray[np.int64]
Sums: TypeAlias = list[Counts]
Shapes: TypeAlias = list[tuple[int, ...]]
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Block:
    """Some encoded rows with their classes; `classes` holds n_classes where a row has no declared class.

    margins: those of the query's model, where the engine has kept them
    """

    codes: NDArray[Any]
    classes: NDArray[np.uint16]
    n_classes: int
    margins: NDArray[np.float64] | None = None


class Query(ABC, Generic[Answer]):
    """One private query. Subclasses are frozen dataclasses: a query cannot change between its check and its answer."""

    name: ClassVar[str]
    label: ClassVar[str]
    Form: ClassVar[type[QueryForm]]
    calls_predictors: ClassVar[bool] = False  # a function of its own answers for rows: one block after the other

    @abstractmethod
    def check(self, codebook: Codebook) -> None:
        """Raise PlanError for what is not sound. Public facts alone decide, and nothing is charged yet."""

    @abstractmethod
    def event(self, price: Price, k: int) -> Event:
        """What is charged, where at most k rows of a person are counted."""

    def events(self, price: Price, k: int) -> tuple[Event, ...]:
        """All that is charged before the look: one event, but for a query that chooses and then counts."""
        return (self.event(price, k),)

    @property
    def needs_margins_of(self) -> AdditiveModel | None:
        """A model whose margins the sums need: an engine may keep them between two queries."""
        return None

    def prepare(self, codebook: Codebook) -> None:
        """Called once before the rows are read, by one thread: predictors are compiled. It must not change the query."""
        return

    @abstractmethod
    def zeros(self, codebook: Codebook) -> Sums:
        """Arrays to add to."""

    @abstractmethod
    def add(self, block: Block, sums: Sums) -> None:
        """Add what the rows of a block count. There is no codebook here: a query holds positions of attributes, not names."""

    @abstractmethod
    def shapes(self, codebook: Codebook) -> Shapes:
        """Of the released arrays."""

    def answer(self, arrays: Sums) -> Answer:
        """What the caller gets, from the released arrays: by default the first of them."""
        return cast(Answer, arrays[0])

    @abstractmethod
    def valid(self, arrays: Sums) -> bool:
        """Whether arrays of the right shapes could be an answer: what comes from another machine is not believed."""

    @abstractmethod
    def form(self, price: Price, encode: Encoder) -> QueryForm:
        """The query and its price as JSON, to be sent to the owner of the rows; the session fills its number in."""

    @classmethod
    @abstractmethod
    def decode(cls, form: Any, decode: Decoder) -> Query[Any]:
        """The query from what a stranger sent: everything is read and bounded (`decode.bound`) before room is made for it and before
        anything is charged. `check` comes after it, as for every query.
        """

    @classmethod
    @abstractmethod
    def price(cls, form: Any) -> Price: ...

    @classmethod
    @abstractmethod
    def attacks(cls) -> Sequence[Attack]:
        """Pairs of neighbouring tables on which the answers should differ most."""


class CountingQuery(Query[Answer]):
    """Whole numbers that get noise. By default one histogram over disjoint cells: a row adds 1 to at most one number."""

    @property
    def queries(self) -> int:
        """How many such histograms one row may be counted in: the trees of a forest, the attributes of a node. q of M1."""
        return 1

    @classmethod
    def norms(cls, n_classes: int) -> tuple[int, int]:
        """By how much one row changes one vector: the L1 norm and the squared L2 norm."""
        return 1, 1

    @classmethod
    def cost(cls, price: Price, k: int, queries: int = 1, n_classes: int = 2) -> Event:
        l1, l2_squared = cls.norms(n_classes)
        return counting_event(cls.name, price, queries, l1, l2_squared, k)

    def event(self, price: Price, k: int) -> Event:
        return self.cost(price, k, self.queries)

    def exact(self, sums: Sums, codebook: Codebook) -> Sums:
        """The numbers that get noise. Without noise they are the answer for the non-private baseline."""
        return sums

    def released(self, noisy: Sums) -> Sums:
        """What is released of the noisy numbers: post-processing."""
        return noisy

    def valid(self, arrays: Sums) -> bool:
        return True

    @classmethod
    def price(cls, form: Any) -> Price:
        price: PriceForm = form.price
        return price_of(price)

    @classmethod
    def proven(cls, mechanism: str, queries: int, sensitivity: str, n_classes: int, k: int) -> bool:
        """Whether a certificate may state such an event of this query."""
        l1, l2_squared = cls.norms(n_classes)
        expected = {DISCRETE_LAPLACE: str(l1 * k), DISCRETE_GAUSSIAN: str(l2_squared * k**2)}
        return expected.get(mechanism) == sensitivity and queries >= 1


class ChoiceQuery(Query[Answer]):
    """One of some candidates for each of some disjoint parts, by private choice: a better score is more likely."""

    mechanism: str = PERMUTE_AND_FLIP
    score: Score

    @classmethod
    def cost(cls, epsilon: Price, k: int, score: Score, mechanism: str = PERMUTE_AND_FLIP) -> Event:
        return choice_event(cls.name, epsilon, score.plain_sensitivity, score.monotone, mechanism, k)

    def event(self, price: Price, k: int) -> Event:
        return self.cost(price, k, self.score, self.mechanism)

    @abstractmethod
    def scores(self, sums: Sums, codebook: Codebook) -> NDArray[np.int64]:
        """(parts, candidates), in steps of 1/score.unit; better is larger."""

    @property
    @abstractmethod
    def choices(self) -> NDArray[np.bool_]:
        """Which candidates each part may get: (parts, candidates)."""

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(len(self.choices),)]

    def valid(self, arrays: Sums) -> bool:
        chosen, allowed = arrays[0], self.choices
        inside = (chosen >= 0) & (chosen < allowed.shape[1])
        return bool(inside.all() and allowed[np.arange(len(chosen)), chosen].all())

    @classmethod
    def price(cls, form: Any) -> Price:
        return fraction_of(form.epsilon)

    @classmethod
    @abstractmethod
    def proven(cls, sensitivity: Fraction, halved_rate: bool, n_classes: int) -> bool:
        """Whether a certificate may state a choice with this sensitivity of the score to one row. halved_rate: ε/2Δ instead of ε/Δ."""


class UnprotectedTable(Protocol):
    """Exact answers (`engines/exact.py`), for the non-private baselines. A PrivateTable is none: it wants a price."""

    def ask(self, query: CountingQuery[Answer]) -> Answer: ...


def frozen(values: Any, dtype: Any = None) -> NDArray[Any]:
    """A copy that nobody can change: what a query was checked for is what it asks, each time that it is asked."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def check_tree(name: str, trees: Sequence[Any], codebook: Codebook) -> None:
    """The leaves of each tree are disjoint parts of rows of this schema."""
    for tree in trees:
        if tree.sizes != codebook.sizes or not tree.is_antichain(tree.leaves):
            raise PlanError(f"{name}: a tree was made for another schema, or its leaves are not disjoint.")


__all__ = [
    "Block", "ChoiceQuery", "CountingQuery", "Counts", "Decoder", "Encoder", "PriceForm", "Query", "QueryForm", "Shapes", "Sums",
    "UnprotectedTable", "check_tree", "frozen", "price_form", "short_form",
]  # fmt: skip
