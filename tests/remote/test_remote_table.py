"""Every query asked of a real server: the answers of a local private table bit for bit, paid in the owner's ledger."""

from __future__ import annotations

import socket
import threading
import time
from fractions import Fraction
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from remote.remote_service import *  # noqa: F403
from remote.remote_service import SCHEMA, Served
from strategies import oblivious_trees

from hedgerow import HedgerowClassifier
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.prices import Rho
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.session_worker import SessionWorker
from hedgerow.engines.opening import open_place
from hedgerow.engines.streamed import StreamedRows
from hedgerow.errors import BudgetError, CuratorError, HedgerowWarning, PlanError
from hedgerow.growers import rdt
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.private_table import PrivateTable
from hedgerow.queries import (
    BY_NAME,
    Best,
    BestModel,
    BestScale,
    BoostRound,
    Choose,
    ChooseLocally,
    ChooseTree,
    ClassCounts,
    Confusion,
    GradientSums,
    LeafCounts,
    LeafSizes,
    Reliability,
    Rows,
    ScoreBins,
    Sizes,
    Tables,
)
from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI, information_gain
from hedgerow.release.release import Release
from hedgerow.remote.remote_table import RemoteTable
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import AdditiveModel, MostProbable
from hedgerow.trees.splits import by_threshold, by_value

CODEBOOK = Codebook(SCHEMA)
TREES = [rdt.build_tree_structure(CODEBOOK, 2, "bins", np.random.default_rng(i)) for i in range(3)]
TREE, NODES = TREES[0], TREES[0].levels[1]
VALUES, EDGES = by_value(CODEBOOK), by_threshold(CODEBOOK)
ALLOWED = np.ones((len(NODES), len(VALUES)), dtype=bool)
ALLOWED[0, 0] = False
ASKED = np.ones((len(NODES), 3), dtype=bool)
ASKED[0] = [True, False, True]
SCORES = np.random.default_rng(9).normal(size=(2, TREES[0].n_nodes, 2)) / 3
MODEL = AdditiveModel(np.array([0.1, -0.0]), (TREES[0], TREES[0]), tuple(SCORES))
BOOSTED = oblivious_trees(CODEBOOK, 3, 4)
BOOSTED_MODEL = AdditiveModel(MODEL.base, (*MODEL.trees, BOOSTED[0]), (*MODEL.scores, np.random.default_rng(1).normal(size=(8, 2))))
EVERY = np.ones((1, len(EDGES)), dtype=bool)
PRICE = Fraction(1, 7)


@pytest.fixture(scope="module")
def release() -> Release:
    generator = np.random.default_rng(0)
    columns = {"age": generator.integers(0, 120, 300), "smoker": ["no", "yes"] * 150, "ward": ["a", "b", "c"] * 100}
    model = HedgerowClassifier(SCHEMA, 5, bins=5).fit(columns, generator.choice(["ill", "well"], 300))
    return model.release_


