"""Advice about ε: made rows, what is expected from them, and the command."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from strategies import small_schema, small_table
from typer.testing import CliRunner

import hedgerow
from hedgerow.cli import app
from hedgerow.datasets import patients
from hedgerow.errors import PlanError, TableError
from hedgerow.planner.advice import Advice, Expectation, advise
from hedgerow.planner.curve import COEFFICIENTS, RATIOS, curve
from hedgerow.planner.made_rows import TEST_ROWS, dummy_rows, forest_rows, like_rows, own_shares
from hedgerow.planner.trials import with_persons
from hedgerow.plots.advice_svg import advice_svg

FEW: dict[str, Any] = {"algorithms": ["rdt"], "epsilons": ["0.5", "4"], "repeats": 1}


@pytest.fixture(scope="module")
def forest() -> hedgerow.Release:
    columns, labels = small_table(2000)
    release: hedgerow.Release = hedgerow.PrivateRDTClassifier(small_schema(), 5, random_state=0).fit(columns, labels).release_
    return release


def test_made_rows_are_of_the_schema_and_as_many_as_asked_for(forest: hedgerow.Release) -> None:
    columns, labels = small_table(300)
    makers = [dummy_rows(small_schema(), 700), like_rows(small_schema(), 700, columns, labels), forest_rows(forest, 700)]
    for make in makers:
        made, again = make(1), make(1)
        assert len(made.train_labels) == 700
        assert set(made.train) == set(small_schema().names)
        assert set(made.train_labels) <= {"no", "yes"}
        assert (made.train_labels == again.train_labels).all()
        assert all((made.train[name].astype(str) == again.train[name].astype(str)).all() for name in made.train)


def test_classes_are_drawn_by_the_probabilities_of_the_forest(forest: hedgerow.Release) -> None:
    """False alarm below 1 in 10⁶: the share of "yes" is off by five standard deviations of its draw."""
    made = forest_rows(forest, 20_000)(3)
    shares = forest.predict_proba(made.train)[:, 1]
    sd = np.sqrt((shares * (1 - shares)).sum()) / len(shares)
    assert abs(np.mean(made.train_labels == "yes") - shares.mean()) < 5 * sd
    assert np.mean(made.train_labels == forest.predict(made.train)) < 0.999  # unlike those that the forest predicts
    assert len(made.test_labels) == TEST_ROWS


def test_no_row_is_trained_and_tested_on() -> None:
    columns = {name: np.arange(300) for name in small_schema().names}
    made = like_rows(small_schema(), 1000, columns, np.array(["no", "yes"] * 150))(0)
    assert not set(made.train["age"]) & set(made.test["age"])


def test_advice_from_each_source(forest: hedgerow.Release, tmp_path: Path) -> None:
    columns, labels = small_table(600)
    forest.save(tmp_path / "forest.json")
    told: list[float] = []
    for source in ({}, {"like": (columns, labels)}, {"forest": tmp_path / "forest.json"}):
        advice = advise(small_schema(), 1500, target_accuracy=0.6, progress=told.append, **FEW, **source)
        assert {each.epsilon for each in advice.expectations} == {"0.5", "4"}
        assert all(0 <= each.low <= each.accuracy <= each.high <= 1 for each in advice.expectations)
        assert "points on average" in advice.trust
    assert told.count(1.0) == 3
    assert max(each.accuracy for each in advice.expectations) > 0.5


def test_the_smallest_epsilon_that_would_do() -> None:
    found = (Expectation("a", "4", 0.9, 0.8, 1), Expectation("a", "1/2", 0.81, 0.7, 0.9), Expectation("b", "0.1", 0.6, 0.5, 0.7))
    advice = Advice(found, "like", 100, "0", 0.8)
    assert advice.smallest == found[1]
    assert "the smallest ε for an accuracy of 0.8, if it is not missed, which is about as likely: 1/2, a" in advice.sentence()
    rare = Advice(found, "forest", 100, "0", 0.8, baseline=("no", 0.79))  # of two classes neither is rare
    assert "whether some ε gives an accuracy of 0.8 is not known: if one does, about 1/2, a" in rare.sentence()
    sure = Advice((replace(found[0], low=0.81), *found[1:2]), "forest", 100, "0", 0.85, baseline=("no", 0.79))
    assert "the smallest ε for an accuracy of 0.85" not in sure.sentence()
    assert "the smallest ε for an accuracy of 0.8: 4, a" in replace(sure, expectations=sure.expectations[:1], target=0.8).sentence()
    rare = Advice((Expectation("a", "1", 0.97, 0.88, 1),), "forest", 100, "0", 0.95, baseline=("no", 0.935))
    assert "is not clear of the 0.935 of always answering the most frequent class" in rare.sentence()  # 1 was named, and gave 0.934
    assert "the smallest ε for an accuracy of 0.6: 1/2, a" in Advice(found[:2], "like", 100, "0", 0.6).sentence()
    later = Advice(found, "forest", 100, "0", 0.8, earlier=Fraction(1))
    assert later.smallest == found[0]  # of less than the ε of the earlier release nothing was measured
    assert "Below ε = 1, that of the release, nothing was measured" in later.trust
    assert later.sentence() in str(later)
    assert "ε = 1/2, a: not known: less ε than that of the release\nε = 0.1, b: not known" in str(later)
    assert [each.epsilon for each in later.known] == ["4"]
    assert [advice_svg(each).count("<circle") for each in (advice, later)] == [len(found), 1]  # nor drawn
    assert "ε = 4, a: 0.900 (0.80 to 1.00)\n" in str(later)
    less = Advice(found, "forest", 100, "0", 0.8, earlier=Fraction(8)).sentence()  # it was said not to be expected, at most 0.900
    assert less == "whether less than ε = 8, that of the release, gives an accuracy of 0.8 is not known: ask for no less"
    assert "not to be expected up to ε = 4: the most to expect is 0.900" in Advice(found, "like", 100, "0", 0.95).sentence()
    assert ElementTree.fromstring(advice_svg(advice)).tag.endswith("svg")


@pytest.mark.parametrize("place", sorted(COEFFICIENTS))
def test_a_curve_does_not_fall_and_grows_with_what_is_known(place: tuple[bool, bool]) -> None:
    delta, measured = place
    epsilons = [0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 100.0]
    curves = [curve(epsilons, 0.2, own, 0.6, 5000, 2, delta=delta, measured=measured) for own in (0.61, 0.7, 0.8, 0.9)]
    assert len(COEFFICIENTS[place]) == len(RATIOS)
    assert all(((each > 0) & (each < 1)).all() and (np.diff(each) >= 0).all() for each in curves)
    assert (np.diff(curves, axis=0)[:, 1:] > 0).all()  # the first may be the share of the largest class
    assert all(each[0] >= 0.6 - 1e-9 or each[0] == each[1] for each in curves)
    if measured:  # the same ε again: what was measured
        assert [each[2] for each in curves] == pytest.approx([0.61, 0.7, 0.8, 0.9])


def test_what_was_measured_is_expected_again() -> None:
    """Of 0.854, measured at ε = 2, it said that every ε from 0.1 to 2 gives 0.861."""
    found = curve([0.1, 1.0, 2.0, 4.0], 2.0, 0.854, 0.846, 20_000, 2, delta=True, measured=True)
    assert found[2] == pytest.approx(0.854)
    assert (np.diff(found) >= 0).all()
    assert found[3] > 0.855


def test_a_measured_accuracy_moves_the_curve_and_costs_no_fit(forest: hedgerow.Release) -> None:
    only: dict[str, Any] = {"forest": forest, "algorithms": ["hedgerow"], "delta": "1e-6"}
    told: list[float] = []
    alone = advise(small_schema(), 2000, progress=told.append, **only)
    low, high = (advise(small_schema(), 2000, accuracy=accuracy, **only) for accuracy in (0.6, 0.9))
    assert not told
    assert (alone.source, low.source) == ("forest", "measured")
    assert low.expectations[-1].accuracy + 0.1 < high.expectations[-1].accuracy  # ε = 4, near that of the forest
    assert "measured accuracy" in low.trust


def test_other_algorithms_stand_to_the_curve_as_on_made_rows(forest: hedgerow.Release) -> None:
    found = advise(small_schema(), 1500, forest=forest, algorithms=["rdt", "hedgerow"], epsilons=["1"], repeats=1)
    alone = advise(small_schema(), 1500, forest=forest, algorithms=["hedgerow"], epsilons=["1"])
    assert [each.algorithm for each in found.expectations] == ["rdt", "hedgerow"]
    assert found.expectations[1].accuracy == pytest.approx(alone.expectations[0].accuracy)


def test_rows_of_a_hedgerow_forest_hang_together_by_their_class() -> None:
    """Attributes that both follow the class follow each other, too; and values read back as the codes they were made from."""
    train = patients(4000, seed=1)
    release = hedgerow.HedgerowClassifier(train.schema, 8, random_state=0).fit(train.X, train.y).release_
    made = forest_rows(release, 4000)(0)
    shares, real = own_shares(release), release.predict_proba(train.X)
    assert shares.max(axis=1).mean() == pytest.approx(real.max(axis=1).mean(), abs=0.08)
    assert shares.mean(axis=0) == pytest.approx(real.mean(axis=0), abs=0.08)
    assert set(made.train) == set(train.schema.names)
    assert release.predict_proba(made.train).max(axis=1).mean() == pytest.approx(shares.max(axis=1).mean(), abs=0.03)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rows": 3}, "at least 20"),
        ({"rows": 100, "target_accuracy": 80}, "such as 0.8"),
        ({"rows": 100, "algorithms": ["id3"]}, "expected some of hedgerow"),
        ({"rows": 100, "repeats": 0}, "at least 1"),
        ({"rows": 100, "accuracy": 0.8}, "give it as forest, too"),
        ({"rows": 100, "forest": "forest.json", "accuracy": 80}, "between 0 and 1"),
        ({"rows": 100, "like": ({}, []), "forest": "forest.json"}, "got both"),
    ],
)
def test_refusals(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        advise(small_schema(), **settings)


def test_a_forest_of_another_table_is_refused(forest: hedgerow.Release) -> None:
    other = hedgerow.Schema([hedgerow.Numeric("age", 0, 1)], hedgerow.Target("class", ["no", "yes"]))
    with pytest.raises(PlanError, match="other columns"):
        advise(other, 100, forest=forest)


def test_a_forest_without_an_epsilon_is_refused() -> None:
    columns, labels = small_table(200)
    exact = hedgerow.LocalTreeClassifier(small_schema()).fit(columns, labels).release_
    with pytest.raises(PlanError, match="claims no ε"):
        advise(small_schema(), 100, forest=exact)


def test_the_command(tmp_path: Path) -> None:
    small_schema().save(tmp_path / "schema.toml")
    columns, labels = small_table(400)
    pd.DataFrame({**columns, "class": labels}).to_csv(tmp_path / "public.csv", index=False)
    words = ["advise", "--schema", tmp_path / "schema.toml", "--rows", 500, "--like", tmp_path / "public.csv", "--algorithm", "rdt"]
    words += ["--repeats", 1, "--target-accuracy", "0.6", "-o", tmp_path / "advice.svg"]
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    assert "accuracy of 0.6" in done.output
    assert "ten public sets" in done.output
    assert "always answering the most frequent class" in " ".join(done.output.split())
    assert (tmp_path / "advice.svg").read_text(encoding="utf-8").startswith("<svg")
    alone = CliRunner().invoke(app, [str(word) for word in [*words[:5], "--algorithm", "rdt", "--repeats", 1]], env={"COLUMNS": "160"})
    assert "a public table that is alike (--like) or an earlier release (--forest) would tell" in " ".join(alone.output.split())


def test_a_table_that_is_alike_may_be_an_array() -> None:
    rows = patients(300, seed=1)
    by_name = dict(zip(rows.schema.names, rows.X.T, strict=True))
    few = {"algorithms": ["rdt"], "epsilons": ["1"], "repeats": 1}
    found = [hedgerow.advise(rows.schema, 100, like=(X, rows.y), **few).source for X in (rows.X, by_name)]
    assert found == ["like", "like"]


def test_a_table_that_is_alike_may_be_a_data_frame_or_a_file(tmp_path: Path) -> None:
    """Both ended in a bare ValueError."""
    columns, labels = small_table(400)
    frame = pd.DataFrame({**columns, "class": labels})
    frame.to_csv(tmp_path / "public.csv", index=False)
    few = {"algorithms": ["rdt"], "epsilons": ["1"], "repeats": 1}
    pair = advise(small_schema(), 300, like=(frame.drop(columns="class"), frame["class"]), **few)
    for like in (frame, tmp_path / "public.csv", str(tmp_path / "public.csv")):
        advice = advise(small_schema(), 300, like=like, **few)
        assert (advice.source, advice.baseline, len(advice.expectations)) == ("like", pair.baseline, 1)
    with pytest.raises(TableError, match=r"like: got int; expected a pair \(X, y\), a data frame with the column 'class', or the path"):
        advise(small_schema(), 300, like=3, **few)


def test_rows_without_a_class_are_not_told_wrong() -> None:
    """An accuracy below that of always answering the most frequent class was forecast."""
    columns, labels = small_table(3000)
    some = np.where(np.arange(3000) % 2 == 0, labels, "?")
    few = {"algorithms": ["rdt"], "epsilons": ["50"], "repeats": 2}
    whole, half = (advise(small_schema(), 3000, like=(columns, given), **few).expectations[0].accuracy for given in (labels, some))
    assert half > whole - 0.1
    with pytest.raises(PlanError, match="has 20 rows with a declared class; expected at least 30"):
        advise(small_schema(), 300, like=(columns, np.where(np.arange(3000) < 20, labels, "?")), **few)


def of_persons(k: int) -> hedgerow.Schema:
    known = small_schema()
    return hedgerow.Schema(known.attributes, known.target, person="patient", rows_per_person=k)


def test_a_schema_with_persons_is_advised_on_from_each_source() -> None:
    columns, labels = small_table(2000)
    persons = {**columns, "patient": np.arange(2000) // 2}
    release = hedgerow.PrivateRDTClassifier(of_persons(2), 8, random_state=0).fit(persons, labels).release_
    for source in ({}, {"like": (columns, labels)}, {"forest": release}):
        advice = advise(of_persons(2), 500, **FEW, **source)
        assert len(advice.expectations) == 2


def test_made_persons_have_as_many_rows_as_are_counted() -> None:
    made = dummy_rows(small_schema(), 90)(0).train
    assert np.bincount(with_persons(made, of_persons(4))["patient"]).tolist() == [4] * 22 + [2]
    assert with_persons(made, small_schema()) is made


def test_noise_for_persons_counts(forest: hedgerow.Release) -> None:
    """From the same forest, which is of rows: with 20 rows of a person, ε = 4 does what 0.2 does of rows, but for nothing."""
    only: dict[str, Any] = {"forest": forest, "algorithms": ["hedgerow"]}
    persons = advise(of_persons(20), 2000, epsilons=["4"], **only).expectations[0]
    rows = advise(small_schema(), 2000, epsilons=["0.2"], **only).expectations[0]
    assert persons.accuracy == pytest.approx(rows.accuracy)


def test_the_baseline_is_of_the_source() -> None:
    columns, _ = small_table(500)
    labels = np.array(["yes"] * 400 + ["no"] * 100)
    like = advise(small_schema(), 500, like=(columns, labels), target_accuracy=0.79, **FEW)
    assert like.baseline == ("yes", 0.8)
    assert "always answering the most frequent class, yes, would give about 0.800" in like.baseline_sentence()
    assert "an accuracy of 0.79 tells nothing" in like.sentence()
    assert "--auc" in like.sentence()
    rare = hedgerow.PrivateRDTClassifier(small_schema(), 50, random_state=0).fit(columns, labels).release_
    of_forest = advise(small_schema(), 500, forest=rare, algorithms=["hedgerow"]).baseline
    assert of_forest is not None
    assert (of_forest[0], of_forest[1]) == ("yes", pytest.approx(0.8, abs=0.03))


def test_of_the_schema_alone_no_verdict_is_given_on_the_table() -> None:
    alone = advise(small_schema(), 500, target_accuracy=0.999, **FEW)
    assert alone.baseline is None
    assert "is not known from the schema" in alone.baseline_sentence()
    assert "made-up classes" in alone.sentence()
    assert "not to be expected" not in alone.sentence()


def test_no_less_than_the_most_frequent_class_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a class with 6 % it said 0.910 for every ε, below "always answering the most frequent class would give about 0.942"."""
    columns, _ = small_table(3000)
    labels = np.array(["yes"] * 2850 + ["no"] * 150)
    release = hedgerow.HedgerowClassifier(small_schema(), 8, 1e-6, random_state=0).fit(columns, labels).release_
    monkeypatch.setattr("hedgerow.planner.advice.curve", lambda epsilons, *_, **__: np.full(len(epsilons), 0.9))
    found = advise(small_schema(), 3000, forest=release, algorithms=["hedgerow"])
    assert found.baseline is not None
    assert found.baseline[1] == pytest.approx(0.95, abs=0.02)
    assert {each.accuracy for each in found.expectations} == {found.baseline[1]}
    measured = advise(small_schema(), 3000, forest=release, accuracy=0.9, algorithms=["hedgerow"], epsilons=["1"])
    assert measured.expectations[0].accuracy == pytest.approx(0.9)  # less than that, and it was measured


