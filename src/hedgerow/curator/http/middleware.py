"""Before any route: who asks, how much is sent, how long it takes; and after it one line in the log.

The token comes first, so that nobody without one can make the service read a body or tell a route that exists from one that does not.
Only signing in reads one, and whoever does has a few places apart: nobody with a token is refused because of strangers.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hedgerow.curator.http.errors import UNEXPECTED, Refusal, refusal_of
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.logs import log, told
from hedgerow.curator.ledger.accounts import Accounts, Person
from hedgerow.curator.web import authentication as pages
from hedgerow.errors import HedgerowError

GUARDED, OWNERS, SESSIONS = "/v1", "/v1/owner", "/v1/sessions"
PLANS = re.compile(rf"{GUARDED}/datasets/[^/]+/counts")
NO_TOKEN = "A valid token is needed (Authorization: Bearer hrw_…): none was sent, or it is mistyped, expired or revoked. Ask the owner."
HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class Gone(Exception):
    """The client has left."""


class Gate:
    """Wraps the application. `scope["state"]["person"]` is who asks."""

    def __init__(self, app: ASGIApp, accounts: Accounts, limits: Limits, door: pages.Door) -> None:
        self.app, self.accounts, self.limits, self.door = app, accounts, limits, door
        self._taken: Counter[tuple[str, ...]] = Counter()  # places, by what they are for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, state = time.monotonic(), scope.setdefault("state", {})
        number, status = uuid.uuid4().hex[:16], 0
        headers = [*HEADERS, (b"x-request-id", number.encode()), *(pages.HEADERS if pages.is_page(scope["path"]) else [])]

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        try:
            with ExitStack() as places:
                await self._answer(scope, receive, answer, places)
        except Gone:
            pass
        except Exception as error:
            log("error", logging.ERROR, request=number, **told(error))
            if not status:
                await self.door.refused(scope, Refusal(500, "unexpected", UNEXPECTED))(scope, receive, answer)
        finally:
            person, route = state.get("person"), scope.get("route")
            fields = {"method": scope["method"], "route": getattr(route, "path", None), "person": person and person.name}
            log("request", request=number, **fields, status=status, milliseconds=round(1000 * (time.monotonic() - began), 1))

    async def _answer(self, scope: Scope, receive: Receive, send: Send, places: ExitStack) -> None:
        try:
            instead = await self._enter(scope, places)
            if instead is None:
                body = await self._body(scope, receive, places)
                if "person" in scope["state"]:
                    said = "The service is answering as many requests as it may. Try again soon."
                    self._take(places, ("requests",), self.limits.requests, busy(503, said))
        except (Refusal, HedgerowError) as error:
            instead = self.door.refused(scope, refusal_of(error, owns=False))
        if instead is not None:
            await instead(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return pending.pop() if pending else await receive()

        await self.app(scope, again, send)

    async def _enter(self, scope: Scope, places: ExitStack) -> Response | None:
        """Who asks, and a place for what they send; or what is answered at once."""
        if within(scope["path"], GUARDED):
            scope["state"]["person"] = await self._person(scope)
        elif pages.is_page(scope["path"]) and (instead := await self.door.enter(scope)) is not None:
            return instead
        person: Person | None = scope["state"].get("person")
        if person is not None:
            said = "You have as many requests under way as you may. Wait for their answers."
            self._take(places, ("of", person.name), self.limits.requests_each, busy(429, said))
        elif signs_in(scope):
            said = "Too many others are signing in. Try again soon."
            self._take(places, ("strangers",), self.limits.strangers, busy(503, said, {"Connection": "close"}))
        return None

    def _take(self, places: ExitStack, what: tuple[str, ...], most: int, refusal: Refusal) -> None:
        """One of the places for this, until the request is answered."""
        if self._taken[what] >= most:
            raise refusal
        self._taken[what] += 1
        places.callback(self._give_back, what)

    def _give_back(self, what: tuple[str, ...]) -> None:
        self._taken[what] -= 1
        if not self._taken[what]:
            del self._taken[what]

    async def _person(self, scope: Scope) -> Person:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        person = await self._who(token.strip() if kind.lower() == "bearer" and len(token) < 200 else "")
        if person is None:
            headers = {"WWW-Authenticate": "Bearer"}
            raise Refusal(401, "token", NO_TOKEN, headers)
        if within(scope["path"], OWNERS) and not person.owns:
            raise Refusal(403, "owner", "This is for owners.")
        return person

    async def _who(self, token: str) -> Person | None:
        """The same work for whatever was sent. Books in this process are read faster than another thread would begin to."""
        return self.accounts.who(token) if self.accounts.database.embedded else await run_in_threadpool(self.accounts.who, token)

    async def _body(self, scope: Scope, receive: Receive, places: ExitStack) -> bytes:
        headers = dict(scope["headers"])
        length: Any = headers.get(b"content-length", b"0")
        if "person" not in scope["state"] and not signs_in(scope):
            if length.strip(b"0") or b"transfer-encoding" in headers:
                raise Refusal(413, "too_large", "Nothing is sent to this address; expected no body.", {"Connection": "close"})
            return b""
        verb = within(scope["path"], SESSIONS)
        most, seconds = (self.limits.verb_bytes, self.limits.verb_seconds) if verb else (self.limits.body_bytes, self.limits.body_seconds)
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
                        raise Gone
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        raise too_large
                    if len(body) > self.limits.body_bytes and not large:
                        self._let_in(scope["state"]["person"], places)
                        large = True
        except TimeoutError:
            raise Refusal(408, "too_slow", "The body did not arrive in time.", {"Connection": "close"}) from None
        return bytes(body)

    def _let_in(self, person: Person, places: ExitStack) -> None:
        """One large body more, if there is room for it: one of each person."""
        closing = {"Retry-After": "2", "Connection": "close"}
        own = busy(429, "You have a large request under way. Wait for its answer. Nothing was spent.", closing)
        self._take(places, ("large of", person.name), 1, own)
        said = "The service holds as many large requests as it may. Try again soon."
        self._take(places, ("large",), self.limits.verb_bodies, busy(503, said, closing))


def busy(status: int, message: str, headers: dict[str, str] | None = None) -> Refusal:
    return Refusal(status, "busy", message, {"Retry-After": "1", **(headers or {})})


def signs_in(scope: Scope) -> bool:
    return bool(scope["method"] == "POST" and scope["path"] == pages.SIGN_IN)


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
