"""The numbers of a budget and of its reservations, one by one: the smallest amounts, the last of the money, what a refusal leaves."""

from __future__ import annotations

import copy
import pickle
import re
from fractions import Fraction
from typing import Any

import pytest

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, EXPONENTIAL, Event
from hedgerow.accounting.meter import Budget, Entry, Reservation, checked_budget
from hedgerow.accounting.units import ROW, Unit
from hedgerow.accounting.zcdp import rho_for
from hedgerow.errors import BudgetError, PlanError

TINY = Fraction(1, 10**9)
DELTA = Fraction(1, 10**6)


def laplace(epsilon: Any, mechanism: str = DISCRETE_LAPLACE, rho: Any = Fraction(0)) -> Event:
    return Event("rows", mechanism, epsilon, 1, Fraction(1), Fraction(1), rho)


def gaussian(rho: Any, epsilon: Any = Fraction(0)) -> Event:
    return Event("rows", DISCRETE_GAUSSIAN, epsilon, 1, Fraction(1), Fraction(1), rho)


def test_an_entry_costs_what_it_reserved_until_it_has_settled() -> None:
    assert Entry("k", "t", "w", Fraction(1)).cost == 1
    assert Entry("k", "t", "w", Fraction(1), Fraction(0)).cost == 0
    assert Entry("k", "t", "w", Fraction(1), Fraction(1, 3)).cost == Fraction(1, 3)
    assert Entry("k", "t", "w", Fraction(1)).delta == 0


def test_the_totals_of_a_new_budget() -> None:
    budget = Budget(3)
    assert (budget.epsilon, budget.delta, budget.entries) == (3, 0, ())
    assert (budget.spent, budget.remaining, budget.spent_delta, budget.remaining_delta) == (0, 3, 0, 0)
    both = Budget(3, DELTA)
    assert (both.delta, both.spent_delta, both.remaining_delta) == (DELTA, 0, DELTA)


def test_a_request_with_a_key_of_its_own_is_paid_once() -> None:
    budget = Budget(3, 3 * DELTA)
    reservation = budget.reserve_under("mine", "1/2", "a score")
    assert (reservation.entry.key, reservation.epsilon, reservation.delta) == ("mine", Fraction(1, 2), 0)
    with pytest.raises(BudgetError, match=r"a score: a request was paid for under the same key already\. Nothing more was spent"):
        budget.reserve_under("mine", "1/2", "a score")
    assert (budget.spent, budget.spent_delta) == (Fraction(1, 2), 0)
    assert budget.reserve_under("other", 1, "a fit", DELTA).delta == DELTA
    assert (budget.spent, budget.spent_delta, len(budget.entries)) == (Fraction(3, 2), DELTA, 2)


def test_the_totals_after_some_requests() -> None:
    budget = Budget(3, 3 * DELTA)
    for _ in range(2):
        budget.reserve(1, "fit", DELTA)
    budget.reserve("1/2", "look")
    assert (budget.spent, budget.remaining) == (Fraction(5, 2), Fraction(1, 2))
    assert (budget.spent_delta, budget.remaining_delta) == (2 * DELTA, DELTA)
    assert [(entry.what, entry.reserved, entry.spent, entry.delta) for entry in budget.entries] == [
        ("fit", 1, None, DELTA), ("fit", 1, None, DELTA), ("look", Fraction(1, 2), None, 0),
    ]  # fmt: skip
    assert len({entry.key for entry in budget.entries}) == 3
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry.when) for entry in budget.entries)


def test_the_last_of_the_money_can_be_spent_and_no_more() -> None:
    budget = Budget(1)
    budget.reserve(1 - TINY, "most")
    with pytest.raises(BudgetError, match="short by"):
        budget.reserve(2 * TINY, "too much")
    budget.reserve(TINY, "the rest")
    assert budget.remaining == 0
    with pytest.raises(BudgetError, match="used up"):
        budget.reserve(TINY, "one more")
    assert len(budget.entries) == 2


