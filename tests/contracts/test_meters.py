"""One battery for every budget: in memory and on disk. A new meter joins by being listed in `make_budget`."""

from __future__ import annotations

import contextlib
import copy
import json
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.charges import counting_event
from hedgerow.accounting.events import Event
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Rho
from hedgerow.accounting.units import ROW, Unit
from hedgerow.errors import BudgetError, FractionWarning, PlanError

Make = Callable[[Any], Budget]
PERSONS = Unit("patient_id", 40)


@pytest.fixture(params=["memory", "file"])
def make_budget(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "memory":
        return Budget
    return lambda epsilon: BudgetFile.create(tmp_path / "budget.json", epsilon)


def look(epsilon: Any) -> Event:
    return counting_event("rows", Fraction(epsilon))


def test_exact_to_the_last_tenth(make_budget: Make) -> None:
    budget = make_budget(0.3)
    for amount in (0.1, 0.2):
        budget.reserve(amount, "a look").settle()
    assert budget.spent == 0  # nothing was charged inside the reservations
    for amount in (0.1, 0.2):
        reservation = budget.reserve(amount, "a look")
        reservation.charge(look(Fraction(str(amount))))
        reservation.settle()
    assert budget.remaining == 0
    with pytest.raises(BudgetError):
        budget.reserve(Fraction(1, 10**9), "one more")


def test_refusal_says_requested_remaining_and_difference(make_budget: Make) -> None:
    budget = make_budget(1)
    budget.reserve("0.75", "first")
    with pytest.raises(BudgetError, match=r"requested ε = 0\.5, remaining 0\.25 of 1, short by 0\.25.*Nothing was spent"):
        budget.reserve(0.5, "second")
    assert budget.spent == Fraction(3, 4)


def test_a_reservation_pays_only_what_it_holds(make_budget: Make) -> None:
    reservation = make_budget(1).reserve("1/2", "fit")
    reservation.charge(look("1/3"))
    with pytest.raises(BudgetError, match="short by 1/6"):
        reservation.charge(look("1/3"))
    assert reservation.charged == Fraction(1, 3)


def test_what_was_not_used_comes_back_only_after_a_good_end(make_budget: Make) -> None:
    budget = make_budget(1)
    crashed, ended = budget.reserve("1/2", "crashes"), budget.reserve("1/2", "ends")
    for reservation in (crashed, ended):
        reservation.charge(look("1/8"))
    ended.settle()
    ended.settle()
    assert budget.spent == Fraction(1, 2) + Fraction(1, 8)
    with pytest.raises(BudgetError, match="settled already"):
        ended.charge(look("1/8"))


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), None, "much"])
def test_bad_amounts_spend_nothing(make_budget: Make, epsilon: Any) -> None:
    budget = make_budget(1)
    with pytest.raises(PlanError):
        budget.reserve(epsilon, "nonsense")
    assert budget.spent == 0


def check_interleaved(budget: Budget, seed: int, steps: int = 120) -> Fraction:
    """What R1 in PROOF.md rests on, step by step: looks that were charged for pure requests, and the whole of requests
    with δ, never add up to more than what is booked, nor that to more than the total. Returns the ε that was reserved in all.
    """
    rng = np.random.default_rng(seed)
    ours: list[Any] = []
    settled: set[int] = set()
    for _ in range(steps):
        step = rng.choice(["reserve", "charge", "charge", "settle"])
        which = int(rng.integers(0, len(ours))) if ours else 0
        amount = Fraction(int(rng.integers(1, 8)), 20)
        try:
            if step == "reserve" or not ours:
                ours.append(budget.reserve(amount, "a request", rng.choice(["0", "1e-6"])))
            elif step == "charge":
                gaussian = bool(rng.integers(0, 2))
                ours[which].charge(counting_event("rows", Rho(amount / 100) if gaussian else amount / 4))
                assert which not in settled
                assert ours[which].delta or not gaussian
            else:
                ours[which].settle()
                settled.add(which)
        except BudgetError:
            pass
        looked = sum((event.epsilon for each in ours if not each.delta for event in each.events), Fraction(0))
        held = sum((each.epsilon for each in ours if each.delta), Fraction(0))
        assert looked + held <= budget.spent <= budget.epsilon
        assert sum((each.delta for each in ours), Fraction(0)) == budget.spent_delta <= budget.delta
    return sum((each.epsilon for each in ours), Fraction(0))


