"""What other processes do to a ledger: started by the tests as programs, so that they can be killed.

ledger_work.py race ADDRESS THREADS REQUESTS     reserves 0.01 as often as told; prints how often it was paid and refused
ledger_work.py write ADDRESS THREADS             reserves, opens and settles for ever; prints what was acknowledged
"""

from __future__ import annotations

import os
import sys
import threading

from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import BudgetError, LedgerError

said = threading.Lock()


def say(text: str) -> None:
    with said:
        os.write(1, f"{text}\n".encode())


def race(ledger: Ledger, requests: int, results: list[str]) -> None:
    for _ in range(requests):
        try:
            ledger.reserve("patients", "ada", "research", "0.01")
            results.append("paid")
        except LedgerError as error:
            results.append(f"failed: {error}")
        except BudgetError:
            results.append("refused")


def write(ledger: Ledger) -> None:
    while True:
        reserved = ledger.reserve("patients", "ada", "research", "0.003")
        say(f"reserve {reserved.key}")
        ledger.opened(reserved.key)
        say(f"open {reserved.key}")
        ledger.settle(reserved.key, "0.001")
        say(f"settle {reserved.key}")


def main(verb: str, address: str, threads: int, requests: int = 0) -> None:
    ledger = Ledger.open(address)
    results: list[str] = []
    todo = [requests // threads + (number < requests % threads) for number in range(threads)]
    work = [
        threading.Thread(target=race, args=(ledger, count, results)) if verb == "race" else threading.Thread(target=write, args=(ledger,))
        for count in todo
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    for text in results:
        say(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
