"""DiffPID3Classifier: Friedman & Schuster 2010 as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.private import PrivateForestClassifier
from hedgerow.training.algorithms import ALGORITHMS


class DiffPID3Classifier(PrivateForestClassifier):
    """One private tree: noisy sizes, splits by the exponential mechanism, noisy class counts in the leaves.

    Parameters
    ----------
    schema : Schema, str, path or None
        The public facts about the table: a `hedgerow.Schema` or the path of a TOML file. "infer" reads them from the rows: the release
        then claims no ε. None is for rows at an owner's service, which has their schema.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`, at most: a tree that ends early leaves the rest in the budget.
    max_depth : int, default=5
        The number of levels δ, the root included.
    criterion : {"gini", "max", "information_gain", "gini_half"}, default="gini"
        The score of a split. "gini" is scaled by counts; "gini_half" is the Gini index with sensitivity 1/2, the baseline of DPDF's paper.
    most_rows : int, default=1_000_000
        The public N in the sensitivity of information gain. Privacy holds for any table, but choose it above the table's size: counts far
        above it are scored alike.
    bins : int, default=5
        Equal-width cells of a numeric attribute without declared edges; a threshold between two of them is chosen privately.
    budget : Budget or BudgetFile, optional
        What pays, shared with every other look at the same rows. Without one the fit has a budget of its own.
    sampler : {"hedgerow", "opendp"}, default="hedgerow"
        What draws the noise; both are exact; private choices are always our own.
    random_state : None
        Not used: these trees need no public randomness, and noise cannot be seeded.
    n_jobs : int, default=None
        Threads; None is 1, −1 all processors.

    Attributes
    ----------
    release_ : Release
        What may be published: `release_.save(path)` writes it, `release_.certificate` states the guarantee.
    classes_ : ndarray
        The declared classes, sorted as scikit-learn sorts them: the order of the columns of `predict_proba`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray
        Their names, where the rows had names.
    feature_importances_ : ndarray
        The share of each attribute in what the forest tells about the class, from released numbers alone.
    best_params_ : dict
        What `tune` has chosen.

    References
    ----------
    A. Friedman, A. Schuster: Data Mining with Differential Privacy. KDD 2010.

    Examples
    --------
    >>> from hedgerow import DiffPID3Classifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = DiffPID3Classifier(train.schema, epsilon=1, max_depth=3).fit(train.X, train.y)
    >>> model.release_.certificate.guarantee
    'epsilon-DP'
    >>> len(model.release_.forest.trees)
    1
    """

    _algorithm = ALGORITHMS["diffpid3"]

    def __init__(
        self,
        schema: Any,
        epsilon: Any,
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
