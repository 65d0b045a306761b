"""The service of the tests over HTTP, for its pages."""

from __future__ import annotations

from curator.http.conftest import curator, file, limits, running

__all__ = ["curator", "file", "limits", "running"]  # the fixtures
