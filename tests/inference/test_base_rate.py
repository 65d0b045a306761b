"""Where a class is rare, the intercept of a fit is moved towards its released share; nothing else of a forest changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow import Budget, Categorical, HedgerowClassifier, Numeric, Release, Schema, Target
from hedgerow.inference import base_rate
from hedgerow.inference.additive import COUNTED_RULES, RULES, SCALES, AdditiveForest
from hedgerow.inference.coverage import class_shares
from hedgerow.inference.reading_words import chosen_in_words

RNG = np.random.default_rng(5)
ROWS = 8_000
SCHEMA = Schema([*(Numeric(f"a{i}", 0, 1) for i in range(5)), Categorical("ward", ["n", "s", "w"])], Target("ill", ["no", "yes"]))
TABLE: dict[str, Any] = {f"a{i}": RNG.random(ROWS) for i in range(5)} | {"ward": RNG.choice(["n", "s", "w"], ROWS)}
RARE = np.where(RNG.random(ROWS) < 0.12 * TABLE["a0"] ** 2 + 0.02 * (TABLE["ward"] == "s"), "yes", "no")  # about 5 %
FIT: Release = HedgerowClassifier(SCHEMA, 4, delta=1e-6, budget=Budget(4, 1e-5)).fit(TABLE, RARE).release_


def with_(release: Release, **chosen: Any) -> AdditiveForest:
    return AdditiveForest(release.forest, {**release.chosen, **chosen}, release.correction)


def test_the_mean_comes_near_the_share_whatever_the_scale() -> None:
    """Of a table with 6 % of a class the mean probability was 0.2 % where the scale was 2."""
    codes, shares = FIT.codebook.encode(TABLE), class_shares(FIT.forest)[0]
    off = {}
    for rules in (COUNTED_RULES, RULES):
        means = [float(with_(FIT, scale=scale, rules=rules).model.probabilities(codes)[:, 1].mean()) for scale in SCALES]
        off[rules] = np.abs(np.log(np.array(means) / shares[1]))
    assert off[COUNTED_RULES].max() > 0.7  # a factor of 2
    assert (off[RULES] <= 0.6 * off[COUNTED_RULES] + 0.1).all()


def test_the_order_of_rows_and_effects_are_the_same() -> None:
    codes = FIT.codebook.encode(TABLE)
    moved, before = with_(FIT, scale=2.0), with_(FIT, scale=2.0, rules=COUNTED_RULES)
    assert moved.moved[1] != 0
    assert moved.moved[0] == 0
    assert np.allclose(moved.model.margins(codes), before.model.margins(codes) + moved.moved, atol=1e-12)
    again = Release.from_json(FIT.to_json())
    assert (again.additive.moved == FIT.additive.moved).all()
    assert (again.predict_proba(TABLE) == FIT.predict_proba(TABLE)).all()
    told = dict(chosen_in_words(moved, FIT.chosen))["intercept"]
    assert told.startswith("moved by +")
    assert told.endswith("in the log-odds of yes, towards its released share")


def test_a_share_that_noise_hides_moves_little(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = abs(with_(FIT, scale=2.0).moved[1])
    shares, _ = class_shares(FIT.forest)
    monkeypatch.setattr(base_rate, "class_shares", lambda forest: (shares, np.full(2, 0.2)))
    assert abs(with_(FIT, scale=2.0).moved[1]) < sure / 3


@pytest.mark.parametrize("many", ["a frequent class", "three classes", "no correction"])
def test_where_nothing_is_moved(many: str) -> None:
    schema, labels = SCHEMA, RARE
    if many == "a frequent class":
        labels = np.where(RNG.random(ROWS) < 0.3, "yes", "no")
    if many == "three classes":
        schema = Schema(SCHEMA.attributes, Target("ill", ["no", "yes", "perhaps"]))
        labels = np.where(RNG.random(ROWS) < 0.3, "perhaps", RARE)
    release = HedgerowClassifier(schema, 4, delta=1e-6, budget=Budget(4, 1e-5)).fit(TABLE, labels).release_
    if many == "no correction":
        release = HedgerowClassifier(schema, "0.9", budget=Budget(1)).fit(TABLE, labels).release_
        assert not release.correction.trees
    assert not release.additive.moved.any()
