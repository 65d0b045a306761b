"""The pages in a real browser: by keyboard alone, with scripts off, on a phone, in light and dark."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import SCHEMA, Site, patients

pytestmark = pytest.mark.browser
PHONE = {"width": 360, "height": 740}
PAPER = {"light": "rgb(244, 246, 249)", "dark": "rgb(16, 20, 26)"}
Open = Callable[..., Any]


@pytest.fixture
def shot(tmp_path: Path) -> Callable[[Any, str], None]:
    """Pictures to be looked at, in a temporary folder or where HEDGEROW_SHOTS says."""
    folder = Path(os.environ.get("HEDGEROW_SHOTS") or tmp_path)

    def taken(page: Any, name: str) -> None:
        page.screenshot(path=folder / f"{name}.png", full_page=True)
        assert (folder / f"{name}.png").stat().st_size > 5000

    return taken


def tab_to(page: Any, wanted: str, most: int = 80) -> None:
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.locator(f"{wanted}:focus").count():
            return
    raise AssertionError(f"{wanted} is not reached by Tab on {page.url}")


def test_the_whole_way_by_keyboard_with_scripts_off(open_page: Open, site: Site) -> None:
    page = open_page(java_script_enabled=False)
    page.goto("/")
    assert page.url.endswith("/sign-in")
    assert page.locator("#token:focus").count() == 1
    page.keyboard.type(site.ada)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.address}/")
    assert page.context.cookies()[0]["httpOnly"]

    page.keyboard.press("Tab")
    assert page.locator(".skip:focus").count() == 1
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    tab_to(page, 'a[href="/datasets/patients"]', most=2)
    page.keyboard.press("Enter")
    page.wait_for_url("**/datasets/patients")
    tab_to(page, "#epsilon")
    page.keyboard.type("1.5")
    for field in ("#delta", "#purpose", "#algorithm", "summary", "button"):
        tab_to(page, field, most=1)
        if field == "#algorithm":
            page.keyboard.type("DPDF")
    page.keyboard.press("Enter")
    page.wait_for_url("**/quote")
    tiles = page.locator(".tile b").all_inner_texts()
    assert tiles == ["ε = 1.5", "4", "2.5"]
    tab_to(page, 'form[action$="/forests"] button')
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/*")
    page.get_by_text("It is ready").wait_for(timeout=60_000)  # it looks again by itself
    tab_to(page, 'main a[href^="/releases/"]')
    page.keyboard.press("Enter")
    page.wait_for_url("**/releases/*")
    assert "readmitted" in page.locator("h1").inner_text()
    assert page.locator("figure svg").count() >= 3
    assert page.locator("ol.rules li").count() >= 1
    assert page.get_by_text("Privacy certificate").is_visible()
    tab_to(page, "#epsilon")
    page.keyboard.type("0.25")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="What the score would cost").wait_for()
    tab_to(page, 'form[action$="/scores"] button')
    page.keyboard.press("Enter")
    page.get_by_text("It is ready").wait_for(timeout=60_000)
    tab_to(page, 'main a[href^="/scores/"]')
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Private score").wait_for()
    page.goto("/")
    tab_to(page, ".who button")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sign-in")
    assert page.context.cookies() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_every_page_fits_and_is_drawn(open_page: Open, site: Site, shot: Callable[[Any, str], None], size: str, scheme: str) -> None:
    how: dict[str, Any] = {"color_scheme": scheme}
    how |= {"viewport": PHONE, "is_mobile": True, "has_touch": True} if size == "phone" else {"viewport": {"width": 1200, "height": 800}}

    def look(page: Any, name: str) -> None:
        page.wait_for_load_state()
        wide, seen = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        shot(page, f"{name}-{size}-{scheme}")
        assert wide <= seen, name
        assert page.locator("h1").count() == 1
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == PAPER[scheme]

    page = open_page(**how)
    page.goto("/sign-in")
    look(page, "sign-in")
    page.fill("#token", "hrw_wrong")
    page.press("#token", "Enter")
    page.get_by_role("alert").wait_for()
    look(page, "sign-in-wrong")

    page = open_page(site.ada, **how)
    look(page, "home")
    page.goto("/datasets/patients")
    page.fill("#epsilon", "0.25")
    page.select_option("#purpose", "research")
    page.select_option("#algorithm", "dpdf" if size == "desk" else "hedgerow")
    page.locator("summary").first.click()
    look(page, "dataset")
    page.get_by_role("button", name="Show what it would cost").click()
    page.wait_for_url("**/quote")
    look(page, "quote")
    page.get_by_role("button", name="Try it on dummy rows").click()
    page.wait_for_url("**/dummy")
    look(page, "dummy")
    page.get_by_role("button", name="Back to what it would cost").click()
    page.get_by_role("button", name="Pay").click()
    page.wait_for_url("**/jobs/*")
    page.get_by_text("It is ready").wait_for(timeout=60_000)
    look(page, "job")
    page.get_by_role("link", name="See the release").click()
    page.wait_for_url("**/releases/*")
    look(page, "release")
    page.fill("#epsilon", "0.1")
    page.get_by_role("button", name="Show what it would cost").click()
    page.wait_for_url("**/releases/*/quote")
    look(page, "quote-score")
    page.get_by_role("button", name="Pay").click()
    page.get_by_text("It is ready").wait_for(timeout=60_000)
    page.get_by_role("link", name="See the score").click()
    page.wait_for_url("**/scores/*")
    look(page, "score")
    page.goto("/datasets/patients")
    page.fill("#epsilon", "a lot")
    page.get_by_role("button", name="Show what it would cost").click()
    page.get_by_role("alert").wait_for()
    assert page.input_value("#epsilon") == "a lot"
    look(page, "dataset-wrong")
    page.fill("#epsilon", "100")
    page.get_by_role("button", name="Show what it would cost").click()
    page.get_by_text("This is more than is left").wait_for()
    look(page, "quote-too-much")
    page.goto("/datasets/visits-2019")
    look(page, "dataset-closed")
    page.goto("/owner/people")
    look(page, "not-found")

    page = open_page(site.owner, **how)
    for name, path in (("home", "/"), ("tables", "/owner/datasets"), ("table", "/owner/datasets/patients"), ("people", "/owner/people")):
        page.goto(path)
        look(page, f"owner-{name}")
    page.goto("/owner/people/ada")
    page.get_by_role("button", name="Make it").click()
    page.get_by_text("shown this once").wait_for()
    look(page, "owner-person")
    page.goto("/ledger")
    look(page, "owner-ledger")
    page.goto("/ledger/verification")
    look(page, "owner-verification")


def test_an_owner_sets_everything_up_with_scripts_off(open_page: Open, site: Site, tmp_path: Path) -> None:
    patients(tmp_path / "more.csv", 50)
    page = open_page(site.owner, java_script_enabled=False)
    page.goto("/owner/datasets")
    page.fill("#name", "more <b>patients</b>")
    page.fill("#path", str(tmp_path / "more.csv"))
    page.fill("#schema-text", SCHEMA.to_toml())
    page.get_by_role("button", name="Register it").click()
    page.get_by_text("nothing can be spent").wait_for()
    assert page.locator("h1").inner_text() == "more <b>patients</b>"
    page.fill("#epsilon", "3")
    page.get_by_role("button", name="Set it").click()
    page.get_by_text("0 of 3 spent, 3 left").wait_for()
    page.goto("/owner/people")
    page.fill("#name", "grace")
    page.get_by_role("button", name="Add").click()
    page.wait_for_url("**/owner/people/grace")
    page.select_option("#dataset", "more <b>patients</b>")
    page.fill("#purpose", "research")
    page.get_by_role("button", name="Grant", exact=True).click()
    page.get_by_role("button", name="Withdraw").wait_for()
    page.get_by_role("button", name="Make it").click()
    token = page.locator(".token code").inner_text()
    page.goto("/owner/people/grace")
    assert token not in page.content()

    graces = open_page(token, java_script_enabled=False)
    assert graces.locator("h2 a").all_inner_texts() == ["more <b>patients</b>"]
    page.get_by_role("button", name="Revoke").click()
    graces.goto("/")
    assert graces.url.endswith("/sign-in")
    page.goto("/owner/datasets")
    page.get_by_role("link", name="more <b>patients</b>").click()
    page.fill("#typed_name", "something else")
    page.get_by_role("button", name="Close more").click()
    page.get_by_role("alert").wait_for()
    page.fill("#typed_name", "more <b>patients</b>")
    page.get_by_role("button", name="Close more").click()
    page.locator("h1 .state", has_text="closed").wait_for()


def test_another_site_cannot_use_a_visit(open_page: Open, site: Site) -> None:
    """A form of another origin that is sent to ours, from the same browser."""
    page = open_page(site.owner)
    other = page.context.new_page()  # about:blank: no origin of ours, no policy of ours
    form = f'<form method="post" action="{site.address}/owner/people"><input name="name" value="mallory"><button>go</button></form>'
    other.set_content(form)
    other.get_by_role("button").click()
    other.get_by_text("was not sent from a page of this service").wait_for()
    page.goto("/owner/people")
    assert "ada" in page.content()
    assert "mallory" not in page.content()