def test_more_epsilon_may_bring_no_more_than_was_measured(forest: hedgerow.Release) -> None:
    """Of a table without more to learn, 0.72 to 0.85 was expected where 0.66 was measured and 0.68 then had."""
    found = advise(small_schema(), 2000, forest=forest, accuracy=0.66, algorithms=["hedgerow"], epsilons=["5", "50", "100"])
    assert found.expectations[-1].accuracy > 0.73
    assert all(each.low <= 0.66 for each in found.expectations)
    assert "a larger ε stays near the 0.660 that was measured" in found.trust
    assert "a larger ε stays near what the release has" in advise(small_schema(), 2000, forest=forest, algorithms=["hedgerow"]).trust


def test_no_more_is_expected_where_a_release_has_nearly_all_that_can_be_learnt(forest: hedgerow.Release) -> None:
    """The coefficients are of releases at ε = 0.2: of many rows at ε = 1 they expected what no forest had.

    It is about a Hedgerow forest that was fitted, and the rows that it had: the same was said of a Private-RDT at ε = 0.1, whatever it had.
    """
    asked, rows = ["100", "200", "400"], 2000
    release = hedgerow.HedgerowClassifier(small_schema(), 100).fit(*small_table(rows)).release_
    for number, nearly in ((rows, True), (rows // 2, False)):  # 2000 · 100 / 2 rows of a class: 64,000 are enough in pure ε
        found = advise(small_schema(), number, forest=release, accuracy=0.8, epsilons=asked)
        assert {each.algorithm for each in found.expectations} == {"hedgerow"}
        assert ("no more is expected of a larger ε" in found.trust) == nearly
        assert (found.expectations[-1].accuracy > 0.801) != nearly
        assert found.expectations[0].accuracy == pytest.approx(0.8)
        with_delta = advise(small_schema(), number, forest=release, accuracy=0.8, epsilons=asked, delta="1e-6")
        assert with_delta.nearly == nearly  # it is about the release, which is of pure ε
    few = hedgerow.HedgerowClassifier(small_schema(), 100).fit(*small_table(rows // 2)).release_
    counted = hedgerow.HedgerowClassifier(small_schema(), 100).partial_fit(*small_table(rows)).release_
    for other in (forest, few, counted):
        found = advise(small_schema(), 10**7, forest=other, accuracy=0.8, epsilons=asked)
        assert not found.nearly
        assert found.expectations[-1].accuracy > 0.801
