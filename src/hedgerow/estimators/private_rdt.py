"""PrivateRDTClassifier: Jagannathan et al. 2012 as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.mergeable import MergeableForestClassifier
from hedgerow.settings import DEFAULT_MAX_LEAVES
from hedgerow.training.algorithms import ALGORITHMS


class PrivateRDTClassifier(MergeableForestClassifier):
    """Private random decision trees: random structure, noisy leaf counts, prediction by summed counts.

    Parameters
    ----------
    schema : Schema, str, path or None
        The public facts about the table: a `hedgerow.Schema` or the path of a TOML file. "infer" reads them from the rows: the release
        then claims no ε. None is for rows at an owner's service, which has their schema.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`.
    n_estimators : int, default=10
        The number of trees N; every count gets noise of scale N/ε.
    max_depth : int or None, default=None
        The height of the trees. None is the paper's rule, which needs the number of rows: `schema.rows` if it is declared, or a noisy
        count that takes 3 % of ε.
    bins : int, default=5
        Equal-width cells of a numeric attribute without declared edges.
    numeric_splits : {"bins", "thresholds"}, default="bins"
        A branch for each cell of a number, or below and above a random threshold among the cell edges.
    max_leaves : int, default=2_000_000
        A forest with more leaves in all is refused before anything is spent.
    budget : Budget or BudgetFile, optional
        What pays, shared with every other look at the same rows. Without one the fit has a budget of its own.
    sampler : {"hedgerow", "opendp"}, default="hedgerow"
        What draws the noise; both are exact.
    random_state : int, RandomState or None, default=None
        Seeds the public structure of the trees only. Noise cannot be seeded.
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
    G. Jagannathan, K. Pillaipakkamnatt, R. N. Wright: A Practical Differentially Private Random Decision Tree Classifier.
    Transactions on Data Privacy 5, 2012.

    Examples
    --------
    >>> from hedgerow import PrivateRDTClassifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = PrivateRDTClassifier(train.schema, epsilon=1, random_state=0).fit(train.X, train.y)
    >>> model.release_.certificate.sentence()
    'ε = 1 differential privacy, neighbours: add or remove one row'
    >>> model.predict(train.X[:3]).shape
    (3,)
    """

    _algorithm = ALGORITHMS["rdt"]

    def __init__(
        self,
        schema: Any,
        epsilon: Any,
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
