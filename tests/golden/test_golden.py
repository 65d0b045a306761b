"""Golden bytes: releases, plans, merges, scores, predictions and the HTTP session of the queries are what they were, byte for byte.

A change that is meant to leave results alone must leave `expected/` alone. Where a release, a plan or a request is meant to change,

    python -m tests.golden --write

from the top folder writes the files anew and names those that changed; without --write it does nothing. Look at the difference in git.

The tables come from a hash, the structures of random trees from numpy's generator, and noise from coins that are known: system coins
whose bits are replaced (`inside.known_coins`). So certificates read as they do for everybody; they are true of no file here. Where
hedgerow or numpy has another version than `expected/versions.json`, the fields that name it, and the hash over them, are not compared.

The same files are expected of PostgreSQL (tests/postgres/test_postgres_golden.py) and Spark (tests/spark/test_spark_golden.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import __main__ as writing
from golden import cases
from golden.cases import CASES, ENGINES, EXPECTED, PLANS, TABLES, check, comparable, compare, expected
from golden.session import DATASETS, Request, Service, read_recording, recorded, replayed, service
from slow import slow_but

import hedgerow
from hedgerow import PublicPlan, Release
from hedgerow.queries import BY_NAME

PRIVATE = [name for name in CASES if "epsilon" in CASES[name].make().get_params()]
FROM_AFAR = (
    "hedgerow", "hedgerow-declared-rows", "hedgerow-delta", "hedgerow-persons", "snr", "rdt", "rdt-batches", "dpdf", "dpdf-persons",
    "dpdf-tuned", "diffpid3", "private-id3-persons",
)  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """Every table in every engine of this process."""
    found = {}
    for table, frame in TABLES.items():
        for engine, place in ENGINES.items():
            found[table, engine] = place(frame, tmp_path_factory.mktemp(f"{table}-{engine}"))
    return found


# ---------------------------------------------------------------- releases


@pytest.mark.parametrize("engine", slow_but(["memory", "parquet"], ENGINES))
@pytest.mark.parametrize("name", CASES)
def test_release(name: str, engine: str, places: dict[tuple[str, str], Any]) -> None:
    check(f"releases/{name}.json", CASES[name].bytes(places[CASES[name].table, engine]))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("name", FROM_AFAR)
def test_release_from_a_service(name: str, running: Service) -> None:
    """The estimator here, the rows there: even the random names are the same, since both draw from the coins of this process."""
    schema = replace(CASES[name].make().schema, rows=None)
    (dataset,) = (dataset for dataset, (declared, _) in DATASETS.items() if declared == schema)
    check(f"releases/{name}.json", CASES[name].bytes(running.table(dataset)))


def test_every_estimator_and_every_query_is_there() -> None:
    used = {type(case.make()).__name__ for case in CASES.values()}
    learnt_from_public_rows = {"ConjunctiveRuleClassifier", "DecisionTableClassifier"}
    assert used == {name for name in hedgerow.__all__ if name.endswith("Classifier")} - learnt_from_public_rows
    releases = {name: Release.load(path) for name, path in cases.golden_releases().items()}
    events = [event for release in releases.values() for event in release.certificate.events]
    assert {event.query for event in events} == set(BY_NAME) - {
        "confusion",
        "reliability",
        "score_bins",
        "best",
        "gradient_sums",
    }  # scores; asked before
    mechanisms = {"discrete Laplace", "discrete Gaussian", "permute-and-flip", "exponential mechanism"}
    assert mechanisms < {event.mechanism for event in events}  # and the local sensitivity
    assert {release.certificate.guarantee for release in releases.values()} == {"epsilon-DP", "epsilon-delta-DP", "anonymity", "none"}
    private = {type(CASES[name].make()).__name__ for name in PRIVATE}
    assert {type(CASES[name].make()).__name__ for name in FROM_AFAR} == private
    assert {type(CASES[name].make()).__name__ for name in PRIVATE if CASES[name].make().schema.k > 1} == private  # k rows of a person


@pytest.mark.parametrize("name", cases.golden_releases())
def test_a_golden_release_is_read_and_written_as_it_is(name: str) -> None:
    data = expected(name)
    ending = b"\n" if data.endswith(b"\n") else b""  # of a file
    compare(name, Release.from_json(data).to_json() + ending, data)


# ---------------------------------------------------------------- owners, scores, predictions


@pytest.mark.parametrize("plan", PLANS)
def test_a_shared_plan_its_counts_and_the_merge_of_their_rows(plan: str) -> None:
    for name, data in cases.owners(plan).items():
        check(f"owners/{name}.json", data)
    shared = PublicPlan.load(EXPECTED / "owners" / f"{plan}-plan.json")
    east, west = (Release.load(EXPECTED / "owners" / f"{plan}-{owner}.json") for owner in ("east", "west"))
    assert shared.trees == east.forest.trees == west.forest.trees
    check(f"owners/{plan}-rows.json", hedgerow.merge([west, east]).to_json() + b"\n")  # from files, in another order


def test_the_merge_of_columns() -> None:
    for name, data in cases.united().items():
        check(f"owners/{name}.json", data)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_plan_counted_where_the_rows_are(engine: str, places: dict[tuple[str, str], Any]) -> None:
    check("owners/rdt-north.json", cases.counted_plan(places["flat", engine]))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_scores(engine: str, places: dict[tuple[str, str], Any]) -> None:
    check("scores.json", cases.scores(places["flat", engine], places["persons", engine]))


@pytest.mark.slow
def test_predictions_are_the_same_but_for_last_bits() -> None:
    """Numpy's logarithm differs in its last bits between processors, and so do the scores that are read from counts."""
    got, wanted = json.loads(cases.all_predictions()), json.loads(expected("predictions.json"))
    assert got.keys() == wanted.keys()
    for name, each in wanted.items():
        for kind in ("codes", "rows"):
            numbers = [[[float.fromhex(number) for number in row.split()] for row in found[kind]] for found in (got[name], each)]
            np.testing.assert_allclose(*numbers, rtol=1e-11, err_msg=f"{name}, {kind}")


