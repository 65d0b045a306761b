"""Every route of the service, and who may use it. One that is not listed here fails the tests of access: decide, then add it.

    open     everybody, without a token
    owner    owners alone
    person   whoever has a token, about what is theirs
    dataset  whoever the dataset {name} is granted to; for all others it is not there
    own      whoever has asked for {id}, and owners; for all others it is not there
    mine     whoever has asked for {id}, and nobody else

Pages are listed by the application, and their access is tested in test_pages.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hedgerow.curator.application import PAGES

FOREST: dict[str, Any] = {"purpose": "research", "epsilon": "0.5"}


@dataclass(frozen=True)
class Route:
    """kind: who may use it. body: one that is taken, with {release} and {token} for ids. status: of an answer that is given."""

    method: str
    path: str
    kind: str
    body: dict[str, Any] | None = None
    status: int = 200

    def filled(self, name: str, id: str) -> str:
        return self.path.replace("{name}", name).replace("{id}", id)


ROUTES = [
    Route("GET", "/openapi.json", "open"),
    Route("GET", "/health", "open"),
    Route("GET", "/ready", "open"),
    Route("GET", "/v1/owner/datasets", "owner"),
    Route("POST", "/v1/owner/datasets", "owner", {"name": "more", "path": "{file}", "schema": "{schema}"}, 201),
    Route("POST", "/v1/owner/datasets/{name}/ceilings", "owner", {"epsilon": "3"}, 201),
    Route("GET", "/v1/owner/people", "owner"),
    Route("POST", "/v1/owner/people", "owner", {"name": "eve"}, 201),
    Route("GET", "/v1/owner/tokens", "owner"),
    Route("POST", "/v1/owner/tokens", "owner", {"person": "ada", "days": 1}, 201),
    Route("DELETE", "/v1/owner/tokens/{id}", "owner"),
    Route("POST", "/v1/owner/grants", "owner", {"analyst": "bob", "dataset": "more", "purposes": ["care"]}),
    Route("GET", "/v1/owner/ledger", "owner"),
    Route("GET", "/v1/owner/ledger/export", "owner"),
    Route("GET", "/v1/owner/ledger/unsettled", "owner"),
    Route("GET", "/v1/owner/ledger/lost", "owner"),
    Route("GET", "/v1/owner/ledger/verification", "owner"),
    Route("GET", "/v1/datasets", "person"),
    Route("GET", "/v1/datasets/{name}", "dataset"),
    Route("GET", "/v1/datasets/{name}/jobs", "dataset"),
    Route("POST", "/v1/datasets/{name}/quote", "dataset", FOREST),
    Route("POST", "/v1/datasets/{name}/dummy", "dataset", FOREST),
    Route("POST", "/v1/datasets/{name}/forests", "dataset", FOREST, 202),
    Route("POST", "/v1/datasets/{name}/scores", "dataset", {**FOREST, "release": "{release}"}, 202),
    Route("POST", "/v1/datasets/{name}/counts", "dataset", {"purpose": "research", "plan": "{plan}"}, 202),
    Route("POST", "/v1/datasets/{name}/sessions", "dataset", FOREST, 201),
    Route("POST", "/v1/sessions/{id}/rows", "mine", {"number": 1, "price": "0.1"}),
    Route("POST", "/v1/sessions/{id}/end", "mine"),
    Route("GET", "/v1/jobs/{id}", "own"),
    Route("GET", "/v1/releases/{id}", "own"),
    Route("POST", "/v1/releases/{id}/predict", "own", {"rows": [{"age": 30, "smoker": "no"}]}),
    Route("GET", "/v1/scores/{id}", "own"),
    Route("POST", "/v1/owner/datasets/{name}/close", "owner", {"what": "the end"}),
]
KNOWN = {(route.method, route.path.replace("/{id}/rows", "/{id}/{verb}")) for route in ROUTES}
GUARDED = [route for route in ROUTES if route.kind != "open"]


def routes_of(app: Any) -> set[tuple[str, str]]:
    """All that the application answers, in its document or not."""
    pages = {pair for router in PAGES for pair in _walked(router.routes)}
    documented = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    return (documented | set(_walked(app.routes))) - pages


def _walked(routes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for route in routes:
        if getattr(route, "methods", None):
            yield from ((method, route.path) for method in route.methods if method != "HEAD")
        else:
            inside = getattr(route, "original_router", route)
            yield from _walked(inside.routes)
