"""Authentication of the pages: a cookie in place of a token, and protection against cross-site request forgery.

The cookie is for pages only; the routes under /v1 never read it, so no other site can make a browser use them.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Annotated
from urllib.parse import quote, unquote, urlencode, urlsplit

from fastapi import Depends
from fastapi.responses import RedirectResponse, Response
from starlette.requests import Request
from starlette.types import Scope

from hedgerow.curator.http import reading
from hedgerow.curator.http.errors import Refusal, error_response, not_found
from hedgerow.curator.http.request_context import Context, RequestContext
from hedgerow.curator.ledger.accounts import Accounts, Person
from hedgerow.curator.web.sign_in_sessions import LIFETIME, SignInSessions
from hedgerow.curator.web.templating import render
from hedgerow.plots import svg

# The first segments of their paths; the home page has none.
PAGES = ("sign-in", "sign-out", "style.css", "datasets", "jobs", "releases", "scores", "ledger", "owner")
WANTED = ("datasets", "jobs", "releases", "scores", "ledger", "owner")  # of these, what may be gone back to after the sign-in
LONGEST_PATH = 1000
PUBLIC = ("/sign-in", "/style.css")
SIGN_IN = "/sign-in"
_PICTURES = base64.b64encode(hashlib.sha256(svg.STYLE.encode()).digest()).decode()  # the one style that pictures bring along
POLICY = (
    f"default-src 'none'; style-src 'self' 'sha256-{_PICTURES}'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
# With no-referrer a browser would send "Origin: null" with our own forms; same-origin tells other sites just as little.
HEADERS = [(b"content-security-policy", POLICY.encode()), (b"referrer-policy", b"same-origin"), (b"x-frame-options", b"DENY")]
OTHER_SITE = "The form was not sent from a page of this service, so nothing was done. Open the page here and send it again."


def is_page(path: str) -> bool:
    plain = path.rstrip("\n")  # the router overlooks a line end, too
    return plain == "/" or plain.removeprefix("/").partition("/")[0] in PAGES


def sign_in_path(scope: Scope) -> str:
    """The sign-in, and where to go from there: back to the page that somebody wanted to see."""
    path, query = quote(scope["path"], safe="/"), scope.get("query_string", b"").decode("latin-1")
    wanted = wanted_page(f"{path}?{query}" if query else path) if scope["method"] == "GET" else ""
    return f"{SIGN_IN}?{urlencode({'to': wanted})}" if wanted else SIGN_IN


def wanted_page(text: str) -> str:
    """The path of a page of this service, with its query; empty where it is none, is the first one, or leads elsewhere."""
    path = unquote(text.partition("?")[0])
    plain = len(text) < LONGEST_PATH and text.isascii() and text.isprintable() and not set(text) & set(' \\"<>#')
    first = path.removeprefix("/").partition("/")[0]
    return text if plain and path.startswith("/") and path.isprintable() and first in WANTED and is_page(path) else ""


class PageAuthentication:
    """Signs people in and out, and authenticates their requests for pages.

    behind_tls: a proxy before the service speaks https, whatever the service itself hears
    """

    def __init__(self, accounts: Accounts, behind_tls: bool = False) -> None:
        self.accounts, self.behind_tls = accounts, behind_tls
        self.sessions = SignInSessions()

    def headers(self, path: str) -> list[tuple[bytes, bytes]]:
        return HEADERS if is_page(path) else []

    def is_sign_in(self, scope: Scope) -> bool:
        return bool(scope["method"] == "POST" and scope["path"] == SIGN_IN)

    async def authenticate(self, scope: Scope) -> Response | None:
        """None where the request may go on, with `scope["state"]["person"]` if a person must be known; else the response instead."""
        if not is_page(scope["path"]):
            return None
        request = Request(scope)
        if request.method not in ("GET", "HEAD") and not _same_origin(request):
            raise Refusal(403, "elsewhere", OTHER_SITE)
        if scope["path"] in PUBLIC:
            return None
        token = self.sessions.token(request.cookies.get(self._cookie(request), ""))
        person = None if token is None else await self._person_of(token)
        if person is None:
            return RedirectResponse(sign_in_path(scope), 303)
        scope["state"]["person"] = person
        return None

    async def _person_of(self, token: str) -> Person | None:
        return await reading.read(self.accounts.database, lambda connection: self.accounts.within(connection).authenticate(token))

    def sign_in(self, request: Request, token: str, to: str = "") -> Response | None:
        """To the page that was wanted, or the first one, with a cookie; None where the token is not valid."""
        if len(token) >= 200 or self.accounts.authenticate(token) is None:
            return None
        answer = RedirectResponse(wanted_page(to) or "/", 303)
        name, secure = self._cookie(request), self._secure(request)
        answer.set_cookie(name, self.sessions.begin(token), LIFETIME, path="/", secure=secure, httponly=True, samesite="strict")
        return answer

    def sign_out(self, request: Request) -> Response:
        name = self._cookie(request)
        self.sessions.end(request.cookies.get(name, ""))
        answer = RedirectResponse(SIGN_IN, 303)
        answer.delete_cookie(name, path="/", secure=self._secure(request), httponly=True, samesite="strict")
        return answer

    def error_response(self, scope: Scope, refusal: Refusal) -> Response:
        """As a page, or as JSON where the path is no page's."""
        if not is_page(scope["path"]):
            return error_response(refusal)
        answer = render("error.html", scope["state"].get("person"), refusal.status, refusal=refusal)
        answer.headers.update(refusal.headers)
        return answer

    def _secure(self, request: Request) -> bool:
        return self.behind_tls or request.url.scheme == "https"

    def _cookie(self, request: Request) -> str:
        return "__Host-hedgerow" if self._secure(request) else "hedgerow"  # browsers take the first over https only


def _same_origin(request: Request) -> bool:
    """Browsers say where a form comes from, in one of two headers that a page cannot change; without either it is refused."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site == "same-origin"
    try:
        return origin is not None and urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower() != ""
    except ValueError:
        return False


async def _owner(context: Context) -> RequestContext:
    if not context.person.owns:
        raise not_found()
    return context


OwnerContext = Annotated[RequestContext, Depends(_owner)]  # for anybody but an owner there is no such page
