"""The built site: every link leads somewhere, nothing is fetched from elsewhere, every public name and command has its place.

`make docs-test` builds it first, without a warning, and runs the notebooks as it does.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from browser.conftest import chromium  # noqa: F401 - a fixture

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("HEDGEROW_SITE") or ROOT / "site")
FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
NOT_FETCHED = {"canonical", "prev", "next", "alternate"}


class Page(HTMLParser):
    """ids: where a link may lead; links: (tag, attribute, address)."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "link" and found.get("rel") in NOT_FETCHED:
            return
        self.links += [(tag, name, found[name]) for name in ("href", "src") if name in found]


@cache
def page(path: Path) -> Page:
    return Page(path)


def pages() -> list[Path]:
    found = sorted(SITE.rglob("*.html"))
    assert len(found) > 50, f"{SITE}: build the site first, `make docs`"
    return found


def inside(address: str) -> bool:
    return not urlsplit(address).scheme and not address.startswith("//")


def broken() -> Iterator[str]:
    for path in pages():
        for _, _, address in page(path).links:
            parts = urlsplit(address)
            if not inside(address):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if path.name == "404.html":  # its links begin at the root of a server
                continue
            if not target.is_file():
                yield f"{path.relative_to(SITE)}: {address}"
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in page(target).ids:
                yield f"{path.relative_to(SITE)}: {address}: no such place"


def test_every_link_leads_somewhere() -> None:
    assert list(broken()) == []


def test_nothing_is_fetched_from_elsewhere() -> None:
    fetched = [
        f"{path.relative_to(SITE)}: {address}"
        for path in pages()
        for tag, name, address in page(path).links
        if (tag, name) in FETCHED and not inside(address) and not address.startswith("data:")
    ]
    assert fetched == []
    styles = "".join(path.read_text(encoding="utf-8") for path in SITE.rglob("*.css"))
    assert re.findall(r"url\(\s*[\"']?https?:|@import", styles) == []


def reference() -> tuple[set[str], list[str], list[str], list[str]]:
    """What the built reference has; the names, and the anchors of the commands and of the HTTP API, that it must have."""
    sys.path.insert(0, str(ROOT / "scripts" / "docs_site"))
    try:
        import commands
        import http_api
        import reference
    finally:
        sys.path.pop(0)
    has = {each for path in (SITE / "reference").rglob("*.html") for each in page(path).ids}
    routes = [http_api.anchor(method, path) for method, path, _ in http_api.routes()]
    return has, list(reference.public_names()), [commands.anchor(name) for name, _ in commands.all_commands()], routes


def test_every_public_name_every_command_and_every_route_is_in_the_reference() -> None:
    has, names, commands, routes = reference()
    assert len(names) > 60
    assert len(commands) > 50
    assert [name for name in names if name not in has] == []
    assert [name for name in commands if name not in has] == []
    assert len(routes) > 30
    assert [name for name in routes if name not in has] == []


def test_every_tutorial_has_what_it_printed_and_drew() -> None:
    tutorials = sorted((SITE / "tutorials").glob("*.html"))
    assert len(tutorials) == 6
    for path in tutorials:
        text = page(path).text
        assert text.count('class="notebook-output"') >= 4, path.name
        assert "<svg" in text.split('class="notebook-output"', 1)[1], path.name
        assert "Traceback" not in text
        assert path.with_suffix(".ipynb").is_file()


WIDE = [
    *("index", "START", "GUIDE", "SEVERAL_OWNERS", "CURATOR", "CURATOR_SERVER", "CURATOR_LEDGER", "CURATOR_LIMITS", "RULE_SETS"),
    *("PROOF", "PEERS", "PEERS_SETS", "PEERS_COST", "REPRODUCTION", "REPRODUCTION_DPDF", "AUDIT_RESULTS", "OWNERS_FIGURES"),
    *("reference/python/estimators", "reference/commands/fit", "reference/http/index", "reference/http/analysts", "reference/http/models"),
]


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_screen_and_fetch_nothing(chromium: Any, width: int) -> None:  # noqa: F811
    page = chromium.new_page(viewport={"width": width, "height": 900})
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    for path in [*(SITE / f"{name}.html" for name in WIDE), *sorted((SITE / "tutorials").glob("*.html"))]:
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
    page.goto((SITE / "index.html").as_uri())
    page.fill("input.md-search__input", "private_score", force=True)
    page.wait_for_selector(".md-search-result__item", state="attached", timeout=180_000)
    page.close()
    assert [url for url in fetched if not url.startswith(("file:", "data:"))] == []


def test_the_search_works_on_files() -> None:
    index = (SITE / "search" / "search_index.js").read_text(encoding="utf-8")
    for word in ("HedgerowClassifier", "hedgerow together", "permute-and-flip"):
        assert word in index
