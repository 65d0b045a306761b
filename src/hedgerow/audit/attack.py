"""The attack: train many times on both tables of a pair, find the event that tells them apart best, and measure it on other runs."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import numpy as np

from hedgerow.audit.bounds import FALSE_ALARM, SHOWN, delta_at_least, epsilon_at_least, epsilon_at_level
from hedgerow.audit.events import Found, Score, Threshold, best_event
from hedgerow.audit.neighbours import Pair, Table
from hedgerow.audit.outputs import Columns, Describe, Features, aligned, columns_of, features_of, together
from hedgerow.errors import AuditError, PlanError

Train = Callable[[Table], Any]
BATCH = 250  # runs between two reports of progress


@dataclass(frozen=True)
class Finding:
    """What was found about one pair of tables.

    event:      in words; more likely on the table named by `likelier`: "without" the row, or "with" it
    hits, runs: how often it happened, in how many runs that did not help to find it: on the likelier table, on the other
    bounds:     lower bounds on ε, by confidence
    verdict:    the lower bound at the confidence of the verdict; above ε, the claim is violated
    delta:      the least δ that the event needs at the stated ε, at the same confidence
    picture:    the two distributions of what the event is about: labels, and shares of runs without and with the row
    """

    pair: str
    why: str
    event: str
    likelier: str
    hits: tuple[int, int]
    runs: tuple[int, int]
    bounds: dict[str, float]
    verdict: float
    delta: float
    violated: bool
    picture: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def shares(self) -> tuple[float, float]:
        """How often the event happened: in the runs where it is likelier, and in the others."""
        return self.hits[0] / max(1, self.runs[0]), self.hits[1] / max(1, self.runs[1])


@dataclass(frozen=True)
class Audit:
    """All findings about one training function, and the claim they are held against."""

    what: str
    epsilon: float
    delta: float
    runs: int
    tests: int
    findings: tuple[Finding, ...]

    def _repr_html_(self) -> str:
        """How a notebook shows it: the verdict, and the strongest attack."""
        from hedgerow.audit.picture import audit_svg

        return audit_svg(self)

    @property
    def violated(self) -> bool:
        """Whether some attack proves that the claim does not hold."""
        return any(finding.violated for finding in self.findings)

    @property
    def strongest(self) -> Finding:
        """The attack with the highest lower bound on ε."""
        return max(self.findings, key=lambda finding: finding.bounds[_key(SHOWN[-1])])


def _key(confidence: float) -> str:
    return f"{100 * confidence:g} %"


def audit(
    train: Train,
    pairs: Sequence[Pair],
    *,
    epsilon: float,
    delta: float = 0.0,
    runs: int = 20_000,
    what: str = "a training function",
    features: Describe = features_of,
    workers: int | None = None,
    classifier: bool = True,
    tests: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Audit:
    """Attack a training function that claims (ε, δ) on every pair of neighbouring tables.

    train:    a table in, its output out: what an attacker would see
    runs:     trainings on each table of each pair
    features: from an output to named numbers and names; releases, numbers, text and mappings of them need none
    workers:  processes; 1 if the function cannot be sent to another process
    tests:    how many verdicts share the false-alarm rate of one in a million; by default one for each pair of this audit
    """
    if not pairs or runs < 100:
        raise PlanError(f"audit: got {len(pairs)} pairs and {runs} runs; expected at least one pair, and 100 runs.")
    share, level = Share(progress, len(pairs)), FALSE_ALARM / (2 * (tests or len(pairs)))
    findings: list[Finding] = []
    with Runner(train, features, workers) as runner:
        for pair in pairs:
            without = runner.outputs(pair.without, runs, share)
            with_row = runner.outputs(pair.with_row, runs, share)
            if all(set(outputs) == {"error"} for outputs in (without, with_row)) and not findings:
                raise AuditError(f"audit: the function fails on both tables of {pair.name!r}, in every run: {without['error'][0]}")
            findings.append(finding_of(pair.name, pair.why, without, with_row, epsilon, delta, level, classifier))
    return Audit(what, epsilon, delta, runs, tests or len(pairs), tuple(findings))


def finding_of(
    name: str, why: str, without: Columns, with_row: Columns, epsilon: float, delta: float, level: float, classifier: bool = True
) -> Finding:
    """Search in the first half of the runs of both tables, measure in the second. level: chance of error of each of the two bounds."""
    (search_a, test_a), (search_b, test_b) = map(halves, aligned(without, with_row))
    found = best_event(search_a, search_b, delta, classifier)
    if found is None:
        return Finding(name, why, "nothing was released", "without", (0, 0), (0, 0), {_key(c): 0.0 for c in SHOWN}, 0.0, 0.0, False)
    first, second = (test_b, test_a) if found.swapped else (test_a, test_b)
    happened = [found.event.happened(columns) for columns in (first, second)]
    hits, runs = tuple(int(each.sum()) for each in happened), tuple(len(each) for each in happened)
    counted = (hits[0], runs[0], hits[1], runs[1])
    bounds = {_key(confidence): float(epsilon_at_least(*counted, confidence, delta)) for confidence in SHOWN}
    verdict = float(epsilon_at_level(*counted, level, delta))
    return Finding(
        name,
        why,
        found.event.words,
        "with" if found.swapped else "without",
        (hits[0], hits[1]),
        (runs[0], runs[1]),
        bounds,
        verdict,
        delta_at_least(*counted, epsilon, level),
        verdict > epsilon,
        distributions(found, test_a, test_b),
    )


def halves(columns: Columns) -> tuple[Columns, Columns]:
    """Every other run: whatever changes slowly is the same in both."""
    return {name: values[::2] for name, values in columns.items()}, {name: values[1::2] for name, values in columns.items()}


def distributions(found: Found, without: Columns, with_row: Columns, most: int = 24) -> dict[str, list[Any]]:
    """The distributions of what the event is about, for the picture."""
    event = found.event
    if isinstance(event, Score | Threshold):
        both = [event.scores(c) if isinstance(event, Score) else c.get(event.name, np.empty(0)) for c in (without, with_row)]
        values = [each[~np.isnan(each)] for each in both]
        pooled = np.concatenate(values)
        if not len(pooled):  # seen in the search alone
            return {"labels": [], "without": [], "with": []}
        edges = np.unique(np.quantile(pooled, [0.005, 0.995])) if len(pooled) else np.empty(0)
        cells = np.linspace(edges[0], edges[-1], most + 1) if len(edges) == 2 else np.array([pooled.min() - 0.5, pooled.max() + 0.5])
        counts = [np.histogram(np.clip(each, cells[0], cells[-1]), cells)[0] for each in values]
        labels = [f"{(low + high) / 2:.3g}" for low, high in pairwise(cells)]
    else:
        happened = [event.happened(columns) for columns in (without, with_row)]
        labels, counts = ["it happened", "it did not"], [np.array([each.sum(), (~each).sum()]) for each in happened]
    shares = [(each / max(1, each.sum())).round(6).tolist() for each in counts]
    return {"labels": labels, "without": shares[0], "with": shares[1]}


class Share:
    """Progress over all tables."""

    def __init__(self, tell: Callable[[float], None] | None, pairs: int) -> None:
        self.tell, self.tables, self.done = tell, 2 * pairs, 0.0

    def add(self, part: float) -> None:
        self.done += part / self.tables
        if self.tell:
            self.tell(min(1.0, self.done))


class Runner:
    """Trainings in several processes; in this one if the function cannot be sent to another."""

    def __init__(self, train: Train, features: Describe, workers: int | None) -> None:
        self.train, self.features = train, features
        self.workers = workers or os.cpu_count() or 1
        if self.workers > 1 and not _can_travel(train, features):
            self.workers = 1
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Runner:
        if self.workers > 1:
            self.pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"))
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool:
            self.pool.shutdown(cancel_futures=True)

    def outputs(self, table: Table, runs: int, share: Share) -> Columns:
        sizes = [min(BATCH, runs - start) for start in range(0, runs, BATCH)]
        parts = []
        if self.pool:
            for part in self.pool.map(batch, *zip(*[(self.train, self.features, table, size) for size in sizes], strict=True)):
                parts.append(part)
                share.add(1 / len(sizes))
        else:
            for size in sizes:
                parts.append(batch(self.train, self.features, table, size))
                share.add(1 / len(sizes))
        return together(parts)


def batch(train: Train, features: Describe, table: Table, runs: int) -> Columns:
    """An error is an output too: an attacker sees that training failed, and with which words."""
    found: list[Features] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(runs):
            try:
                output: Any = train(table)
            except Exception as error:
                found.append({"error": f"{type(error).__name__}: {error}"})
            else:
                found.append(features(output) or {"output": "nothing"})
    return columns_of(found)


def _can_travel(*functions: Any) -> bool:
    if any(getattr(function, "__module__", "") == "__main__" for function in functions):
        return False  # of a script or a prompt: another process would not find it
    try:
        pickle.dumps(functions)  # only to ask: nothing is stored or loaded
    except Exception:
        return False
    return True