QUERY_CASES: dict[str, Any] = {
    "rows": lambda table, _: table.ask(Rows(), PRICE),
    "leaf_counts": lambda table, _: table.ask(LeafCounts(TREES), PRICE),
    "confusion": lambda table, release: table.ask(Confusion(release.predict_codes), PRICE),
    "confusion of a model": lambda table, _: table.ask(Confusion(MostProbable(MODEL)), PRICE),
    "reliability": lambda table, release: table.ask(Reliability(release.predict_codes_proba, 5), PRICE),
    "score_bins": lambda table, release: table.ask(ScoreBins(release.predict_codes_proba, 6, (1,)), PRICE),
    "gradient_sums": lambda table, _: table.ask(GradientSums(TREES, MODEL), PRICE),
    "leaf_sizes": lambda table, _: table.ask(LeafSizes(TREES), PRICE),
    "choose_tree": lambda table, _: table.ask(ChooseTree(BOOSTED, BOOSTED_MODEL, False), PRICE),
    "choose_tree exponential": lambda table, _: table.ask(ChooseTree(BOOSTED, MODEL, True), PRICE),
    "boost_round": lambda table, _: table.ask(BoostRound(BOOSTED, BOOSTED_MODEL, False, 2), PRICE),
    "boost_round of one": lambda table, _: table.ask(BoostRound(BOOSTED[:1], MODEL, False), PRICE),
    "sizes": lambda table, _: table.ask(Sizes(TREE, NODES), PRICE),
    "class_counts": lambda table, _: table.ask(ClassCounts(TREE, NODES), PRICE),
    "tables": lambda table, _: table.ask(Tables(TREE, NODES, ASKED), PRICE),
    "choose": lambda table, _: table.ask(Choose(TREE, NODES, VALUES, ALLOWED, GINI), PRICE),
    "choose max": lambda table, _: table.ask(Choose(TREE, [0], EDGES, EVERY, MAX, "exponential mechanism"), PRICE),
    "choose gini index": lambda table, _: table.ask(Choose(TREE, NODES, VALUES, ALLOWED, NORMAL_GINI), PRICE),
    "choose gain": lambda table, _: table.ask(Choose(TREE, NODES, VALUES, ALLOWED, information_gain(5000)), PRICE),
    "best": lambda table, release: table.ask(Best([release.predict_codes, MostProbable(MODEL)]), PRICE),
    "best_model": lambda table, release: table.ask(BestModel([release.predict_codes_proba, MODEL.probabilities]), PRICE),
    "best_scale": lambda table, _: table.ask(BestScale(MODEL, (1.0, 0.5, 0.1)), PRICE),
}


def local(served: Served, seed: int, epsilon: Any = 100, delta: Any = 0) -> PrivateTable:
    reservation = Budget(epsilon, delta).reserve(epsilon, "test", delta)
    return PrivateTable(open_place(str(served.file), CODEBOOK), reservation, SeededCoins(seed))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and np.array_equal(one, other) and getattr(one, "dtype", None) == getattr(other, "dtype", None)


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(SessionWorker, "coins", SeededCoins(5))
    return 5


