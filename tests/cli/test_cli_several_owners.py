"""Which way several owners should take: what `plan` and `merge` say, and the mean of forests that each has fitted."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hedgerow import Release, Schema
from hedgerow.engines.files import TableFile
from hedgerow.release.combining import aligned

WITH = "--with b.json --with c.json"


@pytest.fixture
def offices(place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Three tables, and a forest of each."""
    monkeypatch.chdir(place.folder)
    head, *rows = place.data.read_text().splitlines(keepends=True)
    for i, name in enumerate("abc"):
        Path(f"{name}.csv").write_text(head + "".join(rows[600 * i : 600 * (i + 1)]))
        done(run("fit", f"{name}.csv", "--schema", "schema.toml", "--epsilon", 1 + i, "--delta", "1e-6", "-o", f"{name}.json"))
    return place


def done(result: Any) -> str:
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_the_mean_of_three_forests(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    said = done(run("predict", "a.json", "a.csv", "--with", "b.json", "--with", "c.json", "--proba", "-o", "mean.csv"))
    assert "the mean of 3 forests. A person loses (ε = 3, δ = 1e-06) in all if nobody is in two of their tables" in said
    assert "(ε = 6, δ = 3e-06) if somebody is in all" in said
    with open("mean.csv", newline="") as file:
        head, *lines = list(csv.reader(file))
    releases = [Release.load(f"{name}.json") for name in "abc"]
    codes = TableFile(Path("a.csv"), list(releases[0].schema.names)).codes(releases[0].codebook)
    expected = np.mean([release.predict_codes_proba(codes) for release in releases], axis=0)
    assert head == ["predicted_ill", *(f"probability_{label}" for label in releases[0].schema.target.classes)]
    assert np.allclose([[float(cell) for cell in line[1:]] for line in lines], expected, atol=1e-12)
    assert [line[0] for line in lines] == [str(releases[0].schema.target.classes[c]) for c in expected.argmax(axis=1)]


def test_forests_that_cannot_be_merged_name_their_mean(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("merge", "a.json", "b.json", "-o", "merged.json")
    assert result.exit_code == 2
    assert "hedgerow predict a.json ROWS --with b.json" in result.stderr


def test_only_forests_of_one_schema_have_a_mean(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    wider = Path("schema.toml").read_text().replace("high = ", "high = 1")
    Path("wider.toml").write_text(wider)
    done(run("fit", "b.csv", "--schema", "wider.toml", "--epsilon", 1, "-o", "other.json"))
    result = run("predict", "a.json", "a.csv", "--with", "other.json", "-o", "mean.csv")
    assert result.exit_code == 2
    assert "fitted with another schema" in result.stderr
    assert not Path("mean.csv").exists()


def test_plan_and_merge_say_what_is_better(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    assert WITH in done(run("plan", "--schema", "schema.toml", "--epsilon", 1, "--rows", 1800, "--owners", 3))
    assert WITH in done(run("plan", "--schema", "schema.toml", "--epsilon", 1, "--owners", 3, "--save", "plan.json"))
    for name in "abc":
        said = done(run("count", "plan.json", f"{name}.csv", "-o", f"office-{name}.json", "--disjoint"))
        assert f"owner: office-{name} (the name of the output; --owner gives another)" in said
    merged = done(run("merge", "office-a.json", "office-b.json", "office-c.json", "-o", "merged.json"))
    assert WITH in merged
    assert "rebuilding: not needed:" not in merged
    rdt = run("plan", "--schema", "schema.toml", "--algorithm", "rdt", "--epsilon", 1, "--rows", 1800, "--owners", 3)
    assert "--with" not in done(rdt)


def test_what_a_shared_plan_advises_it_accepts(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    """What was measured for fits with a δ is not promised of counts that are added up; a δ may be given all the same."""
    words = ["plan", "--schema", "schema.toml", "--epsilon", "0.1", "--rows", 4000]
    assert "a δ" in done(run(*words))
    for shared in (["--owners", 3], ["--save", "plan.json"]):
        said = done(run(*words, *shared))
        verdict = said[said.index("verdict") :]
        assert "would help" in verdict
        assert "a δ" not in verdict
        assert run(*words, *shared, "--delta", "1e-6", "--force").exit_code == 0
    assert "model without privacy" not in done(run("plan", "--schema", "schema.toml", "--epsilon", 8, "--rows", 10**6, "--owners", 3))


def test_owners_of_different_columns_add_up_their_log_odds(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Two owners of some columns each, one of them with two forests of other rows: the mean of these, and then the sum."""
    whole = Schema.load("schema.toml")
    halves = [whole.names[::2], whole.names[1::2]]
    for place, names in enumerate(halves):
        own = replace(whole, attributes=tuple(each for each in whole.attributes if each.name in names))
        own.save(f"{place}.toml")
        for table in "ab"[: 1 + place]:
            words = ["--schema", f"{place}.toml", "--epsilon", 1 + place, "--delta", "1e-6", "-o", f"{place}{table}.json"]
            done(run("fit", f"{table}.csv", *words))
    two = done(run("predict", "0a.json", "c.csv", "--with", "1a.json", "--proba", "-o", "two.csv"))
    assert "the log-odds of 2 owners of different columns, added up. A person who is in all of their tables loses (ε = 3, δ = 2e-06)" in two
    said = done(run("predict", "0a.json", "c.csv", "--with", "1a.json", "--with", "1b.json", "--proba", "-o", "three.csv"))
    assert "A person loses (ε = 3, δ = 2e-06) in all if nobody is in two of their tables with the same columns" in said
    assert "(ε = 5, δ = 3e-06) if somebody is in all" in said
    releases = [Release.load(f"{name}.json") for name in ("0a", "1a", "1b")]
    shares = [
        release.predict_codes_proba(TableFile(Path("c.csv"), list(release.schema.names)).codes(release.codebook)) for release in releases
    ]
    totals = [np.maximum(release.forest.class_totals, 1) for release in releases]
    prior = np.mean([each / each.sum() for each in totals], axis=0)
    odds = shares[0] * (shares[1] + shares[2]) / 2 / prior
    with open("three.csv", newline="") as file:
        lines = list(csv.reader(file))[1:]
    assert np.allclose([[float(cell) for cell in line[1:]] for line in lines], odds / odds.sum(axis=1, keepdims=True), atol=1e-9)
    overlapping = run("predict", "a.json", "c.csv", "--with", "0a.json")
    assert overlapping.exit_code == 2
    assert "or none in common (owners of other columns)" in " ".join(overlapping.output.split())


def test_blocks_are_aligned_wherever_they_are_cut() -> None:
    rows = np.arange(20.0).reshape(10, 2)
    cuts = ([3, 3, 4], [10], [1] * 10)
    streams = [np.split(rows, np.cumsum(each)[:-1]) for each in cuts]
    found = [np.concatenate(parts) for parts in zip(*aligned(streams), strict=True)]
    assert all(np.array_equal(each, rows) for each in found)
    assert list(aligned([[], []])) == []
