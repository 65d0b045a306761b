"""Exact answers with no privacy at all, for the non-private baselines and for public rows. What is made from them says `guarantee: none`.

It is not a PrivateTable and cannot be given to a private estimator's grower.
"""

from __future__ import annotations

from hedgerow.engines.engine import Engine
from hedgerow.queries.query import Answer, CountingQuery


class ExactTable:
    """Counting queries without noise and without a price."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ask(self, query: CountingQuery[Answer]) -> Answer:
        codebook = self._engine.codebook
        query.check(codebook)
        return query.answer(query.released(query.exact(self._engine.sums(query), codebook)))
