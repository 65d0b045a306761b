"""Details of the accounting that a wrong line could change unnoticed: exact roots and bounds, texts, limits at their edges, files."""

from __future__ import annotations

import json
import math
import os
import pickle
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, Event
from hedgerow.accounting.loss import MAX_SCALE, exact_epsilon, noise_variance
from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.accounting.noise import (
    Gaussian,
    Noise,
    Shares,
    made_noise,
    noise_from_text,
    noise_of,
    rough_variance,
    text_of_noise,
    variance_of,
)
from hedgerow.accounting.units import Unit
from hedgerow.accounting.zcdp import DIGITS, choice_epsilon, rho_after, sigma_squared_for
from hedgerow.errors import BudgetError, FractionWarning, PlanError
from hedgerow.schema.attributes import MAX_ROWS_PER_PERSON

PRICE = Fraction(1, 9)
EVENT = Event("rows", DISCRETE_LAPLACE, PRICE, 1, Fraction(1), Fraction(9))


def laplace_variance(scale: float) -> float:
    """From its probabilities."""
    weights = [math.exp(-x / scale) for x in range(2000)]
    return 2 * math.fsum(x * x * w for x, w in enumerate(weights)) / (2 * math.fsum(weights) - 1)


def test_variances_by_hand() -> None:
    for scale in (Fraction(1, 3), Fraction(3, 2), Fraction(20)):
        exact = laplace_variance(float(scale))
        assert noise_variance(scale) == variance_of(scale) == pytest.approx(exact)
        assert rough_variance(scale) == pytest.approx(2 * float(scale) ** 2)
        shares = Shares(scale, 3, 2)  # half as many again as one draw needs
        assert shares.draws == 1.5
        assert variance_of(shares) == pytest.approx(1.5 * exact)
        assert rough_variance(shares) == pytest.approx(3 * float(scale) ** 2)
    assert variance_of(Gaussian(Fraction(25))) == rough_variance(Gaussian(Fraction(25))) == 25.0
    assert made_noise(DISCRETE_GAUSSIAN, Fraction(5)) == Gaussian(Fraction(5))
    assert noise_of(EVENT) == made_noise(DISCRETE_LAPLACE, Fraction(9)) == Fraction(9)


TEXTS: dict[str, Noise] = {
    "1.5": Fraction(3, 2),
    "1/3": Fraction(1, 3),
    "gaussian 1/3": Gaussian(Fraction(1, 3)),
    f"gaussian {MAX_SCALE**2}": Gaussian(Fraction(MAX_SCALE**2)),
    f"{MAX_SCALE}": Fraction(MAX_SCALE),
    "shares 3 of 2 of 20": Shares(Fraction(20), 3, 2),
    "shares 1 of 1 of 0.5": Shares(Fraction(1, 2), 1, 1),
    "shares 2 of 2 of 20": Shares(Fraction(20), 2, 2),
}


@pytest.mark.parametrize("text", TEXTS)
def test_noise_as_text(text: str) -> None:
    assert text_of_noise(TEXTS[text]) == text
    assert noise_from_text(text) == TEXTS[text]


@pytest.mark.parametrize(
    "text",
    [
        "", "-1", "1e9", f"{MAX_SCALE + 1}", f"gaussian {MAX_SCALE**2 + 1}", "gaussian -1", "gaussian", "Gaussian 1",
        "shares 1 of 2 of 20", "shares 3 of 0 of 20", "shares 0 of 0 of 20", "shares 2 of -1 of 20", "shares 03 of 2 of 20",
        "shares 3 of 2 of 20.0", "shares 3 of 2", "shares 3 of 2 of 1 of 20", "shares 3  of 2 of 20", f"shares 3 of 2 of {MAX_SCALE + 1}",
    ],
)  # fmt: skip
def test_noise_that_nobody_writes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        noise_from_text(text)


@pytest.mark.parametrize("times", [2, 8])
@pytest.mark.parametrize(
    ("rho", "places"),  # as many decimals as make DIGITS leading ones, of √ρ, and never fewer than none
    [
        (Fraction(1, 50), DIGITS + 1), (Fraction(3, 7), DIGITS + 1), (Fraction(2), DIGITS), (Fraction(99), DIGITS),
        (Fraction(101), DIGITS - 1), (Fraction(3, 10**9), DIGITS + 5), (Fraction(7 * 10**24, 3), max(0, DIGITS - 12)),
        (Fraction(10**29, 3), max(0, DIGITS - 14)),
    ],
)  # fmt: skip
def test_the_epsilon_of_a_choice_is_the_largest_short_one(rho: Fraction, places: int, times: int) -> None:
    found, step = choice_epsilon(rho, times), Fraction(1, 10**places)
    assert found % step == 0
    assert found**2 <= times * rho < (found + step) ** 2


@pytest.mark.parametrize("root", [34_567_890_123, 99_999_999_999])
def test_the_epsilon_of_a_choice_is_below_a_root_that_is_nearly_reached(root: int) -> None:
    """8ρ is a third of the last digit less than a square: the root of the square would cost more than ρ."""
    unit = 10 ** (2 * (DIGITS + 1))
    rho = Fraction(3 * root**2 - 1, 3 * 8 * unit)
    places = max(0, DIGITS - math.floor(math.log10(rho) / 2))
    assert choice_epsilon(rho) ** 2 <= 8 * rho
    assert places == DIGITS + 1
    assert choice_epsilon(rho) == Fraction(root - 1, 10**places)


