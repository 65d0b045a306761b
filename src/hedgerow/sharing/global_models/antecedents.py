"""One condition of a rule, and the best next one: the condition after which the class is known best.

A rule puts the rows into two parts, those it covers and all others, and answers each part with its class shares. What is
still unknown about the classes is rows × entropy, in bits, of both parts together; a condition is worth what it takes off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Antecedent(NamedTuple):
    """`test` is "==", "<=" or ">". No number that is missing passes any of them."""

    attribute: int
    test: str
    value: float

    def holds(self, X: NDArray[np.float64]) -> NDArray[np.bool_]:
        column: NDArray[np.float64] = X[:, self.attribute]
        compare = {"==": np.equal, "<=": np.less_equal, ">": np.greater}[self.test]
        return np.asarray(compare(column, self.value))

    def words(self, name: str, values: Sequence[str] = ()) -> str:
        """For people; `values` are the meanings of the codes."""
        if self.test != "==":
            return f"{name} {self.test} {self.value:g}"
        code = int(self.value)
        return f"{name} = {values[code] if 0 <= code < len(values) else format(self.value, 'g')}"


class Candidates(NamedTuple):
    """Conditions on one attribute, and the class counts of the rows that each covers."""

    attribute: int
    test: str
    values: NDArray[np.float64]
    covered: NDArray[np.float64]  # (values, classes)


def bits(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows × entropy of class counts in the last axis; rounded, so that equals stay equal."""
    total = counts.sum(axis=-1)
    unknown = total * np.log2(np.maximum(total, 1)) - (counts * np.log2(np.maximum(counts, 1))).sum(axis=-1)
    return np.asarray(np.round(unknown, 6))


def candidates(X: NDArray[np.float64], classes: NDArray[np.int64], n_classes: int, categorical: NDArray[np.bool_]) -> Iterator[Candidates]:
    """All conditions on the rows that are still covered: each value, or each cut half-way between neighbouring numbers."""
    for j in range(X.shape[1]):
        values, place = np.unique(X[:, j], return_inverse=True)
        counts = np.bincount(place * n_classes + classes, minlength=len(values) * n_classes)
        table = counts.reshape(len(values), n_classes).astype(np.float64)
        if categorical[j]:
            yield Candidates(j, "==", values, table)
        elif len(values) > 1:
            below, above = values[:-1], values[1:]
            cuts = below + (above - below) / 2
            cuts = np.where(cuts < above, cuts, below)  # neighbouring floats have nothing between them
            up_to = table.cumsum(axis=0)
            yield Candidates(j, "<=", cuts, up_to[:-1])
            yield Candidates(j, ">", cuts, up_to[-1] - up_to[:-1])


def best_antecedent(
    X: NDArray[np.float64],
    classes: NDArray[np.int64],
    covered: NDArray[np.bool_],
    n_classes: int,
    categorical: NDArray[np.bool_],
    least: int,
) -> Antecedent | None:
    """The condition to add to a rule that covers these rows so far, or None if no condition is worth anything.

    It must keep at least `least` rows and take away as many. Of equally good conditions the one that covers the purer rows
    is taken, then the one on the earlier attribute with the smaller value.
    """
    everything = np.bincount(classes, minlength=n_classes).astype(np.float64)
    before = np.bincount(classes[covered], minlength=n_classes).astype(np.float64)
    unknown = float(bits(before) + bits(everything - before))
    best: tuple[tuple[float, float], Antecedent] | None = None
    for attribute, test, values, counts in candidates(X[covered], classes[covered], n_classes, categorical):
        kept = counts.sum(axis=1)
        inside, outside = bits(counts), bits(everything - counts)
        after = np.where((kept >= least) & (before.sum() - kept >= least), inside + outside, np.inf)
        place = np.lexsort((np.arange(len(values)), inside / np.maximum(kept, 1), np.round(after, 6)))[0]
        rank = (float(np.round(after[place], 6)), float(inside[place] / max(kept[place], 1)))
        if rank[0] < unknown - 1e-5 and (best is None or rank < best[0]):
            best = (rank, Antecedent(attribute, test, float(values[place])))
    return None if best is None else best[1]
