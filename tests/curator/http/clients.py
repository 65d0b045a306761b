"""An analyst and an owner who go on asking while the service is killed, and write down whatever they were told."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import httpx
from curator.http.conftest import bearer
from curator.http.serving import Served

SMALL: dict[str, Any] = {"purpose": "research", "epsilon": "0.4", "algorithm": "rdt", "settings": {"n_estimators": 5, "max_depth": 2}}
LARGE: dict[str, Any] = {**SMALL, "settings": {"n_estimators": 1000, "max_depth": 5}}
RAISE = Fraction(3, 5)
ENDED = ("done", "failed")
STATUSES = {200, 201, 202, 402, 404, 429, 503}


@dataclass
class Request:
    path: str
    body: dict[str, Any]
    ids: set[str] = field(default_factory=set)
    content: bytes | None = None
    lost: bool = False


@dataclass
class Actor:
    """Somebody who asks until the service is gone."""

    token: str
    chance: random.Random
    problems: list[str] = field(default_factory=list)
    acknowledged: int = 0

    def begin(self, service: Served) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(service.client(),), daemon=True)
        thread.start()
        return thread

    def _run(self, client: httpx.Client) -> None:
        try:
            with client:
                while True:
                    self.step(client)
        except httpx.TransportError:
            return
        except Exception as error:
            self.problems.append(repr(error))

    def ask(self, client: httpx.Client, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        answer = client.request(method, path, json=body, headers={**bearer(self.token), **headers})
        if answer.status_code not in STATUSES:
            self.problems.append(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer

    def step(self, client: httpx.Client) -> None:
        raise NotImplementedError


@dataclass
class Analyst(Actor):
    """Asks for forests and scores, and for old ones again: for more than there is."""

    requests: dict[str, Request] = field(default_factory=dict)
    seen: dict[str, bytes] = field(default_factory=dict)
    refused: int = 0  # because a ceiling was reached

    def step(self, client: httpx.Client) -> None:
        kind = self.chance.choices(("small", "large", "score", "again"), (5, 4, 2, 2))[0]
        releases = [id for folder, _, id in (result.rpartition("/") for result in self.seen) if folder == "/v1/releases"]
        if kind == "again" and self.requests:
            self.again(client, self.chance.choice(list(self.requests)))
        elif kind == "score" and releases:
            score = {"purpose": "research", "epsilon": "0.1", "release": self.chance.choice(releases)}
            self.new(client, "/v1/datasets/patients/scores", score)
        else:
            self.new(client, "/v1/datasets/patients/forests", LARGE if kind == "large" else SMALL)

    def new(self, client: httpx.Client, path: str, body: dict[str, Any]) -> None:
        key = f"k{len(self.requests)}"
        self.requests[key] = Request(path, body)
        self.again(client, key)

    def again(self, client: httpx.Client, key: str) -> None:
        """Send it, for the first time or once more, and wait for its end."""
        asked = self.requests[key]
        answer = self.ask(client, "POST", asked.path, asked.body, **{"Idempotency-Key": key})
        if answer.status_code != 202:
            self.refused += answer.status_code == 402
            time.sleep(0.02)
            return
        job = answer.json()
        if asked.content is not None and (job["state"], job["id"] in asked.ids) != ("done", True):
            self.problems.append(f"{key} was answered before, and now is {job}")
        if asked.lost and (job["state"], job["id"] in asked.ids) != ("failed", True):
            self.problems.append(f"{key} was lost before, and now is {job}: paid twice?")
        asked.ids.add(job["id"])
        self.acknowledged += 1
        while job["state"] not in ENDED:
            time.sleep(0.01)
            job = self.ask(client, "GET", f"/v1/jobs/{job['id']}").json()
        if job["state"] == "done":
            asked.content = self.look(client, job["result"])
        elif job["state"] == "failed" and job["cost"]["epsilon"] != "0":
            asked.lost = True

    def look(self, client: httpx.Client, result: str) -> bytes:
        """An answer, and a problem if it is not what it was."""
        content = self.ask(client, "GET", result).content
        if self.seen.setdefault(result, content) != content:
            self.problems.append(f"{result} has changed")
        return content


@dataclass
class Owner(Actor):
    """Adds people, with tokens, grants and ceilings; what was acknowledged is kept. The ceiling is raised when it has refused somebody."""

    analyst: Analyst | None = None
    refused: int = 0
    people: set[str] = field(default_factory=set)
    granted: set[str] = field(default_factory=set)
    limited: set[str] = field(default_factory=set)
    tokens: dict[str, str] = field(default_factory=dict)
    revoking: set[str] = field(default_factory=set)  # asked for, whether or not it was acknowledged
    revoked: set[str] = field(default_factory=set)
    ceiling: Fraction = Fraction(1)
    number: int = 0

    def step(self, client: httpx.Client) -> None:
        self.number += 1
        name, raised = f"person {self.number}", self.ceiling + RAISE
        if self.change(client, "POST", "people", {"name": name}):
            self.people.add(name)
        token = self.change(client, "POST", "tokens", {"person": name})
        self.tokens[token["token"]] = name
        if self.change(client, "POST", "grants", {"analyst": name, "dataset": "patients", "purposes": ["research"]}):
            self.granted.add(name)
        if self.change(client, "POST", "datasets/patients/ceilings", {"epsilon": "1", "analyst": name}):
            self.limited.add(name)
        if self.analyst is not None and self.analyst.refused > self.refused:
            self.change(client, "POST", "datasets/patients/ceilings", {"epsilon": str(raised)})
            self.ceiling, self.refused = raised, self.analyst.refused
        if self.number % 3 == 0:
            self.revoking.add(token["token"])
            self.change(client, "DELETE", f"tokens/{token['id']}")
            self.revoked.add(token["token"])
        time.sleep(0.03)

    def change(self, client: httpx.Client, method: str, path: str, body: Any = None) -> Any:
        answer = self.ask(client, method, f"/v1/owner/{path}", body)
        if answer.status_code not in (200, 201):
            raise AssertionError(f"{path}: {answer.status_code} {answer.text}")
        self.acknowledged += 1
        return answer.json()