def test_the_last_of_the_chance_can_be_spent_and_no_more() -> None:
    budget = Budget(10, 2 * DELTA)
    budget.reserve(1, "first", DELTA)
    with pytest.raises(BudgetError, match="δ = 2e-06, remaining 1e-06"):
        budget.reserve(1, "too much", 2 * DELTA)
    budget.reserve(1, "second", DELTA)
    assert budget.remaining_delta == 0
    budget.reserve(1, "pure")
    with pytest.raises(BudgetError, match="short by"):
        budget.reserve(1, "third", DELTA)
    with pytest.raises(BudgetError, match="pure ε alone"):
        Budget(10).reserve(1, "fit", DELTA)
    assert budget.spent == 3


def test_nothing_less_than_nothing_is_reserved() -> None:
    """Whoever makes an entry by hand: a negative amount would fill the budget up."""
    budget = Budget(1, DELTA)
    for wrong in (Entry("k", "t", "w", Fraction(0)), Entry("k", "t", "w", Fraction(-1)), Entry("k", "t", "w", TINY, None, -DELTA)):
        with pytest.raises(BudgetError):
            budget._with_room_for((), wrong)
    small = Entry("k", "t", "w", TINY)
    assert budget._with_room_for((), small) == (small,)


def test_a_settled_request_gives_back_its_own_rest_alone() -> None:
    budget = Budget(2)
    first, second = budget.reserve(1, "first"), budget.reserve(1, "second")
    first.charge(laplace(Fraction(1, 4)))
    first.settle()
    assert [entry.spent for entry in budget.entries] == [Fraction(1, 4), None]
    second.settle()
    assert [entry.spent for entry in budget.entries] == [Fraction(1, 4), 0]


def test_a_settled_request_stays_settled() -> None:
    budget = Budget(1)
    reservation = budget.reserve(1, "fit")
    reservation.charge(laplace(Fraction(1, 4)))
    reservation.settle()
    with pytest.raises(BudgetError, match="settled already"):
        reservation.charge(laplace(TINY))
    reservation._charged = Fraction(0)  # what a second settlement would give back
    reservation.settle()
    assert budget.spent == Fraction(1, 4)


def test_a_budget_is_not_copied() -> None:
    budget = Budget(1)
    assert copy.copy(budget) is budget
    assert copy.deepcopy([budget])[0] is budget
    with pytest.raises(BudgetError, match="BudgetFile"):
        pickle.dumps(budget)


# ---------------------------------------------------------------- pure ε


def test_what_a_reservation_says() -> None:
    budget = Budget(1)
    reservation = budget.reserve(1, "fit")
    assert (reservation.epsilon, reservation.delta, reservation.rho, reservation.rho_charged) == (1, 0, 0, 0)
    assert (reservation.what, reservation.entry, reservation.events, reservation.charged) == ("fit", budget.entries[0], (), 0)
    events = laplace(Fraction(1, 2)), laplace(Fraction(1, 2), EXPONENTIAL)
    for event in events:
        reservation.charge(event)
    assert reservation.events == events
    assert reservation.charged == 1
    plain = Reservation(budget, budget.entries[0])
    assert plain.rho == 0


def test_the_last_of_a_reservation_can_be_charged_and_no_more() -> None:
    reservation = Budget(1).reserve(1, "fit")
    reservation.charge(laplace(1 - TINY))
    with pytest.raises(BudgetError, match=r"short by 1e-09|short by 0\.000000001|short by 1/1000000000"):
        reservation.charge(laplace(2 * TINY))
    reservation.charge(laplace(TINY))
    assert (reservation.charged, len(reservation.events)) == (1, 2)
    with pytest.raises(BudgetError):
        reservation.charge(laplace(TINY))


@pytest.mark.parametrize("amount", [Fraction(0), Fraction(-1), -TINY])
def test_a_charge_is_above_nothing(amount: Fraction) -> None:
    reservation = Budget(1).reserve(1, "fit")
    with pytest.raises(BudgetError, match=r"short by 0[;.]"):
        reservation.charge(laplace(amount))
    assert (reservation.charged, reservation.events) == (0, ())


