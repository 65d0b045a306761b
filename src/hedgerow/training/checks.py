"""Settings that more than one algorithm has, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.growers import id3, rdt
from hedgerow.settings import one_of, whole, yes_or_no


def depth_or_none(settings: Mapping[str, Any]) -> int | None:
    """A height, or None: no limit, or what the algorithm finds by itself."""
    return None if settings["max_depth"] is None else whole("max_depth", settings["max_depth"])


def id3_settings(settings: Mapping[str, Any]) -> id3.Settings:
    """Those of the plain and the private ID3."""
    return id3.Settings(depth_or_none(settings), yes_or_no("as_published", settings["as_published"]))


def rdt_settings(settings: Mapping[str, Any]) -> rdt.Settings:
    """Those of the plain and the private random decision trees."""
    return rdt.Settings(
        whole("n_estimators", settings["n_estimators"]),
        depth_or_none(settings),
        one_of("numeric_splits", settings["numeric_splits"], ("bins", "thresholds")),
        whole("max_leaves", settings["max_leaves"]),
    )
