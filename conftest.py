"""Shared set-up: the README's example writes its files into a temporary folder."""

from __future__ import annotations

import pytest
from hypothesis import settings

# Compiled loops make the first example slow; a deadline would measure the compiler.
settings.register_profile("hedgerow", deadline=None)
settings.load_profile("hedgerow")


@pytest.fixture(autouse=True)
def _work_in_a_temporary_folder(request: pytest.FixtureRequest) -> None:
    if request.node.name == "README.md":  # no other test pays for a folder that it does not use
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
