"""The reference of the HTTP API, from what the application says of itself: every route and every model stands in it, once."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from curator.http.routes import KNOWN

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def http_api() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts" / "docs_site"))
    try:
        import http_api
    finally:
        sys.path.pop(0)
    return http_api


@pytest.fixture(scope="module")
def pages(http_api: ModuleType) -> dict[str, str]:
    found: dict[str, str] = http_api.pages()
    return found


def test_every_route_has_its_section_and_stands_in_the_list(http_api: ModuleType, pages: dict[str, str]) -> None:
    sections = [heading for page in pages.values() for heading in re.findall(r"^## `(\w+) (\S+)` \{#", page, re.MULTILINE)]
    assert len(set(sections)) == len(sections)
    assert set(sections) | {("GET", "/openapi.json")} == KNOWN
    assert "GET /openapi.json" in pages["reference/http/index.md"]
    assert set(re.findall(r"\| \[`(\w+) (\S+)`\]", pages["reference/http/index.md"])) == set(sections)


def test_every_model_has_its_fields_once(http_api: ModuleType, pages: dict[str, str]) -> None:
    text = "\n".join(pages.values())
    for name, schema in http_api.document()["components"]["schemas"].items():
        of_a_request = len(re.findall(rf"^\*\*Body\*\* \({schema['title']}\):$", text, re.MULTILINE))
        by_itself = len(re.findall(rf"^## {schema['title']} \{{#{name.lower()}\}}$", text, re.MULTILINE))
        assert (of_a_request, by_itself) in ((1, 0), (0, 1), (1, 1)), name  # both: a token that is asked for, and one that is made
        for field in schema.get("properties", {}):
            assert f"| `{field}` | " in text, (name, field)


def test_links_lead_to_sections(pages: dict[str, str]) -> None:
    anchors = {name.rpartition("/")[2]: set(re.findall(r"\{#([\w-]+)\}", page)) for name, page in pages.items()}
    for name, page in pages.items():
        for where, anchor in re.findall(r"\]\(([\w-]*(?:\.md)?)#([\w-]+)\)", page):
            assert anchor in anchors[where or name.rpartition("/")[2]], (name, where, anchor)


def test_what_a_model_says_of_a_field_stands_beside_it(http_api: ModuleType) -> None:
    fields = {"plan": {}, "bins": {}, "what": {}}
    assert http_api._divided("Many; bins: cells of numbers; what: a note.", fields) == (
        "Many",
        {"bins": "cells of numbers", "what": "a note."},
    )
    assert http_api._divided("plan: a plan. Its ε is charged.\n\nOne: two.", fields) == ("One: two.", {"plan": "a plan. Its ε is charged."})
    assert http_api._divided("", fields) == ("", {})
