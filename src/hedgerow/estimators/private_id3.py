"""PrivateID3Classifier: Jagannathan et al. 2012, section 4, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.private import PrivateForestClassifier
from hedgerow.training.algorithms import ALGORITHMS


class PrivateID3Classifier(PrivateForestClassifier):
    """ID3 from noisy attribute-by-class tables: the simple way to a private tree, and why better ones are needed.

    Parameters
    ----------
    schema : Schema, str, path or None
        The public facts about the table: a `hedgerow.Schema` or the path of a TOML file. "infer" reads them from the rows: the release
        then claims no ε. None is for rows at an owner's service, which has their schema.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`, at most: a tree that ends early leaves the rest in the budget.
    max_depth : int or None, default=None
        How many attributes may be asked on a path; None is all of them, and ε is divided by k(k + 1)/2 tables.
    as_published : bool, default=False
        The paper to the letter, for reproduction only: sizes and classes of nodes are asked for apart, beyond the queries that ε is divided
        by, and an empty node is a leaf with value Failure (`release_.failures(rows)`). More than ε is charged; the release claims no ε.
    bins : int, default=5
        Equal-width cells of a numeric attribute without declared edges.
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
    G. Jagannathan, K. Pillaipakkamnatt, R. N. Wright: A Practical Differentially Private Random Decision Tree Classifier.
    Transactions on Data Privacy 5, 2012, section 4.

    Examples
    --------
    >>> from hedgerow import PrivateID3Classifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = PrivateID3Classifier(train.schema, epsilon=1, max_depth=1).fit(train.X, train.y)
    >>> model.release_.certificate.guarantee
    'epsilon-DP'
    """

    _algorithm = ALGORITHMS["private-id3"]

    def __init__(
        self,
        schema: Any,
        epsilon: Any,
        max_depth: int | None = None,
        *,
        as_published: bool = False,
        bins: int = 5,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.max_depth = max_depth
        self.as_published = as_published
        self.bins = bins
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs
