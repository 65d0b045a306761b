"""The pages by HTTP: who sees what, forms that are paid once, what was quoted is what was charged, nothing unescaped."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from curator.http.conftest import SCHEMA, Running
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from slow import slow_but

from hedgerow import Categorical, Schema, Target
from hedgerow.accounting import meaning
from hedgerow.curator.application import PAGES, application
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.ledger.accounts import Accounts
from hedgerow.curator.web import sign_in_sessions
from hedgerow.curator.web.authentication import is_page
from hedgerow.formatting import amount
from hedgerow.release.release import Release
from hedgerow.schema.csv_dialect import CSVDialect

HOST = "http://testserver"
HOSTILE = '<script>alert("x")</script>'
OTHER = Schema([Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))
FORM = {"purpose": "research", "epsilon": "0.5", "algorithm": "dpdf", "delta": "0", "key": "form-1"}


class Browser:
    """What a browser does: a jar of cookies, and where a form comes from."""

    def __init__(self, running: Running, token: str | None = None, **where: str) -> None:
        self.client = TestClient(running.client.app, HOST, raise_server_exceptions=False, follow_redirects=False)
        self.where = where or {"Sec-Fetch-Site": "same-origin", "Origin": HOST}
        if token is not None:
            assert self.post("/sign-in", {"token": token}).status_code == 303

    def get(self, path: str) -> Any:
        return self.client.get(path)

    def post(self, path: str, form: dict[str, str] | None = None, **headers: str) -> Any:
        return self.client.post(path, data=form or {}, headers={**self.where, **headers})


def token_of(headers: dict[str, str]) -> str:
    return headers["Authorization"].removeprefix("Bearer ")


@pytest.fixture
def ada(running: Running) -> Browser:
    return Browser(running, token_of(running.ada))


@pytest.fixture
def owner(running: Running) -> Browser:
    return Browser(running, token_of(running.owner))


def page_routes() -> list[tuple[str, str]]:
    """Each page, from the lists of routes."""
    found = []
    for route in (route for router in PAGES for route in router.routes if isinstance(route, APIRoute)):
        path = route.path.replace("{name:path}", "patients").replace("{id}", "0" * 32)
        assert is_page(path)
        assert "{" not in path
        found += [(method, path) for method in route.methods or ()]
    return found


def ended(browser: Browser, path: str, running: Running) -> str:
    """The page of a job when it has ended."""
    id = path.rsplit("/", 1)[1]
    running.ended(running.owner, running.get(running.owner, f"/v1/jobs/{id}").json())
    return str(browser.get(path).text)


def hidden(page: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


# ---------------------------------------------------------------- who may see a page


@pytest.mark.slow
def test_without_a_visit_there_is_only_the_sign_in(running: Running) -> None:
    accounts, moment = running.curator.accounts, datetime.now(UTC)
    expired = Accounts(accounts.database, lambda: moment - timedelta(days=9)).issue("ada", timedelta(days=1))[0]
    revoked, record = accounts.issue("ada")
    late = Browser(running, revoked)
    accounts.revoke(record.id)
    for token in (expired, revoked, "hrw_wrong", "", "x" * 5000):
        answer = Browser(running).post("/sign-in", {"token": token})
        assert (answer.status_code, answer.headers.get("set-cookie")) == (401, None)
        assert not token or token not in answer.text
    strangers = [Browser(running), late, Browser(running), Browser(running)]
    strangers[2].client.cookies.set("hedgerow", "0" * 64)
    strangers[3].client.cookies.set("hedgerow", token_of(running.ada))  # the token is not the cookie
    routes = [each for each in page_routes() if each[1] not in ("/sign-in", "/style.css")]
    assert len(routes) >= 25
    odd = ["/owner", "/owner/nothing", "/datasets/nothing", "/ledger%0A", "/%0A", "/owner/datasets%0A"]
    for method, path in [*routes, *(("GET", path) for path in odd), ("POST", "/sign-out%0A"), ("HEAD", "/ledger")]:
        for stranger in strangers:
            answer = stranger.client.request(method, path, headers=stranger.where)
            location = answer.headers["location"]
            assert (answer.status_code, location.partition("?")[0], answer.content) == (303, "/sign-in", b""), path
            assert method == "GET" or location == "/sign-in"


@pytest.mark.parametrize(
    ("path", "back"),
    [
        ("/jobs/1234", "/jobs/1234"),
        ("/ledger?before=50", "/ledger?before=50"),
        ("/datasets/my%20patients", "/datasets/my%20patients"),
        ("/", "/"),
        ("/owner%0A", "/"),
        ("//example.org/datasets", None),
    ],
)
def test_a_link_to_a_page_survives_the_sign_in(running: Running, path: str, back: str | None) -> None:
    stranger = Browser(running)
    sent = stranger.client.get(f"{HOST}{path}")
    if back is None:
        assert "location" not in sent.headers
        return
    page = stranger.get(sent.headers["location"])
    assert page.status_code == 200
    wanted = re.findall(r'name="to" value="([^"]*)"', page.text)
    assert wanted == ([] if back == "/" else [back])
    form = {"token": token_of(running.ada), **({"to": wanted[0]} if wanted else {})}
    wrong = stranger.post("/sign-in", {**form, "token": "hrw_mistyped"})
    assert (wrong.status_code, re.findall(r'name="to" value="([^"]*)"', wrong.text)) == (401, wanted)  # once more is enough
    assert stranger.post("/sign-in", form).headers["location"] == back


@pytest.mark.parametrize(
    "to",
    [
        "https://example.org/", "//example.org/datasets", "/\\example.org", "/datasets\\..", "/sign-out", "/sign-in", "/v1/datasets",
        "javascript:alert(1)",
        "/datasets/\r\nSet-Cookie: a=b", '/datasets/"><script>', "datasets", "/%2Fexample.org", "/datasets/" + "x" * 2000,
        "/datasets/%0d%0aX: y",
    ],
)  # fmt: skip
def test_nobody_is_led_elsewhere(running: Running, to: str) -> None:
    stranger = Browser(running)
    assert 'name="to"' not in stranger.client.get("/sign-in", params={"to": to}).text
    assert stranger.post("/sign-in", {"token": token_of(running.ada), "to": to}).headers["location"] == "/"


def test_a_cookie_is_for_pages_and_a_token_for_the_rest(running: Running, owner: Browser) -> None:
    assert owner.get("/").status_code == 200
    assert owner.get("/v1/datasets").status_code == 401
    assert owner.post("/v1/owner/people").status_code == 401
    assert Browser(running).client.get("/", headers=running.owner).status_code == 303


def test_a_visit_ends(running: Running) -> None:
    first, second = Browser(running, token_of(running.ada)), Browser(running, token_of(running.ada))
    kept = dict(first.client.cookies)
    assert first.post("/sign-out").headers["location"] == "/sign-in"
    assert not first.client.cookies
    first.client.cookies.update(kept)
    assert first.get("/").status_code == 303
    assert second.get("/").status_code == 200
    authentication = running.client.app.state.page_authentication  # type: ignore[attr-defined]
    later = authentication.sessions._clock() + sign_in_sessions.LIFETIME
    authentication.sessions._clock = lambda: later
    assert second.get("/").status_code == 303


def test_the_oldest_sessions_of_a_token_give_way() -> None:
    found = sign_in_sessions.SignInSessions()
    other, names = found.begin("other"), [found.begin("mine") for _ in range(sign_in_sessions.MOST_EACH + 2)]
    assert [name for name in names if found.token(name) is None] == names[:2]
    assert found.token(other) == "other"


def test_the_oldest_visits_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_sessions, "MOST", 3)
    now = [0.0]
    found = sign_in_sessions.SignInSessions(lambda: now[0])
    names = [found.begin(f"t{i}") for i in range(4)]
    assert [found.token(name) for name in names] == [None, "t1", "t2", "t3"]
    now[0] = sign_in_sessions.LIFETIME
    last = found.begin("t4")
    assert [found.token(name) for name in (*names, last)] == [None] * 4 + ["t4"]
    assert len(found._sessions) == 1


@pytest.mark.parametrize(("behind_tls", "url", "secure"), [(False, HOST, False), (False, "https://testserver", True), (True, HOST, True)])
def test_the_cookie(running: Running, behind_tls: bool, url: str, secure: bool) -> None:
    with TestClient(application(running.curator, Limits(), behind_tls=behind_tls), url, follow_redirects=False) as client:
        answer = client.post("/sign-in", data={"token": token_of(running.ada)}, headers={"Sec-Fetch-Site": "same-origin"})
        given = answer.headers["set-cookie"]
    name, _, how = given.partition("=")
    assert name == ("__Host-hedgerow" if secure else "hedgerow")
    assert {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={sign_in_sessions.LIFETIME}"} <= set(how.split("; "))
    assert ("Secure" in how.split("; ")) == secure
    assert token_of(running.ada) not in given


@pytest.mark.slow
def test_forms_are_taken_from_our_own_pages_alone(running: Running, owner: Browser) -> None:
    bad: list[dict[str, str]] = [
        {"Sec-Fetch-Site": "cross-site", "Origin": HOST}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": f"{HOST}.evil.example"}, {"Origin": f"{HOST}:81"},
        {"Origin": "http://[bad"}, {"Origin": ""}, {},
    ]  # fmt: skip
    posts = [path for method, path in page_routes() if method == "POST"]
    assert len(posts) >= 15
    before = (running.curator.ledger.head(), len(running.curator.accounts.people()))
    for path in posts:
        for headers in bad:
            answer = owner.client.post(path, data={"name": "eve", "token": token_of(running.owner)}, headers=headers)
            assert answer.status_code == 403, (path, headers)
            assert "not sent from a page of this service" in answer.text
    assert before == (running.curator.ledger.head(), len(running.curator.accounts.people()))
    for headers in ({"Origin": HOST}, {"Sec-Fetch-Site": "same-origin", "Origin": "null"}):
        assert owner.client.post("/owner/people", data={"name": headers["Origin"]}, headers=headers).status_code == 303


# ---------------------------------------------------------------- what is shown to whom


@pytest.mark.slow
def test_not_granted_and_for_owners_is_not_there(running: Running, ada: Browser) -> None:
    bob = Browser(running, token_of(running.bob))
    job = ada.post("/datasets/patients/forests", FORM).headers["location"]
    ended(ada, job, running)
    missing = bob.get("/datasets/nothing")
    assert missing.status_code == 404
    id = job.rsplit("/", 1)[1]
    paths = ["/datasets/patients", "/datasets/%20", f"/datasets/{'x' * 300}", f"/jobs/{id}", f"/releases/{id}", f"/releases/{id}.json"]
    paths += [f"/scores/{id}", "/ledger", "/ledger?before=x", "/ledger/export?format=pdf", "/owner/nothing", "/jobs/" + "0" * 32]
    paths += [path for method, path in page_routes() if method == "GET" and path.startswith(("/owner", "/ledger"))]
    for path in paths:
        answer = bob.get(path)
        assert (answer.status_code, answer.text) == (404, missing.text), path
    posts = [path for method, path in page_routes() if method == "POST" and not path.startswith("/sign")]
    for path in [*posts, *(f"/datasets/nothing/{what}" for what in ("quote", "dummy", "forests", "change"))]:
        answer = bob.post(path, FORM)
        assert (answer.status_code, answer.text) == (404, missing.text), path
    assert "patients" not in bob.get("/").text
    assert running.curator.ledger.reservations("patients", "bob") == []


def test_headers(running: Running, ada: Browser) -> None:
    answers = [ada.get(path) for path in ("/", "/datasets/patients", "/nothing-there", "/datasets/x", "/style.css", "/sign-in")]
    answers += [Browser(running).get("/"), ada.post("/datasets/patients/quote", FORM), ada.client.post("/sign-in", data={"token": "x"})]
    for answer in answers:
        if "/nothing-there" in str(answer.url):
            assert "content-security-policy" not in answer.headers
            continue
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self' 'sha256-")
        assert "unsafe" not in policy
        for each in ("img-src 'self' data:", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert each in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
def test_hostile_names_are_text(running: Running, owner: Browser) -> None:
    schema = Schema([Categorical(HOSTILE, [HOSTILE, "b"], missing=HOSTILE)], Target("class", [HOSTILE, "b"]))
    running.file.write_text(f'"{HOSTILE.replace(chr(34), chr(34) * 2)}",class\nb,b\n')
    name, who = '<img src=x onerror="y">&', "ada & <b>co</b>"
    made = owner.post("/owner/datasets", {"name": name, "path": str(running.file), "schema": schema.to_toml()})
    assert made.status_code == 303, made.text
    here = made.headers["location"]
    assert owner.post(f"{here}/ceilings", {"of": "dataset", "epsilon": "9", "what": HOSTILE}).status_code == 303
    person = owner.post("/owner/people", {"name": who}).headers["location"]
    assert owner.post(f"{person}/grants", {"dataset": name, "purpose": HOSTILE}).status_code == 303
    token = re.findall(r"hrw_[\w-]{43}", owner.post(f"{person}/tokens", {"days": "3"}).text)[0]
    guest = Browser(running, token)
    link = re.findall(r'href="(/datasets/[^"]+)"', guest.get("/").text)[0]
    form = {**FORM, "purpose": HOSTILE}
    pages = [guest.get("/"), guest.get(link), guest.post(f"{link}/quote", form), guest.post(f"{link}/dummy", form)]
    job = guest.post(f"{link}/forests", form).headers["location"]
    ended(guest, job, running)
    pages += [guest.get(job), guest.get(job.replace("jobs", "releases")), guest.post(f"{link}/quote", {**form, "epsilon": HOSTILE})]
    pages += [owner.get(path) for path in ("/", here, person, "/owner/people", "/owner/datasets", "/ledger", link)]
    for page in pages:
        assert page.status_code in (200, 422)
        for bad in (HOSTILE, "<img src=x", "<b>co</b>", "<script"):
            assert bad not in page.text, page.url
    assert html.escape(HOSTILE, quote=True).replace("&quot;", "&#34;") in pages[1].text


# ---------------------------------------------------------------- the way of an analyst


def test_the_whole_way(running: Running, ada: Browser) -> None:
    ledger = running.curator.ledger
    assert "ε: 0 of 2 spent, 2 left" in ada.get("/").text
    page = ada.get("/datasets/patients").text
    form = {**FORM, "key": hidden(page)["key"]}
    quoted = ada.post("/datasets/patients/quote", form)
    assert meaning.sentence(Fraction(1, 2)).split("(")[0] in quoted.text
    for cell in (cell for row in meaning.rows() for cell in row):
        assert cell in page  # the one table of what an ε means
    assert re.findall(r'class="tile"><b>([^<]+)</b>', quoted.text) == ["ε = 0.5", "2", "1.5"]
    carried = hidden(quoted.text)
    assert carried == form
    tried = ada.post("/datasets/patients/dummy", carried)
    assert "1,000 dummy rows" in tried.text
    assert hidden(tried.text) == carried
    assert ledger.balance("patients").spent == 0

    asked = ada.post("/datasets/patients/forests", carried)
    assert asked.status_code == 303
    done = ended(ada, asked.headers["location"], running)
    assert "refresh" not in done
    (reserved,) = ledger.reservations("patients", "ada")
    assert reserved.epsilon == Fraction(1, 2)  # what was quoted
    assert "has cost" in done
    release = f"/releases/{reserved.key}"
    assert f'href="{release}"' in done
    page = ada.get(release).text
    for each in ("Guarantee:", "Privacy certificate", "<svg", f'href="{release}.json"'):
        assert each in page
    assert 'class="rules"' in page or "No rule stands above its noise" in page
    stored = ada.get(f"{release}.json")
    assert Release.from_json(stored.content).certificate.epsilon == "0.5"
    assert "attachment" in stored.headers["content-disposition"]

    quoted = ada.post(f"{release}/quote", {"purpose": "research", "epsilon": "1/4", "key": hidden(page)["key"]})
    left = 2 - reserved.cost  # a tree that ended early gives something back
    tiles = re.findall(r'class="tile"><b>([^<]+)</b>', quoted.text)
    assert tiles[:3] == ["ε = 0.25", amount(left), amount(left - Fraction(1, 4))]
    asked = ada.post(f"{release}/scores", hidden(quoted.text))
    done = ended(ada, asked.headers["location"], running)
    score = asked.headers["location"].replace("jobs", "scores")
    assert f'href="{score}"' in done
    assert "of predictions are right" in ada.get(score).text
    assert ada.get(f"{score}.json").json()["classes"] == ["a", "b"]
    page = ada.get("/datasets/patients").text
    assert page.count(">done</span>") == 2
    assert f'href="{release}"' in page
    assert f'href="{score}"' in page
    assert ledger.verify().sound


def test_a_release_is_scored_on_test_rows_where_there_are_some(running: Running, ada: Browser, owner: Browser) -> None:
    """Datasets with its schema that the person may use; the rows that it learnt from come last, and flatter it."""
    curator = running.curator
    asked = ada.post("/datasets/patients/forests", FORM)
    ended(ada, asked.headers["location"], running)
    release = asked.headers["location"].replace("jobs", "releases")
    page = ada.get(release).text
    assert re.findall(r'<option value="([^"]+)">', page.partition('id="dataset"')[2].partition("</select>")[0]) == ["patients"]
    assert "flatter it a little: ask the owner for a test dataset" in page
    for name, schema in (("patients test", SCHEMA), ("hidden", SCHEMA), ("other", OTHER)):
        curator.registry.register(name, running.file, schema)
        curator.ledger.ceiling(name, 1)
        if name != "hidden":
            curator.accounts.grant("ada", name, ["testing"])
    page = ada.get(release).text
    chosen = page.partition('id="dataset"')[2].partition("</select>")[0]
    assert re.findall(r'<option value="([^"]+)">', chosen) == ["patients test", "patients"]
    assert page.count("flatter it") == 1
    assert "(it learnt from these)" in chosen
    assert re.findall(r'<option value="(\w+)"( selected)?>', page.partition('id="purpose"')[2]) == [
        ("testing", " selected"),
        ("research", ""),
    ]
    assert "hidden" in owner.get(release).text

    form = {"dataset": "patients test", "purpose": "testing", "epsilon": "0.5", "key": hidden(page)["key"]}
    quoted = ada.post(f"{release}/quote", form).text
    assert hidden(quoted) == form
    assert "flatter" not in quoted
    assert "flatter it" in ada.post(f"{release}/quote", {**form, "dataset": "patients", "purpose": "research"}).text
    asked = ada.post(f"{release}/scores", hidden(quoted))
    assert "has cost" in ended(ada, asked.headers["location"], running)
    assert (curator.ledger.balance("patients test").spent, len(curator.ledger.reservations("patients"))) == (Fraction(1, 2), 1)
    assert ada.post(f"{release}/quote", {**form, "purpose": "research"}).status_code == 403
    for to in ("quote", "scores"):
        assert ada.post(f"{release}/{to}", {**form, "dataset": "hidden", "key": "new"}).status_code == 404
        assert "its schema is not that of the dataset" in ada.post(f"{release}/{to}", {**form, "dataset": "other", "key": "new"}).text


def test_a_table_with_another_number_of_rows_and_other_files_is_scored(running: Running, ada: Browser) -> None:
    """Both are said of one table. Its own files are read as its own schema says; other persons would be another charge."""
    curator, colons = running.curator, running.file.with_name("colons.csv")
    colons.write_text("".join(f"{line.replace(',', ':')}:id\n" for line in running.file.read_text().splitlines()))
    schema = replace(SCHEMA, rows=500, csv=CSVDialect(delimiter=":"))
    curator.registry.register("test", colons, schema)
    curator.registry.register("persons", colons, replace(schema, person="id", rows_per_person=3))
    for name in ("test", "persons"):
        curator.ledger.ceiling(name, 5)
        curator.accounts.grant("ada", name, ["research"])
    asked = ada.post("/datasets/patients/forests", FORM)
    ended(ada, asked.headers["location"], running)
    release = asked.headers["location"].replace("jobs", "releases")
    page = ada.get(release).text
    assert re.findall(r'<option value="([^"]+)">', page.partition('id="dataset"')[2].partition("</select>")[0]) == ["test", "patients"]
    form = {"dataset": "test", "purpose": "research", "epsilon": "5", "key": "score"}
    assert ada.post(f"{release}/quote", form).status_code == 200
    asked = ada.post(f"{release}/scores", form)
    ended(ada, asked.headers["location"], running)
    found = ada.get(f"{asked.headers['location'].replace('jobs', 'scores')}.json").json()
    assert abs(sum(map(sum, found["confusion"])) - 500) < 20
    assert "its schema is not that of the dataset" in ada.post(f"{release}/scores", {**form, "dataset": "persons", "key": "new"}).text
    assert curator.ledger.balance("persons").spent == 0


def test_the_page_of_a_score_says_that_labels_are_spelled_otherwise(running: Running, ada: Browser) -> None:
    capitals = running.file.with_name("capitals.csv")
    first, *lines = running.file.read_text().splitlines()
    capitals.write_text("\n".join([first, *(line[:-1] + line[-1].upper() for line in lines)]) + "\n")
    running.curator.registry.register("test", capitals, SCHEMA)
    running.curator.ledger.ceiling("test", 5)
    running.curator.accounts.grant("ada", "test", ["research"])
    asked = ada.post("/datasets/patients/forests", FORM)
    ended(ada, asked.headers["location"], running)
    form = {"dataset": "test", "purpose": "research", "epsilon": "5", "key": "score"}
    asked = ada.post(f"{asked.headers['location'].replace('jobs', 'releases')}/scores", form)
    ended(ada, asked.headers["location"], running)
    page = ada.get(asked.headers["location"].replace("jobs", "scores")).text
    assert "spelled otherwise than the declared classes (a, b)" in page


def test_the_delta_of_a_forest_stands_beside_its_epsilon(running: Running, ada: Browser, owner: Browser) -> None:
    """Suggested where the ceiling has so much left; what the form says is what is charged."""
    ledger = running.curator.ledger

    def delta(browser: Browser = ada) -> str:
        return re.findall(r'name="delta" value="([^"]*)"', browser.get("/datasets/patients").text.partition("<summary>More settings")[0])[0]

    assert (delta(), delta(owner)) == ("0", "0")
    ledger.ceiling("patients", 2, "0.000001")
    assert (delta(), delta(owner)) == ("1e-6", "1e-6")
    ledger.ceiling("patients", 2, 0, analyst="ada")
    assert (delta(), delta(owner)) == ("0", "1e-6")
    ledger.ceiling("patients", 2, "0.00001", analyst="ada")
    refused = ada.post("/datasets/patients/quote", {**FORM, "delta": delta()})
    assert "the algorithm dpdf is pure ε, so expected 0" in refused.text
    form = {**FORM, "algorithm": "hedgerow", "delta": delta()}
    quoted = ada.post("/datasets/patients/quote", form)
    assert hidden(quoted.text) == form
    assert "Pay ε = 0.5, δ = 1e-06 and build it" in quoted.text
    asked = ada.post("/datasets/patients/forests", hidden(quoted.text))
    ended(ada, asked.headers["location"], running)
    assert (ledger.balance("patients").spent, ledger.balance("patients").spent_delta) == (Fraction(1, 2), Fraction(1, 10**6))
    assert delta() == "0"


def test_sent_again_it_is_paid_once(running: Running, ada: Browser) -> None:
    found = {ada.post("/datasets/patients/forests", FORM).headers["location"] for _ in range(4)}
    assert len(found) == 1
    ended(ada, found.pop(), running)
    again = ada.post("/datasets/patients/forests", FORM)
    assert again.status_code == 303
    assert len(running.curator.ledger.reservations("patients")) == 1
    other = ada.post("/datasets/patients/forests", {**FORM, "epsilon": "0.25"})
    assert other.status_code == 409
    assert hidden(other.text)["key"] != FORM["key"]
    assert 'value="0.25"' in other.text
    changed = ada.post("/datasets/patients/change", FORM)
    assert (changed.status_code, 'value="0.5"' in changed.text, hidden(changed.text)["key"] != FORM["key"]) == (200, True, True)
    assert len(running.curator.ledger.reservations("patients")) == 1


@pytest.mark.parametrize(
    ("typed", "status", "words"),
    [
        ({"epsilon": "much"}, 422, "ε: expected a decimal"), ({"epsilon": ""}, 422, "ε: it is empty"), ({"epsilon": "0"}, 422, "above 0"),
        ({"purpose": "advertising"}, 403, "not granted to you for this purpose"), ({"algorithm": "plain"}, 422, "Algorithm: input should"),
        ({"max_depth": "-1"}, 422, "Depth: "), ({"n_estimators": "9", "algorithm": "hedgerow"}, 422, "no such setting"),
        ({"max_depth": "31"}, 422, "at most 30"), ({"bins": "1" * 30}, 422, "Cells of a number: "), ({"purpose": "a\0b"}, 422, "Purpose: "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("to", slow_but(["forests"], ["quote", "dummy", "forests"]))
def test_what_is_wrong_is_said_and_what_was_typed_is_kept(
    running: Running, ada: Browser, to: str, typed: dict[str, str], status: int, words: str
) -> None:
    form = {**FORM, "bins": "7", **typed}
    answer = ada.post(f"/datasets/patients/{to}", form)
    assert answer.status_code == status
    assert words in html.unescape(answer.text)
    assert 'role="alert"' in answer.text
    for name in ("epsilon", "max_depth", "bins", "n_estimators"):
        if name in form:
            assert f'name="{name}" value="{form[name]}"' in answer.text
    assert running.curator.ledger.reservations("patients") == []


def test_more_than_is_left(running: Running, ada: Browser) -> None:
    quoted = ada.post("/datasets/patients/quote", {**FORM, "epsilon": "2.5"})
    assert "This is more than is left" in quoted.text
    assert "/forests" not in quoted.text
    refused = ada.post("/datasets/patients/forests", {**FORM, "epsilon": "2.5"})
    assert refused.status_code == 402
    assert "short by 0.5" in refused.text
    assert 'value="2.5"' in refused.text


def test_a_failed_job_tells_its_cost(running: Running, ada: Browser) -> None:
    running.file.unlink()
    job = ada.post("/datasets/patients/forests", FORM).headers["location"]
    page = ended(ada, job, running)
    assert "It has failed" in page
    (reserved,) = running.curator.ledger.reservations("patients")
    said = "It has cost nothing" if not reserved.cost else "It has cost ε = 0.5"
    assert said in page
    assert "patients.csv" not in page
    assert ">failed</span>" in ada.get("/datasets/patients").text


def test_a_job_that_runs_is_looked_at_again(running: Running, ada: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as go_on:
        job = ada.post("/datasets/patients/forests", FORM).headers["location"]
        page = ada.get(job).text
        assert '<meta http-equiv="refresh" content="2">' in page
        assert "<progress" in page
        go_on()
        assert "It is ready" in ended(ada, job, running)


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Jobs wait until they are told to go on."""
    import threading

    from hedgerow.curator.http import work

    go_on, real = threading.Event(), work.trained
    monkeypatch.setattr(work, "trained", lambda *given, **how: (go_on.wait(180), real(*given, **how))[1])
    yield go_on.set
    go_on.set()


