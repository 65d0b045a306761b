"""The steps of a reservation, the ceilings, what is refused and how, questions and export."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction

import pytest

from hedgerow.curator.ledger.chain import LedgerEntry, hash_of
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import BudgetError, LedgerError, PlanError

WHO = ("patients", "ada", "research")


def test_three_thirds_are_one(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.reserve(*WHO, "1/3")
    assert ledger.balance("patients").remaining == 0
    with pytest.raises(BudgetError, match="used up"):
        ledger.reserve(*WHO, Fraction(1, 10**12))


def test_what_is_not_spent_comes_back(ledger: Ledger) -> None:
    reserved = ledger.reserve(*WHO, "0.5", what="fit")
    assert (reserved.state, ledger.unsettled()) == ("reserved", [reserved])
    assert ledger.opened(reserved.key).state == "open"
    assert ledger.opened(reserved.key).state == "open"  # once more is no harm, and no entry
    settled = ledger.settle(reserved.key, "0.2")
    assert (settled, settled.cost, ledger.unsettled()) == (ledger.reservation(reserved.key), Fraction(1, 5), [])
    assert ledger.release(ledger.reserve(*WHO, "0.8").key).state == "released"
    for balance in ledger.balances():
        assert balance.spent == Fraction(1, 5)
    assert [entry.kind for entry in ledger.entries()] == ["ceiling", "reserve", "open", "settle", "reserve", "release"]
    assert ledger.verify(ledger.head()).sound


def test_steps_that_do_not_follow_change_nothing(ledger: Ledger) -> None:
    settled, released, opened, fresh = (ledger.reserve(*WHO, "0.1", key=key) for key in ("settled", "released", "opened", "fresh"))
    for key in (settled.key, opened.key):
        ledger.opened(key)
    ledger.settle("settled", "0.05")
    ledger.release("released")
    before = ledger.head()
    for step, match in (
        (lambda: ledger.settle("settled", "0.05"), "settled already"),
        (lambda: ledger.release("settled"), "settled already"),
        (lambda: ledger.opened("settled"), "settled already"),
        (lambda: ledger.settle("released"), "released already"),
        (lambda: ledger.release("released"), "released already"),
        (lambda: ledger.release("opened"), "was opened"),
        (lambda: ledger.settle("opened", "0.11"), "at most what was reserved"),
        (lambda: ledger.settle("fresh"), "never opened"),
        (lambda: ledger.settle("nobody"), "not in the ledger"),
        (lambda: ledger.reserve(*WHO, "0.1", key="fresh"), "exists already"),
        (lambda: ledger.reserve("unknown", "ada", "research", 1), "no ceiling"),
        (lambda: ledger.ceiling("unknown", 1, analyst="ada"), "no ceiling"),
        (lambda: ledger.ceiling("patients", 1, analyst="ada", purpose="research"), "Set two"),
        (lambda: ledger.close("unknown"), "no ceiling"),
        (lambda: ledger.reserve("patients", " ada", "research", 1), "blanks"),
        (lambda: ledger.reserve("patients", "a\0da", "research", 1), "UTF-8"),
        (lambda: ledger.reserve(*WHO, "0.1", what="\ud800"), "UTF-8"),
        (lambda: ledger.export("xml"), "csv"),
    ):
        with pytest.raises(LedgerError, match=match):
            step()
    for epsilon in (0, -1, None, True, float("nan"), "much"):
        with pytest.raises(PlanError):
            ledger.reserve(*WHO, epsilon)
    assert (ledger.head(), fresh.state, released.state) == (before, "reserved", "reserved")
    assert ledger.settle("fresh", 0).cost == 0


def test_the_tightest_ceiling_refuses_and_is_named(ledger: Ledger) -> None:
    ledger.ceiling("patients", "0.5", analyst="ada")
    ledger.ceiling("patients", "0.25", purpose="research")
    with pytest.raises(
        BudgetError, match=r"purpose 'research' on dataset 'patients'.*ε = 0\.3, remaining 0\.25 of 0\.25, short by 0\.05\. Nothing was"
    ):
        ledger.reserve(*WHO, "0.3")
    ledger.reserve("patients", "ada", "teaching", "0.3")
    with pytest.raises(BudgetError, match=r"analyst 'ada'.*remaining 0\.2 of 0\.5"):
        ledger.reserve(*WHO, "0.25")
    ledger.reserve("patients", "bob", "care", "0.6")
    with pytest.raises(BudgetError, match=r"of dataset 'patients' refuses.*remaining 0\.1 of 1,"):
        ledger.reserve(*WHO, "0.2")
    ledger.reserve(*WHO, "0.1")
    assert ledger.verify().sound


def test_ceilings_move_and_count_what_came_before(ledger: Ledger) -> None:
    ledger.reserve(*WHO, "0.6")
    ledger.ceiling("patients", "0.5", analyst="ada")
    with pytest.raises(BudgetError, match=r"analyst 'ada'.*remaining 0 of 0\.5, short by 0\.1"):
        ledger.reserve(*WHO, "0.1")
    ledger.ceiling("patients", 2, analyst="ada")
    ledger.ceiling("patients", 0)
    assert ledger.balance("patients").remaining == 0
    with pytest.raises(BudgetError, match="dataset 'patients' refuses"):
        ledger.reserve(*WHO, "0.1")
    ledger.ceiling("patients", "0.7")
    ledger.reserve(*WHO, "0.1")
    assert ledger.verify().sound


def test_delta_has_its_own_ceiling_and_is_spent_whole(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="pure ε alone"):
        ledger.reserve(*WHO, "0.1", "1e-6")
    ledger.ceiling("patients", 1, "1e-6")
    reserved = ledger.reserve(*WHO, "0.1", "1e-6")
    with pytest.raises(BudgetError, match="requested δ = 1e-06, remaining 0 of 1e-06"):
        ledger.reserve(*WHO, "0.1", "1e-6")
    ledger.release(reserved.key)
    reserved = ledger.reserve(*WHO, "0.1", "1e-6")
    ledger.opened(reserved.key)
    with pytest.raises(LedgerError, match="nothing is given back"):
        ledger.settle(reserved.key, "0.05")
    ledger.settle(reserved.key)
    assert (ledger.balance("patients").spent_delta, ledger.verify().sound) == (Fraction(1, 10**6), True)


def test_after_closing_nothing_is_opened_and_what_was_open_may_end(ledger: Ledger) -> None:
    ledger.ceiling("other", 1)
    first, second = ledger.reserve(*WHO, "0.1"), ledger.reserve(*WHO, "0.1")
    ledger.opened(first.key)
    ledger.close("patients", "the study has ended")
    for step in (
        lambda: ledger.reserve(*WHO, "0.1"),
        lambda: ledger.opened(second.key),
        lambda: ledger.close("patients"),
        lambda: ledger.ceiling("patients", 5),
        lambda: ledger.ceiling("patients", 5, analyst="ada"),
    ):
        with pytest.raises(LedgerError, match="is closed"):
            step()
    ledger.settle(first.key, "0.05")
    ledger.release(second.key)
    ledger.reserve("other", "ada", "research", 1)
    assert ledger.verify().sound


def test_numbers_that_grow_for_ever_are_refused(ledger: Ledger) -> None:
    def reserve_odd_shares() -> None:
        for number in range(1, 100):
            ledger.reserve(*WHO, Fraction(1, 10**40 + 2 * number + 1))

    with pytest.raises(LedgerError, match="too many digits"):
        reserve_odd_shares()
    ledger.ceiling("other", 1)
    ledger.reserve("other", "bob", "care", "1/3")
    assert ledger.verify().sound


def test_a_ledger_opened_again_is_the_same(ledger: Ledger, address: str) -> None:
    reserved = ledger.reserve(*WHO, "0.1", what="Straße, 'quoted', €")
    again = Ledger.open(address)
    assert (again.head(), again.unsettled(), again.balances()) == (ledger.head(), [reserved], ledger.balances())
    again.database.close()


def test_export(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow.curator.ledger.ledger.PAGE", 2)
    for what in ("=1+1", "+1", "-1", "@x", 'a "fit", done\nwell'):
        ledger.reserve(*WHO, "0.01", what=what)
    rows = list(csv.DictReader(io.StringIO("".join(ledger.export("csv")), newline="")))
    assert [row["what"] for row in rows] == ["", "'=1+1", "'+1", "'-1", "'@x", 'a "fit", donewell']
    assert list(rows[0]) == [field.name for field in fields(LedgerEntry)]
    items = json.loads("".join(ledger.export("json")))
    previous = "0" * 64
    for number, item in enumerate(items, 1):
        entry = LedgerEntry(**item)
        assert (entry.seq, entry.previous, entry.hash) == (number, previous, hash_of(entry))
        previous = entry.hash
    assert (len(items), previous) == (6, ledger.head().hash)


def test_an_empty_ledger(new_address: Callable[[], str]) -> None:
    ledger = Ledger.open(new_address())
    assert json.loads("".join(ledger.export("json"))) == []
    assert (ledger.head().seq, ledger.unsettled(), ledger.balances(), ledger.verify(ledger.head()).sound) == (0, [], [], True)
    ledger.database.close()


def test_the_hash_is_what_it_was() -> None:
    """A ledger that was written by an older hedgerow must verify for ever."""
    entry = LedgerEntry(1, "2026-01-02T03:04:05Z", "reserve", "k", "patients", "ada", "research", "fit é", "1/3", "0", "0" * 64)
    assert hash_of(entry) == "ccd73b08a806313f81e234bbede2b73e6cbf01917ced2ba3aa99df7fcb64696e"
