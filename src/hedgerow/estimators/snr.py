"""SNRForestClassifier: Fletcher & Islam 2015 (DP-RF) as a scikit-learn estimator."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.mergeable import MergeableForestClassifier
from hedgerow.growers import snr
from hedgerow.inference.vote import MOST_CONFIDENT
from hedgerow.private_table import PrivateTable
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import one_of, whole
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import DEFAULT_MAX_LEAVES, Plan


class SNRForestClassifier(MergeableForestClassifier):
    """A private random forest tuned by signal-to-noise ratios: nothing to set but ε, and `plan()` shows what it chooses.

    Parameters
    ----------
    schema : Schema, path of a TOML file, or "infer"
        The public facts about the table. "infer" reads them from the rows: the release then claims no ε.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`. Where no `schema.rows` is declared, 3 % of it pays for a noisy number of rows.
    bins : equal-width cells for numeric attributes without declared edges.
    noise_rule : "paper" (|C|·√2/ε, as published) or "tight" (√(2|C|)/ε, the standard deviation of the sum).
    max_leaves : a forest with more leaves in all is refused before anything is spent.
    budget : a shared Budget or BudgetFile; without one the fit has a budget of its own.
    sampler : "hedgerow" or "opendp", both exact.
    random_state : seeds the public structure only. Noise cannot be seeded.
    n_jobs : threads.

    Attributes
    ----------
    release_ : what may be published; `release_.chosen` says what was tuned, `release_.certificate` states the guarantee.
    classes_ : the declared classes.
    """

    def __init__(
        self,
        schema: Any = None,
        epsilon: Any = None,
        *,
        bins: int = 5,
        noise_rule: str = "paper",
        max_leaves: int = DEFAULT_MAX_LEAVES,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.bins = bins
        self.noise_rule = noise_rule
        self.max_leaves = max_leaves
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs

    _algorithm = "SNR forest"
    _vote = MOST_CONFIDENT

    def _settings(self) -> snr.Settings:
        noise_rule = one_of("noise_rule", self.noise_rule, ("paper", "tight"))
        return snr.Settings(noise_rule, whole("max_leaves", self.max_leaves), self._tables)

    def _shape(self, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        return 0 if rows is None else snr.number_of_trees(codebook, rows, epsilon, self._settings()), None

    def _plan(self, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        return snr.plan(codebook, self._settings(), epsilon, rows, public, self._rng())

    def _grow(self, table: PrivateTable, plan: Plan) -> Grown:
        return snr.grow(table, plan, self._rng())
