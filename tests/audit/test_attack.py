"""The attack as a whole: no alarm where there is no difference, errors are seen, functions that cannot travel stay here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from slow import slow_but

from hedgerow.audit.attack import Runner, audit, finding_of
from hedgerow.audit.bounds import FALSE_ALARM
from hedgerow.audit.neighbours import MAKERS, SMALL, Pair, Table, pairs_for
from hedgerow.audit.outputs import aligned, columns_of, features_of
from hedgerow.errors import AuditError

LEVEL = FALSE_ALARM / 2_000  # of a bound: a thousand verdicts, of two bounds each, share the false-alarm rate


def test_a_feature_that_only_one_table_happens_to_show_is_no_difference() -> None:
    """It was once: absent text was one thing in the runs of one table and another in those of the other."""
    rare: list[dict[str, Any]] = [{"number": i % 7, "text": "seen"} if i == 3 else {"number": i % 7} for i in range(2_000)]
    never: list[dict[str, Any]] = [{"number": i % 7} for i in range(2_000)]
    finding = finding_of("same", "", columns_of(rare), columns_of(never), 1.0, 0.0, LEVEL)
    assert not finding.violated
    assert finding.bounds["95 %"] < 1
    one, two = aligned(columns_of(rare), columns_of(never))
    assert set(one) == set(two)
    assert set(two["text"]) == {""}


def test_a_number_is_the_same_number_as_text() -> None:
    one, two = aligned(columns_of([{"x": 1}, {"x": 2.0}]), columns_of([{"x": "many"}, {"x": 1}]))
    assert one["x"].tolist() == ["1.0", "2.0"]
    assert two["x"].tolist() == ["many", "1.0"]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("algorithm", slow_but(["PrivateID3Classifier"], ["DPDFClassifier", "HedgerowClassifier", "PrivateID3Classifier"]))
def test_a_table_against_itself(algorithm: str) -> None:
    """False alarm below 1e-9 each."""
    from hedgerow.audit.algorithms import Trainer

    table = pairs_for(names=["purity"])[0].without
    pair = Pair("same", "no difference", table, table)
    assert not audit(Trainer(algorithm, "1"), [pair], epsilon=0.001, runs=400, workers=1, tests=1_000).violated


def fails_when_there_is_a_row(table: Table) -> dict[str, float]:
    if len(table):
        raise ValueError("a row")
    return {"rows": 0.0}


def always_fails(table: Table) -> None:
    raise ValueError("no such column")


def test_an_error_is_an_output() -> None:
    found = audit(fails_when_there_is_a_row, pairs_for(names=["empty"]), epsilon=1, runs=200, workers=1).findings[0]
    assert found.violated
    assert found.event.startswith("error is")


def test_a_function_that_always_fails_is_refused() -> None:
    with pytest.raises(AuditError, match="no such column"):
        audit(always_fails, pairs_for(), epsilon=1, runs=200, workers=1)


def test_what_the_certificate_says_is_seen() -> None:
    from hedgerow.audit.algorithms import Trainer

    table = pairs_for()[0].without
    one, two = (features_of(Trainer("PrivateRDTClassifier", epsilon, {"max_depth": 1})(table)) for epsilon in ("1", "0.99"))
    assert one["certificate: spent"] != two["certificate: spent"]
    assert one["noise"] != two["noise"]
    assert one["certificate: events"] != two["certificate: events"]


def test_the_grid_of_a_float_is_seen() -> None:
    assert features_of({"x": 0.75, "n": 3, "name": "a"}) == {"x": 0.75, "n": 3, "name": "a", "x: digits after the point": 2}
    assert features_of(2.0) == {"output": 2.0}


def test_a_function_of_a_prompt_stays_in_this_process() -> None:
    train = type("Local", (), {"__module__": "__main__", "__call__": lambda self, table: 1})()
    assert Runner(train, features_of, 4).workers == 1
    assert Runner(lambda table: 1, features_of, 4).workers == 1
    assert Runner(always_fails, features_of, 4).workers == 4


def test_every_pair_is_a_pair_of_neighbours() -> None:
    pairs = pairs_for(SMALL)
    assert [pair.name for pair in pairs] == list(MAKERS)
    for pair in pairs:
        assert len(pair.with_row) == len(pair.without) + 1
        for name, values in pair.without.columns.items():
            assert np.array_equal(pair.with_row.columns[name][:-1], values)
        assert np.array_equal(pair.with_row.target[:-1], pair.without.target)
