"""HedgerowClassifier: our own forest as a scikit-learn estimator, and the one to try first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.mergeable import MergeableForestClassifier
from hedgerow.training.algorithms import ALGORITHMS


class HedgerowClassifier(MergeableForestClassifier):
    """The most accurate private forest here, with nothing to tune but ε: one-way counts, then privately chosen boosted trees.

    Parameters
    ----------
    schema : Schema, str, path or None
        The public facts about the table: a `hedgerow.Schema` or the path of a TOML file. "infer" reads them from the rows: the release
        then claims no ε. None is for rows at an owner's service, which has their schema.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`. Where no `schema.rows` is declared, 3 % of it pays for a noisy number of rows.
    delta : number, default=0
        A small chance that ε may not hold, such as 1e-6: it buys much accuracy on most tables, by Gaussian noise, under which many trees
        cost little. Where rows times ε are below about 1,000, pure ε may be as good, or better.
    max_passes : int, optional
        So many passes over the rows at most, where each is dear (a stream, Spark, a service): fewer rounds, with more trees in each.
    bins : int, default=250
        Fine cells of a numeric attribute without declared edges: they are put together to cells of about equal noisy mass.
    budget : Budget or BudgetFile, optional
        What pays, shared with every other look at the same rows. Without one the fit has a budget of its own.
    sampler : {"hedgerow", "opendp"}, default="hedgerow"
        What draws the noise; both are exact ("opendp" for delta=0 only).
    random_state : int, Generator or None
        Seeds the trees that are proposed; the noise and the private choices among them cannot be seeded.
    n_jobs : int, default=None
        Threads; None is 1, −1 all processors.

    Attributes
    ----------
    release_ : Release
        What may be published. `release_.additive` has the scores and their errors, `release_.chosen` what was chosen,
        `release_.certificate` states the guarantee.
    classes_ : ndarray
        The declared classes, sorted as scikit-learn sorts them: the order of the columns of `predict_proba`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray
        Their names, where the rows had names.
    feature_importances_ : ndarray
        The share of each attribute in what the forest tells about the class, from released numbers alone.

    References
    ----------
    docs/HEDGEROW.md tells how it works, PRIVACY.md why ε holds.

    Examples
    --------
    >>> from hedgerow import HedgerowClassifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = HedgerowClassifier(train.schema, epsilon=1).fit(train.X, train.y)
    >>> model.release_.certificate.sentence()
    'ε = 1 differential privacy, neighbours: add or remove one row'
    >>> model.predict(train.X[:3]).shape
    (3,)
    >>> bool(HedgerowClassifier(train.schema, epsilon=1).plan(rows=2_000).noise_sd < 40)   # before any row is read
    True
    """

    _algorithm = ALGORITHMS["hedgerow"]

    def __init__(
        self,
        schema: Any,
        epsilon: Any,
        delta: Any = 0,
        *,
        max_passes: int | None = None,
        bins: int = 250,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.max_passes = max_passes
        self.bins = bins
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """What speaks for each class: for two classes the log-odds of `classes_[1]`, for more one score for each class and row.

        The scores are those of `release_.scores`, in the order of `classes_`; their softmax is `predict_proba`.
        """
        check_is_fitted(self, "release_")
        declared: NDArray[np.float64] = self.release_.scores(self._checked_rows(X), n_jobs=self._threads())
        margins = self._by_classes(declared, np.finfo(np.float64).min)
        return margins[:, 1] - margins[:, 0] if margins.shape[1] == 2 else margins
