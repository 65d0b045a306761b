"""LocalTreeClassifier: the tree that an owner learns from its own rows, without privacy, before it is pruned for sharing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hedgerow.engines.engine import Engine
from hedgerow.engines.exact import ExactTable
from hedgerow.errors import PlanError
from hedgerow.estimators.base import ForestClassifier
from hedgerow.growers import c45
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.settings import whole
from hedgerow.trees.plan import Plan


class LocalTreeClassifier(ForestClassifier):
    """One decision tree in the manner of C4.5, with exact counts: no privacy at all, and its release says so.

    Parameters
    ----------
    schema : Schema, path of a TOML file, or "infer" (the default here: there is no guarantee to lose).
    min_leaf : a question is asked only if at least two of its branches have so many rows.
    confidence : the smaller, the more is pruned: above 0 and at most 0.5; None or 1 prunes nothing.
    max_depth : how many questions may be asked on a path; None sets no limit.
    bins : equal-width cells for numeric attributes without declared edges; thresholds lie between them.
    n_jobs : threads.
    """

    def __init__(
        self,
        schema: Any = "infer",
        *,
        min_leaf: int = 2,
        confidence: float | None = 0.25,
        max_depth: int | None = None,
        bins: int = 32,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.min_leaf = min_leaf
        self.confidence = confidence
        self.max_depth = max_depth
        self.bins = bins
        self.n_jobs = n_jobs

    def _settings(self) -> c45.Settings:
        max_depth = None if self.max_depth is None else whole("max_depth", self.max_depth)
        return c45.Settings(whole("min_leaf", self.min_leaf), _confidence(self.confidence), max_depth)

    def plan(self, rows: int | None = None) -> Plan:
        """What `fit` would build: a tree that depends on the rows, so only its limits are known."""
        codebook, settings = self._codebook(self._declared_schema("plan")), self._settings()
        levels = "as the rows need" if settings.max_depth is None else f"at most {settings.max_depth}"
        return Plan("local tree, not private", None, rows, "given", codebook.n_classes, (), (), chosen={"levels": levels})

    def _train(self, engine: Engine) -> Release:
        settings = self._settings()
        forest = c45.grow_plain(ExactTable(engine), engine.codebook, settings)
        return Release(
            forest,
            no_certificate("a local tree: its counts are exact"),
            algorithm="local tree",
            vote=SUMMED_COUNTS,
            parameters={**asdict(settings), "bins": engine.codebook.bins},
            chosen={"nodes": forest.trees[0].n_nodes, "height": forest.trees[0].height},
        )


def _confidence(value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if number == 1:
        return None
    if not 0 < number <= 0.5:
        raise PlanError(f"confidence: got {value!r}; expected a number above 0 and at most 0.5, or None to prune nothing.")
    return number
