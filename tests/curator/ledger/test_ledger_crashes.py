"""Many clients at once, and clients that are killed at any moment. HEDGEROW_SOAK=10: ten times as often."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from hedgerow.curator.ledger.database import open_database
from hedgerow.curator.ledger.ledger import Ledger

WORK = [sys.executable, str(Path(__file__).parent / "ledger_work.py")]
SOAK = int(os.environ.get("HEDGEROW_SOAK", "1"))
PROCESSES, THREADS, REQUESTS, PAID, KILLS = 4, 16, 1000, 100, 20 * SOAK


@pytest.mark.slow
@pytest.mark.parametrize("round", range(SOAK))
def test_sixty_four_clients_race_for_what_pays_for_a_hundred(ledger: Ledger, address: str, round: int) -> None:
    words = [*WORK, "race", address, str(THREADS), str(REQUESTS // PROCESSES)]
    clients = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    results = Counter(line for client in clients for line in client.communicate(timeout=300)[0].splitlines())
    assert results == {"paid": PAID, "refused": REQUESTS - PAID}
    assert (ledger.balance("patients").remaining, ledger.head().seq) == (0, 1 + PAID)
    assert ledger.verify().sound


@pytest.mark.slow
def test_clients_that_make_the_tables_at_once(address: str) -> None:
    words = [*WORK, "race", address, "1", "0"]
    clients = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    for client in clients:
        client.communicate(timeout=300)
    assert [client.returncode for client in clients] == [0] * PROCESSES
    with open_database(address) as database:
        assert Ledger(database).verify().sound


@pytest.mark.slow
def test_killed_at_any_moment(ledger: Ledger, address: str) -> None:
    """What was acknowledged is there, what is there was possible, and a reservation that never settled is spent and told."""
    ledger.ceiling("patients", 100)
    chance = random.Random()
    for _ in range(KILLS):
        writer = subprocess.Popen([*WORK, "write", address, "2"], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.2))
        writer.kill()
        lines = (first + writer.communicate()[0]).decode().splitlines()
        assert lines[0].startswith("reserve ")  # it was killed while it wrote, not before
        steps = {line for line in lines if len(line.split()) == 2}
        found = {f"{entry.kind} {entry.key}" for entry in ledger.entries()}
        assert steps <= found
        verified = ledger.verify()
        assert verified.sound, verified
    everything = ledger.reservations("patients")
    spent = sum((reserved.cost for reserved in everything), Fraction(0))
    assert ledger.balance("patients").spent == spent <= 100
    assert {reserved.key for reserved in ledger.unsettled()} == {r.key for r in everything if not r.ended}
    ledger.reserve("patients", "ada", "research", "0.1")
