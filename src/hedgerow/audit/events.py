"""Events: the statements about an output among which we look for the one that tells two tables apart best.

An event is found on one half of the runs and measured on the other, so that the search cannot flatter its result.

    a name (shape, root, majority)      one of some values
    a number (count, n̂, size)           at least, or at most, a threshold
    all features together               a classifier's score above a threshold: the general attack
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.audit.bounds import epsilon_at_least
from hedgerow.audit.outputs import Columns

THRESHOLDS = 200  # at most, for one number
VALUES = 200  # of a name: the most frequent ones
LEAST_RUNS = 200  # of a half, for a classifier to be worth training
SEARCHED, LOOSELY = 1 - 1e-6, 0.95  # bounds are compared at a high confidence, as the best of many is looked for; ties by a low one
MANY = 10  # values of a name: with more, their order is found on other runs than their shares
CLASSIFIED = 60  # features at most: those that tell most by themselves

Flags = NDArray[np.bool_]


class Event(Protocol):
    @property
    def words(self) -> str: ...

    def happened(self, columns: Columns) -> Flags: ...


@dataclass(frozen=True)
class Threshold:
    """A number is at least, or at most, some value."""

    name: str
    at_least: bool
    value: float

    @property
    def words(self) -> str:
        return f"{self.name} {'≥' if self.at_least else '≤'} {self.value:g}"

    def happened(self, columns: Columns) -> Flags:
        values = _numbers(columns, self.name)
        with np.errstate(invalid="ignore"):
            return np.asarray(values >= self.value if self.at_least else values <= self.value)


@dataclass(frozen=True)
class OneOf:
    """A name is one of some values; "" stands for an output that has no such name."""

    name: str
    values: frozenset[str]

    @property
    def words(self) -> str:
        shown = sorted(self.values)
        more = f" or {len(shown) - 3} others" if len(shown) > 3 else ""
        return f"{self.name} is {' or '.join(repr(value) if value else 'absent' for value in shown[:3])}{more}"

    def happened(self, columns: Columns) -> Flags:
        values = columns.get(self.name)
        found = [""] * _runs(columns) if values is None else values.tolist()
        return np.array([value in self.values for value in found], dtype=bool)


@dataclass(frozen=True, eq=False)
class Score:
    """A trained classifier takes the output for one of the first table, rather than of the second, with at least this score."""

    classifier: Any
    names: tuple[str, ...]
    codes: dict[str, dict[str, int]]
    value: float
    positive: bool  # at least, rather than at most

    @property
    def words(self) -> str:
        return f"a classifier over {len(self.names)} released features scores {'at least' if self.positive else 'at most'} {self.value:.3f}"

    def scores(self, columns: Columns) -> NDArray[np.float64]:
        return np.asarray(self.classifier.predict_proba(_matrix(columns, self.names, self.codes))[:, 1])

    def happened(self, columns: Columns) -> Flags:
        scores = self.scores(columns)
        return np.asarray(scores >= self.value if self.positive else scores <= self.value)


@dataclass(frozen=True, eq=False)
class Found:
    """The best event of a search; `swapped` says that it is more likely on the second table."""

    event: Event
    swapped: bool
    bound: float


def best_event(first: Columns, second: Columns, delta: float = 0.0, classifier: bool = True) -> Found | None:
    """The event with the largest lower bound on ε on these runs; None if nothing was released at all."""
    best: Found | None = None
    for event, hits, other, n, m in _candidates(first, second):
        best = _better(best, event, hits, other, n, m, delta)
    if classifier and min(_runs(first), _runs(second)) >= LEAST_RUNS:
        best = _by_classifier(first, second, delta, best)
    return best


def _better(best: Found | None, event: list[Event], hits: Any, other: Any, n: int, m: int, delta: float) -> Found | None:
    hits, other = np.asarray(hits), np.asarray(other)
    for swapped in (False, True):
        counted = (other, m, hits, n) if swapped else (hits, n, other, m)
        bounds = epsilon_at_least(*counted, SEARCHED, delta) + epsilon_at_least(*counted, LOOSELY, delta) / 1000
        if bounds.size and (best is None or bounds.max() > best.bound):
            best = Found(event[int(bounds.argmax())], swapped, float(bounds.max()))
    return best


Candidates = tuple[list[Event], Any, Any, int, int]


def _candidates(first: Columns, second: Columns) -> Iterator[Candidates]:
    """For each feature its events, how often they happened on the two tables, in how many runs. An error first: of equals it wins."""
    for name in sorted(dict.fromkeys([*first, *second]), key=lambda name: name != "error"):
        is_text = any(columns[name].dtype == object for columns in (first, second) if name in columns)
        yield _of_name(name, first, second) if is_text else _of_number(name, first, second)


def _of_number(name: str, first: Columns, second: Columns) -> Candidates:
    one, two = (np.sort(values[~np.isnan(values)]) for values in (_numbers(first, name), _numbers(second, name)))
    pooled = np.unique(np.concatenate([one, two]))
    if len(pooled) > THRESHOLDS:
        pooled = np.unique(np.quantile(np.concatenate([one, two]), np.linspace(0, 1, THRESHOLDS), method="nearest"))
    above = [len(values) - np.searchsorted(values, pooled, side="left") for values in (one, two)]
    below = [np.searchsorted(values, pooled, side="right") for values in (one, two)]
    events: list[Event] = [Threshold(name, at_least, value) for at_least in (True, False) for value in pooled.tolist()]
    return events, np.concatenate([above[0], below[0]]), np.concatenate([above[1], below[1]]), _runs(first), _runs(second)


def _of_name(name: str, first: Columns, second: Columns) -> Candidates:
    """Values in the order of their likelihood ratio: the best event is a beginning, or an end, of that order."""
    values = [columns[name].tolist() if name in columns else [""] * _runs(columns) for columns in (first, second)]
    ranked = measured = _value_counts(values)
    runs = [len(each) for each in values]
    if len(ranked) > MANY:
        ranked, measured = (_value_counts([each[half::2] for each in values]) for half in (0, 1))
        runs = [len(each[1::2]) for each in values]
    kept = sorted(ranked, key=lambda value: (-sum(ranked[value]), value))[:VALUES]
    order = sorted(kept, key=lambda value: (-(ranked[value][0] + 0.5) / (ranked[value][1] + 0.5), value))
    totals = np.cumsum([measured.get(value, [0, 0]) for value in order], axis=0)
    events: list[Event] = [OneOf(name, frozenset(order[: i + 1])) for i in range(len(order))]
    events += [OneOf(name, frozenset(order[i:])) for i in range(1, len(order))]
    ends = totals[-1] - totals[:-1]
    return events, np.concatenate([totals[:, 0], ends[:, 0]]), np.concatenate([totals[:, 1], ends[:, 1]]), runs[0], runs[1]


def _value_counts(values: list[list[Any]]) -> dict[str, list[int]]:
    """How often each value is there, on the two tables."""
    counts: dict[str, list[int]] = {}
    for place, several in enumerate(values):
        for value in several:
            counts.setdefault(str(value), [0, 0])[place] += 1
    return counts


def _by_classifier(first: Columns, second: Columns, delta: float, best: Found | None) -> Found | None:
    """Train on one half of these runs, look for the threshold on the other."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    names, codes = _telling(*({name: values[: len(values) // 2] for name, values in columns.items()} for columns in (first, second)))
    if not names:
        return best  # of one number alone, thresholds see neither a value in the middle nor that it is absent: a classifier sees both
    halves = [(_matrix(columns, names, codes), _runs(columns) // 2) for columns in (first, second)]
    learn = np.concatenate([matrix[:half] for matrix, half in halves])
    labels = np.repeat([1, 0], [half for _, half in halves])
    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=0).fit(learn, labels)
    one, two = (np.sort(model.predict_proba(matrix[half:])[:, 1]) for matrix, half in halves)
    for positive in (True, False):
        values = np.unique(np.quantile(np.concatenate([one, two]), np.linspace(0, 1, THRESHOLDS), method="nearest"))
        side = "left" if positive else "right"
        hits, other = (np.searchsorted(scores, values, side=side) for scores in (one, two))  # type: ignore[call-overload]
        if positive:
            hits, other = len(one) - hits, len(two) - other
        events: list[Event] = [Score(model, names, codes, value, positive) for value in values.tolist()]
        best = _better(best, events, hits, other, len(one), len(two), delta)
    return best


def _telling(first: Columns, second: Columns) -> tuple[tuple[str, ...], dict[str, dict[str, int]]]:
    """Features that are not the same in all runs, those that differ most between the tables first, and codes for their values."""
    codes: dict[str, dict[str, int]] = {}
    gaps: dict[str, float] = {}
    for name in dict.fromkeys([*first, *second]):
        if any(columns[name].dtype == object for columns in (first, second) if name in columns):
            values = sorted({str(value) for columns in (first, second) if name in columns for value in columns[name].tolist()})
            codes[name] = {value: code for code, value in enumerate(values[:VALUES])}
        one, two = (_matrix(columns, (name,), codes)[:, 0] for columns in (first, second))
        both = np.concatenate([one, two])
        spread = np.std(both[~np.isnan(both)]) if not np.isnan(both).all() else 0.0
        if spread > 0:
            one_sided = np.isnan(one).all() or np.isnan(two).all()
            gaps[name] = np.inf if one_sided else float(abs(np.nanmean(one) - np.nanmean(two)) / spread)
    names = sorted(gaps, key=lambda name: (-gaps[name], name))[:CLASSIFIED]
    return tuple(names), codes


def _matrix(columns: Columns, names: tuple[str, ...], codes: dict[str, dict[str, int]]) -> NDArray[np.float64]:
    found = np.full((_runs(columns), len(names)), np.nan)
    for j, name in enumerate(names):
        if name in codes and name in columns:
            found[:, j] = [codes[name].get(str(value), -1) for value in columns[name].tolist()]
        elif name in columns:
            found[:, j] = columns[name]
    return found


def _numbers(columns: Columns, name: str) -> NDArray[np.float64]:
    return columns[name] if name in columns else np.full(_runs(columns), np.nan)


def _runs(columns: Columns) -> int:
    return len(next(iter(columns.values()))) if columns else 0
