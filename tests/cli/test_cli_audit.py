"""`hedgerow audit`. A false verdict of "violated" has a chance of at most one in a million for each run of the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow.audit.evidence import load
from hedgerow.engines.memory import MemoryRows
from hedgerow.queries import Rows

QUICK = ("--runs", 200, "--workers", 1)


@pytest.mark.slow
def test_consistent_evidence_and_picture(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    saved, picture = place.folder / "evidence.json", place.folder / "audit.svg"
    words = ["audit", "--algorithm", "rdt", "--epsilon", "1/2", "--pairs", "outlier", "--pairs", "purity", *QUICK]
    result = run(*words, "--save", saved, "--picture", picture)
    assert result.exit_code == 0, result.output
    assert "consistent with ε = 0.5: no event was found" in result.stdout
    assert "the proof is PROOF.md" in result.stdout
    found = load(saved).audit
    assert [finding.pair for finding in found.findings] == ["outlier", "purity"]
    assert (found.epsilon, found.runs) == (0.5, 200)
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    again = run(*words, "--save", saved)
    assert again.exit_code == 2
    assert "--force" in again.stderr


@pytest.mark.slow
def test_a_claim_that_is_too_low_is_violated(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow.cli.audit.claimed", lambda *_: (0.01, 0.0))  # trained at ε = 40
    result = run("audit", "--algorithm", "rdt", "--epsilon", "40", "--trees", 1, "--depth", 1, "--pairs", "outlier", *QUICK)
    assert result.exit_code == 1, result.output
    assert "VIOLATED: outlier" in result.stdout


@pytest.mark.slow
def test_the_tables_follow_the_schema(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("audit", "--algorithm", "diffpid3", "--epsilon", 1, "--schema", place.schema, "--pairs", "bin edge", *QUICK)
    assert result.exit_code == 0, result.output
    assert "bin edge" in result.stdout


def test_replay(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    saved = place.folder / "replay.json"
    words = ["audit", "--replay", "--algorithm", "dpdf", "--pairs", "purity", "--runs", 3]
    result = run(*words, "--save", saved)
    assert result.exit_code == 0, result.output
    assert "dpdf: a person, k = 3" in result.stdout
    assert "class_counts 100 %" in result.stdout
    assert "the same: in" in result.stdout
    found = json.loads(saved.read_text())
    assert (found["format"], found["violated"], len(found["replays"])) == ("hedgerow-replay-1", False, 3)
    own = run(*words, "--schema", place.schema, "--engine", "parquet", "--runs", 0)
    assert own.exit_code == 0, own.output
    assert "rows in parquet" in own.stdout


@pytest.mark.slow
def test_replay_of_everything(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("audit", "--replay", "--algorithm", "all", "--pairs", "empty", "--runs", 1, "--schema", place.schema)
    assert result.exit_code == 0, result.output
    for name in ("hedgerow", "private-id3", "evaluate", "tune", "update", "count", "hedgerow, δ = 1e-6"):
        assert f"{name}: a row" in result.stdout


def test_a_replay_names_the_query_that_is_violated(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    count = MemoryRows._pass
    monkeypatch.setattr(MemoryRows, "_pass", lambda rows, query: [(1 + isinstance(query, Rows)) * sums for sums in count(rows, query)])
    result = run("audit", "--replay", "--algorithm", "snr", "--pairs", "outlier", "--runs", 0)
    assert result.exit_code == 1, result.output
    words = "VIOLATED: snr: a row, outlier: rows, query 1: the exact numbers differ by 2 in L1"
    assert words in " ".join(result.stdout.split())


@pytest.mark.slow
def test_membership(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    place.data.write_text("\n".join(place.data.read_text().splitlines()[:80]) + "\n")
    saved, picture = place.folder / "membership.json", place.folder / "membership.svg"
    words = ["audit", "--membership", place.data, "--schema", place.schema, "--algorithm", "rdt", "--epsilon", 1, "--targets", 1]
    result = run(*words, "--runs", 60, "--workers", 1, "--save", saved, "--picture", picture)
    assert result.exit_code == 0, result.output
    assert "allows at most 0.462" in result.stdout
    assert "must not be published" in result.stderr
    assert len(json.loads(saved.read_text())["attacks"]) == 2
    assert picture.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--algorithm", "rdt"], "--epsilon: missing"),
        (["--algorithm", "id3", "--epsilon", 1], "claims no ε"),
        (["--algorithm", "rdt", "--epsilon", -1], "epsilon: got '-1'"),
        (["--algorithm", "rdt", "--epsilon", 1, "--delta", "1e-6"], "--delta: --algorithm rdt has no such setting"),
        (["--algorithm", "snr", "--epsilon", 1, "--depth", 2], "--depth: --algorithm snr has no such setting"),
        (["--algorithm", "rdt", "--epsilon", 1, "--trees", 0], "--trees"),
        (["--epsilon", 1, "--pairs", "nothing"], "pairs: got nothing; expected some of outlier"),
        (["--epsilon", 1, "--runs", 99], "--runs: got 99; expected a whole number of at least 100"),
        (["--epsilon", 1, "--workers", 0], "--workers: got 0"),
        (["--epsilon", 1, "--targets", 3], "--targets: only --membership"),
        (["--epsilon", 1, "--picture", "audit.png"], "ends in .svg"),
        (["--epsilon", 1, "--membership", "data.csv"], "--schema is missing"),
        (["--epsilon", 1, "--membership", "data.csv", "--schema", "schema.toml", "--pairs", "outlier"], "Leave one of the two out"),
        (["--epsilon", 1, "--membership", "none.csv", "--schema", "schema.toml"], "none.csv"),
        (["--epsilon", 1, "--algorithm", "all"], "all is for --replay"),
        (["--epsilon", 1, "--engine", "csv"], "--engine: only --replay"),
        (["--replay", "--algorithm", "all", "--depth", 2], "settings of one algorithm"),
        (["--replay", "--picture", "audit.svg"], "--picture: --replay"),
        (["--replay", "--algorithm", "id3"], "claims no ε"),
        (["--replay", "--runs", -1], "--runs: got -1; expected a whole number of at least 0"),
    ],
)
def test_bad_input_is_refused(
    place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, words: list[object], said: str
) -> None:
    monkeypatch.chdir(place.folder)
    result = run("audit", *words)
    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_help_warns_of_publishing(run: Callable[..., Any]) -> None:
    text = " ".join(run("audit", "--help").stdout.replace("│", " ").split())
    assert "must not be published if the rows are sensitive" in text
    assert "Example:" in text


@pytest.mark.slow
def test_owners_who_count_together(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    saved = place.folder / "owners.json"
    result = run("audit", "--together", "--epsilon", "1", "--runs", 2_000, "--save", saved)
    assert result.exit_code == 0, result.output
    assert "consistent with ε = 1" in result.stdout
    assert load(saved).findings[0].pair == "3 owners, t = 1, 1 looks, ε = 1"


def test_together_takes_no_other_options(run: Callable[..., Any]) -> None:
    refused = run("audit", "--together", "--epsilon", "1", "--delta", "1e-6")
    assert refused.exit_code == 2
    assert "--delta: --together attacks counts" in refused.stderr
    assert "--epsilon: missing" in run("audit", "--together").stderr
