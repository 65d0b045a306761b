"""What is refused is refused in one message, with its exit code, and before anything is spent."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

WRONG = {
    "no such table": ({"data": "absent.csv"}, [], 2, "no such file"),
    "no such schema": ({"schema": "absent.toml"}, [], 2, "cannot be read"),
    "no such budget": ({"budget": "absent.json"}, [], 3, "budget init"),
    "not a table": ({"data": "schema.toml"}, [], 2, "expected a name that ends in"),
    "missing column": ({"data": "narrow.csv"}, [], 2, "sex"),
    "negative ε": ({"epsilon": "-1"}, [], 2, "above 0"),
    "ε is no number": ({"epsilon": "lots"}, [], 2, "finite number"),
    "infinite ε": ({"epsilon": "inf"}, [], 2, "finite number"),
    "ε too small for any noise": ({"epsilon": "1e-30"}, [], 2, "larger epsilon"),
    "ε above the budget": ({"epsilon": "2.5"}, [], 3, "short by 0.5"),
    "too many leaves": ({}, ["--trees", "100000", "--depth", "3"], 2, "leaves"),
    "no trees": ({}, ["--trees", "0"], 2, "at least 1"),
    "no bins": ({}, ["--bins", "0"], 2, "bins"),
    "no threads": ({}, ["--jobs", "0"], 2, "--jobs"),
    "negative seed": ({}, ["--seed", "-1"], 2, "--seed"),
    "unknown sampler": ({}, ["--sampler", "dice"], 2, "dice"),
    "another algorithm's option": ({}, ["--noise-rule", "tight"], 2, "--noise-rule"),
    "output in no folder": ({"output": "nowhere/forest.json"}, [], 2, "does not exist"),
    "output is a folder": ({"output": "."}, [], 2, "is a folder"),
    "output is the table": ({"output": "data.csv"}, ["--force"], 2, "also an input"),
    "output is the budget": ({"output": "budget.json"}, ["--force"], 2, "also an input"),
}


def test_a_file_of_another_kind_is_said_to_be_one(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    """A release or a table as the schema was "not valid TOML", and a release as the budget "damaged"."""
    for schema, said in (
        (fitted.forest, "no schema: it says that it is a 'hedgerow-release'"),
        (fitted.data, "no schema: by its name it is a table"),
    ):
        result = run("fit", fitted.data, "--schema", schema, "--epsilon", 1, "-o", fitted.folder / "other.json")
        assert (result.exit_code, said in " ".join(result.stderr.split())) == (2, True), result.stderr
    result = run("budget", "show", fitted.forest)
    assert (result.exit_code, "no budget: it says that it is a 'hedgerow-release'" in " ".join(result.stderr.split())) == (3, True)


def test_a_table_with_another_sign_between_columns_or_none_at_all(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    colons, empty = fitted.folder / "colons.csv", fitted.folder / "empty.csv"
    colons.write_text(fitted.data.read_text().replace(",", ":"))
    empty.touch()
    commands = (["schema", "check", fitted.schema], ["evaluate", fitted.forest, "--epsilon", "0.1"])
    for command in (*commands, ["schema", "draft", "--target", "ill", "-o", fitted.folder / "draft.toml"]):
        result = run(*command, colons)
        assert (result.exit_code, "--csv 'delimiter=:'" in " ".join(result.stderr.split())) == (2, True), result.stderr
        result = run(*command, empty)
        assert (result.exit_code, "is empty; expected a header and rows" in " ".join(result.stderr.split())) == (2, True), result.stderr
    assert run("schema", "check", fitted.schema, colons, "--csv", "delimiter=:").exit_code == 0
    colons.write_text("31 no yes\n")  # without a header it is a row, which is not repeated
    said = run("schema", "check", fitted.schema, colons).stderr
    assert "31" not in "".join(said.split()).replace(str(fitted.folder), "")  # whose name may hold any number


@pytest.mark.parametrize("case", WRONG)
def test_a_refused_fit_leaves_every_file_as_it_was(
    case: str, place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, more, code, words = WRONG[case]
    monkeypatch.chdir(place.folder)
    (place.folder / "narrow.csv").write_text("smoker,age,ill\nnever,1,no\n")
    before = {path.name: path.read_bytes() for path in place.folder.iterdir()}
    given = {
        "data": "data.csv",
        "schema": "schema.toml",
        "epsilon": "1",
        "budget": "budget.json",
        "output": "forest.json",
    }
    given.update(changed)
    options = [f"--{name}={given[name]}" for name in ("schema", "epsilon", "budget", "output")]
    result = run("fit", given["data"], "--algorithm", "rdt", *options, *more)
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert "Traceback" not in result.output
    after = {path.name: path.read_bytes() for path in place.folder.iterdir() if not path.name.endswith(".lock")}
    assert after == before


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_an_output_folder_that_cannot_be_written(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    closed = place.folder / "closed"
    closed.mkdir(mode=0o500)
    before = place.budget.read_bytes()
    words = ["--schema", place.schema, "--algorithm", "rdt", "--epsilon", 1, "--budget", place.budget]
    assert run("fit", place.data, *words, "-o", closed / "forest.json").exit_code == 2
    assert place.budget.read_bytes() == before


def test_an_output_folder_that_refuses_is_noticed_first(
    place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**where: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("hedgerow.cli.outputs.tempfile.TemporaryFile", refuse)
    before = place.budget.read_bytes()
    words = ["--schema", place.schema, "--algorithm", "rdt", "--epsilon", 1, "--budget", place.budget]
    result = run("fit", place.data, *words, "-o", place.forest)
    assert result.exit_code == 2
    assert "cannot be written to" in result.stderr
    assert place.budget.read_bytes() == before


def test_plain_rdt_takes_neither_epsilon_nor_budget(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["fit", place.data, "--schema", place.schema, "--algorithm", "plain-rdt", "-o", place.forest]
    for more in (["--epsilon", 1], ["--budget", place.budget]):
        result = run(*words, *more)
        assert result.exit_code == 2
        assert not place.forest.exists()


def test_a_refused_evaluation_leaves_the_budget_as_it_was(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    before = fitted.budget.read_bytes()
    for forest, data, epsilon, code in [
        (fitted.forest, fitted.test, "1.5", 3),
        (fitted.forest, fitted.test, "0", 2),
        (fitted.forest, fitted.folder / "absent.csv", "0.1", 2),
        (fitted.schema, fitted.test, "0.1", 2),
    ]:
        result = run("evaluate", forest, data, "--epsilon", epsilon, "--budget", fitted.budget)
        assert result.exit_code == code, result.output
        assert result.stderr.startswith("error: ")
        assert fitted.budget.read_bytes() == before


def test_a_table_that_breaks_after_the_charge_stays_charged_and_says_so(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    broken = place.folder / "broken.csv.gz"
    broken.write_bytes(gzip.compress(place.data.read_bytes() + os.urandom(200_000))[:-50_000])
    words = ["--schema", place.schema, "--algorithm", "rdt", "--epsilon", 1, "--budget", place.budget]
    result = run("fit", broken, *words, "-o", place.forest)
    assert result.exit_code == 2, result.output
    assert f"The charge of ε = 1 stays in {place.budget}" in result.stderr
    assert "current" not in result.stderr  # no value of a row
    assert "not settled: stays spent" in run("budget", "show", place.budget).stdout


@pytest.mark.parametrize("command", ["predict", "rules", "show"])
def test_a_hostile_forest_is_one_message(command: str, place: SimpleNamespace, run: Callable[..., Any]) -> None:
    place.forest.write_text('{"format": "hedgerow-release", "version": 1, "trees": "\\u001b[2J"}')
    result = run(command, place.forest, *([place.test] if command == "predict" else []))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "\x1b" not in result.output
