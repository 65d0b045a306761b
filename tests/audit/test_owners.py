"""One owner's row, attacked by the others with whom it counts together; and with too many who look, the attack finds it.

False alarms: below one in a million for each test.
"""

from __future__ import annotations

import pytest

from hedgerow import private_table
from hedgerow.audit.bounds import FALSE_ALARM
from hedgerow.audit.owners import CASES, KNOWS, READER, Owners, attack_owner, audit_owners

LEVEL = FALSE_ALARM / 2


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("who", CASES, ids=str)
def test_those_who_look_find_no_more_than_epsilon(who: Owners) -> None:
    assert who.looking <= who.tolerated
    finding = attack_owner(who, "2", 8_000, LEVEL)
    assert not finding.violated, finding
    assert finding.bounds["95 %"] > 1.5, finding  # nearly all of it: the attack sees what there is to see
    assert "the sum without what they added" in finding.event


@pytest.mark.slow
@pytest.mark.statistical
def test_with_more_who_look_than_are_tolerated_the_attack_finds_more() -> None:
    """k - 1 who look at an owner that has added one share of two: what is assumed does not hold, ε does not, and ε′ does."""
    who = Owners(3, 1, 2)
    finding = attack_owner(who, "2", 16_000, LEVEL)
    assert not finding.violated, finding
    assert 2 < finding.verdict < float(who.claimed("2")), finding


@pytest.mark.slow
@pytest.mark.statistical
def test_with_still_more_who_look_nothing_holds() -> None:
    """One share of three is left."""
    assert attack_owner(Owners(3, 0, 2), "2", 16_000, LEVEL).violated


@pytest.mark.slow
@pytest.mark.statistical
def test_with_none_tolerated_a_reader_finds_no_more_than_epsilon() -> None:
    finding = attack_owner(READER, "2", 8_000, LEVEL)
    assert READER.claimed("2") == 2
    assert not finding.violated, finding
    assert finding.bounds["95 %"] > 1.5, finding


@pytest.mark.slow
@pytest.mark.statistical
def test_with_none_tolerated_an_owner_who_knows_its_share_finds_more_than_epsilon_and_no_more_than_is_stated() -> None:
    finding = attack_owner(KNOWS, "2", 16_000, LEVEL)
    assert not finding.violated, finding
    assert 2 < finding.verdict < float(KNOWS.claimed("2")) < 2.41, finding


@pytest.mark.slow
@pytest.mark.statistical
def test_shares_that_are_too_small_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if eight were a whole draw, where two are."""
    real = private_table.add_share
    monkeypatch.setattr(private_table, "add_share", lambda counts, event, coins, shares: real(counts, event, coins, 4 * shares))
    assert audit_owners([Owners(3, 1, 1)], "2", 16_000).violated
