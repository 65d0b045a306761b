"""PrivateTable: the one place where a query becomes a private answer.

`ask` checks a query, makes its event, charges it, and only then looks at rows and draws noise. What each query is, and what it costs,
stands in its class (`queries/`); its theorem is in PROOF.md under the class's label. A price is a fraction, pure ε with Laplace noise, or
`Rho`, concentrated privacy with Gaussian noise; choices are paid in pure ε. It is what one person pays: where the schema names persons,
noise and rates are those for all of a person's counted rows (U1).
"""

from __future__ import annotations

import warnings
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from hedgerow.accounting.events import Event
from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.accounting.prices import Price
from hedgerow.accounting.units import Unit
from hedgerow.engines.engine import Engine
from hedgerow.engines.remote import RemoteEngine, RemoteSource
from hedgerow.errors import BudgetError, PlanError
from hedgerow.mechanisms.choices import exponential_mechanism
from hedgerow.mechanisms.coins import SYSTEM, Coins
from hedgerow.mechanisms.noise import add_noise, add_share, check_noise_source, check_shared_noise, choose_columns, sampler_named
from hedgerow.mechanisms.shares import SecureSum
from hedgerow.queries import BY_NAME, QUERIES
from hedgerow.queries.boost_round import BoostRound
from hedgerow.queries.choose import ChooseLocally
from hedgerow.queries.query import Answer, ChoiceQuery, CountingQuery, Query, Sums
from hedgerow.schema.codebook import Codebook

ASKABLE = frozenset((*QUERIES, ChooseLocally))  # all that is proven, and one that is not and says so in its event


def _check_unit(own: Unit, meter: Reservation) -> None:
    """A budget adds up what it was told: no table may be looked at for money of another unit.  [U3]"""
    if meter.unit != own:
        raise BudgetError(
            f"{meter.what}: the table is counted in {own.words}, and what was reserved is for {meter.unit.words}. No row was looked at. "
            "Reserve with unit=Unit.of(schema)."
        )


OLD_METHODS = (  # of version 0.1: a query that came later has none
    "rows", "leaf_counts", "sizes", "class_counts", "tables", "confusion", "reliability", "gradient_sums", "choose", "best", "best_scale",
)  # fmt: skip


