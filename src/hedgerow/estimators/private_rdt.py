"""PrivateRDTClassifier: Jagannathan et al. 2012 as a scikit-learn estimator."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.base import rdt_settings
from hedgerow.estimators.mergeable import MergeableForestClassifier
from hedgerow.growers import rdt
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import DEFAULT_MAX_LEAVES, Plan


class PrivateRDTClassifier(MergeableForestClassifier):
    """Private random decision trees: random structure, noisy leaf counts, prediction by summed counts.

    Parameters
    ----------
    schema : Schema, path of a TOML file, or "infer"
        The public facts about the table. "infer" reads them from the rows: the release then claims no ε.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`.
    n_estimators : number of trees N; every count gets noise of scale N/ε.
    max_depth : height of the trees; None is the paper's rule, which needs the number of rows: `schema.rows` if it is
        declared, or a noisy count that takes 3 % of ε.
    bins : equal-width cells for numeric attributes without declared edges.
    numeric_splits : "bins" (a branch for each cell) or "thresholds" (a random threshold among the cell edges).
    max_leaves : a forest with more leaves in all is refused before anything is spent.
    budget : a shared Budget or BudgetFile; without one the fit has a budget of its own.
    sampler : "hedgerow" or "opendp", both exact.
    random_state : seeds the public structure only. Noise cannot be seeded.
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
        n_estimators: int = 10,
        max_depth: int | None = None,
        *,
        bins: int = 5,
        numeric_splits: str = "bins",
        max_leaves: int = DEFAULT_MAX_LEAVES,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.bins = bins
        self.numeric_splits = numeric_splits
        self.max_leaves = max_leaves
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs

    _algorithm = "Private-RDT"
    _vote = SUMMED_COUNTS

    def _settings(self) -> rdt.Settings:
        return rdt_settings(self)

    def _shape(self, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        settings, k = self._settings(), len(codebook.sizes)
        if settings.max_depth is not None:
            return settings.n_estimators, min(settings.max_depth, k)
        return settings.n_estimators, None if rows is None else rdt.height_rule(codebook.sizes, rows)

    def _plan(self, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        return rdt.plan(codebook, self._settings(), epsilon, rows, public, self._rng())

    def _grow(self, table: PrivateTable, plan: Plan) -> Grown:
        return rdt.grow(table, plan, self._rng())
