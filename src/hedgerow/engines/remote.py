"""Rows that stay with somebody else: their holder charges, counts and draws the noise, and only the query travels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

from hedgerow.accounting.events import Event
from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError, SchemaError
from hedgerow.mechanisms.coins import Coins
from hedgerow.queries.query import Query, Sums
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import same_columns


class RemoteEngine(ABC):
    """The stub of an engine: a PrivateTable over it checks and charges a query here, and its holder does the same there and answers."""

    codebook: Codebook
    assumed = ""
    origin = ""
    coins: Coins  # where the holder's noise comes from; nothing can be drawn from it here

    def counted_as(self, part: Any) -> bool:
        return bool(self.origin) and part.source == self.origin

    @abstractmethod
    def reserve(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        """Take (ε, δ) from what their holder allows, or refuse; `close` gives back what was not used."""

    @abstractmethod
    def released(self, query: Query[Any], price: Price, charge: Callable[[], tuple[Event, ...]]) -> Sums:
        """The holder's answer. `charge` is called before the query is sent, and gives the events that the holder must have charged."""

    def sums(self, query: Query[Any]) -> NoReturn:
        """Exact sums never leave their holder."""
        raise PlanError(f"{query.name}: the rows are with their owner, and only private answers come from there.")

    @abstractmethod
    def close(self) -> None:
        """Nothing more will be asked: what was reserved and not used is given back."""


class RemoteSource(ABC):
    """A table that stays with its holder, as estimators take it in the place of X."""

    __slots__ = ()
    codebook: Codebook

    @abstractmethod
    def engine_for(self, codebook: Codebook) -> RemoteEngine:
        """The same rows, read by this codebook."""

    def seen_by(self, release: Any) -> str | None:
        """A sentence where a release is known to be trained on these very rows, or None. Costs no ε."""
        return None


def remote_schema(table: RemoteSource, own: Schema | None) -> Schema:
    """The schema that the rows have where they are. One's own must be the same; how many rows it declares is one's own public number."""
    theirs = table.codebook.schema
    if own is None:
        return theirs
    if not same_columns(own, theirs):
        raise SchemaError("schema: it is not the schema of the owner's table; leave it out, or take table.codebook.schema.")
    return own


def check_remote_sampler(sampler: str) -> None:
    if sampler != "hedgerow":
        raise PlanError(f"sampler: got {sampler!r}; the noise is drawn where the rows are. Leave it out.")
