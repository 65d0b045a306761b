"""`hedgerow schema edit`: who is answered, what is saved, what stays as it was. In a real browser: tests/browser."""

from __future__ import annotations

import http.client
import re
import stat
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from hedgerow import Categorical, Numeric, Schema, Target
from hedgerow.cli.schema_edit import Editor
from hedgerow.schema.form import ON, fields_of

SCHEMA = Schema(
    [Numeric("age", 17, 93, unreviewed=True), Categorical("<b>sex</b>", ["f", "m"], unreviewed=True)],
    Target("ill", ["no", "yes"], unreviewed=True),
)


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    path = tmp_path / "schema.toml"
    path.write_text("# a comment of the owner\n" + SCHEMA.to_toml(), encoding="utf-8")
    path.chmod(0o600)
    with Editor(path) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def send(editor: Editor, fields: dict[str, str] | None = None, path: str | None = None, **headers: str) -> tuple[int, str, Any]:
    where = urlsplit(editor.url)
    connection = http.client.HTTPConnection("127.0.0.1", where.port or 0, timeout=60)
    given = {"Origin": editor.origin, "Content-Type": "application/x-www-form-urlencoded"} if fields is not None else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = None if fields is None else urlencode(fields)
    connection.request("GET" if fields is None else "POST", path or where.path, body, given)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer.headers


def digest(editor: Editor) -> dict[str, str]:
    return {"digest": editor.file.read()[1]}


def said(text: str) -> str:
    found = re.search(r'role="(?:alert|status)">(.*?)</p>', text, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def test_the_page_shows_each_entry_and_nothing_from_elsewhere(editor: Editor) -> None:
    status, text, headers = send(editor)
    assert status == 200
    assert "3 of 3 entries wait for review" in text
    assert "&lt;b&gt;sex&lt;/b&gt;" in text
    assert "<b>sex" not in text
    assert not re.search(r"https?://|<script", text)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


def test_whoever_has_no_token_or_comes_from_another_page_gets_nothing(editor: Editor) -> None:
    fields = fields_of(SCHEMA) | digest(editor) | {"0.high": "100"}
    before = editor.file.read()
    port = urlsplit(editor.url).port
    for path in ("/", "/x/", urlsplit(editor.url).path + "x", urlsplit(editor.url).path.rstrip("/")):
        assert send(editor, path=path)[:2] == (404, "404 Not Found\n")
        assert send(editor, fields, path=path)[0] == 404
    for headers in ({"Host": "evil.example"}, {"Host": f"localhost:{port}"}):  # another name that leads here
        assert send(editor, **headers)[:2] == (403, "403 Forbidden\n")
    for origin in ("http://evil.example", "null", f"http://localhost:{port}", "http://127.0.0.1"):
        assert send(editor, fields, Origin=origin)[0] == 403
    assert send(editor, fields, Content_Type="text/plain")[0] == 400
    assert editor.file.read() == before


def test_it_is_saved_whole_and_what_was_there_is_kept(editor: Editor) -> None:
    path, before = editor.file.path, editor.file.path.read_text()
    status, text, _ = send(editor, fields_of(SCHEMA) | digest(editor) | {"0.low": "0", "0.high": "120", "0.public": ON, "do": "save"})
    assert status == 200
    assert said(text) == "Saved. What was there before is in schema.toml.bak. 2 wait for review: <b>sex</b>, ill."
    assert Schema.load(path).attributes[0] == Numeric("age", 0, 120)
    send(editor, fields_of(Schema.load(path)) | digest(editor) | {"0.high": "110"})
    assert Schema.load(path).attributes[0] == Numeric("age", 0, 110)
    assert editor.file.backup.read_text() == before  # what was there at first, not in between
    assert {stat.S_IMODE(each.stat().st_mode) for each in (path, editor.file.backup)} == {0o600}
    assert sorted(each.name for each in path.parent.iterdir()) == ["schema.toml", "schema.toml.bak"]


def test_entries_that_are_only_ticked_leave_the_file_as_its_owner_wrote_it(editor: Editor) -> None:
    ticks = {"0.public": ON, "1.public": ON, "target.public": ON, "do": "finish"}
    status, text, _ = send(editor, fields_of(SCHEMA) | digest(editor) | ticks)
    assert (status, said(text)) == (200, "Saved. What was there before is in schema.toml.bak. Every entry is reviewed.")
    assert "# a comment of the owner" in editor.file.path.read_text()
    assert Schema.load(editor.file.path) == SCHEMA.accept()


def test_what_is_not_valid_or_was_changed_meanwhile_is_not_saved(editor: Editor) -> None:
    before = editor.file.read()
    status, text, _ = send(editor, fields_of(SCHEMA) | digest(editor) | {"0.low": "200 years", "0.public": ON})
    assert status == 422
    assert said(text).startswith("Not saved. ")
    assert "'age', low: got '200 years'; expected a number" in said(text)
    assert 'value="200 years"' in text  # what was typed is still there
    assert editor.file.read() == before
    old = digest(editor)
    SCHEMA.accept("age").save(editor.file.path)
    status, text, _ = send(editor, fields_of(SCHEMA) | old | {"0.high": "100"})
    assert (status, "changed by somebody else" in said(text)) == (422, True)
    assert Schema.load(editor.file.path) == SCHEMA.accept("age")
    assert not editor.file.backup.exists()
    assert "Nothing was changed" in said(send(editor, fields_of(SCHEMA.accept("age")) | digest(editor))[1])
