"""Structured logs: one JSON line per event on stderr, with who, what, how it ended and how long it took. Never a value."""

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


def error_fields(error: BaseException) -> dict[str, Any]:
    """Log fields of an error: our own with its text, which holds no value; any other by its kind and place alone.

    About a schema the text may name a declared value, so it is not logged: it is in the answer to whoever sent it.
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
