"""An owner who asks for a page. For anybody else there is no such page."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from hedgerow.curator.http.errors import not_found
from hedgerow.curator.http.request_context import Asking, AskingNow


async def _owner(asking: AskingNow) -> Asking:
    if not asking.person.owns:
        raise not_found()
    return asking


OwnerNow = Annotated[Asking, Depends(_owner)]
