"""What only real processes show: Ctrl-C, a race for one budget, a broken pipe, a terminal that cannot show ε."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow import BudgetFile

FIT = ["--schema", "schema.toml", "--algorithm", "rdt", "--depth", 2, "--budget", "budget.json"]
WAIT = 180


@pytest.mark.slow
def test_ctrl_c_leaves_the_charge(place: SimpleNamespace, start: Callable[..., Any], run: Callable[..., Any]) -> None:
    head, _, body = place.data.read_text().partition("\n")
    with (place.folder / "big.csv").open("w") as file:
        file.write(head + "\n")
        for _ in range(2500):  # five million rows: seconds of reading
            file.write(body)
    process = start("fit", "big.csv", *FIT, "--epsilon", "0.7", "-o", "forest.json")
    try:
        until = time.monotonic() + WAIT
        while not json.loads(place.budget.read_text())["entries"]:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WAIT)
    finally:
        process.kill()
        (place.folder / "big.csv").unlink()
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "ε = 0.7 stays in budget.json" in said
    assert "Traceback" not in said or "__del__" in said  # a compiler that was interrupted may complain for itself
    assert not place.forest.exists()
    (entry,) = BudgetFile(place.budget).entries
    assert entry.spent is None
    assert entry.cost == entry.reserved
    assert "not settled: stays spent" in run("budget", "show", place.budget).stdout


def test_two_processes_cannot_both_spend_what_is_left(place: SimpleNamespace, start: Callable[..., Any]) -> None:
    racers = [start("fit", "data.csv", *FIT, "--epsilon", "1.5", "--again", "-o", f"forest-{i}.json") for i in range(2)]
    said = [racer.communicate(timeout=WAIT) for racer in racers]
    assert sorted(racer.returncode for racer in racers) == [0, 3], said
    assert len(list(place.folder.glob("forest-*.json"))) == 1
    assert [str(entry.cost) for entry in BudgetFile(place.budget).entries] == ["3/2"]


@pytest.mark.slow
def test_a_broken_pipe_ends_quietly(fitted: SimpleNamespace, start: Callable[..., Any]) -> None:
    words = [["predict", "forest.json", "test.csv"], ["rules", "forest.json"], ["budget", "show", "budget.json"]]
    for command in words:
        read, write = os.pipe()
        os.close(read)  # nobody listens
        process = start(*command, stdout=write)
        os.close(write)
        _, said = process.communicate(timeout=WAIT)
        assert said == "", command
        assert process.returncode in (0, 1), command


def test_a_terminal_without_greek_still_works(place: SimpleNamespace, start: Callable[..., Any]) -> None:
    process = start("budget", "show", "budget.json", encoding_there="ascii")
    shown, said = process.communicate(timeout=WAIT)
    assert process.returncode == 0, said
    assert "total ? 2, spent 0" in shown


@pytest.mark.parametrize("moment", ["before the file is replaced", "after the file is replaced"])
def test_ctrl_c_while_the_charge_is_written_tells_the_truth(
    moment: str, place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = BudgetFile._write

    def interrupted(budget: BudgetFile, *what: Any) -> None:
        if moment.startswith("after"):
            write(budget, *what)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(BudgetFile, "_write", interrupted)
    result = run("fit", place.data, "--schema", place.schema, *FIT[2:-1], place.budget, "--epsilon", 1, "-o", place.forest)
    assert result.exit_code == 130
    stays = "ε = 1 stays" in result.stderr
    assert stays == moment.startswith("after")
    assert stays == (BudgetFile(place.budget).spent == 1)
    assert stays != ("Nothing was charged, no row was read." in result.stderr)
