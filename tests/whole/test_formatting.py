"""What people see: at most four digits, one table of what ε means, verdicts in words. Files stay exact."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hedgerow import Budget, Categorical, DPDFClassifier, HedgerowClassifier, Numeric, PrivateRDTClassifier, Schema, Target, formatting
from hedgerow.accounting import meaning
from hedgerow.accounting.loss import exact_epsilon
from hedgerow.cli.evaluate import evaluate
from hedgerow.datasets import patients
from hedgerow.errors import BudgetError, FractionWarning, LargeDeltaWarning
from hedgerow.inference.explain import explain
from hedgerow.inference.text import values_in_words
from hedgerow.remote.responses import Loss, Quote, RemoteScore
from hedgerow.schema.codebook import Codebook
from hedgerow.training.shared_plans import shown_plan
from hedgerow.trees.plan import EXPECTED, Plan

ROOT = Path(__file__).parents[2]
SCHEMA = Schema([Numeric("age", 0, 100), Numeric("income", 0, 1_000_000)], Target("ill", ["no", "yes"]))
LONG = re.compile(r"\d{6,}/|/\d{4,}|\de\+\d|\.0*[1-9]\d{4,}")  # what nobody wants to read


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_053.2, "1,053"),
        (1e6, "1,000,000"),
        (0.8723350688463766, "0.8723"),
        (-10_299.22, "−10,300"),
        (3e-7, "3e-07"),
        (0, "0"),
        (19.6, "19.6"),
    ],
)
def test_numbers_have_four_digits(value: float, text: str) -> None:
    assert formatting.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1/3", "1/3"), ("0.9", "0.9"), ("1e-6", "1e-06"), ("2", "2"), ("0", "0"), ("0.3333333333333333", "about 0.3333"),
        ("385875968000000000000/968191799", "about 398,600,000,000"), ("4171/45000", "about 0.09269"),
    ],
)  # fmt: skip
def test_amounts_are_exact_where_that_is_short(value: str, text: str) -> None:
    assert formatting.amount(Fraction(value)) == text


def test_what_may_be_asked_for_is_rounded_down() -> None:
    for text in ("40000000000000001/30000000000000000", "2/3", "0.12345", "12345.678"):
        left = Fraction(text)
        shown = formatting.at_most(left)
        assert Fraction(shown.replace(",", "")) <= left
        assert float(left) - float(Fraction(shown.replace(",", ""))) < float(left) / 1000


def test_edges_are_as_round_as_the_cells_allow() -> None:
    assert formatting.edges([18, 25.6875, 28.25, 40.0625, 120]) == ["18", "25.7", "28.2", "40", "120"]
    assert formatting.edges([0, 1e6 / 3, 2e6 / 3, 1e6]) == ["0", "330,000", "670,000", "1,000,000"]
    assert formatting.edges([1972, 1996, 2018]) == ["1972", "1996", "2018"]  # years have no commas
    assert formatting.edges([-5000, 0, 2500.5, 9999, 20_000]) == ["−5000", "0", "2500", "10,000", "20,000"]
    book = Codebook(SCHEMA, 16)
    assert values_in_words(book, 0, [4, 5]) == "25 to 37.5"
    assert values_in_words(book, 1, [15]) == "938,000 or more"
    assert book.schema.attributes[1].bounds_text == "0 to 1,000,000"  # type: ignore[union-attr]


def test_every_edge_is_shown_apart() -> None:
    for bins in (3, 7, 64, 250):
        for low, high in ((0, 1), (-3.7, 12.2), (1e-5, 3e-5), (0, 1e9), (1_000_000, 1_000_001)):
            texts = Numeric("x", low, high).edge_texts(bins)
            assert len(set(texts)) == bins + 1, (bins, low, high)


def test_a_fraction_and_a_float_are_told_apart() -> None:
    assert exact_epsilon("1/3") == Fraction(1, 3)
    with pytest.warns(FractionWarning, match='not exactly 1/3. For 1/3 itself write "1/3"'):
        assert exact_epsilon(1 / 3) == Fraction("0.3333333333333333")
    with pytest.warns(FractionWarning, match="not exactly 0.3"):
        exact_epsilon(0.1 + 0.2)
    for plain in (0.1, 0.25, 1.0, 0.3, 1e-6, 0.123456789, 3.14159):
        exact_epsilon(plain)  # warnings are errors here


def test_refusals_are_readable_and_what_they_advise_is_accepted() -> None:
    budget = Budget(1)
    budget.reserve(Fraction(12345678901, 20000000000), "a query")
    with pytest.raises(BudgetError) as told:
        budget.reserve(1, "another")
    assert not LONG.search(str(told.value))
    advised = re.search(r"at most ε = ([0-9.]+)\.", str(told.value))
    assert advised is not None
    budget.reserve(advised[1], "as advised")


# ---------------------------------------------------------------- what ε means


def test_the_odds_are_bounds() -> None:
    assert [meaning.odds(level.epsilon) for level in meaning.LEVELS] == [
        "52.5 % of the time", "73.2 % of the time", "95.3 % of the time", "99.97 % of the time",
    ]  # fmt: skip
    for epsilon in (Fraction(1, 100), Fraction(1, 2), Fraction(2), Fraction(5), Fraction(9)):
        said = meaning.odds(epsilon)
        percent = float(said.split()[0])
        assert percent >= 100 * float(1 / (1 + np.exp(-float(epsilon)))) - 1e-9
    assert {meaning.odds(epsilon) for epsilon in (Fraction(20), Fraction(10**6))} == {"nearly always"}
    assert "is right nearly always (a coin" in meaning.sentence(Fraction(100))


def test_the_odds_hold_with_their_delta() -> None:
    """The best guess there is: ε and δ are used up both by those who say "in" and by those who say "out"."""
    assert meaning.odds(Fraction(1), Fraction(1, 10)) == "75.8 % of the time"
    for epsilon, delta in ((Fraction(1), Fraction(1, 10)), (Fraction(1, 10), Fraction(1, 2)), (Fraction(8), Fraction(1, 100))):
        wrong = (1 - float(delta)) / (1 + np.exp(float(epsilon)))  # who says "in" though it is out
        right = np.exp(float(epsilon)) * wrong + float(delta)
        assert right == pytest.approx(1 - wrong)
        assert float(meaning.odds(epsilon, delta).split()[0]) >= 100 * (right + 1 - wrong) / 2 - 1e-9
        assert meaning.odds(epsilon, delta) in meaning.sentence(epsilon, delta)
    assert meaning.sentence(Fraction(1), Fraction(1, 10**6)) == meaning.sentence(Fraction(1))  # rounded up, it holds
    words = [meaning.protection(Fraction(1), Fraction(d)) for d in ("0", "1e-6", "0.1", "0.5")]
    assert words == ["strong", "strong", "moderate", "moderate"]
    assert meaning.protection(Fraction(10**6), Fraction(1, 2)) == meaning.BEYOND


def test_a_large_delta_is_warned_of_before_anything_is_paid() -> None:
    of_none, of_rows = (("1e-6", None, False), ("1e-3", None, False), ("2e-3", None, True)), (("1e-3", 900, False), ("1e-3", 1200, True))
    for delta, rows, large in (*of_none, *of_rows):
        assert (meaning.large_delta(Fraction(delta), rows) is not None) == large
    plan = HedgerowClassifier(SCHEMA, epsilon=1, delta=0.1).plan(rows=20_000)
    assert "75.8 % of the time" in str(plan)
    assert "one person in 10 " in str(plan)
    budget = Budget(1, 0.1)
    train = patients(50, seed=1)
    with pytest.raises(LargeDeltaWarning, match="Use δ = 1e-6"):  # the test set-up makes warnings errors
        HedgerowClassifier(train.schema, epsilon=1, delta=0.1, budget=budget).fit(train.X, train.y)
    assert budget.remaining == 1


def test_a_delta_above_one_over_the_rows_is_told_by_plan_and_fit() -> None:
    model = HedgerowClassifier(SCHEMA, epsilon=1, delta=1e-4)
    assert "δ = 0.0001 is large, more than one over the 20,000 rows" in str(model.plan(rows=20_000))
    assert "is large" not in str(model.plan(rows=9_000))
    train, budget = patients(3_000, seed=1), Budget(60, "0.1")
    for declared, rows in ((None, r"number of rows, about [23],\d+"), (3_000, "3,000 rows")):  # noisy, as released
        schema = replace(train.schema, rows=declared)
        with pytest.warns(LargeDeltaWarning, match=f"δ = 0.0009 is large, more than one over the {rows}.*Use δ = 1e-6"):
            HedgerowClassifier(schema, 20, delta="9e-4", budget=budget).fit(train.X, train.y)
    HedgerowClassifier(train.schema, 20, delta="1e-4", budget=budget).fit(train.X, train.y)  # the test set-up makes warnings errors
    assert "Use less: well below" in str(meaning.large_delta(Fraction("1e-6"), 2_000_000))


def test_nothing_is_called_stronger_than_it_is() -> None:
    levels = [meaning.protection(Fraction(e)) for e in ("0.1", "0.11", "1", "1.01", "3", "3.5", "8", "9")]
    assert levels == ["very strong", "strong", "strong", "moderate", "moderate", "weak", "weak", "hardly any"]


@pytest.mark.parametrize("document", ["README.md"])
def test_documents_have_the_one_table(document: str) -> None:
    assert meaning.markdown() in (ROOT / document).read_text(encoding="utf-8")


def test_the_readme_and_the_help_have_the_one_advice_about_scores() -> None:
    for text in ((ROOT / "README.md").read_text(encoding="utf-8"), evaluate.__doc__ or ""):
        assert meaning.SCORE in " ".join(text.split())
    form = ROOT / "src" / "hedgerow" / "curator" / "web" / "templates" / "release.html"
    assert f"About {meaning.FOR_ACCURACY} / rows" in form.read_text(encoding="utf-8")
    for page in ("START.md", "SCORES.md"):
        assert f"ε = {meaning.FOR_AUC} / rows" in (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert "README.md#which-ε" in (ROOT / "docs" / "SCORES.md").read_text(encoding="utf-8")


def test_no_document_or_page_gives_other_advice() -> None:
    elsewhere = [*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "PRIVACY.md", *(ROOT / "src").rglob("*.html")]
    for path in elsewhere:
        text = path.read_text(encoding="utf-8")
        for other in ("is careful", "is cautious", "promises little", "is common,"):
            assert other not in text, path


def test_budgets_are_suggested_with_a_delta() -> None:
    for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "PRIVACY.md", *(ROOT / "src").rglob("*.py")]:
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"budget init \S+ --epsilon [0-9]", line):
                assert "--delta" in line or line.rstrip().endswith('"'), (path, line)


# ---------------------------------------------------------------- plans, and what notebooks show


def test_a_plan_ends_with_a_verdict() -> None:
    weak = HedgerowClassifier(SCHEMA, epsilon=0.1).plan(rows=100)
    assert weak.lines()[-1][0] == "verdict"
    assert re.match(
        r"about 50 rows of a class, if all are as frequent, at ε = 0.1: expect little more than the majority class", weak.verdict
    )
    assert "a δ" not in weak.verdict  # it would buy nothing
    good = HedgerowClassifier(SCHEMA, epsilon=5, delta=1e-6).plan(rows=1_000_000)
    assert (
        "expect nearly what a model without privacy would learn, if the columns tell the class well; of a rare class or a weak signal less"
        in good.verdict
    )
    assert good.verdict.endswith("(three of four public tables had that)")
    assert str(good).splitlines()[-1].startswith("verdict")
    other = PrivateRDTClassifier(SCHEMA, epsilon=1).plan(rows=1_000_000)
    told = r"about [\d.,]+ rows for each number that is measured, if all are as frequent, with noise of ± .*: they stand"
    assert re.match(told, other.verdict)
    assert other.verdict.endswith("; those of a rare class or value less")
    shared = HedgerowClassifier(SCHEMA, epsilon=1).public_plan(rows=30_000, tables=3)
    assert re.match(told, shown_plan(shared).verdict)
    assert "model without privacy" not in other.verdict  # measured for our own forest alone
    assert DPDFClassifier(SCHEMA, epsilon=1).plan(rows=1_000).verdict == ""


def test_the_verdict_knows_of_attributes_with_many_values_and_is_not_contradicted() -> None:
    """At ε = 0.1 it said "expect most" below "rows in a leaf: LESS THAN THE NOISE on them", which are a Hedgerow forest's start alone."""
    schema = Schema([Categorical("c", range(195)), *(Categorical(f"d{j}", range(3)) for j in range(10))], Target("t", ["n", "y"]))

    def plan(epsilon: str, delta: float = 1e-6) -> Plan:
        return HedgerowClassifier(schema, epsilon, delta).plan(rows=20_000)

    for found in (plan("0.1"), plan("1"), plan("1", 0), plan("64")):
        assert "rows in a leaf" not in dict(found.lines())
    assert "An attribute has 195 values, with about 51 rows of a class for each, and noise of ± 130 at best: next to" in plan("0.1").verdict
    assert "and noise of ± 15 at best: less than that is learnt from them" in plan("1").verdict
    assert "and noise of ± 16 at best: less than that is learnt from them" in plan("1", 0).verdict
    assert "values" not in plan("64").verdict
    assert "values" not in HedgerowClassifier(patients(10, seed=1).schema, "1", 1e-6).plan(rows=20_000).verdict
    assert "rows in a leaf" in dict(PrivateRDTClassifier(schema, "0.1").plan(rows=20_000).lines())