def test_closed_and_withdrawn(running: Running, ada: Browser, owner: Browser) -> None:
    job = ada.post("/datasets/patients/forests", FORM).headers["location"]
    ended(ada, job, running)
    release = job.replace("jobs", "releases")
    assert owner.post("/owner/datasets/patients/close", {"typed_name": "patient"}).status_code == 422
    assert not running.curator.ledger.balance("patients").closed
    assert owner.post("/owner/datasets/patients/close", {"typed_name": "patients"}).status_code == 303
    assert ">closed</span>" in ada.get("/").text
    page = ada.get("/datasets/patients").text
    assert '<form method="post" action="/datasets' not in page
    assert ada.post("/datasets/patients/forests", {**FORM, "key": "new"}).status_code == 409
    assert "takes no more requests" in ada.get(release).text
    assert owner.post("/owner/people/ada/withdraw", {"dataset": "patients", "purpose": "research"}).status_code == 303
    assert ada.get("/datasets/patients").status_code == 404
    assert "takes no more requests" in ada.get(release).text  # it was paid for


# ---------------------------------------------------------------- the owner


def test_an_owner_sets_a_service_up(running: Running, owner: Browser) -> None:
    wrong = owner.post("/owner/datasets", {"name": "more", "path": str(running.file) + "x", "schema": "line one\nline two"})
    assert wrong.status_code == 422
    assert "line one\nline two" in wrong.text
    made = owner.post("/owner/datasets", {"name": "more", "path": str(running.file), "schema": SCHEMA.to_toml()})
    assert made.headers["location"] == "/owner/datasets/more"
    assert "nothing can be spent" in owner.get("/owner/datasets/more").text
    odd = [{"of": "analyst", "epsilon": "1"}, {"of": "dataset", "who": "ada", "epsilon": "1"}, {"of": "dataset", "epsilon": "-1"}]
    for form in odd:
        assert owner.post("/owner/datasets/more/ceilings", form).status_code == 422
    assert owner.post("/owner/datasets/more/ceilings", {"of": "dataset", "epsilon": "3", "delta": "0.00001"}).status_code == 303
    assert owner.post("/owner/datasets/more/ceilings", {"of": "analyst", "who": "ada", "epsilon": "1"}).status_code == 303
    assert running.curator.ledger.balance("more", analyst="ada").epsilon == 1
    page = owner.get("/owner/datasets/more").text
    assert "ε: 0 of 3 spent, 3 left; δ: 0 of 1e-05 spent, 1e-05 left" in page
    assert "the analyst ada" in page

    assert owner.post("/owner/people", {"name": "ada"}).status_code == 409
    assert owner.post("/owner/people", {"name": "grace", "role": "analyst"}).headers["location"] == "/owner/people/grace"
    assert owner.post("/owner/people/grace/grants", {"dataset": "more", "purpose": ""}).status_code == 422
    assert owner.post("/owner/people/grace/grants", {"dataset": "more", "purpose": "research"}).status_code == 303
    assert owner.post("/owner/people/grace/tokens", {"days": "0"}).status_code == 422
    (token,) = re.findall(r"hrw_[\w-]{43}", owner.post("/owner/people/grace/tokens", {"days": "3"}).text)
    grace = Browser(running, token)
    assert "/datasets/more" in grace.get("/").text
    (record,) = running.curator.accounts.tokens("grace")
    for path in ("/owner/people/grace", "/owner/people", "/ledger"):
        assert "hrw_" not in owner.get(path).text
    assert owner.post(f"/owner/people/ada/tokens/{record.id}/revoke").status_code == 404
    assert owner.post(f"/owner/people/grace/tokens/{record.id}/revoke").status_code == 303
    assert grace.get("/").status_code == 303
    for path in ("/owner/people/nobody", "/owner/datasets/nothing", "/owner/people/%20"):
        assert owner.get(path).status_code == 404


