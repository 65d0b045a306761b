"""SNRForestClassifier: Fletcher & Islam 2015 (DP-RF) as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from hedgerow.accounting.meter import Budget
from hedgerow.estimators.mergeable import MergeableForestClassifier
from hedgerow.settings import DEFAULT_MAX_LEAVES
from hedgerow.training.algorithms import ALGORITHMS


class SNRForestClassifier(MergeableForestClassifier):
    """A private random forest tuned by signal-to-noise ratios: nothing to set but ε, and `plan()` shows what it chooses.

    Parameters
    ----------
    schema : Schema, str, path or None
        The public facts about the table: a `hedgerow.Schema` or the path of a TOML file. "infer" reads them from the rows: the release
        then claims no ε. None is for rows at an owner's service, which has their schema.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss of one `fit`. Where no `schema.rows` is declared, 3 % of it pays for a noisy number of rows.
    bins : int, default=5
        Equal-width cells of a numeric attribute without declared edges.
    noise_rule : {"paper", "tight"}, default="paper"
        How noise is estimated: |C|·√2/ε, as published, or √(2|C|)/ε, the standard deviation of the sum.
    stopping_rule : {"ours", "literal"}, default="ours"
        Where a path ends: "ours" makes no node whose estimated support is not above the noise; "literal", as the text has it, makes such
        a node and asks no more there: one question more on every path, and leaves below the noise.
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
        What may be published. `release_.chosen` says what was tuned, `release_.certificate` states the guarantee.
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
    S. Fletcher, M. Z. Islam: A Differentially Private Random Decision Forest Using Reliable Signal-to-Noise Ratios. AI 2015.

    Examples
    --------
    >>> from hedgerow import SNRForestClassifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = SNRForestClassifier(train.schema, epsilon=1).fit(train.X, train.y)
    >>> model.release_.certificate.sentence()
    'ε = 1 differential privacy, neighbours: add or remove one row'
    >>> model.predict(train.X[:3]).shape
    (3,)
    """

    _algorithm = ALGORITHMS["snr"]

    def __init__(
        self,
        schema: Any,
        epsilon: Any,
        *,
        bins: int = 5,
        noise_rule: str = "paper",
        stopping_rule: str = "ours",
        max_leaves: int = DEFAULT_MAX_LEAVES,
        budget: Budget | None = None,
        sampler: str = "hedgerow",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.bins = bins
        self.noise_rule = noise_rule
        self.stopping_rule = stopping_rule
        self.max_leaves = max_leaves
        self.budget = budget
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs
