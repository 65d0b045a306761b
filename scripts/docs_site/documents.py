"""Documents as they stand in the repository, made ready for the site: links, lists, and examples that stand outside of fences."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

OUTSIDE = {  # where it is, and its page
    "README.md": "index.md",
    "PRIVACY.md": "PRIVACY.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "src/hedgerow/mechanisms/PROOF.md": "PROOF.md",
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def for_site(text: str, page: str, root: Path) -> str:
    """The Markdown of a page: links lead to pages, those to files that are no pages are plain text, examples are code."""
    path = next((path for path, its_page in OUTSIDE.items() if its_page == page), f"docs/{page}")
    return _examples_fenced(_lists_apart(_LINK.sub(lambda found: _link(found, path, page, root), text)))


def _link(found: re.Match[str], path: str, page: str, root: Path) -> str:
    mark, text, target, anchor = found.group(1), found.group(2), found.group(3), found.group(4) or ""
    if re.match(r"[a-z]+:", target) or target.startswith("/"):
        return found.group(0)
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    on_site = OUTSIDE.get(place) or (place.removeprefix("docs/") if place.startswith("docs/") else "")
    if on_site.endswith(".ipynb"):
        on_site = on_site.removesuffix(".ipynb") + ".md"
    if on_site:
        if not mark and re.fullmatch(r"[\w/]+\.md", text):  # on the site a page is called by its title
            text = _title(root / place, anchor) or text
        return f"{mark}[{text}]({posixpath.relpath(on_site, posixpath.dirname(page) or '.')}{anchor})"
    if (root / place).exists():  # a file of the repository that is no page
        return text if text.startswith("`") else f"`{text}`"
    return found.group(0)


def _title(path: Path, anchor: str) -> str:
    """Of the document, or of the section that the link leads to."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) if path.is_file() else []
    sections = [title for title in titles if re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") == anchor[1:]]
    return next(iter(sections if anchor else titles), "")


def _lists_apart(text: str) -> str:
    """A list may begin right below a paragraph; here it wants an empty line between."""
    lines: list[str] = []
    fenced = in_list = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        item = bool(_ITEM.match(line)) and not fenced
        if item and not in_list and lines and lines[-1].strip() and not lines[-1].startswith(("#", "|", ">>>")):
            lines.append("")
        in_list = item or (in_list and (not line.strip() or line.startswith(" ")))
        lines.append(line)
    return "\n".join(lines) + "\n"


def _examples_fenced(text: str) -> str:
    """`>>>` at the start of a line is a quotation in Markdown: examples outside of fences get one."""
    lines: list[str] = []
    fenced = example = False
    for line in text.splitlines():
        if _FENCE.match(line) and not example:
            fenced = not fenced
        if not fenced and not example and line.startswith(">>> "):
            lines.append("```pycon")
            example = True
        if example and not line.strip():
            lines.append("```")
            example = False
        lines.append(line)
    return "\n".join([*lines, *(["```"] if example else [])]) + "\n"