class NamedQueries:
    """The methods of version 0.1, such as `rows(price)` for `ask(Rows(), price)`: they warn, and will go."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name not in OLD_METHODS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        kind: Any = BY_NAME[name]

        def ask(*given: Any, **named: Any) -> Any:
            warnings.warn(f"{name}(…): use ask({kind.__name__}(…), price).", DeprecationWarning, stacklevel=2)
            price = named.pop("price", named.pop("epsilon", None))
            if price is None:
                place = sum(field.default is MISSING for field in fields(kind))
                price, given = given[place], (*given[:place], *given[place + 1 :])
            return self.ask(kind(*given, **named), price)

        return ask


class PrivateTable(NamedQueries):
    """Rows behind a reservation: an answer is noisy, and paid for before the rows are looked at."""

    __slots__ = ("_coins", "_engine", "_k", "_meter", "_sampler", "_secure_sum", "codebook", "sampler")

    def __init__(
        self,
        engine: Engine,
        meter: Reservation,
        coins: Coins = SYSTEM,
        sampler: str = "hedgerow",
        secure_sum: SecureSum | None = None,
    ) -> None:
        if secure_sum is not None and (sampler != "hedgerow" or isinstance(engine, RemoteEngine)):
            raise PlanError('owners who count together draw shares of noise here: expected rows of one\'s own, and sampler="hedgerow".')
        self._secure_sum = secure_sum
        self._sampler = sampler_named(sampler, coins)
        self._engine = engine
        self._meter = meter
        self._coins = coins
        self.codebook: Codebook = engine.codebook
        self._k = engine.codebook.schema.k  # rows of one person that the engine counts at most
        _check_unit(Unit.of(engine.codebook.schema), meter)
        self.sampler = f"{sampler}, {coins.name}" if secure_sum is None else f"{sampler}, {coins.name}, {secure_sum.name}"

    def ask(self, query: Query[Answer], price: Price) -> Answer:
        """The private answer to a query, for a price that is charged before any row is looked at. `queries/` says what it is."""
        arrays = self.released(query, price)
        return query.answer(arrays)

    def released(self, query: Query[Any], price: Price) -> Sums:
        """The answer as the arrays that leave the table."""
        if type(query) not in ASKABLE:  # a class of one's own could state any sensitivity
            raise PlanError(f"ask: got {type(query).__name__}; expected a query of the closed list hedgerow.queries.QUERIES.")
        query.check(self.codebook)
        events = query.events(price, self._k)
        for event in events:
            check_noise_source(event, self._sampler)
            if self._secure_sum is not None:
                check_shared_noise(event, self._secure_sum.shares)
        if isinstance(self._engine, RemoteEngine):
            return self._engine.released(query, price, lambda: self._charge(events))
        self._charge(events)
        sums = self._engine.sums(query)  # its theorem: the label of the query's class
        if isinstance(query, BoostRound):
            return self._round(query, sums, events)
        if isinstance(query, CountingQuery):
            exact = query.exact(sums, self.codebook)
            if self._secure_sum is not None:
                return query.released(self._together(exact, events[0], self._secure_sum))
            return query.released([add_noise(numbers, events[0], self._coins, self._sampler) for numbers in exact])
        assert isinstance(query, ChoiceQuery)
        return [self._chosen(query, sums, events[0])]

    def _together(self, exact: Sums, event: Event, secure_sum: SecureSum) -> Sums:
        """The counts of all owners with the noise of one: a share is added here, and leaves through the secure sum alone.  [M4]"""
        own = np.concatenate([numbers.ravel() for numbers in exact])
        total = secure_sum.sum(add_share(own, event, self._coins, secure_sum.shares))
        ends = np.cumsum([numbers.size for numbers in exact])[:-1]
        return [part.reshape(numbers.shape) for part, numbers in zip(np.split(total, ends), exact, strict=True)]

    def _charge(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        self._meter.charge(*events)
        return events

    def _round(self, query: BoostRound, sums: Sums, events: tuple[Event, ...]) -> Sums:
        """Of each group one tree by private choice, and its sums with noise; of the other trees nothing leaves.  [V15]"""
        *choices, counting = events
        chosen = np.arange(query.chosen, dtype=np.int64) * query.group
        for group, event in enumerate(choices):
            own = sums[0][group * query.group : (group + 1) * query.group]
            chosen[group] += self._chosen(query.choice(group), [own], event)[0]
        return [chosen, add_noise(sums[0][chosen], counting, self._coins, self._sampler)]

    def _chosen(self, query: ChoiceQuery[Any], sums: Sums, event: Event) -> Any:
        scores = query.scores(sums, self.codebook)
        if isinstance(query, ChooseLocally):
            return self._chosen_locally(query, scores, event.epsilon)
        return choose_columns(scores, query.choices.copy(), event, query.score.unit, self._coins)

    def _chosen_locally(self, query: ChooseLocally, scores: Any, epsilon: Fraction) -> Any:
        """Not proven: each node has a rate of its own.  [V8]"""
        rates = query.rates(epsilon, self._k)
        rows = [
            exponential_mechanism(scores[i : i + 1], query.choices[i : i + 1].copy(), rate, self._coins)[0] for i, rate in enumerate(rates)
        ]
        return np.array(rows, dtype=np.int64)

    @property
    def _secret(self) -> bool:
        """Whether nobody could predict the noise."""
        return self._coins.secret

    def __repr__(self) -> str:
        return f"PrivateTable({', '.join(self.codebook.schema.names)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivateTable cannot be pickled or copied: its rows stay where they are.")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()


def is_private_table(table: Any) -> bool:
    """Whether it answers queries, and gives no rows."""
    return isinstance(table, (PrivateTable, RemoteSource))


def reserved(
    engine: Engine, budget: Budget, epsilon: Fraction, what: str, delta: Fraction = Fraction(0), key: str | None = None
) -> Reservation:
    """Charge, then read: elsewhere first, since what is refused there must cost nothing here; then from one's own budget.

    The unit is that of the schema by which the rows are read, whoever asks.  [U3]
    key: of a request that is paid for once
    """
    if isinstance(engine, RemoteEngine):
        engine.reserve(epsilon, delta, what)
    unit = Unit.of(engine.codebook.schema)
    return budget.reserve(epsilon, what, delta, unit) if key is None else budget.reserve_under(key, epsilon, what, delta, unit)


def private_table(
    engine: Engine,
    reservation: Reservation,
    coins: Coins = SYSTEM,
    sampler: str = "hedgerow",
    secure_sum: SecureSum | None = None,
) -> PrivateTable:
    """The rows behind a reservation; of rows elsewhere the noise is their holder's.

    secure_sum: with other owners, whose counts are added to these; each adds a share of the noise
    """
    if isinstance(engine, RemoteEngine):
        return PrivateTable(engine, reservation, engine.coins, secure_sum=secure_sum)
    return PrivateTable(engine, reservation, coins, sampler, secure_sum)
