"""`hedgerow schema edit` in a real browser: without scripts, by keyboard, on a phone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import SCHEMA
from browser.test_browser_pages import PHONE, shot  # noqa: F401 - a fixture

from hedgerow import Schema

pytestmark = pytest.mark.browser


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str, Any]]:
    """A draft, the address of its page, and the command that serves it."""
    path = tmp_path / "schema.toml"
    text = SCHEMA.to_toml().replace("[target]\n", "[target]\nunreviewed = true\n")
    path.write_text(re.sub(r'(kind = "\w+"\n)', r"\1unreviewed = true\n", text), encoding="utf-8")
    command = [sys.executable, "-m", "hedgerow", "schema", "edit", str(path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+", process.stdout.readline())
        assert found is not None
        yield path, found[0], process
        process.terminate()


def test_bounds_are_edited_and_entries_ticked(chromium: Any, served: tuple[Path, str, Any], shot: Any) -> None:  # noqa: F811
    path, url, process = served
    context = chromium.new_context(java_script_enabled=False, viewport=PHONE)
    page, fetched = context.new_page(), []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(url)
    assert "6 of 6 entries wait for review" in page.inner_text("#status")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shot(page, "schema-edit-phone")
    page.fill('input[name="0.high"]', "abc")
    page.click('button[value="save"]')
    assert "expected a number" in page.inner_text("[role=alert]")
    assert page.input_value('input[name="0.high"]') == "abc"
    page.fill('input[name="0.high"]', "110")
    page.fill('textarea[name="2.values"]', "never\nformer\ncurrent\npipe")
    page.focus('input[name="0.public"]')
    page.keyboard.press("Space")
    page.click('button[value="save"]')
    assert "Saved." in page.inner_text("[role=status]")
    saved = Schema.load(path)
    assert saved.attributes[0].high == 110
    assert saved.attributes[2].values == ("never", "former", "current", "pipe")
    assert "age" not in saved.unreviewed
    page.set_viewport_size({"width": 1280, "height": 900})
    shot(page, "schema-edit")
    for box in page.locator('input[name$=".public"]').all():
        box.check()
    page.click('button[value="finish"]')
    assert "Every entry is reviewed." in page.inner_text("[role=status]")
    assert process.wait(60) == 0
    assert Schema.load(path).unreviewed == ()
    assert Schema.load(path.with_name("schema.toml.bak")).attributes[0].high == 98
    assert set(fetched) <= {url, url.rsplit("/", 2)[0] + "/favicon.ico"}
    context.close()
