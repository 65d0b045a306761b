"""ID3Classifier and PrivateID3Classifier: Jagannathan et al. 2012, sections 3.2 and 4, as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.after.vote import SUMMED_COUNTS
from hedgerow.certificate import no_certificate
from hedgerow.encoding import Codebook
from hedgerow.estimators.base import ForestClassifier, GreedyForestClassifier, whole
from hedgerow.forest import Grown
from hedgerow.growers import id3
from hedgerow.plan import Plan
from hedgerow.private.table import PrivateTable
from hedgerow.release import Release
from hedgerow.rows.engine import Engine
from hedgerow.rows.exact import ExactTable


def _settings(max_depth: int | None) -> id3.Settings:
    return id3.Settings(None if max_depth is None else whole("max_depth", max_depth))


class PrivateID3Classifier(GreedyForestClassifier):
    """ID3 from noisy attribute-by-class tables: the simple way to a private tree, and why better ones are needed.

    Parameters
    ----------
    schema : Schema, path of a TOML file, or "infer"
        The public facts about the table. "infer" reads them from the rows: the release then claims no ε.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`, at most: a tree that ends early leaves the rest in the budget.
    max_depth : how many attributes may be asked on a path; None is all of them, and ε is divided by k(k + 1)/2 tables.
    bins : equal-width cells for numeric attributes without declared edges.
    budget : a shared Budget or BudgetFile; without one the fit has a budget of its own.
    sampler : "hedgerow" or "opendp", both exact; private choices are always our own.
    random_state : not used: these trees need no public randomness, and noise cannot be seeded.
    n_jobs : threads.

    Attributes
    ----------
    release_ : what may be published; `release_.certificate` states the guarantee.
    classes_ : the declared classes.
    """

    def __init__(
        self,
        schema: Any = None,
        epsilon: Any = None,
        max_depth: int | None = None,
        *,
        bins: int = 5,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.max_depth = max_depth
        self.bins = bins
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs

    _algorithm = "Private ID3"
    _vote = SUMMED_COUNTS

    def _greedy_plan(self, codebook: Codebook, epsilon: Fraction) -> Plan:
        return id3.plan(codebook, _settings(self.max_depth), epsilon)

    def _grow(self, table: PrivateTable, plan: Plan) -> Grown:
        return id3.grow(table, plan, self._rng())


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

    def plan(self, rows: int | None = None) -> Plan:
        """What `fit` would build: a tree that depends on the rows, so only its limits are known."""
        codebook = self._codebook(self._declared_schema("plan"))
        levels = id3.levels(codebook, _settings(self.max_depth))
        return Plan("ID3, not private", None, rows, "given", codebook.n_classes, (), (), chosen={"levels": f"at most {levels}"})

    def _train(self, engine: Engine) -> Release:
        settings = _settings(self.max_depth)
        forest = id3.grow_plain(ExactTable(engine), engine.codebook, settings)
        return Release(
            forest,
            no_certificate("a non-private baseline: its counts are exact"),
            algorithm="ID3",
            vote=SUMMED_COUNTS,
            parameters={**asdict(settings), "bins": engine.codebook.bins},
            chosen={"nodes": forest.trees[0].n_nodes, "height": forest.trees[0].height},
        )
