"""RandomDecisionTreesClassifier: random decision trees without privacy, the baseline and upper bound."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hedgerow.engines.engine import Engine
from hedgerow.engines.exact import ExactTable
from hedgerow.errors import PlanError
from hedgerow.estimators.base import ForestClassifier, rdt_settings
from hedgerow.growers import rdt
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.trees.plan import DEFAULT_MAX_LEAVES, Plan


class RandomDecisionTreesClassifier(ForestClassifier):
    """Random decision trees with exact counts: no privacy at all, and its release says so.

    Parameters
    ----------
    n_estimators, max_depth, bins, numeric_splits, max_leaves, random_state, n_jobs : as in PrivateRDTClassifier.
    prune : remove subtrees that no training row reached. `prune=False` is the ε = ∞ curve of the paper's figures.
    schema : Schema, path of a TOML file, or "infer" (the default here: there is no guarantee to lose).
    """

    def __init__(
        self,
        n_estimators: int = 10,
        max_depth: int | None = None,
        prune: bool = True,
        *,
        schema: Any = "infer",
        bins: int = 5,
        numeric_splits: str = "bins",
        max_leaves: int = DEFAULT_MAX_LEAVES,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.prune = prune
        self.schema = schema
        self.bins = bins
        self.numeric_splits = numeric_splits
        self.max_leaves = max_leaves
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _settings(self) -> rdt.Settings:
        return rdt_settings(self)

    def plan(self, rows: int | None = None) -> Plan:
        """What `fit` would build for a table of that many rows."""
        schema = self._declared_schema("plan")
        rows = rows if rows is not None else schema.rows
        if rows is None and self.max_depth is None:
            raise PlanError("plan: give a size, plan(rows=10000), or fix the height with max_depth.")
        codebook = self._codebook(schema)
        trees = rdt.structures(codebook, rows, self._settings(), self._rng())
        return Plan("RDT, not private", None, rows, "given", codebook.n_classes, (), trees)

    def _train(self, engine: Engine) -> Release:
        settings = self._settings()
        forest = rdt.grow_plain(ExactTable(engine), engine.codebook, settings, self.prune, self._rng())
        return Release(
            forest,
            no_certificate("a non-private baseline: its counts are exact"),
            algorithm="RDT",
            vote=SUMMED_COUNTS,
            parameters={**asdict(settings), "prune": bool(self.prune), "bins": engine.codebook.bins},
            chosen={"height": max(tree.height for tree in forest.trees)},
        )
