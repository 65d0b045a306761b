"""RandomDecisionTreesClassifier: random decision trees without privacy, the baseline and upper bound."""

from __future__ import annotations

from typing import Any

from hedgerow.estimators.base import ExactForestClassifier
from hedgerow.settings import DEFAULT_MAX_LEAVES
from hedgerow.training.algorithms import ALGORITHMS


class RandomDecisionTreesClassifier(ExactForestClassifier):
    """Random decision trees with exact counts: no privacy at all, and its release says so.

    Parameters
    ----------
    n_estimators : int, default=10
        The number of trees.
    max_depth : int or None, default=None
        The height of the trees; None is the paper's rule, from the number of rows.
    prune : bool, default=True
        Remove subtrees that no training row reached. False is the ε = ∞ curve of the paper's figures.
    schema : Schema, str or path, default="infer"
        The public facts about the table; "infer" reads them from the rows: there is no guarantee to lose.
    bins : int, default=5
        Equal-width cells of a numeric attribute without declared edges.
    numeric_splits : {"bins", "thresholds"}, default="bins"
        A branch for each cell of a number, or below and above a random threshold among the cell edges.
    max_leaves : int, default=2_000_000
        A forest with more leaves in all is refused.
    random_state : int, RandomState or None, default=None
        Seeds the structure of the trees.
    n_jobs : int, default=None
        Threads; None is 1, −1 all processors.

    Attributes
    ----------
    release_ : Release
        The forest with its exact counts. Its certificate says that it claims nothing.
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
    G. Jagannathan, K. Pillaipakkamnatt, R. N. Wright: A Practical Differentially Private Random Decision Tree Classifier.
    Transactions on Data Privacy 5, 2012, section 3.

    Examples
    --------
    >>> from hedgerow import RandomDecisionTreesClassifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = RandomDecisionTreesClassifier(random_state=0).fit(train.X, train.y)
    >>> model.release_.certificate.guarantee
    'none'
    """

    _algorithm = ALGORITHMS["plain-rdt"]

    def __init__(
        self,
        n_estimators: int = 10,
        max_depth: int | None = None,
        prune: bool = True,
        *,
        schema: Any = "infer",
        bins: int = 5,
        numeric_splits: str = "bins",
        max_leaves: int = DEFAULT_MAX_LEAVES,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.prune = prune
        self.schema = schema
        self.bins = bins
        self.numeric_splits = numeric_splits
        self.max_leaves = max_leaves
        self.random_state = random_state
        self.n_jobs = n_jobs
