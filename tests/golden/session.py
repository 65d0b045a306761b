"""A curator's service with coins that are known, what was asked of it, and what it answered: byte for byte.

A recording has one line for each request: its method, path and body, and the status and body of the answer. Sessions have random
names; `session-1`, `session-2`, … stand for them, and nothing else is changed. Headers (the token, the key of a request) are not kept.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import uvicorn

import hedgerow
from hedgerow import PublicPlan, Release
from hedgerow.queries import (
    Best,
    BestModel,
    BestScale,
    BoostRound,
    Choose,
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
from hedgerow.trees.oblivious import ObliviousTree

from .cases import FLAT, KINDS, PERSONS, TABLES, WIDE, WIDE_PERSONS, drawn, expected, in_csv
from .inside import (
    GINI,
    MAX,
    NORMAL_GINI,
    AdditiveModel,
    Curator,
    Limits,
    MostProbable,
    Rho,
    application,
    by_threshold,
    by_value,
    information_gain,
    known_coins,
    open_database,
)

DATASETS = {
    "flat": (FLAT, "flat"),
    "persons": (PERSONS, "persons"),
    "wide": (WIDE, "wide"),
    "kinds": (KINDS, "wide"),
    "wide-persons": (WIDE_PERSONS, "wide"),
}
PRICE = Fraction(1, 7)
RHO = Rho(Fraction(1, 1000))


@dataclass(frozen=True)
class Request:
    """One that arrived, and how it was answered."""

    method: str
    path: str
    request: str
    status: int
    response: str

    def line(self) -> str:
        return json.dumps(vars(self), ensure_ascii=False) + "\n"


class Recorder:
    """An ASGI application around another that notes what comes in and what goes out."""

    def __init__(self, app: Any) -> None:
        self.app, self.seen = app, list[Request]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        came, went, status = bytearray(), bytearray(), [0]

        async def receiving() -> Any:
            message = await receive()
            came.extend(message.get("body", b""))
            return message

        async def sending(message: Any) -> None:
            status[0] = message.get("status", status[0])
            went.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):  # noted before the asker can ask again
                self.seen.append(Request(scope["method"], scope["path"], came.decode(), status[0], went.decode()))
            await send(message)

        await self.app(scope, receiving, sending)


@dataclass
class Service:
    """One that listens; `token` is that of an analyst who may use every dataset for research."""

    url: str
    token: str
    recorder: Recorder

    def table(self, dataset: str, bins: int = 5) -> Any:
        return hedgerow.connect(self.url, self.token).table(dataset, bins=bins)


@contextmanager
def service(folder: Path) -> Iterator[Service]:
    """With a dataset for each schema, and more ε than is asked for."""
    (folder / "releases").mkdir()
    with open_database(str(folder)) as database:
        curator = Curator.of(database, folder / "releases")  # its work is done in this process, with the coins of this process
        curator.accounts.first_owner()
        curator.accounts.add("ada", "analyst")
        for name, (schema, table) in DATASETS.items():
            (folder / table).mkdir(exist_ok=True)
            curator.registry.register(name, in_csv(TABLES[table], folder / table), schema)
            curator.ledger.ceiling(name, 1000, "1/10")
            curator.accounts.grant("ada", name, ["research"])
        recorder = Recorder(application(curator, Limits(stop_seconds=5)))
        with _listening(recorder) as url:
            yield Service(url, curator.accounts.issue("ada")[0], recorder)


@contextmanager
def _listening(app: Any) -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


# ---------------------------------------------------------------- what is asked


def looks(codebook: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """Every query that may travel: from a private table and a price."""
    trees = PublicPlan.from_json(expected("owners/rdt-plan.json")).trees
    tree, below = trees[0], [1, 2]  # two nodes under the root
    rdt, dpdf = (Release.from_json(expected(f"releases/{name}.json")) for name in ("rdt", "dpdf"))
    values, edges = by_value(codebook), by_threshold(codebook)
    leaves = tree.leaves.tolist()
    allowed = np.ones((len(leaves), len(values)), dtype=bool)
    allowed[0, 0] = False
    asked = np.ones((len(below), len(codebook.sizes)), dtype=bool)
    asked[0, 1:] = False
    scores = tuple((drawn(f"scores {number}", 2 * each.n_nodes, 17).reshape(-1, 2) - 8) / 16 for number, each in enumerate(trees))
    model = AdditiveModel(np.array([0.125, -0.25]), trees, scores)
    boosted = [_oblivious(codebook.sizes, number) for number in range(4)]
    longer = AdditiveModel(model.base, (*trees, boosted[0]), (*scores, np.arange(8.0).reshape(4, 2) / 4))
    return {
        "rows": lambda table, price: table.ask(Rows(), price),
        "leaf_counts": lambda table, price: table.ask(LeafCounts(trees), price),
        "sizes": lambda table, price: table.ask(Sizes(tree, below), price),
        "class_counts": lambda table, price: table.ask(ClassCounts(tree, below), price),
        "tables": lambda table, price: table.ask(Tables(tree, below, asked), price),
        "gradient_sums": lambda table, price: table.ask(GradientSums(trees, model), price),
        "confusion": lambda table, price: table.ask(Confusion(rdt.predict_codes), price),
        "confusion of a model": lambda table, price: table.ask(Confusion(MostProbable(model)), price),
        "reliability": lambda table, price: table.ask(Reliability(dpdf.predict_codes_proba, 5), price),
        "score_bins": lambda table, price: table.ask(ScoreBins(dpdf.predict_codes_proba, 4, (0, 1)), price),
        "choose": lambda table, price: table.ask(Choose(tree, leaves, values, allowed, GINI), price / 10),
        "choose by gini index": lambda table, price: table.ask(Choose(tree, leaves, values, allowed, NORMAL_GINI), price / 10),
        "choose by gain": lambda table, price: table.ask(Choose(tree, leaves, values, allowed, information_gain(5000)), price / 10),
        "choose by max": lambda table, price: table.ask(
            Choose(tree, [0], edges, np.ones((1, len(edges)), dtype=bool), MAX, "exponential mechanism"), price
        ),
        "best": lambda table, price: table.ask(Best([rdt.predict_codes, dpdf.predict_codes, MostProbable(model)]), price),
        "best_model": lambda table, price: table.ask(
            BestModel([rdt.predict_codes_proba, dpdf.predict_codes_proba, model.probabilities]), price
        ),
        "best_scale": lambda table, price: table.ask(BestScale(model, (1.0, 0.5, 0.125)), price),
        "leaf_sizes": lambda table, price: table.ask(LeafSizes(trees), price),
        "choose_tree": lambda table, price: table.ask(ChooseTree(boosted, longer, False), price),
        "boost_round": lambda table, price: table.ask(BoostRound(boosted, longer, isinstance(price, Rho), 2), price),
    }


def _oblivious(sizes: tuple[int, ...], number: int) -> ObliviousTree:
    """Two questions, about this attribute and the next, each by its codes in two halves."""
    asked = (number % len(sizes), (number + 1) % len(sizes))
    return ObliviousTree(sizes, asked, tuple(tuple(int(2 * code >= sizes[j]) for code in range(sizes[j] + 1)) for j in asked))


# in ρ, too
COUNTING = (
    "rows",
    "leaf_counts",
    "sizes",
    "class_counts",
    "tables",
    "gradient_sums",
    "confusion",
    "reliability",
    "score_bins",
    "leaf_sizes",
    "boost_round",
)


def ask_all(service: Service) -> None:
    """By the client: all queries in one session, those that count in a session with a δ, one alone; rows, and persons."""
    for dataset in ("flat", "persons"):
        table = service.table(dataset)
        verbs = looks(table.codebook)
        with table.session(20, what="all verbs") as paid:
            for verb in verbs.values():
                verb(paid, PRICE)
        with table.session(1, "1e-6") as paid:
            for name in COUNTING:
                verbs[name](paid, RHO)
        table.ask(Rows(), Fraction(1, 10))


# ---------------------------------------------------------------- recorded, and replayed


def _begins(path: str, status: int) -> bool:
    return path.endswith("/sessions") and status == 201


def named(seen: list[Request]) -> list[Request]:
    """The same with `session-1` and so on in the place of random names."""
    names: dict[str, str] = {}

    def plain(text: str) -> str:
        for id, name in names.items():
            text = text.replace(id, name)
        return text

    found = []
    for each in seen:
        if _begins(each.path, each.status):
            names[json.loads(each.response)["id"]] = f"session-{len(names) + 1}"
        found.append(Request(each.method, plain(each.path), plain(each.request), each.status, plain(each.response)))
    return found


def recorded(folder: Path) -> list[Request]:
    """What the client of today sends, and what the service of today answers."""
    with known_coins(17), service(folder) as running:
        ask_all(running)
    return named(running.recorder.seen)


def read_recording(data: bytes) -> list[Request]:
    return [Request(**json.loads(line)) for line in data.decode().splitlines()]


def replayed(recording: list[Request], folder: Path) -> list[Request]:
    """The requests of a recording, sent as they are by no client of this package, and what the service of today answers."""
    ids: dict[str, str] = {}
    with known_coins(17), service(folder) as running:
        connection = HTTPConnection(urlsplit(running.url).netloc, timeout=60)
        for number, each in enumerate(recording):
            path = each.path
            for name, id in ids.items():
                path = path.replace(f"/{name}/", f"/{id}/")
            headers = {"Authorization": f"Bearer {running.token}", "Idempotency-Key": f"key {number}", "Content-Type": "application/json"}
            connection.request(each.method, path, each.request.encode() or None, headers)
            answer = connection.getresponse()
            content = answer.read()
            if _begins(path, answer.status):
                ids[f"session-{len(ids) + 1}"] = json.loads(content)["id"]
        connection.close()
    return named(running.recorder.seen)
