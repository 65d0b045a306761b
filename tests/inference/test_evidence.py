"""Which attributes are called noise, and which values have too few rows to tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow import Categorical, HedgerowClassifier, Numeric, Schema, Target
from hedgerow.inference.effects import Effect, effect_named
from hedgerow.plots.effect_svg import effect_svg
from hedgerow.plots.effect_text import FEW, UNKNOWN, effect_text, explanation_text
from hedgerow.plots.report import html_report
from hedgerow.plots.waterfall_svg import waterfall_svg

JOBS = ("admin", "custodial", "manage")


def an_effect(scores: Any, errors: Any, rows: Any = None, classes: tuple[str, ...] = JOBS) -> Effect:
    scores, errors = np.asarray(scores, dtype=float), np.asarray(errors, dtype=float)
    rows = np.full(len(scores), 1 / len(scores)) if rows is None else np.asarray(rows)
    names = tuple(f"v{i}" for i in range(len(scores)))
    return Effect("a", names, classes, rows, scores, errors, np.full(len(classes), 1 / len(classes)), 0.3, importance_noise=0.2)


# ---------------------------------------------------------------- within the noise


def test_one_value_with_a_huge_error_does_not_hide_the_others() -> None:
    """Gender of BankWages: no woman is custodial, so that nothing is known of her odds; of a man much is, and it was called noise."""
    gender = an_effect([[1.72, -2.46, 0.74], [-0.49, 0.37, 0.12]], [[0.95, 1.89, 0.95], [0.06, 0.09, 0.06]], [0.46, 0.54])
    assert gender.above_noise
    assert not replace(gender, scores=gender.scores * 0.05).above_noise


def test_one_clear_value_among_many_rows_that_say_nothing_is_enough() -> None:
    scores, errors = np.array([[0.005, -0.005], [-0.25, 0.25], [0.02, -0.02]]), np.array([[0.01] * 2, [0.05] * 2, [0.05] * 2])
    workclass = an_effect(scores, errors, [0.9, 0.03, 0.07], ("n", "y"))
    assert workclass.above_noise
    drawn = np.array([[1.0] * 2, [0.2] * 2, [1.0] * 2])  # but not one that is mostly what the others say
    assert not replace(workclass, believed=drawn).above_noise
    assert not replace(workclass, chance=np.full((3, 2), 0.1)).above_noise  # nor what chance may have done


@pytest.mark.parametrize(("values", "classes"), [(2, 2), (2, 3), (6, 2), (6, 4), (24, 2)])
def test_noise_alone_is_rarely_taken_for_more(values: int, classes: int) -> None:
    rng, alarms = np.random.default_rng(values * classes), 0
    for _ in range(600):
        errors = np.repeat(rng.uniform(0.05, 1.0, (values, 1)), classes, axis=1)
        noise = rng.normal(0, 1, (values, classes)) * errors / np.sqrt(1 - 1 / classes)
        found = an_effect(noise - noise.mean(axis=1, keepdims=True), errors, rng.dirichlet(np.ones(values)), tuple("abcdef"[:classes]))
        alarms += found.above_noise
    assert alarms <= 0.1 * 600  # of attributes whose values do not even balance each other


def jobs(rng: np.random.Generator, rows: int = 400) -> tuple[Schema, dict[str, Any], Any]:
    """As BankWages: no woman is custodial, most who manage have gone to school for long; and a coin."""
    job = rng.choice(JOBS, rows, p=[0.75, 0.08, 0.17])
    women = np.where(job == "admin", 0.57, np.where(job == "custodial", 0.0, 0.12))
    X = {
        "gender": np.where(rng.random(rows) < women, "female", "male"),
        "education": np.clip(np.rint(rng.normal(np.where(job == "manage", 17, 12.5), 2)), 8, 21),
        "coin": rng.choice(["heads", "tails"], rows),
    }
    attributes = [Categorical("gender", ["female", "male"]), Numeric("education", 0, 25), Categorical("coin", ["heads", "tails"])]
    return Schema(attributes, Target("job", list(JOBS))), X, job


@pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")  # a rare class may be lost in the noise
def test_what_matters_is_not_called_noise_and_rules_agree() -> None:
    """In a third of such fits gender was, while a rule about it stood above the noise."""
    rng, marked = np.random.default_rng(5), {"gender": 0, "education": 0, "coin": 0}
    for seed in range(20):
        schema, X, job = jobs(rng)
        release = HedgerowClassifier(schema, 1, random_state=seed).fit(X, job).release_
        for name in release.within_noise():
            marked[name] += 1
        told = any("gender is" in str(rule) for rule in release.rules())
        assert not (told and "gender" in release.within_noise())
    assert marked["gender"] <= 1
    assert marked["education"] <= 3
    assert marked["coin"] >= 16


# ---------------------------------------------------------------- too few rows to tell


@pytest.fixture(scope="module")
def crashes() -> Any:
    """A rare class, and a value with 3 of 200 rows, of whom hardly any has it: a fit draws it to 0, which is far above its neighbour."""
    rng, rows, coins = np.random.default_rng(2), 20_000, [f"coin {i}" for i in range(5)]
    speed = rng.choice(["slow", "usual", "fast"], rows, p=[0.015, 0.735, 0.25])
    X = {"speed": speed, "belt": rng.choice(["on", "off"], rows), "age": rng.integers(0, 90, rows)}
    X |= {name: rng.choice(["heads", "tails"], rows) for name in coins}
    odds = np.where(speed == "fast", -2.2, -4.6) + np.where(X["belt"] == "on", 0.0, 0.6)
    y = np.where(rng.random(rows) < 1 / (1 + np.exp(-odds)), "dead", "alive")
    attributes = [Categorical("speed", ["slow", "usual", "fast"]), Categorical("belt", ["on", "off"]), Numeric("age", 0, 90)]
    attributes += [Categorical(name, ["heads", "tails"]) for name in coins]
    return HedgerowClassifier(Schema(attributes, Target("end", ["alive", "dead"])), 1, 1e-6, random_state=0).fit(X, y).release_


def test_values_with_few_rows_are_marked_and_others_are_not(crashes: Any) -> None:
    found, names = crashes.effects(), crashes.schema.names
    assert crashes.additive.joint_noise > 0
    speed = effect_named(found, "speed", names)
    assert dict(zip(speed.values, speed.few_rows.tolist(), strict=True)) == {"slow": True, "usual": False, "fast": False}
    assert speed.believed[0].max() < 0.3 < 0.8 < speed.believed[1:].min()
    assert not effect_named(found, "belt", names).few_rows.any()
    assert effect_named(found, "age", names).few_rows.mean() < 0.1
    slow, usual, fast = effect_text(speed).splitlines()[1:]
    assert slow.endswith(FEW)
    assert FEW not in usual + fast
    picture = effect_svg(speed)
    assert "slow *" in picture
    assert "usual *" not in picture
    assert "*: few rows, drawn towards the others." in picture


def test_explanations_and_the_report_mark_them_too(crashes: Any) -> None:
    coins = {f"coin {i}": ["heads", "heads"] for i in range(5)}
    slow, fast = crashes.explain({"speed": ["slow", "fast"], "belt": ["on", "on"], "age": [30, 30]} | coins)
    assert [said.attribute for said in slow.said if said.few] == ["speed"]
    assert not any(said.few for said in fast.said)
    assert explanation_text(slow).count(FEW) == 1
    assert FEW not in explanation_text(fast)
    assert "speed: slow *" in waterfall_svg(slow)
    assert "few rows" not in waterfall_svg(fast)
    page = html_report(crashes)
    assert "slow *" in page
    assert "a value with few rows, marked *, is drawn towards the others" in page


def test_tables_mark_values_of_which_less_than_half_is_believed() -> None:
    """In pure ε: e²/(e² + s²) of the rarer class; of a group of values, all of its rows count."""
    rng, rows = np.random.default_rng(3), 3000
    X = {"a": rng.choice(list("uvw"), rows, p=[0.6, 0.39, 0.01]), "n": rng.random(rows)}
    y = np.where(rng.random(rows) < np.where(X["a"] == "u", 0.1, 0.4), "yes", "no")
    schema = Schema([Categorical("a", list("uvw")), Numeric("n", 0, 1)], Target("y", ["no", "yes"]))
    release = HedgerowClassifier(schema, 1, random_state=0).fit(X, y).release_
    assert release.additive.joint_noise == 0
    effect = effect_named(release.effects(), "a", release.schema.names)
    assert dict(zip(effect.values, effect.few_rows.tolist(), strict=True)) == {"u": False, "v": False, "w": True}
    assert not effect_named(release.effects(), "n", release.schema.names).few_rows.any()


def test_a_rare_class_alone_marks_no_value() -> None:
    """Values with thousands of rows were, since too few of them were of the rarest of seven classes."""
    scores, believed = [[0.4, 0.1, -0.5], [0.4, 0.1, -0.5]], np.array([[0.9, 0.9, 0.1], [0.2, 0.9, 0.1]])
    effect = replace(an_effect(scores, [[0.1] * 3] * 2, [0.5, 0.5], ("a", "b", "rare")), believed=believed)
    assert effect.few_rows.tolist() == [False, True]


def test_a_value_without_rows_has_no_number() -> None:
    """It was shown as 0.00 with no error, as if that were known."""
    effect = an_effect([[0, 0], [-0.5, 0.5]], [[0, 0], [0.1, 0.1]], [0.0, 1.0], ("n", "y"))
    effect = replace(effect, believed=np.array([[0.0, 0.0], [0.9, 0.9]]))
    assert ">unknown</text>" in effect_svg(effect)
    first, second = effect_text(effect).splitlines()[1:]
    assert first.endswith(UNKNOWN)
    assert "0.00" not in first
    assert second.endswith("+1.00 ± 0.20")