@pytest.mark.parametrize("seed", range(10))
def test_requests_that_interleave_never_overspend(seed: int) -> None:
    """Pure ones that give back while others with δ are open, and whose refund is spent again."""
    assert check_interleaved(Budget(2, "1e-5"), seed) > 2  # something was given back and reserved again


def test_many_threads_never_overspend(make_budget: Make) -> None:
    budget = make_budget("0.5")
    won = []

    def race() -> None:
        for _ in range(3):
            try:
                budget.reserve("0.1", "race")
                won.append(1)
            except BudgetError:
                pass

    threads = [threading.Thread(target=race) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 5
    assert budget.remaining == 0


def test_a_copy_is_the_same_budget(make_budget: Make) -> None:
    budget = make_budget(1)
    assert copy.deepcopy(budget) is budget
    assert copy.copy(budget) is budget


def test_a_budget_in_memory_does_not_travel() -> None:
    with pytest.raises(BudgetError, match="BudgetFile"):
        pickle.dumps(Budget(1))


@pytest.mark.slow
@given(st.lists(st.tuples(st.fractions(Fraction(1, 100), 1, max_denominator=100), st.booleans(), st.integers(0, 4)), max_size=12))
def test_any_sequence_against_a_simple_model(steps: list[tuple[Fraction, bool, int]]) -> None:
    budget, spent = Budget(2), Fraction(0)
    for amount, settles, quarters in steps:
        if amount > 2 - spent:
            with pytest.raises(BudgetError):
                budget.reserve(amount, "step")
            continue
        reservation = budget.reserve(amount, "step")
        if quarters:
            reservation.charge(look(amount * quarters / 4))
        if settles:
            reservation.settle()
        spent += amount * quarters / 4 if settles else amount
        assert budget.spent == spent <= budget.epsilon


# ---------------------------------------------------------------- the unit


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (
            PERSONS,
            ROW,
            r"for persons \(patient_id, at most 40 rows each\), and this request is for rows",
        ),
        (ROW, PERSONS, r"for rows, and this request is for persons \(patient_id, at most 40 rows each\)"),
        (PERSONS, Unit("patient_id", 5), r"rows_per_person|at most 5 rows each"),
        (PERSONS, Unit("doctor_id", 40), r"doctor_id"),
    ],
)
def test_the_first_request_is_the_unit_and_others_are_refused(make_budget: Make, first: Unit, second: Unit, words: str) -> None:
    budget = make_budget(1)
    assert budget.unit is None
    reservation = budget.reserve("0.25", "first", unit=first)
    with pytest.raises(BudgetError, match=rf"{words}.*Nothing was spent"):
        budget.reserve("0.25", "second", unit=second)
    assert (budget.unit, budget.spent, reservation.unit) == (first, Fraction(1, 4), first)
    assert [entry.unit for entry in budget.entries] == [first]
    reservation.settle()
    with pytest.raises(BudgetError, match="could not be added up"):
        budget.reserve("0.25", "second", unit=second)  # a unit stays, whatever was given back
    budget.reserve("0.25", "third", unit=first)
    assert f"for {first.words}" in repr(budget)


def test_whoever_says_nothing_asks_for_rows(make_budget: Make) -> None:
    budget = make_budget(1)
    budget.reserve("0.25", "persons", unit=PERSONS)
    with pytest.raises(BudgetError, match="is for rows"):
        budget.reserve("0.25", "a caller who forgot")
    with pytest.raises(PlanError, match=r"unit: got 'row'; expected a hedgerow\.Unit"):
        budget.reserve("0.25", "a text", unit="row")  # type: ignore[arg-type]


