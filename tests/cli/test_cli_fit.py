"""`hedgerow plan`, `fit`, `predict` and `evaluate` on tables as people have them."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow import BudgetFile, Release, Schema


def fit(run: Callable[..., Any], data: Path, schema: Path, output: Path, *more: object) -> Any:
    words = ["--schema", schema, "--algorithm", "rdt", "--epsilon", "50", "--trees", 3, "--depth", 2, "--seed", 0]
    return run("fit", data, *words, "-o", output, *more)


def predictions(run: Callable[..., Any], forest: Path, rows: Path) -> list[str]:
    result = run("predict", forest, rows)
    assert result.exit_code == 0, result.output
    return [line[0] for line in csv.reader(result.stdout.splitlines()[1:])]


# ---------------------------------------------------------------- plan


@pytest.mark.parametrize("algorithm", ["rdt", "snr"])
def test_a_plan_needs_no_data(algorithm: str, place: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("plan", "--schema", place.schema, "--algorithm", algorithm, "--epsilon", "1/3", "--rows", 5000)
    assert result.exit_code == 0, result.output
    for words in ("ε in all", "1/3", "5,000 (assumed", "charge: leaf_counts", "noise on a count"):
        assert words in result.stdout


def test_a_plan_without_a_size_says_which_option_to_give(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("plan", "--schema", place.schema, "--algorithm", "snr", "--epsilon", 1)
    assert result.exit_code == 2
    assert "--rows 10000" in result.stderr
    assert run("plan", "--schema", place.schema, "--algorithm", "rdt", "--epsilon", 1, "--depth", 2).exit_code == 0


# ---------------------------------------------------------------- fit


def test_fit_says_what_it_guarantees_charged_saved_and_left(fitted: SimpleNamespace) -> None:
    for words in (
        "ε = 1 differential privacy",
        "what ε means: strong",
        "forest.json",
        "ε = 1 of 2 left",
        "next: hedgerow show",
    ):
        assert words in fitted.said
    assert "leaf_counts" not in fitted.said  # every charge stands in the certificate, and is told with --details
    assert Release.load(fitted.forest).certificate.epsilon == "1"
    assert [entry.spent for entry in BudgetFile(fitted.budget).entries] == [1]


@pytest.mark.parametrize(
    ("rows", "one_in", "total", "proposed"),
    [
        (12_000, 2, "2", r"TEST --epsilon 0\.07 --budget \S+      \(how good it is, on about (2,9|3,0)\d\d rows"),
        (12_000, 2, "1.05", r"--plan --rows (29|30)\d\d --epsilon 0\.05      \(free"),  # never more than is left
        (12_000, 2, "1", r"--plan --rows (29|30)\d\d --epsilon 0\.07      \(free"),
        (12_000, 5, "2", r"TEST --epsilon 0\.7 --auc --budget"),  # of the rarer class
        (380, 2, "5", r"--plan --rows \d\d\d? --epsilon 1      \(free"),
    ],
)
def test_the_score_that_fit_proposes_is_one_that_tells_something(
    rows: int, one_in: int, total: str, proposed: str, place: SimpleNamespace, run: Callable[..., Any]
) -> None:
    lines = [f"current,{i % 90},f,{'yes' if i % one_in == 0 else 'no'}" for i in range(rows)]
    place.data.write_text("\n".join(["smoker,age,sex,ill", *lines]) + "\n")
    budget = place.folder / "own.json"
    BudgetFile.create(budget, total)
    words = ["--schema", place.schema, "--algorithm", "rdt", "--epsilon", "1", "--trees", 1, "--depth", 1]
    said = run("fit", place.data, *words, "--budget", budget, "-o", place.forest).stdout
    line = next(line for line in said.splitlines() if "hedgerow evaluate" in line)
    assert re.search(proposed, line), line
    command = line.split("      (")[0].split("hedgerow ")[1].replace("TEST", str(place.data)).split()
    assert run(*command, "--training-rows").exit_code == 0


def test_fit_lists_every_charge_where_that_is_asked_for(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    said = fit(run, place.data, place.schema, place.forest, "--details").stdout
    assert "discrete Laplace" in said
    assert said.index("guarantee: ") < said.index("leaf_counts")


def test_fit_without_a_budget_warns(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = fit(run, place.data, place.schema, place.forest)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: no --budget")
    assert "Traceback" not in result.stderr


def test_the_seed_fixes_the_structure_and_not_the_noise(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    releases = []
    for name in ("a.json", "b.json"):
        words = ["--schema", place.schema, "--algorithm", "rdt", "--epsilon", "0.1", "--depth", 2, "--seed", 7]
        assert run("fit", place.data, *words, "-o", place.folder / name).exit_code == 0
        releases.append(Release.load(place.folder / name).forest)
    assert releases[0].trees == releases[1].trees
    assert any((a != b).any() for a, b in zip(releases[0].counts, releases[1].counts, strict=True))


def test_snr_and_plain_rdt_fit_too(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["--schema", place.schema, "--algorithm", "snr", "--noise-rule", "tight", "--epsilon", 1]
    assert run("fit", place.data, *words, "--budget", place.budget, "-o", place.forest).exit_code == 0
    assert Release.load(place.forest).noise_rule == "tight"
    plain = run("fit", place.data, "--schema", place.schema, "--algorithm", "plain-rdt", "-o", place.folder / "plain.json")
    assert plain.exit_code == 0, plain.output
    assert "no privacy" in plain.stdout
    assert "no privacy" in plain.stderr
    assert Release.load(place.folder / "plain.json").certificate.guarantee == "none"


def test_an_accepted_draft_claims_no_epsilon(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    draft = place.folder / "draft.toml"
    assert run("schema", "draft", place.data, "--target", "ill", "-o", draft).exit_code == 0
    refused = fit(run, place.data, draft, place.forest, "--budget", place.budget)
    assert refused.exit_code == 2
    assert "--accept-draft" in refused.stderr
    assert BudgetFile(place.budget).entries == ()
    words = ["--schema", draft, "--algorithm", "rdt", "--epsilon", 1, "--depth", 2]
    accepted = run("fit", place.data, *words, "--budget", place.budget, "-o", place.forest, "--accept-draft")
    assert accepted.exit_code == 0, accepted.output
    assert "warning: domains were read from private data" in accepted.stderr
    assert "no privacy guarantee" in accepted.stdout
    certificate = Release.load(place.forest).certificate
    assert (certificate.guarantee, certificate.epsilon) == ("none", None)


def test_python_refuses_a_draft_for_files_too(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    from hedgerow import PrivateRDTClassifier
    from hedgerow.errors import SchemaError, UnreviewedSchemaWarning

    draft = place.folder / "draft.toml"
    run("schema", "draft", place.data, "--target", "ill", "-o", draft)
    classifier = PrivateRDTClassifier(Schema.load(draft), 1, max_depth=2)
    with pytest.raises(SchemaError, match="accept_draft"):
        classifier.fit(place.data)
    with pytest.warns(UnreviewedSchemaWarning):
        classifier.fit(place.data, accept_draft=True)
    assert classifier.release_.certificate.guarantee == "none"


def test_a_forest_that_was_paid_for_is_not_replaced(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    before = fitted.forest.read_bytes()
    assert fit(run, fitted.data, fitted.schema, fitted.forest).exit_code == 2
    assert fitted.forest.read_bytes() == before
    assert fit(run, fitted.data, fitted.schema, fitted.forest, "--force").exit_code == 0


def test_a_paid_forest_is_saved_elsewhere_if_its_place_is_gone(
    place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedgerow.errors import ReleaseError

    save = Release.save

    def full(release: Release, path: Path) -> None:
        if Path(path) == place.forest:
            raise ReleaseError("cannot be written: No space left on device.")
        save(release, path)

    monkeypatch.setattr(Release, "save", full)
    monkeypatch.setattr("tempfile.tempdir", str(place.folder))
    result = fit(run, place.data, place.schema, place.forest)
    assert result.exit_code == 0
    assert "was saved to" in result.stderr
    assert len(list(place.folder.glob("hedgerow-*.json"))) == 1


# ---------------------------------------------------------------- predict


def test_the_round_trip_predicts_as_python_does(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    import pandas

    frame = pandas.read_csv(fitted.test)
    release = Release.load(fitted.forest)
    assert predictions(run, fitted.forest, fitted.test) == list(release.predict(frame))
    shares = run("predict", fitted.forest, fitted.test, "--proba").stdout.splitlines()
    assert shares[0] == "predicted_ill,probability_no,probability_yes"
    got = [tuple(map(float, line.split(",")[1:])) for line in shares[1:]]
    assert got == [tuple(row) for row in release.predict_proba(frame).tolist()]


def test_predict_needs_no_target_and_writes_files(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    rows, output = fitted.folder / "rows.csv", fitted.folder / "out.csv"
    rows.write_text("sex,extra,age,smoker\nf,1,70,current\nm,2,,never\n,3,4,\n")
    assert run("predict", fitted.forest, rows, "-o", output).exit_code == 0
    lines = output.read_text().splitlines()
    assert lines[0] == "predicted_ill"
    assert len(lines) == 4
    assert run("predict", fitted.forest, rows, "-o", rows).exit_code == 2


def test_a_hyphen_is_standard_output(
    fitted: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    there = run("predict", fitted.forest, fitted.test, "--proba", "-o", "-")
    assert there.exit_code == 0, there.output
    assert there.stdout == run("predict", fitted.forest, fitted.test, "--proba").stdout
    assert not Path("-").exists()


@pytest.mark.parametrize(
    ("in_the_file", "in_the_schema"),
    [
        (["1", "2"], "[1, 2]"),
        (["-1", "1"], "[-1, 1]"),
        (["1.0", "2.0"], "[1, 2]"),
        (["True", "False"], "[true, false]"),
        (["true", "false"], "[true, false]"),
        (["krank, sehr", 'gesund "ganz"'], "['krank, sehr', 'gesund \"ganz\"']"),
        (["ja", "nö – 不"], '["ja", "nö – 不"]'),
    ],
)
def test_labels_of_every_kind(in_the_file: list[str], in_the_schema: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    data, schema, forest = tmp_path / "data.csv", tmp_path / "schema.toml", tmp_path / "forest.json"
    with data.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["größe, cm", "label"])
        writer.writerows([["lang", in_the_file[0]], ["kurz", in_the_file[1]]] * 200)
    schema.write_text(
        f'[target]\nname = "label"\nclasses = {in_the_schema}\n[attributes."größe, cm"]\nkind = "categorical"\nvalues = ["lang", "kurz"]\n',
        encoding="utf-8",
    )
    result = run("fit", data, "--schema", schema, "--algorithm", "rdt", "--epsilon", 50, "--depth", 1, "-o", forest)
    assert result.exit_code == 0, result.output
    got = predictions(run, forest, data)
    expected = [label.lower() if label in ("True", "False") else label.removesuffix(".0") for label in in_the_file]
    assert got == expected * 200
    release = Release.load(forest)
    assert list(release.predict({"größe, cm": ["lang", "kurz"]})) == list(release.schema.target.classes)


def test_drafted_numeric_labels_come_back_as_they_were(tmp_path: Path, run: Callable[..., Any]) -> None:
    data, schema, forest = tmp_path / "data.csv", tmp_path / "schema.toml", tmp_path / "forest.json"
    data.write_text("a,label\n" + "x,1\ny,2\n" * 100)
    assert run("schema", "draft", data, "--target", "label", "-o", schema).exit_code == 0
    assert fit(run, data, schema, forest, "--accept-draft").exit_code == 0
    assert predictions(run, forest, data) == ["1", "2"] * 100


@pytest.mark.parametrize("kind", ["gz", "semicolons", "parquet", "crlf", "bom"])
def test_the_same_table_in_other_files(kind: str, place: SimpleNamespace, run: Callable[..., Any]) -> None:
    import pandas

    text, path = place.data.read_text(), place.folder / "other.csv"
    if kind == "gz":
        path = place.folder / "other.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
    elif kind == "parquet":
        path = place.folder / "other.parquet"
        pandas.read_csv(place.data).to_parquet(path)
    elif kind == "semicolons":
        path.write_text(text.replace(",", ";"))
    elif kind == "crlf":
        path.write_bytes(text.replace("\n", "\r\n").encode())
    else:
        path.write_text(text, encoding="utf-8-sig")
    assert fit(run, path, place.schema, place.forest).exit_code == 0
    assert predictions(run, place.forest, path) == predictions(run, place.forest, place.data)
    # ε is large, so the counts show that all rows arrived
    assert abs(Release.load(place.forest).forest.class_totals.sum() - 2000) < 20


# ---------------------------------------------------------------- evaluate


def test_a_forest_is_scored_on_rows_of_which_another_fit_was_paid(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Two owners with a file and a budget each: one's forest is scored by the other's rows, where a fit has cost the same."""
    other, own = fitted.folder / "other.json", fitted.folder / "own.json"
    BudgetFile.create(own, 5)
    words = ["--schema", fitted.schema, "--algorithm", "rdt", "--epsilon", "1", "--trees", 3, "--depth", 2, "--seed", 0, "--budget", own]
    assert run("fit", fitted.test, *words, "-o", other).exit_code == 0
    score = ["--epsilon", "0.5", "--budget", own]
    assert run("evaluate", fitted.forest, fitted.test, *score).exit_code == 0
    refused = run("evaluate", other, fitted.test, *score)
    assert refused.exit_code == 2
    for month, table in (("jan", fitted.data), ("feb", fitted.test)):  # batches whose names begin alike
        assert run("fit", table, *words, "--batch", f"2026-monthly-{month}", "-o", other, "--force").exit_code == 0
    assert run("evaluate", other, fitted.data, *score).exit_code == 0
    assert "has paid for this forest's fit on DATA itself" in refused.stderr
    assert BudgetFile(own).spent == Fraction(3, 2) + Fraction(5, 2)


