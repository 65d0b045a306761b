"""`hedgerow evaluate --calibration` and `--public`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow import BudgetFile


def test_calibration_takes_half_of_the_epsilon(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("evaluate", fitted.forest, fitted.test, "--epsilon", "0.5", "--calibration", "--budget", fitted.budget)
    assert result.exit_code == 0, result.output
    for part in (
        "noisy confusion matrix, each number ± 5.64",
        "noisy reliability, each count ± 5.64",
        "98.8 to 99.7 %",
        "expected calibration error: ",
        "charged: ε = 0.25 for the confusion matrix and ε = 0.25 for the reliability counts",
        "ε = 0.5 differential privacy",
        "ε = 0.5 of 2 left",
    ):
        assert part in result.stdout
    assert [entry.what.split(",")[0] for entry in BudgetFile(fitted.budget).entries] == ["fit Private-RDT", "evaluate"]


@pytest.mark.slow
def test_public_rows_are_exact_free_and_warned_about(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    before = fitted.budget.read_bytes()
    result = run("evaluate", fitted.forest, fitted.test, "--public", "--calibration")
    assert result.exit_code == 0, result.output
    assert "warning: --public: the test rows are taken as public" in result.stderr
    for part in ("confusion matrix, exact", "on 500 rows", "reliability, exact", "no privacy guarantee", "nothing was charged"):
        assert part in result.stdout
    assert "reliability" not in run("evaluate", fitted.forest, fitted.test, "--public").stdout
    assert fitted.budget.read_bytes() == before


def test_refusals_say_why_and_spend_nothing(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    before = fitted.budget.read_bytes()
    words = ["evaluate", fitted.forest, fitted.test, "--calibration"]
    for more, code, said in [
        ([], 2, "--epsilon: missing"),
        (["--public", "--epsilon", "0.1"], 2, "leave out --epsilon"),
        (["--public", "--budget", fitted.budget], 2, "leave out --epsilon"),
        (["--epsilon", "1.5", "--budget", fitted.budget], 3, "short by"),
        (["--epsilon", "0", "--budget", fitted.budget], 2, "above 0"),
    ]:
        result = run(*words, *more)
        assert result.exit_code == code, result.output
        assert said in result.stderr
        assert fitted.budget.read_bytes() == before
