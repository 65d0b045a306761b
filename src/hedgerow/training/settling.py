"""The end of a paid look: what was not used is given back, and what seems wrong is told. By then the release is kept."""

from __future__ import annotations

import warnings

from hedgerow.accounting.meter import Reservation
from hedgerow.accounting.noise import noise_of, variance_of
from hedgerow.errors import BudgetError, HedgerowWarning, SchemaMismatchWarning
from hedgerow.inference.coverage import not_counted, not_read
from hedgerow.trees.forest import CountedForest


def settled(counted: CountedForest, reservation: Reservation, rows: int | None) -> None:
    """Whoever calls it has kept the release already: a warning may have been made an error, and loses nothing that was paid for.

    counted: what was counted just now
    rows:    how many there should be, declared or noisy; without a number the best-filled tree stands in
    """
    problems: list[tuple[str, type[Warning]]] = []
    try:
        reservation.settle()
    except (BudgetError, OSError) as error:
        problems.append((f"what was not used could not be given back to the budget: {error}", HedgerowWarning))
    sd = max((variance_of(noise_of(event)) ** 0.5 for event in reservation.events if event.query == "rows"), default=0.0)
    for lost in (not_counted(counted, rows, sd), not_read(counted)):
        if lost is not None:
            problems.append((lost, SchemaMismatchWarning))
    for text, category in problems:
        warnings.warn(text, category, stacklevel=5)
