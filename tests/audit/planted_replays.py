"""Planted faults that change a sensitivity, a charge or a branch in one place of the trusted code: what replay is for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from hedgerow.accounting.meter import Reservation
from hedgerow.engines import persons
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.streamed import StreamedRows
from hedgerow.estimators.base import ForestClassifier
from hedgerow.evaluation import private as scoring
from hedgerow.growers import dpdf
from hedgerow.mechanisms import noise as mechanisms
from hedgerow.private_table import PrivateTable
from hedgerow.queries import query


@contextmanager
def occurrence_goes_on() -> Iterator[None]:
    """The number of an occurrence is not set back where a new person begins: what is kept of one depends on the person before."""
    source = inspect.getsource(persons._keep.py_func)
    faulty = source.replace("state[HELD] = state[PLACE] = state[OCCURRENCE] = 0", "state[HELD] = state[PLACE] = 0")
    assert faulty != source
    names = dict(vars(persons))
    exec(faulty[faulty.index("def _keep") :], names)
    with patch.object(persons, "_keep", names["_keep"]):
        yield


def half_sigma_squared() -> Any:
    draw = mechanisms.discrete_gaussian
    return patch.object(mechanisms, "discrete_gaussian", lambda scale, size, coins: draw(scale / 2, size, coins))


def noise_made_smaller() -> Any:
    """Noise of the right scale is drawn, and then divided."""
    init = PrivateTable.__init__

    def smaller(self: PrivateTable, *given: Any, **named: Any) -> None:
        init(self, *given, **named)
        draw = self._sampler
        self._sampler = lambda scale, size, coins: draw(scale, size, coins) // 2

    return patch.object(PrivateTable, "__init__", smaller)


def rows_counted_twice() -> Any:
    count = MemoryRows._leaf_counts
    return patch.object(MemoryRows, "_leaf_counts", lambda self, *given: [2 * counts for counts in count(self, *given)])


def batches_counted_twice() -> Any:
    """The same where rows come in batches, from files and databases."""
    ask = StreamedRows._pass
    return patch.object(StreamedRows, "_pass", lambda self, question: [2 * counts for counts in ask(self, question)])


def blocks_overlap() -> Any:
    """The last row is counted once more: where it stands in the table matters."""
    load = MemoryRows._load

    def overlapping(self: MemoryRows) -> Any:
        codes, classes = load(self)
        return np.concatenate([codes, codes[-1:]]), np.concatenate([classes, classes[-1:]])

    return patch.object(MemoryRows, "_load", overlapping)


def twice_the_rate() -> Any:
    """A private choice at twice the rate that was charged."""
    choose = mechanisms.permute_and_flip
    return patch.object(mechanisms, "permute_and_flip", lambda scores, allowed, rate, coins: choose(scores, allowed, 2 * rate, coins))


def one_choice_for_another() -> Any:
    """The exponential mechanism is charged, and permute-and-flip is drawn: in concentrated privacy it costs four times as much."""
    return patch.object(mechanisms, "exponential_mechanism", mechanisms.permute_and_flip)


def look_before_the_charge() -> Any:
    return patch.object(PrivateTable, "_charge", lambda self, event: event)


def rows_of_a_person_forgotten() -> Any:
    """The sensitivity of one row, where a person has three."""
    event = query.counting_event
    return patch.object(query, "counting_event", lambda *given: event(*given[:-1]))


def charge_forgotten() -> Any:
    """The meter forgets what it has charged, and lets everything through that fits by itself."""
    charge = Reservation._charge_epsilon

    def forgets(self: Reservation, event: Any) -> None:
        charge(self, event)
        self._charged -= event.epsilon

    return patch.object(Reservation, "_charge_epsilon", forgets)


def whole_price_for_each_level() -> Any:
    return patch.object(dpdf, "query_epsilon", lambda settings, beta: beta)


@contextmanager
def kept_attribute() -> Iterator[None]:
    """The fitted estimator remembers how many rows it saw."""
    engine_for = ForestClassifier._engine_for

    def keeps(self: Any, X: Any, y: Any, *given: Any) -> Any:
        self.n_samples_ = len(y)
        return engine_for(self, X, y, *given)

    with patch.object(ForestClassifier, "_engine_for", keeps):
        yield


def score_with_rows() -> Any:
    """A score that says how many rows it counts."""
    rows_of = scoring.scored_rows

    def told(release: Any, X: Any, y: Any, *given: Any) -> Any:
        print(f"scoring {len(y)} rows")
        return rows_of(release, X, y, *given)

    return patch.object(scoring, "scored_rows", told)


Fault = Callable[[], Any]
