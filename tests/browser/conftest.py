"""A real service with a table of made-up patients, and the system's Chromium to look at its pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curator.http.serving import served

from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.curator.http.service_context import Curator

SCHEMA = Schema(
    [
        Numeric("age", 18, 98), Numeric("blood pressure", 80, 220), Categorical("smoker", ["never", "former", "current"]),
        Categorical("activity", ["low", "moderate", "high"], missing="not asked"), Categorical("sex", ["female", "male"]),
    ],
    Target("readmitted", ["no", "yes"]),
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    """address: of the pages; owner, ada: their tokens."""

    address: str
    owner: str
    ada: str


def patients(path: Path, rows: int = 4000) -> None:
    generator = np.random.default_rng(3)
    age, pressure = generator.integers(18, 98, rows), generator.integers(90, 200, rows)
    smoker = generator.choice(["never", "former", "current"], rows)
    risk = 0.1 + 0.5 * (age > 65) + 0.25 * (smoker == "current")
    columns = [
        age, pressure, smoker, generator.choice(["low", "moderate", "high", ""], rows), generator.choice(["female", "male"], rows),
        np.where(generator.random(rows) < risk, "yes", "no"),
    ]  # fmt: skip
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join(["age,blood pressure,smoker,activity,sex,readmitted", *lines]) + "\n")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    patients(folder / "patients.csv")
    curator = Curator.open(folder / "curator")
    owner = curator.accounts.first_owner()
    assert owner is not None
    curator.accounts.add("ada")
    ada = curator.accounts.issue("ada")[0]
    for name, epsilon in (("patients", 4), ("visits-2019", 1)):
        curator.registry.register(name, folder / "patients.csv", SCHEMA)
        curator.ledger.ceiling(name, epsilon)
        curator.accounts.grant("ada", name, ["research"])
    curator.accounts.grant("ada", "patients", ["teaching"])
    curator.ledger.ceiling("patients", 1, purpose="teaching")
    curator.registry.close("visits-2019", "the study has ended")
    curator.close()
    with served(folder / "curator") as service:
        assert service.address is not None
        yield Site(service.address, owner, ada)
        service.stop()
    written = service.said.read_text() + service.logged.read_text()
    assert owner not in written
    assert ada not in written


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: `make browser-test` does that.")
    found = os.environ.get("HEDGEROW_CHROMIUM") or next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if not found:
        pytest.skip("no Chromium: install your system's package for it, or name it in HEDGEROW_CHROMIUM.")
    with playwright.sync_playwright() as driver:
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"] if root else [])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, site: Site) -> Iterator[Callable[..., Any]]:
    """A page of a new visitor. Whatever it fetches from elsewhere, and whatever the policy forbids it, is found at the end."""
    contexts, fetched, complaints = [], [], []

    def opened(token: str | None = None, **how: Any) -> Any:
        context = chromium.new_context(base_url=site.address, **how)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: fetched.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        if token is not None:
            page.goto("/sign-in")
            page.fill("#token", token)
            page.press("#token", "Enter")
            page.wait_for_url(f"{site.address}/")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [url for url in fetched if not url.startswith((site.address + "/", "data:image/svg+xml,"))] == []
    assert [text for text in complaints if "the server responded with a status of 4" not in text] == []