def test_the_verdict_rises_with_epsilon_rows_and_a_delta() -> None:
    """What is built changes with ε and the rows, by steps; what to expect does not go down with them, nor with a δ."""
    words = [words for _, words in EXPECTED[False]][::-1]

    def rank(epsilon: str, delta: float, rows: int) -> int:
        verdict = HedgerowClassifier(patients(10, seed=1).schema, epsilon, delta).plan(rows=rows).verdict
        return next(place for place, each in enumerate(words) if each in verdict)

    epsilons, rows = ("0.05", "0.1", "0.5", "0.75", "1", "2", "4", "8"), (300, 1_000, 4_000, 8_000, 20_000, 50_000, 500_000)
    ranks = {delta: [[rank(epsilon, delta, n) for epsilon in epsilons] for n in rows] for delta in (0, 1e-6)}
    for delta in ranks:
        assert all(line == sorted(line) for line in ranks[delta])
        assert all(list(line) == sorted(line) for line in zip(*ranks[delta], strict=True))
    assert all(a >= b for lines in zip(ranks[1e-6], ranks[0], strict=True) for a, b in zip(*lines, strict=True))
    assert ranks[1e-6] != ranks[0]
    assert {each for line in ranks[0] for each in line} == {0, 1, 2, 3, 4}