def test_one_unit_wins_a_race(make_budget: Make) -> None:
    budget, won = make_budget(100), []

    def race(unit: Unit) -> None:
        for _ in range(5):
            with contextlib.suppress(BudgetError):
                won.append(budget.reserve("0.1", "race", unit=unit).unit)

    threads = [threading.Thread(target=race, args=(unit,)) for unit in (ROW, PERSONS, Unit("patient_id", 5)) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 10
    assert set(won) == {budget.unit}


def test_a_budget_may_be_given_its_unit(tmp_path: Path) -> None:
    for budget in (Budget(1, unit=PERSONS), BudgetFile.create(tmp_path / "budget.json", 1, unit=PERSONS)):
        assert budget.unit == PERSONS
        with pytest.raises(BudgetError, match=r"budget init FILE --epsilon TOTAL --row"):
            budget.reserve("0.25", "rows")
        with pytest.raises(BudgetError, match=r"Set rows_per_person = 40 in the schema, or .*--person patient_id --rows-per-person 5"):
            budget.reserve("0.25", "another k", unit=Unit("patient_id", 5))
        assert budget.spent == 0


# ---------------------------------------------------------------- the file


def old_file(path: Path, delta: bool, cost: str | None = None) -> Path:
    """As they were written before budgets had a unit."""
    entry = {"key": "0060a1a4ae7e4370826921e60702d551", "when": "2026-11-16T02:24:19Z", "what": "fit rdt", "reserved": "0.5", "spent": cost}
    document: dict[str, Any] = {"format": "hedgerow-budget", "version": 2 if delta else 1, "epsilon": "1"}
    document |= {"delta": "0.00001"} if delta else {}
    path.write_text(json.dumps({**document, "entries": [entry | ({"delta": "0.000001"} if delta else {})]}))
    return path


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("unit", [ROW, PERSONS])
def test_an_old_file_pays_when_its_unit_is_stated(tmp_path: Path, delta: bool, unit: Unit) -> None:
    budget = BudgetFile(old_file(tmp_path / "budget.json", delta))
    assert (budget.unit, budget.spent, budget.spent_delta) == (None, Fraction(1, 2), Fraction(delta, 10**6))
    for asked in (ROW, PERSONS):
        with pytest.raises(BudgetError, match=r"does not say whether on rows or on persons\. Nothing was spent\. .*hedgerow budget unit"):
            budget.reserve("0.25", "fit", unit=asked)
    budget.state_unit(unit)
    budget.state_unit(unit)
    with pytest.raises(BudgetError, match="A unit that is known stays"):
        budget.state_unit(Unit("doctor_id"))
    budget.reserve("0.25", "fit", unit=unit)
    with pytest.raises(BudgetError, match="could not be added up"):
        budget.reserve("0.25", "fit", unit=Unit("doctor_id"))
    again = BudgetFile(budget.path)
    assert (again.unit, again.spent, [entry.unit for entry in again.entries]) == (unit, Fraction(3, 4), [None, unit])
    assert json.loads(budget.path.read_text())["version"] == 3


def test_an_old_file_that_has_spent_nothing_takes_the_first_unit(tmp_path: Path) -> None:
    budget = BudgetFile(old_file(tmp_path / "budget.json", False, cost="0"))
    budget.reserve("0.25", "fit", unit=PERSONS)
    assert BudgetFile(budget.path).unit == PERSONS


def test_the_unit_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    budget = BudgetFile.create(path, 1)
    assert json.loads(path.read_text())["unit"] is None
    budget.reserve("0.25", "fit", unit=Unit('the "id", at most 5 rows\n', 1))
    document = json.loads(path.read_text())
    assert document["unit"] == document["entries"][0]["unit"] == 'person: the "id", at most 5 rows\n, at most 1 row'
    assert BudgetFile(path).unit == Unit('the "id", at most 5 rows\n', 1)
    for damage in ({"unit": "row"}, {"unit": "rows"}, {"unit": None}, {"unit": 3}):
        path.write_text(json.dumps(document | damage))
        with pytest.raises(BudgetError, match="damaged"):
            BudgetFile(path)


def _race(path: Path, results: Any) -> None:
    try:
        BudgetFile(path).reserve("0.1", "race")
        results.put(1)
    except BudgetError:
        results.put(0)


def test_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    BudgetFile.create(path, "0.3")
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_race, args=(path, results)) for _ in range(5)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sum(results.get(timeout=120) for _ in processes) == 3
    assert BudgetFile(path).remaining == 0


