"""Any sequence of steps against a simple model in memory."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import BudgetError, LedgerError

datasets, analysts, purposes = st.sampled_from(["a", "b"]), st.sampled_from(["ada", "bob"]), st.sampled_from(["care", "cost"])
amounts = st.sampled_from([Fraction(n, d) for d in (3, 4, 10) for n in (1, 2, 5)])
chances = st.sampled_from([Fraction(0), Fraction(0), Fraction(1, 10**6)])
scopes = st.sampled_from(["", "", "analyst", "purpose"])
picks = st.integers(0, 30)
Account = tuple[str, str, str]


class LedgerModel(RuleBasedStateMachine):
    def __init__(self, address: str) -> None:
        super().__init__()
        self.ledger = Ledger.open(address)
        self.ceilings: dict[Account, tuple[Fraction, Fraction]] = {}
        self.closed: set[str] = set()
        self.requests: list[dict[str, Any]] = []

    def spent(self, account: Account) -> tuple[Fraction, Fraction]:
        mine = [request for request in self.requests if account in request["accounts"]]
        return sum((r["cost"] for r in mine), Fraction(0)), sum((r["chance"] for r in mine), Fraction(0))

    @rule(dataset=datasets, epsilon=amounts, delta=chances, scope=scopes, who=analysts, why=purposes)
    def ceiling(self, dataset: str, epsilon: Fraction, delta: Fraction, scope: str, who: str, why: str) -> None:
        name = {"": "", "analyst": who, "purpose": why}[scope]
        given = {scope: name} if scope else {}
        if dataset in self.closed or (scope and (dataset, "dataset", "") not in self.ceilings):
            with pytest.raises(LedgerError):
                self.ledger.ceiling(dataset, epsilon, delta, **given)
            return
        self.ledger.ceiling(dataset, epsilon, delta, **given)
        self.ceilings[dataset, scope or "dataset", name] = (epsilon, delta)

    @rule(dataset=datasets, who=analysts, why=purposes, epsilon=amounts, delta=chances)
    def reserve(self, dataset: str, who: str, why: str, epsilon: Fraction, delta: Fraction) -> None:
        accounts = [(dataset, "dataset", ""), (dataset, "analyst", who), (dataset, "purpose", why)]
        possible = dataset not in self.closed and accounts[0] in self.ceilings
        for account in accounts:
            if account in self.ceilings:
                cost, chance = self.spent(account)
                possible &= cost + epsilon <= self.ceilings[account][0] and (not delta or chance + delta <= self.ceilings[account][1])
        if not possible:
            with pytest.raises(BudgetError):
                self.ledger.reserve(dataset, who, why, epsilon, delta)
            return
        key = self.ledger.reserve(dataset, who, why, epsilon, delta).key
        self.requests.append({"key": key, "accounts": accounts, "epsilon": epsilon, "cost": epsilon, "chance": delta, "state": "reserved"})

    def step(self, pick: int, change: Callable[[str], Any], states: tuple[str, ...], more: bool = True) -> dict[str, Any] | None:
        """Take it if the model allows it; otherwise it must be refused."""
        if not self.requests:
            return None
        request = self.requests[pick % len(self.requests)]
        if request["state"] not in states or not more:
            with pytest.raises(LedgerError):
                change(request["key"])
            return None
        change(request["key"])
        return request

    @rule(pick=picks)
    def opened(self, pick: int) -> None:
        request = self.requests[pick % len(self.requests)] if self.requests else None
        is_open = request is not None and (request["state"] == "open" or request["accounts"][0][0] not in self.closed)
        if self.step(pick, self.ledger.opened, ("reserved", "open"), is_open) and request:
            request["state"] = "open"

    @rule(pick=picks, share=st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(4, 3)]))
    def settle(self, pick: int, share: Fraction) -> None:
        if not self.requests:
            return
        request = self.requests[pick % len(self.requests)]
        spent = request["epsilon"] * share
        states = ("open",) if spent else ("open", "reserved")
        possible = share <= 1 and (not request["chance"] or share == 1)
        if self.step(pick, lambda key: self.ledger.settle(key, spent), states, possible):
            request.update(state="settled", cost=spent)

    @rule(pick=picks)
    def release(self, pick: int) -> None:
        request = self.step(pick, self.ledger.release, ("reserved",))
        if request:
            request.update(state="released", cost=Fraction(0), chance=Fraction(0))

    @rule(dataset=datasets, really=st.integers(0, 3))
    def close(self, dataset: str, really: int) -> None:
        if really:
            return
        if dataset in self.closed or (dataset, "dataset", "") not in self.ceilings:
            with pytest.raises(LedgerError):
                self.ledger.close(dataset)
            return
        self.ledger.close(dataset)
        self.closed.add(dataset)

    @invariant()
    def balances_are_equal(self) -> None:
        found = {balance.account: balance for balance in self.ledger.balances()}
        for account in found.keys() | self.ceilings.keys():
            balance = found[account]
            assert (balance.spent, balance.spent_delta) == self.spent(account)
            assert (balance.epsilon, balance.delta) == self.ceilings.get(account, (None, None))
            assert min(balance.spent, balance.spent_delta, balance.remaining or 0, balance.remaining_delta or 0) >= 0
            assert balance.closed == (account[1] == "dataset" and account[0] in self.closed)

    def teardown(self) -> None:
        going = [request["key"] for request in self.requests if request["state"] in ("reserved", "open")]
        assert [reserved.key for reserved in self.ledger.unsettled()] == going
        found = self.ledger.verify(self.ledger.head())
        assert found.sound, found
        self.ledger.database.close()


@pytest.mark.slow
def test_any_sequence_against_a_simple_model(new_address: Callable[[], str]) -> None:
    how = settings(max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(lambda: LedgerModel(new_address()), settings=how)
