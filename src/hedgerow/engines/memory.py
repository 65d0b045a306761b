"""Rows in this process: encoded once, at the first query, and counted by the compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.engines.engine import CountingEngine, Progress
from hedgerow.engines.person_ids import person_numbers
from hedgerow.engines.persons import limited
from hedgerow.errors import TableError
from hedgerow.parallel import in_threads, row_blocks
from hedgerow.queries import kernels
from hedgerow.queries.leaf_counts import LeafCounts
from hedgerow.queries.query import Block, Query, Sums
from hedgerow.queries.rows import Rows
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.tree import Tree

KEPT_MARGINS = 2**25  # numbers, 256 MB: more are computed block by block each time


class MemoryRows(CountingEngine):
    """A data frame or an array with its labels; `persons` are the ids of the persons whose rows they are, where the schema names them."""

    def __init__(
        self,
        table: Any,
        labels: Any,
        codebook: Codebook,
        n_jobs: int = 1,
        progress: Progress | None = None,
        persons: Any = None,
        key: bytes = b"",
    ) -> None:
        super().__init__(codebook)
        self.n_jobs = n_jobs
        self._progress = progress
        self._source: tuple[Any, Any, Any] | None = (table, labels, persons)
        self._key = key
        self._margins: tuple[AdditiveModel, NDArray[np.float64]] | None = None
        self._encoded: tuple[NDArray[Any], NDArray[np.uint16]] | None = None

    @classmethod
    def of_codes(
        cls, codes: NDArray[Any], classes: NDArray[np.uint16], codebook: Codebook, n_jobs: int, progress: Progress | None
    ) -> MemoryRows:
        """Rows that are encoded already."""
        rows = cls(None, None, codebook, n_jobs, progress)
        rows._encoded, rows._source = (codes, classes), None
        return rows

    def _load(self) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        assert self._source is not None
        table, labels, persons = self._source
        codes, classes = self.codebook.encode(table, self.n_jobs), self.codebook.encode_classes(labels)
        if classes.shape != (len(codes),):
            raise TableError("table and labels do not have the same number of rows.")
        if self.codebook.schema.person is not None:
            numbers = person_numbers(persons, self.codebook.schema.person)
            if numbers.shape != classes.shape:
                raise TableError("table and persons do not have the same number of rows.")
            codes, classes = limited(numbers, codes, classes, self.codebook.schema.k, self._key)
        return codes, classes

    def _open(self) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        if self._encoded is None:
            self._encoded = self._load()
            self._source = None
        return self._encoded

    def _pass(self, query: Query[Any]) -> Sums:
        """A part of the rows on each thread, or block after block where a function of its own answers for rows."""
        codes, classes = self._open()
        if isinstance(query, Rows):
            return [np.array([len(codes)], dtype=np.int64)]
        if isinstance(query, LeafCounts):
            return self._leaf_counts(list(query.trees), codes, classes)
        if query.calls_predictors:
            parts = row_blocks(len(codes))
        else:
            threads = max(1, self.n_jobs)
            parts = [slice(len(codes) * t // threads, len(codes) * (t + 1) // threads) for t in range(threads)]
        model = query.needs_margins_of
        margins = None if model is None else self._margins_of(model, codes)

        def count(rows: slice) -> Sums:
            sums = query.zeros(self.codebook)
            known = None if margins is None else margins[rows]
            query.add(Block(codes[rows], classes[rows], self.codebook.n_classes, known), sums)
            return sums

        total = query.zeros(self.codebook)
        for sums in in_threads(count, parts, self.n_jobs):
            for all_rows, some in zip(total, sums, strict=True):
                all_rows += some
        return total

    def _leaf_counts(self, trees: list[Tree], codes: NDArray[Any], classes: NDArray[np.uint16]) -> Sums:
        """Each thread has trees of its own, so that no count array is held twice."""
        threads = max(1, min(self.n_jobs, len(trees)))
        done = [0.0] * threads

        def count(thread: int) -> list[NDArray[np.int64]]:
            def tell(share: float) -> None:
                done[thread] = share
                if self._progress:
                    self._progress(sum(done) / threads)

            report = tell if self._progress else None
            return kernels.leaf_counts(trees[thread::threads], codes, classes, self.codebook.n_classes, report)

        counted = in_threads(count, range(threads), threads)
        return [counted[i % threads][i // threads] for i in range(len(trees))]

    def _margins_of(self, model: AdditiveModel, codes: NDArray[Any]) -> NDArray[np.float64] | None:
        """Margins of all rows, kept for a model that goes on where this one ends: a booster asks again after each tree. They change in
        place: an engine is asked one query at a time, as a session does.
        """
        if len(codes) * model.n_classes > KEPT_MARGINS:
            return None
        before, self._margins = self._margins, None  # an interrupt while they change leaves none
        margins = np.empty((len(codes), model.n_classes)) if before is None else before[1]
        known = len(before[0].trees) if before is not None and model.continues(before[0]) else None
        if known is None or len(model.trees) > known:
            model.add_margins(codes, margins, self.n_jobs, known or 0)
        self._margins = (model, margins)
        return margins
