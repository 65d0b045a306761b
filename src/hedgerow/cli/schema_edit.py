"""`hedgerow schema edit`: a schema on a page in the owner's own browser.

The page is served on this machine alone, at an address with a random token. Nobody else's page can read or send it: what comes without
the token is not found, and a form is taken only with the Host and the Origin of this page.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import tempfile
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

from hedgerow.cli.schema_page import goodbye, page
from hedgerow.errors import SchemaError
from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.schema.form import fields_of, schema_of
from hedgerow.schema.review import accepted_text
from hedgerow.schema.schema import Schema

HOST = "127.0.0.1"
MOST_BYTES = 20_000_000  # of a form: domains may be long
MOST_FIELDS = 100_000
PATIENCE = 30  # seconds for a request to arrive


class SchemaFile:
    """The file that is edited. What it held at first stays beside it, with `.bak` after its name."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.backup = self.path.with_name(f"{self.path.name}.bak")
        self.saved = False
        self._lock = threading.Lock()

    def read(self) -> tuple[str, str]:
        """Its text, and the digest by which a change is noticed."""
        data = self.path.read_bytes()
        return data.decode("utf-8"), hashlib.sha256(data).hexdigest()

    def save(self, fields: dict[str, str]) -> str:
        """The form in the file, as one step; refused where it is not valid, or where the file is not what the form was made from."""
        with self._lock:
            text, digest = self.read()
            if not hmac.compare_digest(fields.get("digest", ""), digest):
                raise SchemaError(f"{self.path.name} was changed by somebody else since this page was opened. Open the page again.")
            before = Schema.from_toml(text, self.path.name)
            schema = schema_of(fields, before, self.path.name)
            new = _new_text(text, before, schema, self.path.name)
            if new == text:
                return "Nothing was changed."
            if not self.saved:
                _write(self.backup, text, self.path)
            _write(self.path, new, self.path)
            self.saved = True
        waiting = schema.unreviewed
        left = f"{len(waiting)} wait for review: {', '.join(waiting)}." if waiting else "Every entry is reviewed."
        return f"Saved. What was there before is in {self.backup.name}. {left}"


def _new_text(text: str, before: Schema, schema: Schema, source: str) -> str:
    """Where entries were only accepted, the file stays as it is but for their marks: comments stay."""
    accepted = [name for name in before.unreviewed if name not in schema.unreviewed]
    if accepted and before.accept(*accepted) == schema:
        return accepted_text(text, accepted, source)
    return text if before == schema else schema.to_toml()


def _write(path: Path, text: str, like: Path) -> None:
    """Whole or not at all, and as private as the file that it is like."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(like, name)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class Editor(ThreadingHTTPServer):
    """Serves one schema until its owner is done."""

    daemon_threads = True

    def __init__(self, path: Path, port: int = 0) -> None:
        self.file = SchemaFile(path)
        self.token = SYSTEM.bytes(24).hex()
        super().__init__((HOST, port), _Handler)
        self.origin = f"http://{HOST}:{self.server_address[1]}"
        self.url = f"{self.origin}/{self.token}/"

    def finish(self) -> None:
        threading.Thread(target=self.shutdown, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Editor
    timeout = PATIENCE
    server_version, sys_version = "hedgerow", ""

    def do_GET(self) -> None:
        if self._refused():
            return
        text, digest = self.server.file.read()
        try:
            schema = Schema.from_toml(text, self.server.file.path.name)
        except SchemaError as error:  # somebody has broken it in an editor meanwhile
            self._answer(HTTPStatus.UNPROCESSABLE_ENTITY, goodbye(str(error), nonce := SYSTEM.bytes(16).hex()), nonce)
            return
        self._page(HTTPStatus.OK, schema, fields_of(schema), digest)

    def do_POST(self) -> None:
        if self._refused() or (fields := self._fields()) is None:
            return
        file, what = self.server.file, fields.pop("do", "save")
        nonce = SYSTEM.bytes(16).hex()
        if what == "leave":
            self._answer(HTTPStatus.OK, goodbye("Nothing more was saved.", nonce), nonce)
            self.server.finish()
            return
        try:
            said = file.save(fields)
        except SchemaError as error:
            text, _ = file.read()
            schema = Schema.from_toml(text, file.path.name)
            told = f"Not saved. {error}"
            self._page(HTTPStatus.UNPROCESSABLE_ENTITY, schema, fields, fields.get("digest", ""), said=told, bad=True)
            return
        if what == "finish":
            self._answer(HTTPStatus.OK, goodbye(said, nonce), nonce)
            self.server.finish()
            return
        text, digest = file.read()
        schema = Schema.from_toml(text, file.path.name)
        self._page(HTTPStatus.OK, schema, fields_of(schema), digest, said=said)

    def _refused(self) -> bool:
        """Another name for this machine, another page, or no token: nothing is told."""
        mine = self.headers.get("Host") == self.server.origin.removeprefix("http://")
        there = hmac.compare_digest(self.path.encode(), f"/{self.server.token}/".encode())
        sent_by_page = self.command == "GET" or self.headers.get("Origin") == self.server.origin
        if mine and there and sent_by_page:
            return False
        self.close_connection = True
        status = HTTPStatus.NOT_FOUND if not there else HTTPStatus.FORBIDDEN
        self._answer(status, f"{status.value} {status.phrase}\n", kind="text/plain")
        return True

    def _fields(self) -> dict[str, str] | None:
        length = self.headers.get("Content-Length", "")
        form = self.headers.get("Content-Type", "").split(";")[0] == "application/x-www-form-urlencoded"
        if not form or not length.isdecimal() or int(length) > MOST_BYTES:
            self.close_connection = True
            self._answer(HTTPStatus.BAD_REQUEST, "expected a form\n", kind="text/plain")
            return None
        sent = self.rfile.read(int(length)).decode("utf-8", errors="replace")
        try:
            return dict(parse_qsl(sent, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError:
            self._answer(HTTPStatus.BAD_REQUEST, "too many fields\n", kind="text/plain")
            return None

    def _page(self, status: HTTPStatus, schema: Schema, fields: dict[str, str], digest: str, *, said: str = "", bad: bool = False) -> None:
        nonce, name = SYSTEM.bytes(16).hex(), self.server.file.path.name
        safe = digest if len(digest) == 64 and digest.isalnum() else ""
        self._answer(status, page(schema, fields, name=name, digest=safe, nonce=nonce, said=said, bad=bad), nonce)

    def _answer(self, status: HTTPStatus, text: str, nonce: str = "", kind: str = "text/html") -> None:
        content = text.encode("utf-8")
        self.send_response(status)
        style = f"style-src 'nonce-{nonce}'; " if nonce else ""
        policy = f"default-src 'none'; {style}form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", policy),
            ("Referrer-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: an address holds the token."""