def test_numbers_that_are_not_exact_are_not_charged() -> None:
    reservation = Budget(1).reserve(1, "fit")
    for event in (laplace(0.5), laplace(1), laplace(Fraction(1, 2), rho=0.0), laplace(0.5, rho=0.0)):
        with pytest.raises(BudgetError, match="exact fraction"):
            reservation.charge(event)
    assert reservation.events == ()


def test_gaussian_noise_is_no_pure_loss() -> None:
    """By its name or by its ρ."""
    reservation = Budget(1).reserve(1, "fit")
    for event in (gaussian(Fraction(0), Fraction(1, 2)), gaussian(TINY), laplace(Fraction(1, 2), rho=TINY)):
        with pytest.raises(BudgetError, match="delta above 0"):
            reservation.charge(event)
    assert reservation.events == ()


# ---------------------------------------------------------------- with δ


def reserved(epsilon: Any = 1) -> tuple[Budget, Reservation]:
    budget = Budget(epsilon, DELTA)
    return budget, budget.reserve(epsilon, "fit", DELTA)


def test_with_delta_the_whole_is_spent_whatever_is_charged() -> None:
    budget, reservation = reserved()
    assert (reservation.delta, reservation.rho, reservation.charged) == (DELTA, rho_for(Fraction(1), DELTA), 1)
    reservation.settle()
    assert budget.spent == 1
    assert budget.remaining_delta == 0


def test_the_last_of_rho_can_be_charged_and_no_more() -> None:
    _, reservation = reserved()
    reservation.charge(gaussian(reservation.rho - TINY))
    with pytest.raises(BudgetError, match="more than what is left"):
        reservation.charge(gaussian(2 * TINY))
    reservation.charge(gaussian(TINY))
    assert reservation.rho_charged == reservation.rho
    with pytest.raises(BudgetError, match="more than what is left"):
        reservation.charge(gaussian(TINY))
    assert len(reservation.events) == 2


def test_pure_events_may_use_epsilon_where_they_are_alone() -> None:
    """ε = 1 in one event is ρ = 1/2, far above what (1, 1e-6) is worth; but it is (1, 0), which is better."""
    _, reservation = reserved()
    for _ in range(2):
        reservation.charge(laplace(Fraction(1, 2)))
    assert reservation.rho_charged == Fraction(1, 4) > reservation.rho
    for event in (laplace(TINY), gaussian(TINY)):
        with pytest.raises(BudgetError, match="more than what is left"):
            reservation.charge(event)
    assert len(reservation.events) == 2


def test_after_gaussian_noise_epsilon_alone_does_not_count() -> None:
    _, reservation = reserved()
    reservation.charge(gaussian(TINY))
    with pytest.raises(BudgetError, match="more than what is left"):
        reservation.charge(laplace(Fraction(1, 2)))  # ρ = 1/8
    reservation.charge(laplace(Fraction(1, 10)))  # ρ = 1/200
    assert reservation.rho_charged == TINY + Fraction(1, 200)
    reservation.charge(laplace(Fraction(1, 10), EXPONENTIAL))  # ρ = 1/800
    assert reservation.rho_charged == TINY + Fraction(5, 800)
    with pytest.raises(BudgetError, match="more than what is left"):
        reservation.charge(laplace(Fraction(1, 2)))


def test_pure_events_that_go_beyond_epsilon_are_counted_by_rho() -> None:
    """Many small ones add up to more than ε, and their ρ, which grows with the squares, still fits."""
    budget = Budget(1, DELTA)
    reservation = budget.reserve(1, "fit", DELTA)
    small, charged = Fraction(1, 100), 0
    while reservation.rho_charged + small**2 / 2 <= reservation.rho:
        reservation.charge(laplace(small))
        charged += 1
    assert charged > 100
    assert reservation.rho_charged == charged * small**2 / 2
    with pytest.raises(BudgetError, match="more than what is left"):
        reservation.charge(laplace(small))


