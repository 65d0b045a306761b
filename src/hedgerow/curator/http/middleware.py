"""ASGI middleware: authenticates the token, limits body size, time and concurrency, writes one log line per request.

The token comes first, so that nobody without one can make the service read a body or tell a route that exists from one that does not.
Only the sign-in of the pages reads a body without a token, and it has a few slots of its own: nobody with a token is refused because of
strangers.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hedgerow.curator.http import reading
from hedgerow.curator.http.errors import UNEXPECTED, Refusal, refusal_of
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.logs import error_fields, log
from hedgerow.curator.ledger.accounts import Accounts, Person
from hedgerow.errors import HedgerowError

GUARDED, OWNERS, SESSIONS = "/v1", "/v1/owner", "/v1/sessions"
PLANS = re.compile(rf"{GUARDED}/datasets/[^/]+/counts")
NO_TOKEN = "A valid token is needed (Authorization: Bearer hrw_…): none was sent, or it is mistyped, expired or revoked. Ask the owner."
HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class ClientDisconnected(Exception):
    """The client has left."""


class Pages(Protocol):
    """Pages that are served beside the API, with authentication of their own."""

    def headers(self, path: str) -> list[tuple[bytes, bytes]]:
        """Response headers of a page; none where the path is no page's."""

    def is_sign_in(self, scope: Scope) -> bool:
        """Whether somebody signs in: the one request without a token that may have a body."""

    async def authenticate(self, scope: Scope) -> Response | None:
        """Set `scope["state"]["person"]` where the path is a page's; or the response instead, such as a redirect to the sign-in."""

    def error_response(self, scope: Scope, refusal: Refusal) -> Response:
        """As a page, or as JSON where the path is no page's."""


class ServiceMiddleware:
    """Wraps the application. Sets `scope["state"]["person"]` to whose request it is."""

    def __init__(self, app: ASGIApp, accounts: Accounts, limits: Limits, pages: Pages) -> None:
        self.app, self.accounts, self.limits, self.pages = app, accounts, limits, pages
        self._taken: Counter[tuple[str, ...]] = Counter()  # slots in use, by what they are for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, state = time.monotonic(), scope.setdefault("state", {})
        number, status = uuid.uuid4().hex[:16], 0
        headers = [*HEADERS, (b"x-request-id", number.encode()), *self.pages.headers(scope["path"])]

        async def send_logged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        try:
            with ExitStack() as slots:
                await self._respond(scope, receive, send_logged, slots)
        except ClientDisconnected:
            pass
        except Exception as error:
            log("error", logging.ERROR, request=number, **error_fields(error))
            if not status:
                await self.pages.error_response(scope, Refusal(500, "unexpected", UNEXPECTED))(scope, receive, send_logged)
        finally:
            person, route = state.get("person"), scope.get("route")
            fields = {"method": scope["method"], "route": getattr(route, "path", None), "person": person and person.name}
            log("request", request=number, **fields, status=status, milliseconds=round(1000 * (time.monotonic() - began), 1))

    async def _respond(self, scope: Scope, receive: Receive, send: Send, slots: ExitStack) -> None:
        try:
            instead = await self._authenticate(scope, slots)
            if instead is None:
                body = await self._body(scope, receive, slots)
                if "person" in scope["state"]:
                    message = "The service is answering as many requests as it may. Try again soon."
                    self._take(slots, ("requests",), self.limits.requests, busy(503, message))
        except (Refusal, HedgerowError) as error:
            instead = self.pages.error_response(scope, refusal_of(error, owns=False))
        if instead is not None:
            await instead(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def buffered() -> Message:
            return pending.pop() if pending else await receive()

        await self.app(scope, buffered, send)

    async def _authenticate(self, scope: Scope, slots: ExitStack) -> Response | None:
        """Whose request it is, and a slot for it; or the response instead."""
        if within(scope["path"], GUARDED):
            scope["state"]["person"] = await self._person(scope)
        elif (instead := await self.pages.authenticate(scope)) is not None:
            return instead
        person: Person | None = scope["state"].get("person")
        if person is not None:
            message = "You have as many requests under way as you may. Wait for their answers."
            self._take(slots, ("of", person.name), self.limits.requests_each, busy(429, message))
        elif self.pages.is_sign_in(scope):
            message = "Too many others are signing in. Try again soon."
            self._take(slots, ("strangers",), self.limits.strangers, busy(503, message, {"Connection": "close"}))
        return None

    def _take(self, slots: ExitStack, what: tuple[str, ...], most: int, refusal: Refusal) -> None:
        """Take one of the slots for this, until the request is answered."""
        if self._taken[what] >= most:
            raise refusal
        self._taken[what] += 1
        slots.callback(self._free, what)

    def _free(self, what: tuple[str, ...]) -> None:
        self._taken[what] -= 1
        if not self._taken[what]:
            del self._taken[what]

    async def _person(self, scope: Scope) -> Person:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        person = await self._person_of(token.strip() if kind.lower() == "bearer" and len(token) < 200 else "")
        if person is None:
            headers = {"WWW-Authenticate": "Bearer"}
            raise Refusal(401, "token", NO_TOKEN, headers)
        if within(scope["path"], OWNERS) and not person.owns:
            raise Refusal(403, "owner", "This is for owners.")
        return person

    async def _person_of(self, token: str) -> Person | None:
        """The same work for whatever was sent."""
        return await reading.read(self.accounts.database, lambda connection: self.accounts.within(connection).authenticate(token))

    async def _body(self, scope: Scope, receive: Receive, slots: ExitStack) -> bytes:
        headers = dict(scope["headers"])
        length: Any = headers.get(b"content-length", b"0")
        if "person" not in scope["state"] and not self.pages.is_sign_in(scope):
            if length.strip(b"0") or b"transfer-encoding" in headers:
                raise Refusal(413, "too_large", "Nothing is sent to this address; expected no body.", {"Connection": "close"})
            return b""
        query = within(scope["path"], SESSIONS)
        most, seconds = (self.limits.verb_bytes, self.limits.verb_seconds) if query else (self.limits.body_bytes, self.limits.body_seconds)
        if PLANS.fullmatch(scope["path"]):
            most = self.limits.plan_bytes
        too_large = Refusal(413, "too_large", f"The body is too large; expected at most {most} bytes.", {"Connection": "close"})
        if length.isdigit() and int(length[:20]) > most:
            raise too_large
        body, large = bytearray(), False
        try:
            async with asyncio.timeout(seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        raise too_large
                    if len(body) > self.limits.body_bytes and not large:
                        self._take_large(scope["state"]["person"], slots)
                        large = True
        except TimeoutError:
            raise Refusal(408, "too_slow", "The body did not arrive in time.", {"Connection": "close"}) from None
        return bytes(body)

    def _take_large(self, person: Person, slots: ExitStack) -> None:
        """One large body more, if there is room for it: one per person."""
        closing = {"Retry-After": "2", "Connection": "close"}
        own = busy(429, "You have a large request under way. Wait for its answer. Nothing was spent.", closing)
        self._take(slots, ("large of", person.name), 1, own)
        message = "The service holds as many large requests as it may. Try again soon."
        self._take(slots, ("large",), self.limits.verb_bodies, busy(503, message, closing))


def busy(status: int, message: str, headers: dict[str, str] | None = None) -> Refusal:
    return Refusal(status, "busy", message, {"Retry-After": "1", **(headers or {})})


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