# ---------------------------------------------------------------- files of old


def test_old_files_are_read_as_before() -> None:
    compare("old.json", cases.all_as_today(), expected("old.json"))


def test_every_version_that_was_ever_written_is_there() -> None:
    found = [json.loads(path.read_text()) for path in cases.old_files().values()]
    assert {(each["format"], each["version"]) for each in found} == {("hedgerow-release", 1), ("hedgerow-release", 2), ("hedgerow-plan", 1)}
    newest = max(each["version"] for each in found if each["format"] == "hedgerow-release")
    assert json.loads(expected("releases/rdt.json"))["version"] == newest  # a new version needs files of the one before


# ---------------------------------------------------------------- the queries over HTTP


@pytest.fixture(scope="module")
def recording() -> list[Request]:
    return read_recording(expected("session.jsonl"))


def same_requests(got: list[Request], wanted: list[Request], fields: tuple[str, ...]) -> None:
    for number, (one, other) in enumerate(zip(got, wanted, strict=False), 1):
        for field in fields:
            texts = (str(getattr(each, field)).encode() for each in (one, other))
            compare(f"session.jsonl, line {number}, {other.path}, {field}", *map(comparable, texts))
    assert len(got) == len(wanted)


def test_the_client_sends_the_same_bytes(recording: list[Request], tmp_path: Path) -> None:
    same_requests(recorded(tmp_path), recording, ("method", "path", "request"))


@pytest.mark.slow
def test_the_service_answers_the_same_bytes(recording: list[Request], tmp_path: Path) -> None:
    same_requests(replayed(recording, tmp_path), recording, ("method", "path", "request", "status", "response"))


def test_every_query_that_may_travel_is_recorded(recording: list[Request]) -> None:
    asked = [re.fullmatch("/v1/sessions/session-[0-9]+/([a-z_]+)", each.path) for each in recording]
    assert {found[1] for found in asked if found} == {*BY_NAME, "end"}
    assert {each.status for each in recording} == {200, 201}
    assert len({each.path.split("/")[3] for each in recording if "/sessions/" in each.path}) == 6


# ---------------------------------------------------------------- the files themselves


def test_no_file_is_missing_or_left_over() -> None:
    files = {path.relative_to(EXPECTED).as_posix() for path in EXPECTED.glob("**/*") if path.is_file()}
    owned = {f"{plan}-{name}" for plan in PLANS for name in ("plan", "east", "west", "rows", "rows-disjoint")}
    owned |= {"rdt-north", "registry", "clinic", "columns"}
    whole = {"versions.json", "scores.json", "predictions.json", "old.json", "session.jsonl"}
    assert files == {f"releases/{name}.json" for name in CASES} | {f"owners/{name}.json" for name in owned} | whole
    assert sum((EXPECTED / name).stat().st_size for name in files) < 900_000


def test_nothing_is_written_without_being_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(writing, "write", lambda: pytest.fail("it was written"))
    for arguments in ([], ["--wr"], ["--write", "more"]):
        assert writing.main(arguments) == 2
        assert "Nothing was written" in capsys.readouterr().err


def test_another_version_changes_its_name_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    data = expected("releases/rdt.json")
    other = data.replace(f"hedgerow {hedgerow.__version__}".encode(), b"hedgerow 99")
    noisier = re.sub(rb'"counts":\[[0-9]+', b'"counts":[1234', other)
    assert len({data, other, noisier}) == 3
    monkeypatch.setattr(cases, "versions", lambda: {"hedgerow": "99"})
    assert comparable(other) == comparable(data) != comparable(noisier)
    monkeypatch.undo()
    assert comparable(data) == data or cases.versions() != json.loads(expected("versions.json"))