def test_fits_with_one_batch_name_are_told_apart(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    """The forest of one was refused a score on the rows of the other."""
    budget = fitted.folder / "own.json"
    BudgetFile.create(budget, 9)
    words = ["--schema", fitted.schema, "--algorithm", "rdt", "--epsilon", "1", "--trees", 3, "--depth", 2, "--budget", budget]
    names = [fitted.folder / f"january-{i}.json" for i in range(2)]
    for name, table in zip(names, (fitted.data, fitted.test), strict=True):
        assert run("fit", table, *words, "--seed", 0, "--batch", "jan", "-o", name).exit_code == 0
    score = ["--epsilon", "0.5", "--budget", budget]
    for forest, table, seen in ((1, fitted.data, False), (0, fitted.test, False), (0, fitted.data, True), (1, fitted.test, True)):
        scored = run("evaluate", names[forest], table, *score)
        assert (scored.exit_code == 2, "has paid for this forest's fit on DATA itself (ε = 1 at 20" in scored.stderr) == (seen, seen)


def test_the_class_of_thresholds_is_no_other_score_without_them(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Of three classes the same confusion matrix was paid for again, for each --positive."""
    schema, budget, forest = fitted.folder / "three.toml", fitted.folder / "own.json", fitted.folder / "three.json"
    schema.write_text(fitted.schema.read_text().replace('["no", "yes"]', '["no", "yes", "maybe"]'))
    BudgetFile.create(budget, 9)
    words = ["--algorithm", "rdt", "--epsilon", "1", "--trees", 3, "--depth", 2, "--budget", budget, "-o", forest]
    assert run("fit", fitted.data, "--schema", schema, *words).exit_code == 0
    score = ["evaluate", forest, fitted.test, "--epsilon", "0.5", "--budget", budget]
    assert run(*score).exit_code == 0
    for label in ("yes", "no"):
        refused = run(*score, "--positive", label)
        assert (refused.exit_code, "has paid for this score already" in refused.stderr) == (2, True)
        assert run(*score, "--auc", "--positive", label).exit_code == 0
    misspelt = run(*score, "--positive", "yess")  # it was said to be paid for
    assert (misspelt.exit_code, "got 'yess'; expected one of the declared classes" in misspelt.stderr) == (2, True)
    assert BudgetFile(budget).spent == Fraction(5, 2)


def test_a_fit_with_another_sampler_is_another(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    """How a file is written, and what draws the noise, make a fit another one."""
    budget = fitted.folder / "own.json"
    BudgetFile.create(budget, 5)
    words = ["fit", fitted.data, "--schema", fitted.schema, "--algorithm", "rdt", "--epsilon", "1", "--trees", 1, "--depth", 1]
    words += ["--budget", budget, "-o", fitted.folder / "other.json", "--force"]
    assert run(*words).exit_code == 0
    assert run(*words).exit_code == 2
    assert run(*words, "--csv", "delimiter=,").exit_code == 0


def test_evaluate_is_noisy_charged_and_warns(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = [fitted.forest, fitted.test, "--epsilon", "0.5"]
    result = run("evaluate", *words, "--budget", fitted.budget)
    assert result.exit_code == 0, result.output
    for part in (
        "noisy confusion matrix, each number ±",
        "predicted yes",
        "accuracy: ",
        "ε = 0.5 differential privacy",
    ):
        assert part in result.stdout
    assert "ε = 0.5 of 2 left" in result.stdout
    assert [entry.what.split(", counts ")[0] for entry in BudgetFile(fitted.budget).entries] == ["fit Private-RDT", "evaluate, accuracy"]
    assert "warning: no --budget" in run("evaluate", *words).stderr


def test_the_same_score_is_not_paid_twice_without_a_word(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["evaluate", fitted.forest, fitted.test, "--budget", fitted.budget, "--epsilon"]
    assert run(*words, "0.2").exit_code == 0
    before = fitted.budget.read_bytes()
    for same in ("0.2", "1/5"):
        refused = run(*words, same)
        assert refused.exit_code == 2
        assert "has paid for this score already (this forest, DATA and ε: ε = 0.2 at " in refused.stderr
        assert "Nothing was spent" in refused.stderr
        assert "add --again" in refused.stderr
    assert fitted.budget.read_bytes() == before
    for other in (["0.2", "--again"], ["0.2", "--again"], ["0.1"], ["0.1", "--auc"], ["0.1", "--csv", "delimiter=,"]):
        assert run(*words, *other).exit_code == 0
    assert BudgetFile(fitted.budget).spent == Fraction("1.9")


def test_evaluate_says_that_the_noise_is_larger_than_the_answer(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Ten rows at ε = 0.001: it printed an accuracy of 1.000, an area of nan and a table without rows."""
    few = fitted.folder / "few.csv"
    few.write_text("".join(f"{line}\n" for line in fitted.test.read_text().splitlines()[:11]))
    results = [run("evaluate", fitted.forest, few, "--epsilon", "0.001", "--auc") for _ in range(6)]
    lost = [result for result in results if "accuracy: lost in the noise" in result.stdout]
    assert len(lost) >= 4  # noise alone may look like thousands of rows, in about one of a hundred
    for result in results:
        assert result.exit_code == 0, result.output
        assert "nan" not in result.stdout
    for result in lost:
        said = " ".join(result.stderr.split())
        assert "the noise is larger than the accuracy" in said
        assert "spelled otherwise than the declared classes (no, yes)" in said
        assert "accuracy: 1.000" not in result.stdout


@pytest.mark.parametrize("options", [(), ("--auc",)])
def test_evaluate_says_that_labels_may_be_spelled_otherwise(
    options: tuple[str, ...], fitted: SimpleNamespace, run: Callable[..., Any]
) -> None:
    """It advised more rows or more ε, where no row has a declared class."""
    fitted.test.write_text(fitted.test.read_text().replace(",yes\n", ",Y\n").replace(",no\n", ",N\n"))
    result = run("evaluate", fitted.forest, fitted.test, "--epsilon", "0.5", *options)
    said = " ".join(result.stderr.split())
    assert (result.exit_code, "accuracy: lost in the noise" in result.stdout) == (0, True), result.output
    assert "test rows have no declared class, more than have one: their labels seem to be spelled otherwise" in said
    assert "more ε" not in said
