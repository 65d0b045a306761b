"""Attributes that repeat each other are weighed, and that is told; the noise of the weights is in the errors."""

from __future__ import annotations

import warnings

import numpy as np

from hedgerow import Categorical, HedgerowClassifier, Release, Schema, Target
from hedgerow.inference.effects import Effect
from hedgerow.inference.tables import cap_errors, information, information_cap, information_error
from hedgerow.plots.effect_text import legend_of_choices

REPEATED, ROWS = 4, 4000
SCHEMA = Schema(
    [Categorical(f"a{i}", ["no", "yes"]) for i in range(REPEATED)] + [Categorical("weak", ["no", "yes"])], Target("ill", [0, 1])
)


def table() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Four columns that say the same of the class, with little error; a fifth that says a little."""
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 2, ROWS)
    wrong = [rng.random(ROWS) < share for share in (0.05, 0.06, 0.08, 0.1, 0.3)]
    return {name: np.where(ill ^ flip, "yes", "no") for name, flip in zip(SCHEMA.names, wrong, strict=True)}, ill


def counted(epsilon: float = 1.0) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release: Release = HedgerowClassifier(SCHEMA, epsilon).partial_fit(*table()).release_
    return release


def test_an_attribute_that_is_not_read_at_full_strength_says_so() -> None:
    """It was "at full strength", 0.00 ± 0.01, as if it had nothing to do with the class."""
    release = counted()
    found = {effect.attribute: effect for effect in release.effects()}
    weak = found["weak"]
    assert weak.weight < 0.2
    assert weak.above_noise
    assert found["a0"].weight > 0.4
    assert f"(its counts weigh {weak.weight:.0%}".replace("%", " %") in str(weak)
    assert "down to" in dict(release.choices())["weights"]
    assert "(weak)" in dict(release.choices())["weights"]
    legend = legend_of_choices(release.additive)
    assert legend is not None
    assert "A small effect does not mean that an attribute has nothing to do with the class" in legend
    alone = HedgerowClassifier(Schema([Categorical("weak", ["no", "yes"])], SCHEMA.target), 1).partial_fit(*table()).release_
    assert alone.effects()[0].weight == 1
    assert "its counts weigh" not in str(alone.effects()[0])
    assert "weights" not in dict(alone.choices())


def test_a_forest_whose_top_tree_asks_every_attribute_has_effects() -> None:
    """No attribute is left to be weighed: of one or two, effects and the report ended in a traceback, after the forest was paid."""
    rows, ill = table()
    for names in (SCHEMA.names[:1], SCHEMA.names[:2]):
        schema = Schema([Categorical(name, ["no", "yes"]) for name in names], SCHEMA.target)
        for _ in range(4):
            release = HedgerowClassifier(schema, 1).fit({name: rows[name] for name in names}, ill).release_
            assert {effect.attribute for effect in release.effects()} == set(names)
            assert abs(sum(release.feature_importances().values()) - 1) < 1e-6


def test_the_noise_of_a_weight_is_in_the_errors() -> None:
    """Of 40 forests of the same rows; without it errors were a fifth to a half of the spread. Medians of a few numbers: loosely."""
    forests = [{effect.attribute: effect for effect in counted().effects()} for _ in range(40)]
    ratios, without = [], []
    for name in SCHEMA.names:
        of: list[Effect] = [forest[name] for forest in forests]
        spread = np.std([effect.scores[:, 1] for effect in of], axis=0, ddof=1)
        ratios += list(np.median([effect.errors[:, 1] for effect in of], axis=0) / spread)
        own = [np.sqrt(effect.errors[:, 1] ** 2 - effect.of_weight[:, 1] ** 2) for effect in of if effect.of_weight is not None]
        without += list(np.median(own, axis=0) / spread)
    assert 0.6 < np.median(ratios) < 2
    assert np.median(without) < 0.7 * np.median(ratios)


def test_errors_of_weights_are_those_of_repeated_draws() -> None:
    told, errors, entropy = np.array([0.4, 0.3, 0.2, 0.05]), np.array([0.01, 0.01, 0.01, 0.005]), 0.6
    rng = np.random.default_rng(1)
    drawn = np.array([information_cap(told + rng.normal(size=4) * errors, entropy) for _ in range(4000)])
    weights = information_cap(told, entropy)
    np.testing.assert_allclose(cap_errors(told, errors, entropy) * weights, drawn.std(axis=0), rtol=0.3, atol=0.004)
    assert not cap_errors(told / 10, errors / 10, entropy).any()  # nothing is capped


def test_the_error_of_information_is_that_of_repeated_draws() -> None:
    z, noise = np.array([[30.0, 70.0], [60.0, 40.0], [10.0, 90.0]]), np.array([[0.03, 0.02], [0.02, 0.03], [0.05, 0.01]])
    pi, rng = np.array([0.4, 0.6]), np.random.default_rng(2)

    def told(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(3, 100.0), counts / counts.sum(axis=1, keepdims=True)

    drawn = [information(*told(z * np.exp(rng.normal(size=z.shape) * noise)), pi) for _ in range(4000)]
    assert abs(information_error(*told(z), pi, noise) / np.std(drawn) - 1) < 0.15
