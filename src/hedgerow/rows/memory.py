"""Rows in this process: encoded once, at the first question, and counted by the compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.additive_model import AdditiveModel
from hedgerow.encoding import Codebook
from hedgerow.errors import TableError
from hedgerow.parallel import in_threads, row_blocks
from hedgerow.rows import kernels
from hedgerow.rows.engine import Predictor, Probabilities
from hedgerow.rows.reliability import bin_edges, reliability
from hedgerow.tree import Tree

KEPT_MARGINS = 2**25  # numbers, 256 MB: more are computed block by block each time
Progress = Callable[[float], None]  # called with the share of the work that is done, from 0 to 1


class MemoryRows:
    """A data frame or an array with its labels."""

    def __init__(
        self, table: Any, labels: Any, codebook: Codebook, n_jobs: int = 1, progress: Progress | None = None
    ) -> None:
        self.codebook = codebook
        self.n_jobs = n_jobs
        self._progress = progress
        self._source: tuple[Any, Any] | None = (table, labels)
        self._margins: tuple[AdditiveModel, NDArray[np.float64]] | None = None
        self._root: NDArray[np.int64] | None = None
        self._encoded: tuple[NDArray[Any], NDArray[np.uint16]] | None = None

    def _load(self) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        assert self._source is not None
        table, labels = self._source
        codes, classes = self.codebook.encode(table, self.n_jobs), self.codebook.encode_classes(labels)
        if classes.shape != (len(codes),):
            raise TableError("table and labels do not have the same number of rows.")
        return codes, classes

    def _open(self) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        if self._encoded is None:
            self._encoded = self._load()
            self._source = None
        return self._encoded

    def count_rows(self) -> int:
        return len(self._open()[0])

    def leaf_counts(self, trees: list[Tree]) -> list[NDArray[np.int64]]:
        codes, classes = self._open()
        threads = max(1, min(self.n_jobs, len(trees)))
        done = [0.0] * threads

        def count(thread: int) -> list[NDArray[np.int64]]:
            def tell(share: float) -> None:
                done[thread] = share
                if self._progress:
                    self._progress(sum(done) / threads)

            told = tell if self._progress else None
            return kernels.leaf_counts(trees[thread::threads], codes, classes, self.codebook.n_classes, told)

        # Each thread has trees of its own, so that no count array is held twice.
        counted = in_threads(count, range(threads), threads)
        return [counted[i % threads][i // threads] for i in range(len(trees))]

    def class_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        codes, classes = self._open()
        k = self.codebook.n_classes
        return self._added_up(lambda rows: kernels.class_counts(tree, nodes, codes[rows], classes[rows], k))

    def split_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        if tree.n_nodes == 1:  # every tree begins at the same root
            if self._root is None:
                self._root = self._split_counts(tree, nodes)
            return self._root
        return self._split_counts(tree, nodes)

    def _split_counts(self, tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        codes, classes = self._open()
        k = self.codebook.n_classes
        return self._added_up(lambda rows: kernels.split_counts(tree, nodes, codes[rows], classes[rows], k))

    def gradient_sums(self, asked: list[Tree], model: AdditiveModel) -> list[NDArray[np.int64]]:
        codes, classes = self._open()
        known = self._margins_of(model, codes)

        def count(rows: slice) -> list[NDArray[np.int64]]:
            return kernels.gradient_sums(asked, model, codes[rows], classes[rows], None if known is None else known[rows])

        counted = self._by_rows(count)
        for more in counted[1:]:
            for total, sums in zip(counted[0], more, strict=True):
                total += sums
        return list(counted[0])

    def brier_sums(self, model: AdditiveModel, scales: NDArray[np.float64]) -> NDArray[np.int64]:
        codes, classes = self._open()
        known = self._margins_of(model, codes)

        def count(rows: slice) -> NDArray[np.int64]:
            return kernels.brier_sums(model, scales, codes[rows], classes[rows], None if known is None else known[rows])

        return np.asarray(sum(self._by_rows(count)))

    def _margins_of(self, model: AdditiveModel, codes: NDArray[Any]) -> NDArray[np.float64] | None:
        """Margins of all rows, kept for a model that goes on where this one ends: a booster asks again after each tree."""
        if len(codes) * model.n_classes > KEPT_MARGINS:
            return None
        before, self._margins = self._margins, None  # an interrupt while they change leaves none
        if before is not None and model.continues(before[0]):
            margins, known = before[1], len(before[0].trees)
            if len(model.trees) > known:
                model.add_margins(codes, margins, self.n_jobs, known)
        else:
            margins = model.margins(codes, self.n_jobs)
        self._margins = (model, margins)
        return margins

    def _added_up(self, count: Callable[[slice], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Counts over all rows, a part of them on each thread."""
        counted = self._by_rows(count)
        for more in counted[1:]:
            counted[0] += more
        return np.asarray(counted[0])

    def _by_rows(self, work: Callable[[slice], Any]) -> list[Any]:
        rows, threads = len(self._open()[0]), max(1, self.n_jobs)
        parts = [slice(rows * t // threads, rows * (t + 1) // threads) for t in range(threads)]
        return in_threads(work, parts, threads)

    def confusion(self, predict: Predictor) -> NDArray[np.int64]:
        codes, classes = self._open()
        k = self.codebook.n_classes
        table = np.zeros((k + 1, k), dtype=np.int64)  # the code of an undeclared class is k: the last row
        for block in row_blocks(len(codes)):
            predicted = predict(codes[block])
            if predicted.shape != classes[block].shape:  # a broadcast would count a row many times
                raise TableError("a prediction is one class for each row.")
            np.add.at(table, (classes[block], predicted), 1)
        return table

    def reliability(self, probabilities: Probabilities, bins: int) -> NDArray[np.int64]:
        codes, classes = self._open()
        k = self.codebook.n_classes
        edges = bin_edges(k, bins)

        def count(block: slice) -> NDArray[np.int64]:
            return reliability(probabilities(codes[block]), classes[block], k, edges)

        total = np.zeros((bins, 2), dtype=np.int64)
        for counts in in_threads(count, row_blocks(len(codes)), self.n_jobs):
            total += counts
        return total
