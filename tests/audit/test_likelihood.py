"""The likelihood ratio of random trees: by hand, and as an attack that finds nearly all of ε."""

from __future__ import annotations

import pytest

from hedgerow.audit.algorithms import Trainer
from hedgerow.audit.attack import audit
from hedgerow.audit.likelihood import KnownRatio
from hedgerow.audit.neighbours import pairs_for
from hedgerow.errors import AuditError

PAIR = pairs_for(names=["outlier"])[0]


def test_the_ratio_of_one_release_by_hand() -> None:
    """One tree with one question. The row more is the only one of its class: c = 0 and c′ = 1 in its leaf, all else is the same."""
    release = Trainer("PrivateRDTClassifier", "1", {"n_estimators": 1, "max_depth": 1})(PAIR.without)
    leaf = 1 if release.forest.trees[0].attribute[0] == 0 else 0  # it has the last value of a, and the first of the others
    expected = 1.0 if release.forest.counts[0][leaf, 1] >= 1 else -1.0
    assert KnownRatio(PAIR).ratio(release) == expected


@pytest.mark.slow
@pytest.mark.statistical
def test_three_trees_together_give_away_nearly_all_of_epsilon() -> None:
    """Each tree alone shows a third of ε. The bound to be expected is 2.2, and 1.5 is more than six standard errors below."""
    train = Trainer("PrivateRDTClassifier", "3", {"n_estimators": 3, "max_depth": 1})
    found = audit(train, [PAIR], epsilon=3, runs=2_000, workers=1, features=KnownRatio(PAIR)).findings[0]
    assert "likelihood ratio" in found.event
    assert found.bounds["99.9 %"] > 1.5
    assert not found.violated


def test_other_forests_are_refused() -> None:
    with pytest.raises(AuditError, match="random trees"):
        KnownRatio(PAIR)(Trainer("DPDFClassifier", "1")(PAIR.without))
