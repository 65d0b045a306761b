"""Notes for the owner beside the ledger: when it was last verified, copied and served. Nothing depends on them."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from hedgerow.curator.ledger.transactions import now, timestamp

FILE = "status.json"
STARTED, STOPPED = "started", "stopped"  # by a service: with the head when it began, and when it ended by itself


def notes_in(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}


def time_of(note: str) -> str:
    """When it was written; such texts compare as the times do."""
    return note.partition(": ")[0]


def write_note(folder: Path, what: str, text: str) -> None:
    """Where the folder cannot be written there is none."""
    notes = {**notes_in(folder), what: f"{timestamp(now())}: {text}"}
    part = folder / f"{FILE}.{os.getpid()}.part"
    with contextlib.suppress(OSError):
        part.write_text(json.dumps(notes, indent=1) + "\n", encoding="utf-8")
        part.replace(folder / FILE)
