"""The estimators whose counts may be added up over tables: batches that come later, plans that owners share."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.accounting.loss import exact_epsilon
from hedgerow.engines.engine import Engine, Progress
from hedgerow.errors import SchemaError
from hedgerow.estimators.class_order import sorted_classes
from hedgerow.estimators.private import PrivateForestClassifier
from hedgerow.estimators.repetitions import check_repetitions
from hedgerow.estimators.surroundings import say_no_budget
from hedgerow.evaluation.seen_rows import check_unseen, note_rows
from hedgerow.release.merging_checks import check_random_trees
from hedgerow.release.parts import TableName
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Target, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.columns import check_fitted_order
from hedgerow.schema.schema import Schema
from hedgerow.settings import whole
from hedgerow.training import planning, shared_plans
from hedgerow.training.counting import count_rows
from hedgerow.training.rows import declared_only
from hedgerow.trees.plan import Plan


class MergeableForestClassifier(PrivateForestClassifier):
    """Base of the private forests whose counts may be added up over tables: they can be updated, shared and merged."""

    def plan(self, rows: int | None = None, tables: int = 1) -> Plan:
        """What `fit` would build and what it costs. Needs no data; `rows` is an assumed size where none is declared.

        tables: how many batches or owners will be added up, each with noise of its own
        """
        return planning.plan(self._recipe().changed(tables=whole("tables", tables)), self._declared_schema("plan"), rows)

    def public_plan(self, rows: int | None = None, tables: int = 1, delta: Any = None) -> PublicPlan:
        """The plan that several owners count, each on its own rows: schema, tree structures and ε, all public.

        rows:   the public number of rows to plan for (of all owners together), where the schema declares none
        tables: how many owners there will be, roughly; more of them have more noise, so that an SNR forest has smaller trees
        delta:  above 0 each owner pays (ε, δ), and counts get Gaussian noise: less of it from about ten trees or tables on. By default that
                of the estimator, if it has one. The trees are those of pure ε

        A Hedgerow forest needs no rows, and no seed: owners count the one-way counts of all attributes, which add up.
        """
        recipe = self._recipe() if delta is None else self._recipe().changed(delta=delta)
        return shared_plans.public_plan(recipe, self._declared_schema("public_plan"), rows, tables)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        batch: str | None = None,
        owner: str = "",
        disjoint: bool = False,
        other_rows: bool = False,
        progress: Progress | None = None,
        accept_draft: bool = False,
    ) -> Any:
        """Count more rows in the same trees and add them to the release; the first call is a `fit`. Each call spends ε.

        It needs delta=0. A Hedgerow forest is then the one-way counts of all attributes, from the first batch on, which add up: boosted
        trees belong to the rows that they were measured on.

        Parameters
        ----------
        X, y, progress, accept_draft
            As in `fit`.
        classes : array, optional
            As in scikit-learn; they must be declared in the schema.
        batch : str, optional
            A name for these rows, so that they cannot be added twice; by default a random one.
        owner : str, default=""
            Whose rows they are.
        disjoint : bool, default=False
            You state that a person with rows in this batch has none in another batch of this forest, and that which batch a row is in
            depends on that row alone (its date, its office). Then the largest ε of the batches counts; without it they add up.
        other_rows : bool, default=False
            You state that a table which is in the forest already (at a service, a file, an array that you have filled anew) has other rows
            by now, and only those.

        Returns
        -------
        self
        """
        check_repetitions(self)  # here, too: a later batch clones nothing
        self._check_surroundings(X)
        method = shared_plans.mergeable(self._recipe())
        method.check_shared(self._recipe(), "partial_fit")
        name = TableName(batch, owner, disjoint, other_rows)
        if not hasattr(self, "release_"):
            with self._remembered(X), closing(self._engine_for(X, y, progress, accept_draft)) as engine:
                if classes is not None:
                    engine = _with_classes(engine, classes, inferred=self._inferred)
                self._train(engine, name, method.first_batch(self._recipe()))
        else:
            check_random_trees(self.release_, "the forest")
            name.check_new(self.release_.certificate.parts)
            if not other_rows:
                check_unseen(self, X, disjoint)
            codebook = self.release_.codebook
            check_fitted_order(getattr(self, "_order_in_fit", None), codebook.schema.names, X)
            if y is not None and hasattr(X, "shape"):
                self._check_columns(declared_only(X, codebook.schema, any_order=not self._inferred), reset=False)
            drafted = accept_draft or self._inferred
            reader = self._like(schema=codebook.schema, bins=codebook.bins)
            with closing(reader._engine_for(X, y, progress, drafted)) as engine:
                if classes is not None:
                    engine = _with_classes(engine, classes, inferred=False)
                self._count(engine, PublicPlan.of(self.release_, exact_epsilon(self.epsilon)), name, self.release_)
            note_rows(self, X, more=True)
        self.classes_ = sorted_classes(self.release_.schema)
        return self

    def _like(self, **changes: Any) -> Any:
        """A new estimator with these settings."""
        copied = type(self)(**{**self.get_params(deep=False), **changes})
        copied._coins = self._coins
        return copied

    def _count(self, engine: Engine, plan: PublicPlan, name: TableName, before: Release | None = None) -> Release:
        how: dict[str, Any] = {"budget": self.budget, "sampler": self.sampler, "coins": self._coins, "keep": self._keep}
        say_no_budget(self, engine)
        return count_rows(engine, plan, name, before=before, **how)


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
