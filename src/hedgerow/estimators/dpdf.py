"""DPDFClassifier: Fletcher & Islam 2015 (DPDF) as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.private import PrivateForestClassifier
from hedgerow.training.algorithms import ALGORITHMS


class DPDFClassifier(PrivateForestClassifier):
    """The differentially private decision forest: attributes chosen privately, class counts at every node, rules to read.

    Parameters
    ----------
    schema : Schema, str, path or None
        The public facts about the table: a `hedgerow.Schema` or the path of a TOML file. "infer" reads them from the rows: the release
        then claims no ε. None is for rows at an owner's service, which has their schema.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`, at most: a tree that ends early leaves the rest in the budget.
    n_estimators : int, default=1
        The number of trees τ; every tree has a root attribute of its own.
    max_depth : int, default=5
        The number of levels δ, the root included.
    min_rows : int, default=100
        A node is split only if its noisy count is at least this.
    vote : {"confidence", "majority", "sum"}, default="confidence"
        How the trees decide: as in the paper, by majority, or by the counts where a row ends.
    sensitivity : {"global", "local"}, default="global"
        "global" is the proven score; "local" is the paper's own, for reproduction only: its release claims no ε.
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
    S. Fletcher, M. Z. Islam: A Differentially Private Decision Forest. AusDM 2015.

    Examples
    --------
    >>> from hedgerow import DPDFClassifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = DPDFClassifier(train.schema, epsilon=1, max_depth=3).fit(train.X, train.y)
    >>> len(model.release_.rules(top=1))
    1
    >>> tuned = DPDFClassifier(train.schema, epsilon=4).tune(train.X, train.y, grid={"max_depth": [1, 3]})
    >>> tuned.max_depth, tuned.best_params_["max_depth"] in (1, 3)               # parameters stay as they were given
    (5, True)
    """

    _algorithm = ALGORITHMS["dpdf"]

    def __init__(
        self,
        schema: Any,
        epsilon: Any,
        n_estimators: int = 1,
        max_depth: int = 5,
        min_rows: int = 100,
        *,
        vote: str = "confidence",
        sensitivity: str = "global",
        bins: int = 5,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_rows = min_rows
        self.vote = vote
        self.sensitivity = sensitivity
        self.bins = bins
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs
