"""ID3Classifier: plain ID3 (Jagannathan et al. 2012, Algorithm 1) as a scikit-learn estimator, without privacy."""

from __future__ import annotations

from typing import Any

from hedgerow.estimators.base import ExactForestClassifier
from hedgerow.training.algorithms import ALGORITHMS


class ID3Classifier(ExactForestClassifier):
    """Plain ID3 with exact counts: no privacy at all, and its release says so.

    Parameters
    ----------
    max_depth : int or None, default=None
        How many attributes may be asked on a path; None is all of them.
    as_published : bool, default=False
        Whether an empty child is a leaf with value Failure, as in the paper: `release_.failures(rows)` tells the rows that end there, and
        `predict` gives them the most frequent class. Otherwise such a row is answered by the majority of the node above.
    schema : Schema, str or path, default="infer"
        The public facts about the table; "infer" reads them from the rows: there is no guarantee to lose.
    bins : int, default=5
        Equal-width cells of a numeric attribute without declared edges.
    random_state : None
        Not used.
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
    J. R. Quinlan: Induction of Decision Trees. Machine Learning 1, 1986; as Algorithm 1 of G. Jagannathan et al. 2012.

    Examples
    --------
    >>> from hedgerow import ID3Classifier
    >>> from hedgerow.datasets import patients
    >>> train = patients(2_000, seed=1)
    >>> model = ID3Classifier(max_depth=2).fit(train.X, train.y)
    >>> model.release_.certificate.guarantee
    'none'
    """

    _algorithm = ALGORITHMS["id3"]

    def __init__(
        self,
        max_depth: int | None = None,
        *,
        as_published: bool = False,
        schema: Any = "infer",
        bins: int = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.as_published = as_published
        self.schema = schema
        self.bins = bins
        self.random_state = random_state
        self.n_jobs = n_jobs
