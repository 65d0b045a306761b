"""What a refusal advises can be done: take it, try it, and it is paid."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.accounting.advice import NO_DELTA, USED_UP, delta_left, payable
from hedgerow.accounting.meter import Budget
from hedgerow.curator.ledger.balances import ANALYST, DATASET, Balance, check_room
from hedgerow.errors import BudgetError

EPSILONS = st.one_of(
    st.sampled_from(["0.1", "0.9", "1", "1.1", "2", "1/3", "2/7"]).map(Fraction),
    st.fractions(Fraction(1, 10**4), 3, max_denominator=10**6),
)
DELTAS = st.sampled_from(["0", "1e-7", "1e-6", "1e-5", "0.0000003", "1/3000000"]).map(Fraction)
ADVICE = re.compile(r"Ask for at most ε = (?P<epsilon>[0-9./e-]+?)(?: and δ = (?P<delta>[0-9./e-]+?)| and no δ \(.*)?\.(?: |$)")


def advised(said: str) -> tuple[str, str] | None:
    """The (ε, δ) that a message advises; None where it says that nothing can be paid."""
    if USED_UP in said:
        return None
    found = ADVICE.search(said)
    assert found is not None, said
    assert (NO_DELTA in said) == ("no δ" in said)
    return found["epsilon"], found["delta"] or "0"


def follow(reserve: Callable[[object, object], object], epsilon: Fraction, delta: Fraction) -> None:
    """Ask; if that is refused, ask as advised, which must not be."""
    try:
        reserve(epsilon, delta)
    except BudgetError as refused:
        instead = advised(str(refused))
        if instead is not None:
            reserve(*instead)


@given(st.tuples(EPSILONS, DELTAS), st.lists(st.tuples(EPSILONS, DELTAS), max_size=5))
def test_what_a_budget_advises_it_pays_for(total: tuple[Fraction, Fraction], requests: list[tuple[Fraction, Fraction]]) -> None:
    budget = Budget(*total)
    for epsilon, delta in requests:
        follow(lambda e, d: budget.reserve(e, "a fit", d), epsilon, delta)
    assert 0 <= budget.spent <= budget.epsilon
    assert 0 <= budget.spent_delta <= budget.delta


@given(st.tuples(EPSILONS, DELTAS), st.tuples(EPSILONS, DELTAS), st.lists(st.tuples(EPSILONS, DELTAS), max_size=5))
def test_what_a_ledger_advises_it_pays_for(
    whole: tuple[Fraction, Fraction], own: tuple[Fraction, Fraction], requests: list[tuple[Fraction, Fraction]]
) -> None:
    balances = [Balance("patients", DATASET, "", *whole), Balance("patients", ANALYST, "ada", *own)]

    def reserve(epsilon: object, delta: object) -> None:
        amounts = Fraction(str(epsilon)), Fraction(str(delta))
        check_room(balances, *amounts, "a fit")
        balances[:] = [balance.plus(*amounts) for balance in balances]

    for epsilon, delta in requests:
        follow(reserve, epsilon, delta)
    assert not any(balance.overspent() for balance in balances)


def test_a_refusal_for_lack_of_epsilon_knows_that_delta_is_gone() -> None:
    budget = Budget(2, "1e-6")
    budget.reserve("1.1", "a fit", "1e-6").settle()
    with pytest.raises(BudgetError, match=r"at most ε = 0\.9 and no δ \(leave delta out\): the δ is used up, and it pays"):
        budget.reserve(1, "another", "1e-6")
    with pytest.raises(BudgetError, match=r"at most ε = 0\.9\.$"):
        budget.reserve(1, "a score")
    with pytest.raises(BudgetError, match=r"requested δ = 1e-06, remaining 0 of 1e-06.*at most ε = 0\.9 and no δ"):
        budget.reserve("0.5", "another", "1e-6")


@pytest.mark.parametrize(
    ("left", "left_delta", "delta", "said"),
    [
        ("1", "4e-6", "0", "Ask for at most ε = 1."),
        ("1", "4e-6", "1e-6", "Ask for at most ε = 1 and δ = 1e-06."),
        ("1", "4e-6", "4e-6", "Ask for at most ε = 1 and δ = 4e-06."),
        ("1", "4e-6", "5e-6", "Ask for at most ε = 1 and δ = 4e-06."),
        ("0", "4e-6", "1e-6", USED_UP),
    ],
)
def test_the_words(left: str, left_delta: str, delta: str, said: str) -> None:
    assert payable(Fraction(left), Fraction(left_delta), Fraction(delta), Fraction("1e-5")) == said


def test_without_a_delta_of_its_own_it_says_so() -> None:
    assert payable(Fraction(1), Fraction(0), Fraction("1e-6"), Fraction(0)).endswith(
        "it was made without a δ, and it pays for pure ε alone."
    )


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ("1e-5", "its δ pays for 10 fits at δ = 1e-06"),
        ("3e-6", "its δ pays for 3 fits at δ = 1e-06"),
        ("1e-6", "its δ pays for 1 fit at δ = 1e-06, or 10 fits at δ = 1e-07, with about a tenth more noise"),
        ("6e-7", "its δ pays for 6 fits at δ = 1e-07, with about a tenth more noise"),
        ("1e-9", "its δ pays for requests of δ = 1e-09 in all"),
        ("0", "its δ is used up: from now on it pays for pure ε alone"),
    ],
)
def test_how_many_fits_a_delta_pays_for(left: str, said: str) -> None:
    assert delta_left(Fraction(left)) == said


@pytest.mark.parametrize(("left", "each"), [("1e-5", "1e-6"), ("1e-6", "1e-6"), ("6e-7", "1e-7"), ("2.5e-6", "1e-6")])
def test_so_many_are_paid_and_no_more(left: str, each: str) -> None:
    fits = int(re.search(r"([0-9]+) fits?", delta_left(Fraction(left)))[1])  # type: ignore[index]
    budget = Budget(100, left)
    for _ in range(fits):
        budget.reserve(1, "a fit", each)
    with pytest.raises(BudgetError):
        budget.reserve(1, "one more", each)
