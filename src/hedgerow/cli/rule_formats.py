"""Rules as text, Markdown, CSV or JSON, each with the errors that the noise gives its numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.inference.rules import Rule

RuleWriter = Callable[[Sequence["Rule"], str], str]  # the rules, and the name of the target


def _text(rules: Sequence[Rule], target: str) -> str:
    if not rules:
        return "no such rules: a smaller --min-support or --min-confidence, or --sub-rules, may find some\n"
    width = len(str(len(rules)))
    return "".join(f"{number:>{width}}. {rule.text()}\n" for number, rule in enumerate(rules, start=1))


def _markdown(rules: Sequence[Rule], target: str) -> str:
    from hedgerow.inference.text import count_with_error, plain, share_with_error

    lines = [f"| rule | {_cell(plain(target))} | confidence | rows | classes |", "| --- | --- | ---: | ---: | --- |"]
    for rule in rules:
        sure = share_with_error(rule.confidence, rule.confidence_error)
        support = count_with_error(rule.support, rule.support_error)
        lines.append(
            f"| {_cell(rule.condition_text)} | {_cell(plain(rule.label))} | {sure} | {support} | {_cell(rule.distribution_text)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Names may hold what Markdown or HTML would take for more than text."""
    for character in "\\|`*_[]":
        text = text.replace(character, "\\" + character)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _csv(rules: Sequence[Rule], target: str) -> str:
    from hedgerow.inference.rules import COLUMNS

    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in (rule.row() for rule in rules):
        writer.writerow({**row, "distribution": json.dumps(row["distribution"], ensure_ascii=False)})
    return file.getvalue()


def _json(rules: Sequence[Rule], target: str) -> str:
    items: list[dict[str, Any]] = [
        {
            **rule.row(),
            "conditions": [{"attribute": each.attribute, "is": each.words} for each in rule.conditions],
            "text": rule.text(),
        }
        for rule in rules
    ]
    return json.dumps({"target": target, "rules": items}, indent=1, ensure_ascii=False) + "\n"


WRITERS: dict[str, RuleWriter] = {"text": _text, "markdown": _markdown, "csv": _csv, "json": _json}
SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".csv": "csv", ".json": "json"}  # of other names: text