def test_pure_epsilon_that_is_used_up_ends_the_way_by_epsilon() -> None:
    _, reservation = reserved()
    reservation.charge(laplace(Fraction(9, 10)))  # fits by ε alone: its ρ is 0.405
    with pytest.raises(BudgetError, match="more than what is left"):
        reservation.charge(laplace(Fraction(1, 5)))
    reservation.charge(laplace(Fraction(1, 10)))
    assert reservation.rho_charged == Fraction(405, 1000) + Fraction(5, 1000)


@pytest.mark.parametrize("event", [gaussian(Fraction(0)), gaussian(-TINY), laplace(Fraction(0)), laplace(-TINY), gaussian(TINY, -TINY)])
def test_with_delta_a_charge_is_above_nothing_too(event: Event) -> None:
    _, reservation = reserved()
    with pytest.raises(BudgetError, match="above 0"):
        reservation.charge(event)
    assert (reservation.rho_charged, reservation.events) == (0, ())
    reservation.charge(laplace(Fraction(1)))  # and the way by ε is still open


def test_with_delta_a_settled_request_charges_nothing() -> None:
    _, reservation = reserved()
    reservation.settle()
    with pytest.raises(BudgetError, match="settled already"):
        reservation.charge(gaussian(TINY))


@pytest.mark.parametrize(
    ("unit", "advice"),
    [(Unit("who", 5), "Set rows_per_person = 40 in the schema, or give it"), (Unit("doctor", 40), "Give it"), (ROW, "Give it")],
)
def test_whoever_asks_in_another_unit_is_told_what_to_do(unit: Unit, advice: str) -> None:
    budget = Budget(1)
    budget.reserve("1/2", "first", unit=Unit("who", 40))
    sentence = f"^budget cannot pay for second: .* Nothing was spent\\. {advice} a budget of its own: `hedgerow budget init FILE"
    with pytest.raises(BudgetError, match=sentence):
        budget.reserve("1/4", "second", unit=unit)


@pytest.mark.parametrize(
    ("own", "asked", "option"),
    [(0, 0, ""), (2 * DELTA, 0, "--delta 2e-06 "), (0, DELTA, "--delta 1e-05 "), (2 * DELTA, DELTA, "--delta 2e-06 ")],
)
def test_a_budget_of_another_unit_is_advised_with_a_delta_where_one_is_needed(own: Any, asked: Any, option: str) -> None:
    budget = Budget(1, own, unit=Unit("who", 40))
    with pytest.raises(BudgetError, match=re.escape(f"`hedgerow budget init FILE --epsilon TOTAL {option}--person doctor")):
        budget.reserve("1/4", "second", asked, unit=Unit("doctor", 40))


def test_a_budget_that_is_none_is_refused_with_what_to_give() -> None:
    given = Budget(2)
    assert checked_budget(given, Fraction(1)) is given
    own = checked_budget(None, Fraction(1, 2), DELTA)
    assert (own.epsilon, own.delta, own.spent) == (Fraction(1, 2), DELTA, 0)
    assert checked_budget(None, Fraction(1)).delta == 0
    with pytest.raises(PlanError, match=r"^budget: got 'b\.json'; expected hedgerow\.BudgetFile\('b\.json'\)\. Nothing was spent\.$"):
        checked_budget("b.json", Fraction(1))
    with pytest.raises(PlanError, match=r"^budget: got 2; expected a hedgerow\.Budget or BudgetFile\. Nothing was spent\.$"):
        checked_budget(2, Fraction(1))


def test_what_is_noted_for_commands_is_not_shown() -> None:
    noted = f"fit, counts {'0a' * 6} {'1b' * 6} of rows {'2c' * 6} after {'3d' * 6}"
    assert Entry("k", "t", noted, Fraction(1)).shown == "fit"
    assert Entry("k", "t", f"{noted} more", Fraction(1)).shown == f"{noted} more"
