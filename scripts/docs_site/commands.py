"""The reference of the command line, from its parser: one page for each command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hedgerow.cli.commands import COMMANDS, loaded


def nav() -> list[str | dict[str, str]]:
    return ["reference/commands/index.md", *({name: f"reference/commands/{name}.md"} for name in COMMANDS)]


def all_commands() -> Iterator[tuple[str, Any]]:
    """Every command that can be typed, with the command of click: ("schema draft", …)."""
    for name in COMMANDS:
        yield from _with_subcommands(name, loaded(name))


def _with_subcommands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for sub, its in sorted(getattr(command, "commands", {}).items()):
        if not its.hidden:
            yield from _with_subcommands(f"{name} {sub}", its)


def pages() -> dict[str, str]:
    rows = "".join(f"| [`hedgerow {name}`]({name}.md) | {_cell(each.help)} |\n" for name, each in COMMANDS.items())
    made = {"reference/commands/index.md": f"# Commands\n\n| command | what it does |\n| --- | --- |\n{rows}"}
    for name in COMMANDS:
        parts = [_section(path, command) for path, command in _with_subcommands(name, loaded(name))]
        made[f"reference/commands/{name}.md"] = "\n".join(parts)
    return made


def anchor(path: str) -> str:
    return f"hedgerow-{path.replace(' ', '-')}"


def _section(path: str, command: Any) -> str:
    context = command.make_context(f"hedgerow {path}", [], resilient_parsing=True)
    level = "#" * (1 + path.count(" "))
    usage = re.sub(r"[{}]", "", " ".join(command.collect_usage_pieces(context)))
    lines = [f"{level} `hedgerow {path}` {{#{anchor(path)}}}", "", f"    hedgerow {path} {usage}", "", _help(command.help or ""), ""]
    rows = [row for row in (_parameter(each, context) for each in command.params) if row]
    if rows:
        lines += ["| option | what it is |", "| --- | --- |", *rows, "", ""]
    return "\n".join(lines)


def _help(text: str) -> str:
    """As it is written in Markdown; `\\f` and what follows is for nobody."""
    return text.split("\f")[0].strip()


def _parameter(each: Any, context: Any) -> str:
    if getattr(each, "hidden", False):
        return ""
    record = getattr(each, "get_help_record", None)
    found = record(context) if record else None
    names = found[0] if found else each.human_readable_name
    said = found[1] if found else getattr(each, "help", "") or ""
    said = re.sub(r"\[(?:/?(?:dim|bold|red|yellow)[^\]]*)\]", "", said)
    return f"| `{names.replace('|', chr(92) + '|')}` | {_cell(said)} |"


def _cell(text: str) -> str:
    """Text in a table: brackets are no links, signs no HTML, outside of code."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    plain = [part.replace("<", "&lt;").replace("[", "\\[") if place % 2 == 0 else part for place, part in enumerate(parts)]
    return "`".join(plain)
