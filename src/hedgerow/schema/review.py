"""Taking the marks of reviewed entries out of a schema file, and leaving everything else in it as its owner wrote it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection

from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import read, write

_HEAD = re.compile(r"\s*\[(?P<inside>[^\[\]]+|[^\[\]]*\".*\")\]\s*(#.*)?")
_MARK = re.compile(r"\s*unreviewed\s*=\s*true\s*(#.*)?")
_ROWS_MARK = re.compile(r"\s*unreviewed_rows\s*=\s*true\s*(#.*)?")


def accepted_text(text: str, names: Collection[str], source: str = "schema") -> str:
    """The text of a schema with these entries accepted; written anew where its lines are not as `write` has them."""
    before = read(text, source)
    after = before.accept(*names)
    done = set(before.unreviewed) - set(after.unreviewed)
    edited = "".join(line for line in _lines(text, done, before))
    if not after.unreviewed:
        edited = _without_draft_head(edited)
    return edited if _is(edited, after) else write(after)


def _lines(text: str, done: Collection[str], schema: Schema) -> list[str]:
    kept, entry = [], ""
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if head := _HEAD.fullmatch(bare):
            entry = _entry_of(head["inside"], schema)
        marked = _MARK.fullmatch(bare) is not None and entry in done
        if not marked and not ("rows" in done and _ROWS_MARK.fullmatch(bare)):
            kept.append(line)
    return kept


def _entry_of(inside: str, schema: Schema) -> str:
    """Which entry a head such as `target` or `attributes."a b"` begins; nothing for a table inside one."""
    try:
        plain = tomllib.loads(f"[{inside}]")
    except tomllib.TOMLDecodeError:
        return ""
    if list(plain) == ["target"]:
        return schema.target.name
    names = list(plain.get("attributes", {})) if list(plain) == ["attributes"] else []
    return names[0] if len(names) == 1 and not plain["attributes"][names[0]] else ""


def _without_draft_head(text: str) -> str:
    """Without the two lines that say that it is a draft."""
    return re.sub(r"(?m)^# DRAFT: .*\n# differential privacy can be claimed .*\n#?\n?", "", text, count=1)


def _is(text: str, schema: Schema) -> bool:
    try:
        found = read(text)
    except ValueError:
        return False
    return found == schema and found.csv == schema.csv
