"""HTTP transport to one service: requests with a token, retries, and refusals as this package's errors."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlsplit

from hedgerow.errors import BudgetError, CuratorError, HedgerowError, PlanError

LOCAL = ("127.0.0.1", "::1", "localhost")
MOST_BYTES, MOST_JSON, MOST_REFUSED = 1 << 28, 1 << 26, 1 << 20  # of an answer: a release or counts; other JSON; a refusal
REQUEST_SECONDS = 600.0  # for a whole request, however lively its service is
PIECE = 1 << 20  # bytes that are read at once
AGAIN = 2  # times that a request is sent anew after a connection was lost
NEEDS = "the client of a service needs a package that is not installed: pip install 'hedgerow[client]'."


class Transport:
    """Connections to one service, which are kept and may be shared by threads. The token is in no message and no repr."""

    def __init__(self, url: str, token: str, timeout: float = 60, *, look_timeout: float = 3600, plain_http: bool = False) -> None:
        """timeout: seconds without a sign of life after which a request has failed; look_timeout: after which a query has, that is
        under way; plain_http: also where the host is not this one.
        """
        try:
            import urllib3
        except ModuleNotFoundError:
            raise CuratorError(NEEDS) from None
        self.url = checked_address(url, plain_http)
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip() or len(token) > 200:
            raise CuratorError("token: expected the text that the owner gave, hrw_…")
        self._token, self.look_timeout, self._seconds = token.strip(), look_timeout, max(REQUEST_SECONDS, timeout)
        self._pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=min(10.0, timeout), read=timeout), maxsize=8, retries=False)
        self._pool.pool_classes_by_scheme = _watched_pools()

    def json(self, method: str, path: str, body: Any = None, *, key: str | None = None, repeatable: bool = False) -> Any:
        """The answer as JSON. `repeatable`: sent again it would do nothing anew, so it may be where a connection was lost."""
        content = self.bytes(method, path, body, key=key, repeatable=repeatable, most=MOST_JSON)
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise CuratorError(f"{self.url}: its answer cannot be read; expected JSON. Is it a Hedgerow service?") from None

    def bytes(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, repeatable: bool = False, most: int = MOST_BYTES
    ) -> bytes:
        """The answer as it came, of at most so many bytes. A refusal is raised."""
        import urllib3

        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json, */*", "Accept-Encoding": "identity"}
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
        tries = 1 + (AGAIN if repeatable or key is not None or method == "GET" else 0)
        for left in reversed(range(tries)):
            try:
                with _Deadline(self._seconds):
                    answer = self._pool.request(
                        method, self.url + path, body=content, headers=headers, redirect=False, preload_content=False
                    )
                    status = answer.status
                    with answer:
                        found = _read_all(self.url, answer, most if 200 <= status < 300 else MOST_REFUSED)
                break
            except TimeoutError:
                raise CuratorError(
                    f"{self.url}: the service did not answer within {self._seconds:g} seconds. Check that it runs, then try again."
                ) from None
            except urllib3.exceptions.ReadTimeoutError:
                lost = "did not answer in time"
            except urllib3.exceptions.SSLError:
                raise CuratorError(f"{self.url}: its certificate cannot be trusted; expected one that this machine knows.") from None
            except (urllib3.exceptions.HTTPError, OSError):
                lost = "cannot be reached"
            if not left:
                raise CuratorError(f"{self.url}: the service {lost}. Check that it runs, then try again.")
        if 200 <= status < 300:
            return found
        raise refusal(self.url, status, found)

    def close(self) -> None:
        self._pool.clear()

    def __repr__(self) -> str:
        return f"Transport({self.url!r})"


def checked_address(url: str, plain_http: bool = False) -> str:
    """Without a slash at its end. A token must not travel in the open, so http is for this machine alone."""
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    expected = "expected https://host, or http://127.0.0.1:8300 for a service on this machine."
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise CuratorError(f"address: got {url!r:.200}; {expected}")
    if parts.scheme == "http" and parts.hostname not in LOCAL and not plain_http:
        raise CuratorError(f"address: got {url!r:.200}, over which your token could be read on its way; {expected}")
    return url.rstrip("/")


def _read_all(url: str, answer: Any, most: int) -> bytes:
    """All of an answer, or an error: a part would be another answer, and a packed one could be of any size."""
    packed = answer.headers.get("Content-Encoding", "identity") != "identity"
    found = bytearray()
    while not packed and len(found) <= most and (piece := answer.read(PIECE, decode_content=True)):
        found += piece
    if packed or len(found) > most:
        raise CuratorError(f"{url}: its answer is packed, or larger than {most:,} bytes. Is it a Hedgerow service?")
    return bytes(found)


class _Deadline:
    """The time of one request: when it is over the socket is shut, so that nobody waits for a byte now and then."""

    under_way = threading.local()

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._socket: socket.socket | None = None
        self._over = False

    def watch(self, connected: socket.socket) -> None:
        self._socket = connected
        if self._over:
            self._end()

    def _end(self) -> None:
        self._over = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> _Deadline:
        self.under_way.deadline = self
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.under_way.deadline = None
        if self._over:
            raise TimeoutError from None


def _watched_pools() -> dict[str, Any]:
    """Pools of connections that tell the deadline under way which socket they use."""
    import urllib3

    def watched(pool: Any) -> Any:
        class Connection(pool.ConnectionCls):  # type: ignore[misc]
            def request(self, *given: Any, **how: Any) -> None:
                super().request(*given, **how)
                if self.sock is not None:
                    _Deadline.under_way.deadline.watch(self.sock)

        return type(pool.__name__, (pool,), {"ConnectionCls": Connection})

    return {"http": watched(urllib3.HTTPConnectionPool), "https": watched(urllib3.HTTPSConnectionPool)}


def refusal(url: str, status: int, content: bytes) -> HedgerowError:
    """The refusal of a service as an error, of the kind that the same refusal has on one's own table."""
    try:
        error = json.loads(content)["error"]
        code, message = one_line(error["code"], 100), one_line(error["message"], 2000)
    except (ValueError, TypeError, KeyError, RecursionError):
        code, message = "", f"it answered with status {status}, as no Hedgerow service does. Give its address alone: https://host."
    text = f"{url}: {message}"
    if status == 402:
        return BudgetError(text)
    if code == "plan":
        return PlanError(text)
    return CuratorError(text, status, code)


def path_segment(name: str) -> str:
    """A name as one segment of a URL path."""
    return quote(name, safe="")


def one_line(text: Any, most: int = 200) -> str:
    """Sanitised text from a service: one line, without control characters that a terminal would obey."""
    return " ".join("".join(each if each.isprintable() else " " for each in str(text)[:most]).split())
