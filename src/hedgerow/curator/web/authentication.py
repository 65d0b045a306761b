"""Before any page: a cookie in the place of a token, and forms that are taken from our own pages alone.

The cookie is for pages; the routes under /v1 never look at it, so no other site can make a browser use them.
"""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import urlsplit

from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Scope

from hedgerow.curator.http.errors import Refusal, error_response
from hedgerow.curator.ledger.accounts import Accounts
from hedgerow.curator.web.sign_in_sessions import LIFETIME, Visits
from hedgerow.curator.web.templating import drawn
from hedgerow.plots import svg

PAGES = ("sign-in", "sign-out", "style.css", "datasets", "jobs", "releases", "scores", "ledger", "owner")  # how all but the first begin
FREE = ("/sign-in", "/style.css")
SIGN_IN = "/sign-in"
_PICTURES = base64.b64encode(hashlib.sha256(svg.STYLE.encode()).digest()).decode()  # the one style that pictures bring along
POLICY = (
    f"default-src 'none'; style-src 'self' 'sha256-{_PICTURES}'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
# With no-referrer a browser would send "Origin: null" with our own forms; same-origin tells other sites just as little.
HEADERS = [(b"content-security-policy", POLICY.encode()), (b"referrer-policy", b"same-origin"), (b"x-frame-options", b"DENY")]
ELSEWHERE = "The form was not sent from a page of this service, so nothing was done. Open the page here and send it again."


def is_page(path: str) -> bool:
    plain = path.rstrip("\n")  # the router overlooks a line end, too
    return plain == "/" or plain.removeprefix("/").partition("/")[0] in PAGES


class Door:
    """Who comes in. behind_tls: a proxy before the service speaks https, whatever the service itself hears."""

    def __init__(self, accounts: Accounts, behind_tls: bool = False) -> None:
        self.accounts, self.behind_tls = accounts, behind_tls
        self.visits = Visits()

    async def enter(self, scope: Scope) -> Response | None:
        """None where the request may go on, with `scope["state"]["person"]`; else what is answered in its place."""
        request = Request(scope)
        if request.method not in ("GET", "HEAD") and not _from_here(request):
            raise Refusal(403, "elsewhere", ELSEWHERE)
        if scope["path"] in FREE:
            return None
        token = self.visits.token(request.cookies.get(self._cookie(request), ""))
        person = None if token is None else await run_in_threadpool(self.accounts.who, token)
        if person is None:
            return RedirectResponse(SIGN_IN, 303)
        scope["state"]["person"] = person
        return None

    def sign_in(self, request: Request, token: str) -> Response | None:
        """To the first page, with a cookie; None where the token is not valid."""
        if len(token) >= 200 or self.accounts.who(token) is None:
            return None
        answer = RedirectResponse("/", 303)
        name, secure = self._cookie(request), self._secure(request)
        answer.set_cookie(name, self.visits.begin(token), LIFETIME, path="/", secure=secure, httponly=True, samesite="strict")
        return answer

    def sign_out(self, request: Request) -> Response:
        name = self._cookie(request)
        self.visits.end(request.cookies.get(name, ""))
        answer = RedirectResponse(SIGN_IN, 303)
        answer.delete_cookie(name, path="/", secure=self._secure(request), httponly=True, samesite="strict")
        return answer

    def refused(self, scope: Scope, refusal: Refusal) -> Response:
        """As a page in words, or as JSON where no page was asked for."""
        if not is_page(scope["path"]):
            return error_response(refusal)
        answer = drawn("trouble.html", scope["state"].get("person"), refusal.status, refusal=refusal)
        answer.headers.update(refusal.headers)
        return answer

    def _secure(self, request: Request) -> bool:
        return self.behind_tls or request.url.scheme == "https"

    def _cookie(self, request: Request) -> str:
        return "__Host-hedgerow" if self._secure(request) else "hedgerow"  # browsers take the first from https alone


def _from_here(request: Request) -> bool:
    """Browsers say where a form comes from, in one of two headers that a page cannot change; without either it is refused."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site == "same-origin"
    try:
        return origin is not None and urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower() != ""
    except ValueError:
        return False
