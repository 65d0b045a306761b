"""The owner's client: datasets and their ceilings, people, tokens and grants, and the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any, Literal

from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_fraction
from hedgerow.engines.files import CSVTable
from hedgerow.engines.sql import SQLTable
from hedgerow.remote.owner_responses import Balance, Entry, LostRequest, OwnedDataset, Person, Token, Unsettled, Verification
from hedgerow.remote.responses import parsed_response
from hedgerow.remote.transport import Transport, path_segment
from hedgerow.schema.schema import Schema

PAGE = 1000
OWNER = "/v1/owner"


class Owner:
    """What only an owner may do at a service."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        return self._transport.json(method, OWNER + path, body)

    # ------------------------------------------------------------ datasets

    def datasets(self) -> tuple[OwnedDataset, ...]:
        """All datasets, with their ceilings and what is spent."""
        with parsed_response(self._transport.url):
            return tuple(OwnedDataset.read(found) for found in self._request("GET", "/datasets")["datasets"])

    def register(self, name: str, place: str | os.PathLike[str] | CSVTable | SQLTable, schema: Schema) -> OwnedDataset:
        """place: a file, a folder or a pattern as the service sees it, or a table in a database. Without a ceiling nothing can be spent."""
        if isinstance(place, CSVTable):  # how files are written stands in the schema
            schema, place = replace(schema, csv=place.dialect), place.path
        where = asdict(place) if isinstance(place, SQLTable) else {"path": os.fspath(place)}
        with parsed_response(self._transport.url):
            return OwnedDataset.read(self._request("POST", "/datasets", {"name": name, "schema": schema.to_toml(), **where}))

    def ceiling(
        self, name: str, epsilon: Any, delta: Any = 0, *, analyst: str | None = None, purpose: str | None = None, what: str = ""
    ) -> tuple[Balance, ...]:
        """Of the whole dataset, or of one analyst, or of one purpose."""
        amounts = {"epsilon": "0" if epsilon in (0, "0") else text_of_fraction(exact_epsilon(epsilon))}
        body = {**amounts, "delta": text_of_fraction(exact_delta(delta)), "analyst": analyst, "purpose": purpose, "what": what}
        with parsed_response(self._transport.url):
            return tuple(map(Balance.read, self._request("POST", f"/datasets/{path_segment(name)}/ceilings", body)["balances"]))

    def close(self, name: str, what: str = "") -> OwnedDataset:
        """For ever: everything later is refused."""
        with parsed_response(self._transport.url):
            return OwnedDataset.read(self._request("POST", f"/datasets/{path_segment(name)}/close", {"what": what}))

    # ------------------------------------------------------------ people

    def people(self) -> tuple[Person, ...]:
        """All analysts and owners."""
        with parsed_response(self._transport.url):
            return tuple(Person.read(found) for found in self._request("GET", "/people")["people"])

    def add(self, name: str, role: Literal["analyst", "owner"] = "analyst") -> Person:
        """Add somebody, who has no token yet."""
        with parsed_response(self._transport.url):
            return Person.read(self._request("POST", "/people", {"name": name, "role": role}))

    def tokens(self, person: str | None = None) -> tuple[Token, ...]:
        """The tokens of somebody, or of all: never the secret itself."""
        with parsed_response(self._transport.url):
            found = self._request("GET", "/tokens" + ("" if person is None else f"?person={path_segment(person)}"))["tokens"]
            return tuple(Token.read(each) for each in found)

    def token(self, person: str, days: int = 90) -> Token:
        """A new one. Its `text` is in this answer only."""
        with parsed_response(self._transport.url):
            return Token.read(self._request("POST", "/tokens", {"person": person, "days": days}))

    def revoke(self, id: str) -> Token:
        """End a token now."""
        with parsed_response(self._transport.url):
            return Token.read(self._request("DELETE", f"/tokens/{path_segment(id)}"))

    def grant(self, analyst: str, dataset: str, *purposes: str) -> tuple[str, ...]:
        """What the analyst may now use the dataset for."""
        return self._granted({"analyst": analyst, "dataset": dataset, "purposes": list(purposes)})

    def withdraw(self, analyst: str, dataset: str, *purposes: str) -> tuple[str, ...]:
        """Take purposes back, all of them where none is given; what is left."""
        return self._granted({"analyst": analyst, "dataset": dataset, "purposes": list(purposes), "withdraw": True})

    def _granted(self, body: dict[str, Any]) -> tuple[str, ...]:
        with parsed_response(self._transport.url):
            return tuple(map(str, self._request("POST", "/grants", body)["purposes"]))

    # ------------------------------------------------------------ the ledger

    def ledger(self, after: int = 0) -> Iterable[Entry]:
        """All entries after a number, fetched a page at a time."""
        while True:
            with parsed_response(self._transport.url):
                page = [Entry.read(found) for found in self._request("GET", f"/ledger?after={after}&most={PAGE}")["entries"]]
            yield from page
            if not page or page[-1].seq <= after:
                return
            after = page[-1].seq

    def export(self, format: Literal["csv", "json"] = "csv") -> bytes:
        """The whole ledger as a file."""
        return self._transport.bytes("GET", f"{OWNER}/ledger/export?format={path_segment(format)}")

    def unsettled(self) -> tuple[Unsettled, ...]:
        """What neither settled nor was given back: under way, or left by a crash and spent."""
        with parsed_response(self._transport.url):
            return tuple(Unsettled.read(found) for found in self._request("GET", "/ledger/unsettled")["unsettled"])

    def lost(self) -> tuple[LostRequest, ...]:
        """What was paid for and has no answer, with the reason."""
        with parsed_response(self._transport.url):
            return tuple(LostRequest.read(found) for found in self._request("GET", "/ledger/lost")["lost"])

    def verify(self) -> Verification:
        """The whole ledger computed again from its entries."""
        with parsed_response(self._transport.url):
            return Verification.read(self._request("GET", "/ledger/verification"))
