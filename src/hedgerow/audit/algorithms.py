"""Our own estimators as training functions: the path that a user takes, from the table to the release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hedgerow.audit.neighbours import Table
from hedgerow.release.release import Release
from hedgerow.training.algorithms import PRIVATE

_FIRST = ("hedgerow", "dpdf", "rdt", "snr")  # reports and stored evidence have them in this order
ORDER = (*_FIRST, *(name for name in PRIVATE if name not in _FIRST))


@dataclass(frozen=True)
class Trainer:
    """`estimator(schema, epsilon, **settings).fit(columns, target).release_`; the structure is seeded, the noise never is."""

    estimator: str
    epsilon: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, table: Table) -> Release:
        import hedgerow

        make = getattr(hedgerow, self.estimator)
        model = make(table.schema, self.epsilon, random_state=0, n_jobs=1, **self.settings)
        release: Release = model.fit(table.columns, table.target).release_
        return release


ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {  # as in `hedgerow fit --algorithm`; settings that keep a run small
    name: (PRIVATE[name].estimator, dict(PRIVATE[name].audited)) for name in ORDER
}
