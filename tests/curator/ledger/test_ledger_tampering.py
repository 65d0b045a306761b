"""History is guarded by triggers, and where those are dropped by the chain."""

from __future__ import annotations

from dataclasses import asdict, fields, replace

import pytest
from curator.ledger.forging import TRIGGERS, forge

from hedgerow.curator.ledger.chain import LedgerEntry, hash_of
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import LedgerError

COLUMNS = 'seq, "when", kind, key, dataset, analyst, purpose, what, epsilon, delta, previous, hash, unit, digest'


@pytest.fixture
def history(ledger: Ledger) -> Ledger:
    """Twelve entries: a ceiling, four reservations of which three are opened, of which two settle, and one released."""
    for number in range(4):
        ledger.reserve("patients", "ada", "research", "0.1", what=f"fit {number}", key=f"k{number}")
    for number in range(3):
        ledger.opened(f"k{number}")
    for number in range(2):
        ledger.settle(f"k{number}", "0.05")
    ledger.release("k3")
    ledger.reserve("patients", "ada", "research", "0.1", key="last")
    assert ledger.verify().sound
    return ledger


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET epsilon = '0' WHERE seq = 3",
        "DELETE FROM ledger_entries WHERE seq = 12",
        "DELETE FROM ledger_entries",
        f"INSERT INTO ledger_entries SELECT 14, {COLUMNS[5:]} FROM ledger_entries WHERE seq = 1",
        f"INSERT INTO ledger_entries SELECT 0, {COLUMNS[5:]} FROM ledger_entries WHERE seq = 1",
    ],
)
def test_entries_are_guarded(history: Ledger, statement: str) -> None:
    with pytest.raises(LedgerError, match="never changed or removed"), history.database.writing() as connection:
        connection.exec_driver_sql(statement)
    assert history.verify().sound


def test_each_database_has_its_own_way_to_empty_a_table(history: Ledger) -> None:
    statements = (
        [
            "REPLACE INTO ledger_entries SELECT * FROM ledger_entries WHERE seq = 3",
            f"REPLACE INTO ledger_entries SELECT 13, {COLUMNS[5:]} FROM ledger_entries WHERE seq = 3",
        ]
        if history.database.embedded
        else ["TRUNCATE ledger_entries"]
    )
    for statement in statements:
        with pytest.raises(LedgerError, match="never changed or removed"), history.database.writing() as connection:
            connection.exec_driver_sql(statement)
    assert history.verify().sound


def test_missing_triggers_are_told(history: Ledger) -> None:
    assert history.verify().unguarded == ()
    assert str(history.verify()) == f"sound: 12 entries, head {history.head()}"
    forge(history)
    found = history.verify()
    assert (found.sound, set(found.unguarded)) == (True, set(TRIGGERS))
    assert "unguarded: the triggers ledger_entries_at_the_end, " in str(found)


@pytest.mark.parametrize("column", [field.name for field in fields(LedgerEntry) if field.name != "seq"])
def test_one_field(history: Ledger, column: str) -> None:
    forge(history, f"UPDATE ledger_entries SET \"{column}\" = 'other' WHERE seq = 3")
    (problem,) = history.verify().problems
    assert (problem.seq, "altered" in problem.why) == (3, True)


def test_one_field_to_null_and_an_amount(history: Ledger) -> None:
    forge(history, "UPDATE ledger_entries SET epsilon = '0.01' WHERE seq = 9")
    assert history.verify().problems[0].seq == 9
    forge(history, "UPDATE ledger_entries SET analyst = NULL WHERE seq = 2")
    assert history.verify().problems[0].seq == 2
    if history.database.embedded:
        forge(history, "UPDATE ledger_entries SET what = x'00ff' WHERE seq = 1", "UPDATE ledger_balances SET name = x'00ff'")
        assert history.verify().problems[0].seq == 1