@pytest.mark.slow
def test_the_ledger_is_paged(running: Running, owner: Browser) -> None:
    for i in range(60):
        running.curator.ledger.ceiling("patients", 2, what=f"again {i}")
    last, seen, path = running.curator.ledger.head().seq, [], "/ledger"
    while path:
        page = owner.get(path).text
        seen += [int(number) for number in re.findall(r'<tr><th scope="row">(\d+)</th>', page)]
        older = re.findall(r'href="(/ledger\?before=\d+)"', page)
        path = older[0] if older else ""
    assert seen == list(range(last, 0, -1))
    assert owner.get("/ledger?before=1").status_code == 200
    assert owner.get("/ledger?before=0").status_code == 422
    assert owner.get(f"/ledger?before={10**15}").text.count('<th scope="row">') == 50
    assert owner.get("/ledger/export?format=json").json()[0]["seq"] == 1
    assert owner.get("/ledger/export?format=csv").text.startswith("seq,when")
    assert "The ledger is sound" in owner.get("/ledger/verification").text
    reserved = running.curator.ledger.reserve("patients", "ada", "research", 1)
    assert reserved.key in owner.get("/ledger").text


def test_odd_bodies(running: Running, ada: Browser) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for content in (b"\xff=1", b"a=%ff", b"&".join([b"a=1"] * 200), b"purpose=" + b"x" * 300, b""):
        answer = ada.client.post("/datasets/patients/quote", content=content, headers={**ada.where, **kind})
        assert answer.status_code in (400, 422), content[:20]
        assert "<h1>" in answer.text
    answer = ada.client.post("/datasets/patients/quote", json=FORM, headers=ada.where)
    assert answer.status_code == 415
    large = ada.client.post("/datasets/patients/quote", content=b"x" * (2 << 20), headers={**ada.where, **kind})
    assert (large.status_code, "too large" in large.text, "<h1>" in large.text) == (413, True, True)
    assert ada.client.put("/datasets/patients", headers=ada.where).status_code == 405


