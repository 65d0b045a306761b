"""Docstrings as Markdown: a block of lines `name:  what it is` becomes a list."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_ENTRY = re.compile(r"^(\*{0,2}[A-Za-z_]\w*(?:, \*{0,2}\w+)*):\s+(\S.*)$")


def as_list(text: str) -> str:
    """`a:  first` and `b:  second`, with their indented further lines, as a list; other paragraphs as they are."""
    return "\n\n".join(_paragraph(each) for each in text.split("\n\n"))


def _paragraph(text: str) -> str:
    lines = text.split("\n")
    if not _ENTRY.match(lines[0]) or not all(_ENTRY.match(line) or line.startswith("  ") for line in lines):
        return text
    if sum(bool(_ENTRY.match(line)) for line in lines) < 2 and "  " not in lines[0]:
        return text
    made: list[str] = []
    for line in lines:
        found = _ENTRY.match(line)
        made.append(f"- `{found.group(1).strip()}`: {found.group(2)}" if found else f"  {line.strip()}")
    return "\n".join(made)


class Docstrings(Extension):
    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_list(obj.docstring.value)
