"""LocalTreeClassifier: the tree that an owner learns from its own rows, without privacy, before it is pruned for sharing."""

from __future__ import annotations

from typing import Any

from hedgerow.estimators.base import ExactForestClassifier
from hedgerow.training.algorithms import ALGORITHMS


class LocalTreeClassifier(ExactForestClassifier):
    """One decision tree in the manner of C4.5, with exact counts: no privacy at all, and its release says so.

    Parameters
    ----------
    schema : Schema, str or path, default="infer"
        The public facts about the table; "infer" reads them from the rows: there is no guarantee to lose.
    min_leaf : int, default=2
        A question is asked only if at least two of its branches have so many rows.
    confidence : float or None, default=0.25
        The smaller, the more is pruned: above 0 and at most 0.5; None or 1 prunes nothing.
    max_depth : int or None, default=None
        How many questions may be asked on a path; None sets no limit.
    bins : int or "values", default=32
        Equal-width cells of a numeric attribute without declared edges; thresholds lie between them. "values" cuts between the values
        that the rows have, as C4.5 does (of more than 4,096 values, into as many cells of about as many rows each); the release lists only
        the edges that its tree uses.
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
    J. R. Quinlan: C4.5: Programs for Machine Learning. 1993. docs/SHARING.md tells what it is for.

    Examples
    --------
    >>> from hedgerow import LocalTreeClassifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = LocalTreeClassifier(max_depth=3).fit(train.X, train.y)
    >>> model.release_.certificate.guarantee
    'none'
    """

    _algorithm = ALGORITHMS["local-tree"]

    def __init__(
        self,
        schema: Any = "infer",
        *,
        min_leaf: int = 2,
        confidence: float | None = 0.25,
        max_depth: int | None = None,
        bins: int | str = 32,
        n_jobs: int | None = None,
    ) -> None:
        self.schema = schema
        self.min_leaf = min_leaf
        self.confidence = confidence
        self.max_depth = max_depth
        self.bins = bins
        self.n_jobs = n_jobs
