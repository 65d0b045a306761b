"""The same trees over several tables: batches that come later, plans that owners share, counts that are merged.

A structure that does not depend on rows can be counted on any number of tables (Jagannathan et al. 2012, 5.2 and 5.3).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import Event
from hedgerow.accounting.loss import exact_epsilon, text_of_fraction
from hedgerow.accounting.meter import Budget
from hedgerow.engines.engine import Engine, Progress
from hedgerow.errors import HedgerowWarning, PlanError, SchemaError
from hedgerow.estimators.base import INFER, SHARED, PrivateForestClassifier, parameters_of, without_person
from hedgerow.mechanisms.coins import random_name
from hedgerow.mechanisms.noise import sampler_named
from hedgerow.private_table import reserved
from hedgerow.queries import LeafCounts
from hedgerow.release.certificate import TableName, all_disjoint, part_of, planned_rows
from hedgerow.release.document import check_total
from hedgerow.release.merging import merge
from hedgerow.release.merging_checks import check_random_trees
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release, class_array
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema, Target, text_of
from hedgerow.settings import whole
from hedgerow.trees.plan import Plan

MAX_COUNTS = 100_000_000  # of one plan: 800 MB
MAX_REBUILD = 200_000_000  # nodes times attributes
LARGE = 10  # an ε above this is not taken from somebody else's file


class MergeableForestClassifier(PrivateForestClassifier):
    """Base of the private forests whose counts may be added up over tables: they can be updated, shared and merged."""

    _tables = 1  # that are planned to be added up
    _seeded = True  # whether trees are drawn: then a plan names the seed

    @abstractmethod
    def _shape(self, codebook: Codebook, epsilon: Fraction, rows: int | None) -> tuple[int, int | None]:
        """How many trees a plan would have, and of which height where that is known beforehand: cheap to compute."""

    def plan(self, rows: int | None = None, tables: int = 1) -> Plan:
        """What `fit` would build and what it costs. Needs no data; `rows` is an assumed size where none is declared.

        tables: how many batches or owners will be added up, each with noise of its own
        """
        seeded = self._like()
        seeded._tables = whole("tables", tables)
        plan: Plan = super(MergeableForestClassifier, seeded).plan(rows)
        return replace(plan, tables=seeded._tables)

    def public_plan(self, rows: int | None = None, tables: int = 1) -> PublicPlan:
        """The plan that several owners count, each on its own rows: schema, tree structures and ε, all public.

        rows:   the public number of rows to plan for (of all owners together), where the schema declares none
        tables: how many owners there will be, roughly; more of them have more noise, so that an SNR forest has smaller trees
        """
        schema = self._declared_schema("public_plan")
        if schema.unreviewed:
            raise SchemaError(
                f"schema: the entries {', '.join(schema.unreviewed)} were read from data and are not reviewed. A plan that is shared holds "
                "public facts only: check them and delete their `unreviewed` lines."
            )
        if rows is not None:
            schema = replace(schema, rows=whole("rows", rows))
        seed = self._seed() if self._seeded else None
        codebook, epsilon = self._codebook(schema), exact_epsilon(self.epsilon)
        seeded = self._like(random_state=seed)
        seeded._tables = whole("tables", tables)
        plan = seeded._shared_plan(codebook, epsilon, schema.rows)
        if not plan.fixed:
            raise PlanError(
                "plan: its trees depend on the number of rows, which owners do not tell. Give a public number to plan for, such as "
                "public_plan(rows=10000): roughly how many rows all owners have together."
            )
        return PublicPlan(
            codebook,
            plan.trees,
            epsilon,
            self._algorithm,
            self._vote,
            parameters_of(plan, codebook),
            self._chosen(plan),
            seed,
            f"numpy {np.__version__}" if self._seeded else "",
            seeded._tables,
        )

    def _shared_plan(self, codebook: Codebook, epsilon: Fraction, rows: int | None) -> Plan:
        """What owners count: by default what a `fit` would, for that public number of rows."""
        return self._plan(codebook, epsilon, rows, rows is not None)

    def _chosen(self, plan: Plan) -> dict[str, Any]:
        """What the releases of a shared plan say that was chosen."""
        return plan.chosen or {"height": plan.height}

    def _seed(self) -> int:
        """A seed that can be named: what was given, or a new one."""
        seed = self.random_state
        if seed is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        if isinstance(seed, np.random.RandomState):
            return int(seed.randint(2**31))
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise PlanError("random_state: a plan that is shared names its seed; expected a whole number or None.")
        return int(seed)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        batch: str | None = None,
        owner: str = "",
        disjoint: bool = False,
        progress: Progress | None = None,
        accept_draft: bool = False,
    ) -> Any:
        """Count more rows in the same trees and add them to the release; the first call is a `fit`. Each call spends ε.

        batch:    a name for these rows, so that they cannot be added twice; by default a random one
        owner:    whose rows they are
        disjoint: you state that a person with rows in this batch has none in another batch of this forest, and that which batch a row
                  is in depends on that row alone (its date, its office). Then the largest ε of the batches counts; without it they add up.
        classes:  as in scikit-learn; they must be declared in the schema
        """
        name = TableName(batch, owner, disjoint)
        if not hasattr(self, "release_"):
            with closing(self._engine_for(X, y, progress, accept_draft)) as engine:
                if classes is not None:
                    engine = _with_classes(engine, classes, inferred=isinstance(self.schema, str) and self.schema == INFER)
                self.release_ = self._train(engine, name=name)
        else:
            check_random_trees(self.release_, "the forest")
            name.check_new(self.release_.certificate.parts)
            codebook = self.release_.codebook
            if y is not None and hasattr(X, "shape"):
                self._check_columns(without_person(X, codebook.schema), reset=False)
            drafted = accept_draft or (isinstance(self.schema, str) and self.schema == INFER)
            with closing(self._like(schema=codebook.schema, bins=codebook.bins)._engine_for(X, y, progress, drafted)) as engine:
                if classes is not None:
                    engine = _with_classes(engine, classes, inferred=False)
                self._count(engine, PublicPlan.of(self.release_, exact_epsilon(self.epsilon)), name, self.release_)
        self.classes_ = class_array(self.release_.schema)
        return self

    def _like(self, **changes: Any) -> Any:
        """A new estimator with these settings."""
        copied = type(self)(**{**self.get_params(deep=False), **changes})
        copied._coins = self._coins
        return copied

    def _count(self, engine: Engine, plan: PublicPlan, name: TableName, before: Release | None = None) -> Release:
        """Count one table in the trees of the plan: charge, then look. `before` is the forest that the counts are added to."""
        sampler_named(self.sampler, self._coins)
        if engine.codebook != plan.codebook:
            raise PlanError("count: the table is read by another schema than the plan's.")
        event = LeafCounts.cost(plan.epsilon, plan.schema.k, len(plan.trees))
        _ = engine.codebook.coders  # whatever could fail about the schema fails here
        budget = self.budget if self.budget is not None else Budget(plan.epsilon)
        if not isinstance(budget, Budget):
            raise PlanError(f"budget: got {budget!r}; expected a hedgerow.Budget or BudgetFile.")
        if plan.n_counts > MAX_COUNTS:
            raise PlanError(
                f"plan: its trees have {plan.n_counts:,} counts, more than the {MAX_COUNTS:,} that are counted at once. Nothing was spent. "
                "Agree on a plan with smaller trees."
            )

        def released(
            events: Sequence[Event], counts: Sequence[NDArray[np.int64]], sampler: str, id: str, secret: bool = self._coins.secret
        ) -> Release:
            part = part_of(
                events,
                requested=plan.epsilon,
                sampler=sampler,
                secret=secret,
                unreviewed=plan.schema.unreviewed,
                public_rows=planned_rows(plan.schema.rows),
                person=plan.schema.person,
                rows_per_person=plan.schema.k,
                assumed=engine.assumed,
                id=id,
                name=name,
            )
            return plan.release_of(counts, event.scale, part)

        # What could go wrong after the rows are paid for goes wrong here: the same steps with no rows.
        nothing = [np.zeros((len(tree.leaves), plan.codebook.n_classes), dtype=np.int64) for tree in plan.trees]
        taken = () if before is None else before.certificate.parts
        free = next(id for id in (f"trial {number}" for number in itertools.count()) if all(part.id != id for part in taken))
        trial = add_batch(before, released([event], nothing, "trial", free), name.disjoint)
        check_total(trial.forest.counts, most=2.0**61)
        del nothing, trial
        reservation = reserved(engine, budget, plan.epsilon, f"count {plan.algorithm}")  # charge, then look
        table = self._private_table(engine, reservation)
        counts = table.ask(LeafCounts(plan.trees), plan.epsilon)
        counted = released(reservation.events, counts, table.sampler, random_name(self._coins), table._secret)
        release = add_batch(before, counted, name.disjoint)
        self._settled(release, reservation, None, counted.forest)
        return release


def add_batch(before: Release | None, batch: Release, disjoint: bool) -> Release:
    """The forest with one batch more. `disjoint` states that no person is in two batches; it is not said of tables inside the forest."""
    if before is None:
        return batch
    counted = [part for part in before.certificate.parts if part.counted]
    return merge([before, batch], batches=True, disjoint=disjoint and all_disjoint(counted))


def count(
    plan: PublicPlan | Release,
    X: Any,
    y: Any = None,
    *,
    owner: str = "",
    batch: str | None = None,
    disjoint: bool = False,
    epsilon: Any = None,
    budget: Budget | None = None,
    sampler: str = "hedgerow",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    trees_chosen_beforehand: bool = False,
) -> Release:
    """One owner's noisy counts in the trees of a plan (or of a forest): a release to be merged with those of others.

    X may be a file or a table with the columns of the plan's schema. `disjoint`: you state that a person with rows here has none in
    another table that is counted in these trees, and that which table a row is in depends on that row alone. Where two owners both state
    it, the larger of their ε counts; otherwise they add up. If a warning is made an error, the release is its attribute `release`.

    Tables of a forest in whose trees you count stay in the certificate with their whole ε: their counts may have been looked at before
    these trees were taken. `trees_chosen_beforehand`: you state that taking them did not depend on the counts. Then each of these tables
    stays with the ε of its looks before the counts, and the certificate holds your statement.
    """
    name = TableName(batch, owner, disjoint)
    if not isinstance(trees_chosen_beforehand, bool) or (trees_chosen_beforehand and not isinstance(plan, Release)):
        raise PlanError(
            f"trees_chosen_beforehand: got {trees_chosen_beforehand!r}; expected True (you state it) or False with a forest, and "
            "False with a plan, as no rows are behind its trees. Nothing was spent."
        )
    if isinstance(plan, Release):
        check_random_trees(plan, "the forest")
    cost = cost_of(plan, epsilon)
    if isinstance(plan, Release):
        name.check_new(plan.certificate.parts)
        plan = PublicPlan.of(plan, cost, trees_chosen_beforehand)
    estimator = estimator_for(plan).set_params(budget=budget, sampler=sampler, n_jobs=n_jobs)
    try:
        with closing(estimator._engine_for(X, y, progress, accept_draft=False)) as engine:
            release: Release = estimator._count(engine, plan, name)
    except HedgerowWarning as warning:  # a warning that was made an error comes after the counts are paid for
        warning.release = estimator.release_  # type: ignore[attr-defined]
        raise
    return release


def cost_of(plan: PublicPlan | Release, epsilon: Any = None) -> Fraction:
    """The ε of one more count: what the plan fixes; with a forest, what is given, or what its tables were counted with.

    The file may come from somebody else, who would like to see more than you mean to show: a large ε must be given by yourself.
    """
    given = None if epsilon is None else exact_epsilon(epsilon)
    if isinstance(plan, PublicPlan):
        usual = plan.epsilon
        if given is not None and given != usual:
            raise PlanError(f"epsilon: the plan fixes ε = {text_of_fraction(usual)}; leave epsilon out, or agree on another plan.")
    else:
        found = {part.epsilon for part in plan.certificate.parts if part.counted}
        if given is None and len(found) != 1:
            raise PlanError(
                f"epsilon: the tables of the forest were counted with different ε ({', '.join(sorted(found)[:5])}). Give the one for the "
                "new rows."
            )
        usual = given if given is not None else Fraction(found.pop())
    if given is None and usual > LARGE:
        raise PlanError(
            f"epsilon: the file asks for ε = {text_of_fraction(usual)}, which protects your rows hardly at all. Nothing was spent. If you "
            "mean it, give the same ε yourself."
        )
    return usual


def estimator_for(plan: PublicPlan) -> Any:
    """The estimator with the settings of the plan."""
    from hedgerow.estimators.hedgerow import HedgerowClassifier
    from hedgerow.estimators.private_rdt import PrivateRDTClassifier
    from hedgerow.estimators.snr import SNRForestClassifier

    known: dict[str, Any] = {each._algorithm: each for each in (HedgerowClassifier, PrivateRDTClassifier, SNRForestClassifier)}
    if plan.algorithm not in known:
        raise PlanError(f"plan: its algorithm {plan.algorithm[:40]!r} is not known here; expected one of {', '.join(known)}.")
    estimator = known[plan.algorithm](schema=plan.schema, epsilon=plan.epsilon)
    own = estimator.get_params().keys() - SHARED
    settings = {name: value for name, value in plan.parameters.items() if name in own}
    return estimator.set_params(**{**settings, "bins": plan.codebook.bins, "random_state": plan.seed})


def rebuild(plan: PublicPlan) -> bool:
    """Whether the trees follow from the schema, the settings and the seed, if they need one, alone: then the plan holds no data."""
    if sum(tree.n_nodes for tree in plan.trees) * len(plan.codebook.sizes) > MAX_REBUILD:
        raise PlanError("plan: it is too large to be built again here.")
    estimator = estimator_for(plan)
    if (plan.seed is None or plan.seed < 0) if estimator._seeded else plan.seed is not None:
        return False
    settings = estimator.get_params()
    if settings.get("n_estimators", len(plan.trees)) != len(plan.trees):
        return False
    # No more work than the plan itself holds. (A question with one answer adds no leaf, so those are counted apart.)
    most = max(len(plan.codebook.sizes), sum(len(tree.leaves) for tree in plan.trees))
    single = plan.codebook.sizes.count(1)
    if single * len(plan.codebook.sizes) * len(plan.trees) > MAX_REBUILD // 100:
        raise PlanError("plan: it is too large to be built again here.")
    bounds = {"max_leaves"} & settings.keys()
    try:
        estimator.set_params(**{name: min(whole(name, settings[name]), most) for name in bounds})
        estimator._tables = plan.tables
        trees, height = estimator._shape(plan.codebook, plan.epsilon, plan.schema.rows)
        if trees != len(plan.trees) or height not in (None, max(tree.height for tree in plan.trees)):
            return False
        again: PublicPlan = estimator.public_plan(tables=plan.tables)
    except (PlanError, SchemaError, TypeError):
        return False
    same = [(each.trees, each.vote, each.chosen, each.epsilon, each.codebook, each.seed, each.tables) for each in (plan, again)]
    parameters = {**again.parameters, **{name: plan.parameters.get(name) for name in bounds}}
    return same[0] == same[1] and parameters == plan.parameters


def shown_plan(plan: PublicPlan) -> Plan:
    """What a shared plan would build and what it costs each owner, for people."""
    event = LeafCounts.cost(plan.epsilon, plan.schema.k, len(plan.trees))
    return Plan(
        plan.algorithm,
        plan.epsilon,
        plan.schema.rows,
        "declared public",
        plan.codebook.n_classes,
        (event,),
        plan.trees,
        tables=plan.tables,
        chosen=plan.chosen,
    )


def _with_classes(engine: Any, classes: Any, inferred: bool) -> Any:
    """scikit-learn's `classes`: all that may ever come. A declared schema must hold them; an inferred one takes them over."""
    schema: Schema = engine.codebook.schema
    given = {text_of(value): value for value in np.asarray(classes).tolist()}
    if inferred:
        target = Target(schema.target.name, list(given.values()), schema.target.unreviewed)
        engine.codebook = Codebook(replace(schema, target=target), engine.codebook.bins)
        return engine
    absent = [text for text in given if text not in {text_of(value) for value in schema.target.classes}]
    if absent:
        raise SchemaError(f"classes: {', '.join(absent[:5])} are not declared in the schema; declare every class there.")
    return engine