def test_the_charge_is_on_disk_when_reserve_returns(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    reservation = BudgetFile.create(path, 1).reserve("0.4", "fit")
    (entry,) = json.loads(path.read_text())["entries"]
    assert (entry["reserved"], entry["spent"], entry["what"]) == ("0.4", None, "fit")
    assert BudgetFile(path).remaining == Fraction(3, 5)
    reservation.settle()
    assert json.loads(path.read_text())["entries"][0]["spent"] == "0"


def test_an_existing_budget_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    BudgetFile.create(path, 1).reserve(1, "all")
    with pytest.raises(BudgetError, match="exists already"):
        BudgetFile.create(path, 100)
    assert BudgetFile(path).remaining == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '{"format": "hedgerow-budget", "version": 9, "epsilon": "1", "entries": []}',
        '{"format": "hedgerow-budget", "version": 0, "epsilon": "1", "entries": []}',
        '{"format": "hedgerow-release", "version": 1, "epsilon": "1", "entries": []}',
        '{"format": "hedgerow-budget", "version": 1, "epsilon": "-1", "entries": []}',
        '{"format": "hedgerow-budget", "version": 1, "epsilon": "1", "entries": [{"what": "x"}]}',
        '{"format": "hedgerow-budget", "version": 1, "epsilon": "1", "entries": '
        '[{"what": "x", "key": "k", "when": "t", "reserved": "1", "spent": "-5"}]}',
        '{"format": "hedgerow-budget", "version": 1, "epsilon": "1", "entries": '
        '[{"what": "x", "key": "k", "when": "t", "reserved": "1", "spent": "-0.5"}]}',
    ],
)
def test_a_damaged_file_stops_everything(tmp_path: Path, text: str) -> None:
    path = tmp_path / "budget.json"
    path.write_text(text)
    with pytest.raises(BudgetError, match="damaged"):
        BudgetFile(path)


TEXT = """{
 "format": "hedgerow-budget",
 "version": 3,
 "epsilon": "1",
 "delta": "0",
 "unit": "row",
 "entries": [
  {
   "key": "%s",
   "when": "%s",
   "what": "Wälder",
   "reserved": "0.25",
   "spent": null,
   "delta": "0",
   "unit": "row"
  }
 ]
}
"""


def test_the_text_of_the_file(tmp_path: Path) -> None:
    """It is read by people, and by the programs of others."""
    path = tmp_path / "budget.json"
    BudgetFile.create(path, 1).reserve("0.25", "Wälder")
    (entry,) = BudgetFile(path).entries
    assert path.read_text(encoding="utf-8") == TEXT % (entry.key, entry.when)


def test_a_lock_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    budget = BudgetFile.create(path, 1)
    (tmp_path / "budget.json.lock").mkdir()
    with pytest.raises(BudgetError, match="its lock cannot be opened"):
        budget.reserve("0.25", "fit")
    assert BudgetFile(path).spent == 0


