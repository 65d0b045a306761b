"""Shared set-up: the README's example writes its files into a temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# Compiled loops make the first example slow; a deadline would measure the compiler.
settings.register_profile("hedgerow", deadline=None)
settings.load_profile("hedgerow")


@pytest.fixture(autouse=True)
def _work_in_a_temporary_folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.name == "README.md":
        monkeypatch.chdir(tmp_path)
