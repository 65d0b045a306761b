"""What a place where rows live can answer: exact sums of a query, and those only to `PrivateTable`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from hedgerow.engines.growing import GrowingTree
from hedgerow.queries.query import Query, Sums
from hedgerow.schema.codebook import Codebook

Progress = Callable[[float], None]
"""Called with the share of a pass over the rows that is done, from 0 to 1. If it has a method `rows_seen(rows)`, that is called with how
many rows the pass has read: a private number, for the screen of whoever holds the table."""


class Engine(Protocol):
    """Exact answers about the rows of one table. Opening may be slow and happens at the first query."""

    @property
    def codebook(self) -> Codebook: ...

    @property
    def assumed(self) -> str:
        """What a certificate says about where the rows came from; "" where there is nothing to say."""
        ...

    @property
    def origin(self) -> str:
        """Of rows at a service, a hash of their address; elsewhere "": the name of a file tells nothing about its rows."""
        ...

    def counted_as(self, part: Any) -> bool:
        """Whether a table of a release is this one, as far as can be told: rows at a service alone have a name that stays."""
        ...

    def close(self) -> None:
        """Nothing more will be asked."""
        ...

    def sums(self, query: Query[Any]) -> Sums:
        """The query's arrays, summed over all rows."""
        ...


class CountingEngine(ABC):
    """What engines share, wherever their rows are: a query is one pass over all rows, or none where its sums follow from earlier ones."""

    codebook: Codebook
    assumed = ""
    origin = ""

    def __init__(self, codebook: Codebook) -> None:
        self.codebook = codebook
        self._growing = GrowingTree()

    def counted_as(self, part: Any) -> bool:
        return False

    def sums(self, query: Query[Any]) -> Sums:
        known = self._growing.known(query)
        if known is None:
            query.prepare(self.codebook)
            known = self._pass(query)
            self._growing.keep(query, known)
        return known

    @abstractmethod
    def _pass(self, query: Query[Any]) -> Sums:
        """The query's arrays, summed over all rows: one pass."""

    def close(self) -> None:
        """Nothing more will be asked: a connection is ended, a folder of one's own is taken away."""
        return
