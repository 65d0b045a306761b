"""DiffPID3Classifier: Friedman & Schuster 2010 as a scikit-learn estimator."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.errors import PlanError
from hedgerow.estimators.base import GreedyForestClassifier
from hedgerow.growers import diffpid3
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.private_table import PrivateTable
from hedgerow.queries.scores import MOST_ROWS
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import one_of, whole
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan


class DiffPID3Classifier(GreedyForestClassifier):
    """One private tree: noisy sizes, splits by the exponential mechanism, noisy class counts in the leaves.

    Parameters
    ----------
    schema : Schema, path of a TOML file, or "infer"
        The public facts about the table. "infer" reads them from the rows: the release then claims no ε.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`, at most: a tree that ends early leaves the rest in the budget.
    max_depth : number of levels δ, the root included.
    criterion : "gini" (count-scaled), "max", "information_gain", or "gini_half" (the Gini index with sensitivity 1/2, the
        baseline of DPDF's paper).
    most_rows : the public N in the sensitivity of information gain. Privacy holds for any table, but choose it above the table's
        size: counts far above it are scored alike.
    bins : equal-width cells for numeric attributes without declared edges; a threshold between two of them is chosen privately.
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
        max_depth: int = 5,
        *,
        criterion: str = "gini",
        most_rows: int = 1_000_000,
        bins: int = 5,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.max_depth = max_depth
        self.criterion = criterion
        self.most_rows = most_rows
        self.bins = bins
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs

    _algorithm = "DiffPID3"
    _vote = SUMMED_COUNTS

    def _greedy_plan(self, codebook: Codebook, epsilon: Fraction) -> Plan:
        most_rows = whole("most_rows", self.most_rows)
        if most_rows > MOST_ROWS:
            raise PlanError(f"most_rows: got {most_rows}; expected at most {MOST_ROWS}.")
        criterion = one_of("criterion", self.criterion, diffpid3.SCORES)
        settings = diffpid3.Settings(whole("max_depth", self.max_depth), criterion, most_rows)
        return diffpid3.plan(codebook, settings, epsilon)

    def _grow(self, table: PrivateTable, plan: Plan) -> Grown:
        return diffpid3.grow(table, plan, self._rng())