def test_the_unit_is_noticed(history: Ledger) -> None:
    """Of a reservation, of the account, and taken away as if the entry were from before there were units."""
    persons = "person: patient_id, at most 40 rows"
    forge(history, f"UPDATE ledger_balances SET unit = '{persons}' WHERE scope = 'dataset'")
    (problem,) = history.verify().problems
    assert str(problem) == "the balance of dataset 'patients' is not what its entries add up to"
    forge(history, "UPDATE ledger_balances SET unit = NULL WHERE scope = 'dataset'")
    assert not history.verify().sound
    forge(history, "UPDATE ledger_balances SET unit = 'row' WHERE scope = 'dataset'")
    assert history.verify().sound
    for altered in (f"'{persons}'", "NULL"):
        forge(history, f"UPDATE ledger_entries SET unit = {altered} WHERE seq = 2")
        (problem,) = history.verify().problems
        assert (problem.seq, "altered" in problem.why) == (2, True)


def test_one_row_removed(history: Ledger) -> None:
    forge(history, "DELETE FROM ledger_entries WHERE seq = 6")
    (problem,) = history.verify().problems
    assert str(problem) == "entry 6: is missing: after 5 comes 7"


def test_one_row_removed_and_the_rest_moved_up(history: Ledger) -> None:
    moves = [f"UPDATE ledger_entries SET seq = {seq - 1} WHERE seq = {seq}" for seq in range(7, 13)]
    forge(history, "DELETE FROM ledger_entries WHERE seq = 6", *moves)
    assert history.verify().problems[0].seq == 6


def test_two_rows_swapped(history: Ledger) -> None:
    forge(history, *(f"UPDATE ledger_entries SET seq = {new} WHERE seq = {old}" for old, new in ((4, 99), (7, 4), (99, 7))))
    assert history.verify().problems[0].seq == 4


def test_one_row_inserted_with_a_right_hash(history: Ledger) -> None:
    head = history.head()
    fourth = list(history.entries())[3].hash
    made = LedgerEntry(5, "2026-01-01T00:00:00Z", "ceiling", None, "patients", None, None, "", "9", "0", fourth, unit="row")
    values = f"5, '{made.when}', 'ceiling', NULL, 'patients', NULL, NULL, '', '9', '0', '{made.previous}', '{hash_of(made)}', 'row', NULL"
    moves = [f"UPDATE ledger_entries SET seq = {seq + 1} WHERE seq = {seq}" for seq in range(12, 4, -1)]
    forge(history, *moves, f"INSERT INTO ledger_entries VALUES ({values})")
    assert history.verify().problems[0].seq == 6
    assert len(history.verify(head).problems) == 2


def test_one_row_written_anew_with_a_right_hash(history: Ledger) -> None:
    made = replace(list(history.entries())[4], epsilon="0.01").sealed()
    forge(history, f"UPDATE ledger_entries SET epsilon = '0.01', hash = '{made.hash}' WHERE seq = 5")
    (problem,) = history.verify().problems
    assert (problem.seq, "does not follow" in problem.why) == (6, True)


def test_a_tail_that_was_cut_off(history: Ledger) -> None:
    head = history.head()
    eleventh = list(history.entries())[10].hash
    forge(history, "DELETE FROM ledger_entries WHERE seq = 12")
    assert history.verify().problems[0].seq == 12
    forge(history, f"UPDATE ledger_head SET seq = 11, hash = '{eleventh}'", "UPDATE ledger_balances SET spent_epsilon = '0.2'")
    assert history.verify().sound  # by itself it cannot know
    for written_down in (head, str(head), head.hash):
        (problem,) = history.verify(written_down).problems
        assert (problem.seq, "its end is missing" in problem.why) == (12, True)
    history.reserve("patients", "ada", "research", "0.2", key="last")
    assert history.verify().sound
    (problem,) = history.verify(head).problems
    assert (problem.seq, "written anew" in problem.why) == (12, True)


def test_a_head_that_was_written_down_long_ago(history: Ledger) -> None:
    head = history.head()
    history.release("last")
    assert history.verify(head).sound
    assert history.verify(head.hash).sound
    assert not history.verify(f"{head.seq - 1}:{head.hash}").sound
    for nonsense in ("", "12", "12:abc", "x:" + "0" * 64):
        with pytest.raises(LedgerError, match="expected_head"):
            history.verify(nonsense)


