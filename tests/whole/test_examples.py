"""The examples in docstrings, wherever the package has some."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import hedgerow

SOURCES = Path(hedgerow.__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for path in sorted((SOURCES / "hedgerow").rglob("*.py"))
    if "\n>>> " in (text := path.read_text(encoding="utf-8")) or " >>> " in text
]


def test_there_are_some() -> None:
    assert "hedgerow.accounting.zcdp" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert found.attempted > 0
    assert found.failed == 0
