"""Every query and every private estimator is attacked, and a small attack on each query finds no more than was paid.

The large attacks are an experiment whose results are stored (experiments/tests/test_audits.py runs it in the size of CI).
"""

from __future__ import annotations

import pytest
from audit.test_attack import LEVEL
from slow import slow_but

from hedgerow.audit.queries import NOT_PROVEN, attack_query, attacks
from hedgerow.queries import QUERIES


def test_every_query_is_attacked() -> None:
    assert {query.name for query in QUERIES} == {name.split(",")[0] for name in attacks()}


def test_every_private_estimator_is_attacked() -> None:
    import hedgerow
    from hedgerow.audit.algorithms import ALGORITHMS

    private = {name for name in dir(hedgerow) if name.endswith("Classifier")} - {
        "RandomDecisionTreesClassifier", "ID3Classifier", "LocalTreeClassifier", "DecisionTableClassifier", "ConjunctiveRuleClassifier",
    }  # fmt: skip
    assert {estimator for estimator, _ in ALGORITHMS.values()} == private


@pytest.mark.parametrize("query", slow_but(4, attacks()), ids=str)
def test_a_small_attack_on_each_query(query: str) -> None:
    """In the ordinary tests: the attack runs, and finds at least some of ε where one must show. False alarms: LEVEL."""
    finding = attack_query(attacks()[query], "5", 2_000, LEVEL)
    assert not finding.violated
    assert finding.bounds["95 %"] > 0.5  # the weakest of them shows 1.8 of 5


@pytest.mark.slow
def test_the_choice_that_is_not_proven_is_caught() -> None:
    assert attack_query(NOT_PROVEN, "1", 20_000, LEVEL).violated
