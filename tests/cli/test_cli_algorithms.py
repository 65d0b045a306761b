"""Every algorithm from the command line: its plan, its options, its rules and pictures, and what it gives back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hedgerow import BudgetFile, Release, Schema
from hedgerow.cli.options import Algorithm
from hedgerow.estimators.names import ESTIMATORS
from hedgerow.inference.vote import WEIGHTED
from hedgerow.release.certificate import no_certificate
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import NODES, CountedForest
from hedgerow.trees.tree import TreeBuilder

Run = Callable[..., Any]

OWN_OPTIONS = {
    "hedgerow": ["--bins", 16],
    "snr": ["--noise-rule", "tight", "--stopping-rule", "literal"],
    "rdt": ["--trees", 2, "--depth", 2, "--thresholds"],
    "dpdf": ["--trees", 2, "--depth", 3, "--min-rows", 50, "--vote", "majority", "--sensitivity", "global"],
    "diffpid3": ["--depth", 3, "--criterion", "max"],
    "private-id3": ["--depth", 2],
    "plain-rdt": ["--trees", 2, "--depth", 2],
    "id3": ["--depth", 2],
    "local-tree": ["--depth", 3, "--min-leaf", 5, "--confidence", 0.1, "--bins", "values"],
}
NAMES = {
    "hedgerow": "Hedgerow forest",
    "snr": "SNR forest",
    "rdt": "Private-RDT",
    "dpdf": "DPDF",
    "diffpid3": "DiffPID3",
    "private-id3": "Private ID3",
    "plain-rdt": "RDT",
    "id3": "ID3",
    "local-tree": "local tree",
}
NOT_PRIVATE = ("plain-rdt", "id3", "local-tree")
GREEDY = ("dpdf", "diffpid3", "private-id3", "id3", "local-tree")
STRANGE = {
    "hedgerow": ["--trees", 3],
    "snr": ["--depth", 3],
    "rdt": ["--min-rows", 10],
    "dpdf": ["--criterion", "max"],
    "diffpid3": ["--trees", 2],
    "private-id3": ["--sensitivity", "global"],
    "plain-rdt": ["--vote", "sum"],
    "id3": ["--max-leaves", 10],
    "local-tree": ["--min-rows", 10],
}


def fit(run: Callable[..., Any], place: SimpleNamespace, algorithm: str, *more: object, epsilon: object = 1) -> Any:
    paid = [] if algorithm in NOT_PRIVATE else ["--epsilon", epsilon, "--budget", place.budget]
    return run("fit", place.data, "--schema", place.schema, "--algorithm", algorithm, *paid, "-o", place.forest, *more)


def test_this_file_knows_every_algorithm() -> None:
    assert set(OWN_OPTIONS) == set(NAMES) == set(STRANGE) == set(ESTIMATORS) == {str(name) for name in Algorithm}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", OWN_OPTIONS)
def test_plan_fit_predict_and_rules(algorithm: str, place: SimpleNamespace, run: Callable[..., Any]) -> None:
    options = OWN_OPTIONS[algorithm]
    words = ["--schema", place.schema, "--algorithm", algorithm, *options]
    words += [] if algorithm in NOT_PRIVATE else ["--epsilon", 1]
    plan = run("plan", *words, *([] if algorithm in GREEDY else ["--rows", 2000]))
    assert plan.exit_code == 0, plan.output
    result = fit(run, place, algorithm, *options)
    assert result.exit_code == 0, result.output
    release = Release.load(place.forest)
    assert release.algorithm == NAMES[algorithm]
    assert (release.certificate.guarantee == "none") == (algorithm in NOT_PRIVATE)
    assert (f"{algorithm} releases exact counts" in result.stderr) == (algorithm in NOT_PRIVATE)
    assert len(run("predict", place.forest, place.test).stdout.splitlines()) == 501
    rules = json.loads(run("rules", place.forest, "--format", "json", "--top", 3).stdout)["rules"]
    assert [rule["text"] for rule in rules] == [rule.text() for rule in release.rules(top=3)]
    shown = run("show", place.forest)
    assert shown.exit_code == 0
    assert "importances" in shown.stdout
    spent = [entry.spent for entry in BudgetFile(place.budget).entries]
    assert spent == [] if algorithm in NOT_PRIVATE else spent == [release.certificate.spent]


def test_settings_arrive(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    fit(run, place, "dpdf", *OWN_OPTIONS["dpdf"])
    release = Release.load(place.forest)
    wanted = {"n_estimators": 2, "max_depth": 3, "min_rows": 50, "sensitivity": "global", "bins": 5}
    assert release.parameters == wanted
    assert release.vote == "majority"
    assert all(tree.height <= 2 for tree in release.forest.trees)
    fit(run, place, "diffpid3", "--criterion", "information_gain", "--force")
    assert Release.load(place.forest).parameters["criterion"] == "information_gain"


@pytest.mark.parametrize("algorithm", STRANGE)
def test_options_of_another_algorithm_are_refused(algorithm: str, place: SimpleNamespace, run: Callable[..., Any]) -> None:
    before = place.budget.read_bytes()
    strange = [STRANGE[algorithm]] + ([["--seed", 1]] if algorithm in GREEDY else [])
    for option in strange:
        result = fit(run, place, algorithm, *option)
        assert result.exit_code == 2
        assert f"{option[0]}: --algorithm {algorithm} has no such setting" in result.stderr
    assert place.budget.read_bytes() == before
    assert not place.forest.exists()


@pytest.mark.parametrize(
    ("algorithm", "options", "words"),
    [
        ("dpdf", ["--trees", 9], "--trees: got 9; expected at most 3"),
        ("dpdf", ["--min-rows", 0], "--min-rows: got 0"),
        ("dpdf", ["--depth", 0], "--depth: got 0"),
        ("diffpid3", ["--depth", 0], "--depth: got 0"),
        ("dpdf", ["--bins", 0], "--bins: got 0"),
    ],
)
def test_errors_speak_of_options(
    algorithm: str, options: list[object], words: str, place: SimpleNamespace, run: Callable[..., Any]
) -> None:
    for result in (
        fit(run, place, algorithm, *options),
        run("plan", "--schema", place.schema, "--algorithm", algorithm, "--epsilon", 1, *options),
    ):
        assert result.exit_code == 2
        assert words in result.stderr
    assert BudgetFile(place.budget).entries == ()


def test_exact_algorithms_take_no_epsilon_and_no_budget(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    for more in (["--epsilon", 1], ["--budget", place.budget]):
        result = fit(run, place, "id3", *more)
        assert result.exit_code == 2
        assert more[0] in result.stderr


# ---------------------------------------------------------------- what is given back


def test_a_fit_that_ends_early_gives_the_rest_back(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    """No node has a million rows, so that only the root is counted: one ninth of ε for each tree."""
    result = fit(run, place, "dpdf", "--min-rows", 1_000_000)
    assert result.exit_code == 0, result.output
    assert "of the reserved ε = 1, 8/9 was not used: it is given back to the budget" in result.stdout
    assert "ε = 17/9 of 2 left" in result.stdout
    assert BudgetFile(place.budget).spent == Fraction(1, 9)
    certificate = Release.load(place.forest).certificate
    assert (certificate.epsilon, str(certificate.spent)) == ("1", "1/9")


def test_a_fit_that_uses_everything_gives_nothing_back(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = fit(run, place, "dpdf", "--depth", 1)
    assert "not used" not in result.stdout
    assert "ε = 1 of 2 left" in result.stdout


def test_without_a_budget_file_what_was_not_used_is_said_too(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["--schema", place.schema, "--algorithm", "dpdf", "--epsilon", 1, "--min-rows", 1_000_000]
    result = run("fit", place.data, *words, "-o", place.forest)
    assert "8/9 was not used\n" in result.stdout


# ---------------------------------------------------------------- --sensitivity local


def test_local_sensitivity_needs_yes_where_nobody_can_be_asked(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    refused = fit(run, place, "dpdf", "--sensitivity", "local")
    assert refused.exit_code == 2
    assert "not proven" in refused.stderr
    assert "claims no guarantee" in refused.stderr
    assert "--yes" in refused.stderr
    assert BudgetFile(place.budget).entries == ()
    done = fit(run, place, "dpdf", "--sensitivity", "local", "--yes")
    assert done.exit_code == 0, done.output
    assert "no privacy guarantee" in done.stdout
    certificate = Release.load(place.forest).certificate
    assert (certificate.guarantee, certificate.epsilon) == ("none", None)
    assert BudgetFile(place.budget).spent > 0


@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("\n", 2), ("y\n", 0)])
def test_local_sensitivity_asks_on_a_terminal(answer: str, code: int, place: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from hedgerow.cli import app

    monkeypatch.setattr("hedgerow.cli.fit.on_a_terminal", lambda: True)
    words = ["fit", place.data, "--schema", place.schema, "--algorithm", "dpdf", "--sensitivity", "local"]
    words += ["--epsilon", 1, "--budget", place.budget, "-o", place.forest]
    result = CliRunner().invoke(app, [str(word) for word in words], input=answer)
    assert result.exit_code == code, result.output
    assert "not proven" in result.stderr
    assert place.forest.exists() == (code == 0)
    assert (BudgetFile(place.budget).entries == ()) == (code != 0)


def test_the_plan_says_that_local_is_not_proven(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["plan", "--schema", place.schema, "--algorithm", "dpdf", "--epsilon", 1]
    assert "not proven" in run(*words, "--sensitivity", "local").stderr
    assert run(*words).stderr == ""


# ---------------------------------------------------------------- --as-published


def test_private_id3_as_published_is_confirmed_and_charged_in_full(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["plan", "--schema", place.schema, "--algorithm", "private-id3", "--epsilon", 1]
    shown = run(*words, "--as-published")
    assert "not proven" in shown.stderr
    assert "ε in all" in shown.stdout
    assert run(*words).stderr == ""
    refused = fit(run, place, "private-id3", "--as-published")
    assert refused.exit_code == 2
    assert "--as-published: add --yes" in refused.stderr
    assert BudgetFile(place.budget).entries == ()
    done = fit(run, place, "private-id3", "--as-published", "--depth", 2, "--yes")
    assert done.exit_code == 3, done.output  # 5 + 6 queries of ε = 1/5 each
    assert "requested ε = 2.2, remaining 2" in done.stderr
    done = run("fit", place.data, *words[1:], "--as-published", "--depth", 2, "--yes", "-o", place.forest)
    assert done.exit_code == 0, done.output
    certificate = Release.load(place.forest).certificate
    assert (certificate.guarantee, certificate.epsilon) == ("none", None)
    assert "not proven" in certificate.reason


def test_plain_id3_as_published_asks_nobody(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["--schema", place.schema, "--algorithm", "id3", "--as-published", "-o", place.forest]
    done = run("fit", place.data, *words)
    assert done.exit_code == 0, done.output
    assert Release.load(place.forest).parameters["as_published"] is True


# ---------------------------------------------------------------- pruned and unpruned


def pruned_release(schema: Schema) -> Release:
    """smoker → never: age, → former: a leaf, → current: sex. Asking for sex makes nothing better: pruning takes it away."""
    book = Codebook(schema, 2)
    builder = TreeBuilder(book.sizes)
    never, _, current = builder.split(0, 0)
    builder.split(never, 1)
    builder.split(current, 2)
    counts = [[900, 600], [400, 100], [300, 50], [50, 450], [390, 5], [8, 90], [3, 1], [30, 205], [28, 220]]
    forest = CountedForest(book, (builder.build(),), (np.array(counts),), (Fraction(2),), NODES)
    return Release(forest, no_certificate("a test"), algorithm="DPDF", vote=WEIGHTED)


def test_trees_are_shown_pruned_and_whole(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    pruned_release(Schema.load(place.schema)).save(place.forest)
    release = Release.load(place.forest)
    assert release.removed is not None
    assert np.flatnonzero(release.removed[0]).tolist() == [7, 8]
    whole, pruned = run("show", place.forest, "--unpruned").stdout, run("show", place.forest).stdout
    assert "Tree 1 of 1: 5 of 6 leaves after pruning, height 2" in pruned
    assert "Tree 1 of 1: 6 leaves, height 2" in whole
    assert "current: yes, confidence 90.0 % ± 0.5 %  [no 50 ± 2.8, yes 450 ± 2.8]" in pruned
    assert "current: sex?  (500 ± 4 rows)" in whole
    for suffix in ("svg", "html"):
        for options, name in ([], "pruned"), (["--unpruned"], "whole"):
            path = place.folder / f"{name}.{suffix}"
            assert run("show", place.forest, "-o", path, *options).exit_code == 0
            assert ("after pruning" in path.read_text(encoding="utf-8")) == (name == "pruned")
    texts = run("rules", place.forest).stdout
    assert "If smoker is current, then yes (confidence 90.0 % ± 0.5 %, support about 500 ± 4 rows: yes 450 ± 2.8, no 50 ± 2.8)." in texts
    assert "sex" not in texts
    assert "sex is m" in run("rules", place.forest, "--unpruned").stdout
    assert "If smoker is never, then no" in run("rules", place.forest, "--sub-rules").stdout
    shares = release.feature_importances()
    assert shares["sex"] == 0
    named = ", ".join(f"{name} {shares[name] * 100:.0f} %" for name in sorted(shares, key=lambda n: -shares[n])[:2])
    assert re.search(rf"importances +{named}", pruned)


def test_how_a_local_tree_is_pruned(place: SimpleNamespace, run: Run) -> None:
    def leaves(*words: object) -> int:
        result = run("fit", place.data, "--schema", place.schema, "--algorithm", "local-tree", *words, "-o", place.forest, "--force")
        assert result.exit_code == 0, result.output
        return len(Release.load(place.forest).forest.trees[0].leaves)

    usual, unpruned = leaves(), leaves("--unpruned")
    assert leaves("--confidence", 0.001) <= usual < unpruned == leaves("--confidence", 1) == leaves("--unpruned", "--confidence", 1)
    assert leaves("--unpruned", "--min-leaf", 50) < unpruned
    assert leaves("--unpruned", "--bins", "values") > 2
    assert Release.load(place.forest).parameters["bins"] == "values"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--unpruned", "--confidence", 0.2], "--unpruned: it prunes nothing, but --confidence 0.2 does"),
        (["--confidence", 0.9], "--confidence: got 0.9; expected a number above 0 and at most 0.5, or 1 (--unpruned)"),
        (["--min-leaf", 0], "--min-leaf: got 0"),
        (["--bins", "all"], "--bins: got 'all'; expected a whole number of at least 1, or 'values'"),
        (["--bins", 0], "--bins: got 0"),
    ],
)
def test_wrong_words_about_a_local_tree(words: list[object], says: str, place: SimpleNamespace, run: Run) -> None:
    result = run("fit", place.data, "--schema", place.schema, "--algorithm", "local-tree", *words, "-o", place.forest)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not place.forest.exists()


def test_no_private_forest_is_cut_at_values(place: SimpleNamespace, run: Run) -> None:
    before = place.budget.read_bytes()
    result = run(
        "fit", place.data, "--schema", place.schema, "--epsilon", 1, "--budget", place.budget, "--bins", "values", "-o", place.forest
    )
    assert result.exit_code == 2
    assert "for local-tree alone, which has no privacy" in result.stderr
    assert place.budget.read_bytes() == before
