"""Predictions by a stored release: free, for those who may see it, and whatever is sent never an error of the service."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from curator.http.conftest import FOREST, SCHEMA, Running

from hedgerow.curator.http import predictions
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.predictions import ReleaseCache
from hedgerow.release.release import Release

ROWS: list[dict[str, Any]] = [
    {"age": 30, "smoker": "no"}, {"age": 61.5, "smoker": "yes", "class": "a", "more": [1]}, {"age": None, "smoker": None},
]  # fmt: skip


@pytest.fixture
def id(running: Running) -> str:
    job = running.ended(running.ada, running.post(running.ada, "/v1/datasets/patients/forests", FOREST, "k").json())
    assert job["state"] == "done"
    return str(job["id"])


def test_predicted(running: Running, id: str) -> None:
    before = running.curator.ledger.head()
    for who in (running.ada, running.owner):
        answer = running.post(who, f"/v1/releases/{id}/predict", {"rows": ROWS})
        assert answer.status_code == 200, answer.text
        found = answer.json()
        release = Release.from_json(running.get(running.ada, f"/v1/releases/{id}").content)
        table = {name: [row[name] for row in ROWS] for name in SCHEMA.names}
        assert found["classes"] == ["a", "b"]
        assert found["predictions"] == release.predict(table).tolist()
        assert found["probabilities"] == release.predict_proba(table).tolist()
    assert running.curator.ledger.head() == before


def test_only_ones_own(running: Running, id: str) -> None:
    for _ in range(2):  # before it is kept in memory, and after
        mine, unknown = (running.post(running.bob, f"/v1/releases/{each}/predict", {"rows": ROWS}) for each in (id, "0" * 32))
        assert (mine.status_code, mine.text) == (404, unknown.text)
        assert running.post(running.ada, f"/v1/releases/{id}/predict", {"rows": ROWS}).status_code == 200
    score = running.post(running.ada, "/v1/datasets/patients/scores", {**FOREST, "release": id}, "s").json()
    running.ended(running.ada, score)
    assert running.post(running.ada, f"/v1/releases/{score['id']}/predict", {"rows": ROWS}).status_code == 404


STRANGE = [float("nan"), float("inf"), 10**300, -(10**300), 1e308, True, "", "\ud800", "\0", "x" * 10_000, "1e999", "nan", " 30 "]


def test_strange_values_take_the_fallback(running: Running, id: str) -> None:
    import json

    rows = [{"age": value, "smoker": value} for value in STRANGE]
    headers = {**running.ada, "Content-Type": "application/json"}
    answer = running.client.post(f"/v1/releases/{id}/predict", content=json.dumps({"rows": rows}), headers=headers)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["predictions"]) == len(STRANGE)
    assert all(0 <= share <= 1 for shares in answer.json()["probabilities"] for share in shares)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "rows"), ([{}], "age"), ([ROWS[0], {"age": 1}], "rows.1: 'smoker'"), ([{"age": [1], "smoker": "no"}], "rows.0.age"),
        ([{"age": {}, "smoker": "no"}], "number"), (None, "rows"), ([[1, 2]], "rows"), (["x"], "rows"), ({"age": [1]}, "rows"),
        (ROWS * 2, "at most 5"),
    ],
)  # fmt: skip
def test_refused(running: Running, id: str, rows: Any, said: str) -> None:
    object.__setattr__(running.client.app.state.service.limits, "predict_rows", 5)  # type: ignore[attr-defined]
    answer = running.post(running.ada, f"/v1/releases/{id}/predict", {"rows": rows})
    assert (answer.status_code, said in answer.json()["error"]["message"]) == (422, True), answer.text


def test_read_once(running: Running, id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    real = Release.from_json
    monkeypatch.setattr(predictions.Release, "from_json", lambda content: (read.append(1), real(content))[1])
    with ThreadPoolExecutor(8) as pool:
        asked = pool.map(lambda _: running.post(running.ada, f"/v1/releases/{id}/predict", {"rows": ROWS}).status_code, range(24))
        assert set(asked) == {200}
    assert len(read) == 1


def test_a_few_are_kept(running: Running, id: str) -> None:
    content = running.get(running.ada, f"/v1/releases/{id}").content
    asked: list[str] = []

    def use(kept: ReleaseCache, name: str) -> None:
        kept.get(name, lambda: (asked.append(name), content)[1])

    few = ReleaseCache(Limits(kept_releases=2))
    for name in "abacab":
        use(few, name)
    assert asked == ["a", "b", "c", "b"]
    asked.clear()
    small = ReleaseCache(Limits(kept_bytes=len(content) + 1))
    for name in "aaba":
        use(small, name)
    assert asked == ["a", "b", "a"]
