"""A service that is killed at any moment, as a whole or in part, while people ask: nothing that was paid, answered or decided is lost.

HEDGEROW_SOAK=10: ten times as often.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sql
from curator.http.clients import RAISE, Analyst, Owner
from curator.http.conftest import SCHEMA
from curator.http.serving import Served, books_at, served, wait_until

from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger import sql_tables
from hedgerow.curator.ledger.chain import SETTLE

SOAK = int(os.environ.get("HEDGEROW_SOAK", "1"))
AT_ONCE = 2  # services, one for each core
LIVES = [  # of a service: who is killed and when; each siege meets all of them, in an order of its own
    [("service", "start")], [("all", "start")], [("service", "training")], [("all", "training")], [("service", "writing")],
    [("all", "writing")], [("worker", "training"), ("all", "settling")], [("worker", "writing"), ("service", "settling")],
] * SOAK  # fmt: skip
KILLS = 10 * SOAK


@pytest.mark.curator
def test_killed_at_any_moment(new_address: Callable[[], str], tmp_path: Path, file: Path) -> None:
    sieges = [Siege(new_address(), tmp_path / str(number), file, random.Random(number)) for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for result in [pool.submit(siege.run) for siege in sieges]:
            result.result()
    assert sum(siege.killed.total() for siege in sieges) == AT_ONCE * KILLS
    assert sum(siege.left_open for siege in sieges) >= SOAK  # some were killed in the middle of a training
    assert all(siege.analyst.seen and siege.owner.people and siege.analyst.refused for siege in sieges)


class Siege:
    """One service, its books, and two people who use it."""

    def __init__(self, address: str, tmp_path: Path, file: Path, chance: random.Random) -> None:
        tmp_path.mkdir()
        self.folder, self.ledger = books_at(address, tmp_path)
        self.curator = curator = Curator.open(self.folder, self.ledger)
        self.name = tmp_path.name + secrets.token_hex(4)  # of the service's connections
        self.of_the_service = None if self.ledger is None else f"{self.ledger}&application_name={self.name}"
        token = curator.accounts.first_owner()
        assert token is not None
        curator.accounts.add("ada")
        curator.registry.register("patients", file, SCHEMA)
        curator.accounts.grant("ada", "patients", ["research"])
        curator.ledger.ceiling("patients", 1)
        self.analyst = Analyst(curator.accounts.issue("ada")[0], chance)
        self.owner = Owner(token, chance, analyst=self.analyst)
        self.chance, self.killed, self.left_open = chance, Counter[tuple[str, str]](), 0

    def run(self) -> None:
        lives = LIVES.copy()
        self.chance.shuffle(lives)
        with closing(self.curator):
            for kills in lives:
                service = Served(self.folder, self.of_the_service)
                try:
                    self.live(service, kills)
                finally:
                    service.kill_all()
                self.check_books()
            with served(self.folder, self.of_the_service) as service:
                self.check_told(service)

    def live(self, service: Served, kills: list[tuple[str, str]]) -> None:
        """From the start of a service to its end."""
        how = {"service": service.kill_service, "worker": service.kill_workers, "all": service.kill_all}
        if kills[0][1] == "start":
            time.sleep(self.chance.uniform(0, 1.5))
        else:
            self.check_told(service.ready())
            people = [self.owner.begin(service), self.analyst.begin(service)]
        for whom, when in kills:
            old = self.unsettled()
            if when != "start":
                self.await_moment(when, old)
            how[whom]()
            self.killed[whom, when] += 1
            if whom == "worker":
                self.await_answer(len(self.analyst.seen))  # another one goes on
            self.left_open += bool(self.unsettled(opened=True) - old)
        if kills[0][1] != "start":
            for person in people:
                person.join(60)
            assert self.owner.problems == self.analyst.problems == []

    def await_moment(self, when: str, old: set[str]) -> None:
        """Of a change by the owner, in the middle of a training, or just after its last look at the rows, when nobody has its answer."""
        acknowledged, seq = self.owner.acknowledged, self.curator.ledger.head().seq
        came = {
            "writing": lambda: self.owner.acknowledged > acknowledged,
            "training": lambda: bool(self.unsettled(opened=True) - old),
            "settling": lambda: any(entry.kind == SETTLE for entry in self.curator.ledger.entries(seq)),
        }
        wait_until(came[when], step=0.001)
        time.sleep(self.chance.uniform(0, 0.02 if when == "settling" else 0.2))

    def await_answer(self, before: int) -> None:
        wait_until(lambda: len(self.analyst.seen) > before)

    def unsettled(self, opened: bool = False) -> set[str]:
        return {reserved.key for reserved in self.curator.ledger.unsettled() if reserved.opened or not opened}

    def connected(self) -> bool:
        """Whether the server still knows a connection of the service."""
        with self.curator.database.reading() as connection:
            found = connection.exec_driver_sql("SELECT 1 FROM pg_stat_activity WHERE application_name = %s", (self.name,))
            return found.first() is not None

    def check_books(self) -> None:
        """What must be true between two services."""
        curator, ledger = self.curator, self.curator.ledger
        if self.ledger is not None:
            wait_until(lambda: not self.connected())  # the server may be at work for somebody who is gone
        verified = ledger.verify()
        assert verified.sound, verified
        assert not [balance for balance in ledger.balances() if balance.overspent()]
        with curator.database.reading() as connection:
            answers = list(connection.execute(sql.select(sql_tables.answers)))
        paid = {reserved.key: reserved for reserved in ledger.reservations("patients")}
        assert len({answer.reservation for answer in answers}) == len(answers)  # each has a charge of its own
        assert all(paid[answer.reservation].opened and paid[answer.reservation].cost for answer in answers)
        assert {key for key, reserved in paid.items() if reserved.state == "settled"} == {answer.reservation for answer in answers}
        stored = {answer.reservation: bytes(answer.content) for answer in answers}
        assert {path.stem: path.read_bytes().removesuffix(b"\n") for path in curator.releases.glob("*.json")}.items() <= stored.items()
        assert {result.rpartition("/")[2]: content for result, content in self.analyst.seen.items()}.items() <= stored.items()
        assert {id for request in self.analyst.requests.values() for id in request.ids} <= paid.keys()
        self.check_decisions()

    def check_decisions(self) -> None:
        """Whatever the owner was told is done."""
        accounts, balances = self.curator.accounts, {balance.name: balance for balance in self.curator.ledger.balances("patients")}
        people = {person.name: person for person in accounts.people()}
        assert self.owner.people <= people.keys()
        assert all(accounts.purposes(people[name], "patients") == ("research",) for name in self.owner.granted)
        assert all(balances[name].epsilon == 1 for name in self.owner.limited)
        ceiling = self.curator.ledger.balance("patients").epsilon
        assert ceiling is not None
        assert self.owner.ceiling <= ceiling <= self.owner.ceiling + RAISE
        for token, name in self.owner.tokens.items():
            found = accounts.authenticate(token)
            assert found == people[name] or (found is None and token in self.owner.revoking)
            assert found is None or token not in self.owner.revoked

    def check_told(self, service: Served) -> None:
        """What a start tells, and what a request that is sent again gets: the stored answer, what is lost, or it is begun."""
        told = {line["job"] for line in service.log() if line["event"] == "never settled"}
        assert told == self.unsettled() == self.unsettled(opened=True)  # what was not opened is given back
        assert ("never settled" in service.said.read_text() + service.logged.read_text()) == bool(told)
        assert not [line for line in service.log() if line["event"] == "settled without an answer"]
        before = {reserved.key for reserved in self.curator.ledger.reservations("patients")}
        analyst = self.analyst
        with service.client() as client:
            for result in list(analyst.seen)[-20:]:
                analyst.look(client, result)
            for key in list(analyst.requests)[-2:]:
                asked = analyst.requests[key]
                ids, content = asked.ids.copy(), asked.content
                analyst.again(client, key)
                new = asked.ids - ids
                assert content is None or (not new and asked.content == content)
                paid = {reserved.key for reserved in self.curator.ledger.reservations("patients") if reserved.cost}
                # What was paid before has an answer, or is told as lost. (What was given back may be refused now: others have spent it.)
                assert asked.content is not None or (ids | (new & before)) & paid <= told
        assert analyst.problems == []
