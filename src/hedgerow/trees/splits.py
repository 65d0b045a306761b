"""The splits that a node may be given: public, all listed before any row is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.schema.codebook import Codebook


@dataclass(frozen=True)
class Split:
    """A question: `groups[code]` numbers the child that the code leads to."""

    attribute: int
    groups: tuple[int, ...]

    @property
    def n_children(self) -> int:
        return max(self.groups) + 1


@dataclass(frozen=True)
class Candidates:
    """A list of splits; a node is offered some of them (`allowed`, one column for each)."""

    codebook: Codebook
    splits: tuple[Split, ...]

    def __post_init__(self) -> None:
        sizes = self.codebook.sizes
        for split in self.splits:
            children = set(split.groups)
            if not 0 <= split.attribute < len(sizes) or len(split.groups) != sizes[split.attribute]:
                raise PlanError("candidates: a split is of no attribute of this schema, or does not say where each value goes.")
            if children != set(range(len(children))):
                raise PlanError("candidates: the children of a split must be numbered from 0 without gaps.")

    def __len__(self) -> int:
        return len(self.splits)

    @cached_property
    def attribute(self) -> NDArray[np.int64]:
        """The attribute of each candidate."""
        return np.array([split.attribute for split in self.splits])


def by_value(codebook: Codebook) -> Candidates:
    """One candidate for each attribute: a branch for each of its values or cells."""
    return Candidates(codebook, tuple(Split(a, tuple(range(size))) for a, size in enumerate(codebook.sizes)))


def by_threshold(codebook: Codebook) -> Candidates:
    """As `by_value` for categorical attributes; for a numeric one, a candidate for each edge between two of its cells.

    Missing values, where the attribute has a branch for them, are a third child.
    """
    splits: list[Split] = []
    for a, size in enumerate(codebook.sizes):
        cells = codebook.numeric_cells(a)
        if cells < 2:
            splits.append(Split(a, tuple(range(size))))
        for edge in range(1, cells):
            splits.append(Split(a, tuple(int(code >= edge) if code < cells else 2 for code in range(size))))
    return Candidates(codebook, tuple(splits))


def offsets(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Where each attribute's cells begin when the cells of all attributes stand in one row; then their number."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
