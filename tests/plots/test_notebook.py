"""What a notebook shows: whatever a user gets back draws itself, well formed and with nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from hedgerow import Budget, HedgerowClassifier, SNRForestClassifier, private_calibration, private_score
from hedgerow.audit import audit, pairs_for
from hedgerow.audit.neighbours import SMALL
from hedgerow.datasets import patients


class Shown:
    def __init__(self) -> None:
        self.rows = patients(1500, seed=1)
        self.budget = Budget(epsilon=4, delta=1e-6)
        self.model = HedgerowClassifier(self.rows.schema, epsilon=2, delta=1e-6, budget=self.budget).fit(self.rows.X, self.rows.y)
        self.release = self.model.release_
        self.score = private_score(self.release, self.rows.X, self.rows.y, epsilon=1, budget=self.budget, metrics=["accuracy", "auc"])
        self.calibration = private_calibration(self.release, self.rows.X, self.rows.y, epsilon=1, budget=self.budget)


@pytest.fixture(scope="module")
def shown() -> Shown:
    return Shown()


THINGS: dict[str, tuple[Callable[[Shown], Any], str, bool]] = {  # how to get it, words that it shows, whether it has a picture
    "release": (lambda s: s.release, "guarantee", True),
    "certificate": (lambda s: s.release.certificate, "Every charged look", False),
    "score": (lambda s: s.score, "accuracy", True),
    "calibration": (lambda s: s.calibration, "probabilit", True),
    "plan": (lambda s: s.model.plan(rows=1500), "noise on a count", False),
    "public plan": (lambda s: SNRForestClassifier(s.rows.schema, epsilon=1).public_plan(rows=1500), "no data", False),
    "budget": (lambda s: s.budget, "4 of ε = 4 spent", False),
    "schema": (lambda s: s.rows.schema, "predicted", False),
    "effects": (lambda s: s.release.effects(), "more attributes", True),
    "effect": (lambda s: s.release.effects()[0], "standard errors", True),
    "explanation": (lambda s: s.release.explain(s.rows.X[:1])[0], "score of", True),
    "audit": (lambda s: audit(lambda table: len(table), pairs_for(SMALL, ["outlier"]), epsilon=1, runs=100, workers=1), "is claimed", True),
}


@pytest.mark.parametrize("name", THINGS)
def test_it_draws_itself(name: str, shown: Shown) -> None:
    get, words, picture = THINGS[name]
    html = get(shown)._repr_html_()
    root = ElementTree.fromstring(f"<div>{html}</div>")
    assert words in "".join(root.itertext())
    assert ("<svg" in html) is picture
    assert "http" not in html.replace("http://www.w3.org/", "")


def test_explain_adds_up_to_the_prediction(shown: Shown) -> None:
    rows = shown.rows.X[:5]
    found = shown.release.explain(rows)
    margins = shown.release.scores(rows)
    assert [one.row for one in found] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose([one.total for one in found], (margins - margins.mean(axis=1, keepdims=True)).max(axis=1), atol=1e-9)
    for one in found:
        assert one.start + sum(said.score for said in one.said) == pytest.approx(one.total)
