"""Settings that more than one algorithm has, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.growers import rdt
from hedgerow.settings import one_of, whole


def depth_or_none(settings: Mapping[str, Any]) -> int | None:
    """A height, or None: no limit, or what the algorithm finds by itself."""
    return None if settings["max_depth"] is None else whole("max_depth", settings["max_depth"])


def rdt_settings(settings: Mapping[str, Any]) -> rdt.Settings:
    """Those of the plain and the private random decision trees."""
    return rdt.Settings(
        whole("n_estimators", settings["n_estimators"]),
        depth_or_none(settings),
        one_of("numeric_splits", settings["numeric_splits"], ("bins", "thresholds")),
        whole("max_leaves", settings["max_leaves"]),
    )