@pytest.mark.parametrize(
    "change",
    [
        "spent_epsilon = '0'",
        "spent_delta = '0.1'",
        "ceiling_epsilon = '100'",
        "closed = (1 = 1)",
        "name = 'eve'",
        "spent_epsilon = 'x'",
        "unit = 'row'",
        "unit = 'x'",
    ],
)
def test_balances_that_are_not_the_sum(history: Ledger, change: str) -> None:
    forge(history, f"UPDATE ledger_balances SET {change} WHERE scope = 'analyst'")
    assert any("balance" in str(problem) for problem in history.verify().problems)


FORGED = {
    "a settle without a reserve": ("settle", "nobody", "0.1", "0", "never made"),
    "a settle of more than was reserved": ("settle", "k2", "0.2", "0", "give back"),
    "a second settle": ("settle", "k0", "0.01", "0", "settled already"),
    "a release after it was opened": ("release", "k2", "0", "0", "after it was opened"),
    "a settle of what was never opened": ("settle", "last", "0.1", "0", "never opened"),
    "a second reserve": ("reserve", "k2", "0.1", "0", "existed already"),
    "a reserve above the ceiling": ("reserve", "much", "5", "0", "did not allow it"),
    "a reserve of a δ that there is not": ("reserve", "chance", "0.1", "0.1", "did not allow it"),
    "a reserve of less than nothing": ("reserve", "less", "-1", "0", "plain fraction"),
    "an amount that is not the shortest": ("reserve", "long", "2/20", "0", "shortest"),
    "an unknown kind": ("gift", "k2", "0.1", "0", "unknown kind"),
    "a unit that was known": ("unit", "k2", "0.1", "0", "unit that was known"),
}
OF_UNITS = {
    "a reserve of another unit": ("reserve", "person: patient_id, at most 40 rows", "another unit"),
    "a reserve without a unit, as once": ("reserve", None, "another unit"),
    "a ceiling of another unit": ("ceiling", "person: patient_id, at most 40 rows", "another unit"),
    "a ceiling without a unit": ("ceiling", None, "another unit"),
    "a unit that is none": ("reserve", "rows", "unit: got 'rows'"),
}


@pytest.mark.parametrize("forged", list(FORGED))
def test_a_forger_who_computes_hashes_cannot_write_what_is_impossible(history: Ledger, forged: str) -> None:
    kind, key, epsilon, delta, why = FORGED[forged]
    last = LedgerEntry(13, "2026-01-01T00:00:00Z", kind, key, "patients", "ada", "research", "", epsilon, delta, history.head().hash)
    append(history, replace(last, unit="row"))
    problem = history.verify().problems[0]
    assert (problem.seq, why in problem.why) == (13, True), problem


@pytest.mark.parametrize("forged", list(OF_UNITS))
def test_nor_what_would_add_up_two_units(history: Ledger, forged: str) -> None:
    kind, unit, why = OF_UNITS[forged]
    key, analyst, purpose = ("new", "ada", "research") if kind == "reserve" else (None, None, None)
    last = LedgerEntry(13, "2026-01-01T00:00:00Z", kind, key, "patients", analyst, purpose, "", "0.1", "0", history.head().hash)
    append(history, replace(last, unit=unit))
    problem = history.verify().problems[0]
    assert (problem.seq, why in problem.why) == (13, True), problem


def append(ledger: Ledger, last: LedgerEntry) -> None:
    """An entry with a right hash, put at the end by hand."""
    entry = last.sealed()
    values = ", ".join("NULL" if value is None else f"'{value}'" for value in asdict(entry).values())
    forge(
        ledger,
        "DROP INDEX ledger_entries_once",
        f"INSERT INTO ledger_entries VALUES ({values})",
        f"UPDATE ledger_head SET seq = {entry.seq}, hash = '{entry.hash}'",
    )