def test_limits_at_their_edges() -> None:
    assert sigma_squared_for(2 * MAX_SCALE**2, Fraction(1)) == MAX_SCALE**2
    with pytest.raises(PlanError, match=r"σ of at most 2\^50"):
        sigma_squared_for(2 * MAX_SCALE**2 + 1, Fraction(1))
    assert rho_after(Fraction(1, 2), Fraction(0), Fraction(1, 2)) == Fraction(1, 2)
    assert rho_after(Fraction(0), Fraction(1, 2), Fraction(1, 2)) == Fraction(1, 2)
    for requested in (Fraction(1), Fraction(-1, 10**9)):
        with pytest.raises(PlanError, match="expected at most"):
            rho_after(Fraction(1, 2), requested, Fraction(1))
    assert Unit("who", MAX_ROWS_PER_PERSON).rows_per_person == MAX_ROWS_PER_PERSON
    with pytest.raises(PlanError, match="rows_per_person"):
        Unit("who", MAX_ROWS_PER_PERSON + 1)


@pytest.mark.parametrize(
    ("value", "warns"),
    [
        (1 / 3, True), (2 / 3, True), (1 / 7, True), (10 / 99, True), (0.1, False), (0.33, False), (0.5, False), (1 / 101, False),
        (0.333333333333333, False),  # 15 digits are no third: 1e-15 of it away
        (0.6666666666666662, True),  # 7e-16 of it away, as sums of floats may be
    ],
)  # fmt: skip
def test_which_floats_are_taken_for_fractions_that_were_meant(value: float, warns: bool) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert exact_epsilon(value) == Fraction(repr(value))
    assert [each.category for each in told] == [FractionWarning] * warns


def test_room_is_asked_for_and_nothing_is_taken() -> None:
    budget = Budget(1)
    budget.check_room(1, "a request")
    with pytest.raises(BudgetError, match="a request: requested ε = 2"):
        budget.check_room(2, "a request")
    with pytest.raises(BudgetError, match="requested δ"):
        budget.check_room(1, "a request", Fraction(1, 10**6))
    assert budget.entries == ()
    assert budget.spent == 0


def test_how_a_notebook_shows_a_budget() -> None:
    budget = Budget(4)
    assert "0 of ε = 4 spent, 4 left" in budget._repr_html_()
    assert "a request" not in budget._repr_html_()
    budget.reserve(1, "a request")
    shown = budget._repr_html_()
    assert "1 of ε = 4 spent, 3 left" in shown
    assert "a request" in shown
    assert "25" in shown  # per cent of the bar
    assert shown.index("spent") < shown.index("a request")


def test_what_is_refused_in_the_last_step_is_not_charged() -> None:
    class Refusing(Reservation):
        def _confirm(self) -> None:
            raise BudgetError("closed")

    budget = Budget(1)
    taken = budget.reserve(1, "a request")
    refusing = Refusing(budget, taken._entry, Fraction(0))
    with pytest.raises(BudgetError, match="closed"):
        refusing.charge(EVENT)
    assert refusing.events == ()
    assert refusing.charged == 0
    taken.charge(EVENT)
    assert taken.charged == PRICE


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_budget_file_is_written_for_people_and_leaves_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "money.json"
    budget = BudgetFile.create(path, 1)
    before = open_files()
    for _ in range(3):
        budget.reserve(Fraction(1, 10), "Fußgänger 漢")
    assert open_files() == before
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{\n "format": ')
    assert text.endswith("}\n")
    assert "Fußgänger 漢" in text
    again: Any = pickle.loads(pickle.dumps(budget))  # noqa: S301
    assert type(again) is BudgetFile
    assert again.spent == budget.spent == Fraction(3, 10)


@pytest.mark.parametrize("spent", ["-1/2", "-1", "2"])
def test_a_budget_file_in_which_a_request_gave_back_what_it_had_not_is_damaged(tmp_path: Path, spent: str) -> None:
    path = tmp_path / "money.json"
    budget = BudgetFile.create(path, 5)
    budget.reserve(1, "a request")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["entries"][0]["spent"] = spent
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BudgetError, match="damaged"):
        budget.read()


@pytest.mark.parametrize(
    ("kind", "says"), [("hedgerow-schéma", "it says that it is a 'hedgerow-schéma'"), ("other", "is damaged or not a budget")]
)
def test_another_file_is_no_budget(tmp_path: Path, kind: str, says: str) -> None:
    path = tmp_path / "money.json"
    budget = BudgetFile.create(path, 5)
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, "format": kind}, ensure_ascii=False), encoding="utf-8")
    with pytest.raises(BudgetError, match=says):
        budget.read()


def test_a_lock_that_cannot_be_opened_spends_nothing(tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "money.json", 1)
    (tmp_path / "money.json.lock").unlink(missing_ok=True)
    (tmp_path / "money.json.lock").mkdir()
    with pytest.raises(BudgetError, match="its lock cannot be opened"):
        budget.reserve(1, "a request")
    assert budget.spent == 0
