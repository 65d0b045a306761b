"""The private score: what it counts, what it says, what it costs."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import permutation_importance
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from strategies import small_schema, small_table

from hedgerow import (
    Budget,
    Categorical,
    HedgerowClassifier,
    Numeric,
    PrivateRDTClassifier,
    Schema,
    Target,
    private_calibration,
    private_score,
    private_scorer,
    score_error,
)
from hedgerow.errors import BudgetError, NoBudgetWarning, PlanError, SchemaMismatchWarning, SeenRowsWarning, TableError
from hedgerow.evaluation import private
from hedgerow.evaluation.forecast import _bins
from hedgerow.evaluation.private import SCORE_BINS, private_evaluation
from hedgerow.evaluation.public import public_score
from hedgerow.evaluation.score import PrivateScore
from hedgerow.plots.report import score_page
from hedgerow.queries import ScoreBins
from hedgerow.queries.score_bins import score_counts, score_edges
from hedgerow.release.certificate import no_certificate

COLUMNS, LABELS = small_table(4000)
MODEL = PrivateRDTClassifier(small_schema(), 50, random_state=0).fit(COLUMNS, LABELS)
TEST, TRUTH = small_table(2000, seed=1)


def test_the_truth_within_its_error() -> None:
    """ε = 2: the noise on 2000 rows is small; 6 standard errors are exceeded less than once in a million runs."""
    score = private_score(MODEL, TEST, TRUTH, epsilon=2)
    exact = (MODEL.predict(TEST) == TRUTH).mean()
    assert abs(score.accuracy - exact) < 6 * score.accuracy_error
    assert abs(score.rows - 2000) < 6 * score.rows_error
    most = max((TRUTH == "yes").mean(), (TRUTH == "no").mean())
    assert abs(score.majority[1] - most) < 6 * score.majority_error < 0.1
    assert f"{score.majority[1]:.3f} ± {score.majority_error:.2g}" in repr(score)
    assert score.certificate.epsilon == "2"
    assert [event.query for event in score.certificate.events] == ["confusion"]
    assert "accuracy 0." in repr(score)


def test_rows_without_a_declared_class_are_told() -> None:
    with pytest.warns(SchemaMismatchWarning, match="have no declared class and are not part of this score"):
        score = private_score(MODEL.release_, TEST, np.where(TRUTH == "yes", "ja", "no"), epsilon=1)
    assert abs(score.undeclared - (TRUTH == "yes").sum()) < 12 * score.undeclared_error
    assert abs(score.rows - (TRUTH == "no").sum()) < 12 * score.rows_error


@pytest.mark.parametrize("metrics", [["accuracy"], ["accuracy", "auc"]])
def test_labels_that_are_spelled_otherwise_or_missing_are_told(metrics: list[str]) -> None:
    """It advised to score more rows; of missing labels it said nothing."""
    capitals = np.array([str(label).upper() for label in TRUTH])
    with pytest.warns(SchemaMismatchWarning, match=r"no declared class, more than have one: .* declared classes \(no, yes\)") as said:
        score = private_score(MODEL, TEST, capitals, epsilon=1, metrics=metrics)
    assert said[0].filename == __file__
    page = score_page(MODEL.release_, score)
    for text in (repr(score), score._repr_html_(), page):
        assert "their labels seem to be spelled otherwise than the declared classes (no, yes)" in text
        assert "score more rows" not in text
    missing = np.where(np.arange(len(TRUTH)) % 3 == 0, TRUTH, None)
    with pytest.warns(SchemaMismatchWarning, match="are not part of this score: their labels are missing, or spelled otherwise"):
        score = private_score(MODEL, TEST, missing, epsilon=1, metrics=metrics)
    for text in (repr(score), score._repr_html_(), score_page(MODEL.release_, score)):
        assert "their labels are missing, or spelled otherwise" in text
    with pytest.warns(SchemaMismatchWarning):
        assert "their labels are missing, or" in repr(public_score(MODEL, TEST, missing, metrics=metrics))


def test_a_few_rows_without_a_declared_class_are_no_matter() -> None:
    few = np.where(np.arange(len(TRUTH)) % 50 == 0, "ja", TRUTH)
    assert private_score(MODEL, TEST, few, epsilon=1).mismatch is None


def test_files_and_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({**TEST, "class": TRUTH})
    frame.to_csv(tmp_path / "test.csv", index=False)
    for X in (frame, tmp_path / "test.csv"):
        assert private_score(MODEL, X, epsilon=50).rows == pytest.approx(2000, abs=20)


def test_labels_that_are_nowhere_are_asked_for() -> None:
    """It said that a declared column is missing, and to rename it."""
    budget, frame = Budget(100), pd.DataFrame(TEST)
    for X in (TEST, frame, frame.to_numpy(dtype=object)):
        with pytest.raises(TableError, match=r"private_score: y is None, and the table has no column 'class'.*Give the labels, .*X, y, …"):
            private_score(MODEL, X, epsilon=1, budget=budget)
    with pytest.raises(TableError, match="Did you mean 'Class'"):
        private_score(MODEL, frame.assign(Class=TRUTH), epsilon=1, budget=budget)
    assert budget.spent == 0
    rows = frame.assign(**{"class": TRUTH}).to_dict("records")
    assert private_score(MODEL, rows, epsilon=50, budget=budget).rows == pytest.approx(2000, abs=20)


def test_it_is_charged_and_refused_before_the_look() -> None:
    budget = Budget("0.15")
    private_score(MODEL, TEST, TRUTH, epsilon="0.1", budget=budget)
    with pytest.raises(BudgetError, match=r"short by 0\.05"):
        private_score(MODEL, TEST, TRUTH, epsilon="0.1", budget=budget)
    with pytest.raises(TableError):
        private_score(MODEL, TEST, TRUTH[:-1], epsilon="0.01", budget=budget)
    with pytest.raises(PlanError, match="Release or a fitted estimator"):
        private_score("forest.json", TEST, TRUTH, epsilon="0.01", budget=budget)
    assert str(budget.spent) == "1/10"


def test_a_scorer_for_cross_validation_pays_for_fits_and_scores() -> None:
    budget = Budget(8)
    model = PrivateRDTClassifier(small_schema(), "1.5", budget=budget)
    scores = cross_val_score(model, pd.DataFrame(COLUMNS), LABELS, cv=4, scoring=private_scorer("0.5", budget))
    assert budget.remaining == 0
    assert (scores > 0.5).all()


def test_the_error_is_forecast_without_rows() -> None:
    """As the scores state it then, for rows like those that are assumed: half of each class, and so many predicted right."""
    exact = float((MODEL.predict(TEST) == TRUTH).mean())
    for epsilon, metrics in (("0.5", ["accuracy"]), (2, ["accuracy", "auc"])):
        score = private_score(MODEL, TEST, TRUTH, epsilon=epsilon, metrics=metrics)
        area = {"auc": score.auc} if "auc" in metrics else {}
        expected = score_error(MODEL, 2000, epsilon, metrics, accuracy=exact, **area)
        assert expected["accuracy"] == pytest.approx(score.accuracy_error, rel=0.2)
        if "auc" in metrics:
            assert expected["auc"] == pytest.approx(score.auc_error, rel=0.6)
    errors = [score_error(MODEL, rows, "0.1")["accuracy"] for rows in (10, 61, 500, 2000, 20_000)]
    assert errors == sorted(errors, reverse=True)
    assert (errors[0], errors[-1] < 0.01) == (0.5, True)
    for wrong in ({"rows": 0}, {"epsilon": 0}, {"metrics": ["f2"]}, {"accuracy": 1}, {"auc": 1}):
        with pytest.raises(PlanError):
            score_error(MODEL, **{"rows": 100, "epsilon": 1, **wrong})


def test_the_error_is_forecast_for_one_class() -> None:
    schema = Schema([Categorical("c", range(3))], Target("t", ["no", "perhaps", "yes"]))
    rng = np.random.default_rng(0)
    labels = rng.choice(["no", "perhaps", "yes"], 6000, p=[0.7, 0.2, 0.1])
    rows = pd.DataFrame({"c": (labels == "perhaps") + (labels == "yes") * 2})
    model = PrivateRDTClassifier(schema, 5, random_state=0).fit(rows, labels)
    metrics = ["recall", "auc"]
    score = private_score(model, rows.copy(), labels, epsilon=1, metrics=metrics, positive="yes")
    errors = {
        positive: score_error(model, 6000, 1, metrics, accuracy=0.99, auc=0.99, positive=positive) for positive in (None, "yes", "no")
    }
    assert errors["yes"]["recall"] == pytest.approx(score.recall_error, rel=0.5)
    assert errors["yes"]["recall"] > errors["no"]["recall"]  # fewer rows
    assert errors["yes"]["auc"] not in (errors[None]["auc"], errors["no"]["auc"])
    two = [score_error(MODEL, 100, 1, ["recall"], positive=positive)["recall"] for positive in (None, "yes")]
    assert two[0] == two[1]  # of two classes the last, as a score has it
    with pytest.raises(PlanError, match="positive: got 'never'"):
        score_error(MODEL, 100, 1, positive="never")


def test_rows_of_the_fit_are_told_before_they_are_scored(tmp_path: Path) -> None:
    rows = pd.DataFrame(TEST)
    rows.assign(**{MODEL.schema.target.name: TRUTH}).to_csv(tmp_path / "rows.csv", index=False)
    budget = Budget(20)
    for own, others, labels in ((rows, rows.copy(), TRUTH), (tmp_path / "rows.csv", rows, None)):
        model = PrivateRDTClassifier(MODEL.schema, 1, random_state=0).fit(own, labels)
        for look in (private_score, private_calibration, private_evaluation):
            with pytest.warns(SeenRowsWarning, match="these are the rows that the model was fitted on, which flatter it"):
                look(model, own, labels, epsilon=1, budget=budget)
            look(model, others, TRUTH, epsilon=1, budget=budget)  # warnings are errors here
            look(model.release_, own, labels, epsilon=1, budget=budget)  # of a release nothing is known
    assert budget.spent == 18
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SeenRowsWarning):
            private_score(model, str(tmp_path / "rows.csv"), epsilon=1, budget=budget)
    assert budget.spent == 18


def test_a_score_without_a_budget_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was said of a fit alone."""
    monkeypatch.setattr(private, "_said", [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private_score(MODEL, TEST, TRUTH, epsilon=1, budget=Budget(1))
        with pytest.raises(NoBudgetWarning, match=r"^score: no budget: nothing adds up the ε = 0\.5 of this score.*\(This is said once"):
            private_calibration(MODEL, TEST, TRUTH, epsilon="0.5")
        private_score(MODEL, TEST, TRUTH, epsilon=1)


def test_labels_that_are_named_as_another_column_are_refused() -> None:
    """They were learnt and scored as if they were the target, which the table has, too."""
    budget, target = Budget(10), MODEL.schema.target.name
    rows = pd.DataFrame(TEST).assign(**{target: TRUTH})
    name = MODEL.schema.names[0]
    for ask in (
        lambda table, y: PrivateRDTClassifier(MODEL.schema, 1, budget=budget, random_state=0).fit(table, y),
        lambda table, y: private_score(MODEL, table, y, epsilon=1, budget=budget),
    ):
        with pytest.raises(TableError, match=rf"^y: got the column '{name}'.*Nothing was spent\. Give y=table\['{target}'\]"):
            ask(rows, rows[name])
        assert budget.spent in (0, 2)
        ask(rows, rows[target])
        for named in (rows[target].rename(name), rows[[target]].rename(columns={target: name})):  # a table without the target was paid for
            with pytest.raises(TableError, match=rf"^y: got the column '{name}', which.*Nothing was spent\..*y\.rename\('{target}'\)"):
                ask(rows.drop(columns=target), named)
        ask(rows.drop(columns=target), rows[target].rename("made of another"))
    assert budget.spent == 4


def test_rows_of_a_pipeline_and_of_later_batches_are_told_and_those_of_a_curve_are_not() -> None:
    first, second, other = (pd.DataFrame(small_table(1000, seed=seed)[0]) for seed in (3, 4, 5))
    labels = {id(rows): small_table(1000, seed=seed)[1] for rows, seed in ((first, 3), (second, 4), (other, 5))}
    model = PrivateRDTClassifier(MODEL.schema, 1, random_state=0).partial_fit(first, labels[id(first)])
    piped = make_pipeline(FunctionTransformer(pd.DataFrame.copy), PrivateRDTClassifier(MODEL.schema, 1, random_state=0))
    piped.fit(first, labels[id(first)])
    model.partial_fit(second, labels[id(second)], batch="second")
    for fitted, own in ((model, (first, second)), (piped, (first,))):
        for rows in own:
            with pytest.warns(SeenRowsWarning):
                private_score(fitted, rows, labels[id(rows)], epsilon=1)
        private_score(fitted, other, labels[id(other)], epsilon=1)  # warnings are errors here
    budget = Budget(9)
    own = PrivateRDTClassifier(MODEL.schema, 1, random_state=0, budget=budget)
    how = {"return_train_score": True, "scoring": private_scorer(1, budget), "error_score": "raise"}
    found = cross_validate(own, first, labels[id(first)], cv=2, **how)
    assert (found["train_score"] > 0.5).all()


def test_a_score_lost_in_the_noise_names_the_forecast() -> None:
    few = {name: values[:20] for name, values in TEST.items()}
    scores = [private_score(MODEL, few, TRUTH[:20], epsilon="0.01") for _ in range(8)]
    lost = [score for score in scores if score.lost]
    assert lost
    assert all("`score_error` says what error to expect, for free" in text for text in (repr(lost[0]), lost[0]._repr_html_()))


def test_the_error_is_forecast_from_the_released_share_of_a_rare_class() -> None:
    """15 % of the class. The forecast was half of what the scores then stated, since it took both classes as equally frequent."""
    columns, labels = small_table(20_000, seed=2)
    yes, no = np.flatnonzero(labels == "yes"), np.flatnonzero(labels == "no")
    rows = np.random.default_rng(0).permutation(np.append(no[:6800], yes[:1200]))
    frame, labels = pd.DataFrame(columns).iloc[rows], labels[rows]
    model = PrivateRDTClassifier(small_schema(), 5, random_state=0).fit(frame[:5000], labels[:5000])
    score = private_score(model, frame[5000:], labels[5000:], epsilon=1, metrics=["accuracy", "auc"])
    expected = score_error(model, 3000, 1, ["accuracy", "auc"], auc=score.auc)
    assert expected["auc"] == pytest.approx(score.auc_error, rel=0.4)
    assert expected["accuracy"] == pytest.approx(score.accuracy_error, rel=0.25)
    errors = [score_error(model, rows, 1, ["auc"], auc=auc)["auc"] for rows, auc in ((3000, 0.9), (3000, 0.7), (1000, 0.7))]
    assert errors == sorted(errors)


def test_the_forecast_counts_in_the_bins_that_scores_have() -> None:
    """It took bins of equal width, and told two thirds of the errors that came."""
    rng, slope, share, rows = np.random.default_rng(0), 3.0, 0.1, 200_000
    truth = rng.random(rows) < share
    x = np.log1p(rng.random(rows) * np.expm1(slope)) / slope  # of the class it has the density exp(slope·x), of others the mirrored one
    score = 1 / (1 + np.exp(-slope * (2 * np.where(truth, x, 1 - x) - 1)) * (1 - share) / share)
    counted = score_counts(score, truth.astype(np.uint16), 1, 2, score_edges(SCORE_BINS))
    query, shares = ScoreBins(MODEL.release_.predict_codes_proba, SCORE_BINS, (1,)), np.array([1 - share, share])
    assert _bins(rows, shares, slope, query)[0] == pytest.approx(counted, abs=5 * math.sqrt(counted.max()))
    own = np.c_[1 - score, score]  # the forest's own
    assert _bins(rows, shares, slope, query, own)[0] == pytest.approx(counted, abs=0.01 * counted.max())
    narrow = np.full((100, 2), 0.5) + np.linspace(-0.01, 0.01, 100)[:, None] * [-1, 1]
    assert (_bins(rows, shares, slope, query, narrow)[0].sum(axis=0) > 0).sum() == 2  # beside one half


def test_the_forecast_for_a_forest_whose_probabilities_lie_close_together() -> None:
    """Of a forest with a weak signal 0.69 of the error was told that 20 bins had, and the same for 100."""
    rng, n = np.random.default_rng(4), 12_000
    schema = Schema([Numeric(f"a{i}", 0, 1) for i in range(6)], Target("t", ["no", "yes"]))
    table = {name: rng.random(n) for name in schema.names}
    labels = np.where(rng.random(n) < 0.32 + 0.06 * (table["a0"] + table["a1"] - 1), "yes", "no")
    own = {name: values[:9000] for name, values in table.items()}
    release = HedgerowClassifier(schema, 2, delta=1e-6, budget=Budget(2, 1e-5)).fit(own, labels[:9000]).release_
    rest = {name: values[9000:] for name, values in table.items()}
    for bins in (20, 100):
        score = private_score(release, rest, labels[9000:], epsilon=4, budget=Budget(4), metrics=["auc"], bins=bins)
        forecast = score_error(release, 3000, 4, ["auc"], auc=0.55, bins=bins)["auc"]
        assert forecast == pytest.approx(score.auc_error, rel=0.35)


def test_permutation_importance_is_refused_before_it_costs() -> None:
    """It paid for one score of each column and repetition."""
    budget = Budget(10)
    rows = pd.DataFrame(TEST)
    with pytest.raises(
        PlanError, match=r"permutation_importance scores the rows once for every column.*Nothing was spent.*feature_importan"
    ):
        permutation_importance(MODEL, rows, TRUTH, scoring=private_scorer("0.1", budget))
    assert budget.spent == 0


def test_scores_that_are_lost_in_the_noise_are_told_once_of_a_scorer() -> None:
    few, labels = {name: values[:20] for name, values in TEST.items()}, TRUTH[:20]
    for scorer in (private_scorer("0.001", Budget(1)), private_scorer("0.001", Budget(1))):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(12):
                scorer(MODEL, few, labels)
        assert sum("chosen by chance" in str(each.message) for each in said) == 1


@pytest.mark.parametrize("classes", [2, 3])
def test_f1_and_balanced_accuracy_within_their_errors(classes: int) -> None:
    """As scikit-learn computes them; the errors are those of repeated draws of rows and noise."""
    names = ["no", "perhaps", "yes"][:classes]
    schema = Schema([Categorical("c", range(classes))], Target("t", names))
    rng = np.random.default_rng(3)

    def drawn() -> tuple[pd.DataFrame, np.ndarray]:
        codes = rng.choice(classes, 1000, p=[0.8, 0.2] if classes == 2 else [0.6, 0.25, 0.15])
        seen = np.where(rng.random(1000) < 0.15, rng.integers(0, classes, 1000), codes)
        return pd.DataFrame({"c": seen}), np.array(names)[codes]

    model = PrivateRDTClassifier(schema, 50, random_state=0).fit(*drawn())
    rows, labels = drawn()
    score, found = private_score(model, rows, labels, epsilon=50), model.predict(rows)
    assert score.balanced_accuracy == pytest.approx(balanced_accuracy_score(labels, found), abs=0.01)
    exact = f1_score(labels, found, pos_label="perhaps") if classes == 2 else f1_score(labels, found, average="macro")
    assert score.f1 == pytest.approx(exact, abs=0.01)
    scores = [private_score(model, *drawn(), epsilon="0.2") for _ in range(120)]
    for name in ("f1", "balanced_accuracy"):
        spread = np.std([getattr(each, name) for each in scores])
        assert 0.75 < np.median([getattr(each, f"{name}_error") for each in scores]) / spread < 1.4
    assert private_scorer(1, Budget(1), "f1")(model, rows, labels) == pytest.approx(exact, abs=0.1)


def test_the_error_of_a_mean_f1_is_not_that_of_a_class_without_rows() -> None:
    """Its own share is off by 1/2 at most, so that the mean of three is not called lost in the noise: it was stated as 0.5 for 0.11."""
    schema, rng = Schema([Categorical("c", range(3))], Target("t", ["no", "perhaps", "never"])), np.random.default_rng(4)

    def drawn() -> tuple[pd.DataFrame, np.ndarray]:
        codes = rng.choice(2, 3000, p=[0.6, 0.4])
        return pd.DataFrame({"c": np.where(rng.random(3000) < 0.15, 1 - codes, codes)}), np.array(["no", "perhaps"])[codes]

    with pytest.warns(SchemaMismatchWarning, match="hardly any has the class never"):
        model = PrivateRDTClassifier(schema, 50, random_state=0).fit(*drawn())
    scores = [private_score(model, *drawn(), epsilon="0.2") for _ in range(60)]
    assert max(each.f1_error for each in scores) < 0.25
    assert 0.7 < np.median([each.f1_error for each in scores]) / np.std([each.f1 for each in scores]) < 2.5


def test_columns_that_were_made_of_a_declared_one_are_named() -> None:
    table = pd.DataFrame(TEST)
    name = next(attribute.name for attribute in MODEL.schema.attributes if isinstance(attribute, Categorical) and len(attribute.domain) > 2)
    with pytest.raises(TableError, match=rf"{name} are missing; .* If the columns {name}_… were made of it \(pandas.get_dummies\)"):
        MODEL.predict(pd.get_dummies(table, columns=[name]))


def test_a_class_that_is_never_predicted_has_no_precision_of_noise() -> None:
    """A mean of 0.50 was stated for one of 0.30: noise over noise is one half, in the mean."""
    exact, rng = np.array([[0, 0, 90], [0, 0, 60], [0, 0, 850]]), np.random.default_rng(0)

    def score(noise: int) -> PrivateScore:
        noisy = exact + np.rint(rng.laplace(scale=noise, size=(3, 3))).astype(int) if noise else exact
        return PrivateScore(noisy, 0, ("a", "b", "c"), max(Fraction(noise), Fraction(1, 1000)), no_certificate("made"))

    scores = [score(10) for _ in range(200)]
    assert abs(np.mean([each.precision for each in scores]) - 0.283) < 0.04
    assert np.mean([abs(each.precision - 0.283) < 2 * each.precision_error for each in scores]) > 0.9
    said = [repr(each) for each in scores]
    assert sum("(0 for a, b: too few rows are taken for them beside the noise)" in each for each in said) > 100
    assert score(0).precision == pytest.approx(0.85 / 3)
    assert score(0).precision_error < 0.01
    assert "too few rows are taken" not in repr(score(0))
