"""The peers' experiment: jobs, what a job stores, environments, and a report that is computed from the results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.accounting.zcdp import rho_for
from hedgerow.errors import ExperimentError
from hedgerow_experiments.document import Block, Figure, Section, Table, inside, markdown
from hedgerow_experiments.experiment import Result
from hedgerow_experiments.peers import environments, experiment, held_out, local, memory, processes, tables
from hedgerow_experiments.peers.fits import Answer, Failure, Fit, collected, log_loss
from hedgerow_experiments.peers.logistic import CLIP, Logistic, features
from hedgerow_experiments.peers.models import MODELS
from hedgerow_experiments.peers.naive_bayes import NaiveBayes, cells_of
from hedgerow_experiments.peers.report import blocks
from hedgerow_experiments.peers.summary import Summary, cell, gaps, over_sets
from hedgerow_experiments.peers.tables import EPSILONS, EXTRA, FOLDS, SETS, SMALL, classes_of, table_of
from hedgerow_experiments.store import key_of

SCHEMA = Schema([Categorical("colour", ["red", "blue"]), Numeric("size", 0, 1)], Target("class", ["no", "yes"]))
data = pytest.mark.skipif(not os.environ.get("HEDGEROW_DATA"), reason="HEDGEROW_DATA does not name the folder of the public data sets")


def tiny() -> tables.Table:
    y = np.array(["no", "yes"] * 50)
    columns = {"colour": np.where(y == "no", "red", "blue"), "size": np.linspace(0, 1, 100)}
    rows = np.arange(100)
    folds = tuple((rows[rows // 2 % FOLDS != fold], rows[rows // 2 % FOLDS == fold]) for fold in range(FOLDS))
    return tables.Table("tiny", columns, y, SCHEMA, folds)


# ---------------------------------------------------------------- jobs


def test_quick_jobs_are_the_first_of_the_full_ones() -> None:
    full, quick = experiment.jobs(False), experiment.jobs(True)
    keys = [key_of(job) for job in full]
    assert len(set(keys)) == len(keys)
    assert {key_of(job) for job in quick} <= set(keys)
    repetitions = [job["repetition"] for job in full if "repetition" in job]
    assert repetitions == sorted(repetitions)
    assert all("measure" in job for job in full[len(repetitions) :])
    assert {job["set"] for job in full} == {*SETS, *EXTRA}
    assert {(job["model"], job["set"]) for job in full if job["model"] == "dp-ebm"} == {
        ("dp-ebm", name) for name in (*SETS, *EXTRA) if classes_of(name) == 2
    }
    times = {name: sum(job["set"] == name and job["model"] == "dpdf" and "repetition" in job for job in full) for name in (*SETS, *EXTRA)}
    assert {name for name, n in times.items() if n == 12} == set(SMALL)
    assert set(times.values()) == {3, 12}
    few = {model: {experiment.repetitions(name, model) for name in (*SETS, *EXTRA)} for model in MODELS}
    assert (few["logistic"], few["mst-boosting"], few["aim-boosting"]) == ({1}, {1}, {1})


@data
@pytest.mark.parametrize("name", [*SETS, *EXTRA])
def test_what_is_said_about_a_set_without_reading_it_is_true(name: str) -> None:
    if name == "connect-4":
        pytest.skip("slow to read, and far from 2,000 rows")
    table = table_of(name)
    assert (len(table.labels) < 2000) == (name in SMALL)
    assert table.n_classes == classes_of(name)
    assert all(len(train) + len(test) == len(table.labels) for train, test in table.folds)
    assert ((table.bounds[:, 0] <= table.X) & (table.bounds[:, 1] >= table.X)).all()


def test_held_out_sets_declare_their_classes() -> None:
    assert {name: len(load()[2].target.classes) for name, load in held_out.HELD_OUT.items()} == held_out.CLASSES


# ---------------------------------------------------------------- what a job stores


def test_a_job_stores_each_fold_at_each_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "table_of", lambda name: tiny())
    found = experiment.work({"set": "tiny", "model": "naive-bayes", "repetition": 0})
    assert list(found) == [*EPSILONS, "delta", "versions"]
    for epsilon in EPSILONS:
        assert {name: len(values) for name, values in found[epsilon].items()} == dict.fromkeys(
            ("accuracy", "auc", "log_loss", "fit_seconds", "predict_seconds"), FOLDS
        )
    assert set(found["versions"]) == {"hedgerow", "numpy", "scikit-learn"}
    ceiling = experiment.work({"set": "tiny", "model": "random-forest", "repetition": 0})
    assert ceiling[""]["accuracy"] == [1.0] * FOLDS


def test_our_forests_learn_with_a_large_budget() -> None:
    for model in ("hedgerow-delta", "private-rdt"):
        (answer,) = MODELS[model].answers(tiny(), [Fit("100", 0)], 60)
        assert isinstance(answer, Answer)
        assert (answer.predicted == tiny().y[tiny().folds[0][1]]).all()
        assert answer.probabilities.shape == (20, 2)


def test_a_failed_fit_leaves_a_gap_and_a_reason() -> None:
    table = tiny()
    fits = [Fit(epsilon, fold) for fold in range(FOLDS) for epsilon in ("1", "2")]

    def answers() -> Iterator[Answer | Failure]:
        for fit in fits:
            y = table.y[table.folds[fit.fold][1]]
            yield Failure("too slow") if fit.epsilon == "2" or fit.fold == 3 else Answer(1 - y, np.eye(2)[y], 0.1, 0.2)

    found = collected(table, fits, answers())
    assert found["2"] == {"failed": "too slow"}
    assert found["1"]["failed"] == "too slow"
    assert found["1"]["accuracy"] == [0.0, 0.0, 0.0, None, 0.0]
    assert found["1"]["auc"] == [1.0, 1.0, 1.0, None, 1.0]


def test_a_fit_that_takes_too_long_ends_its_job() -> None:
    import time

    asked: list[Fit] = []

    def prepare(table: tables.Table) -> local.Learner:
        def fit(rows: Any, train: Any, fit: Fit) -> local.Fitted:
            asked.append(fit)
            time.sleep(5 if fit.fold == 1 else 0)
            return lambda rows: np.tile([1.0, 0.0], (len(rows), 1))

        return local.Learner(lambda rows: rows, fit)

    fits = [Fit("1", fold) for fold in range(FOLDS)]
    found = list(local.answers(prepare, tiny(), fits, patience=1))
    assert asked == fits[:2]
    assert [type(each) for each in found] == [Answer] + [Failure] * 4


def test_log_loss_is_that_of_the_true_class() -> None:
    p = np.array([[0.5, 0.5], [1.0, 0.0]])
    assert log_loss(p, np.array([0, 0])) == pytest.approx(np.log(2) / 2, abs=1e-5)
    assert log_loss(p, np.array([0, 1])) == pytest.approx((np.log(2) - np.log(1e-6)) / 2, abs=1e-5)


def test_naive_bayes_with_much_budget_is_right() -> None:
    table = tiny()
    codes, sizes = cells_of(table.X, table.sizes, table.bounds)
    assert sizes.tolist() == [2, 10]
    assert (codes[0, 1], codes[-1, 1]) == (0, 9)
    p = NaiveBayes(codes, table.y, sizes, 2, 1e6, np.random.default_rng(0)).probabilities(codes)
    assert np.allclose(p.sum(axis=1), 1)
    assert (p.argmax(axis=1) == table.y).all()


def test_rows_of_the_logistic_regression_are_no_longer_than_1() -> None:
    corners = np.array([[code, number] for code in (0.0, 1.0) for number in (-7.0, 0.0, 0.5, 1.0, 7.0)])  # two numbers out of bounds
    lengths = np.linalg.norm(features(corners, tiny().sizes, tiny().bounds), axis=1)
    assert lengths.max() == pytest.approx(1, abs=1e-6)
    assert lengths.min() > 0.5


class Counted:
    """Noise that is none, and what it was asked for."""

    def __init__(self) -> None:
        self.scales: list[float] = []

    def normal(self, mean: float, scale: float, shape: Any = None) -> Any:
        self.scales.append(float(scale))
        return mean if shape is None else np.full(shape, mean)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_noise_of_the_logistic_regression_costs_what_it_may(classes: int) -> None:
    X, rng, rho = features(tiny().X, tiny().sizes, tiny().bounds), Counted(), float(rho_for(Fraction(1), Fraction(1, 10**6)))
    Logistic(X, tiny().y, classes, Fraction(1), Fraction(1, 10**6), rng)  # type: ignore[arg-type]
    count, *sums = rng.scales
    assert 1 / (2 * count**2) + sum(CLIP**2 / (2 * scale**2) for scale in sums) == pytest.approx(rho)


def test_logistic_regression_with_much_budget_is_right() -> None:
    table = tiny()
    X = features(table.X, table.sizes, table.bounds)
    for classes in (2, 3):  # of three, one has no rows
        p = Logistic(X, table.y, classes, Fraction(1000), Fraction(1, 10**6), np.random.default_rng(0)).probabilities(X)
        assert p.shape == (100, classes)
        assert np.allclose(p.sum(axis=1), 1)
        assert (p.argmax(axis=1) == table.y).all()


@data
def test_logistic_regression_is_better_than_the_majority() -> None:
    table = table_of("mushroom")
    (answer,) = MODELS["logistic"].answers(table, [Fit("1", 0)], 60)
    assert isinstance(answer, Answer)
    y = table.y[table.folds[0][1]]
    assert (answer.predicted == y).mean() > 0.9 > np.bincount(y).max() / len(y)


# ---------------------------------------------------------------- environments and processes


@pytest.mark.parametrize("model", ["mst-boosting", "aim-boosting"])
def test_boosting_on_synthetic_rows_learns_with_a_large_budget(model: str) -> None:
    if why := environments.missing("dpmm"):
        pytest.skip(why)
    found = list(MODELS[model].answers(tiny(), [Fit("100", 0), Fit("0.1", 0)], 300))
    assert all(isinstance(answer, Answer) and answer.probabilities.shape == (20, 2) for answer in found)
    assert isinstance(found[0], Answer)
    assert (found[0].predicted == tiny().y[tiny().folds[0][1]]).mean() > 0.9
    assert set(processes.versions("dpmm")) == {"dpmm", "scikit-learn", "numpy"}


def test_a_python_is_looked_for_by_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environments._find_python(["{}.{}".format(*sys.version_info)]) == sys.executable
    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    with pytest.raises(ExperimentError, match=r"found no Python 2\.7 or 2\.6"):
        environments._find_python(["2.7", "2.6"])


def test_a_peer_without_its_environment_is_left_out_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_PEERS", str(tmp_path))
    why = experiment.setup({"set": "votes", "model": "dp-ebm", "repetition": 0})
    assert why is not None
    assert "hedgerow experiments peers interpret" in why
    assert experiment.setup({"set": "votes", "model": "naive-bayes", "repetition": 0}) is None
    monkeypatch.delenv("HEDGEROW_PEERS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert environments.folder_of("interpret") == tmp_path / "cache" / "hedgerow" / "peers" / "interpret"
    (tmp_path / "cache" / "hedgerow" / "peers" / "interpret").mkdir(parents=True)
    (tmp_path / "cache" / "hedgerow" / "peers" / "interpret" / "thesis.txt").touch()
    with pytest.raises(ExperimentError, match="holds something else"):
        environments.build("interpret")
    assert (tmp_path / "cache" / "hedgerow" / "peers" / "interpret" / "thesis.txt").exists()
    with pytest.raises(ExperimentError, match="expected one of diffprivlib, interpret, dpmm"):
        environments.build("nobody")


def test_an_environment_is_ready_once_its_packages_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_PEERS", str(tmp_path))
    commands: list[list[str]] = []

    def pretend(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if "venv" in command:
            environments.python_of("interpret").parent.mkdir(parents=True)
            (environments.folder_of("interpret") / "pyvenv.cfg").touch()
            environments.python_of("interpret").touch()
        failed = "pip" in command and len(commands) < 4
        return subprocess.CompletedProcess(command, int(failed), "3.11", "no network")

    monkeypatch.setattr(environments.subprocess, "run", pretend)
    monkeypatch.setattr(environments, "_find_python", lambda versions: "python3.11")
    with pytest.raises(ExperimentError, match=r"interpret.*no network"):
        environments.build("interpret")
    assert environments.missing("interpret") is not None  # half built: it would be built again
    environments.python_of("interpret").unlink()
    environments.python_of("interpret").parent.rmdir()
    commands += [[], []]
    assert environments.build("interpret") == tmp_path / "interpret"
    assert environments.missing("interpret") is None
    done = len(commands)
    assert environments.build("interpret") == tmp_path / "interpret"
    assert len(commands) == done


PEER = """
import sys
sys.path.insert(0, {inside!r})
from peer_work import work

