"""Heads that are sent elsewhere: to a file on another disk, a URL or the log. Whoever keeps them notices a ledger that was put back."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hedgerow.curator.http.logs import error_fields, log
from hedgerow.curator.ledger.chain import Head
from hedgerow.curator.ledger.heads import FORMAT, HeadLine, signed_line
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.errors import HedgerowError, LedgerError
from hedgerow.release.signing import load_private_key, public_text

SECONDS = 60.0  # between two looks at the head; it is sent where it has moved
URL_SECONDS = 10.0
LOG = "log"
Send = Callable[[HeadLine, str], None]


def target_of(text: str) -> Send:
    """log, a URL or the path of a file, as the owner writes it."""
    if text == LOG:
        return _to_log
    if text.startswith(("http://", "https://")):
        return lambda line, key: _to_url(text, line, key)
    path = Path(text).absolute()
    if not path.parent.is_dir() or path.is_dir() or "://" in text:
        raise LedgerError(f"--send-heads: got {text!r}; expected log, an address http(s)://… or a file in a folder that exists.")
    return lambda line, key: _to_file(path, line, key)


class HeadSender:
    """Sends the head at the start, at the end, and in between when it has moved. What fails is in the log, and is tried again."""

    def __init__(self, ledger: Ledger, key_path: Path, targets: Sequence[Send], seconds: float = SECONDS) -> None:
        self._ledger, self._key, self._targets, self._seconds = ledger, load_private_key(key_path), list(targets), seconds
        self._sent: list[Head | None] = [None] * len(self._targets)

    def send(self) -> None:
        """To those who do not have it yet."""
        try:
            head = self._ledger.head()
        except HedgerowError as error:
            log("head not sent", logging.WARNING, **error_fields(error))
            return
        for number, target in enumerate(self._targets):
            if self._sent[number] != head:
                try:
                    target(signed_line(head, self._key), public_text(self._key))
                    self._sent[number] = head
                except Exception as error:
                    log("head not sent", logging.WARNING, **error_fields(error))

    @contextmanager
    def running(self) -> Iterator[None]:
        ended = threading.Event()

        def watch() -> None:
            self.send()
            while not ended.wait(self._seconds):
                self.send()

        thread = threading.Thread(target=watch, daemon=True, name="hedgerow heads")
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(2 * URL_SECONDS)
            self.send()


def _to_log(line: HeadLine, key: str) -> None:
    log("head", head=str(line.head), when=line.when, signature=line.signature, key=key)


def _to_file(path: Path, line: HeadLine, key: str) -> None:
    """Lines as in the file of heads: `hedgerow ledger verify --heads` reads them."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        if not file.tell():
            file.write(f"{FORMAT} {key}\n".encode())
        file.write(f"{line}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def _to_url(url: str, line: HeadLine, key: str) -> None:
    import urllib3

    body = json.dumps({"head": str(line.head), "when": line.when, "signature": line.signature, "key": key}).encode()
    headers = {"Content-Type": "application/json"}
    answer = urllib3.request("POST", url, body=body, headers=headers, timeout=URL_SECONDS, retries=False, redirect=False)
    if answer.status >= 300:
        raise LedgerError(f"heads: the address that they are sent to has answered {answer.status}; expected 200.")
