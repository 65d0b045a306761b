"""A dataset at a service as a private table: queries and every private estimator run here; the rows stay where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Price
from hedgerow.accounting.units import Unit
from hedgerow.accounting.zcdp import rho_for
from hedgerow.engines.remote import RemoteSource
from hedgerow.errors import PlanError
from hedgerow.private_table import NamedQueries, PrivateTable, private_table
from hedgerow.queries.query import Answer, Query
from hedgerow.release.release import Release
from hedgerow.remote import codec
from hedgerow.remote.kept_answers import KeptAnswers
from hedgerow.remote.seen_rows import seen_rows, trained_on
from hedgerow.remote.session import RemoteRows
from hedgerow.remote.transport import Transport
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema


class Session(AbstractContextManager[PrivateTable]):
    """It begins, and is charged, where `with` enters it."""

    def __init__(self, opened: AbstractContextManager[PrivateTable]) -> None:
        self._opened = opened

    def __enter__(self) -> PrivateTable:
        return self._opened.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self._opened.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"session: it begins by `with table.session(…) as paid:`, and paid.{name} is inside. Nothing was charged yet.")


class RemoteTable(NamedQueries, RemoteSource):
    """Rows at a service, for one purpose. A query costs its price; `session` pays once for several; an estimator takes it as X.

    table.ask(Rows(), Fraction(1, 10))     with table.session(1) as paid: paid.ask(Rows(), …)     HedgerowClassifier(None, 1).fit(table)
    """

    __slots__ = ("_dataset", "_purpose", "_transport", "asked", "codebook", "kept")

    def __init__(self, transport: Transport, dataset: str, purpose: str, codebook: Codebook) -> None:
        self.codebook = codebook
        self.kept: KeptAnswers | None = None  # of one request that may go on after an interruption
        self.asked = ""  # of one request that is known again by it
        self._transport, self._dataset, self._purpose = transport, dataset, purpose

    @property
    def purpose(self) -> str:
        """What its queries are for."""
        return self._purpose

    @property
    def unit(self) -> Unit:
        """What its ε is counted in: rows, or the persons of the owner's schema."""
        return Unit.of(self.codebook.schema)

    @classmethod
    def of(
        cls, transport: Transport, dataset: str, schema: Schema, purposes: tuple[str, ...], purpose: str | None = None, bins: int = 5
    ) -> RemoteTable:
        """purpose: what the queries are for; where one alone is granted, it need not be named."""
        if purpose is None and len(purposes) != 1:
            raise PlanError(f"purpose: {dataset!r} is granted for {_listed(purposes)}; expected one of them to be named.")
        if purpose is not None and purpose not in purposes:
            raise PlanError(f"purpose: got {purpose!r}; {dataset!r} is granted for {_listed(purposes)}.")
        return cls(transport, dataset, purposes[0] if purpose is None else purpose, Codebook(schema, bins))

    def session(self, epsilon: Any, delta: Any = 0, what: str = "") -> Session:
        """One reservation for several queries, `with table.session(1) as paid: paid.ask(…)`; what they did not cost is given back at the
        end. With a δ the whole is kept.
        """
        return Session(self._session(epsilon, delta, what))

    @contextmanager
    def _session(self, epsilon: Any, delta: Any, what: str) -> Iterator[PrivateTable]:
        amount, chance = exact_epsilon(epsilon), exact_delta(delta)
        if chance:
            rho_for(amount, chance)  # refuses what has no ρ
        with closing(self.engine_for(self.codebook)) as rows:
            rows.reserve(amount, chance, what)
            yield private_table(rows, Budget(amount, chance).reserve(amount, what or "session", chance, self.unit))

    def engine_for(self, codebook: Codebook) -> RemoteRows:
        return RemoteRows(self._transport, self._dataset, self._purpose, codebook, self.kept, self.asked)

    def seen_by(self, release: Release) -> str | None:
        from hedgerow.remote.connection import Connection

        return seen_rows(self._dataset) if trained_on(Connection(self._transport), self._dataset, release) else None

    def ask(self, query: Query[Answer], price: Price) -> Answer:
        """The private answer to one query, for its price. A session for this query alone begins when it has been checked and is sent."""
        if not isinstance(price, Fraction):
            kind = type(price).__name__
            raise PlanError(f"{query.name}: got {kind}; expected an exact fraction of ε. For Rho begin a session with a delta.")
        with closing(self.engine_for(self.codebook)) as rows:
            amount = exact_epsilon(codec.payable(price))
            rows.want(amount, Fraction(0), query.name)
            return private_table(rows, Budget(amount).reserve(amount, query.name, unit=self.unit)).ask(query, price)

    def __repr__(self) -> str:
        where = f"{self._dataset!r} at {self._transport.url}, for {self._purpose!r}, ε for {self.unit.words}"
        return f"RemoteTable({where}: {', '.join(self.codebook.schema.names)})"


def _listed(purposes: Sequence[str]) -> str:
    return ", ".join(map(repr, purposes)) or "no purpose"
