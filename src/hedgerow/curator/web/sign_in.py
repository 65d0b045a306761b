"""The sign-in page, signing out, and the style sheet."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from hedgerow.curator.web.authentication import PageAuthentication, wanted_page
from hedgerow.curator.web.forms import SubmittedForm
from hedgerow.curator.web.templating import render, style

router = APIRouter(include_in_schema=False)
NOT_VALID = "This is not a valid token: it may be mistyped, expired or revoked. Ask the owner for a new one if it should work."


async def _authentication(request: Request) -> PageAuthentication:
    authentication: PageAuthentication = request.app.state.page_authentication
    return authentication


Authentication = Annotated[PageAuthentication, Depends(_authentication)]


@router.get("/sign-in")
def sign_in_page(to: str = "") -> Response:
    return render("sign_in.html", None, problem=None, to=wanted_page(to))


@router.post("/sign-in")
def sign_in(request: Request, authentication: Authentication, form: SubmittedForm) -> Response:
    """The token is not shown again, right or wrong."""
    to = wanted_page(form.get("to", ""))
    answer = authentication.sign_in(request, form.get("token", "").strip(), to)
    return answer or render("sign_in.html", None, 401, problem=NOT_VALID, to=to)


@router.post("/sign-out")
def sign_out(request: Request, authentication: Authentication) -> Response:
    return authentication.sign_out(request)


@router.get("/style.css")
def style_sheet() -> Response:
    return Response(style(), media_type="text/css")