class Model:
    def fit(self, X, y):
        if {mode!r} == "dies":
            sys.exit(3)
        return self
    def predict(self, X):
        return X[:, 0].astype(int)
    def predict_proba(self, X):
        import numpy as np
        return np.eye(2)[X[:, 0].astype(int)]

def prepare(arrays, classes, variant):
    if {mode!r} == "broken":
        raise ImportError("no such package")
    return arrays["X"], lambda epsilon: Model()

work(prepare)
"""


def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    (tmp_path / "peer_pretended.py").write_text(PEER.format(inside=str(processes.SCRIPTS), mode=mode))
    monkeypatch.setattr(processes, "SCRIPTS", tmp_path)
    monkeypatch.setattr(processes, "python_of", lambda peer: Path(sys.executable))


def test_a_peer_answers_from_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretended(tmp_path, monkeypatch, "works")
    fits = [Fit("1", fold) for fold in range(FOLDS)]
    found = collected(tiny(), fits, processes.answers("pretended", "", tiny(), fits, 60))
    assert found["1"]["accuracy"] == [1.0] * FOLDS
    measured = processes.memory("pretended", "", tiny(), fits[0], 60)
    assert set(measured) == {"peak_mb", "fit_seconds", "predict_seconds"}


def test_a_peer_that_dies_and_one_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = [Fit("1", 0), Fit("1", 1)]
    with monkeypatch.context() as patch:
        pretended(tmp_path, patch, "dies")
        answers = list(processes.answers("pretended", "", tiny(), fits, 60))
        assert answers == [Failure("its process ended with code 3, or after such a fit")] * 2
    pretended(tmp_path, monkeypatch, "broken")
    with pytest.raises(ExperimentError, match=r"before its first fit.*no such package"):
        list(processes.answers("pretended", "", tiny(), fits, 60))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_is_that_of_the_fit() -> None:
    def fit() -> Any:
        return np.ones(40_000_000 // 8).sum()

    big = memory.measured(fit, lambda model: None)["peak_mb"]
    small = memory.measured(lambda: 0, lambda model: np.ones(40_000_000 // 8))["peak_mb"]
    assert 38 < big < 45
    assert small < 5


# ---------------------------------------------------------------- report


def stored(votes: float = -0.2) -> list[Result]:
    """Hedgerow at 0.92 on adult, and at 0.92 + votes on votes; DPDF at 0.82, with the same spread over the folds up to a little."""
    found = []
    levels = {"hedgerow": 0.9, "dpdf": 0.8, "diffprivlib-ordinal": 0.5, "diffprivlib-one-hot": 0.6}
    for model, level in levels.items():
        for name in ("adult", "votes"):
            for repetition in range(2):
                shift = votes if (name, model) == ("votes", "hedgerow") else 0.0
                accuracy = [level + shift + fold / 100 + (-1) ** (fold + (model == "dpdf")) / 1000 for fold in range(FOLDS)]
                results = {"accuracy": accuracy, "auc": [0.7] * FOLDS, "fit_seconds": [0.1] * FOLDS, "predict_seconds": [0.2] * FOLDS}
                job = {"set": name, "model": model, "repetition": repetition}
                found.append(Result(job, {"1": results, "versions": {"numpy": "2"}}, 1.0, "run"))
    slow = {epsilon: {"failed": "not done within 300 s"} for epsilon in EPSILONS}
    found.append(Result({"set": "connect-4", "model": "dpdf", "repetition": 0}, slow, 1.0, "run"))
    found.append(Result({"set": "adult", "model": "hedgerow", "measure": "memory"}, {"peak_mb": 12.34}, 1.0, "run"))
    return found


def lines_of(found: Sequence[Block], beginning: str) -> list[Sequence[str]]:
    section = next(block for block in found if isinstance(block, Section) and block.title.startswith(beginning))
    return [line for block in section.blocks if isinstance(block, Table) for line in block.rows]


def test_the_report_is_a_function_of_the_results() -> None:
    results = stored()
    text = markdown("Peers", blocks(results))
    assert text == markdown("Peers", blocks(list(reversed(results))))
    assert blocks([]) == []
    assert blocks(results[-1:]) == []
    assert [block.name for block in inside(blocks(results)) if isinstance(block, Figure)] == ["peers-accuracy"]
    assert "diffprivlib, ordinal codes" not in str(lines_of(blocks(results), "Mean over"))
    assert "diffprivlib, one-hot 0.620, diffprivlib, ordinal codes 0.520" in " ".join(text.split())


def test_won_lost_and_within_the_noise() -> None:
    lead = lines_of(blocks(stored(votes=-0.2)), "Where Hedgerow leads")
    assert list(lead[0][:6]) == ["Hedgerow", "all others", "1", "0", "1", "2"]
    assert lead[0][7].startswith("-0.100 ± 0.001: votes, ε = 1, DPDF")
    assert list(lead[-1][:4]) == ["Hedgerow", "votes", "1", "DPDF"]
    within = lines_of(blocks(stored(votes=-0.1005)), "Where Hedgerow leads")
    assert list(within[0][:6]) == ["Hedgerow", "all others", "1", "1", "0", "2"]
    assert "No cell is lost." in list(inside(blocks(stored(votes=-0.1005))))


def test_what_is_missing_is_said() -> None:
    found = blocks(stored())
    left = {(line[0], line[2]): line[1] for line in lines_of(found, "What cannot run")}
    assert left["DPDF", "20 fits without a result; the first of them: not done within 300 s"] == "connect-4"
    assert "nursery" in left["DPDF", "not in the stored results"]
    assert left["naive Bayes", "not in the stored results"] == ""
    assert "adult" not in left["Hedgerow", "not in the stored results"]
    assert lines_of(found, "Peak memory")[0][:2] == ["adult", "12.3"]
    binary = [replace(result, job=result.job | {"model": "dp-ebm"}) for result in stored() if result.job["model"] == "dpdf"]
    car = Result({"set": "car", "model": "dpdf", "repetition": 0}, stored()[0].found, 1.0, "run")
    text = markdown("Peers", blocks([*stored(), *binary[:-1], car]))
    assert "| DP-EBM, δ = 1e-6 | two classes only | two classes only | two classes only | two classes only |" in text


def test_means_and_errors() -> None:
    summary = Summary(stored())
    found = cell(summary.accuracy, "adult", "1", "hedgerow")
    values = [0.901, 0.909, 0.921, 0.929, 0.941]
    assert found.mean == pytest.approx(np.mean(values))
    assert found.error == pytest.approx(np.std(values, ddof=1) * (1 / 5 + 1 / 4) ** 0.5)
    both = over_sets(summary.accuracy, SETS, "1", "hedgerow")
    assert both is not None
    assert (both.mean, both.n) == (pytest.approx(found.mean - 0.1), 2)
    assert both.error == pytest.approx(found.error / 2**0.5)
    won, lost = gaps(summary.accuracy, "hedgerow", ["dpdf"], ["adult", "votes"])[::-1]
    assert (won.won, won.lost, lost.won, lost.lost) == (False, True, True, False)
    assert {MODELS[model].kind for model in summary.models} == {"hedgerow", "paper", "peer"}