def test_a_budget_file_travels_to_another_process(tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "budget.json", 1)
    pickle.loads(pickle.dumps(budget)).reserve("0.25", "elsewhere")  # noqa: S301
    assert budget.spent == Fraction(1, 4)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_no_file_stays_open(tmp_path: Path) -> None:
    BudgetFile.create(tmp_path / "budget.json", 1).reserve("0.1", "fit").settle()
    opened = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # of another thread, closed meanwhile
            opened.append(os.readlink(f"/proc/self/fd/{number}"))
    assert not [name for name in opened if name.startswith(str(tmp_path))]


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="budget init"):
        BudgetFile(tmp_path / "none.json")


# ---------------------------------------------------------------- ways to pay twice that were tried


def test_numpy_numbers_do_not_wrap_around(make_budget: Make) -> None:
    """A NumPy integer inside a Fraction would overflow in sums and make the budget negative."""
    budget = make_budget(1)
    with pytest.warns(FractionWarning):
        budget.reserve(1 / 3, "float")
    for epsilon in (np.int64(1000), np.int8(100), np.uint64(10)):
        with pytest.raises(BudgetError):
            budget.reserve(epsilon, "numpy")
    reservation = budget.reserve(np.float64(0.5), "numpy")
    assert all(type(part) is int for part in (reservation.epsilon.numerator, reservation.epsilon.denominator))
    assert 0 < budget.spent < 1


def test_a_charge_must_be_an_exact_fraction(make_budget: Make) -> None:
    reservation = make_budget(1).reserve(1, "fit")
    for amount in (float("nan"), 0.5, Fraction(0), Fraction(-1)):
        event = Event("rows", "discrete Laplace", amount, 1, 1, Fraction(1))  # type: ignore[arg-type]
        with pytest.raises(BudgetError):
            reservation.charge(event)
    assert reservation.charged == 0


def test_entries_cannot_be_changed_from_outside(make_budget: Make) -> None:
    budget = make_budget(1)
    budget.reserve(1, "all")
    with pytest.raises(AttributeError):
        budget.entries[0].spent = Fraction(0)  # type: ignore[misc]


def _forked(budget: Budget, results: Any) -> None:
    try:
        budget.reserve(1, "in a child")
        results.put("paid")
    except BudgetError as error:
        results.put(str(error))


def test_a_fork_does_not_copy_the_money() -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_forked, args=(Budget(1), results))
    child.start()
    assert "BudgetFile" in results.get(timeout=180)
    child.join()


def test_two_names_of_one_file_are_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    budget = BudgetFile.create(tmp_path / "a" / "budget.json", 1)
    (tmp_path / "link.json").symlink_to(tmp_path / "a" / "budget.json")
    assert BudgetFile(tmp_path / "link.json").path == budget.path
    monkeypatch.chdir(tmp_path / "a")
    relative = BudgetFile("budget.json")
    monkeypatch.chdir(tmp_path)
    BudgetFile.create("budget.json", 100)
    relative.reserve(1, "all")
    assert budget.remaining == 0
    os.link(budget.path, tmp_path / "hard.json")
    with pytest.raises(BudgetError, match="hard link"):
        BudgetFile(tmp_path / "hard.json")


def test_the_file_keeps_its_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    budget = BudgetFile.create(path, 1)
    path.chmod(0o640)
    budget.reserve("0.1", "fit").settle()
    assert path.stat().st_mode & 0o777 == 0o640
    assert {p.name for p in tmp_path.iterdir()} == {"budget.json", "budget.json.lock"}


def _settles(reservation: Any) -> None:
    reservation.settle()


def test_a_forked_copy_cannot_settle_for_the_original(tmp_path: Path) -> None:
    """The child does not know what the parent will charge: settled there, a look would have cost nothing."""
    path = tmp_path / "budget.json"
    reservation = BudgetFile.create(path, 1).reserve(1, "fit")
    child = multiprocessing.get_context("fork").Process(target=_settles, args=(reservation,))
    child.start()
    child.join()
    assert BudgetFile(path).spent == 1
    reservation.charge(look("1/2"))
    reservation.settle()
    assert BudgetFile(path).spent == Fraction(1, 2)
