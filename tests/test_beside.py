"""Stored results: a run goes on where it was, and the report says the same twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.beside.models import Model
from benchmarks.beside.naive_bayes import NaiveBayes, cells_of
from benchmarks.beside.protocol import FOLDS, Answer, Failure, Job, Table
from benchmarks.beside.report import report
from benchmarks.beside.run import run
from benchmarks.beside.store import Store
from benchmarks.beside.summary import cells_of as summarised
from benchmarks.beside.summary import gaps

from hedgerow import Categorical, Numeric, Schema, Target

SCHEMA = Schema([Categorical("colour", ["red", "blue"]), Numeric("size", 0, 1)], Target("class", ["no", "yes"]))


def tiny(name: str) -> Table:
    y = np.array(["no", "yes"] * 10)
    columns = {"colour": np.where(y == "no", "red", "blue"), "size": np.linspace(0, 1, 20)}
    rows = np.arange(20)
    folds = tuple((rows[rows % FOLDS != fold], rows[rows % FOLDS == fold]) for fold in range(FOLDS))
    return Table(name, columns, y, SCHEMA, folds)


class Counting:
    """A model that is always right, or gives up, and counts its fits."""

    def __init__(self, gives_up_at: int = -1) -> None:
        self.jobs: list[Job] = []
        self.gives_up_at = gives_up_at

    def answers(self, table: Table, jobs: Sequence[Job], patience: int) -> Iterator[Answer | Failure]:
        for job in jobs:
            self.jobs.append(job)
            y = table.y[table.folds[job.fold][1]]
            failed = len(self.jobs) - 1 == self.gives_up_at
            yield Failure(job, "too slow") if failed else Answer(job, y, np.eye(2)[y], 0.1, 0.2, {"numpy": "2"})


def test_a_run_skips_what_is_stored(tmp_path: Path) -> None:
    store, model = Store(tmp_path / "results.jsonl"), Counting(gives_up_at=3)
    models = {"dpdf": Model("DPDF", model.answers)}
    assert run(store, ["dpdf"], ["votes"], ["1"], models=models, load=tiny) == FOLDS
    assert run(store, ["dpdf"], ["votes"], ["1"], models=models, load=tiny) == 0
    assert run(store, ["dpdf"], ["votes"], ["1", "2"], repetitions=2, models=models, load=tiny) == 3 * FOLDS
    assert len(set(model.jobs)) == len(model.jobs) == 4 * FOLDS
    given_up = [job for job, row in store.rows().items() if "accuracy" not in row]
    assert given_up == [Job("votes", "dpdf", "1", 3)]
    assert run(store, ["dpdf"], ["votes"], ["1"], models=models, load=tiny, retry=True) == 1
    assert all(row["accuracy"] == 1 and row["auc"] == 1 for row in store.rows().values())
    assert store.forget(["dpdf"]) == 4 * FOLDS + 1
    assert store.rows() == {}


def test_what_does_not_fit_into_the_time_gets_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, model = Store(tmp_path / "results.jsonl"), Counting()
    run(store, ["dpdf"], ["votes"], ["1"], minutes=0, models={"dpdf": Model("DPDF", model.answers)}, load=tiny)
    assert [("accuracy" in row) for row in store.rows().values()] == [True] + [False] * (FOLDS - 1)
    missing = {"dpdf": Model("DPDF", model.answers, lambda: "not written yet")}
    assert run(store, ["dpdf"], ["car"], ["1"], models=missing, load=tiny) == 0
    assert "not written yet" in capsys.readouterr().out


def stored_file(path: Path) -> Store:
    store = Store(path)
    for model, level in (("hedgerow", 0.9), ("dpdf", 0.8), ("diffprivlib-ordinal", 0.5), ("diffprivlib-one-hot", 0.6)):
        for set_name in ("adult", "votes"):
            for fold in range(FOLDS):
                accuracy = level + fold / 100 - (0.2 if (set_name, model) == ("votes", "hedgerow") else 0)
                fields = {"delta": 0.0, "accuracy": accuracy, "auc": 0.7, "log_loss": 0.3, "fit_seconds": 0.1, "predict_seconds": 0.1}
                store.append(Job(set_name, model, "1", fold), fields | {"versions": {"numpy": "2"}})
    store.append(Job("connect-4", "dpdf", "1", 0), {"status": "too slow"})
    return store


def test_the_report_is_a_function_of_the_stored_rows(tmp_path: Path) -> None:
    rows = list(stored_file(tmp_path / "results.jsonl").rows().values())
    text = report(rows)
    assert text == report(reversed(rows))
    assert "DP-EBM, δ = 1e-6: not in the store." in text
    assert "DPDF, connect-4: 1 fits without a result (too slow)." in text
    assert "| Hedgerow | all others | 1 of 2 |" in text
    assert "-0.100: votes, ε = 1, DPDF" in text
    assert "| diffprivlib, one-hot | " in text
    assert "| diffprivlib, ordinal codes | " not in text


def test_means_errors_and_gaps(tmp_path: Path) -> None:
    cells = summarised(stored_file(tmp_path / "results.jsonl").rows().values())
    cell = cells["adult", "1", "hedgerow"]
    assert cell.mean == pytest.approx(0.92)
    assert cell.error == pytest.approx(np.std([0, 0.01, 0.02, 0.03, 0.04], ddof=1) / 5**0.5)
    won, lost = gaps(cells, "hedgerow", ["dpdf"], ["adult", "votes"], ["1"])
    assert (won.won, lost.won) == (True, False)


def test_naive_bayes_with_much_budget_is_right() -> None:
    table = tiny("tiny")
    codes, sizes = cells_of(table.X, table.sizes, table.bounds)
    assert sizes.tolist() == [2, 10]
    assert (codes[0, 1], codes[-1, 1]) == (0, 9)
    p = NaiveBayes(codes, table.y, sizes, 2, 1e6, np.random.default_rng(0)).probabilities(codes)
    assert np.allclose(p.sum(axis=1), 1)
    assert (p.argmax(axis=1) == table.y).all()
