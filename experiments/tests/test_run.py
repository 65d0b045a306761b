"""Runs that are stopped and go on; results that stay as they were stored; reports that say the same twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hedgerow.errors import ExperimentError
from hedgerow_experiments import provenance
from hedgerow_experiments.document import Block, Section, Table, html_page, markdown
from hedgerow_experiments.experiment import Experiment, Found, Job, Result
from hedgerow_experiments.run import Progress, kind, missing, run
from hedgerow_experiments.store import Store

DONE: list[Job] = []


def jobs(quick: bool) -> list[Job]:
    return [{"set": "car", "repetition": repetition} for repetition in range(2 if quick else 6)]


def work(job: Job) -> Found:
    DONE.append(job)
    if job["repetition"] == 4 and len(DONE) < 6:
        raise KeyboardInterrupt
    return {"accuracies": [job["repetition"] / 10, 0.5]}


def blocks(results: list[Result]) -> list[Block]:
    return [Table(["repetition", "first"], [[str(each.job["repetition"]), str(each.found["accuracies"][0])] for each in results])]


TOY = Experiment("toy", "Figure 0: a toy", "Nobody 2000", "None.", ("car",), jobs, work, blocks)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    DONE.clear()
    return Store(tmp_path)


def test_a_run_does_what_is_missing_and_an_interruption_loses_nothing(store: Store) -> None:
    assert run(store, [TOY], quick=True, workers=1) == []
    assert [job["repetition"] for job in DONE] == [0, 1]
    with pytest.raises(KeyboardInterrupt):
        run(store, [TOY], quick=False, workers=1)
    assert [result.job["repetition"] for result in store.results("toy")] == [0, 1, 2, 3]
    DONE.extend([{}] * 3)
    run(store, [TOY], quick=False, workers=1)
    assert len(store.results("toy")) == 6
    assert missing(store, TOY, quick=False) == []
    assert len(store.runs()) == 3


def test_progress_tells_how_many_and_how_long(store: Store) -> None:
    told: list[Progress] = []
    run(store, [TOY], quick=True, workers=1, tell=told.append)
    assert [(each.done, each.of) for each in told] == [(1, 2), (2, 2)]
    assert told[-1].remaining == 0


def test_several_processes_give_the_same_results(store: Store) -> None:
    experiment = Experiment("dates", "t", "s", "p", (), lambda quick: [{"number": n} for n in range(9)], square, lambda results: [])
    run(store, [experiment], quick=False, workers=2)
    assert sorted(result.found["square"] for result in store.results("dates")) == [n * n for n in range(9)]


def square(job: Job) -> Found:
    return {"square": job["number"] ** 2}


def test_what_cannot_run_here_comes_back_with_its_reason(store: Store) -> None:
    def setup(job: Job) -> str | None:
        return "no such peer" if job["repetition"] else None

    left = run(store, [Experiment("toy", "t", "s", "p", (), jobs, work, blocks, setup=setup)], quick=True, workers=1)  # type: ignore[arg-type]
    assert [(each.job["repetition"], each.why) for each in left] == [(1, "no such peer")]
    assert len(store.results("toy")) == 1


def test_half_a_line_at_the_end_is_left_out_and_the_next_result_stands_on_its_own(store: Store) -> None:
    store.add("toy", {"n": 1}, {"x": 1}, 0.1, "r")
    path = store.folder / "toy.jsonl"
    path.write_text(path.read_text() + '{"job": {"n": 2}, "fou')
    assert [result.job for result in store.results("toy")] == [{"n": 1}]
    store.add("toy", {"n": 3}, {"x": 3}, 0.1, "r")
    assert [result.job for result in store.results("toy")] == [{"n": 1}, {"n": 3}]
    path.write_text("{}}\n" + path.read_text())
    with pytest.raises(ExperimentError, match="line 1"):  # damage inside a file is told, not passed over
        store.results("toy")


def test_of_two_results_of_one_job_the_first_counts(store: Store) -> None:
    for value in (1, 2):
        store.add("toy", {"n": 1, "set": "car"}, {"x": value}, 0.1, "r")
    assert [result.found for result in store.results("toy")] == [{"x": 1}]


def test_results_of_another_file_are_not_mixed(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_DATA", str(tmp_path))
    (tmp_path / "car.csv.gz").write_bytes(b"one")
    run(store, [TOY], quick=True, workers=1)
    (tmp_path / "car.csv.gz").write_bytes(b"two")
    with pytest.raises(ExperimentError, match=r"'car'.*another --folder"):
        run(store, [TOY], quick=False, workers=1)
    assert len(store.results("toy")) == 2


def test_a_run_says_with_what_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_DATA", str(tmp_path))
    (tmp_path / "car.csv.gz").write_bytes(b"one")
    line = json.loads(json.dumps(provenance.run_of(["car", "votes"])))
    assert line["data"] == {"car": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"}
    assert {"python", "hedgerow", "numpy", "scikit-learn"} <= set(line["versions"])


def test_jobs_that_take_long_are_told_apart_from_others() -> None:
    assert kind(TOY, {"set": "car", "model": "a"}) != kind(TOY, {"set": "car", "model": "b"})


def test_documents_escape_what_would_be_markup() -> None:
    section = Section("A <b> title", ["x < y", Table(["a|b"], [["<i>"]])])
    assert "a\\|b" in markdown("t", [section])
    page = html_page("t", [section], {}, "f")
    assert "<i>" not in page
    assert "&lt;i&gt;" in page
