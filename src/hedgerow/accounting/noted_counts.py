"""Which tables a budget file has paid for that are in a forest: what the command line notes with a charge, once its counts are saved.

A table is known by its name in certificates if that is random. Two tables may have the same declared name: those are known by the hash of
the release that was made of them, and of releases to which rows were added from the same budget file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.accounting.meter import NOTE, Entry

RANDOM = re.compile("[0-9a-f]{32}")


def short_hash(names: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:12]


def rows_at(place: Sequence[Any]) -> str:
    """The name of rows, by where they are: nothing that is in them."""
    return short_hash(["fit", *place])


def names_of(release: Any, parts: Iterable[Any]) -> set[str]:
    """By which a release, and those of its tables, are known."""
    return {short_hash([release.content_hash]), *(short_hash(part.key) for part in parts if RANDOM.fullmatch(part.id))}


@dataclass(frozen=True)
class Noted:
    """tables: by which the counts are known; rows: of which they are; before: the release that they were added to, or "" """

    tables: frozenset[str]
    rows: str
    before: str

    @classmethod
    def of(cls, entry: Entry) -> Noted | None:
        """None where nothing is noted. The first fits noted no rows: their key begins with them."""
        found = NOTE.search(entry.what)
        return None if found is None else cls(frozenset(found[1].split()), found[2] or entry.key[:12], found[3] or "")


def note(place: Sequence[Any], release: Any, part: Any, before: Any = None) -> str:
    """What is added to an entry's `what`. part: of the table that was counted; before: the release that its counts were added to"""
    after = "" if before is None else f" after {short_hash([before.content_hash])}"
    return f", counts {' '.join(sorted(names_of(release, [part])))} of rows {rows_at(place)}{after}"


def paid_within(entries: Sequence[Entry], place: Sequence[Any], release: Any, parts: Iterable[Any]) -> Entry | None:
    """The charge for rows at this place, where they are one of these tables of the release, as far as notes tell: never on suspicion."""
    known, rows = names_of(release, parts), rows_at(place)
    for entry in reversed(entries):  # what was added to is older than what came of it
        found = Noted.of(entry)
        if found is None or not known & found.tables:
            continue
        if found.rows == rows:
            return entry
        known.add(found.before)
    return None
