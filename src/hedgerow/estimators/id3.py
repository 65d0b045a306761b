"""ID3Classifier: plain ID3 (Jagannathan et al. 2012, Algorithm 1) as a scikit-learn estimator, without privacy."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hedgerow.engines.engine import Engine
from hedgerow.engines.exact import ExactTable
from hedgerow.estimators.base import ForestClassifier
from hedgerow.growers import id3
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import no_certificate
from hedgerow.release.release import Release
from hedgerow.settings import whole
from hedgerow.trees.plan import Plan


class ID3Classifier(ForestClassifier):
    """Plain ID3 with exact counts: no privacy at all, and its release says so.

    Parameters
    ----------
    max_depth : how many attributes may be asked on a path; None is all of them.
    schema : Schema, path of a TOML file, or "infer" (the default here: there is no guarantee to lose).
    bins : equal-width cells for numeric attributes without declared edges.
    random_state : not used.
    n_jobs : threads.
    """

    def __init__(
        self,
        max_depth: int | None = None,
        *,
        schema: Any = "infer",
        bins: int = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.schema = schema
        self.bins = bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _settings(self) -> id3.Settings:
        return id3.Settings(None if self.max_depth is None else whole("max_depth", self.max_depth))

    def plan(self, rows: int | None = None) -> Plan:
        """What `fit` would build: a tree that depends on the rows, so only its limits are known."""
        codebook = self._codebook(self._declared_schema("plan"))
        levels = id3.levels(codebook, self._settings())
        return Plan("ID3, not private", None, rows, "given", codebook.n_classes, (), (), chosen={"levels": f"at most {levels}"})

    def _train(self, engine: Engine) -> Release:
        settings = self._settings()
        forest = id3.grow_plain(ExactTable(engine), engine.codebook, settings)
        return Release(
            forest,
            no_certificate("a non-private baseline: its counts are exact"),
            algorithm="ID3",
            vote=SUMMED_COUNTS,
            parameters={**asdict(settings), "bins": engine.codebook.bins},
            chosen={"nodes": forest.trees[0].n_nodes, "height": forest.trees[0].height},
        )
