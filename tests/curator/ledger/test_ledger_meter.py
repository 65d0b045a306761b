"""The battery of every budget, on a ledger; and real requests that are paid from one."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from contracts.test_meters import (  # noqa: F401  collected here, with the ledger's own `make_budget`
    check_interleaved,
    look,
    test_a_charge_must_be_an_exact_fraction,
    test_a_copy_is_the_same_budget,
    test_a_reservation_pays_only_what_it_holds,
    test_bad_amounts_spend_nothing,
    test_entries_cannot_be_changed_from_outside,
    test_exact_to_the_last_tenth,
    test_many_threads_never_overspend,
    test_numpy_numbers_do_not_wrap_around,
    test_one_unit_wins_a_race,
    test_refusal_says_requested_remaining_and_difference,
    test_the_first_request_is_the_unit_and_others_are_refused,
    test_what_was_not_used_comes_back_only_after_a_good_end,
    test_whoever_says_nothing_asks_for_rows,
)
from strategies import small_schema, small_table

from hedgerow import Budget, PrivateRDTClassifier, private_score
from hedgerow.curator.ledger.budget import LedgerBudget
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import BudgetError, LedgerError
from hedgerow.private_table import PrivateTable

Make = Callable[[Any], Budget]


@pytest.fixture
def make_budget(address: str) -> Make:
    def make(epsilon: Any) -> Budget:
        ledger = Ledger.open(address)
        ledger.ceiling("patients", epsilon)
        return LedgerBudget(ledger, "patients", "ada", "research")

    return make


@pytest.fixture
def budget(ledger: Ledger) -> LedgerBudget:
    return LedgerBudget(ledger, "patients", "ada", "research")


def test_the_tightest_ceiling_is_the_budget(budget: LedgerBudget) -> None:
    ledger = budget.ledger
    ledger.ceiling("patients", 1, "1e-6")
    ledger.reserve("patients", "bob", "care", "0.7")
    assert (budget.epsilon, budget.spent, budget.remaining, budget.delta) == (1, Fraction(7, 10), Fraction(3, 10), Fraction(1, 10**6))
    ledger.ceiling("patients", "0.2", analyst="ada")
    assert (budget.epsilon, budget.spent, budget.remaining, budget.remaining_delta) == (Fraction(1, 5), 0, Fraction(1, 5), 0)
    budget.reserve("0.1", "fit")
    assert (budget.spent, budget.remaining, [entry.cost for entry in budget.entries]) == (*[Fraction(1, 10)] * 2, [Fraction(1, 10)])
    assert "remaining 0.1" in repr(budget)


@pytest.mark.parametrize("seed", [0, 1])
def test_requests_that_interleave_never_overspend(ledger: Ledger, seed: int) -> None:
    ledger.ceiling("patients", 2, "1e-5")
    assert check_interleaved(LedgerBudget(ledger, "patients", "ada", "research"), seed, 80) > 2
    assert ledger.verify().sound


def test_a_dataset_without_a_ceiling(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no ceiling"):
        LedgerBudget(ledger, "unknown", "ada", "research")


def test_a_fit_and_a_score_are_charged_and_settled(budget: LedgerBudget) -> None:
    X, y = small_table(200)
    model = PrivateRDTClassifier(small_schema(), "1/3", n_estimators=3, max_depth=2, budget=budget).fit(X, y)
    assert budget.spent == Fraction(model.release_.certificate.epsilon) <= Fraction(1, 3)
    spent = budget.spent
    private_score(model.release_, X, y, epsilon="0.1", budget=budget)
    assert budget.spent == spent + Fraction(1, 10)
    assert [entry.kind for entry in budget.ledger.entries()] == ["ceiling", *["reserve", "open", "settle"] * 2]
    with pytest.raises(BudgetError, match="dataset 'patients'"):
        PrivateRDTClassifier(small_schema(), 1, budget=budget).fit(X, y)
    assert (budget.ledger.unsettled(), budget.ledger.verify().sound) == ([], True)


def test_with_a_delta_the_whole_is_kept(budget: LedgerBudget) -> None:
    budget.ledger.ceiling("patients", 1, "1e-5")
    reservation = budget.reserve("0.5", "fit", "1e-6")
    reservation.charge(look("0.1"))
    reservation.settle()
    assert (budget.spent, budget.spent_delta, budget.ledger.unsettled()) == (Fraction(1, 2), Fraction(1, 10**6), [])
    (entry,) = budget.entries
    assert (entry.spent, entry.delta) == (Fraction(1, 2), Fraction(1, 10**6))
    assert budget.ledger.verify().sound


def test_a_crash_in_the_middle_leaves_it_spent(budget: LedgerBudget, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    looked = PrivateTable.released

    def crashes(*given: Any, **named: Any) -> Any:
        looked(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivateTable, "released", crashes)
    X, y = small_table(200)
    with pytest.raises(KeyboardInterrupt):
        PrivateRDTClassifier(small_schema(), "0.4", max_depth=2, budget=budget).fit(X, y)
    again = Ledger.open(address)
    (lost,) = again.unsettled()
    assert (lost.state, lost.epsilon, again.balance("patients").spent) == ("open", Fraction(2, 5), Fraction(2, 5))
    with pytest.raises(LedgerError, match="was opened"):
        again.release(lost.key)
    assert again.verify().sound
    again.database.close()


def test_a_refused_request_looks_at_nothing(budget: LedgerBudget) -> None:
    """Between the reservation and the first look the owner has closed the dataset; and between two looks."""
    first, second = budget.reserve("0.2", "first"), budget.reserve("0.2", "second")
    first.charge(look("0.1"))
    budget.ledger.close("patients")
    for reservation in (first, second):
        with pytest.raises(LedgerError, match="is closed"):
            reservation.charge(look("0.1"))
    assert [reserved.state for reserved in budget.ledger.unsettled()] == ["open", "reserved"]


def test_a_settle_that_fails_is_told_and_leaves_it_spent(budget: LedgerBudget, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise LedgerError("the disk is full")

    monkeypatch.setattr(Ledger, "settle", fails)
    X, y = small_table(200)
    with pytest.warns(match="could not be given back"):
        PrivateRDTClassifier(small_schema(), "0.4", max_depth=2, budget=budget).fit(X, y)
    assert budget.spent == Fraction(2, 5)


def test_it_does_not_travel_and_shows_no_password(budget: LedgerBudget) -> None:
    for thing in (budget, budget.ledger.database):
        with pytest.raises(LedgerError, match="open"):
            pickle.dumps(thing)


def _reserves(budget: Budget, results: Any) -> None:
    try:
        budget.reserve("0.6", "in a child")
        results.put("paid")
    except BudgetError as error:
        results.put(str(error))


def test_a_fork_shares_the_money_and_not_the_connection(budget: LedgerBudget) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    for expected in ("paid", "short by 0.2"):
        child = context.Process(target=_reserves, args=(budget, results))
        child.start()
        assert expected in results.get(timeout=180)
        child.join()
    assert budget.remaining == Fraction(2, 5)
    budget.reserve("0.4", "in the parent")
    assert budget.ledger.verify().sound
