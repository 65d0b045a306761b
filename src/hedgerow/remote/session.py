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
from hedgerow.queries.forms import QueryForm
from hedgerow.queries.query import Query, Sums
from hedgerow.release.parts import Part
from hedgerow.remote import codec
from hedgerow.remote.kept_answers import KeptAnswers
from hedgerow.remote.places import source_of
from hedgerow.remote.request_file import forgotten
from hedgerow.remote.responses import Dataset, amount
from hedgerow.remote.seen_rows import counted_together, is_of
from hedgerow.remote.transport import MOST_JSON, Transport, one_line
from hedgerow.schema.codebook import Codebook

NOT_FOUND = 404
LOST = "lost"  # a code: it is paid for, and there is no answer
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
    """Rows at a service, read by one codebook: a session for each request, which `close` ends.

    kept: where its session and answers are kept. What an earlier run has asked is not asked again, and its last answer is fetched; where
    its session has ended meanwhile, another pays for the queries that were not asked.
    asked: what the service's note of a session ends with
    """

    def __init__(
        self, transport: Transport, dataset: str, purpose: str, codebook: Codebook, kept: KeptAnswers | None = None, asked: str = ""
    ) -> None:
        self.codebook, self.assumed, self.origin = codebook, "", source_of(transport.url, dataset)
        self._transport, self._dataset, self._purpose, self._note = transport, dataset, purpose, asked
        self._wanted: tuple[Fraction, Fraction, str] | None = None
        self._session: codec.SessionForm | None = None
        self._whole = Fraction(0)  # what was reserved, as the service says
        self._kept, self._earlier = kept, False  # whether an earlier run has begun the session
        self._charged: list[Event] = []  # in this session
        self._before = Fraction(0)  # in those before it
        self._delta = Fraction(0)
        self._public: Dataset | None = None  # what the service says of it, once it was asked
        self._answered = self._first = 0  # how many queries have their answers, and had them when the session began
        self._agreed = True

    def counted_as(self, part: Part) -> bool:
        """By its address, by the name that the service gives it, as the service says of a forest that it has made, or with other owners."""
        if super().counted_as(part):
            return True
        if self._public is None:
            from hedgerow.remote.connection import Connection

            self._public = Connection(self._transport).dataset(self._dataset)
        return is_of(part, self._public) or counted_together(part, self._public)

    def reserve(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        self.want(epsilon, delta, what)
        self._begun()

    def want(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        """The same when the first query is asked, and not before."""
        self._wanted, self._delta = (codec.payable(epsilon), delta, f"{what}, {self._note}" if self._note else what), delta

    def _begun(self) -> codec.SessionForm:
        if self._session is None:
            if self._wanted is None:
                raise CuratorError(f"{self._dataset}: the session has ended, or nothing was reserved. Begin another.")
            if self._kept is not None and self._kept.session is not None:
                self._take(self._kept.session.form)
                self._first, self._earlier = self._kept.session.after, True
            else:
                self._begin(*self._wanted)
        assert self._session is not None
        return self._session

    def _begin(self, epsilon: Fraction, delta: Fraction, what: str) -> None:
        body = {"purpose": self._purpose, "epsilon": text_of_fraction(epsilon), "bins": self.codebook.bins, "what": what[:100]}
        if delta:
            body["delta"] = text_of_fraction(delta)
        path = f"/v1/datasets/{quote(self._dataset, safe='')}/sessions"
        key = uuid.uuid4().hex if self._kept is None else self._kept.key
        try:
            content = self._transport.bytes("POST", path, body, key=key, most=MOST_JSON)
        except CuratorError as error:
            if self._kept is None or error.code != "key_used":
                raise
            # An earlier run began a session and did not note it, so that it sent no query: it has ended and cost nothing.
            content = self._transport.bytes("POST", path, body, key=uuid.uuid4().hex, most=MOST_JSON)
        self._take(self._read(content, codec.SessionForm))
        if self._kept is not None and self._session is not None:
            self._kept.begin(self._session)

    def _take(self, session: codec.SessionForm) -> None:
        try:
            self._whole, _ = amount(session.epsilon), amount(session.delta)
        except (ValueError, ZeroDivisionError):
            raise self._unreadable() from None
        self._session = session

    @property
    def coins(self) -> OwnersCoins:  # type: ignore[override]
        """As the service says; before the session has begun nobody knows."""
        said = self._session
        return UNKNOWN if said is None else OwnersCoins(one_line(said.coins), said.secret)

    def released(self, query: Query[Any], price: Price, charge: Callable[[], tuple[Event, ...]]) -> Sums:
        """One query: sent again with the same number where a connection was lost, it is the same query."""
        form = query.form(price, codec.PredictorEncoder(self.codebook))
        events = charge()
        agreed, self._agreed = self._agreed, False
        self._begun()
        answer = self._kept_answer(query.name, form, events) or self._asked(query.name, form, events)
        if answer.events != list(map(codec.event_form, events)):
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

    def _kept_answer(self, name: str, form: QueryForm, events: tuple[Event, ...]) -> codec.AnswerForm | None:
        """What an earlier run has had for this query."""
        content = None if self._kept is None else self._kept.answer(self._answered, name, msgspec.json.encode(form))
        if content is None:
            return None
        if self._answered < self._first:
            self._before += exact_sum(event.epsilon for event in events)
        else:
            self._charged.extend(events)
        self._answered += 1
        return self._read(content, codec.AnswerForm)

    def _asked(self, name: str, form: QueryForm, events: tuple[Event, ...]) -> codec.AnswerForm:
        """The service's answer; where the session of an earlier run has ended without it, in a new one."""
        number = self._answered - self._first + 1
        if self._kept is not None:
            self._kept.asked = True
        try:
            content = self._sent(f"{_path(self._begun())}/{name}", msgspec.json.encode(msgspec.structs.replace(form, number=number)))
        except CuratorError as error:
            if self._earlier and error.status == NOT_FOUND and self._kept is not None:
                session, self._session = self._begun(), None  # there is none to be ended
                raise forgotten(self._transport.url, f"its session {one_line(session.id)}", self._kept.request.path) from None
            if not self._earlier or error.code != "ended":
                raise
            self._begin_rest(name)
            return self._asked(name, form, events)
        answer = self._read(content, codec.AnswerForm)
        if answer.number != number:
            raise self._unreadable()
        self._charged.extend(events)
        self._answered += 1
        if self._kept is not None:
            self._kept.keep(name, msgspec.json.encode(form), content)
        return answer

    def _begin_rest(self, name: str) -> None:
        """A session for what the earlier one was not asked. What it was asked, and has no answer to, is not paid for again."""
        assert self._wanted is not None
        assert self._session is not None
        epsilon, delta, what = self._wanted
        if delta or self._end(self._session) != self._cost():
            text = f"{name} was charged in a session that an earlier run began, and its answer is lost."
            raise CuratorError(f"{self._transport.url}: {text} To pay for it anew, run the command again.", code=LOST)
        self._before += exact_sum(event.epsilon for event in self._charged)
        self._charged, self._first, self._earlier = [], self._answered, False
        self._begin(codec.payable(epsilon - self._before), delta, what)

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
            spent = self._end(session)
        except (HedgerowError, msgspec.MsgspecError, ValueError, TypeError, KeyError, ZeroDivisionError, RecursionError) as error:
            text = f"the session could not be ended: {error} It ends by itself when it is not used, and keeps what its queries have cost."
            warnings.warn(text, HedgerowWarning, stacklevel=3)
            return
        expected = self._cost()
        if self._kept is not None and not spent and not self._answered:
            self._kept.free = True
        if self._agreed and spent != expected:
            charged, due = text_of_fraction(spent), text_of_fraction(expected)
            text = f"the service has charged ε = {charged}; expected ε = {due}, what the queries cost."
            warnings.warn(text, HedgerowWarning, stacklevel=3)

    def _end(self, session: codec.SessionForm) -> Fraction:
        """What the service says that it has cost."""
        said = msgspec.json.decode(self._sent(f"{_path(session)}/end", None))
        return amount(said["spent"]["epsilon"])

    def _cost(self) -> Fraction:
        """What is charged for the queries of the session so far, in the ledger's short amounts."""
        if self._answered <= self._first:
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
