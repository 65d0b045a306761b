"""Predictions by stored releases: free, since only what was released is used. An LRU cache keeps the releases in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from hedgerow.curator.http.errors import Refusal
from hedgerow.curator.http.limits import Limits
from hedgerow.release.release import Release
from hedgerow.schema.columns import objects

VALUES = (str, int, float, bool, type(None))


class ReleaseCache:
    """An LRU cache of parsed releases. Who may use one is checked before."""

    def __init__(self, limits: Limits) -> None:
        self._most, self._most_bytes = limits.kept_releases, limits.kept_bytes
        self._cached: OrderedDict[str, tuple[Release, int]] = OrderedDict()
        self._lock, self._reading = threading.Lock(), threading.Lock()

    def get(self, id: str, content: Callable[[], bytes]) -> Release:
        """A cached release, or one parsed from its content: one at a time, so that many requests for one do not read it many times."""
        found = self.cached(id)
        if found is not None:
            return found
        with self._reading:
            found = self.cached(id)
            if found is not None:
                return found
            document = content()
            release = Release.from_json(document)
            release.predict_proba({name: objects([None]) for name in release.schema.names})  # what is made once is made now
            with self._lock:
                self._cached[id] = release, len(document)
                while len(self._cached) > self._most or (len(self._cached) > 1 and self._bytes() > self._most_bytes):
                    self._cached.popitem(last=False)
            return release

    def cached(self, id: str) -> Release | None:
        with self._lock:
            if id not in self._cached:
                return None
            self._cached.move_to_end(id)
            return self._cached[id][0]

    def _bytes(self) -> int:
        return sum(size for _, size in self._cached.values())


def predicted(release: Release, rows: Sequence[dict[str, Any]], most: int) -> dict[str, Any]:
    """The class and the probabilities of each row. A row must have every declared column; a value may be anything that JSON has."""
    names = release.schema.names
    if len(rows) > most:
        raise Refusal(422, "invalid", f"rows: got {len(rows)}; this service predicts at most {most} at once.")
    for number, row in enumerate(rows):
        absent = [name for name in names if name not in row]
        if absent:
            raise Refusal(422, "columns", f"rows.{number}: {_few(absent)} missing; expected the declared columns {_few(names)}.")
        strange = [name for name in names if not isinstance(row[name], VALUES)]
        if strange:
            raise Refusal(422, "invalid", f"rows.{number}.{strange[0][:60]}: expected a number, a text, true, false or null.")
    shares = release.predict_proba({name: objects([row[name] for row in rows]) for name in names})
    return {
        "classes": list(release.schema.target.classes),
        "predictions": [release.schema.target.classes[place] for place in shares.argmax(axis=1)],
        "probabilities": shares.tolist(),
    }


def _few(names: Sequence[str]) -> str:
    return ", ".join(repr(name)[:60] for name in names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