@pytest.mark.filterwarnings("ignore::hedgerow.errors.FractionWarning")
def test_plans_say_what_their_epsilon_means_in_short_numbers() -> None:
    for plan in (
        HedgerowClassifier(SCHEMA, epsilon=1 / 3, delta=1e-6).plan(rows=20_000),
        PrivateRDTClassifier(SCHEMA, epsilon=2 / 7).plan(rows=20_000),
    ):
        assert meaning.sentence(plan.epsilon or Fraction(0), plan.delta) in str(plan)
        assert not LONG.search(str(plan))
        assert not LONG.search(repr(plan))


def test_reprs_are_short_and_notebooks_draw() -> None:
    rng = np.random.default_rng(1)
    rows = {"age": rng.uniform(0, 100, 2_000), "income": rng.uniform(0, 1e6, 2_000)}
    budget = Budget(2, 1e-6)
    plan = HedgerowClassifier(SCHEMA, epsilon="1/3", delta=1e-6).plan(rows=2_000)
    release = (
        HedgerowClassifier(SCHEMA, epsilon="1/3", delta=1e-6, budget=budget).fit(rows, np.where(rows["age"] > 50, "yes", "no")).release_
    )
    quote = Quote.read(
        {
            "cost": {"epsilon": "1/3", "delta": "0.000001"}, "remaining": {"epsilon": "385875968/968191799", "delta": "0.00001"},
            "events": [], "plan": [list(line) for line in plan.lines()],
        }
    )  # fmt: skip
    score = RemoteScore(((90, 10), (5, 95)), 0, ("no", "<b>yes"), Fraction(7), 0.925, 0.0163, "ε = 0.1 differential privacy")
    for thing in (budget, Loss(Fraction(1, 3), Fraction(0)), plan, release, quote, score):
        assert len(repr(thing)) < 450
        assert "Fraction(" not in repr(thing)
        assert not LONG.search(repr(thing))
        html = thing._repr_html_()  # type: ignore[attr-defined]
        assert html.startswith("<")
        assert "<b>yes" not in html
    spelled = replace(score, confusion=((2, -3), (1, 0)), undeclared=190, accuracy=0.5, accuracy_error=0.5)
    for text in (repr(spelled), spelled._repr_html_()):
        assert "190 ± 14 test rows have no declared class, more than have one: their labels seem to be spelled otherwise" in text
    (explained,) = explain(release.additive, release.codebook.encode({"age": [70.0], "income": [1.0]}), [0])
    assert not LONG.search(repr(explained))
    assert "intercept" in repr(explained)
    assert "<svg" in release._repr_html_()
    assert "fit Hedgerow forest" in budget._repr_html_()
    assert str(quote).splitlines()[0].split() == ["it", "would", "cost", "(ε", "=", "1/3,", "δ", "=", "1e-06)"]
    assert "expect" in repr(quote)
