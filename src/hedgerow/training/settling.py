"""The end of a paid look: what was not used is given back, and what seems wrong is told. By then the release is kept."""

from __future__ import annotations

import warnings
from fractions import Fraction

from hedgerow.accounting.meaning import large_delta
from hedgerow.accounting.meter import Reservation
from hedgerow.accounting.noise import variance_of
from hedgerow.errors import BudgetError, HedgerowWarning, LargeDeltaWarning, SchemaMismatchWarning
from hedgerow.inference.coverage import at_upper_bound, hardly_any, not_counted, not_read, share_missing, without_rows
from hedgerow.release.release import Release

IN_VAIN = 0.9  # of the rows: where more are missing from the counts of a fold, another fold is not paid for


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
    lacking = _lacking(release, whole)
    empty = without_rows(release.forest) if whole and not _may_be_rare(release, lacking) else None
    return [text for text in (lacking, empty) if text is not None]


def oddities_of(release: Release, whole: bool) -> list[str]:
    """What may be as it should, and is worth a look: a class that is rare, a column that is nearly always missing, or at its bound."""
    counted = release.forest
    rare = without_rows(counted) if whole and _may_be_rare(release, _lacking(release, whole)) else None
    return [text for text in (rare, not_read(counted), at_upper_bound(counted)) if text is not None]


def is_in_vain(release: Release) -> bool:
    """Whether, as far as the released counts tell, next to no row was counted."""
    return share_missing(release.forest, *_number_of_rows(release, whole=True)) > IN_VAIN


def _lacking(release: Release, whole: bool) -> str | None:
    """What the counts tell of rows that are in none of them."""
    return not_counted(release.forest, *_number_of_rows(release, whole)) or hardly_any(release.forest)


def _may_be_rare(release: Release, lacking: str | None) -> bool:
    """Whether a class that hardly any row has may well be rare, and not spelled otherwise: the number of rows is known, and none lack."""
    return lacking is None and _number_of_rows(release, whole=True)[0] is not None


def _number_of_rows(release: Release, whole: bool) -> tuple[int | None, float]:
    """Noisy, with its standard deviation, or declared: that is of the whole table; else the best-filled tree stands in."""
    sd = max((variance_of(event.noise) ** 0.5 for event in release.certificate.events if event.query == "rows"), default=0.0)
    return release.released.get("rows", release.schema.rows if whole else None), sd


def _large_delta(release: Release) -> list[str]:
    """Of a δ above one over the noisy number of rows; of what is large for any table it was said before the fit."""
    delta, rows = Fraction(release.certificate.delta or 0), release.released.get("rows", 0)
    if rows < 1 or large_delta(delta) is not None:
        return []
    text = large_delta(delta, rows, about=True)
    return [] if text is None else [text]
