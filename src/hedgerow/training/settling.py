"""The end of a paid look: what was not used is given back, and what seems wrong is told. By then the release is kept."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

from hedgerow.accounting.meaning import large_delta
from hedgerow.accounting.meter import Reservation
from hedgerow.accounting.noise import variance_of
from hedgerow.errors import BudgetError, HedgerowWarning, LargeDeltaWarning, SchemaMismatchWarning
from hedgerow.inference.coverage import WORTH_SAYING, all_rows, at_upper_bound, hardly_any, not_counted, not_read, without_rows
from hedgerow.release.release import Release


def settled(counted: Release, reservation: Reservation, whole: bool = False) -> None:
    """Whoever calls it has kept the release already: a warning may have been made an error, and loses nothing that was paid for.

    counted: what was counted just now
    whole:   it is a whole table: a batch, or one of several owners' tables, may well lack a class
    """
    problems: list[tuple[str, type[Warning]]] = []
    try:
        reservation.settle()
    except (BudgetError, OSError) as error:
        problems.append((f"what was not used could not be given back to the budget: {error}", HedgerowWarning))
    problems += [(text, SchemaMismatchWarning) for text in (*mismatches_of(counted, whole), *oddities_of(counted, whole))]
    problems += [(text, LargeDeltaWarning) for text in _large_delta(counted)]
    for text, category in problems:
        warnings.warn(text, category, stacklevel=5)


def mismatches_of(release: Release, whole: bool) -> list[str]:
    """What the released counts of one table tell of a schema that does not fit it."""
    rows, sd = _number_of_rows(release, whole)
    counted = release.forest
    lacking = not_counted(counted, rows, sd) or hardly_any(counted)
    found = lacking, without_rows(counted) if whole and not _nearly_all_counted(release) else None
    return [text for text in found if text is not None]


def oddities_of(release: Release, whole: bool) -> list[str]:
    """What may be as it should, and is worth a look: a class that is rare, a column that is nearly always missing, or at its bound."""
    counted = release.forest
    found = without_rows(counted) if whole and _nearly_all_counted(release) else None, not_read(counted), at_upper_bound(counted)
    return [text for text in found if text is not None]


def _number_of_rows(release: Release, whole: bool) -> tuple[int | None, float]:
    """Noisy, with its standard deviation, or declared: that is of the whole table; else the best-filled tree stands in."""
    sd = max((variance_of(event.noise) ** 0.5 for event in release.certificate.events if event.query == "rows"), default=0.0)
    return release.released.get("rows", release.schema.rows if whole else None), sd


def _nearly_all_counted(release: Release) -> bool:
    """Whether so few rows may be in no tree that none of the classes can be spelled otherwise in many of them."""
    rows, sd = _number_of_rows(release, whole=True)
    held, error = all_rows(release.forest)
    return rows is not None and rows - held + 2 * math.hypot(sd, error) < WORTH_SAYING * rows


def _large_delta(release: Release) -> list[str]:
    """Of a δ above one over the noisy number of rows; of what is large for any table it was said before the fit."""
    delta, rows = Fraction(release.certificate.delta or 0), release.released.get("rows", 0)
    if rows < 1 or large_delta(delta) is not None:
        return []
    text = large_delta(delta, rows, about=True)
    return [] if text is None else [text]