def test_errors_tell_nothing(running: Running, ada: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("row 57.3")

    monkeypatch.setattr(type(running.curator.accounts), "visible", fails)
    answer = ada.get("/")
    assert (answer.status_code, "57.3" in answer.text, "Something went wrong" in answer.text) == (500, False, True)


# ---------------------------------------------------------------- readable


def test_colours_can_be_told_apart() -> None:
    """WCAG's contrast of text with what is behind it, in both schemes."""
    from hedgerow.curator.web.templating import style

    sheet = style()
    light = dict(re.findall(r"--([\w-]+):(#[0-9a-f]{3,6})", re.sub(r"@media \(prefers-color-scheme:dark\)\{:root\{[^}]*\}", "", sheet)))
    dark = light | dict(re.findall(r"--([\w-]+):(#[0-9a-f]{3,6})", "".join(re.findall(r"dark\)\{:root\{([^}]*)\}", sheet))))
    assert light["paper"] != dark["paper"]
    for scheme in (light, dark):
        pairs = [("ink", "paper"), ("ink", "card"), ("soft", "paper"), ("soft", "card"), ("ink", "good"), ("ink", "bad"), ("ink", "track")]
        pairs += [("button-ink", "button"), ("danger", "card")]
        for text, behind in pairs:
            assert contrast(scheme[text], scheme[behind]) >= 4.5, (text, behind)


def contrast(one: str, other: str) -> float:
    first, second = sorted((luminance(one), luminance(other)))
    return (second + 0.05) / (first + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_ledger_shows_what_was_paid_for_and_has_no_answer(running: Running, owner: Browser) -> None:
    ledger = running.curator.ledger
    assert "without an answer" not in owner.get("/ledger").text
    ledger.opened(ledger.reserve("patients", "ada", "research", "0.1", what="fit <rdt>").key)
    page = owner.get("/ledger").text
    assert "Paid for, without an answer" in page
    assert "before the answer was stored" in page
    assert "fit &lt;rdt&gt;" in page
    assert "Not settled" not in page  # it is listed once
    ledger.reserve("patients", "ada", "research", "0.1", what="a job that waits")
    assert "Not settled" in owner.get("/ledger").text
