"""DPDFClassifier: Fletcher & Islam 2015 (DPDF) as a scikit-learn estimator."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.base import GreedyForestClassifier
from hedgerow.growers import dpdf
from hedgerow.inference.vote import MAJORITY, PRUNED_SUM, WEIGHTED
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import one_of, whole
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan

VOTES = {"confidence": WEIGHTED, "majority": MAJORITY, "sum": PRUNED_SUM}


class DPDFClassifier(GreedyForestClassifier):
    """The differentially private decision forest: attributes chosen privately, class counts at every node, rules to read.

    Parameters
    ----------
    schema : Schema, path of a TOML file, or "infer"
        The public facts about the table. "infer" reads them from the rows: the release then claims no ε.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`, at most: a tree that ends early leaves the rest in the budget.
    n_estimators : number of trees τ; every tree has a root attribute of its own.
    max_depth : number of levels δ, the root included.
    min_rows : a node is split only if its noisy count is at least this.
    vote : "confidence" (the paper's), "majority" or "sum" (of the counts where a row ends).
    sensitivity : "global", the proven score; "local" is the paper's own, for reproduction only: its release claims no ε.
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
        n_estimators: int = 1,
        max_depth: int = 5,
        min_rows: int = 100,
        *,
        vote: str = "confidence",
        sensitivity: str = "global",
        bins: int = 5,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_rows = min_rows
        self.vote = vote
        self.sensitivity = sensitivity
        self.bins = bins
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs

    _algorithm = "DPDF"

    @property
    def _vote(self) -> str:  # type: ignore[override]
        return VOTES[one_of("vote", self.vote, tuple(VOTES))]

    def _greedy_plan(self, codebook: Codebook, epsilon: Fraction) -> Plan:
        settings = dpdf.Settings(
            whole("n_estimators", self.n_estimators),
            whole("max_depth", self.max_depth),
            whole("min_rows", self.min_rows),
            one_of("sensitivity", self.sensitivity, ("global", "local")),
        )
        _ = self._vote
        return dpdf.plan(codebook, settings, epsilon)

    def _grow(self, table: PrivateTable, plan: Plan) -> Grown:
        return dpdf.grow(table, plan, self._rng())
