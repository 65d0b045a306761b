"""An owner who asks for a page. For anybody else there is no such page."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from hedgerow.curator.service.asking import Asking, AskingNow
from hedgerow.curator.service.refusals import not_found


async def _owner(asking: AskingNow) -> Asking:
    if not asking.person.owns:
        raise not_found()
    return asking


OwnerNow = Annotated[Asking, Depends(_owner)]
