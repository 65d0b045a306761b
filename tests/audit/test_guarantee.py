"""Every verb and every private estimator is attacked, and a small attack on each verb finds no more than was paid.

The large attacks are an experiment whose results are stored (experiments/tests/test_audits.py runs it in the size of CI).
"""

from __future__ import annotations

import pytest
from audit.test_attack import LEVEL

from hedgerow.audit.verbs import NOT_PROVEN, VERBS, attack_verb


def test_every_verb_is_attacked() -> None:
    from hedgerow.private.table import PrivateTable

    verbs = {name for name, thing in vars(PrivateTable).items() if callable(thing) and not name.startswith("_")}
    assert verbs == {name.split(",")[0] for name in VERBS} | {NOT_PROVEN.name}


def test_every_private_estimator_is_attacked() -> None:
    import hedgerow
    from hedgerow.audit.algorithms import ALGORITHMS

    private = {name for name in dir(hedgerow) if name.endswith("Classifier")} - {
        "RandomDecisionTreesClassifier", "ID3Classifier", "LocalTreeClassifier", "DecisionTableClassifier", "ConjunctiveRuleClassifier",
    }  # fmt: skip
    assert {estimator for estimator, _ in ALGORITHMS.values()} == private


@pytest.mark.parametrize("verb", list(VERBS), ids=str)
def test_a_small_attack_on_each_verb(verb: str) -> None:
    """In the ordinary tests: the attack runs, and finds at least some of ε where one must show. False alarms: LEVEL."""
    finding = attack_verb(VERBS[verb], "5", 2_000, LEVEL)
    assert not finding.violated
    assert finding.bounds["95 %"] > 0.5  # the weakest of them shows 1.8 of 5


def test_the_choice_that_is_not_proven_is_caught() -> None:
    assert attack_verb(NOT_PROVEN, "1", 20_000, LEVEL).violated
