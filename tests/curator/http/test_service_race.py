"""Sixty-four clients over real connections: for a budget that pays for exactly a hundred of their requests, and with one key for all.

HEDGEROW_SOAK=10: ten times.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest
from curator.http.conftest import SCHEMA, bearer
from curator.http.serving import Served, books_at, served, wait_until

from hedgerow.curator.http.service_context import Curator

SOAK = int(os.environ.get("HEDGEROW_SOAK", "1"))
CLIENTS, REQUESTS, PAID = 64, 1000, 100
FOREST: dict[str, Any] = {"purpose": "research", "epsilon": "0.1", "algorithm": "rdt", "settings": {"n_estimators": 3, "max_depth": 2}}
PATH = "/v1/datasets/patients/forests"


@pytest.mark.curator
@pytest.mark.parametrize("round", range(SOAK))
def test_sixty_four_clients(address: str, tmp_path: Path, file: Path, round: int) -> None:
    folder, ledger = books_at(address, tmp_path)
    limits = tmp_path / "limits.toml"
    limits.write_text(f"waiting = {REQUESTS}\nwaiting_each = {REQUESTS}\nrequests = {2 * CLIENTS}\nrequests_each = {2 * CLIENTS}\n")
    with served(folder, ledger, "--limits", str(limits)) as service, closing(Curator.open(folder, ledger)) as curator:
        owner = bearer(service.token)
        curator.accounts.add("ada")
        ada = bearer(curator.accounts.issue("ada")[0])
        for name, epsilon in (("patients", Fraction(PAID, 10)), ("once", Fraction(1))):
            curator.registry.register(name, file, SCHEMA)
            curator.accounts.grant("ada", name, ["research"])
            curator.ledger.ceiling(name, epsilon)
        race_for_the_budget(service, curator, ada)
        race_with_one_key(service, curator, ada)
        wait_until(lambda: not curator.ledger.unsettled(), 120, 0.1)
        assert {curator.ledger.reservation(r.key).state for r in curator.ledger.reservations("patients")} == {"settled"}
        assert curator.ledger.balance("patients").spent == Fraction(PAID, 10)
        with service.client() as client:
            assert client.get("/v1/owner/ledger/verification", headers=owner).json()["sound"]


def race_for_the_budget(service: Served, curator: Curator, ada: dict[str, str]) -> None:
    answers = asked_at_once(service, [(PATH, {**ada, "Idempotency-Key": f"k{number}"}) for number in range(REQUESTS)])
    assert Counter(answer.status_code for answer in answers) == {202: PAID, 402: REQUESTS - PAID}
    paid = [answer.json()["id"] for answer in answers if answer.status_code == 202]
    assert sorted(paid) == sorted(reserved.key for reserved in curator.ledger.reservations("patients"))
    assert len(set(paid)) == PAID
    balance = curator.ledger.balance("patients")
    assert balance.spent == balance.epsilon == Fraction(PAID, 10)
    assert curator.ledger.verify().sound


def race_with_one_key(service: Served, curator: Curator, ada: dict[str, str]) -> None:
    path = PATH.replace("patients", "once")
    answers = asked_at_once(service, [(path, {**ada, "Idempotency-Key": "the same"})] * CLIENTS)
    (only,) = curator.ledger.reservations("once")
    assert {(answer.status_code, answer.json()["id"]) for answer in answers} == {(202, only.key)}
    assert curator.ledger.balance("once").spent == Fraction(1, 10)


def asked_at_once(service: Served, requests: list[tuple[str, dict[str, str]]]) -> list[httpx.Response]:
    """By 64 clients, each with a connection of its own, who begin together."""
    barrier = Barrier(CLIENTS)

    def client(number: int) -> list[httpx.Response]:
        with service.client() as own:
            barrier.wait(180)
            return [own.post(path, json=FOREST, headers=headers) for path, headers in requests[number::CLIENTS]]

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [answer for answers in pool.map(client, range(CLIENTS)) for answer in answers]
