"""One JSON line for each thing that happened, to stderr: who, what, how it ended and how long it took. Never a value."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from hedgerow.errors import HedgerowError, SchemaError

NAME = "hedgerow.curator"


class JSONLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        fields = getattr(record, "fields", None)
        content = {"when": when, "level": record.levelname.lower(), **(fields or {"event": "log", "message": record.getMessage()})}
        return json.dumps(content, default=str)


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    logging.getLogger(NAME).log(level, event, extra={"fields": {"event": event, **fields}})


def told(error: BaseException) -> dict[str, Any]:
    """An error for the owner's log: our own with its text, which holds no value; any other by its kind and place alone.

    About a schema the text may name a declared value, so it is not logged: whoever has sent it is told.
    """
    found: dict[str, Any] = {"kind": type(error).__name__}
    if isinstance(error, HedgerowError) and not isinstance(error, SchemaError):
        return {**found, "message": str(error)}
    return {**found, "where": [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-6:]]}


def write_to_stderr() -> None:
    """Our lines, and those of the server, as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines())
    for name in (NAME, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == NAME else logging.WARNING)
