"""The same request gets the same answer, and no answer is stored that was not paid for."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from hedgerow.curator.ledger import sql_tables
from hedgerow.curator.ledger.accounts import Accounts
from hedgerow.curator.ledger.answers import Answer, Answers
from hedgerow.curator.ledger.database import open_database
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.transactions import JoinedTransaction, exclusive_transaction
from hedgerow.errors import LedgerError, PlanError

REQUEST, OTHER = hashlib.sha256(b"request").hexdigest(), hashlib.sha256(b"other").hexdigest()
JSON = "application/json"
KILLS = 5 * int(os.environ.get("HEDGEROW_SOAK", "1"))
WRITER = """
import sys
from hedgerow.curator.ledger.answers import Answers
from hedgerow.curator.ledger.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
while True:
    key = ledger.reserve("patients", "ada", "research", "0.003").key
    ledger.opened(key)
    Answers(ledger.database).settle_and_store("ada", key, "0" * 64, key, key.encode() * 1000, "text/plain", spent="0.001")
    print(key, flush=True)
"""


@pytest.fixture
def answers(ledger: Ledger) -> Answers:
    for name in ("ada", "bob"):
        Accounts(ledger.database).add(name)
    return Answers(ledger.database)


def opened(ledger: Ledger, analyst: str = "ada", epsilon: str = "0.05") -> str:
    key = ledger.reserve("patients", analyst, "research", epsilon).key
    ledger.opened(key)
    return key


def test_stored_once_and_given_back(answers: Answers, ledger: Ledger) -> None:
    content = bytes(range(256)) * 1000
    assert answers.stored("ada", "k", REQUEST) is None
    key = opened(ledger)
    first = answers.settle_and_store("ada", "k", REQUEST, key, content, JSON, spent="0.02")
    assert first == answers.stored("ada", "k", REQUEST) == Answer("ada", "k", REQUEST, key, first.when, JSON, content)
    assert (ledger.reservation(key).cost, ledger.verify().sound) == (Fraction(1, 50), True)
    assert answers.settle_and_store("ada", "k", REQUEST, key, b"fresh noise", JSON) == first
    assert answers.store("ada", "k", REQUEST, key, b"fresh noise", JSON) == first
    again = opened(ledger)  # paid again, by somebody who did not ask first: settled, and the first answer is sent
    assert answers.settle_and_store("ada", "k", REQUEST, again, b"fresh noise", JSON) == first
    assert ledger.unsettled() == []


def test_a_key_is_of_one_request_and_one_person(answers: Answers, ledger: Ledger) -> None:
    key = opened(ledger)
    answers.store("ada", "k", REQUEST, key, b"ada's", JSON)
    for step in (
        lambda: answers.stored("ada", "k", OTHER),
        lambda: answers.store("ada", "k", OTHER, key, b"", JSON),
        lambda: answers.settle_and_store("ada", "k", OTHER, key, b"", JSON),
    ):
        with pytest.raises(PlanError, match="another request"):
            step()
    assert answers.stored("bob", "k", REQUEST) is answers.stored("bob", "k", OTHER) is None
    assert answers.store("bob", "k", OTHER, opened(ledger, "bob"), b"bob's", JSON).content == b"bob's"


def test_nothing_is_stored_that_was_not_paid(answers: Answers, ledger: Ledger) -> None:
    fresh, released, free = (ledger.reserve("patients", "ada", "research", "0.1").key for _ in range(3))
    ledger.release(released)
    ledger.settle(free, 0)
    before = ledger.head()
    for reservation, match in ((fresh, "never opened"), (released, "never opened"), (free, "never opened"), ("nobody", "not one of 'ada'")):
        for step in (answers.store, answers.settle_and_store):
            with pytest.raises(LedgerError, match=match):
                step("ada", "k", REQUEST, reservation, b"", JSON)
    of_bob = opened(ledger, "bob")
    with pytest.raises(LedgerError, match="not one of 'ada'"):
        answers.settle_and_store("ada", "k", REQUEST, of_bob, b"", JSON)
    assert (answers.stored("ada", "k", REQUEST), ledger.reservation(of_bob).state, before.seq + 2) == (None, "open", ledger.head().seq)


def test_a_settle_that_is_refused_stores_nothing_and_the_other_way_round(
    answers: Answers, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = opened(ledger)
    with pytest.raises(LedgerError, match="at most what was reserved"):
        answers.settle_and_store("ada", "k", REQUEST, key, b"", JSON, spent=1)
    with monkeypatch.context() as patched:
        patched.setattr(answers, "store", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            answers.settle_and_store("ada", "k", REQUEST, key, b"", JSON)
    assert (answers.stored("ada", "k", REQUEST), ledger.reservation(key).state) == (None, "open")
    with pytest.raises(LedgerError, match="cannot be used"):  # nobody of that name: the database refuses, and the settle is undone
        answers.settle_and_store("eve", "k", REQUEST, opened(ledger, "eve"), b"", JSON)
    assert len(ledger.unsettled()) == 2
    assert ledger.verify().sound


def test_part_of_another_transaction(answers: Answers, ledger: Ledger) -> None:
    key = opened(ledger)

    def both(then: Callable[[], Any]) -> None:
        with exclusive_transaction(ledger.database) as connection:
            Ledger(JoinedTransaction(ledger.database, connection)).settle(key)
            answers.store("ada", "k", REQUEST, key, b"", JSON, connection=connection)
            then()

    with pytest.raises(ZeroDivisionError):
        both(lambda: 1 / 0)
    assert (answers.stored("ada", "k", REQUEST), ledger.reservation(key).state, ledger.verify().sound) == (None, "open", True)
    both(lambda: None)
    assert answers.stored("ada", "k", REQUEST) is not None
    assert (ledger.reservation(key).state, ledger.verify().sound) == ("settled", True)


@pytest.mark.parametrize("own_charge", [False, True])
def test_sixteen_threads_get_one_answer(answers: Answers, ledger: Ledger, address: str, own_charge: bool) -> None:
    keys = [opened(ledger) for _ in range(16)] if own_charge else [opened(ledger)] * 16
    others = [answers, Answers(open_database(address))]  # two databases are as two processes: they share no lock in memory
    results: list[Any] = []
    start = threading.Barrier(16)

    def work(number: int) -> None:
        start.wait()
        try:
            content = f"noise {number}".encode()
            results.append(others[number % len(others)].settle_and_store("ada", "k", REQUEST, keys[number], content, JSON))
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 16
    assert set(results) == {answers.stored("ada", "k", REQUEST)}
    with ledger.database.reading() as connection:
        assert connection.execute(sql.select(sql.func.count()).select_from(sql_tables.answers)).scalar() == 1
    assert (ledger.unsettled(), ledger.verify().sound) == ([], True)
    for each in others[1:]:
        each.database.close()


def test_odd_keys_and_what_is_refused(answers: Answers, ledger: Ledger) -> None:
    odd = ["o'Hara; DROP TABLE curator_answers;--", "名前", "a\nb", "🦔" * 200, "K", "k", "%_\\"]
    for name in odd:
        key = opened(ledger)
        answers.store("ada", name, REQUEST, key, name.encode(), JSON)
    for name in odd:
        found = answers.stored("ada", name, REQUEST)
        assert found is not None
        assert found.content == name.encode()
    wrong: list[Callable[[], Any]] = [
        lambda: answers.stored("ada", "", REQUEST),
        lambda: answers.stored("ada", "a\0", REQUEST),
        lambda: answers.stored("", "k", REQUEST),
        lambda: answers.stored("ada", "new", "abc"),
        lambda: answers.stored("ada", "new", REQUEST.upper()),
        lambda: answers.stored("ada", "new", None),  # type: ignore[arg-type]
        lambda: answers.store("ada", "new", REQUEST, key, "text", JSON),  # type: ignore[arg-type]
        lambda: answers.store("ada", "new", REQUEST, key, b"", ""),
        lambda: answers.store("ada", "x" * 201, REQUEST, key, b"", JSON),
        lambda: answers.store("ada", "new", REQUEST, key, b"", JSON),  # it has paid for another
    ]
    for step in wrong:
        with pytest.raises(LedgerError, match="expected"):
            step()


def test_answers_outlive_the_process(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    Accounts(ledger.database).add("ada")
    ledger.ceiling("patients", 1)
    stored = Answers(ledger.database).settle_and_store("ada", "k", REQUEST, opened(ledger), b"\0\xff", JSON)
    ledger.database.close()
    with Ledger.open(tmp_path).database as database:
        assert Answers(database).stored("ada", "k", REQUEST) == stored


@pytest.mark.slow
def test_killed_at_any_moment_there_are_charge_and_answer_or_neither(answers: Answers, ledger: Ledger, address: str) -> None:
    ledger.ceiling("patients", 100)
    acknowledged: set[str] = set()
    for _ in range(KILLS):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, address], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(random.Random().uniform(0, 0.1))
        writer.kill()
        lines = (first + writer.communicate()[0]).split("\n")[:-1]  # what has no end of line was not said
        assert lines
        acknowledged |= set(lines)
    with ledger.database.reading() as connection:
        stored = set(connection.execute(sql.select(sql_tables.answers.c.reservation)).scalars())
        reservations = Ledger(JoinedTransaction(ledger.database, connection)).reservations("patients")  # of the same snapshot
    settled = {reserved.key for reserved in reservations if reserved.state == "settled"}
    assert acknowledged <= stored == settled
    assert ledger.verify().sound
    for key in acknowledged:
        found = answers.stored("ada", key, "0" * 64)
        assert found is not None
        assert found.content == key.encode() * 1000
