"""HedgerowClassifier: our own forest as a scikit-learn estimator, and the one to try first."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.meter import Budget
from hedgerow.errors import PlanError
from hedgerow.estimators.mergeable import MergeableForestClassifier
from hedgerow.growers import hedgerow
from hedgerow.growers.hedgerow_purse import gaussian_pays
from hedgerow.inference.additive import FLAT, RULES
from hedgerow.inference.layout import Layout
from hedgerow.inference.vote import ADDITIVE
from hedgerow.private_table import PrivateTable
from hedgerow.queries import LeafCounts
from hedgerow.release.public_plan import PublicPlan
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import Grown
from hedgerow.trees.plan import Plan
from hedgerow.trees.tree import TreeBuilder

BINS = 32


class HedgerowClassifier(MergeableForestClassifier):
    """The most accurate private forest here, with nothing to tune but ε: class log-odds of one-way tables under a few chosen questions.

    Parameters
    ----------
    schema : Schema, path of a TOML file, or "infer"
        The public facts about the table. "infer" reads them from the rows: the release then claims no ε.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`. Where no `schema.rows` is declared, 3 % of it pays for a noisy number of rows.
    delta : 0, or a small number such as 1e-6
        Above 0 the guarantee is (ε, δ), which buys accuracy where there are many attributes: Gaussian noise, and gradient steps. Where
        Laplace noise would be the smaller, δ is not used and the certificate states pure ε.
    bins : equal-width cells for numeric attributes without declared edges; they are put together again as far as the noise asks for it.
    budget : a shared Budget or BudgetFile; without one the fit has a budget of its own.
    sampler : "hedgerow" or "opendp", both exact ("opendp" for delta=0 only).
    random_state : not used: nothing about the forest is drawn but its noise and its private choices, which cannot be seeded.
    n_jobs : threads.

    Attributes
    ----------
    release_ : what may be published. `release_.additive` has the scores and their errors, `release_.chosen` what was chosen.
    classes_ : the declared classes.
    """

    def __init__(
        self,
        schema: Any = None,
        epsilon: Any = None,
        delta: Any = 0,
        *,
        bins: int = BINS,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.bins = bins
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs

    _algorithm = hedgerow.ALGORITHM
    _vote = ADDITIVE
    _seeded = False

    def _used_delta(self, codebook: Codebook) -> Fraction:
        """δ, or 0 where it would not help: decided by public facts."""
        delta = exact_delta(self.delta)
        return delta if gaussian_pays(len(codebook.sizes), exact_epsilon(self.epsilon), delta) else Fraction(0)

    def _shape(self, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        return len(codebook.sizes), 1

    def _plan(self, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        if self._tables > 1:
            self._check_pure("plan of several tables")
            return self._shared_plan(codebook, epsilon, rows)
        delta = self._used_delta(codebook)
        plan = hedgerow.plan(codebook, hedgerow.Settings(), epsilon, delta, rows, public)
        if delta or not exact_delta(self.delta):
            return plan
        return replace(plan, chosen={**plan.chosen, "δ": f"not used: on {len(codebook.sizes)} attributes Laplace noise is the smaller"})

    def _grow(self, table: PrivateTable, plan: Plan) -> Grown:
        return hedgerow.grow(table, plan)

    # ------------------------------------------------------------ several tables

    def public_plan(self, rows: int | None = None, tables: int = 1) -> PublicPlan:
        """The plan that several owners count, each on its own rows: the one-way tables of all attributes, which add up.

        It needs no number of rows and no seed: nothing in it is chosen or drawn.
        """
        self._check_pure("public_plan")
        plan: PublicPlan = super().public_plan(rows, tables)
        return plan

    def _shared_plan(self, codebook: Codebook, epsilon: Fraction, rows: int | None) -> Plan:
        sizes = codebook.sizes
        flat = Layout(TreeBuilder(sizes).build(), False, tuple(range(len(sizes))))
        event = LeafCounts.cost(epsilon, codebook.schema.k, len(sizes))
        source = "a public number: nothing depends on it"
        words = {"measured": f"all {len(sizes)} attributes", "reading": "the plain one: nothing is chosen where tables are added up"}
        return Plan(
            self._algorithm, epsilon, rows, source, codebook.n_classes, (event,), flat.trees, True, hedgerow.Settings(), self._tables, words
        )

    def _chosen(self, plan: Plan) -> dict[str, Any]:
        return {"reading": FLAT, "strength": 1.0, "rules": RULES}

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, **how: Any) -> Any:
        """Count more rows in the same trees and add them to the release; the first call is a `fit`. Each call spends ε.

        As of every forest whose counts add up (`batch`, `owner`, `disjoint`, `progress`, `accept_draft`). It needs delta=0: gradient steps
        belong to the rows that they were measured on, and nothing could be added to them.
        """
        self._check_pure("partial_fit")
        return super().partial_fit(X, y, classes, **how)

    def _check_pure(self, what: str) -> None:
        if exact_delta(self.delta):
            raise PlanError(
                f"{what}: delta is {self.delta!r}, and counts that are added up later are paid in pure ε: the gradient steps that δ pays "
                "for belong to the rows that they were measured on. Nothing was spent. Set delta=0 (leave --delta out), or fit all rows at "
                "once."
            )
