"""Membership inference: how well can an attacker tell from a release whether one row was in the table?

The attacker knows every other row, the schema and the settings, and trains shadow models with and without the row. A guess is right
more often than not only as far as ε allows: the advantage (true positive rate − false positive rate) of any attack on an (ε, δ)
release is at most (e^ε − 1 + 2δ) / (e^ε + 1).

    probability     the release gives the row's class a log-probability of at least (or at most) a threshold
    best event      the event about all that is released that tells most (events.py)

Both are chosen on one half of the shadow models and measured on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.audit.attack import Runner, Share, Train, halves
from hedgerow.audit.bounds import FALSE_ALARM, advantage_allowed, at_least, at_most
from hedgerow.audit.events import Event, Threshold, best_event
from hedgerow.audit.neighbours import Table
from hedgerow.audit.outputs import Columns, Features, aligned, release_features
from hedgerow.errors import PlanError
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema

LEAST_RUNS = 40
RISK = 0.05  # of an interval
SMALLEST = 1e-12  # a probability of 0 has no logarithm


@dataclass(frozen=True)
class Attack:
    """One attack on one row. hits, runs: how often it said "member" on releases with the row, and without it.

    interval:  of the advantage, right with 95 %
    corrected: the same, right with 95 % for all attacks of the report together
    """

    row: int
    kind: str
    event: str
    hits: tuple[int, int]
    runs: tuple[int, int]
    interval: tuple[float, float]
    corrected: tuple[float, float]
    violated: bool

    @property
    def true_positive_rate(self) -> float:
        return self.hits[0] / self.runs[0]

    @property
    def false_positive_rate(self) -> float:
        return self.hits[1] / self.runs[1]

    @property
    def advantage(self) -> float:
        return self.true_positive_rate - self.false_positive_rate


@dataclass(frozen=True)
class Membership:
    """All attacks, and what ε allows."""

    what: str
    epsilon: float
    delta: float
    runs: int
    allowed: float
    attacks: tuple[Attack, ...]

    @property
    def strongest(self) -> Attack:
        return max(self.attacks, key=lambda attack: attack.advantage)

    @property
    def violated(self) -> bool:
        return any(attack.violated for attack in self.attacks)


@dataclass(frozen=True, eq=False)
class Seen:
    """What the attacker sees of a release: all that is in it, and the log-probability that it gives the class of each target row."""

    rows: dict[str, NDArray[np.object_]]
    classes: tuple[int, ...]
    targets: tuple[int, ...]

    def __call__(self, release: Release) -> Features:
        chances = np.asarray(release.predict_proba(self.rows))[np.arange(len(self.classes)), list(self.classes)]
        scores = np.log(np.maximum(chances, SMALLEST)).tolist()
        return {**release_features(release), **{probability_of(row): score for row, score in zip(self.targets, scores, strict=True)}}


def probability_of(row: int) -> str:
    return f"log-probability of the class of row {row + 1}"


def rarest_rows(table: Table, targets: int) -> list[int]:
    """Outliers first: combinations that fewest rows have, then those of the rarest values; no combination twice.

    A row whose class is not declared is never a target: a release says nothing about its class.
    """
    codebook = Codebook(table.schema)
    labels = codebook.encode_classes(table.target).astype(np.int64)
    codes = np.column_stack([codebook.encode(table.columns).astype(np.int64), labels])
    _, first, group, sizes = np.unique(codes, axis=0, return_index=True, return_inverse=True, return_counts=True)
    surprise = np.zeros(len(codes))
    for column in codes[:, :-1].T:
        _, which, counts = np.unique(np.stack([column, labels]), axis=1, return_inverse=True, return_counts=True)
        surprise -= np.log(counts[which.ravel()] / len(codes))
    good = [int(row) for row in first if labels[row] < codebook.n_classes]
    return sorted(good, key=lambda row: (sizes[group.ravel()[row]], -surprise[row], row))[:targets]


def check_rows_are_protected(schema: Schema) -> None:
    if schema.person is not None:
        raise PlanError(
            "membership: the schema names persons, and this attacks one row at a time, which is not what such a release protects. Leave "
            "`person` and `rows_per_person` out of the schema and give one row of each person, or use the audit of pairs."
        )


def membership(
    train: Train,
    table: Table,
    *,
    epsilon: float,
    delta: float = 0.0,
    targets: int | Sequence[int] = 5,
    runs: int = 400,
    what: str = "a training function",
    classifier: bool = True,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Membership:
    """Attack the releases of a training function.

    train:   a table in, a Release out
    table:   rows that may be looked at: the report is an exact look at the target rows
    targets: how many rows, the rarest first, or the places of some rows (the first is 0)
    runs:    shadow models with each row, and as many without it
    """
    if runs < LEAST_RUNS or len(table) < 2:
        raise PlanError(f"membership: got {runs} runs and {min(len(table), 2)} rows; expected at least {LEAST_RUNS} runs and 2 rows.")
    check_rows_are_protected(table.schema)
    rows = rarest_rows(table, targets) if isinstance(targets, int) else list(targets)
    if not rows or min(rows) < 0 or max(rows) >= len(table):
        raise PlanError("membership: expected at least one target row that is in the table and has a declared class.")
    labels = Codebook(table.schema).encode_classes(table.target)[rows].tolist()
    if max(labels) >= len(table.schema.target.classes):
        raise PlanError("membership: a target row has no declared class; expected rows with a class of the schema. Choose others.")
    seen = Seen({name: column[rows] for name, column in table.columns.items()}, tuple(labels), tuple(rows))
    share = Share(progress, len(rows))
    share.tables = 1 + len(rows)
    tests, attacks = 2 * len(rows), list[Attack]()
    with Runner(train, seen, workers) as runner:
        with_rows = trained(runner.outputs(table, runs, share), rows[0])  # every target is in it: it serves them all
        for row in rows:
            without = trained(runner.outputs(without_row(table, row), runs, share), row)
            attacks += attacks_on(row, rows, with_rows, without, advantage_allowed(epsilon, delta), tests, classifier)
    return Membership(what, epsilon, delta, runs, advantage_allowed(epsilon, delta), tuple(attacks))


def without_row(table: Table, row: int) -> Table:
    return Table({name: np.delete(column, row) for name, column in table.columns.items()}, np.delete(table.target, row), table.schema)


def trained(columns: Columns, row: int) -> Columns:
    """Where no training ended well there is nothing to attack, and a report would look harmless."""
    if probability_of(row) not in columns:
        error = next(iter(columns.get("error", ["nothing was returned"])))
        raise PlanError(f"membership: no training ended with a release that predicts. The first error was: {error}")
    return columns


def attacks_on(
    row: int, rows: Sequence[int], with_row: Columns, without: Columns, allowed: float, tests: int, classifier: bool = True
) -> list[Attack]:
    """Search in one half of the shadow models, measure in the other."""
    hidden = {probability_of(other) for other in rows if other != row}
    kept = [{name: values for name, values in columns.items() if name not in hidden} for columns in aligned(with_row, without)]
    (search_in, test_in), (search_out, test_out) = (halves(columns) for columns in kept)
    found = [("probability", *best_threshold(probability_of(row), search_in, search_out))]
    if best := best_event(search_in, search_out, 0.0, classifier):
        found.append(("best event", best.event, best.swapped))
    return [_measured(row, kind, event, swapped, test_in, test_out, allowed, tests) for kind, event, swapped in found]


def best_threshold(name: str, members: Columns, others: Columns) -> tuple[Event, bool]:
    """The threshold with the largest advantage on these runs; (event, whether it speaks against membership)."""
    one, two = (np.sort(columns[name][~np.isnan(columns[name])]) for columns in (members, others))
    values = np.unique(np.concatenate([one, two]))
    if not len(values):
        return Threshold(name, True, 0.0), False  # no release of this half predicts
    above = [1 - np.searchsorted(scores, values, side="left") / max(1, len(scores)) for scores in (one, two)]
    gain = above[0] - above[1]
    place = int(abs(gain).argmax())
    return Threshold(name, True, float(values[place])), bool(gain[place] < 0)


def _measured(row: int, kind: str, event: Event, swapped: bool, members: Columns, others: Columns, allowed: float, tests: int) -> Attack:
    flags = [event.happened(columns) != swapped for columns in (members, others)]
    hits, runs = (int(flags[0].sum()), int(flags[1].sum())), (len(flags[0]), len(flags[1]))
    words = f"not ({event.words})" if swapped else event.words
    level = FALSE_ALARM / (2 * tests)
    surely = float(at_least(hits[0], runs[0], level) - at_most(hits[1], runs[1], level))
    return Attack(row, kind, words, hits, runs, interval_of(hits, runs, RISK), interval_of(hits, runs, RISK / tests), surely > allowed)


def interval_of(hits: tuple[int, int], runs: tuple[int, int], risk: float) -> tuple[float, float]:
    """Of the difference of two rates: a Clopper–Pearson interval for each; the four bounds share the risk."""
    low = at_least(hits[0], runs[0], risk / 4) - at_most(hits[1], runs[1], risk / 4)
    high = at_most(hits[0], runs[0], risk / 4) - at_least(hits[1], runs[1], risk / 4)
    return float(low), float(high)
