"""Balances and ceilings of accounts: the dataset over everyone, each analyst on it, each purpose on it.

A reservation is booked on all three accounts, with or without a ceiling, so that a ceiling which is set later counts what came before.
All accounts of a dataset are counted in its unit, rows or persons, which is kept with the account of the dataset.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from urllib.parse import quote, unquote

from hedgerow.accounting.advice import payable
from hedgerow.accounting.loss import text_of_fraction
from hedgerow.accounting.units import Unit, check_unit
from hedgerow.errors import BudgetError
from hedgerow.formatting import amount

DATASET, ANALYST, PURPOSE = "dataset", "analyst", "purpose"
CLOSED = "closed"  # in the file of heads
MAX_BITS = 2000  # of a denominator: thirds, sevenths, elevenths, … would make sums longer and longer

Account = tuple[str, str, str]  # dataset, scope, name


@dataclass(frozen=True)
class Balance:
    """What one account has spent, and its ceiling (None: it has none of its own).

    unit: of the account of a dataset: what all its accounts are counted in; None until something says so
    """

    dataset: str
    scope: str
    name: str
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    spent: Fraction = Fraction(0)
    spent_delta: Fraction = Fraction(0)
    closed: bool = False
    unit: Unit | None = None

    @property
    def account(self) -> Account:
        return (self.dataset, self.scope, self.name)

    @property
    def remaining(self) -> Fraction | None:
        """0 also where the ceiling was lowered below what is spent."""
        return None if self.epsilon is None else max(self.epsilon - self.spent, Fraction(0))

    @property
    def remaining_delta(self) -> Fraction | None:
        return None if self.delta is None else max(self.delta - self.spent_delta, Fraction(0))

    @property
    def words(self) -> str:
        return f"dataset {self.dataset!r}" if self.scope == DATASET else f"{self.scope} {self.name!r} on dataset {self.dataset!r}"

    def plus(self, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Balance:
        return replace(self, spent=self.spent + epsilon, spent_delta=self.spent_delta + delta)

    def limited_by(self, other: Balance) -> Balance:
        """The same with the lower of two ceilings, in ε and in δ; one that has none has that of the other."""
        if other.epsilon is None or other.delta is None:
            return self
        if self.epsilon is None or self.delta is None:
            return replace(self, epsilon=other.epsilon, delta=other.delta)
        return replace(self, epsilon=min(self.epsilon, other.epsilon), delta=min(self.delta, other.delta))

    def overspent(self) -> bool:
        return (self.epsilon is not None and self.spent > self.epsilon) or (self.delta is not None and self.spent_delta > self.delta)

    def used_up(self) -> bool:
        return self.remaining == 0 and not self.remaining_delta

    def unknown_unit(self) -> bool:
        """Whether it was spent from before the ledger had units, and nobody has stated what in."""
        return self.unit is None and bool(self.spent or self.spent_delta)

    def too_long(self) -> bool:
        return max(self.spent.denominator.bit_length(), self.spent_delta.denominator.bit_length()) > MAX_BITS


def accounts_of(dataset: str, analyst: str, purpose: str) -> tuple[Account, Account, Account]:
    return (dataset, DATASET, ""), (dataset, ANALYST, analyst), (dataset, PURPOSE, purpose)


def account_of(dataset: str, analyst: str | None, purpose: str | None) -> Account:
    """The account that a ceiling is for: of the dataset, or of one analyst, or of one purpose."""
    if analyst is not None and purpose is not None:
        raise ValueError("a ceiling is for an analyst or for a purpose, not for both")
    if analyst is not None:
        return (dataset, ANALYST, analyst)
    return (dataset, DATASET, "") if purpose is None else (dataset, PURPOSE, purpose)


def tightest(balances: Iterable[Balance]) -> tuple[Balance, Balance]:
    """The ceilings that leave the least ε and the least δ. A request for what they leave is not refused by another."""
    with_ceiling = [balance for balance in balances if balance.epsilon is not None]
    by_epsilon = min(with_ceiling, key=lambda balance: balance.remaining or Fraction(0))
    by_delta = min(with_ceiling, key=lambda balance: balance.remaining_delta or Fraction(0))
    return by_epsilon, by_delta


def check_room(balances: Iterable[Balance], epsilon: Fraction, delta: Fraction, what: str) -> None:
    """Refuse what some ceiling does not allow; the message names the one that leaves the least."""
    by_epsilon, by_delta = tightest(balances)
    left, left_delta = by_epsilon.remaining or Fraction(0), by_delta.remaining_delta or Fraction(0)
    if epsilon > left:
        assert by_epsilon.epsilon is not None
        raise BudgetError(
            f"ledger cannot pay for {what}: the ceiling of {by_epsilon.words} refuses it: requested ε = {amount(epsilon)}, "
            f"remaining {amount(left)} of {amount(by_epsilon.epsilon)}, short by {amount(epsilon - left)}. "
            f"Nothing was spent. {payable(left, left_delta, delta, by_delta.delta or Fraction(0))}"
        )
    if delta > left_delta:
        assert by_delta.delta is not None
        raise BudgetError(
            f"ledger cannot pay for {what}: the ceiling of {by_delta.words} refuses it: requested δ = {amount(delta)}, "
            f"remaining {amount(left_delta)} of {amount(by_delta.delta)}, short by {amount(delta - left_delta)}. "
            f"Nothing was spent. {payable(left, left_delta, delta, by_delta.delta)}"
        )


def check_unit_of(whole: Balance, registered: Unit | None, requested: Unit, what: str) -> None:
    """Refuse what is not counted in the unit of the dataset; registered: that of its registered schema, if it has one."""
    if whole.unknown_unit():
        raise BudgetError(
            f"ledger cannot pay for {what}: {whole.words} was spent from before the ledger had units, and nothing says what in. Nothing "
            "was spent. Its owner states it, once: `hedgerow curator unit LEDGER DATASET`."
        )
    own = registered if whole.unit is None else whole.unit
    if own is not None:
        check_unit(own, requested, whole.words, what, "Use the person and rows_per_person of its schema.")


def said_balance(balance: Balance) -> str:
    """An account as the file of heads has it: SPENT,δ and behind it ;CEILING,δ and ;closed. No blanks; `read_balances` reads several."""
    pairs = [(balance.spent, balance.spent_delta)]
    pairs += [] if balance.epsilon is None else [(balance.epsilon, balance.delta or Fraction(0))]
    amounts = [f"{text_of_fraction(epsilon)},{text_of_fraction(delta)}" for epsilon, delta in pairs]
    said = ";".join([*amounts, *([CLOSED] if balance.closed else [])])
    return f"{'/'.join(quote(part, safe='') for part in balance.account)}={said}"


def read_balances(text: str) -> dict[Account, Balance]:
    """The accounts in a line of the file of heads; what cannot be read is left out, as in a line that says none. Older lines have no
    ceilings.
    """
    found: dict[Account, Balance] = {}
    for each in text.split("&"):
        with suppress(ValueError, ZeroDivisionError):
            names, _, said = each.partition("=")
            dataset, scope, name = map(unquote, names.split("/"))
            pairs = [tuple(map(Fraction, pair.split(","))) for pair in said.removesuffix(f";{CLOSED}").split(";")]
            spent, spent_delta = pairs[0]
            epsilon, delta = pairs[1] if len(pairs) > 1 else (None, None)
            found[dataset, scope, name] = Balance(dataset, scope, name, epsilon, delta, spent, spent_delta, said.endswith(f";{CLOSED}"))
    return found
