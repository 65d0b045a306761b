"""PrivateID3Classifier: Jagannathan et al. 2012, section 4, as a scikit-learn estimator."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.base import GreedyForestClassifier
from hedgerow.growers import id3
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import whole
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan


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
        return id3.plan(codebook, id3.Settings(None if self.max_depth is None else whole("max_depth", self.max_depth)), epsilon)

    def _grow(self, table: PrivateTable, plan: Plan) -> Grown:
        return id3.grow(table, plan, self._rng())
