"""`hedgerow predict`: thresholds, and what is said of rows that the schema does not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hedgerow import Categorical, PrivateRDTClassifier, Release, Schema, Target


def predicted(result: Any) -> list[str]:
    assert result.exit_code == 0, result.output
    return [line.split(",")[0] for line in result.stdout.splitlines()[1:]]


@pytest.mark.parametrize(("threshold", "positive"), [(0.3, "yes"), (0.3, None), (0.9, "no"), (0, "yes"), (1, "yes")])
def test_rows_above_a_threshold_are_taken_for_the_class(
    threshold: float, positive: str | None, fitted: SimpleNamespace, run: Callable[..., Any]
) -> None:
    words = ["--threshold", threshold, *(["--positive", positive] if positive else [])]
    shares = Release.load(fitted.forest).predict_proba(pd.read_csv(fitted.test))[:, 0 if positive == "no" else 1]
    taken, other = ("no", "yes") if positive == "no" else ("yes", "no")
    assert predicted(run("predict", fitted.forest, fitted.test, *words)) == [taken if share >= threshold else other for share in shares]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_kept_columns_stand_in_front_of_the_predictions(
    kind: str, fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path
) -> None:
    """Of more rows than come at a time, with a missing cell and one that needs quotes."""
    frame = pd.concat([pd.read_csv(fitted.test)] * (1 + 140_000 // len(pd.read_csv(fitted.test))), ignore_index=True)
    frame.insert(1, "name", [None, 'O"Hara, Ann', *(f"n{i}" for i in range(2, len(frame)))])
    rows, plain = tmp_path / f"rows.{kind}", tmp_path / "plain.csv"
    (frame.to_csv if kind == "csv" else frame.to_parquet)(rows, index=False)
    kept = tmp_path / "kept.csv"
    assert run("predict", fitted.forest, rows, "-o", plain).exit_code == 0
    assert run("predict", fitted.forest, rows, "--proba", "--keep", "name", "--keep", "sex", "-o", kept).exit_code == 0
    found, alone = pd.read_csv(kept), pd.read_csv(plain)
    assert found.columns[:3].tolist() == ["name", "sex", alone.columns[0]]
    assert found.columns[3].startswith("probability_")
    pd.testing.assert_frame_equal(found[["name", "sex"]], frame[["name", "sex"]])
    assert (found[alone.columns[0]] == alone[alone.columns[0]]).all()


def test_a_kept_column_that_is_not_there(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("predict", fitted.forest, fitted.test, "--keep", "nobody")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the column(s) nobody are missing from its header" in result.stderr


def test_of_more_classes_the_rest_get_the_most_probable_of_the_others(run: Callable[..., Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = rng.choice(list("abc"), 900)
    y = np.where(rng.random(900) < 0.6, letters, rng.choice(list("abc"), 900))
    schema = Schema([Categorical("letter", ["a", "b", "c"])], Target("class", ["a", "b", "c"]))
    model = PrivateRDTClassifier(schema, 50, random_state=0).fit({"letter": letters}, y)
    forest, rows = tmp_path / "forest.json", tmp_path / "rows.csv"
    model.release_.save(forest)
    pd.DataFrame({"letter": letters}).to_csv(rows, index=False)
    shares = model.release_.predict_proba({"letter": letters})
    expected = ["b" if share[1] >= 0.1 else "a" if share[0] >= share[2] else "c" for share in shares]
    assert predicted(run("predict", forest, rows, "--threshold", 0.1, "--positive", "b")) == expected
    unsaid = run("predict", forest, rows, "--threshold", 0.1)
    assert unsaid.exit_code == 2
    assert "--positive CLASS, one of a, b, c" in unsaid.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--threshold", 1.5], "expected a probability from 0 to 1"),
        (["--threshold", "nan"], "expected a probability from 0 to 1"),
        (["--positive", "yes"], "it names the class of --threshold"),
        (["--threshold", 0.3, "--positive", "maybe"], "expected one of the declared classes"),
    ],
)
def test_a_threshold_that_cannot_be_meant(words: list[object], says: str, fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("predict", fitted.forest, fitted.test, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr


def test_columns_with_many_values_that_cannot_be_read_are_named(fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path) -> None:
    """Ages have a branch for missing values, smokers none: both are told from a tenth of the rows on, and no prediction is changed."""
    frame = pd.read_csv(fitted.test, dtype=str, keep_default_na=False)
    some = np.arange(len(frame)) % 5 == 0
    frame["age"] = np.where(some, "1,0" + frame["age"], frame["age"])
    frame["smoker"] = np.where(some, "Never", frame["smoker"])
    frame["sex"] = np.where(np.arange(len(frame)) % 20 == 0, "x", frame["sex"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    result = run("predict", fitted.forest, tmp_path / "rows.csv")
    said = " ".join(result.stderr.split())
    assert "smoker (20% of the rows: is each value spelled as it is declared?)" in said
    assert "age (2" in said
    assert "without separators or units?" in said
    assert "sex (" not in said
    assert len(predicted(result)) == len(frame)
    assert "not readable" not in run("predict", fitted.forest, fitted.test).stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_missing_values_that_the_schema_declares_are_not_told(
    ending: str, fitted: SimpleNamespace, run: Callable[..., Any], tmp_path: Path
) -> None:
    """Ages have a branch for missing values, smokers none."""
    frame, rows = pd.read_csv(fitted.test, dtype={"age": float}), tmp_path / f"rows.{ending}"
    write = frame.to_csv if ending == "csv" else frame.to_parquet
    frame.loc[np.arange(len(frame)) % 3 == 0, ["age", "smoker"]] = None
    write(rows, index=False)
    said = " ".join(run("predict", fitted.forest, rows).stderr.split())
    assert "smoker (3" in said
    assert "age (" not in said
    texts = frame["age"].astype(object).where(np.arange(len(frame)) % 3 != 1, "1,050").astype("string")
    frame.assign(age=texts).to_csv(tmp_path / "texts.csv", index=False)
    assert "age (33% of the rows: are its numbers" in " ".join(run("predict", fitted.forest, tmp_path / "texts.csv").stderr.split())
