"""Client side of a session: queries that share one reservation, each checked and charged here as on one's own rows, then asked there."""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn
from urllib.parse import quote

import msgspec

from hedgerow.accounting.events import Event
from hedgerow.accounting.loss import exact_sum, text_of_fraction
from hedgerow.accounting.prices import Price
from hedgerow.engines.remote import RemoteEngine
from hedgerow.errors import CuratorError, HedgerowError, HedgerowWarning
from hedgerow.queries.query import Query, Sums
from hedgerow.remote import codec
from hedgerow.remote.places import source_of
from hedgerow.remote.responses import amount
from hedgerow.remote.transport import MOST_JSON, Transport, one_line
from hedgerow.schema.codebook import Codebook

BUSY_TRIES = 30  # a second each: longer than a service waits for a query that nobody waits for any more


@dataclass(frozen=True)
class OwnersCoins:
    """Where the owner's noise comes from, as the service says; nothing can be drawn from it here."""

    name: str
    secret: bool

    def bytes(self, n: int) -> NoReturn:
        raise CuratorError("the noise is drawn where the rows are.")


UNKNOWN = OwnersCoins("the owner's coins", True)


class RemoteRows(RemoteEngine):
    """Rows at a service, read by one codebook: a session for each request, which `close` ends."""

    def __init__(self, transport: Transport, dataset: str, purpose: str, codebook: Codebook) -> None:
        self.codebook, self.assumed, self.origin = codebook, "", source_of(transport.url, dataset)
        self._transport, self._dataset, self._purpose = transport, dataset, purpose
        self._wanted: tuple[Fraction, Fraction, str] | None = None
        self._session: codec.SessionForm | None = None
        self._whole = Fraction(0)  # what was reserved, as the service says
        self._charged: list[Event] = []
        self._delta = Fraction(0)
        self._number = 0
        self._agreed = True

    def reserve(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        self.want(epsilon, delta, what)
        self._begun()

    def want(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        """The same when the first query is asked, and not before."""
        self._wanted, self._delta = (codec.payable(epsilon), delta, what), delta

    def _begun(self) -> codec.SessionForm:
        if self._session is None:
            if self._wanted is None:
                raise CuratorError(f"{self._dataset}: the session has ended, or nothing was reserved. Begin another.")
            epsilon, delta, what = self._wanted
            body = {"purpose": self._purpose, "epsilon": text_of_fraction(epsilon), "bins": self.codebook.bins, "what": what[:100]}
            if delta:
                body["delta"] = text_of_fraction(delta)
            path = f"/v1/datasets/{quote(self._dataset, safe='')}/sessions"
            content = self._transport.bytes("POST", path, body, key=uuid.uuid4().hex, most=MOST_JSON)
            session = self._read(content, codec.SessionForm)
            try:
                self._whole, _ = amount(session.epsilon), amount(session.delta)
            except (ValueError, ZeroDivisionError):
                raise self._unreadable() from None
            self._session, self._wanted = session, None
        return self._session

    @property
    def coins(self) -> OwnersCoins:  # type: ignore[override]
        """As the service says; before the session has begun nobody knows."""
        said = self._session
        return UNKNOWN if said is None else OwnersCoins(one_line(said.coins), said.secret)

    def released(self, query: Query[Any], price: Price, charge: Callable[[], tuple[Event, ...]]) -> Sums:
        """One query: sent again with the same number where a connection was lost, it is the same query."""
        form = query.form(price, codec.PredictorEncoder(self.codebook))
        events = charge()
        self._charged.extend(events)
        agreed, self._agreed = self._agreed, False
        number = self._number + 1
        path, body = f"{_path(self._begun())}/{query.name}", msgspec.json.encode(msgspec.structs.replace(form, number=number))
        answer = self._read(self._sent(path, body), codec.AnswerForm)
        self._number = number
        if answer.number != number or answer.events != list(map(codec.event_form, events)):
            raise CuratorError(
                f"{self._transport.url}: {query.name} was charged otherwise than it would be here, so that no certificate could state its "
                "cost. Do both sides have the same version of hedgerow and the same schema?"
            )
        self.assumed, self._agreed = answer.assumed, agreed
        try:
            arrays = codec.read_arrays(answer, query.shapes(self.codebook))
        except (ValueError, OverflowError):
            raise self._unreadable() from None
        if not query.valid(arrays):
            raise self._unreadable()
        return arrays

    def _sent(self, path: str, body: bytes | None) -> bytes:
        """The answer. Where the service is busy, or the query is still being counted, it is asked again."""
        busy, ends = 0, time.monotonic() + self._transport.look_timeout
        while True:
            try:
                content = self._transport.bytes("POST", path, body, repeatable=True)
            except CuratorError as error:
                busy += 1
                if error.status not in (429, 503) or error.code != "busy" or busy > BUSY_TRIES:
                    raise
                time.sleep(1)
            else:
                if content != codec.RUNNING:
                    return content
                if time.monotonic() > ends:
                    raise self._late()
                time.sleep(0.1)

    def close(self) -> None:
        """End the session: what its queries did not cost is given back."""
        session, self._session, self._wanted = self._session, None, None
        if session is None:
            return
        try:
            said = msgspec.json.decode(self._sent(f"{_path(session)}/end", None))
            spent = amount(said["spent"]["epsilon"])
        except (HedgerowError, msgspec.MsgspecError, ValueError, TypeError, KeyError, ZeroDivisionError, RecursionError) as error:
            text = f"the session could not be ended: {error} It ends by itself when it is not used, and keeps what its queries have cost."
            warnings.warn(text, HedgerowWarning, stacklevel=3)
            return
        expected = self._cost()
        if self._agreed and spent != expected:
            charged, due = text_of_fraction(spent), text_of_fraction(expected)
            text = f"the service has charged ε = {charged}; expected ε = {due}, what the queries cost."
            warnings.warn(text, HedgerowWarning, stacklevel=3)

    def _cost(self) -> Fraction:
        """What is charged for the queries so far, in the ledger's short amounts."""
        if not self._number:
            return Fraction(0)
        return self._whole if self._delta else min(self._whole, codec.rounded_up(exact_sum(event.epsilon for event in self._charged)))

    def _read(self, content: bytes, kind: type[codec.FormType]) -> codec.FormType:
        try:
            return msgspec.json.decode(content, type=kind)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise self._unreadable() from None

    def _late(self) -> CuratorError:
        text = f"the query has not ended in {self._transport.look_timeout:g} seconds, and may have been paid for."
        return CuratorError(f"{self._transport.url}: {text} Ask the owner, or connect with a longer look_timeout for a new session.")

    def _unreadable(self) -> CuratorError:
        return CuratorError(f"{self._transport.url}: its answer cannot be read. Is it a Hedgerow service of the same version?")


def _path(session: codec.SessionForm) -> str:
    return f"/v1/sessions/{quote(session.id, safe='')}"
