"""Requests that were paid for and have no answer, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hedgerow.accounting.loss import text_of_fraction as exact
from hedgerow.cli.console import table, warn

if TYPE_CHECKING:
    from hedgerow.curator.http.recovery import Lost


def show_lost(lost: Sequence[Lost]) -> None:
    """Nothing where there is none."""
    if not lost:
        return
    warn("requests that were paid for and have no answer. Their rows may have been looked at, so that what they cost is not given back")
    heads = ["when", "dataset", "analyst", "purpose", "what", "ε", "δ", "number", "why"]
    rows = [
        (r.when, r.dataset, r.analyst, r.purpose, r.what, exact(r.cost), exact(r.delta), r.key, each.reason)
        for each in lost for r in (each.reserved,)
    ]  # fmt: skip
    table("lost", heads, rows, numbers=(5, 6))
