"""Rules as text, Markdown, CSV or JSON, each with the errors that the noise gives its numbers."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hedgerow.cli.console import say

if TYPE_CHECKING:
    from hedgerow.after.rules import Rule

RuleWriter = Callable[[Sequence["Rule"], str], None]  # the rules, and the name of the target
_COLUMNS = ["conditions", "class", "confidence", "confidence_error", "support", "support_error", "tree", "node"]


def _text(rules: Sequence[Rule], target: str) -> None:
    if not rules:
        say("no such rules: a smaller --min-support or --min-confidence, or --sub-rules, may find some")
    width = len(str(len(rules)))
    for number, rule in enumerate(rules, start=1):
        say(f"{number:>{width}}. {rule.text()}")


def _markdown(rules: Sequence[Rule], target: str) -> None:
    from hedgerow.after.text import count_with_error, plain, share_with_error

    say(f"| rule | {_cell(plain(target))} | confidence | rows |")
    say("| --- | --- | ---: | ---: |")
    for rule in rules:
        sure = share_with_error(rule.confidence, rule.confidence_error)
        support = count_with_error(rule.support, rule.support_error)
        say(f"| {_cell(rule.condition_text)} | {_cell(plain(rule.label))} | {sure} | {support} |")


def _cell(text: str) -> str:
    """Names may hold what Markdown or HTML would take for more than text."""
    for character in "\\|`*_[]":
        text = text.replace(character, "\\" + character)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _csv(rules: Sequence[Rule], target: str) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for rule in rules:
        conditions = " and ".join(map(str, rule.conditions))
        numbers = [rule.confidence, rule.confidence_error, rule.support, rule.support_error, rule.tree + 1, rule.node]
        writer.writerow([conditions, rule.label, *numbers])


def _json(rules: Sequence[Rule], target: str) -> None:
    items: list[dict[str, Any]] = [
        {
            "conditions": [{"attribute": each.attribute, "is": each.words} for each in rule.conditions],
            "class": rule.label,
            **{name: getattr(rule, name) for name in _COLUMNS[2:]},
            "tree": rule.tree + 1,  # people count trees from 1
            "text": rule.text(),
        }
        for rule in rules
    ]
    print(json.dumps({"target": target, "rules": items}, indent=1, ensure_ascii=False))


WRITERS: dict[str, RuleWriter] = {"text": _text, "markdown": _markdown, "csv": _csv, "json": _json}
