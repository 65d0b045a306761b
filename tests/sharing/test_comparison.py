"""What sharing costs: the global model, the basis, the owners and LD on the same rows; `hedgerow share` prints and draws it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hedgerow import LocalTreeClassifier, Release, Schema, Target, global_model
from hedgerow.anonymity.requirement import Requirement
from hedgerow.cli import app
from hedgerow.datasets import patients
from hedgerow.sharing.comparison import compare
from hedgerow.sharing.pipeline import mine, publish

OFFICES = [patients(1_500, seed) for seed in (11, 12)]
TEST = patients(1_000, 15)
SCHEMA = TEST.schema


@pytest.fixture(scope="module")
def offices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("offices")
    CliRunner().invoke(app, ["demo", "--tables", str(folder), "--rows", "2000"], catch_exceptions=False)
    return folder


def compared(kind: Any, requirement: Requirement | None) -> dict[str, Any]:
    published = [publish(office.X, office.y, SCHEMA, requirement) for office in OFFICES]
    learnt, _ = mine([each.shared for each in published], kind)
    owners = [(f"office {i}", each.local) for i, each in enumerate(published)]
    tables = [(dict(office.columns), office.y) for office in OFFICES]
    found = compare(learnt, kind, owners, tables, (dict(TEST.columns), TEST.y), SCHEMA, requirement)
    return {each.what: each for each in found}


def test_trees_are_compared_by_rows_and_by_paths() -> None:
    found = compared("decision tree", None)
    assert list(found) == ["global model, from pseudo-data", "basis: all tables pooled", "office 0 alone", "office 1 alone"]
    basis = found["basis: all tables pooled"]
    assert (basis.class_match, basis.path_match) == (1.0, 1.0)
    X = {name: np.concatenate([office.columns[name] for office in OFFICES]) for name in SCHEMA.names}
    pooled = LocalTreeClassifier(SCHEMA).fit(X, np.concatenate([office.y for office in OFFICES]))
    assert basis.accuracy == pytest.approx(np.mean(pooled.predict(dict(TEST.columns)) == TEST.y))
    for each in found.values():
        assert each.accuracy is not None
        assert each.class_match is not None
        assert each.path_match is not None
        assert 0.5 < each.accuracy < 1
        assert 0.5 < each.class_match <= 1
        assert 0 <= each.path_match <= 1


def test_what_is_no_tree_has_no_paths_and_ld_has_no_model_where_no_table_satisfies_it() -> None:
    found = compared("naive bayes", Requirement(c=Fraction(20), l=2))
    assert all(each.path_match is None for each in found.values())
    assert found["LD: pooled and generalised"].accuracy > 0.4
    impossible = Requirement(k=5_000)  # there are 3,000 rows
    tables = [(dict(office.columns), office.y) for office in OFFICES]
    learnt = global_model("naive bayes", SCHEMA).fit(OFFICES[0].X, OFFICES[0].y)
    *_, last = compare(learnt, "naive bayes", [], tables, (dict(TEST.columns), TEST.y), SCHEMA, impossible)
    assert "no table satisfies it" in last.what
    assert last.accuracy is None


def test_the_decision_tree_is_c45_and_cart_has_its_name() -> None:
    tree = global_model("decision tree", SCHEMA)
    assert isinstance(tree["model"], LocalTreeClassifier)
    assert type(global_model("cart", SCHEMA)["model"]).__name__ == "DecisionTreeClassifier"
    own = global_model(LocalTreeClassifier(confidence=None), SCHEMA, min_leaf=5)
    assert own["model"].get_params()["min_leaf"] == 5
    assert own["model"].confidence is None
    learnt = own.fit(OFFICES[0].X, OFFICES[0].y)
    expected = LocalTreeClassifier(SCHEMA, confidence=None, min_leaf=5).fit(OFFICES[0].X, OFFICES[0].y)
    assert np.array_equal(learnt.predict(TEST.X), expected.predict(TEST.X))


def test_share_prints_and_draws_the_comparison(offices: Path, tmp_path: Path) -> None:
    words = ["share", *(str(offices / f"office-{x}.csv") for x in "abc"), "--schema", str(offices / "schema.toml"), "-c", "20", "-l", "2"]
    words += ["--test", str(offices / "test.csv"), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for said in ("accuracy", "class match", "path match", "global model, from pseudo-data", "office-a alone", "LD: pooled and generalised"):
        assert said in result.output
    assert (tmp_path / "out" / "comparison.svg").read_text(encoding="utf-8").startswith("<svg")
    again = CliRunner().invoke(app, words)
    assert again.exit_code != 0  # nothing is overwritten


def test_classes_that_are_numbers_are_compared_too(offices: Path, tmp_path: Path) -> None:
    """After everything else was written it ended in an error about the type of the labels."""
    schema = Schema.load(offices / "schema.toml")
    target = schema.target.name
    for name in ("office-a", "office-b", "test"):
        table = pd.read_csv(offices / f"{name}.csv")
        table[target] = (table[target] == table[target].min()).astype(int)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    replace(schema, target=Target(target, [0, 1])).save(tmp_path / "schema.toml")
    words = ["share", *(str(tmp_path / f"office-{name}.csv") for name in "ab"), "--schema", str(tmp_path / "schema.toml"), "-k", "20"]
    result = CliRunner().invoke(app, [*words, "--test", str(tmp_path / "test.csv"), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "LD: pooled and generalised" in result.output


def test_share_learns_as_it_is_told(offices: Path, tmp_path: Path) -> None:
    words = ["share", *(str(offices / f"office-{name}.csv") for name in "ab"), "--schema", str(offices / "schema.toml"), "-k", "20"]
    words += ["--test", str(offices / "test.csv"), "--min-leaf", "20", "--unpruned"]
    for bins in ("32", "values"):
        result = CliRunner().invoke(app, [*words, "--bins", bins, "-o", str(tmp_path / bins)])
        assert result.exit_code == 0, result.output
        assert "LD: pooled and generalised" in result.output
    shared = [Release.load(tmp_path / "values" / f"office-{name}.json") for name in "ab"]
    assert shared[0].schema != shared[1].schema  # each has thresholds of its own
    result = CliRunner().invoke(app, [*words, "--bins", "some", "-o", str(tmp_path / "no")])
    assert result.exit_code == 2
    assert not (tmp_path / "no").exists()