@pytest.mark.slow
def test_every_query_is_the_local_one_bit_for_bit(served: Served, seeded: int, release: Release) -> None:
    table = served.table
    here = local(served, seeded)
    with table.session(20, what="all verbs") as paid:
        for name, verb in QUERY_CASES.items():
            assert same(verb(paid, release), verb(here, release)), name
        assert paid._meter.events == here._meter.events
        assert paid.sampler == here.sampler
    cost = Fraction(len(QUERY_CASES), 7)
    assert served.spent == Fraction(-(-cost * 10**6 // 1), 10**6)
    (reserved,) = served.curator.ledger.reservations("patients")
    assert (reserved.state, reserved.what, reserved.purpose) == ("settled", "session: all verbs", "research")
    assert {name.split()[0] for name in QUERY_CASES} == set(BY_NAME)


@pytest.mark.slow
def test_gaussian_noise_in_a_session_with_a_delta(served: Served, seeded: int) -> None:
    here = local(served, seeded, 1, "1e-6")
    price = Rho(Fraction(1, 1000))
    with served.table.session(1, "1e-6") as paid:
        for table in (paid, here):
            table.ask(Rows(), Fraction(1, 100))
        assert same(paid.ask(LeafCounts(TREES), price), here.ask(LeafCounts(TREES), price))
        assert paid._meter.rho_charged == here._meter.rho_charged
        with pytest.raises(BudgetError, match="more than what is left"):
            paid.ask(Rows(), Rho(Fraction(1)))
    assert served.spent == 1
    assert served.curator.ledger.balance("patients").spent_delta == Fraction(1, 10**6)


def test_called_directly_a_query_costs_its_price(served: Served, release: Release) -> None:
    table = served.table
    assert 1000 < table.ask(Rows(), Fraction(1, 10)) < 3000
    assert served.spent == Fraction(1, 10)
    assert served.transport.asked == ["sessions", "rows", "end"]
    for name, verb in QUERY_CASES.items():
        before = served.spent
        verb(table, release)
        assert served.spent - before == Fraction(1, 7), name
    table.ask(Sizes(TREE, NODES), Fraction(1, 7001))
    assert served.spent == Fraction(1, 10) + Fraction(len(QUERY_CASES), 7) + Fraction(143, 10**6)
    assert served.curator.ledger.unsettled() == []


def test_what_cannot_travel_is_refused_before_anything_is_sent(served: Served, release: Release) -> None:
    table = served.table
    other = HedgerowClassifier(SCHEMA, 5, bins=4).fit({"age": [1], "smoker": ["no"], "ward": ["a"]}, ["ill"]).release_
    refused: list[Any] = [
        lambda: table.ask(Confusion(lambda codes: codes[:, 0]), PRICE),
        lambda: table.ask(Confusion(release.predict_codes_proba), PRICE),
        lambda: table.ask(Confusion(other.predict_codes), PRICE),
        lambda: table.ask(Reliability(release.predict_codes, 5), PRICE),
        lambda: table.ask(Reliability(lambda codes: codes, 5), PRICE),
        lambda: table.ask(Best([release.predict]), PRICE),
        lambda: table.ask(ChooseLocally(TREE, NODES, VALUES, ALLOWED, np.zeros(len(NODES))), PRICE),
        lambda: table.ask(Rows(), Rho(Fraction(1, 10))),
        lambda: table.ask(Rows(), 0.1),
        lambda: table.ask(Rows(), Fraction(1, 2**300)),
        lambda: table.ask(LeafCounts([]), PRICE),
        lambda: table.ask(Sizes(TREE, [0, 1]), PRICE),
        lambda: table.session(1, 0.9).__enter__(),
        lambda: table.session(-1).__enter__(),
    ]
    for call in refused:
        with pytest.raises(PlanError):
            call()
    with pytest.raises(AttributeError, match=r"by `with table\.session\(…\) as paid:`, and paid\.ask is inside\. Nothing was charged"):
        table.session(1).ask(Rows(), PRICE)
    assert served.transport.asked == []


@pytest.mark.slow
def test_overspending_is_refused_here_and_there_without_a_look(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with served.table.session("0.5") as paid:
        paid.ask(Rows(), Fraction(1, 2))
        asked = len(served.transport.asked)
        with pytest.raises(BudgetError, match="short by"):
            paid.ask(Rows(), Fraction(1, 10))
        assert len(served.transport.asked) == asked
    assert served.spent == Fraction(1, 2)
    with pytest.raises(BudgetError, match="remaining"), served.table.session(60):
        pass
    with served.table.session(1) as paid:  # an analyst with a program of her own does not ask her own reservation
        paid.ask(Rows(), Fraction(9, 10))
        paid._meter._charged = Fraction(0)
        with pytest.raises(BudgetError, match="short by"):
            paid.ask(Rows(), Fraction(1, 5))
    assert served.spent == Fraction(1, 2) + Fraction(9, 10)


@pytest.mark.slow
def test_a_lost_connection_is_the_same_look_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer to each request is lost on its way; the second try gets the same bytes and nothing is paid twice."""
    real, seen = served.transport._pool.request, dict[str, list[bytes]]()

    def lossy(method: str, url: str, **how: Any) -> Any:
        answer = real(method, url, **how)
        known = seen.setdefault(url + str(how["body"]), [])
        if not known:
            known.append(answer.read(decode_content=True))
            raise OSError("lost")
        return answer

    monkeypatch.setattr(served.transport._pool, "request", lossy)
    with served.table.session(1) as paid:
        count = paid.ask(Rows(), Fraction(1, 4))
        paid.ask(Rows(), Fraction(1, 4))
    (first,) = [found[0] for url, found in seen.items() if "/rows" in url and b'"number":1' in found[0]]
    assert str(count).encode() in first
    assert served.spent == Fraction(1, 2)


def test_a_session_that_never_looks_costs_nothing(served: Served) -> None:
    with served.table.session(1):
        pass
    (reserved,) = served.curator.ledger.reservations("patients")
    assert (reserved.state, served.spent) == ("released", 0)


@pytest.mark.slow
def test_a_service_that_charges_otherwise_is_noticed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = Codebook(type(SCHEMA)(SCHEMA.attributes, SCHEMA.target, person="id", rows_per_person=2))
    table = RemoteTable(served.transport, "patients", "research", twice)
    with pytest.raises(CuratorError, match="charged otherwise"):
        table.ask(Rows(), PRICE)
    monkeypatch.setattr("hedgerow.curator.http.reservations.rounded_up", lambda amount: amount + Fraction(1, 100))
    with pytest.warns(HedgerowWarning, match="has charged ε = 0.11; expected ε = 0.1,"), served.table.session(1) as paid:
        paid.ask(Rows(), Fraction(1, 10))


@pytest.mark.slow
def test_the_purpose(served: Served) -> None:
    given: Any = (served.transport, "patients", SCHEMA)
    with pytest.raises(PlanError, match="'a', 'b'; expected one of them"):
        RemoteTable.of(*given, ("a", "b"))
    with pytest.raises(PlanError, match="got 'c'"):
        RemoteTable.of(*given, ("a", "b"), "c")
    assert "for 'b'" in repr(RemoteTable.of(*given, ("a", "b"), "b"))
    with pytest.raises(CuratorError, match="not granted to you for this purpose"):
        RemoteTable.of(*given, ("a", "b"), "b").ask(Rows(), PRICE)


@pytest.mark.slow
def test_a_client_that_goes_away_has_paid_and_its_answer_is_kept(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on, real = threading.Event(), threading.Event(), StreamedRows._pass

    def slow(self: StreamedRows, question: Any) -> Any:
        began.set()
        assert go_on.wait(180)
        return real(self, question)

    monkeypatch.setattr(StreamedRows, "_pass", slow)
    body = {"purpose": "research", "epsilon": "1"}
    id = served.transport.json("POST", "/v1/datasets/patients/sessions", body, key="k")["id"]
    content = b'{"number": 1, "price": "1/4"}'
    connection = HTTPConnection(urlsplit(served.url).netloc)
    connection.request("POST", f"/v1/sessions/{id}/rows", content, {"Authorization": f"Bearer {served.token}"})
    assert began.wait(180)
    connection.close()
    go_on.set()
    path = f"/v1/sessions/{id}/rows"
    first, second = (served.transport.bytes("POST", path, content, repeatable=True) for _ in range(2))
    assert first == second
    assert served.transport.json("POST", f"/v1/sessions/{id}/end")["spent"]["epsilon"] == "0.25"


class TestBusy:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(stop_seconds=5, requests_each=1)

    @pytest.mark.slow
    def test_a_look_waits_for_other_requests_of_the_same_person(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        place, tries = urlsplit(served.url), []
        with served.table.session(1) as paid:
            paid.ask(Rows(), PRICE)
            other = socket.create_connection((str(place.hostname), int(place.port or 0)), 30)
            head = f"POST /v1/datasets/patients/quote HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.token}\r\nContent-Length: 5\r\n"
            other.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
            assert other.recv(1000).startswith(b"HTTP/1.1 100")  # it has the only place

            def wait(_: float) -> None:
                tries.append(other.close())
                threading.Event().wait(0.5)

            monkeypatch.setattr("hedgerow.remote.session.time", SimpleNamespace(sleep=wait, monotonic=time.monotonic))
            paid.ask(Rows(), PRICE)
            monkeypatch.undo()
        assert tries
        assert served.spent == Fraction(-(-2 * PRICE * 10**6 // 1), 10**6)
