"""Signing in with a token, signing out, and the one style sheet."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from hedgerow.curator.web.authentication import Door
from hedgerow.curator.web.forms import TypedNow
from hedgerow.curator.web.templating import drawn, style

router = APIRouter(include_in_schema=False)
NOT_VALID = "This is not a valid token: it may be mistyped, expired or revoked. Ask the owner for a new one if it should work."


async def _door(request: Request) -> Door:
    door: Door = request.app.state.door
    return door


DoorNow = Annotated[Door, Depends(_door)]


@router.get("/sign-in")
def sign_in_page() -> Response:
    return drawn("sign_in.html", None, problem=None)


@router.post("/sign-in")
def sign_in(request: Request, door: DoorNow, typed: TypedNow) -> Response:
    """The token is not shown again, right or wrong."""
    return door.sign_in(request, typed.get("token", "").strip()) or drawn("sign_in.html", None, 401, problem=NOT_VALID)


@router.post("/sign-out")
def sign_out(request: Request, door: DoorNow) -> Response:
    return door.sign_out(request)


@router.get("/style.css")
def style_sheet() -> Response:
    return Response(style(), media_type="text/css")
