"""Owner pages of the ledger: newest entries first, unsettled reservations, verification."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response

from hedgerow.curator.http import owner_routes as owners
from hedgerow.curator.web.authentication import OwnerContext
from hedgerow.curator.web.templating import render

router = APIRouter(include_in_schema=False)
SHOWN = 50


@router.get("/ledger")
def ledger(context: OwnerContext, before: Annotated[int | None, Query(ge=1, lt=2**62)] = None) -> Response:
    """A page of entries that come before one; without it, the newest."""
    last = context.curator.ledger.head().seq
    end = last if before is None else min(before - 1, last)
    after = max(0, end - SHOWN)
    found = owners.entries(context, after, end - after)["entries"] if end > after else []
    lost = owners.lost(context)["lost"]
    known = {each["id"] for each in lost}
    unsettled = [each for each in owners.unsettled(context)["unsettled"] if each["id"] not in known]
    return render(
        "ledger.html", context.person, entries=found[::-1], last=last, older=after + 1 if after else None, newer=end < last,
        unsettled=unsettled, lost=lost,
    )  # fmt: skip


@router.get("/ledger/verification")
def verification(context: OwnerContext) -> Response:
    return render("verification.html", context.person, found=owners.verification(context))


@router.get("/ledger/export")
def export(context: OwnerContext, format: Literal["csv", "json"] = "csv") -> Response:
    return owners.export(context, format)
