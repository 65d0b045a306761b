"""What the estimators that keep ε share: a budget, a private search among settings, and a score that warns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.engines.engine import Engine
from hedgerow.estimators.base import ForestClassifier
from hedgerow.estimators.class_order import sorted_classes
from hedgerow.estimators.ensembles import check_unnamed
from hedgerow.estimators.repetitions import check_repetitions, note_in_vain
from hedgerow.estimators.surroundings import (
    check_surroundings,
    say_exact_score,
    say_large_epsilon,
    say_learning_around,
    say_no_budget,
    say_repeated_rows,
)
from hedgerow.release.parts import TableName
from hedgerow.release.release import Release
from hedgerow.training.fit import check_settings, train
from hedgerow.training.recipe import Recipe
from hedgerow.training.tuning import checked_search


class PrivateForestClassifier(ForestClassifier):
    """Base of the estimators that keep ε: everything that can be refused is refused before the budget is touched."""

    epsilon: Any
    delta: Any = 0  # an estimator that has Gaussian noise takes it as a parameter; 0 is pure ε
    budget: Budget | None
    sampler: str
    best_params_: dict[str, Any]

    _required_parameters = ("schema", "epsilon")  # scikit-learn's name for what an estimator cannot be made without

    def tune(self, X: Any, y: Any = None, *, grid: Mapping[str, Sequence[Any]], share: Any = 0.3, accept_draft: bool = False) -> Any:
        """Choose settings privately, then fit with the best: `share` of ε pays for the search, the rest for the forest.

        Every combination in the grid is trained with an equal part of four fifths of that share; the last fifth pays for one
        private choice of the one with the best probabilities (by the Brier score). Every look is charged and stands in the
        certificate. The parameters of the estimator stay as they are: what was chosen is `best_params_`, with which `release_` was
        trained.

        Parameters
        ----------
        X, y, accept_draft
            As in `fit`.
        grid : dict of lists
            The values to try, by the name of the setting: {"max_depth": [3, 5]}. Every combination is tried.
        share : number between 0 and 1, default=0.3
            Of ε, for the search.

        Returns
        -------
        self
        """
        self._check_surroundings(X)
        search, part = checked_search(self._recipe(), grid, share, type(self).__name__)
        with self._remembered(X), closing(self._engine_for(X, y, None, accept_draft)) as engine:
            self._train(engine, search=search, share=part)
        self.classes_ = sorted_classes(engine.codebook.schema)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The exact accuracy on these rows, without those that have no label. It is not noisy and nothing is charged: for rows that are
        private, use `private_score`.
        """
        say_exact_score()
        return float(super().score(X, y, sample_weight))

    def __sklearn_clone__(self) -> Any:
        check_repetitions(self)
        return super().__sklearn_clone__()

    def _checked_rows(self, X: Any) -> Any:
        say_learning_around()
        return super()._checked_rows(X)

    def _check_surroundings(self, X: Any, no_guarantee: bool = False) -> None:
        check_unnamed(self, X)
        say_repeated_rows(self, X)
        self._no_guarantee = check_surroundings(self, no_guarantee)

    def _check_settings(self) -> None:
        """Refuse the parameters that `fit` would refuse. Needs no rows, but a schema: where the rows have it, `fit` alone can tell."""
        if self.schema is not None and not self._inferred:
            check_settings(self._recipe(), self._declared_schema("fit"), self.sampler, self._coins)

    def _train(self, engine: Engine, name: TableName | None = None, recipe: Recipe | None = None, **search: Any) -> Release:
        how: dict[str, Any] = {"budget": self.budget, "sampler": self.sampler, "coins": self._coins, "name": name, "keep": self._keep}
        how["no_guarantee"] = self.__dict__.pop("_no_guarantee", None)  # of this fit alone
        say_no_budget(self, engine)
        say_large_epsilon(self)
        return train(recipe or self._recipe(), engine, **how, **search)

    def _keep(self, release: Release, chosen: Mapping[str, Any]) -> None:
        """What is paid for is kept before anything is said: a warning may have been made an error."""
        self.release_, self.classes_ = release, sorted_classes(release.schema)
        note_in_vain(release)
        if chosen:
            self.best_params_ = dict(chosen)
