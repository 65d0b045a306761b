"""Shared set-up: the README's example writes its files into a temporary folder."""

from __future__ import annotations

from functools import cache

import pytest
import typer.testing
from hypothesis import settings

# Compiled loops make the first example slow; a deadline would measure the compiler.
settings.register_profile("hedgerow", deadline=None, max_examples=50)
settings.load_profile("hedgerow")
# Else each call makes all commands anew, which takes longer than most of them.
typer.testing._get_command = cache(typer.testing._get_command)


@pytest.fixture(autouse=True)
def _work_in_a_temporary_folder(request: pytest.FixtureRequest) -> None:
    if request.node.name == "README.md":  # no other test pays for a folder that it does not use
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
