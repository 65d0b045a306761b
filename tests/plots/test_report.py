"""The report says all that the certificate says, escapes everything, and needs nothing from outside."""

from __future__ import annotations

import html.parser
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest

from hedgerow import (
    Budget,
    BudgetFile,
    Categorical,
    DPDFClassifier,
    Numeric,
    PrivateRDTClassifier,
    RandomDecisionTreesClassifier,
    Release,
    Schema,
    SNRForestClassifier,
    Target,
)
from hedgerow.datasets import patients
from hedgerow.evaluation.private import private_score
from hedgerow.inference.coverage import class_rows
from hedgerow.inference.text import count_with_error
from hedgerow.plots.report import html_report, show_page
from hedgerow.trees.forest import CountedForest

HOSTILE = "<script>alert('x')</script>\"&<img src=x onerror=alert(1)>"


class Reader(html.parser.HTMLParser):
    """Collects tags, attributes and text; knows whether every tag was closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def check(page: str) -> Reader:
    reader = Reader(page)
    assert not reader.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "a", "image", "use"}
    assert not reader.attributes & {"src", "href", "xlink:href", "action", "background"}
    assert not [name for name in reader.attributes if name.startswith("on")]
    outside = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|javascript:", outside)
    return reader


@pytest.fixture(scope="module")
def data():
    return patients(2_000)


@pytest.fixture(scope="module", params=["Private-RDT", "SNR forest"])
def scored(request, data):
    budget = Budget("2/3")
    kind = PrivateRDTClassifier if request.param == "Private-RDT" else SNRForestClassifier
    estimator = kind(data.schema, "1/3", budget=budget, random_state=0).fit(data.X, data.y)
    score = private_score(estimator.release_, data.X, data.y, epsilon="0.1", budget=budget)
    return estimator, score, budget


def test_a_release_writes_its_report(scored, tmp_path):
    estimator, score, _ = scored
    estimator.release_.report(tmp_path / "report.html", score=score)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page == html_report(estimator.release_, score=score)


def test_everything_is_on_the_page(scored):
    estimator, score, budget = scored
    release = estimator.release_
    lines = estimator.plan(rows=2_000).lines()
    text = check(html_report(release, score=score, plan_lines=lines, budget=budget)).text
    assert release.certificate.sentence() in text
    assert "1/3" in text
    for event in [*release.certificate.events, *score.certificate.events]:
        for words in (event.query, event.mechanism, f"{event.queries:,}", event.shown[0], event.shown[2]):
            assert words in text
    for words in [*release.certificate.assumptions, release.certificate.sampler, release.content_hash, release.made_by]:
        assert words in text
    for name, value in lines:
        assert name in text
        assert value in text
    assert "13/30 of ε = 2/3 spent, 7/30 left" in text
    assert "the release and its score together cost ε = 13/30" in text
    for number in score.confusion.ravel():
        assert f"{number:,}".replace("-", "−") in text
    assert "Tree 1 of" in text
    assert "What this means, and what it does not" in text
    assert ("support about" in text) == bool(release.rules())  # at this ε noise may leave no rule
    assert "a rule must stand" in text


def test_a_greedy_forest_shows_pruned_trees_attributes_and_its_charges_once(data):
    release = DPDFClassifier(data.schema, 4, n_estimators=2, max_depth=3, min_rows=20).fit(data.X, data.y).release_
    text = check(html_report(release)).text
    assert "What the splits tell about the class" in text
    best = max(release.feature_importances().items(), key=lambda item: item[1])
    assert f"{best[0]}{best[1] * 100:.0f} %" in text  # the name, then the number beside its bar
    assert "Nodes that pruning removes, and that predictions do not use, are not drawn." in text
    assert len(release.certificate.events) > 5
    # one line on the page for each kind of charge; like ones are counted
    assert len(re.findall(r"discrete Laplace\d", text)) == len(
        {event for event in release.certificate.events if event.query == "class_counts"}
    )
    error = release.forest.leaf_noise_sd / np.sqrt(2)  # the root of each tree was counted by itself
    for total in release.forest.class_totals:
        assert f"{count_with_error(total, error)}" in text
    whole = check(show_page(release, 0, 4, pruned=False)).text
    leaves = len(release.forest.trees[0].leaves)
    assert f"{leaves:,} lea" in whole
    if release.removed[0].any():
        assert f"of {leaves:,} leaves after pruning" in check(show_page(release, 0, 4)).text


def test_trees_that_tell_nothing_have_no_important_attributes(data):
    release = PrivateRDTClassifier(data.schema, "1/1000", max_depth=1, random_state=0).fit(data.X, data.y).release_
    release.forest = CountedForest(
        release.codebook, release.forest.trees, tuple(counts * 0 - 1 for counts in release.forest.counts), release.forest.noise
    )
    assert "No split of these trees stands out from the noise" in check(html_report(release)).text


def test_the_factor_is_never_rounded_down(data):
    from hedgerow.plots.report_privacy import _factor

    assert _factor(Fraction(1)) == "2.72"
    assert _factor(Fraction(1, 100)) == "1.011"
    assert _factor(Fraction(30)).startswith("e^30")


def test_parts_can_be_left_out(scored):
    estimator, _, _ = scored
    text = check(html_report(estimator.release_, rules=0, trees=0)).text
    for words in ("Private score", "The plan", "Budget", "Tree 1 of", "sure, about"):
        assert words not in text


def test_class_totals_and_their_noise(scored):
    release = scored[0].release_
    forest = release.forest
    weights = np.array([forest.node_noise_sd(t)[0] ** -2 for t in range(len(forest.trees))])  # the less noisy trees weigh more
    totals, (shown, error) = weights @ np.array([counts[0] for counts in forest.node_counts]) / weights.sum(), class_rows(forest)
    assert error == pytest.approx(weights.sum() ** -0.5, rel=0.2)  # without a tree that seems to lack rows, of one forest in a hundred
    assert shown == pytest.approx(totals, abs=2 * error)
    text = check(html_report(release)).text
    for total in shown:
        assert count_with_error(total, error) in text  # noise may make it negative: the page writes "−43", not "-43"


def test_a_budget_file_with_an_unfinished_request(scored, tmp_path):
    budget = BudgetFile.create(tmp_path / "b.json", "0.5")
    budget.reserve("0.1", f"fit {HOSTILE}")
    text = check(html_report(scored[0].release_, budget=budget)).text
    assert "0.1 of ε = 0.5 spent, 0.4 left" in text
    assert "all of it (not finished)" in text
    assert HOSTILE in text


def test_no_guarantee_is_said_plainly(data):
    baseline = RandomDecisionTreesClassifier(schema=data.schema, n_estimators=2, max_depth=2, random_state=0)
    page = html_report(baseline.fit(data.X, data.y).release_)
    text = check(page).text
    assert "no privacy guarantee" in text
    assert "It means" not in text
    assert 'class="promise none"' in page


def test_hostile_releases_stay_text():
    schema = Schema([Categorical(HOSTILE, (HOSTILE, "b")), Numeric("n\x1b\u202e", 0, 1)], Target(HOSTILE + "t", (HOSTILE, "b")))
    rng = np.random.default_rng(0)
    X = {HOSTILE: rng.choice(np.array([HOSTILE, "b"]), 200), "n\x1b\u202e": rng.random(200)}
    y = rng.choice(np.array([HOSTILE, "b"]), 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = PrivateRDTClassifier(schema, 1, n_estimators=2, random_state=0).fit(X, y).release_
        score = private_score(release, X, y, epsilon=1)
    release.algorithm = release.made_by = HOSTILE
    release.parameters[HOSTILE] = HOSTILE
    release.chosen[HOSTILE] = HOSTILE
    release.released[HOSTILE] = 3
    release = Release.from_json(release.to_json())
    for page in (html_report(release, score=score, plan_lines=[(HOSTILE, HOSTILE)]), show_page(release, 1)):
        reader = check(page)
        assert "<script" not in page
        assert "<img" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
        assert HOSTILE in reader.text


def test_show_page(scored):
    release = scored[0].release_
    text = check(show_page(release, 1, 2)).text
    assert f"Tree 2 of {len(release.forest.trees)}" in text
    assert "The same tree as text" in text
    assert "├─" in text
    assert release.certificate.sentence() in text


def test_a_loss_that_is_no_short_number_is_drawn(data):
    """A float of a third: its exact fraction is long, and people are told about 0.3333."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = PrivateRDTClassifier(data.schema, 1 / 3, random_state=0).fit(data.X, data.y)
        score = private_score(estimator.release_, data.X, data.y, epsilon=1 / 3)
    assert "ε ≈ 0.6667" in check(html_report(estimator.release_, score=score)).text
