"""The ledger for its owner: newest entries first, what is unsettled, whether it is sound."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response

from hedgerow.curator.http import owner_routes as owners
from hedgerow.curator.web.owner_asking import OwnerNow
from hedgerow.curator.web.templating import drawn

router = APIRouter(include_in_schema=False)
SHOWN = 50


@router.get("/ledger")
def ledger(asking: OwnerNow, before: Annotated[int | None, Query(ge=1, lt=2**62)] = None) -> Response:
    """A page of entries that come before one; without it, the newest."""
    last = asking.curator.ledger.head().seq
    end = last if before is None else min(before - 1, last)
    after = max(0, end - SHOWN)
    found = owners.entries(asking, after, end - after)["entries"] if end > after else []
    return drawn(
        "ledger.html", asking.person, entries=found[::-1], last=last, older=after + 1 if after else None, newer=end < last,
        unsettled=owners.unsettled(asking)["unsettled"],
    )  # fmt: skip


@router.get("/ledger/verification")
def verification(asking: OwnerNow) -> Response:
    return drawn("verification.html", asking.person, found=owners.verification(asking))


@router.get("/ledger/export")
def export(asking: OwnerNow, format: Literal["csv", "json"] = "csv") -> Response:
    return owners.export(asking, format)
